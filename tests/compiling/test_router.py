"""A router runs the ops of a program as operations, with the bits and the errors of the device."""

import copy
import gc
import multiprocessing
import pickle
import threading
import types
import warnings

import numpy as np
import pytest

import burn
from burn.backend import Backend
from burn.device_id import DeviceId
from burn.dispatch import Dispatch
from burn.nn import functional as F
from burn.ops import REGISTRY, observing
from burn.plugins import registry
from burn.router import (
    ForwardingChannel,
    ForwardingClient,
    InProcessChannel,
    MultiBackendBridge,
    RouterBackend,
    RouterTensor,
)
from burn.testing import mock_backend
from gate import EXAMPLES
from pipe_channel import PipeChannel
from routed_devices import routed

INNER = [device.name for device in burn.Device.enumerate() if device.backend_name != "cuda"]
"""Devices that a router runs operations on here."""

each_inner = pytest.mark.parametrize("inner", INNER)
forks = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here"
)


def router():
    """The router of this process."""
    return burn.Device("router/cpu").backend


def handles(device="router/cpu"):
    """What the backend has for the tensors of a device."""
    device = burn.Device(device)
    return device.backend.get_client(device.id).handles


class ListingClient(ForwardingClient):
    """Lists what it forwards."""

    def __init__(self, inner, calls):
        super().__init__(inner)
        self.calls = calls

    def register(self, operation):
        self.calls.append(operation)
        super().register(operation)

    def shapes(self, tensors):
        self.calls.append(("shapes", len(tensors)))
        return super().shapes(tensors)

    def read_all(self, tensors):
        self.calls.append(("read_all", len(tensors)))
        return super().read_all(tensors)


class ListingChannel(ForwardingChannel):
    """Lists what its clients forward."""

    def __init__(self, inner):
        super().__init__(inner)
        self.calls = []

    def wrap_client(self, client):
        return ListingClient(client, self.calls)


class OneDevice:
    """Installed devices, each under the number of its position."""

    def __init__(self, *names):
        self.names = names

    def find(self, device):
        return burn.Device(self.names[device.index_id])

    def count(self, type_id):
        return len(self.names) if type_id == 0 else 0

    def move(self, dtype, source, target, primitive):
        data = source.backend.to_data(primitive)
        return target.backend.from_data(data, target.id)

    def fail(self, device, error, operation):
        raise burn.ExecutionError(f"{device.name}: {error!r}", operation=operation) from error


@pytest.fixture
def listing():
    """The calls of a device ``listing``."""
    channel = ListingChannel(InProcessChannel("listing", OneDevice("cpu")))
    with routed("listing", channel):
        yield channel.calls


@pytest.fixture(scope="module")
def pipe():
    """A channel to two processes, whose devices are ``pipe:0`` and ``pipe:1``."""
    channel = PipeChannel("cpu", "cpu")
    with routed("pipe", channel, count=2):
        yield channel
    channel.close()


def train(device, steps=3):
    """Weights and losses of a small network after some steps of Adam."""
    generator = np.random.default_rng(3)
    tracked = burn.Device(device).autodiff()
    burn.random.seed(5, device=device)
    shapes = [(6, 8), (8,), (8, 3), (3,)]
    parameters = [
        burn.asarray(generator.normal(size=shape).astype(np.float32), device=tracked).require_grad()
        for shape in shapes
    ]
    moments = [(burn.zeros_like(p.inner()), burn.zeros_like(p.inner())) for p in parameters]
    losses = []
    for step in range(1, steps + 1):
        w1, b1, w2, b2 = parameters
        x = burn.random.normal((5, 6), device=device)
        y = burn.asarray(generator.integers(0, 3, 5), device=device)
        mask = burn.random.bernoulli((5, 8), 0.75, device=device)
        hidden = F.gelu(x @ w1 + b1) * mask
        loss = F.cross_entropy(F.layer_norm(hidden @ w2 + b2), y)
        gradients = loss.backward()
        losses.append(float(loss))
        for index, parameter in enumerate(parameters):
            moved, *moments[index] = burn.optim.adam_step(
                parameter.inner(), parameter.grad(gradients), *moments[index], step=step
            )
            parameters[index] = moved.to_device(tracked).require_grad()
    return [parameter.inner().numpy() for parameter in parameters], losses


