"""Which device is the default, which ones there are, and what is configured of one."""

import asyncio
import dataclasses
import logging
import os
import threading

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn.plugins import DeviceInfo, describe
from burn.testing import MockDevice, mock_backend

CPU = burn.Device("cpu")


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    """No device is chosen, and the only accelerators are mocks."""
    for variable in ("BURN_DEVICE", "BURN_DEVICE_PRIORITY", "BURN_STRICT_PLUGINS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("BURN_DISABLE_PLUGINS", "cuda,opencl,torch")
    burn.refresh_plugins()
    yield
    burn.set_default_device(None)
    monkeypatch.undo()
    burn.refresh_plugins()


@pytest.fixture
def mock():
    """A backend of two types, with two devices of the first."""
    devices = [MockDevice("fast"), MockDevice("fast"), MockDevice("slow", without=("float64",))]
    with burn.registered(mock_backend("mock", devices)):
        yield burn.Device("mock")


def in_thread(function):
    """What a function returns in a thread of its own."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join(30)
    (result,) = results
    return result


def default():
    return burn.zeros(1).device.name


def test_each_way_to_choose_comes_before_the_next(mock, monkeypatch):
    assert default() == "cpu:0"
    monkeypatch.setenv("BURN_DEVICE_PRIORITY", "mock/slow")
    assert default() == "mock/slow:0"
    monkeypatch.setenv("BURN_DEVICE", "mock:1")
    assert default() == "mock/fast:1"
    burn.set_default_device("mock")
    assert default() == "mock/fast:0"
    with burn.default_device("strict"):
        assert default() == "strict:0"
        assert burn.zeros(1, device="cpu").device is CPU
    assert default() == "mock/fast:0"
    burn.set_default_device(None)
    assert default() == "mock/fast:1"


def test_without_an_argument_default_device_is_the_default_device(mock):
    assert burn.default_device() is CPU
    with burn.default_device(mock) as device:
        assert device is mock
        assert burn.default_device() is mock
        assert burn.Device.default() is mock
        assert burn.Device.preferred() is mock
        assert burn.__array_namespace_info__().default_device() is mock


def test_contexts_nest_and_end_with_errors(mock):
    class Stop(Exception):  # noqa: N818 — it is no error here
        pass

    context = burn.default_device("mock:1")
    with burn.default_device("mock"):
        with context, context:
            assert default() == "mock/fast:1"
        with pytest.raises(Stop), context:
            raise Stop
        assert default() == "mock/fast:0"
    assert default() == "cpu:0"


def test_a_default_may_have_autodiff(mock):
    with burn.default_device(mock.autodiff()):
        x = burn.ones(2).require_grad()
        assert x.grad((x * x).sum().backward()).tolist() == [2.0, 2.0]


def test_a_function_can_be_given_a_default(mock):
    @burn.default_device("mock:1")
    def compute(depth):
        return default() if depth == 0 else compute(depth - 1)

    assert compute(3) == "mock/fast:1"
    assert default() == "cpu:0"


def test_a_context_is_of_its_thread_and_the_default_of_the_process_of_all(mock):
    with burn.default_device("mock"):
        assert in_thread(default) == "cpu:0"
    burn.set_default_device("mock:1")
    assert in_thread(default) == "mock/fast:1"

    def leave_open():
        burn.default_device("mock").__enter__()
        return default()

    assert in_thread(leave_open) == "mock/fast:0"
    assert default() == "mock/fast:1"


def test_one_context_may_be_open_in_several_threads(mock):
    context = burn.default_device("mock:1")
    inside, leave = threading.Barrier(3, timeout=30), threading.Barrier(3, timeout=30)
    names = []

    def work():
        with context:
            inside.wait()
            names.append(default())
            leave.wait()
        names.append(default())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    assert default() == "cpu:0"
    leave.wait()
    for thread in threads:
        thread.join(30)
    assert sorted(names) == ["cpu:0", "cpu:0", "mock/fast:1", "mock/fast:1"]


def test_each_asyncio_task_has_its_own(mock):
    async def work(name):
        found = [default()]
        with burn.default_device(name):
            for _ in range(3):
                await asyncio.sleep(0)
                found.append(default())
        return [*found, default()]

    async def main():
        with burn.default_device("strict"):
            return await asyncio.gather(work("mock:0"), work("mock:1"), work("cpu"))

    for name, found in zip(
        ["mock/fast:0", "mock/fast:1", "cpu:0"], asyncio.run(main()), strict=True
    ):
        assert found == ["strict:0", name, name, name, "strict:0"]


@pytest.mark.parametrize("choose", [burn.default_device, burn.set_default_device])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nothing", burn.DeviceUnavailableError),
        ("cpu:9", burn.DeviceUnavailableError),
        ("", burn.ArgumentError),
        (3, burn.ArgumentError),
    ],
)
def test_what_is_no_device_cannot_be_chosen(choose, name, error):
    with pytest.raises(error):
        choose(name)
    assert default() == "cpu:0"


def test_a_device_that_the_environment_names_and_is_not_there_is_an_error(mock, monkeypatch):
    monkeypatch.setenv("BURN_DEVICE", "mock:7")
    for function in (burn.Device.default, burn.Device.preferred):
        with pytest.raises(burn.DeviceUnavailableError) as caught:
            function()
        message = str(caught.value)
        assert message.startswith("BURN_DEVICE=mock:7: there is no device 'mock:7'")
        assert "Devices that are there: cpu:0" in message
    monkeypatch.setenv("BURN_DEVICE", " cpu ")
    assert default() == "cpu:0"


def test_a_device_that_was_chosen_by_name_is_never_replaced(monkeypatch):
    def fail():
        raise OSError("libmock.so is missing")

    with burn.registered(mock_backend("mock", [MockDevice()], priority=1, on_load=fail)):
        monkeypatch.setenv("BURN_DEVICE", "mock")
        with pytest.raises(burn.PluginError, match=r"libmock\.so is missing"):
            default()
        monkeypatch.delenv("BURN_DEVICE")
        with (
            burn.default_device("cpu"),
            pytest.raises(burn.PluginError, match="mock"),
        ):
            burn.default_device("mock")
        assert default() == "cpu:0"


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        ("mock", ["mock/fast:0", "mock/fast:1", "mock/slow:0", "cpu:0"]),
        ("mock/slow,cpu", ["mock/slow:0", "cpu:0", "mock/fast:0", "mock/fast:1"]),
        ("mock/fast:1, cpu:0", ["mock/fast:1", "cpu:0", "mock/fast:0", "mock/slow:0"]),
        ("cuda,,nothing", ["cpu:0", "mock/fast:0", "mock/fast:1", "mock/slow:0"]),
    ],
)
def test_the_priority_takes_backends_types_and_devices(mock, monkeypatch, priority, expected):
    monkeypatch.setenv("BURN_DEVICE_PRIORITY", priority)
    others = ("cuda", "opencl", "pure", "strict", "torch")
    found = [device.name for device in burn.Device.enumerate() if device.backend_name not in others]
    assert found == expected
    assert default() == expected[0]


def test_a_better_device_that_is_registered_later_becomes_the_default():
    assert default() == "cpu:0"
    with burn.registered(mock_backend("mock", [MockDevice()], priority=1)):
        assert default() == "mock:0"
    assert default() == "cpu:0"


def test_a_device_that_cannot_be_opened_is_passed_over_and_recorded(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "burn")
    devices = [MockDevice(refusal="in use by another process"), MockDevice()]
    with burn.registered(mock_backend("mock", devices, priority=1)):
        assert default() == "mock:1"
        assert burn.Device.fallbacks() == ["mock:0: OSError: in use by another process"]
        assert "in use by another process" in caplog.text
        with pytest.raises(
            burn.DeviceUnavailableError, match="mock:0 cannot be opened: OSError: in use"
        ) as caught:
            burn.zeros(2, device="mock:0")
        assert isinstance(caught.value.__cause__, OSError)


def test_in_strict_mode_nothing_is_passed_over(monkeypatch):
    devices = [MockDevice(refusal="in use by another process")]
    with burn.registered(mock_backend("mock", devices, priority=1)):
        monkeypatch.setenv("BURN_STRICT_PLUGINS", "1")
        with pytest.raises(OSError, match="in use by another process"):
            default()


def test_backends_that_failed_and_would_have_been_better_are_recorded():
    def fail():
        raise OSError("no driver")

    with (
        burn.registered(mock_backend("better", priority=1, on_probe=fail)),
        burn.registered(mock_backend("worse", priority=-1, on_probe=fail)),
    ):
        assert default() == "cpu:0"
        assert burn.Device.fallbacks() == ["better: OSError: no driver"]


def test_where_nothing_works_the_error_says_why_and_what_to_install(monkeypatch):
    def fail():
        raise OSError("no driver")

    monkeypatch.setenv("BURN_PLUGINS", "none")
    burn.refresh_plugins()
    with burn.registered(mock_backend("broken", on_probe=fail)):
        for function in (burn.Device.default, burn.Device.preferred):
            with pytest.raises(burn.DeviceUnavailableError) as caught:
                function()
            message = str(caught.value)
            assert "burn-cpu" in message
            assert "BURN_PLUGINS=none keeps plugins out" in message
            assert "broken: OSError: no driver" in message
    refusing = [MockDevice(refusal="busy"), MockDevice(refusal="on fire")]
    with (
        burn.registered(mock_backend("mock", refusing)),
        pytest.raises(burn.DeviceUnavailableError, match=r"mock:0: OSError: busy; mock:1: .*fire"),
    ):
        burn.Device.default()


def test_devices_are_listed_by_backend_type_and_dtype(mock):
    def names(*args, **kwargs):
        return [index.name for index in burn.Device.enumerate(*args, **kwargs)]

    assert names("mock") == ["mock/fast:0", "mock/fast:1", "mock/slow:0"]
    assert names("mock/slow") == names(type="slow") == ["mock/slow:0"]
    assert names("mock", type="fast") == names("mock/fast")
    assert names("mock", dtype="float64") == ["mock/fast:0", "mock/fast:1"]
    assert names("mock", dtype=burn.bfloat16) == []
    assert names("cuda") == names("mock/none") == names("cpu/slow") == []
    assert set(names()) >= {"cpu:0", "strict:0", *names("mock")}
    with pytest.raises(burn.DTypeError, match="unknown dtype"):
        names(dtype="float31")
    assert names("mock/fast:1") == ["mock/fast:1"]
    assert names(["cpu", "mock/slow"]) == names({"mock/slow", "cpu"})
    assert set(names(["cpu", "mock/slow"])) == {"cpu:0", "mock/slow:0"}
    assert names("mock", type=("slow", "fast")) == names("mock")
    assert names(("mock", "cpu"), type={"slow"}, dtype=["bool", burn.float32]) == ["mock/slow:0"]
    assert names("mock", dtype=("float32", "float64")) == names("mock/fast")
    assert names([]) == names(type=()) == []
    assert names(dtype=[]) == names()
    assert (
        names("mock", dtype=burn.float64) == names("mock", dtype=np.float64) == names("mock/fast")
    )
    with pytest.raises(burn.DTypeError, match="unknown dtype 3"):
        names(dtype=3)
    for filters in ({"backend": 3}, {"type": [3]}):
        with pytest.raises(burn.OperandTypeError, match=r"Device\.enumerate: "):
            names(**filters)


def test_a_dtype_that_only_the_library_knows_is_asked_of_the_library():
    spec = mock_backend("mock", [MockDevice(without=("float64",)), MockDevice()])
    loads = []

    def load():
        loads.append(1)
        return spec.load()

    def probe():
        return [DeviceInfo(item.type, item.index, "a mock") for item in spec.probe()]

    with burn.registered(dataclasses.replace(spec, load=load, probe=probe)):
        assert [index.name for index in burn.Device.enumerate("mock")] == ["mock:0", "mock:1"]
        assert not loads
        found = burn.Device.enumerate("mock", dtype="float64")
        assert [item.name for item in found] == ["mock:1"]
        assert loads == [1]


def test_without_a_type_a_name_means_the_first_type_that_is_there(mock):
    assert burn.Device("mock") is burn.Device("mock/fast:0")
    assert burn.Device("mock:1") is burn.Device("mock/fast:1")
    with pytest.raises(burn.DeviceUnavailableError, match="mock has mock/fast:0, mock/fast:1, "):
        burn.Device("mock:2")
    devices = [MockDevice("cpu"), MockDevice("cpu")]
    with burn.registered(mock_backend("other", devices)):
        assert burn.Device("other:1").type == "cpu"


def test_a_handle_stays_the_one_of_its_device_when_plugins_are_looked_for_again(mock):
    handles = [CPU, mock, mock.autodiff()]
    burn.refresh_plugins()
    assert [burn.Device("cpu"), burn.Device("mock"), burn.Device("mock").autodiff()] == handles
    assert burn.Device("cpu") is CPU
    assert burn.Device("mock") is mock
    assert burn.Device("mock").autodiff() is handles[2]
    assert (burn.ones(2, device=mock) + burn.ones(2, device="mock")).tolist() == [2.0, 2.0]


def test_tensors_outlive_the_registration_of_their_backend():
    with burn.registered(mock_backend("mock", [MockDevice()])):
        x = burn.ones(2, device="mock")
        device = x.device
    assert (x + x).tolist() == [2.0, 2.0]
    with burn.registered(mock_backend("mock", [MockDevice()])):
        other = burn.ones(2, device="mock")
        assert other.device is not device
        with pytest.raises(burn.DeviceMismatchError):
            x + other


def test_settings_can_be_chosen_until_the_first_tensor_in_any_form():
    makers = [
        lambda device: burn.zeros(1, device=device),
        lambda device: burn.asarray([True], device=device),
        lambda device: burn.zeros(1, device=device.autodiff()),
        lambda device: burn.zeros(1, device=device.autodiff().gradient_checkpointing()),
        lambda device: burn.random.uniform(2, device=device),
        lambda device: burn.ones(1, device="cpu").to_device(device),
    ]
    for make in makers:
        with burn.registered(mock_backend("mock", [MockDevice()])):
            device = burn.Device("mock")
            device.configure(float_dtype="float64")
            device.configure(int_dtype="int32")
            device.autodiff().configure(float_dtype="float16")
            assert device.settings == burn.DeviceSettings(burn.float16, burn.int32)
            make(device)
            with pytest.raises(burn.ArgumentError, match="mock:0 is in use"):
                device.configure(float_dtype="float32")
            with pytest.raises(burn.ArgumentError, match="in use"):
                device.autodiff().configure(int_dtype="int64")
            device.configure(float_dtype="float16", int_dtype="int32")  # nothing changes
            assert device.settings == burn.DeviceSettings(burn.float16, burn.int32)


def test_settings_are_of_one_device():
    with burn.registered(mock_backend("mock", [MockDevice(), MockDevice()])):
        burn.Device("mock:0").configure(float_dtype="float64")
        assert burn.zeros(1, device="mock:0").dtype is burn.float64
        assert burn.zeros(1, device="mock:1").dtype is burn.float32


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"float_dtype": "float64"}, "does not support float64. mock/no_float64:0 computes with"),
        ({"float_dtype": "int32"}, "float_dtype cannot be int32"),
        ({"int_dtype": "uint8"}, "int_dtype cannot be uint8"),
        ({"int_dtype": "bool"}, "int_dtype cannot be bool"),
        ({"complex_dtype": "float32"}, "complex_dtype cannot be float32"),
        ({"complex_dtype": "complex64"}, "computes with none of this kind"),
        ({"int_dtype": "int31"}, "unknown dtype"),
        ({"float_dtype": 32}, "dtype"),
    ],
)
def test_a_setting_must_be_of_its_kind_and_supported(choice, message):
    with burn.registered(mock_backend("mock")):
        device = burn.Device("mock/no_float64")
        before = device.settings
        with pytest.raises(burn.BurnError) as caught:
            device.configure(**{"int_dtype": "int32", **choice})
        assert message in str(caught.value)
        assert device.settings == before


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")


def in_fork(function):
    """What a function returns, or raises, in a forked process; it must not take long."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                text = str(function())
            except BaseException as error:  # noqa: BLE001 — it is what is looked at
                text = f"{type(error).__name__} {describe(error)}"
            os.write(writing, text.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # that is what is tried here
def test_a_device_that_was_opened_before_a_fork_is_refused_after_it():
    with burn.registered(mock_backend("mock", [MockDevice(), MockDevice()], fork_safe=False)):
        device = burn.Device("mock")
        x = burn.asarray([1.0, 2.0], device=device.autodiff()).require_grad()
        y = (burn.tanh(x) * x).sum()
        plain = x.inner()
        many = burn.stack([plain, plain])
        (plain + plain, F.softmax(plain, axis=0), many.sum(axis=0))
        burn.set_default_device(device)
        for use in (
            lambda: x + x,
            lambda: plain + 1,
            lambda: 2.0 * plain,
            lambda: F.softmax(plain, axis=0),
            lambda: burn.stack([plain, plain]),
            lambda: many.sum(axis=0),
            lambda: y.backward(),
            lambda: plain.tolist(),
            lambda: str(plain),
            lambda: burn.zeros(3),
            lambda: burn.zeros(3, device=device),
            lambda: burn.zeros(3, device="mock:1"),
            lambda: burn.asarray([1.0], device=device),
            lambda: burn.random.uniform(3, device=device),
            lambda: plain.to_device("cpu"),
            lambda: device.sync(),
            lambda: device.dtype_usage("float32"),
            lambda: device.memory_cleanup(),
        ):
            text = in_fork(use)
            assert text.startswith("DeviceUnavailableError "), text
            assert f"was loaded in process {os.getpid()}" in text
            assert 'get_context("spawn")' in text
        assert in_fork(lambda: (burn.ones(2, device="cpu") + 1).tolist()) == "[2.0, 2.0]"
        assert (plain + plain).tolist() == [2.0, 4.0]
        assert y.backward() is not None


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_device_that_survives_a_fork_or_was_not_loaded_before_works_after_it():
    def work():
        x = burn.asarray([1.0, 2.0], device=burn.Device("mock").autodiff()).require_grad()
        return x.grad((x * x).sum().backward()).tolist()

    with burn.registered(mock_backend("mock", [MockDevice()], fork_safe=False)):
        assert burn.Device("mock").name == "mock:0"
        assert in_fork(work) == "[2.0, 4.0]"
    with burn.registered(mock_backend("mock", [MockDevice()])):
        assert work() == [2.0, 4.0]
        assert in_fork(work) == "[2.0, 4.0]"
        assert in_fork(lambda: in_fork(work)) == "[2.0, 4.0]"


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_load_or_a_probe_leaves_the_child_free():
    ready, go = threading.Barrier(2, timeout=30), threading.Event()

    def wait():
        if threading.current_thread().name != "MainThread":
            ready.wait()
            go.wait(30)

    with burn.registered(mock_backend("mock", [MockDevice()], on_load=wait)):
        device = burn.Device("mock")
        thread = threading.Thread(target=lambda: burn.zeros(2, device=device))
        thread.start()
        ready.wait()
        try:
            assert in_fork(lambda: burn.ones(2, device="mock").tolist()) == "[1.0, 1.0]"
        finally:
            go.set()
            thread.join(30)
