"""Devices with fewer capabilities or of another type, imitated on PoCL."""

import subprocess
import sys

import pytest

import burn
from burn.plugin_api import (
    DiskCache,
    DTypeUsage,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)
from burn.testing import Selection, Subject, groups_of, load_samples
from burn_opencl import plugin
from burn_opencl.backend import OpenClDevice
from burn_opencl.icd_loader import FoundDevice, found_devices
from burn_opencl.programs import Programs

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

load_samples()

OPS = (
    *("add", "exp", "gelu", "cast", "arange", "sum", "max", "matmul", "softmax", "layer_norm"),
    *("batch_norm_training", "attention", "conv", "max_pool", "argsort", "cumsum", "gather"),
    *("scatter_add", "random_normal", "adam_step", "interpolate"),
)


@pytest.fixture(scope="module")
def device():
    return burn.Device("opencl")


@pytest.fixture(scope="module")
def without_doubles(device):
    """The device as one without float64 and atomics of 64 bits, and its compiler likewise."""
    own = OpenClDevice(device.backend, device.id)
    runtime = own.launcher.runtime
    build = runtime.build
    hidden = "#define double no_double\n#define atom_add no_atom\n#define atom_cmpxchg no_atom\n"
    runtime.has_fp64 = False
    runtime.build = lambda source: build(hidden + source)
    runtime.identity += "|without float64"  # its binaries are not those of the device
    own.launcher.programs = Programs(runtime, DiskCache("opencl"))
    before = device.ops.backend  # the device of users' tensors, restored at the end
    devices = device.backend._devices
    devices[device.id] = own
    yield own
    devices[device.id] = before


def failures(backend, device, **chosen):
    """Checks of the kit that fail on a device."""
    groups = groups_of(Subject(backend, device), Selection(quick=True, **chosen))
    results = [check.run() for group in groups for check in group.checks]
    assert results
    return [f"{result.check}: {result.message}" for result in results if result.status.is_wrong]


@pytest.mark.parametrize("name", OPS)
def test_a_device_without_float64_has_every_op(device, without_doubles, name, everything):
    has_gradients = everything or name in ("gelu", "softmax", "conv")
    suites = ("values", "gradients", "gradient_types") if has_gradients else ("values",)
    assert without_doubles.launcher.runtime.has_fp64 is False
    assert not failures(device.backend, device.id, ops=(name,), suites=suites)


DENIED = """
from burn_opencl.runtime import Runtime

made = Runtime.__init__

def make(self, device):
    made(self, device)
    self.has_fp64 = False

Runtime.__init__ = make

import burn

device = burn.Device("opencl")
print(burn.ones(2, device=device).dtype, device.dtype_usage(burn.float64).name)
for call in (
    lambda: burn.zeros(3, dtype=burn.float64, device=device),
    lambda: burn.ones(3, device=device).astype(burn.float64),
    lambda: burn.ones(3, dtype=burn.float64, device="cpu").to_device(device),
    lambda: burn.ones(3, device=device).astype(burn.complex128),
):
    try:
        call()
    except burn.DTypeError as error:
        print(error)
"""


def test_float64_is_denied_where_the_device_has_none(device, without_doubles):
    for dtype in (float64, complex128):
        assert without_doubles.dtype_usage(device.id, dtype) == DTypeUsage.NONE
    # 16-bit floats that are computed in float32 count as arithmetic too.
    for dtype in (float16, bfloat16, float32, complex64):
        assert without_doubles.dtype_usage(device.id, dtype) == DTypeUsage.GENERAL
    finished = subprocess.run(
        [sys.executable, "-c", DENIED], capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr
    first, *refused = finished.stdout.splitlines()
    assert first == "float32 NONE"
    assert len(refused) == 4
    for line, dtype in zip(refused, [*["float64"] * 3, "complex128"], strict=True):
        assert dtype in line
        assert "opencl" in line


def test_a_program_that_needs_float64_is_not_built_there(without_doubles):
    with pytest.raises(burn.ExecutionError, match="no_double"):
        without_doubles.launcher.runtime.build("__kernel void k(__global double* x) { x[0] = 1; }")


@pytest.fixture
def listed(monkeypatch):
    """What the probe shows for devices that a loader lists."""

    def probe(*devices):
        monkeypatch.setattr(plugin, "found_devices", lambda: list(devices))
        (spec,) = plugin.burn_backends()
        return [(f"{item.type}:{item.index}", item.hardware, item.driver) for item in spec.probe()]

    return probe


def found(type_, name, platform, version="1.2", *, unique=""):
    return FoundDevice(type_, name, platform, version, 1 << 30, has_fp64=False, unique=unique)


def test_hardware_of_two_platforms_is_shown_as_such(listed):
    pocl = "Portable Computing Language"
    shown = listed(
        found("gpu", "Arc A770", "Intel(R) OpenCL Graphics"),
        found("cpu", "EPYC", pocl, "3.1+debian"),
        found("gpu", "Arc A770", "Clover", "23.0"),
    )
    assert shown == [
        ("gpu:0", "Arc A770 (Intel, also gpu:1)", "Intel 1.2"),
        ("cpu:0", "EPYC", "PoCL 3.1"),
        ("gpu:1", "Arc A770 (Clover, also gpu:0)", "Clover 23.0"),
    ]


def test_hardware_is_identified_by_its_id_before_its_name(listed):
    names = [
        item[1]
        for item in listed(
            found("gpu", "NVIDIA H200", "NVIDIA CUDA", unique="a"),
            found("gpu", "NVIDIA H200", "NVIDIA CUDA", unique="b"),
            found("gpu", "H200 through PoCL", "Portable Computing Language", unique="b"),
        )
    ]
    assert names == [
        "NVIDIA H200",
        "NVIDIA H200 (NVIDIA, also gpu:2)",
        "H200 through PoCL (PoCL, also gpu:1)",
    ]


def test_the_processors_of_two_platforms_are_one(listed):
    names = [
        item[1]
        for item in listed(
            found("cpu", "pthread-haswell-AMD EPYC", "Portable Computing Language"),
            found("cpu", "AMD EPYC 7B13", "Intel(R) CPU Runtime for OpenCL(TM) Applications"),
        )
    ]
    assert names[0] == "pthread-haswell-AMD EPYC (PoCL, also cpu:1)"


def test_gpus_come_before_processors():
    (spec,) = plugin.burn_backends()
    assert spec.device_types == ("gpu", "cpu", "accelerator", "custom")


def test_no_part_of_a_device_hides_a_method_of_another():
    bases = [base for base in OpenClDevice.__mro__ if base.__module__.startswith("burn_opencl.")]
    seen = {}
    for base in bases:
        for name, value in vars(base).items():
            if callable(value) and not name.startswith("__") and base.__name__.endswith("Ops"):
                assert name not in seen, f"{name} of {base.__name__} and of {seen[name]}"
                seen[name] = base.__name__
