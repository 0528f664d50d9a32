"""Dispatch is a backend on dispatch-level DeviceIds, and decorators stand on it.

Each member gives through Dispatch what it gives of the backend of the device.
"""

import functools
import inspect

import numpy as np
import pytest

import burn
from burn.autodiff import Autodiff
from burn.backend import AutodiffBackend, Backend, is_implemented
from burn.backend.capsule import read_capsule
from burn.batching import Batch, Frame
from burn.device_id import DeviceId
from burn.dispatch import Dispatch, DispatchTensor
from burn.errors import PluginError
from burn.functions.common import dispatch
from burn.ops import REGISTRY, resolve
from burn.plugins import BackendSpec, DeviceInfo
from burn.tensor_data import TensorData
from burn.testing import NumpyBackend, Selection, Status, Subject
from burn.testing.suites import checks_of

DEVICES = burn.Device.enumerate()

each_device = pytest.mark.parametrize("device", DEVICES, ids=str)

VALUES = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -3.0]], dtype=np.float32)
WEIGHTS = np.array([[1.0, 0.5], [-0.25, 2.0], [0.75, -1.5]], dtype=np.float32)


class Side:
    """A backend, one of its devices, and tensors there."""

    def __init__(self, handle, backend, device, upload=None):
        self.handle = handle
        self.backend = backend
        self.device = device
        self.upload = upload or functools.partial(backend.from_data, device=device)

    def tensor(self, values):
        return self.upload(TensorData(np.array(values)))

    def read(self, tensor):
        return None if tensor is None else self.backend.to_data(tensor).array.tolist()

    @functools.cached_property
    def ops(self):
        return resolve(self.backend, self.device)

    @functools.cached_property
    def x(self):
        return self.tensor(VALUES)

    @functools.cached_property
    def leaf(self):
        return self.backend.require_grad(self.x, self.device)

    @functools.cached_property
    def middle(self):
        return self.ops.multiply(self.leaf, self.leaf)

    @functools.cached_property
    def output(self):
        return self.ops.sum(self.middle, axis=(0, 1), dtype=burn.float32)

    def gradient(self, gradients):
        return self.read(self.backend.grad(self.leaf, gradients))


def own(device):
    return Side(device, device.backend, device.id)


def through(device):
    return Side(device, dispatch, device.dispatch_id)


def own_autodiff(device):
    return Side(device, device.autodiff().backend, device.id)


def through_autodiff(device):
    upload = functools.partial(dispatch.from_data, device=device.autodiff())
    return Side(device, dispatch, device.dispatch_id, upload)


def autodiff_over_dispatch(device):
    return Side(device, Autodiff(dispatch), device.dispatch_id)


def members(protocol):
    """The members of a protocol beside the ops."""
    names = {name for name in dir(protocol) if not name.startswith("_")}
    return names - REGISTRY.keys()


# Each member.


def quiet(side):
    with side.backend.quiet():
        zero = side.tensor([0.0])
        return str(side.read(side.ops.divide(zero, zero)))


def seeded(side):
    side.backend.seed(side.device, 7)
    return burn.random.uniform(3, device=side.handle).tolist()


def exported(side, **options):
    capsule = side.backend.to_dlpack(side.x, **options)
    found = read_capsule(capsule)
    return found.version, found.has_negative_strides


def imported(side):
    on_host = side.backend.dlpack_device(side.device) == (1, 0)
    return side.read(side.backend.from_dlpack(VALUES, side.device)) if on_host else None


MEMBERS = {
    "ad_enabled": lambda side: side.backend.ad_enabled(side.device),
    "default_quant_scheme": lambda side: side.backend.default_quant_scheme(side.device),
    "device_count": lambda side: side.backend.device_count(side.device.type_id),
    "dlpack_device": lambda side: side.backend.dlpack_device(side.device),
    "dtype_usage": lambda side: [
        side.backend.dtype_usage(side.device, dtype) for dtype in burn.DType.members()
    ],
    "from_data": lambda side: side.read(
        side.backend.from_data(TensorData(VALUES), device=side.device)
    ),
    "from_dlpack": imported,
    "is_out_of_memory": lambda side: [
        side.backend.is_out_of_memory(error) for error in (MemoryError(), KeyError())
    ],
    "memory_cleanup": lambda side: side.backend.memory_cleanup(side.device),
    "memory_persistent_allocations": lambda side: side.read(
        side.backend.memory_persistent_allocations(side.device, VALUES, side.tensor)
    ),
    "native_dtype": lambda side: side.backend.native_dtype(burn.float32) == side.x.dtype,
    "quiet": quiet,
    "read_all": lambda side: [
        data.array.tolist() for data in side.backend.read_all([side.x, side.tensor([1.0])])
    ],
    "seed": seeded,
    "share": lambda side: side.read(side.backend.share(TensorData(VALUES), side.device)),
    "staging": lambda side: side.backend.staging(TensorData(VALUES), side.device).array.tolist(),
    "supports_dtype": lambda side: [
        side.backend.supports_dtype(side.device, dtype) for dtype in burn.DType.members()
    ],
    "sync": lambda side: side.backend.sync(side.device),
    "to_data": lambda side: side.backend.to_data(side.x).array.tolist(),
    "to_dlpack": lambda side: (exported(side), exported(side, max_version=(1, 0), copy=True)),
}
"""Calls of members of a Backend, with results that do not depend on the sort of tensors."""


