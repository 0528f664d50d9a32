"""The kit presumes nothing of a backend that the protocol does not ask for."""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn.errors import ArgumentError, ExportError
from burn.plugin_api import BackendSpec
from burn.testing import Subject
from burn.testing.suites import SUITES
from unlike_backends import SPEC, CopyingBackend

PROGRAM = Path(__file__).parents[1] / "shared" / "unlike_backends.py"

FEW = (
    "interchange:",
    "functions:asarray",
    "functions:Tensor.to_device",
    "errors:eig*",
    "errors:nll_loss",
    "programs:nll_loss",
)
"""Checks that presumed memory, other backends, complex or 64-bit dtypes."""


NARROW = (
    "contract:",
    "long_axes:",
    "quantization:sigmoid",
    "quantization:argmax",
    "functions:quantization.quantize_dynamic",
    "wrong_calls:positive",
    "wrong_calls:ones_like",
    "values:random_uniform",
)
"""Checks that presumed int8, int64 or uint32."""


def conforms(run_python, name, *wanted):
    result = run_python(PROGRAM, name, *wanted, BURN_PLUGINS="none")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith(f"passed on {name}:0\n")
    return int(result.stdout.split()[0])


def test_a_backend_that_reads_copies_and_has_few_dtypes_conforms_alone(run_python):
    assert conforms(run_python, "copying", *FEW) > 100


def test_a_backend_that_has_the_needed_dtypes_alone_conforms(run_python):
    assert conforms(run_python, "few", *NARROW) > 25


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["copying", "few"])
def test_an_unlike_backend_conforms_to_the_whole_quick_kit(name, run_python):
    assert conforms(run_python, name) > 10_000


def test_a_tensor_that_is_read_by_a_copy_is_not_shared():
    with burn.registered(SPEC):
        x = burn.asarray(np.arange(3, dtype=np.float32), device="copying")
        with pytest.raises(ExportError, match="read by a copy"):
            x.__dlpack__(copy=False)
        with pytest.raises(BufferError):
            np.from_dlpack(x, copy=False)
        with pytest.raises(ArgumentError, match="read by a copy"):
            np.asarray(x, copy=False)
        assert np.from_dlpack(x).tolist() == np.asarray(x).tolist() == [0.0, 1.0, 2.0]
        assert np.from_dlpack(x[:0], copy=False).tolist() == []


def test_memory_of_the_device_is_shared_where_no_copy_is_made():
    x = burn.asarray(np.arange(3, dtype=np.float32), device="cpu")
    assert np.shares_memory(np.from_dlpack(x, copy=False), np.asarray(x, copy=False))


class SharesCopies(CopyingBackend):
    """Exports a copy although there shall be none."""

    def to_dlpack(self, x, *, stream=None, max_version=None, copy=None):
        return super().to_dlpack(x, stream=stream, max_version=max_version, copy=True)


def test_the_kit_finds_a_copy_that_passes_for_shared_memory():
    spec = BackendSpec("copying", SharesCopies, SPEC.probe, ("npu",))
    with burn.registered(spec):
        device = burn.Device("copying")
        subject = Subject(device.backend, device.id, handle=device)
        checks = SUITES["interchange"].checks(subject, [])
        found = {check.name: check for check in checks}
        result = found["interchange/float32/exports say what they are"].run()
        assert "gave a copy: it must raise BufferError" in result.message
