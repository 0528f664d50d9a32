"""What burn-torch declares, and that looking for devices loads nothing of torch."""

import subprocess
import sys

import pytest

import burn
from burn.plugin_api import (
    BackendSpec,
    DTypeUsage,
    bfloat16,
    decode_type_id,
    float32,
    registry,
)
from burn_nvidia import Gpu, NoDriverError
from burn_torch import plugin
from burn_torch.plugin import burn_backends

GPUS = [Gpu(f"device {number}", f"GPU-{number}", 1 << 30, (9, number)) for number in range(3)]


def test_the_plugin_declares_the_types_of_devices_in_the_order_of_their_numbers():
    (spec,) = burn_backends()
    assert isinstance(spec, BackendSpec)
    assert spec.name == "torch"
    assert spec.device_types == ("cuda", "mps", "cpu", "vulkan", "xpu")
    assert spec.libraries == ("torch",)


def test_the_cpu_is_there_with_its_name_and_memory():
    (spec,) = burn_backends()
    (info,) = [item for item in spec.probe() if item.type == "cpu"]
    assert info.index == 0
    assert info.hardware
    assert info.memory is None or info.memory > 1 << 20
    assert DTypeUsage.GENERAL in info.usage[float32]


def test_the_spellings_of_the_cpu_are_one_device():
    device = burn.Device("torch/cpu:0")
    assert burn.Device("torch/cpu") is device
    assert decode_type_id(device.id.type_id)[1] in (2, device.id.type_id)
    names = [device.name for device in burn.Device.enumerate()]
    assert names.index("cpu:0") < names.index("torch/cpu:0")


def test_looking_for_devices_imports_no_torch():
    code = "import sys; from burn_torch.plugin import burn_backends as b; b()[0].probe(); "
    code += "print(sorted({'torch', 'numpy', 'burn_torch.backend'} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "torch" not in result.stdout


@pytest.mark.parametrize("name", ["libtorch_cuda.so", "torch_cuda.dll"])
def test_a_build_with_cuda_has_what_the_driver_lists(monkeypatch, tmp_path, name):
    monkeypatch.setattr(plugin, "_libraries", lambda: tmp_path)
    monkeypatch.setattr(plugin, "find_gpus", lambda: (GPUS, "550.54", (12, 4)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert "cuda" not in {info.type for info in plugin._probe()}
    (tmp_path / name).touch()
    found = [info for info in plugin._probe() if info.type == "cuda"]
    # As in CUDA, and so in torch, the most capable one has the number 0.
    assert [(info.index, info.hardware) for info in found] == [(0, "device 2"), (1, "device 0")]
    assert {info.driver for info in found} == {"NVIDIA 550.54"}
    assert {info.usage for info in found} == {None}  # only the loaded library tells


@pytest.mark.parametrize("error", [NoDriverError("none"), AttributeError("too old")])
def test_without_a_driver_there_is_no_device_and_no_error(monkeypatch, tmp_path, error):
    def fail():
        raise error

    monkeypatch.setattr(plugin, "_libraries", lambda: tmp_path)
    monkeypatch.setattr(plugin, "find_gpus", fail)
    (tmp_path / "libtorch_cuda.so").touch()
    assert [info.type for info in plugin._probe() if info.type == "cuda"] == []


def test_without_torch_there_is_nothing(monkeypatch):
    monkeypatch.setattr(plugin, "_libraries", lambda: None)
    assert plugin._probe() == []


def test_what_is_not_there_is_counted_as_none():
    backend = registry.entry("torch").load()
    assert backend.device_count(2) == 1
    assert backend.device_count(3) == 0
    assert backend.device_count(77) == 0
    assert burn.Device("torch/cpu").supports_dtype(bfloat16)
