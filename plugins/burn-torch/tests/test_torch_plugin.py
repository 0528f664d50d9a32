"""What burn-torch declares, and that looking for devices loads nothing of torch."""

import subprocess
import sys

import pytest

import burn
from burn.device_id import decode_type_id
from burn.dtype import DTypeUsage, bfloat16, float32
from burn.plugins import BackendSpec, registry
from burn_torch import driver, plugin
from burn_torch.driver import Gpu, visible
from burn_torch.plugin import burn_backends

GPUS = [Gpu(f"device {number}", 1 << 30, f"GPU-{number}{number}-f", "550") for number in range(3)]


def test_the_plugin_declares_the_types_of_devices_in_the_order_of_their_numbers():
    (spec,) = burn_backends()
    assert isinstance(spec, BackendSpec)
    assert spec.name == "torch"
    assert spec.device_types == ("cuda", "mps", "cpu", "vulkan", "xpu")
    assert spec.libraries == ("torch",)


def test_the_cpu_is_there_with_its_name_and_memory():
    (spec,) = burn_backends()
    (info,) = [one for one in spec.probe() if one.type == "cpu"]
    assert info.index == 0
    assert info.hardware
    assert info.memory is None or info.memory > 1 << 20
    assert DTypeUsage.GENERAL in info.usage[float32]


def test_the_spellings_of_the_cpu_are_one_device():
    device = burn.Device("torch/cpu:0")
    assert burn.Device("torch/cpu") is device
    assert decode_type_id(device.id.type_id)[1] in (2, device.id.type_id)
    names = [one.name for one in burn.Device.enumerate()]
    assert names.index("cpu:0") < names.index("torch/cpu:0")


def test_looking_for_devices_imports_no_torch():
    code = "import sys; from burn_torch.plugin import burn_backends as b; b()[0].probe(); "
    code += "print(sorted({'torch', 'numpy', 'burn_torch.backend'} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "torch" not in result.stdout


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        (" 2 , 0 ", [2, 0]),
        ("0,7,1", [0]),
        ("-1", []),
        ("0,-1,1", [0]),
        ("1,1", [1]),
        ("GPU-22", [2]),
        ("GPU-", []),
        ("nonsense", []),
    ],
)
def test_visible_devices_are_those_that_cuda_sees(setting, expected):
    assert visible(GPUS, setting) == [GPUS[number] for number in expected]


def test_a_part_of_a_device_counts_as_one():
    (found,) = visible(GPUS, "MIG-abc")
    assert found.uuid == "MIG-abc"
    assert not visible([], "MIG-abc")


class Nvml:
    """Two devices, of which the second refuses to be looked at."""

    def __init__(self, *, fails=False):
        self.fails = fails
        self.open = 0

    def nvmlInit_v2(self):  # noqa: N802 — NVIDIA's name
        self.open += 1
        return int(self.fails)

    def nvmlShutdown(self):  # noqa: N802 — likewise
        self.open -= 1

    def nvmlSystemGetDriverVersion(self, text, _):  # noqa: N802 — likewise
        text.value = b"550.54"

    def nvmlDeviceGetCount_v2(self, count):  # noqa: N802 — likewise
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):  # noqa: N802 — likewise
        handle._obj.value = index + 1
        return index

    def nvmlDeviceGetName(self, handle, text, _):  # noqa: N802 — likewise
        text.value = b"NVIDIA H200"

    def nvmlDeviceGetUUID(self, handle, text, _):  # noqa: N802 — likewise
        text.value = b"GPU-1"

    def nvmlDeviceGetMemoryInfo(self, handle, memory):  # noqa: N802 — likewise
        memory._obj.total = 1 << 37
        return 0


def test_the_driver_is_asked_for_names_and_memory_and_closed(monkeypatch):
    library = Nvml()
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: library)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert driver.nvidia() == [Gpu("NVIDIA H200", 1 << 37, "GPU-1", "NVIDIA 550.54")]
    assert library.open == 0


@pytest.mark.parametrize("error", [OSError("no such file"), AttributeError("too old")])
def test_without_a_driver_there_is_no_device_and_no_error(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr(driver.ctypes, "CDLL", fail)
    assert driver.nvidia() == []
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: Nvml(fails=True))
    assert driver.nvidia() == []


@pytest.mark.parametrize("name", ["libtorch_cuda.so", "torch_cuda.dll"])
def test_a_build_with_cuda_has_what_the_driver_lists(monkeypatch, tmp_path, name):
    monkeypatch.setattr(plugin, "_libraries", lambda: tmp_path)
    monkeypatch.setattr(plugin, "nvidia", lambda: GPUS)
    assert "cuda" not in {info.type for info in plugin._probe()}
    (tmp_path / name).touch()
    found = [info for info in plugin._probe() if info.type == "cuda"]
    assert [(info.index, info.hardware) for info in found] == list(
        enumerate(["device 0", "device 1", "device 2"])
    )
    assert {info.usage for info in found} == {None}  # only the loaded library tells


def test_without_torch_there_is_nothing(monkeypatch):
    monkeypatch.setattr(plugin, "_libraries", lambda: None)
    assert plugin._probe() == []


def test_what_is_not_there_is_counted_as_none():
    backend = registry.entry("torch").load()
    assert backend.device_count(2) == 1
    assert backend.device_count(3) == 0
    assert backend.device_count(77) == 0
    assert burn.Device("torch/cpu").supports_dtype(bfloat16)