def assert_near(found, expected):
    (weights, losses), (other_weights, other_losses) = found, expected
    np.testing.assert_allclose(losses, other_losses, rtol=1e-5)
    for item, other in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(item, other, rtol=1e-5, atol=1e-6)


# Devices.


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("router/cpu", "router/cpu:0"),
        ("router/cpu:0", "router/cpu:0"),
        ("router/torch/cpu", "router/torch/cpu:0"),
        ("router/opencl", str(burn.Device("opencl")).join(["router/", ""])),
        ("router/router/cpu", "router/router/cpu:0"),
        ("autodiff<router/cpu:0>", "autodiff<router/cpu:0>"),
        (
            "autodiff<router/torch/cpu, checkpointing>",
            "autodiff<router/torch/cpu:0, checkpointing>",
        ),
    ],
)
def test_every_spelling_gives_the_device_of_its_name(spelling, name):
    device = burn.Device(spelling)
    assert str(device) == name
    assert burn.Device(name) is device
    assert pickle.loads(pickle.dumps(device)) is device
    assert burn.arange(3, device=device).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("spelling", "error", "message"),
    [
        ("router/nonsense", burn.DeviceUnavailableError, "no backend 'nonsense'"),
        ("router/cpu:7", burn.DeviceUnavailableError, "no device 'cpu:7'. cpu has cpu:0"),
        ("router/cpu/gpu", burn.DeviceUnavailableError, "no devices of type 'gpu'"),
        ("router", burn.ArgumentError, "Write router/cpu"),
        ("router/", burn.ArgumentError, "no device name"),
        ("router/cpu:x", burn.ArgumentError, "no device name"),
        ("router/autodiff<cpu>", burn.ArgumentError, "Write autodiff<router/cpu:0>"),
        ("router/metal", burn.DeviceUnavailableError, "metal"),
    ],
)
def test_a_spelling_of_no_device_says_what_is_wrong(spelling, error, message):
    with pytest.raises(error) as raised:
        burn.Device(spelling)
    assert message in str(raised.value)


def test_a_router_is_found_by_its_name_alone():
    burn.Device("router/cpu")
    assert "router" not in registry.entries
    assert "router" not in registry.probe()
    assert not [device for device in burn.Device.enumerate() if device.backend_name == "router"]
    assert burn.Device.default().backend_name != "router"


def test_no_plugin_takes_the_name_of_the_router():
    with pytest.raises(burn.PluginError, match="is there already, from burn-core"):
        burn.register_backend(mock_backend("router"))


def test_a_routed_device_has_a_number_and_what_is_known_of_the_hardware():
    device, inner = burn.Device("router/cpu"), burn.Device("cpu")
    dispatch = Dispatch(burn.Tensor)
    assert device.dispatch_id.type_id >> 8 == 13
    assert dispatch.device(device.dispatch_id) is device
    assert dispatch.device_count(device.dispatch_id.type_id) == 1
    assert dispatch.device_count(13 << 8 | 200) == 0
    assert dispatch.name(device) == "dispatch<router>"
    assert (device.type, device.index) == ("cpu", 0)
    assert device.info.hardware == inner.info.hardware
    assert device.info.memory == inner.info.memory
    assert [device.dtype_usage(dtype) for dtype in burn.DType.members()] == [
        inner.dtype_usage(dtype) for dtype in burn.DType.members()
    ]


def test_routed_devices_of_two_backends_differ_in_their_numbers():
    first, second = burn.Device("router/cpu"), burn.Device("router/torch/cpu")
    assert first.backend is second.backend
    assert first.id != second.id
    assert first != second
    with pytest.raises(burn.DeviceMismatchError, match=r'to_device\("router/cpu:0"\)'):
        burn.ones(2, device=first) + burn.ones(2, device=second)


# The backend.


