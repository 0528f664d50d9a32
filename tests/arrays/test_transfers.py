"""Tensors between devices: the same values, the same memory where it can be, and gradients back."""

import contextlib
import gc
import itertools
import weakref

import numpy as np
import pytest

import burn
from burn.autodiff.graph import Node
from burn.backend.capsule import read_capsule
from burn.tensor_data import TensorData
from burn.testing import MockDevice, Selection, Subject, checks_of, mock_backend
from burn.testing.mocks import MockBackend
from burn.testing.suites.expectations import typical
from burn.testing.suites.memory import resident_bytes

PRESENT = burn.Device.enumerate()
SHARING = [
    device
    for device in PRESENT
    if device.ops.backend.share(TensorData(np.arange(3.0)), device.id) is not None
]
"""Devices that compute in memory of the host, whatever library it belongs to."""

OWN_MEMORY = 12
"""kDLExtDev: what DLPack calls memory of devices that it does not know."""


def in_a_ring(devices, every_pair):
    """Pairs of devices, as parameters: in the gate each device is a source and a target once."""
    ring = list(zip(devices, [*devices[1:], *devices[:1]], strict=True))
    return pytest.mark.parametrize(
        ("source", "target"),
        [
            pytest.param(*pair, marks=() if pair in ring else pytest.mark.exhaustive)
            for pair in every_pair
        ],
        ids=lambda device: device.name,
    )


pairs = in_a_ring(PRESENT, itertools.permutations(PRESENT, 2))
sharing_pairs = in_a_ring(SHARING, itertools.product(SHARING, SHARING))


@pytest.fixture
def mocks():
    """Devices of two backends with memory of their own: two share theirs, one does not."""
    near = [MockDevice("unit", dlpack=(OWN_MEMORY, 0)), MockDevice("unit", dlpack=(OWN_MEMORY, 1))]
    far = [
        MockDevice("unit", dlpack=(OWN_MEMORY, 0)),
        MockDevice("broken", dlpack=(OWN_MEMORY, 0), fault="the unit reports a memory fault"),
    ]
    with burn.registered(mock_backend("near", near)), burn.registered(mock_backend("far", far)):
        yield [burn.Device(name) for name in ("near:0", "near:1", "far/unit:0")]


def address(x):
    """Where the first element of a tensor is."""
    return read_capsule(x.__dlpack__(max_version=(1, 0))).address


# Between all devices: the kit compares values, layouts and gradients, and looks for interference.


def test_mock_devices_pass_the_checks_of_the_kit(mocks):
    for device in mocks:
        results = [
            check.run()
            for check in checks_of(
                Subject.of(device), Selection(suites=("transfers", "interchange"))
            )
        ]
        assert not [result.message for result in results if result.status.is_wrong]
        assert len(results) > 50


@pairs
def test_a_gradient_comes_back_through_two_moves(source, target):
    x = burn.asarray([0.5, -1.0], dtype="float32", device=source.autodiff()).require_grad()
    y = burn.sin(x.to_device(target.autodiff()) * 2)
    z = (y.to_device(source.autodiff()) * x).sum()
    gradient = x.grad(z.backward())
    values = np.array([0.5, -1.0])
    np.testing.assert_allclose(
        gradient.numpy(), np.sin(2 * values) + 2 * values * np.cos(2 * values), rtol=1e-5
    )
    assert gradient.device is source


@pairs
def test_a_move_has_a_second_derivative(source, target):
    def function(x):
        y = x.to_device(target)
        return (y * y * y).sum().to_device(source)

    hessian = burn.hessian(function)(burn.asarray([0.5, 2.0], device=source))
    assert hessian.device is source
    np.testing.assert_allclose(hessian.numpy(), [[3.0, 0.0], [0.0, 12.0]], rtol=1e-5)


@pairs
def test_a_gradient_comes_back_under_checkpointing(source, target):
    x = burn.ones(3, device=source.autodiff().gradient_checkpointing()).require_grad()
    y = burn.exp(x * 0.5).to_device(target.autodiff().gradient_checkpointing())
    z = burn.tanh(y).to_device(source.autodiff())
    slopes = x.grad(z.sum().backward()).numpy()
    expected = 0.5 * np.exp(0.5) / np.cosh(np.exp(0.5)) ** 2
    np.testing.assert_allclose(slopes, np.full(3, expected), rtol=1e-5)


