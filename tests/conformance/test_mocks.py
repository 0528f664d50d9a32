"""Mock devices: what burn does on hardware that lacks dtypes or memory, or fails."""

import dataclasses
import gc
import warnings
import weakref

import numpy as np
import pytest

import burn
from burn.backend import Backend
from burn.device_id import DeviceId
from burn.dtype import DType, float32, int32, int64
from burn.nn import functional as F
from burn.ops import Tag
from burn.plugins import State, registry
from burn.testing import (
    MOCK_DEVICES,
    SAMPLES,
    MockDevice,
    Subject,
    check_gradient_types,
    check_sample,
    hang,
    mock_backend,
)

BACKEND = mock_backend().load()


def subject(type_):
    types = list(dict.fromkeys(device.type for device in MOCK_DEVICES))
    return Subject(BACKEND, DeviceId(types.index(type_)))


WITHOUT_FLOAT64 = subject("no_float64")
WITHOUT_64_BIT = subject("no_64bit")

for_each_op = pytest.mark.together("samples", SAMPLES.values(), ids=SAMPLES.keys())


@pytest.fixture
def mock():
    """The mock backend with all its devices, registered for one test."""
    with burn.registered(mock_backend()):
        yield lambda type_: burn.Device(f"mock/{type_}")


@for_each_op
def test_an_op_needs_no_64_bit_type(samples, everything):
    for number, sample in enumerate(samples.samples):
        dtypes = WITHOUT_64_BIT.dtypes(samples, sample)
        for dtype in dtypes if everything else dtypes[number % 12 :: 12]:
            check_sample(WITHOUT_64_BIT, samples, sample, dtype)


@for_each_op
def test_an_op_of_float32_and_int64_needs_no_float64(samples, everything):
    for sample in samples.samples if everything else samples.samples[::8]:
        for dtype in WITHOUT_FLOAT64.dtypes(samples, sample):
            if dtype in (float32, int64):
                check_sample(WITHOUT_FLOAT64, samples, sample, dtype)


@pytest.mark.together(
    "samples",
    [item for item in SAMPLES.values() if Tag.UNTRACKED not in item.op.tags],
    ids=lambda item: item.op.name,
)
def test_a_gradient_of_float32_needs_no_64_bit_type(samples, everything):
    for sample in samples.samples if everything else samples.samples[:2]:
        if float32 in WITHOUT_64_BIT.dtypes(samples, sample):
            check_gradient_types(WITHOUT_64_BIT, samples, sample, float32)


def test_a_mock_backend_is_a_backend_and_has_the_devices_that_it_declares(mock):
    entry = registry.entry("mock")
    assert entry.state is State.READY
    assert isinstance(entry.load(), Backend)
    assert entry.state is State.LOADED
    listed = [(device.type, device.index) for device in burn.Device.enumerate("mock")]
    assert listed[:3] == [("plain", 0), ("plain", 1), ("no_float64", 0)]
    assert len(listed) == len(MOCK_DEVICES)
    for device in burn.Device.enumerate("mock"):
        backend = device.backend
        assert backend.device_count(device.id.type_id) == (2 if device.type == "plain" else 1)
        if device.type != "busy":
            usage = {dtype: device.dtype_usage(dtype) for dtype in DType.members()}
            assert device.info.usage == usage


def test_a_device_without_float64_computes_in_float32_and_refuses_float64(mock):
    device = mock("no_float64")
    x = burn.linspace(0.0, 1.0, 5, device=device)
    assert x.dtype is float32
    np.testing.assert_allclose(burn.exp(x).mean().item(), np.exp(np.linspace(0, 1, 5)).mean(), 1e-6)
    assert burn.arange(3, device=device).dtype is int64
    assert burn.mean(burn.arange(3, device=device)).dtype is float32
    assert burn.asarray([0.5], device=device).dtype is float32
    for call in (
        lambda: burn.zeros(2, dtype="float64", device=device),
        lambda: burn.asarray(np.zeros(2), device=device),
        lambda: x.astype("float64"),
        lambda: x.sum(dtype="float64"),
        lambda: burn.ones(2, dtype="float64", device="cpu").to_device(device),
        lambda: burn.random.uniform(2, dtype="float64", device=device),
        lambda: device.configure(float_dtype="float64"),
    ):
        with pytest.raises(burn.DTypeError) as caught:
            call()
        assert "float64" in str(caught.value)
        assert "float16, float32" in str(caught.value)  # the hint: what there is