def test_a_router_is_a_backend_with_every_op():
    backend, device = router(), burn.Device("router/cpu").id
    assert isinstance(backend, Backend)
    assert backend.native_dtype(burn.float32) is burn.float32
    assert backend.for_device(device) is backend.for_device(device)
    assert backend.get_client(device) is backend.get_client(device)
    x = backend.full(shape=(2, 2), fill_value=3.0, dtype=burn.float32, device=device)
    assert isinstance(x, RouterTensor)
    assert (x.shape, x.dtype, x.client) == ((2, 2), burn.float32, backend.get_client(device))
    assert backend.to_data(backend.matmul(x, x)).array.tolist() == [[18.0, 18.0], [18.0, 18.0]]
    assert backend.to_data(backend.softmax(x, axis=0)).array.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert backend.concat([x, x], axis=1).shape == (2, 4)
    for name in REGISTRY:
        assert callable(getattr(backend, name))
    with pytest.raises(AttributeError, match="no op 'nonsense'"):
        backend.nonsense  # noqa: B018 — looking is what raises
    with pytest.raises(burn.errors.OperandTypeError, match="no operand is a tensor"):
        backend.add(1.0, 2.0)


def test_a_primitive_of_a_router_becomes_a_tensor():
    x = burn.arange(3, device="router/cpu")
    again = burn.Tensor.from_primitive(x.primitive, x.device)
    assert again.device is x.device
    assert again.tolist() == [0, 1, 2]
    assert router().device_of(object()) is None


def test_a_seed_reaches_the_device_that_runs_operations():
    router().seed(burn.Device("router/cpu").id, 11)
    expected = burn.random.uniform(4, device="router/cpu").tolist()
    burn.Device("cpu").backend.seed(burn.Device("cpu").id, 3)
    router().seed(burn.Device("router/cpu").id, 11)
    assert burn.random.uniform(4, device="cpu").tolist() == expected


@each_inner
def test_random_numbers_are_those_of_the_inner_device(inner):
    for device in (inner, f"router/{inner}"):
        burn.random.seed(7, device=device)
    for draw in (
        lambda device: burn.random.normal((3, 5), device=device),
        lambda device: burn.random.integers(9, 0, 100, device=device),
        lambda device: burn.random.permutation(10, device=device),
    ):
        assert draw(inner).numpy().tobytes() == draw(f"router/{inner}").numpy().tobytes()


# Errors.


def test_a_wrong_call_raises_at_once_and_registers_nothing(listing):
    x = burn.ones((2, 3), device="listing")
    listing.clear()
    for wrong in (
        lambda: x + burn.ones((4,), device="listing"),
        lambda: burn.sum(x, axis=5),
        lambda: x @ x,
        lambda: x.tensor_type.device.ops.softmax(x.primitive, axis=1.5),
        lambda: x.tensor_type.device.ops.softmax(x.primitive),
        lambda: x.tensor_type.device.ops.softmax(x.primitive, axis=0, speed=2),
    ):
        with pytest.raises(burn.BurnError):
            wrong()
    assert [item.name for item in listing] == ["full"]


def test_a_signature_knows_one_from_true():
    ops = burn.Device("router/cpu").ops
    x = burn.ones((2, 3), device="router/cpu").primitive
    for _ in range(2):
        assert ops.softmax(x, axis=1).shape == (2, 3)
    for wrong in (True, 1.0):
        with pytest.raises(burn.errors.OperandTypeError, match="axis must be an integer"):
            ops.softmax(x, axis=wrong)
    assert ops.permute(x, axes=[1, 0]).shape == (3, 2)


@each_inner
def test_an_error_of_values_is_that_of_the_device_and_names_the_op(inner):
    def error_of(device):
        table = burn.arange(5.0, device=device)
        with pytest.raises(burn.errors.ExecutionError) as raised:
            burn.take(table, burn.asarray([1, 7], device=device)).tolist()
        return raised.value

    expected, found = error_of(inner), error_of(f"router/{inner}")
    assert type(found) is type(expected)
    assert found.operation.partition("(")[0] == expected.operation.partition("(")[0]
    assert "index 7 is out of range" in str(found)


def test_what_a_backend_raises_becomes_an_error_of_burn():
    with burn.registered(mock_backend("mock", [burn.testing.MockDevice(memory=1000)])):
        x = burn.ones(100, device="router/mock")
        with pytest.raises(burn.OutOfMemoryError) as raised:
            [x + 1 for _ in range(9)]
        assert raised.value.operation == "add(float32[100], 1.0)"
        assert "mock:0 has too little memory" in str(raised.value)