@pairs
def test_settings_of_numpy_do_not_disturb_a_backward_pass(source, target):
    x = burn.asarray([0.0, 1.0], device=source.autodiff()).require_grad()
    y = burn.sqrt(x).to_device(target.autodiff())
    loss = burn.log(y).sum()
    with np.errstate(all="raise"):
        gradient = x.grad(loss.backward())
    assert gradient.tolist()[1] == 0.5
    assert not np.isfinite(gradient.tolist()[0])


# The same memory.


@sharing_pairs
def test_memory_of_the_host_is_shared(source, target):
    dtypes = [
        dtype
        for dtype in burn.DType.members()
        if source.supports_dtype(dtype) and target.supports_dtype(dtype)
    ]
    for dtype in dtypes:
        values = typical(dtype, 4, 6)
        x = burn.asarray(values, device=source)
        for view, expected in (
            (x, values),
            (x.T, values.T),
            (x[1:, ::2], values[1:, ::2]),
            (x[3, 5], values[3, 5]),
            (burn.broadcast_to(x[:1], (3, 6)), np.broadcast_to(values[:1], (3, 6))),
        ):
            there = view.to_device(target)
            assert there.device is target
            assert there.dtype is dtype
            assert address(there) == address(view), (dtype, view.shape)
            np.testing.assert_array_equal(there.numpy(), expected)
            assert np.shares_memory(there.numpy(), x.numpy())


@sharing_pairs
def test_what_a_library_has_no_strides_for_is_copied(source, target):
    x = burn.arange(6, device=source)[::-1].to_device(target)
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    assert (x + x).to_device(source).tolist() == [10, 8, 6, 4, 2, 0]


def test_devices_share_what_dlpack_calls_the_same_memory(mocks):
    first, second, third = mocks
    x = burn.asarray(np.arange(12.0).reshape(3, 4), device=first)
    there = x[:, ::2].to_device(third)
    assert np.shares_memory(there.primitive.values, x.primitive.values)
    assert there.tolist() == x[:, ::2].tolist()
    assert (there + 1).to_device(first).tolist() == (x[:, ::2] + 1).tolist()
    elsewhere = x.to_device(second)
    assert not np.shares_memory(elsewhere.primitive.values, x.primitive.values)
    assert elsewhere.tolist() == x.tolist()


@pytest.mark.parametrize("answer", ["none", "error", "other dtype"])
def test_what_a_backend_does_not_take_goes_through_the_host(mocks, monkeypatch, answer):
    def refuse(self, x, device):
        if answer == "error":
            raise RuntimeError("unsupported dtype")
        wrong = TensorData(np.zeros(3, np.int32))
        return None if answer == "none" else self.from_data(wrong, device)

    monkeypatch.setattr(MockBackend, "from_dlpack", refuse)
    x = burn.asarray([1.0, 2.0, 3.0], device=mocks[0])
    there = x.to_device(mocks[2])
    assert there.tolist() == [1.0, 2.0, 3.0]
    assert not np.shares_memory(there.primitive.values, x.primitive.values)


def test_a_backend_moves_tensors_between_its_own_devices(mocks, monkeypatch):
    moved = []

    def to_device(self, x, device):
        moved.append(device)
        return None if x.dtype is burn.int32 else self.from_data(self.to_data(x), device)

    def refuse(*operands):
        raise AssertionError("core did not ask for the backend's own way")

    monkeypatch.setattr(MockBackend, "to_device", to_device)
    near, sibling, far = mocks
    x = burn.asarray([1.0, 2.0], device=near.autodiff()).require_grad()
    with monkeypatch.context() as patch:
        patch.setattr(MockBackend, "staging", refuse)
        y = (x * 3.0).to_device(sibling.autodiff()) * 2.0
        gradient = x.grad(y.to_device(near.autodiff()).sum().backward())
    assert gradient.tolist() == [6.0, 6.0]
    assert moved == [sibling.id, near.id, sibling.id, near.id]
    assert burn.arange(3, dtype="int32", device=near).to_device(sibling).tolist() == [0, 1, 2]
    assert len(moved) == 5
    x.inner().to_device(far)  # of another backend, though its numbers are the same
    assert len(moved) == 5


