"""The ops of the backend, with a host compiler in place of the GPU (see emulation/)."""

import sys
from pathlib import Path

import pytest

from burn.plugin_api import REGISTRY, DeviceId, Kind, float32
from burn.testing import SAMPLES, Sample, Selection, Subject, check_sample, checks_of, load_samples
from burn.testing.checks import check_error_in_table
from burn.testing.samples.optimizers.optimizer import moments, states
from burn.testing.special_cases import FUNCTIONS
from burn_cuda.backend import CudaBackend

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

pytestmark = pytest.mark.skipif(
    emulated.COMPILER is None, reason="there is no C++ compiler to emulate a GPU with"
)

load_samples()
SPREAD = 7
"""Every so many-th sample of an op is tried: each kernel takes the compiler a moment."""


@pytest.fixture(scope="module")
def subject():
    return Subject(CudaBackend(emulated.Runtime, lambda: 2), DeviceId(0, 1))


def test_the_ops_with_kernels_of_their_own_are_many(subject):
    origins = [subject.table.origin(definition) for definition in REGISTRY.values()]
    assert origins.count("native") > 120
    assert "unsupported" not in origins


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_an_op_gives_what_its_reference_gives(subject, name):
    samples = SAMPLES[name]
    dtypes = {}
    for number, sample in enumerate(samples.samples):
        available = subject.dtypes(samples, sample)
        if number % SPREAD == 0 and available:
            dtype = available[number // SPREAD % len(available)]
            dtypes.setdefault(dtype, []).append(sample)
    for dtype, chosen in dtypes.items():
        for sample in chosen:
            check_sample(subject, samples, sample, dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_complex_function_has_the_special_cases_of_the_standard(subject, name):
    dtypes = ("complex64", "complex128")
    checks = list(checks_of(subject, Selection((name,), dtypes, suites=("special_cases",))))
    assert len(checks) >= len(dtypes)
    for check in checks:
        check.body()


@pytest.mark.parametrize("name", ["gather", "cross_entropy", "cross_entropy_grad", "nll_loss"])
def test_kernels_report_indices_that_are_out_of_range(subject, name):
    refused = [error for error in SAMPLES[name].errors if error.in_data]
    assert refused
    for item in refused:
        check_error_in_table(subject, SAMPLES[name], item)


@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if name.endswith("_step")))
def test_a_step_gives_what_its_reference_gives_for_every_state(subject, name):
    samples = SAMPLES[name]
    for sample in samples.samples:
        check_sample(subject, samples, sample, float32)


def test_a_step_of_more_parameters_than_one_launch_takes_updates_all(subject):
    shapes = [(number % 7, 1 + number * 37 % 401) for number in range(150)]
    lists = [*states(*shapes), *moments(*shapes), []]
    attributes = SAMPLES["adam_step"].samples[1].attributes
    many = Sample("many", tuple(lists), attributes, Kind.FLOAT)
    check_sample(subject, SAMPLES["adam_step"], many, float32)
