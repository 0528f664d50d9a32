"""The probe, which knows GPUs from the driver and does not import CuPy."""

import dataclasses
import importlib.metadata
import subprocess
import sys

import pytest

import burn
from burn.plugin_api import DTypeUsage, State, bfloat16, float16, float32
from burn_cuda import plugin
from burn_cuda.usage import usage_of
from burn_nvidia import Gpu, NoDriverError, find_gpus

GIB = 1 << 30
GPUS = [
    Gpu("NVIDIA T4", "GPU-aa11-1", 16 * GIB, (7, 5)),
    Gpu("NVIDIA H200", "GPU-bb22-2", 141 * GIB, (9, 0)),
    Gpu("NVIDIA H200", "GPU-bb33-3", 141 * GIB, (9, 0)),
]


@pytest.fixture
def machine(monkeypatch):
    """Sets up a machine: its driver, the CuPy that is installed, and the visible GPUs."""

    def set_up(gpus, *, cuda=(13, 0), wheels=("cupy-cuda13x",), choice=None, order=None):
        def find():
            if isinstance(gpus, Exception):
                raise gpus
            return gpus, "580.159.03", cuda

        def version(name):
            if name in wheels:
                return "14.2.0"
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(plugin, "find_gpus", find)
        monkeypatch.setattr(plugin.importlib.metadata, "version", version)
        monkeypatch.setattr(plugin, "_has_module", lambda name: False)
        for variable, value in (("CUDA_VISIBLE_DEVICES", choice), ("CUDA_DEVICE_ORDER", order)):
            if value is None:
                monkeypatch.delenv(variable, raising=False)
            else:
                monkeypatch.setenv(variable, value)
        return plugin._find_devices()

    return set_up


def test_each_gpu_is_a_device_with_what_the_driver_knows(machine):
    devices, reason = machine(GPUS[1:])
    assert [(device.type, device.index, device.hardware) for device in devices] == [
        ("cuda", 0, "NVIDIA H200"),
        ("cuda", 1, "NVIDIA H200"),
    ]
    assert devices[0].memory == 141 * GIB
    assert devices[0].driver == "NVIDIA 580.159.03, CUDA 13.0"
    assert not reason


def test_the_most_capable_gpu_comes_first_as_in_cuda(machine):
    devices, _ = machine(GPUS)
    assert [device.hardware for device in devices] == ["NVIDIA H200", "NVIDIA H200", "NVIDIA T4"]
    devices, _ = machine(GPUS, order="PCI_BUS_ID")
    assert [device.hardware for device in devices] == ["NVIDIA T4", "NVIDIA H200", "NVIDIA H200"]


def test_a_gpu_that_cuda_does_not_show_is_no_device(machine):
    devices, _ = machine(GPUS, choice="2,1")
    assert [(device.index, device.hardware) for device in devices] == [
        (0, "NVIDIA T4"),
        (1, "NVIDIA H200"),
    ]


def test_a_part_of_a_gpu_is_a_device_without_memory_and_usage(machine):
    ((part,), reason) = machine(GPUS, choice="MIG-bb22")
    assert not reason
    assert (part.hardware, part.memory, part.usage) == ("NVIDIA MIG instance", None, None)


def test_without_a_driver_there_is_no_device_and_a_reason(machine):
    assert machine(NoDriverError("there is no driver")) == ([], "there is no driver")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"choice": ""}, "no NVIDIA GPU is visible under CUDA_VISIBLE_DEVICES=''"),
        ({"wheels": ()}, "CuPy is not installed. In a checkout of burn for Python: "),
    ],
)
def test_a_machine_on_which_nothing_runs_says_why(machine, options, words):
    devices, reason = machine(GPUS, **options)
    assert devices == []
    assert reason.startswith(words)
    assert "\n" not in reason


def test_a_driver_that_is_too_old_is_a_reason(machine):
    devices, reason = machine(GPUS, cuda=(12, 4))
    assert devices == []
    assert reason.startswith("the NVIDIA driver is too old: it runs CUDA 12.4, and cupy-cuda13x")
    devices, _ = machine(GPUS, cuda=(12, 4), wheels=("cupy-cuda12x",))
    assert len(devices) == 3