def test_what_failed_on_a_device_shows_when_it_is_left(mocks):
    x = burn.ones(3, device="far/broken") * 2
    with pytest.raises(burn.ExecutionError, match="the unit reports a memory fault") as caught:
        x.to_device("far/unit")
    assert 'to_device(float32[3], "far/unit:0")' in str(caught.value)


def test_what_fails_while_a_tensor_moves_names_the_device():
    with burn.registered(mock_backend("tiny", [MockDevice(memory=100)])):
        x = burn.ones(100, device="cpu")
        with pytest.raises(
            burn.ExecutionError, match=r"to_device\(float32\[100\], \"tiny:0\"\): tiny"
        ):
            x.to_device("tiny")


# No longer and no shorter than needed.


@pairs
def test_memory_is_freed_with_the_last_tensor_in_it(source, target):
    x = burn.asarray(np.arange(50_000.0, dtype=np.float32), device=source) * 2
    there = x.to_device(target)
    watched = [weakref.ref(item) for item in (x, there)]
    with contextlib.suppress(TypeError):  # a primitive may be of a class that cannot be watched
        watched += [weakref.ref(item.primitive) for item in (x, there)]
    gc.collect()
    gc.disable()
    try:
        part = there[10:20]
        del x, there
        assert part.tolist() == [2.0 * number for number in range(10, 20)]
        del part
        assert [function() for function in watched] == [None] * len(watched)
    finally:
        gc.enable()


@sharing_pairs
def test_moving_again_and_again_needs_no_more_memory(source, target):
    def work(times):
        for _ in range(times):
            x = burn.asarray(np.ones((512, 512), np.float32), device=source)  # 1 MiB
            (x.to_device(target) * 2).to_device(source)[:1].numpy()

    work(20)
    before = resident_bytes()
    work(100)
    assert resident_bytes() - before < 40 << 20


@pairs
def test_a_graph_over_two_devices_is_freed(source, target):
    def nodes():
        return sum(issubclass(type(obj), Node) for obj in gc.get_objects())

    x = burn.ones(4, device=source.autodiff()).require_grad()
    gc.collect()
    gc.disable()
    try:
        before = nodes()
        y = burn.exp(x.to_device(target.autodiff()) * 2)
        assert nodes() == before + 3
        del y
        assert nodes() == before
        loss = burn.exp(x.to_device(target.autodiff())).sum()
        assert x.grad(loss.backward()) is not None
        del loss
        assert nodes() == before
    finally:
        gc.enable()


# Where it may go.


def test_a_tracked_tensor_goes_only_where_its_gradient_is_kept():
    with burn.registered(mock_backend("other", [MockDevice("unit")])):
        x = burn.ones(2, device=burn.Device("cpu").autodiff()).require_grad()
        with pytest.raises(burn.AutodiffError, match='"autodiff<other:0>"') as caught:
            (x * 2).to_device("other")
        assert ".inner()" in str(caught.value)
        assert x.inner().to_device("other").device is burn.Device("other")
        assert (x * 2).to_device(burn.Device("other").autodiff()).is_tracked


def test_a_device_without_the_dtype_is_told_before_anything_moves(mocks):
    with burn.registered(mock_backend("half", [MockDevice("unit", without=("float64",))])):
        x = burn.ones(2, dtype="float64", device="cpu")
        with pytest.raises(burn.DTypeError, match="half:0 has no float64"):
            x.to_device("half")
        with pytest.raises(burn.DTypeError, match="has no float64"):
            x.astype("float64", device="half")
        assert (
            burn.asarray(x, dtype="float32", device="cpu").to_device("half").dtype is burn.float32
        )


def test_numpy_reads_tensors_whose_memory_is_the_host_s(mocks):
    for device in SHARING:
        assert np.asarray(burn.arange(3, device=device)).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"\.numpy\(\)"):
        np.asarray(burn.arange(3, device=mocks[0]))