def test_a_device_without_64_bit_types_counts_in_int32(mock):
    device = mock("no_64bit")
    assert device.settings == burn.DeviceSettings(float32, int32)
    x = burn.asarray([[3.0, 1.0, 3.0], [0.0, 2.0, 1.0]], device=device)
    mask = x > 1.0
    for result in (
        burn.asarray([1, 2], device=device),
        burn.arange(3, device=device),
        burn.full(2, 7, device=device),
        x.argmax(),
        burn.argmin(x, axis=0),
        burn.argsort(x),
        *burn.nonzero(x),
        burn.searchsorted(burn.asarray([1.0, 2.0], device=device), x),
        burn.count_nonzero(x),
        mask.sum(),
        burn.cumulative_sum(mask.astype("int32"), axis=0),
        burn.random.integers(3, 0, 9, device=device),
        burn.random.permutation(4, device=device),
        *burn.unique_all(x)[1:],
        burn.topk(x, 2)[1],
        mask + 1,
    ):
        assert result.dtype is int32, result
    assert burn.argsort(x, axis=1).tolist() == [[1, 0, 2], [0, 2, 1]]
    assert x[mask].tolist() == [3.0, 3.0, 2.0]
    assert x[burn.asarray([1, -1], device=device)].tolist() == [[0.0, 2.0, 1.0]] * 2
    info = burn.__array_namespace_info__()
    assert info.default_dtypes(device=device)["indexing"] is int32
    assert not {"int64", "uint64", "float64"} & set(info.dtypes(device=device))


def test_a_promotion_to_a_dtype_that_is_not_there_is_refused_by_name(mock):
    device = mock("no_64bit")
    x = burn.asarray([1], dtype="uint32", device=device)
    y = burn.asarray([1], dtype="int32", device=device)
    with pytest.raises(burn.DTypeError, match=r"add\(uint32\[1\], int32\[1\]\): .* has no int64"):
        x + y
    with pytest.raises(burn.ScalarRangeError, match="does not fit int32"):
        y + (1 << 31)
    assert (y + 0.5).dtype is float32
    assert (x.astype("int32") + y).tolist() == [2]


def test_training_on_a_device_without_64_bit_types_gives_what_it_gives_elsewhere(mock):
    losses = []
    for untracked in (mock("no_64bit"), mock("plain"), burn.Device("cpu")):
        device = untracked.autodiff()
        burn.random.seed(3, device=device)
        x = burn.random.normal((16, 3), device=device)
        target = burn.argmax(x, axis=1)
        weight = burn.zeros((3, 3), device=device).require_grad()
        for _ in range(20):
            loss = F.cross_entropy(x @ weight, target)
            gradient = burn.Tensor.from_inner(weight.grad(loss.backward()))
            weight = (weight - 0.5 * gradient).detach().require_grad()
        losses.append(loss.item())
    assert losses[0] < 0.5
    np.testing.assert_allclose(losses, losses[0], 1e-5)


def test_a_dtype_that_is_only_stored_is_moved_but_not_computed_with(mock):
    x = burn.asarray([1.5, 2.5], dtype="float16", device=mock("stores_float16"))
    assert x.astype("float32").tolist() == [1.5, 2.5]
    assert burn.flip(x).tolist() == [2.5, 1.5]
    assert burn.concat([x, x]).shape == (4,)
    assert not x.device.supports_dtype("float16")
    with pytest.raises(
        burn.DTypeError, match=r"stores float16 but does not compute with it\. Cast"
    ):
        x + x