def test_a_backend_that_is_registered_again_is_the_one_that_computes():
    kept = []
    for memory in (400, None):
        devices = [burn.testing.MockDevice(memory=memory)]
        with burn.registered(mock_backend("mock", devices)):
            device = burn.Device("router/mock")
            assert burn.Device("router/mock") is device
            kept.append(burn.ones(50, device=device))
            if memory is None:
                assert (burn.ones(500, device=device) + 1).shape == (500,)
    assert [tensor.tolist() for tensor in kept] == [[1.0] * 50] * 2
    with pytest.raises(burn.DeviceUnavailableError, match="no backend 'mock'"):
        burn.Device("router/mock")


def test_the_settings_of_the_user_change_nothing():
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            x = burn.asarray([0.0, -1.0], device="router/cpu")
            assert repr((1.0 / x).tolist()) == "[inf, -1.0]"
            assert repr(burn.log(x).tolist()) == "[-inf, nan]"


def test_a_tensor_of_another_client_is_refused():
    first, second = (burn.Device(f"router/{name}") for name in ("cpu", "torch/cpu"))
    x, y = (burn.ones(2, device=device).primitive for device in (first, second))
    for _ in range(2):
        assert first.ops.add(x, x).shape == (2,)
        with pytest.raises(burn.DeviceMismatchError, match="belongs to another client"):
            first.ops.add(x, y)
        with pytest.raises(burn.DeviceMismatchError, match="belongs to another client"):
            first.ops.exp(y)


# Shapes that depend on data.


def test_a_shape_that_depends_on_data_takes_one_round_trip(listing):
    x = burn.asarray([3, 0, 3, 5], device="listing")
    listing.clear()
    (found,) = burn.nonzero(x)
    assert listing.count(("shapes", 1)) == 1
    assert found.tolist() == [0, 2, 3]
    listing.clear()
    values, indices, inverse, counts = burn.unique_all(x)
    assert [item for item in listing if isinstance(item, tuple) and item[0] == "shapes"] == [
        ("shapes", 2)
    ]
    assert values.tolist() == [0, 3, 5]
    assert counts.tolist() == [1, 2, 1]
    assert (indices.tolist(), inverse.tolist()) == ([1, 0, 3], [1, 0, 1, 2])


def test_an_observer_sees_the_wait_for_a_shape():
    events = []
    observer = types.SimpleNamespace(synchronize=False, record=events.append)
    x = burn.asarray([3, 0, 3], device="router/cpu")
    observing.start(observer)
    try:
        burn.nonzero(x)
        x + 1
    finally:
        observing.stop(observer)
    waits = [part for event in events for part in event.walk() if part.kind == "wait"]
    assert [(wait.name, wait.device) for wait in waits] == [("argwhere", "router/cpu:0")]
    assert [event.name for event in events if event.device == "router/cpu:0"][-1] == "add"


# Lifetimes.


def test_the_client_forgets_a_tensor_that_nothing_holds():
    x = burn.ones(16, device="router/cpu")
    gc.collect()
    before = len(handles())
    y = x + x
    assert len(handles()) == before + 1
    del y
    assert len(handles()) == before
    for _ in range(50):
        burn.unique_all(F.softmax(x * 2.0 + 1.0).sum(keepdims=True))
    gc.collect()
    assert len(handles()) == before
    with pytest.raises(burn.BurnError):
        burn.take(x, burn.asarray([99], device="router/cpu")).tolist()
    gc.collect()
    assert len(handles()) == before


def test_training_leaves_nothing_behind():
    train("router/cpu")
    gc.collect()
    before = len(handles())
    train("router/cpu")
    gc.collect()
    assert len(handles()) == before


def test_copies_and_pickles_are_tensors_of_the_same_device():
    x = burn.arange(6.0, device="router/cpu").reshape((2, 3))
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.device is x.device
        assert again.tolist() == x.tolist()
    again[0, 0] = 9.0
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


# Several devices.