def replaced(side):
    gradients = side.backend.backward(side.output)
    side.backend.grad_replace(side.leaf, gradients, side.backend.inner(side.x))
    return side.gradient(gradients)


def removed(side):
    gradients = side.backend.backward(side.output)
    gradient = side.read(side.backend.grad_remove(side.leaf, gradients))
    return gradient, side.gradient(gradients)


def retained(side):
    side.backend.retain_grad(side.middle)
    return side.read(side.backend.grad(side.middle, side.backend.backward(side.output)))


def hooked(side):
    seen = []
    handle = side.backend.register_hook(side.middle, lambda item: seen.append(side.read(item)))
    side.backend.backward(side.output, retain_graph=True)
    handle.remove()
    side.backend.backward(side.output)
    return seen


def of_inputs(side):
    gradients = side.backend.backward(side.output, 2.0, inputs=[side.middle])
    return side.read(side.backend.grad(side.middle, gradients))


def inner(name, values):
    return lambda side: side.read(getattr(side.backend, name)(side.tensor(values)))


def from_inner(name, values):
    def call(side):
        below = side.backend.inner(side.tensor(values))
        return side.read(getattr(side.backend, name)(below))

    return call


def shared(side):
    return side.backend.set_distributed_params(side.leaf, 3)


AUTODIFF_MEMBERS = {
    "backward": lambda side: (
        side.gradient(side.backend.backward(side.output, retain_graph=True)),
        of_inputs(side),
    ),
    "grad": lambda side: [
        side.read(side.backend.grad(item, side.backend.backward(side.output, retain_graph=True)))
        for item in (side.leaf, side.x)
    ],
    "grad_remove": removed,
    "grad_replace": replaced,
    "retain_grad": retained,
    "register_hook": hooked,
    "require_grad": lambda side: side.read(
        side.backend.inner(side.backend.require_grad(side.leaf, side.device))
    ),
    "is_require_grad": lambda side: [
        side.backend.is_require_grad(item) for item in (side.x, side.leaf, side.output)
    ],
    "inner": lambda side: side.read(side.backend.inner(side.output)),
    "int_inner": inner("int_inner", [1, 2]),
    "bool_inner": inner("bool_inner", [True, False]),
    "q_inner": inner("q_inner", VALUES),
    "from_inner": from_inner("from_inner", VALUES),
    "int_from_inner": from_inner("int_from_inner", [1, 2]),
    "bool_from_inner": from_inner("bool_from_inner", [True, False]),
    "q_from_inner": from_inner("q_from_inner", VALUES),
    "set_distributed_params": lambda side: side.backend.is_require_grad(shared(side)),
    "distributed_params": lambda side: side.backend.distributed_params(shared(side)).param_id,
    "is_distributed": lambda side: [
        side.backend.is_distributed(item) for item in (shared(side), side.x, side.output)
    ],
}
"""The same for what an AutodiffBackend has beside them."""

IN_TESTS_OF_THEIR_OWN = {
    "as_primitive",
    "can_write",
    "compile",
    "device_of",
    "counts_references",
    "dialect",
    "for_device",
    "kernel_runner",
    "load_kernel",
    "name",
    "named",
    "ops",
    "overwrites_donated",
    "rounds_each_operation",
    "to_device",
    "write_slice",
}


def test_every_member_is_tried():
    assert MEMBERS.keys() | IN_TESTS_OF_THEIR_OWN == members(Backend)
    assert AUTODIFF_MEMBERS.keys() == members(AutodiffBackend) - members(Backend)


@each_device
@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_gives_through_dispatch_what_the_backend_gives(name, device):
    call = MEMBERS[name]
    assert call(through(device)) == call(own(device))


@each_device
@pytest.mark.parametrize("side", [through_autodiff, autodiff_over_dispatch])
@pytest.mark.together("name", AUTODIFF_MEMBERS)
def test_a_member_for_gradients_gives_what_the_autodiff_of_the_backend_gives(name, side, device):
    call = AUTODIFF_MEMBERS[name]
    assert call(side(device)) == call(own_autodiff(device))