def test_a_mock_refuses_what_a_decomposition_should_not_do():
    table = WITHOUT_64_BIT.table
    x = WITHOUT_64_BIT.upload(np.ones(3, np.float32))
    for wrong in (
        lambda: table.cast(x, dtype=int64),
        lambda: table.argmax(x, axis=0, dtype=int64),
        lambda: table.full(shape=(2,), fill_value=1, dtype=DType.of("float64")),
    ):
        with pytest.raises(burn.DTypeError, match="mock/no_64bit:0 does not have"):
            wrong()
    stores = subject("stores_float16")
    half = stores.upload(np.ones(3, np.float16))
    with pytest.raises(burn.DTypeError, match="does not compute with float16"):
        stores.table.exp(half)
    with pytest.raises(burn.ExecutionError, match="memory of another device"):
        table.add(x, subject("plain").upload(np.ones(3, np.float32)))


def test_devices_of_one_backend_do_not_mix(mock):
    x, y = (burn.ones(2, device=f"mock/plain:{index}") for index in (0, 1))
    with pytest.raises(burn.DeviceMismatchError, match="mock/plain:0 and on mock/plain:1"):
        x + y
    assert (x + y.to_device("mock/plain:0")).tolist() == [2.0, 2.0]


def refused(call):
    """Message and cause of the error of a call; what its traceback refers to can go."""
    try:
        call()
    except burn.ExecutionError as error:
        return str(error), type(error.__cause__)
    pytest.fail("it was not refused")


def test_memory_runs_out_after_some_bytes_and_comes_back(mock):
    device = mock("small")  # 4096 bytes
    x = burn.ones((2, 256), device=device)
    views = [x.T, x[0], burn.broadcast_to(x[0], (9, 256)), x.reshape((512,))]
    message, cause = refused(lambda: [x + 1.0 for _ in range(2)])
    assert message.startswith("add(float32[2, 256], 1.0): mock/small:0 has too little memory")
    assert "of 4096 are in use" in message
    assert cause is MemoryError
    for call in (
        lambda: burn.zeros(1 << 20, device=device),
        lambda: burn.asarray(np.zeros(1 << 20, np.float32), device=device),
        lambda: burn.zeros(1 << 20, device="cpu").to_device(device),
    ):
        message, cause = refused(call)
        assert "4194304 bytes do not fit" in message
        assert cause is MemoryError
    gc.collect()
    assert views[0].sum().item() == 512.0
    y = x + 1.0
    x = views = None  # their memory is free
    assert (y + 1.0)[0, 0].item() == 3.0


def test_what_was_queued_fails_at_the_next_sync_or_read_and_no_later(mock):
    device = mock("failing")
    x = burn.asarray([1.0, 2.0], device=device)
    assert x.tolist() == [1.0, 2.0]  # nothing was queued
    device.sync()
    y = x + 1.0
    with pytest.raises(burn.ExecutionError, match="reports a memory fault"):
        device.sync()
    device.sync()
    for read in (
        lambda: (x * 2.0).tolist(),
        lambda: float(x.sum()),
        lambda: str(burn.exp(x)),
        lambda: (x - 1.0).to_device("cpu"),
        lambda: burn.nonzero(x + 1.0),
    ):
        with pytest.raises(burn.ExecutionError, match="reports a memory fault"):
            read()
    leaf = burn.Tensor.from_inner(x).require_grad()
    gradients = (leaf * leaf).backward(burn.ones_like(leaf))
    with pytest.raises(burn.ExecutionError, match="memory fault"):
        leaf.grad(gradients).tolist()
    assert y.shape == (2,)


def test_a_device_that_is_busy_is_there_but_cannot_be_opened(mock):
    device = mock("busy")
    assert device in burn.Device.enumerate("mock")
    with pytest.raises(burn.DeviceUnavailableError, match="belongs to another process"):
        burn.ones(2, device=device)
    for question in (device.dtypes, lambda: device.supports_dtype("float32")):
        with pytest.raises(burn.DeviceUnavailableError, match="belongs to another process"):
            question()
    assert burn.ones(2, device=mock("plain")).tolist() == [1.0, 1.0]