@each_inner
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "bfloat16"])
def test_a_tensor_goes_to_another_device_of_the_router_and_back(inner, dtype):
    x = burn.asarray([[0, 1], [2, 3]], device="router/cpu").astype(dtype)
    if not burn.Device(inner).supports_dtype(dtype):
        with pytest.raises(burn.errors.DTypeError, match=f"router/{inner} has no {dtype}"):
            x.to_device(f"router/{inner}")
        return
    moved = x.to_device(f"router/{inner}")
    assert moved.device.name == f"router/{inner}"
    assert (moved.dtype, moved.tolist()) == (x.dtype, x.tolist())
    assert (moved.to_device("router/cpu") == x).all()
    assert moved.to_device("cpu").tolist() == x.tolist()


def test_a_bridge_changes_backends_by_kind():
    class Bridge(MultiBackendBridge):
        kinds = ()

        def change_backend_float(self, handle, device):
            self.kinds += ("float",)
            return super().change_backend_float(handle, device)

        def change_backend_int(self, handle, device):
            self.kinds += ("int",)
            return super().change_backend_float(handle, device)

        def change_backend_bool(self, handle, device):
            self.kinds += ("bool",)
            return super().change_backend_float(handle, device)

    installed = OneDevice("cpu", "torch/cpu")
    bridge = Bridge(installed.move)
    channel = InProcessChannel("bridged", installed, bridge)
    with routed("bridged", ListingChannel(channel), count=2):
        for dtype in ("float32", "int32", "uint8", "bool"):
            x = burn.asarray([1, 0], device="bridged:0").astype(dtype)
            assert x.to_device("bridged:1").tolist() == x.tolist()
    assert bridge.kinds == ("float", "int", "int", "bool")


def test_a_gradient_comes_back_from_another_device():
    x = burn.asarray([1.0, 2.0], device=burn.Device("router/cpu").autodiff()).require_grad()
    y = (x * 3).to_device(burn.Device("router/torch/cpu").autodiff())
    gradients = (y * y).sum().backward()
    assert x.grad(gradients).tolist() == [18.0, 36.0]
    assert x.grad(gradients).device.name == "router/cpu:0"


# The same results.


@pytest.mark.parametrize("inner", [name for name in INNER if name not in EXAMPLES])
def test_training_gives_the_bits_of_the_inner_device(inner):
    assert_near(train(f"router/{inner}"), train(inner))


def test_a_router_of_a_router_gives_the_same_bits():
    assert_near(train("router/router/cpu", 1), train("cpu", 1))


def test_middleware_sees_each_operation_and_changes_nothing(listing):
    found = train("listing", 1)
    names = [item.name for item in listing if not isinstance(item, tuple) or len(item) == 5]
    assert {"linear", "gelu", "layer_norm", "adam_step"} <= set(names) | {"linear"}
    assert names.count("adam_step") == 4
    assert_near(found, train("cpu", 1))


def test_transforms_run_on_a_router():
    def both(device):
        x = burn.arange(12.0, device=device).reshape((4, 3))
        gradient = burn.vmap(burn.grad(lambda row: (burn.sin(row) ** 2).sum()))
        second = burn.grad(lambda row: burn.grad(lambda r: (r**3).sum())(row).sum())
        return gradient(x).numpy().tobytes(), second(x[0]).numpy().tobytes()

    assert both("router/cpu") == both("cpu")


def test_threads_share_a_router():
    x = burn.arange(64.0, device="router/cpu")
    expected = F.softmax(burn.exp(x * 0.01) @ burn.exp(x * 0.01).reshape((64, 1))).tolist()
    found, barrier = [], threading.Barrier(6)

    def work():
        barrier.wait()
        for _ in range(40):
            e = burn.exp(x * 0.01)
            found.append(F.softmax(e @ burn.exp(x * 0.01).reshape((64, 1))).tolist())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 240
    assert all(item == expected for item in found)


FORK = """
import multiprocessing, sys
import burn

def total(x):
    return float(burn.sum(x + x))

if __name__ == "__main__":
    x = burn.asarray([1.0, 2.0], device=sys.argv[1]) * 2
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            print(pool.map_async(total, [x]).get(20)[0])
        except burn.DeviceUnavailableError as error:
            print("refused:", error)
"""