@each_device
def test_names_say_that_dispatch_is_in_between(device):
    name, device_id = device.backend.name(device.id), device.dispatch_id
    assert dispatch.name(device_id) == f"dispatch<{name}>"
    assert Autodiff(dispatch).name(device_id) == f"autodiff<dispatch<{name}>>"
    assert Batch(dispatch).name(device_id) == f"vmap<dispatch<{name}>>"
    assert Autodiff(dispatch).ad_enabled(device_id)


@each_device
def test_the_table_of_a_device_is_one_object_and_makes_tensors_there(device):
    table = resolve(dispatch, device.dispatch_id)
    assert resolve(dispatch, device.dispatch_id) is table
    made = table.full(shape=(2,), fill_value=3, dtype=burn.int32)
    assert type(made) is burn.Tensor
    assert made.device is device
    assert table.dtype(made) is burn.int32
    assert table.multiply(made, 2).tolist() == [6, 6]


def test_a_device_is_given_by_its_id_or_its_handle():
    cpu = burn.Device("cpu")
    assert dispatch.device(cpu.dispatch_id) is cpu
    assert dispatch.device(cpu.autodiff()) is cpu.autodiff()
    with pytest.raises(burn.DeviceUnavailableError, match="cpu has cpu:0"):
        resolve(dispatch, DeviceId(0, 99))
    with pytest.raises(burn.OperandTypeError, match="no backend has the type id"):
        resolve(dispatch, DeviceId(0x7F00))


@each_device
def test_the_device_of_a_tensor_is_its_dispatch_level_id(device):
    x = through(device).x
    assert dispatch.device_of(x) == device.dispatch_id
    assert dispatch.device_of(x.primitive) is None


@each_device
def test_a_tensor_moves_to_the_device_of_an_id(device):
    moved = dispatch.to_device(through(burn.Device("cpu")).x, device.dispatch_id)
    assert moved.device is device
    assert moved.tolist() == VALUES.tolist()


@each_device
def test_a_tensor_that_others_may_hold_is_never_written(device):
    x = through(device).x
    assert not dispatch.can_write(x, [])
    with pytest.raises(burn.UnsupportedOpError):
        dispatch.write_slice(x, 0.0, slices=((0, 1, 1), (0, 1, 1)))


def test_dispatch_names_no_op_late_and_has_no_table_but_those_of_devices():
    assert dispatch.named is None
    with pytest.raises(AttributeError, match="ops"):
        dispatch.ops  # noqa: B018 — raises


# Classes.


@pytest.mark.parametrize("protocol", [Backend, AutodiffBackend])
@pytest.mark.parametrize("backend", [dispatch, Autodiff(dispatch), Autodiff(NumpyBackend())])
def test_a_backend_with_gradients_is_one_by_inheritance(backend, protocol):
    assert isinstance(backend, protocol)
    assert protocol in type(backend).__mro__
    for name in dir(protocol):
        inspect.getattr_static(backend, name)  # as isinstance looks from Python 3.12 on


@pytest.mark.parametrize("below", [dispatch, NumpyBackend()])
def test_batch_is_a_backend_by_inheritance(below):
    assert isinstance(Batch(below), Backend)
    assert Backend in Batch.__mro__


@pytest.mark.parametrize("backend", [dispatch, Autodiff(dispatch), Batch(dispatch)])
def test_a_backend_has_every_op_that_a_protocol_only_declares(backend):
    assert [op for op in REGISTRY if not is_implemented(getattr(backend, op))] == []


@pytest.mark.parametrize("decorator", [Autodiff, Batch])
def test_what_a_decorator_does_not_define_is_of_the_backend_below(decorator):
    below = NumpyBackend()
    decorated = decorator(below)
    inherited = members(Backend) - vars(decorator).keys() - {"ops"}
    assert "staging" in inherited
    for name in inherited:
        assert getattr(decorated, name) == getattr(below, name)
    with pytest.raises(AttributeError, match="nonsense"):
        decorated.nonsense  # noqa: B018 — raises


# Decorators over Dispatch.


def program(run, x, w):
    """A number computed from two matrices, by ops that `run` runs."""
    hidden = run("gelu", run("matmul", x, w))
    weighted = run("multiply", run("softmax", hidden, axis=1), hidden)
    return run("sum", weighted, axis=(0, 1), dtype=burn.float32)


def runner(table):
    return lambda name, *operands, **attributes: getattr(table, name)(*operands, **attributes)


def gradients_of_users(device):
    x, w = (burn.asarray(item, device=device).require_grad() for item in (VALUES, WEIGHTS))
    gradients = program(burn.apply_op, x, w).backward()
    return [item.grad(gradients).tolist() for item in (x, w)]