def test_a_probe_that_hangs_is_given_up_and_another_one_is_tried_after_a_refresh(monkeypatch):
    monkeypatch.setenv("BURN_PROBE_SECONDS", "0.1")
    does_hang = [True]

    def perhaps():
        if does_hang[0]:
            hang()

    with burn.registered(mock_backend("stuck", on_probe=perhaps)) as entry:
        assert entry.state is State.FAILED
        with pytest.raises(burn.PluginError, match="does not answer"):
            burn.Device("stuck")
        does_hang[0] = False
        monkeypatch.delenv("BURN_PROBE_SECONDS")
        burn.refresh_plugins()
        assert entry.state is State.READY
        assert burn.ones(2, device="stuck").tolist() == [1.0, 1.0]


def test_a_backend_without_devices_has_no_hardware():
    with burn.registered(mock_backend("none", [])) as entry:
        assert entry.state is State.NO_HARDWARE
        with pytest.raises(burn.DeviceUnavailableError, match="none finds no hardware"):
            burn.Device("none")


def test_mock_devices_share_no_memory_with_arrays_and_change_no_settings(mock):
    values = np.array([1.0, 0.0], np.float32)
    x = burn.asarray(values, device=mock("plain"))
    values[:] = 7.0
    assert x.tolist() == [1.0, 0.0]
    with np.errstate(all="raise"):
        assert (1.0 / x).tolist() == [1.0, float("inf")]


def test_a_plugin_can_be_tried_with_devices_of_its_own_types():
    devices = [MockDevice("npu", without=("float64", "int64", "uint64"), memory=1 << 20)]
    with burn.registered(mock_backend("acme", devices, priority=9)):
        device = burn.Device("acme")
        assert device.name == "acme:0"
        assert device.info.memory == 1 << 20
        assert device.type == "npu"


def test_nothing_is_left_of_a_backend_when_another_gets_its_name():
    left = []
    for _ in range(2):
        with burn.registered(mock_backend("acme")):
            left.append(weakref.ref((burn.ones(2, device="acme") * 2.0).tensor_type))
    gc.collect()
    assert left[0]() is None


class FailingBackend(type(BACKEND)):
    """Its `add` and `exp` fail in the way of `failure`, and count their calls."""

    failure = None
    calls = 0

    def add(self, x1, x2):
        return self._fail()

    def exp(self, x):
        return self._fail()

    @classmethod
    def _fail(cls):
        cls.calls += 1
        if isinstance(cls.failure, Exception):
            raise cls.failure
        warnings.warn("from the library", cls.failure, stacklevel=1)


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("failed"),
        ValueError("failed"),
        KeyError("failed"),
        AttributeError("failed"),
        TypeError("failed"),
        MemoryError("failed"),
        UserWarning,
        DeprecationWarning,
        RuntimeWarning,
        FloatingPointError("failed"),
    ],
)
def test_an_op_that_fails_runs_once(failure, monkeypatch):
    monkeypatch.setattr(FailingBackend, "failure", failure)
    spec = mock_backend(devices=[MockDevice("plain")])
    spec = dataclasses.replace(spec, load=lambda: FailingBackend("mock", [MockDevice("plain")]))
    with burn.registered(spec), warnings.catch_warnings():
        warnings.simplefilter("error")
        device = burn.Device("mock")
        x = burn.asarray([1.0, 2.0], device=device)
        whole = burn.asarray([1, 2], device=device)
        leaf = burn.asarray([1.0, 2.0], device=device.autodiff()).require_grad()
        for call in (
            lambda: x + x,
            lambda: x + 1.0,
            lambda: x + whole,
            lambda: leaf + x,
            lambda: burn.exp(x),
            lambda: burn.exp(whole),
            lambda: burn.exp(leaf),
        ):
            for _ in range(2):  # once to resolve it, once resolved
                FailingBackend.calls = 0
                with pytest.raises(burn.BurnError, match=r"from the library|failed") as caught:
                    call()
                assert FailingBackend.calls == 1
                assert caught.value.__context__ in (None, caught.value.__cause__)