def test_a_driver_that_answers_nonsense_is_no_exception(machine):
    devices, reason = machine(AttributeError("no nvmlInit_v2"))
    assert devices == []
    assert reason == "the NVIDIA driver cannot be asked: AttributeError: no nvmlInit_v2"


def test_gpus_that_are_too_old_are_a_reason(machine):
    old = Gpu("Tesla K80", "GPU-0", GIB, (3, 7))
    devices, reason = machine([old])
    assert devices == []
    assert reason == "Tesla K80 is older than compute capability 5.0"
    devices, _ = machine([old, GPUS[0]])
    assert [(device.index, device.hardware) for device in devices] == [(0, "NVIDIA T4")]


def test_asking_for_a_gpu_raises_the_reason(machine, monkeypatch):
    _, reason = machine(GPUS, choice="")
    (spec,) = plugin.burn_backends()
    without = dataclasses.replace(spec, name="nowhere")
    with burn.registered(without) as entry:
        assert entry.state is State.NO_HARDWARE
        with pytest.raises(burn.DeviceUnavailableError) as caught:
            burn.Device("nowhere")
    assert reason in str(caught.value)


def test_the_real_driver_is_asked_without_an_exception():
    devices, reason = plugin._find_devices()
    assert bool(devices) != bool(reason)
    try:
        find_gpus()
    except NoDriverError:
        assert "driver" in reason


def test_the_compute_capability_determines_tensor_cores():
    assert DTypeUsage.ACCELERATED in usage_of((9, 0))[bfloat16]
    assert DTypeUsage.ACCELERATED in usage_of((7, 5))[float16]
    assert DTypeUsage.ACCELERATED not in usage_of((7, 5))[bfloat16]
    assert usage_of((6, 0))[bfloat16] is DTypeUsage.GENERAL
    assert DTypeUsage.ACCELERATED not in usage_of((9, 0))[float32]


def test_looking_for_devices_imports_neither_cupy_nor_the_backend():
    code = "import sys; from burn_cuda.plugin import _find_devices; _find_devices(); "
    code += "print(sorted({'cupy', 'numpy', 'burn_cuda.backend'} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def program(code, tmp_path, **environment):
    """The lines that a program prints on this machine."""
    given = {"PATH": "", "PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path), **environment}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=given
    )
    return result.stdout.splitlines()


HIDDEN = """
import sys, burn
print(burn.Device.enumerate("cuda"))
print(burn.Device.default().backend_name)
print(burn.ones(3).sum().item())
try:
    burn.Device("cuda")
except burn.DeviceUnavailableError as error:
    print(error)
print(sorted({"cupy", "torch", "burn_cuda.backend"} & set(sys.modules)))
"""


def test_the_default_falls_to_the_cpu_where_no_gpu_is_visible(tmp_path):
    devices, default, total, error, imported = program(
        HIDDEN, tmp_path, CUDA_VISIBLE_DEVICES="", BURN_PLUGINS="cpu,cuda"
    )
    assert (devices, default, total, imported) == ("[]", "cpu", "3.0", "[]")
    assert error.startswith("there is no device 'cuda'. cuda finds no hardware: ")


def test_an_array_library_that_is_asked_for_is_not_replaced_silently(tmp_path):
    code = "import burn\ntry: burn.ones(3)\nexcept burn.DeviceUnavailableError as e: print(e)"
    (error,) = program(code, tmp_path, CUDA_VISIBLE_DEVICES="", BURN_DEVICE="cuda")
    assert "there is no device 'cuda'" in error


OLD = """
import burn
from burn_cuda import plugin
from burn_nvidia import Gpu
plugin.find_gpus = lambda: ([Gpu("NVIDIA H200", "GPU-0", 1 << 37, (9, 0))], "525.60", (11, 4))
plugin.importlib.metadata.version = {"cupy-cuda13x": "14.2.0"}.__getitem__
plugin.importlib.metadata.PackageNotFoundError = KeyError
print(burn.Device.default().backend_name)
try:
    burn.Device("cuda")
except burn.DeviceUnavailableError as error:
    print(error)
"""


def test_a_driver_that_is_too_old_leaves_the_cpu(tmp_path):
    default, error = program(OLD, tmp_path, BURN_PLUGINS="cpu,cuda")
    assert default == "cpu"
    assert "the NVIDIA driver is too old: it runs CUDA 11.4, and cupy-cuda13x needs 13.0" in error