@forks
@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("router/cpu", "12.0"),
        pytest.param(
            "router/torch/cpu",
            "refused: the backend 'router' was loaded in",
            marks=pytest.mark.exhaustive,  # to import torch takes seconds
        ),
        ("router/opencl", "refused: the backend 'router' was loaded in"),
    ],
)
def test_a_fork_goes_on_where_the_inner_device_survives_it(tmp_path, run_python, device, expected):
    program = tmp_path / "program.py"
    program.write_text(FORK, encoding="utf-8")
    result = run_python("-W", "ignore:.*fork.*:DeprecationWarning", program, device)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(expected)


# Over a pipe: bytes carry all.


def test_training_in_a_second_process_gives_the_same_bits(pipe):
    train("pipe", 1)  # asks for dtypes, once
    client, *_ = pipe.clients
    before = client.round_trips
    found = train("pipe", 2)
    assert client.round_trips == before + 2 + 4  # the losses, and the weights
    assert_near(found, train("cpu", 2))


def test_a_second_process_answers_what_depends_on_data(pipe):
    x = burn.asarray([3, 0, 3, 5], device="pipe")
    client, *_ = pipe.clients
    burn.nonzero(x)  # asks for dtypes, once
    trips = client.round_trips
    (found,) = burn.nonzero(x)
    assert client.round_trips == trips + 1
    assert found.shape == (3,)
    assert found.tolist() == [0, 2, 3]
    assert burn.unique_values(x).tolist() == [0, 3, 5]


def test_an_error_in_a_second_process_is_raised_by_the_next_read(pipe):
    x = burn.arange(5.0, device="pipe")
    with pytest.raises(burn.errors.ShapeError):
        x + burn.ones(4, device="pipe")
    y = burn.take(x, burn.asarray([7], device="pipe"))
    with pytest.raises(burn.errors.ExecutionError, match="index 7 is out of range") as raised:
        y.tolist()
    assert raised.value.operation.startswith(("take", "gather", "select"))
    assert (x + 1).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    pipe.clients[0].sync()


def test_branches_and_loops_run_in_a_second_process_without_an_answer(pipe):
    def loss(w, xs):
        def step(state, x):
            state = burn.cond(x.sum() > 0, lambda: burn.tanh(w * state + x), lambda: state - x)
            return state, burn.where(x > 0, state, 0.0)

        last, rows = burn.scan(step, burn.zeros_like(w), xs)
        return burn.while_loop(lambda y: y.max() < 9.0, lambda y: y * 2.0 + 1.0, last.detach()), (
            rows * rows
        ).sum()

    def gradients(w, xs):
        loops, _ = loss(w, xs)
        return loops, burn.grad(lambda w: loss(w, xs)[1])(w)

    w, xs = burn.asarray([0.5, 0.25]), burn.asarray([[1.0, 2.0], [-1.0, 0.5], [0.5, 0.5]])
    program = burn.ir.trace(gradients, w, xs)
    expected = [tensor.tolist() for tensor in program(w, xs)]
    remote = [item.to_device("pipe") for item in (w, xs)]
    client, *_ = pipe.clients
    program(*remote)  # asks for dtypes, once
    trips = client.round_trips
    found = program(*remote)
    assert client.round_trips == trips
    assert [tensor.tolist() for tensor in found] == expected


def test_every_dtype_crosses_the_pipe(pipe):
    for dtype in burn.DType.members():
        values = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype.numpy)
        x = burn.asarray(values, device="pipe")
        assert x.numpy().tobytes() == values.tobytes()
        moved = x.T.to_device("pipe:1")
        assert moved.device.name == "pipe:1"
        assert moved.numpy().tobytes() == np.ascontiguousarray(values.T).tobytes()


def test_a_second_process_forgets_what_nothing_holds(pipe):
    x = burn.ones(4, device="pipe")
    client, *_ = pipe.clients
    gc.collect()
    before = client.count()
    for _ in range(100):
        (x * 2.0 + 1.0).sum()
    assert client.count() == before
    y = x + 1
    assert client.count() == before + 1
    del y
    assert client.count() == before


def test_ids_of_devices_are_those_of_the_channel():
    channel = PipeChannel("cpu", "cpu")
    backend = RouterBackend(channel)
    assert backend.device_count(0) == 2
    assert backend.device_count(1) == 0
    assert backend.name(DeviceId(0, 1)) == "pipe"
