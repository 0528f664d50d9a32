"""Devices: spelling, identity, selection, settings."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import burn
from burn.device_id import DeviceId
from burn.functions.common import dispatch
from burn.plugins import BackendSpec, DeviceInfo, registry
from burn.tensor_data import TensorData
from burn.testing import NumpyBackend


def run(code, **environment):
    """Run Python code in a process with other environment variables."""
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("spelling", ["cpu", "cpu:0", "cpu/cpu", "cpu/cpu:0"])
def test_every_spelling_gives_the_same_handle(spelling):
    assert burn.Device(spelling) is burn.Device("cpu")
    assert burn.Device(burn.Device(spelling)) is burn.Device("cpu")


@pytest.mark.parametrize("spelling", ["", ":0", "cpu:", "cpu:x", "cpu/", "cpu:-1", "cpu::0"])
def test_what_is_no_device_name_is_refused(spelling):
    with pytest.raises(burn.ArgumentError, match="no device name"):
        burn.Device(spelling)


def test_a_device_that_is_not_there_says_what_there_is():
    with pytest.raises(burn.DeviceUnavailableError, match="cpu has cpu:0"):
        burn.Device("cpu:7")
    with pytest.raises(burn.DeviceUnavailableError, match="It has cpu"):
        burn.Device("cpu/gpu")


def test_an_autodiff_device_equals_its_hardware_but_is_another_handle():
    cpu = burn.Device("cpu")
    tracked = cpu.autodiff()
    assert tracked == cpu
    assert hash(tracked) == hash(cpu)
    assert tracked is not cpu
    assert tracked is cpu.autodiff()
    assert tracked.inner() is cpu
    assert tracked.is_autodiff
    assert not cpu.is_autodiff
    assert str(tracked) == "autodiff<cpu:0>"


def test_autodiff_is_first_order():
    with pytest.raises(burn.ArgumentError, match="first order"):
        burn.Device("cpu").autodiff().autodiff()


def test_a_device_survives_pickling_as_the_same_handle():
    for device in (burn.Device("cpu"), burn.Device("cpu").autodiff()):
        assert pickle.loads(pickle.dumps(device)) is device


def test_dispatch_is_a_backend():
    cpu = burn.Device("cpu")
    assert dispatch.name(cpu) == "dispatch<cpu>"
    assert dispatch.name(cpu.autodiff()) == "dispatch<autodiff<cpu>>"
    assert not dispatch.ad_enabled(cpu)
    assert dispatch.ad_enabled(cpu.autodiff())
    assert dispatch.supports_dtype(cpu, burn.float32)
    assert burn.DTypeUsage.ARITHMETIC in dispatch.dtype_usage(cpu, burn.bfloat16)
    dispatch.sync(cpu)
    dispatch.memory_cleanup(cpu)
    assert dispatch.device(DeviceId(0x0000, 0)) is cpu


def test_host_data_is_staged_and_memory_that_lives_long_is_announced_by_the_backend(extra_backend):
    class Announced(NumpyBackend):
        def staging(self, data, device):
            return TensorData(data.array + device.index_id)

        def memory_persistent_allocations(self, device, input, func):
            return device, func(input)

    probe = [DeviceInfo("unit", index, "a mock") for index in range(2)]
    extra_backend("announced", load=Announced, probe=lambda: probe)
    for device in (burn.Device("announced:1"), burn.Device("announced:1").autodiff()):
        assert device.staging(TensorData(np.zeros(2))).array.tolist() == [1.0, 1.0]
        found = device.memory_persistent_allocations(lambda number: number + 1, 2)
        assert found == (device.id, 3)


def test_device_count_decodes_the_type_id():
    assert dispatch.device_count(0x0000) == 1
    assert dispatch.device_count(0x0001) == 0  # a type that burn-cpu does not have
    assert dispatch.device_count(0x7F00) == 0  # a backend that is not installed
    with pytest.raises(burn.ArgumentError, match="16 bits"):
        dispatch.device_count(1 << 16)


def test_the_default_device_is_forced_by_the_environment():
    code = "import burn; print(burn.Device.default())"
    assert run(code, BURN_DEVICE="cpu:0").stdout.strip() == "cpu:0"
    absent = run(code, BURN_DEVICE="cuda:1", BURN_PLUGINS="cpu")
    assert absent.returncode != 0
    assert "BURN_DEVICE=cuda:1" in absent.stderr
    assert "burn-cuda" in absent.stderr


def test_without_a_plugin_the_default_says_what_to_install():
    result = run("import burn; burn.Device.default()", BURN_PLUGINS="none", BURN_DEVICE="")
    assert "DeviceUnavailableError" in result.stderr
    assert "burn-cpu" in result.stderr


@pytest.fixture
def extra_backend(monkeypatch):
    """Register backends for one test."""
    monkeypatch.delenv("BURN_DEVICE_PRIORITY", raising=False)
    names = []

    def register(name, **fields):
        fields = {
            "load": type(registry.entry("cpu").load()),
            "probe": lambda: [DeviceInfo("unit", 0, "a mock")],
            "device_types": ("unit",),
        } | fields
        registry.register(BackendSpec(name=name, **fields))
        names.append(name)

    yield register
    for name in names:
        registry.unregister(name)


def listed():
    """Names of all devices in order, without those of plugins that are not always installed."""
    others = ("cuda", "opencl", "pure", "strict", "torch")
    return [device.name for device in burn.Device.enumerate() if device.backend_name not in others]


def test_a_third_party_accelerator_comes_before_the_cpu_and_others_after(extra_backend):
    extra_backend("slow", priority=0)
    extra_backend("fast", priority=5)
    extra_backend("faster", priority=9)
    assert listed() == [
        "faster:0",
        "fast:0",
        "cpu:0",
        "slow:0",
    ]


def test_each_type_of_device_has_its_own_priority(extra_backend):
    def probe():
        return [DeviceInfo(name, 0, "a mock") for name in ("gpu", "cpu", "npu")]

    types = ("gpu", "cpu", "npu")
    extra_backend("many", priority={"gpu": 5, "npu": -1}, device_types=types, probe=probe)
    extra_backend("other", priority=3)
    assert listed() == ["many/gpu:0", "other:0", "cpu:0", "many/cpu:0", "many/npu:0"]


@pytest.mark.parametrize("priority", ["high", {"gpu": 1}, {"unit": "high"}, {"unit": True}, True])
def test_a_backend_whose_priority_makes_no_sense_is_no_default(extra_backend, priority):
    extra_backend("fine", priority=1)
    with pytest.raises(burn.PluginError, match="It must be an integer, or a mapping of its device"):
        extra_backend("wrong", priority=priority)


def test_the_order_is_changed_by_the_environment(extra_backend, monkeypatch):
    extra_backend("fast", priority=5)
    monkeypatch.setenv("BURN_DEVICE_PRIORITY", "cpu, fast")
    assert listed() == ["cpu:0", "fast:0"]


def test_a_backend_that_fails_to_load_is_passed_over_and_recorded(extra_backend, monkeypatch):
    def load():
        raise OSError("libfast.so is missing")

    monkeypatch.delenv("BURN_DEVICE", raising=False)
    extra_backend("fast", priority=5, load=load)
    assert burn.Device.default() is burn.Device("cpu")
    assert burn.Device.fallbacks() == ["fast:0: OSError: libfast.so is missing"]
    with pytest.raises(burn.PluginError, match=r"libfast\.so is missing"):
        burn.ones(2, device="fast")


def test_default_dtypes_are_configured_once_before_first_use(extra_backend):
    extra_backend("fresh")
    device = burn.Device("fresh")
    device.configure(float_dtype="float64", int_dtype=burn.int32)
    assert burn.zeros(2, device=device).dtype is burn.float64
    assert burn.arange(2, device=device).dtype is burn.int32
    assert burn.zeros(2, device=device.autodiff()).dtype is burn.float64
    with pytest.raises(burn.ArgumentError, match="in use"):
        device.configure(float_dtype="float32")


def without(*denied):
    """Loader of a backend like that of the CPU, which has not these dtypes."""

    class Narrow(type(registry.entry("cpu").load())):
        def dtype_usage(self, device, dtype):
            return burn.DTypeUsage(0) if dtype in denied else super().dtype_usage(device, dtype)

    return Narrow


def test_a_default_dtype_must_be_of_its_kind_and_supported(extra_backend):
    extra_backend("other", load=without(burn.complex128))
    device = burn.Device("other")
    with pytest.raises(burn.DTypeError, match="float_dtype cannot be int64"):
        device.configure(float_dtype="int64")
    with pytest.raises(burn.DTypeError, match="does not support"):
        device.configure(complex_dtype="complex128")


def test_a_dtype_that_the_device_cannot_store_is_refused(extra_backend):
    extra_backend("half", load=without(burn.float64, burn.int64))
    x = burn.ones(2, device="half")
    for call in (
        lambda: burn.zeros(2, dtype="float64", device="half"),
        lambda: x.astype("float64"),
        lambda: burn.ones(2, dtype="float64", device="cpu").to_device("half"),
    ):
        with pytest.raises(burn.DTypeError, match="half:0 has no float64"):
            call()
    assert burn.arange(2, device="half").dtype is burn.int32
    assert x.argmax().dtype is burn.int32


def test_a_device_that_only_stores_a_dtype_refuses_arithmetic(extra_backend):
    class Stores(type(registry.entry("cpu").load())):
        def dtype_usage(self, device, dtype):
            usage = super().dtype_usage(device, dtype)
            return burn.DTypeUsage.STORAGE if dtype is burn.float16 else usage

    extra_backend("stores", load=Stores)
    x = burn.ones(2, dtype="float16", device="stores")
    assert x.astype("float32").tolist() == [1.0, 1.0]
    assert x[:1].tolist() == [1.0]
    for function in (lambda: x + x, lambda: burn.exp(x), lambda: x.sum(), lambda: 2 * x):
        with pytest.raises(burn.DTypeError, match="does not compute with it"):
            function()