@each_device
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("tensor_class", [burn.Tensor, DispatchTensor])
def test_gradients_over_dispatch_equal_those_of_an_autodiff_device(
    device, checkpointing, tensor_class
):
    below = dispatch if tensor_class is burn.Tensor else Dispatch(DispatchTensor)
    autodiff, device_id = Autodiff(below), device.dispatch_id
    leaves = [
        autodiff.require_grad(below.from_data(TensorData(item), device_id), device_id)
        for item in (VALUES, WEIGHTS)
    ]
    table = autodiff.for_device(device_id, checkpointing=checkpointing)
    gradients = autodiff.backward(program(runner(table), *leaves))
    found = [autodiff.grad(leaf, gradients) for leaf in leaves]
    assert {type(item) for item in found} == {tensor_class}
    expected = device.autodiff()
    if checkpointing:
        expected = expected.gradient_checkpointing()
    assert [below.to_data(item).array.tolist() for item in found] == gradients_of_users(expected)


def batched_gradients(side):
    """Gradients of three examples, by autodiff under a batch axis."""
    batch = Batch(side.backend)
    autodiff = Autodiff(batch)
    frame = Frame(3)
    table = autodiff.for_device(side.device)
    examples = np.stack([VALUES, VALUES * 0.5, VALUES + 1.0])
    x = batch.batch(side.tensor(examples), frame, 0, table.below)
    leaf = autodiff.require_grad(x, side.device)
    gradients = autodiff.backward(program(runner(table), leaf, side.tensor(WEIGHTS)))
    gradient = autodiff.grad(leaf, gradients)
    return side.read(batch.unbatch(gradient, frame, 0, table.below))


@each_device
def test_a_batch_over_dispatch_computes_what_one_over_the_backend_computes(device):
    found = batched_gradients(through(device))
    assert np.shape(found) == (3, 2, 3)
    assert found == batched_gradients(own(device))


def test_a_transform_differentiates_what_a_table_over_dispatch_computes():
    x = burn.asarray(VALUES, device="cpu")
    run = runner(resolve(dispatch, x.device.dispatch_id))
    w = burn.asarray(WEIGHTS, device="cpu")
    (expected, _) = gradients_of_users(x.device.autodiff())
    assert burn.grad(lambda x: program(run, x, w))(x).tolist() == expected


# The conformance kit.

OF_THE_HARDWARE = "contract/seed"
"""The check of the number at which the generator of a device is: Dispatch has none of its own."""


OF_SAMPLES = {("values",), ("gradients",), ("gradient_types",), ("second_gradients",)}
"""Suites that try many samples of each op, which Dispatch passes on all alike."""


def failures(subject, selection, everything):
    """What each check says that does not pass; of many samples the gate tries each third."""
    checks = list(checks_of(subject, selection))
    fewer = selection.suites in OF_SAMPLES and not everything
    results = {check.name: check.run() for check in (checks[::3] if fewer else checks)}
    has_complex = subject.supports(burn.complex64)
    assert results or (selection.suites == ("special_cases",) and not has_complex)
    return {
        name: result.message
        for name, result in results.items()
        if result.status is not Status.PASSED
    }


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(device, marks=() if device.name == "cpu:0" else pytest.mark.exhaustive)
        for device in DEVICES
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "suite",
    [
        "contract",
        "errors",
        "gradient_types",
        "gradients",
        "memory",
        "second_gradients",
        "special_cases",
        "values",
        pytest.param("batching", marks=pytest.mark.exhaustive),
    ],
)
def test_the_kit_finds_nothing_wrong_with_dispatch(device, suite, everything):
    fewer = suite == "values" and not everything
    dtypes = ("bool", "float32", "int64") if fewer else ()
    selection = Selection(dtypes=dtypes, suites=(suite,), quick=True)
    wrong = failures(Subject(dispatch, device.dispatch_id), selection, everything)
    wrong.pop(OF_THE_HARDWARE, None)
    assert wrong == {} or wrong == failures(Subject.of(device), selection, everything)


class Nested(NumpyBackend):
    """A backend that breaks the contract: it returns the outputs of an op in lists."""

    def name(self, device):
        return "nested"

    def sgd_step(self, *lists, **attributes):
        return (list(self.ops.decomposed("sgd_step", *lists, **attributes)),)

    def qr(self, x, *, complete):
        return [list(item) for item in np.linalg.qr(x)]


def test_outputs_in_lists_are_an_error_of_the_plugin():
    spec = BackendSpec("nested", Nested, lambda: [DeviceInfo("unit", 0, "")], ("unit",))
    with burn.registered(spec):
        device = burn.Device("nested").autodiff()
        module = burn.nn.Linear(2, 3).to(device)
        gradients = (module(burn.ones((4, 2), device=device)) ** 2).sum().backward()
        with pytest.raises(PluginError, match=r"^sgd_step.*type list.*flat tuple"):
            burn.optim.SGD(module, 0.1).step(gradients)
        with pytest.raises(PluginError, match="flat tuple"):
            burn.linalg.qr(burn.ones((3, 3), device=device))
