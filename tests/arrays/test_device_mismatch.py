"""Tensors on different hardware do not meet, in any op or function: the error says what to do."""

import itertools

import numpy as np
import pytest

import burn
from burn.functions.common import dispatch
from burn.ops import REGISTRY
from burn.tensor_data import TensorData
from burn.testing import SAMPLES, MockDevice, Subject, load_samples, mock_backend
from burn.testing.function_samples import arrays_in
from burn.testing.subject import Call, map_arrays
from valid_calls import TENSOR, covering, has_array, mapped, parameters_like, public_functions

load_samples()

CPU = burn.Device("cpu")
SUBJECT = Subject.of(CPU)
PRESENT = burn.Device.enumerate()
"""Moves of one operand are tried from the CPU to each of these; and to a mock device."""


@pytest.fixture(scope="module", autouse=True)
def elsewhere():
    """A device that is no other's hardware, wherever the tests run."""
    with burn.registered(mock_backend("elsewhere", [MockDevice("unit")])):
        yield burn.Device("elsewhere")


def tensor_count(operands):
    """Number of arrays among operands, those in lists too."""
    found = []
    map_arrays(found.append, operands)
    return len(found)


def call_with_tensors(name):
    """A sample of an op with two tensors or more, as a call; None if it has none."""
    samples = SAMPLES[name]
    calls = [
        (sample, dtype)
        for sample in samples.samples
        for dtype in SUBJECT.dtypes(samples, sample)
        if tensor_count(sample.operands) > 1
    ]
    # Of a dtype that every device has, and of operands that have elements, if there is one.
    calls.sort(key=lambda pair: (pair[1] is not burn.float32, pair[1] is not burn.int32))
    for item, dtype in calls:
        call = Call.of(samples, item, dtype, SUBJECT.index_dtype)
        if tensor_count(call.operands) > 1:
            return call
    return None


CALLS = {name: call_with_tensors(name) for name in REGISTRY}
OF_SEVERAL = sorted(name for name, call in CALLS.items() if call is not None)


def tensors_of(operands):
    """Operands on the CPU as tensors."""
    return map_arrays(lambda item: dispatch.from_data(TensorData(np.asarray(item)), CPU), operands)


def with_one_moved(operands, index, device):
    """The operands, of which one tensor, counted through lists too, is on another device."""
    numbers = itertools.count()
    return map_arrays(
        lambda item: item.to_device(device) if next(numbers) == index else item, operands
    )


def has(device, call):
    """Whether a device has all dtypes of a call."""
    found = [*call.outputs(call.op.infer(*call.metas, **call.attributes))]
    map_arrays(found.append, call.metas)
    return all(device.supports_dtype(tensor.dtype) for tensor in found)


def check(device, call, operands):
    """Try one operand after the other on the other device, and then what the error advises."""
    for index in range(tensor_count(operands)):
        mixed = with_one_moved(operands, index, device)
        with pytest.raises(burn.DeviceMismatchError) as caught:
            call(*mixed)
        message = str(caught.value)
        assert CPU.name in message
        assert device.name in message
        assert caught.value.operation
        advice = message.partition(".to_device(")[2].partition(")")[0].strip('"')
        assert advice in (CPU.name, device.name)
        mended = map_arrays(lambda item, advice=advice: item.to_device(advice), mixed)
        call(*mended)


def test_most_ops_of_several_tensors_are_tried():
    assert len(OF_SEVERAL) > 60
    of_several = {
        name
        for name, definition in REGISTRY.items()
        if sum(not spec.optional for spec in definition.operands.values()) > 1
    }
    assert of_several <= set(OF_SEVERAL)


@pytest.mark.together("name", OF_SEVERAL)
def test_an_op_refuses_tensors_of_different_hardware(name, elsewhere):
    call = CALLS[name]
    operands = tensors_of(call.operands)
    if not has(elsewhere, call):  # complex: only where the hardware is real
        elsewhere = next((item for item in PRESENT if item is not CPU and has(item, call)), None)
        if elsewhere is None:
            return

    def run(*mixed):
        return dispatch.execute(name, *mixed, **call.attributes)

    check(elsewhere, run, operands)


@pytest.mark.parametrize("device", [item for item in PRESENT if item is not CPU], ids=str)
def test_devices_that_are_there_do_not_mix(device):
    for name in ("add", "matmul", "where", "concat", "gather", "scatter_add", "equal", "pow"):
        call = CALLS[name]
        if has(device, call):
            check(
                device,
                lambda *mixed, name=name, call=call: dispatch.execute(
                    name, *mixed, **call.attributes
                ),
                tensors_of(call.operands),
            )


# Public functions, which do things before they come to an op.


WITHOUT = {"broadcast_arrays", "check_closeness", "complex", "meshgrid"}
"""Those that compare on the host, or give a tensor for each; the mock has no complex dtypes."""


def of_several(name):
    """Calls of a public function with several tensors, which together give all that it takes."""
    function = public_functions()[name]
    calls, _ = covering(function, parameters_like(function, TENSOR), has_array)
    arrays = [list(arrays_in(list(call))) for call in calls]
    return [
        call
        for call, found in zip(calls, arrays, strict=True)
        if len(found) > 1 and not any(x.dtype.kind == "c" for x in found)
    ]


CALLS_OF = {
    name: of_several(name)
    for name, function in public_functions().items()
    if name not in WITHOUT and not function.__module__.startswith("burn.transforms.")
}
FUNCTIONS = {name: public_functions()[name] for name, calls in CALLS_OF.items() if calls}


@pytest.mark.together("name", FUNCTIONS)
def test_a_function_refuses_tensors_of_different_hardware(name, elsewhere):
    for arguments, keywords in CALLS_OF[name]:
        tensors = [burn.asarray(x, device=CPU) for x in arrays_in([arguments, keywords])]

        def run(*mixed, arguments=arguments, keywords=keywords):
            rest = iter(mixed)

            def given(value):
                return next(rest) if isinstance(value, np.ndarray) else value

            return FUNCTIONS[name](*mapped(given, arguments), **mapped(given, keywords))

        check(elsewhere, run, tensors)


def test_most_functions_of_several_tensors_are_tried():
    assert len(FUNCTIONS) > 140


def assign(x, indices, values):
    x = x + 0
    x[indices] = values
    return x


X = np.arange(9, dtype=np.float32).reshape(3, 3) % 2 + np.float32(0.5)

OPERATORS = {
    "x + y": lambda x, y: x + y,
    "x ** y": lambda x, y: x**y,
    "x @ y": lambda x, y: x @ y,
    "x < y": lambda x, y: x < y,
    "x == y": lambda x, y: x == y,
    "x[indices]": lambda x, y: x[y.astype("int64")],
    "x[mask]": lambda x, y: x[y > 0],
    "x[mask] = y": lambda x, y: assign(x, x > 0, y[0, 0]),
    "x[indices] = y": lambda x, y: assign(x, burn.asarray([0], device=x.device), y[:1]),
    "x[0] = y": lambda x, y: assign(x, 0, y[0]),
    "x[theirs] = 0": lambda x, y: assign(x, y > 0, 0.0),
    "einsum": lambda x, y: burn.einsum("ij,jk->ik", x, y),
    **{
        f"{name}space": lambda x, y, name=name: getattr(burn, f"{name}space")(x[0, 0], y[0, 0], 3)
        for name in ("geom", "lin", "log")
    },
    "arange": lambda x, y: burn.arange(x[0, 0], y[0, 0] * 9),
    "fori_loop": lambda x, y: burn.fori_loop(
        x[0, 0].astype("int64"), y[0, 0].astype("int64"), lambda _, value: value, 0
    ),
    "nanvar": lambda x, y: burn.nanvar(x, axis=1, mean=y[:, :1]),
    "repeat": lambda x, y: burn.repeat(x[0], y[0].astype("int64")),
    "maximum": burn.maximum,
    "atan2": burn.atan2,
    "broadcast_arrays": lambda x, y: [burn.add(*burn.broadcast_arrays(x, y))],
    "clip": lambda x, y: burn.clip(x, max=y),
    "asarray": lambda x, y: burn.stack([x, y]),
    "cdist": lambda x, y: burn.linalg.cosine_similarity(x, y),
    "solve": lambda x, y: burn.linalg.solve(x + burn.eye(3, device=x.device) * 9, y),
    "x += y": lambda x, y: (x + 0).__iadd__(y),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_refuses_tensors_of_different_hardware(name, elsewhere):
    check(
        elsewhere, OPERATORS[name], [burn.asarray(X, device=CPU), burn.asarray(X + 1, device=CPU)]
    )


def test_what_is_tracked_is_advised_to_keep_its_gradient(elsewhere):
    here = burn.ones(2, device=CPU.autodiff()).require_grad()
    there = burn.ones(2, device=elsewhere.autodiff()).require_grad()
    with pytest.raises(burn.DeviceMismatchError) as caught:
        here * there
    assert '.to_device(burn.Device("cpu:0").autodiff())' in str(caught.value)
    moved = there.to_device(burn.Device("cpu:0").autodiff())
    assert there.grad((here * 3 * moved).sum().backward()).tolist() == [3.0, 3.0]
