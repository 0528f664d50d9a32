"""Programs that run: their arguments, results, writes, random numbers, and transforms of them."""

import copy
import dataclasses
import inspect
import math
import multiprocessing
import operator
import pickle
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import burn
from burn.ir import Program, RuntimeNumber, TensorSpec, trace
from burn.testing import MockDevice, mock_backend

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
CHECKPOINTING = AUTODIFF.gradient_checkpointing()
DEVICES = ["cpu", "torch/cpu", "opencl"]

pytestmark = pytest.mark.usefixtures("no_transform_is_left")
on_each_device = pytest.mark.parametrize("device", DEVICES)


def tensor(*values, device=CPU, **options):
    return burn.asarray(values, device=device, **options)


def leaf(*values, device=AUTODIFF):
    return tensor(*values, device=device).require_grad()


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    (number,) = [first + index for index, line in enumerate(lines) if text in line]
    return f"test_programs.py:{number}"


# Arguments and results.


class Pair(NamedTuple):
    a: object
    b: object


@dataclasses.dataclass
class Layer:
    weight: object
    name: str


burn.tree.register(Layer, lambda item: ((item.weight,), item.name), lambda name, w: Layer(*w, name))


def test_containers_of_arguments_and_results():
    def f(pair, named, *, scale=2.0):
        layer = named["layer"]
        return OrderedDict(
            sum=pair.a + pair.b * scale,
            layer=Layer(layer.weight * 2.0, layer.name),
            rest=[None, "text", 3, (pair.a, ())],
        )

    arguments = Pair(tensor(1.0), tensor(2.0)), {"layer": Layer(tensor(3.0), "first")}
    program = trace(f, *arguments)
    found = program(Pair(tensor(10.0), tensor(20.0)), {"layer": Layer(tensor(30.0), "first")})
    assert type(found) is OrderedDict
    assert found["sum"].tolist() == [50.0]
    assert type(found["layer"]) is Layer
    assert (found["layer"].weight.tolist(), found["layer"].name) == ([60.0], "first")
    assert found["rest"][:3] == [None, "text", 3]
    assert found["rest"][3][0].tolist() == [10.0]
    with pytest.raises(burn.ArgumentError, match="containers"):
        program((tensor(1.0), tensor(2.0)), {"layer": Layer(tensor(3.0), "first")})
    with pytest.raises(burn.ArgumentError):
        program(Pair(tensor(1.0), tensor(2.0)), {"layer": Layer(tensor(3.0), "second")})
    with pytest.raises(burn.ArgumentError, match="containers"):
        program(Pair(tensor(1.0), tensor(2.0)), {"other": Layer(tensor(3.0), "first")})


def test_arguments_that_differ_from_the_examples_are_named():
    x = tensor(1.0, 2.0)
    program = trace(lambda p, n, flag: p["w"] * n if flag else p["w"], {"w": x}, 3, True)
    assert program({"w": x}, 3, True).tolist() == [3.0, 6.0]
    for arguments, error, message in [
        (({"w": tensor(1.0)}, 3, True), burn.ShapeError, r"\['w'\].*float32\[1\].*float32\[2\]"),
        (({"w": x.astype("float64")}, 3, True), burn.DTypeError, r"\['w'\].*float64"),
        (({"w": x.astype("int32")}, 3, True), burn.DTypeError, r"\['w'\].*int32"),
        (({"w": [1.0, 2.0]}, 3, True), burn.ArgumentError, r"\['w'\]\[0\] where .*\['w'\]"),
        (({"v": x}, 3, True), burn.ArgumentError, r"\['v'\] where they have .*\['w'\]"),
        (([x], 3, True), burn.ArgumentError, r"arguments\[0\]\[0\] where they have .*\['w'\]"),
        (({"w": x}, None, True), burn.ArgumentError, r"\[2\] where they have arguments\[1\]"),
        (({"w": x.numpy()}, 3, True), burn.OperandTypeError, r"\['w'\].*ndarray"),
        (({"w": x}, 4, True), burn.ArgumentError, r"arguments\[1\] is 4.*traced with 3"),
        (({"w": x}, 3.0, True), burn.ArgumentError, r"arguments\[1\] is 3.0"),
        (({"w": x}, 3, 1), burn.ArgumentError, r"arguments\[2\] is 1"),
        (({"w": x}, 3), burn.ArgumentError, "takes 3 arguments, and was given 2"),
        (({"w": x}, x, True), burn.ArgumentError, r"arguments\[1\]"),
    ]:
        with pytest.raises(error, match=message):
            program(*arguments)


def test_values_that_are_no_tensors_may_be_anything():
    array, function, nan = np.ones(3), math.sin, float("nan")

    def f(x, array, function, number, zero):
        return x * (function(number) if number == 1.0 else array[0]) * zero

    program = trace(f, tensor(2.0), array, function, nan, 0.0)
    for arguments in ((array, function, nan, 0.0), (np.ones(3), function, float("nan"), 0.0)):
        assert program(tensor(3.0), *arguments).tolist() == [0.0]
    for arguments in [
        (np.zeros(3), function, nan, 0.0),
        (np.ones(3, np.float32), function, nan, 0.0),
        ([1.0, 1.0, 1.0], function, nan, 0.0),
        (array, math.cos, nan, 0.0),
        (array, function, 1.0, 0.0),
        (array, function, nan, -0.0),
    ]:
        with pytest.raises(burn.ArgumentError, match=r"traced with|containers"):
            program(tensor(3.0), *arguments)
    array[0] = 5.0
    with pytest.raises(burn.ArgumentError, match="traced with"):
        program(tensor(3.0), array, function, nan, 0.0)


@on_each_device
def test_runtime_numbers(device):
    x, g = tensor(1.0, 2.0, device=device), tensor(0.5, -1.0, device=device)
    zeros = burn.zeros_like(x)

    def step(x, g, options):
        return burn.optim.adam_step(
            x, g, zeros, zeros, step=options["step"], learning_rate=options["rate"]
        )

    program = trace(step, x, g, {"step": RuntimeNumber(1), "rate": RuntimeNumber(0.5)})
    for number, rate in [(1, 0.5), (2, 0.25), (1000, 1), (np.int64(3), np.float32(0.5))]:
        options = {"step": number, "rate": rate}
        for item, other in zip(program(x, g, options), step(x, g, options), strict=True):
            assert item.numpy().tobytes() == other.numpy().tobytes()
    for options, message in [
        ({"step": 0, "rate": 0.5}, "adam_step"),
        ({"step": -1, "rate": 0.5}, "adam_step"),
        ({"step": 1, "rate": math.inf}, "adam_step"),
        ({"step": 1.5, "rate": 0.5}, "step"),
        ({"step": True, "rate": 0.5}, "step"),
        ({"step": "1", "rate": 0.5}, "step"),
        ({"step": 1, "rate": x}, "rate"),
    ]:
        with pytest.raises(burn.BurnError, match=message):
            program(x, g, options)


def test_results_that_are_no_new_tensors():
    w, x = tensor(1.0, 2.0), tensor(3.0, 4.0)
    program = trace(lambda x: (x, x, w, x[:1], 5, None), x)
    y = tensor(5.0, 6.0)
    first, second, third, view, *rest = program(y)
    assert [tensor.tolist() for tensor in (first, second, third, view)] == [
        [5.0, 6.0],
        [5.0, 6.0],
        [1.0, 2.0],
        [5.0],
    ]
    assert rest == [5, None]
    for item in (first, third, view):  # a write to a result changes that result alone
        item[0] = 9.0
    assert (y.tolist(), w.tolist(), second.tolist()) == ([5.0, 6.0], [1.0, 2.0], [5.0, 6.0])
    constant = trace(lambda: burn.asarray([1.0, 2.0], device=CPU))
    for _ in range(2):
        made = constant(device=CPU)
        made += 1.0
        assert made.tolist() == [2.0, 3.0]


def test_a_program_without_tensors_runs_where_it_was_traced_or_on_a_named_device():
    program = trace(lambda: burn.arange(3, device=CPU) * 2)
    assert program().device is CPU
    for device in DEVICES:
        made = program(device=device)
        assert (made.tolist(), made.device) == ([0, 2, 4], burn.Device(device))
    saved = Program.from_bytes(program.to_bytes())
    assert saved(device=CPU)[0].tolist() == [0, 2, 4]
    with pytest.raises(burn.ArgumentError, match="no tensor among its inputs"):
        saved()


def test_a_program_of_no_operations_and_of_nothing():
    x = tensor(1.0)
    assert trace(lambda x: None, x)(x) is None
    assert trace(lambda x: x, x)(x).tolist() == [1.0]
    assert trace(lambda: 5)(device=CPU) == 5


def test_a_program_of_another_device_and_tensors_of_two():
    w = tensor(1.0, 2.0)
    program = trace(lambda x, y: x * y + 1.0, w, w)
    for device in DEVICES:
        x = tensor(3.0, 4.0, device=device)
        found = program(x, x)
        assert (found.tolist(), found.device) == ([10.0, 17.0], x.device)
    with pytest.raises(burn.DeviceMismatchError, match="on cpu:0 and torch/cpu:0"):
        program(w, tensor(3.0, 4.0, device="torch/cpu"))
    with pytest.raises(burn.DeviceMismatchError):
        program(w, w, device="torch/cpu")
    closed = trace(lambda x: x * w, w)
    with pytest.raises(burn.DeviceMismatchError, match="pass them as arguments"):
        closed(tensor(3.0, 4.0, device="torch/cpu"))


def test_a_program_of_a_spec():
    program = trace(lambda x: x @ x, TensorSpec((2, 2), burn.float32, "cpu"))
    assert program(burn.eye(2, device=CPU)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


# Values that change, and writes.


@on_each_device
def test_tensors_from_outside_are_read_at_each_call(device):
    root = burn.zeros((2, 2), device=device)
    view, w = root[0], tensor(1.0, 2.0, device=device)
    program = trace(lambda x: view * x + w, w)
    x = tensor(1.0, 1.0, device=device)
    assert program(x).tolist() == [1.0, 2.0]
    root += 3.0
    assert program(x).tolist() == [4.0, 5.0]
    w[0] = 10.0
    assert program(x).tolist() == [13.0, 5.0]
    root[0, 1] = 0.0
    assert program(x).tolist() == [13.0, 2.0]
    w *= 0.0
    assert program(x).tolist() == [3.0, 0.0]


def both(make, function, calls):
    """What the calls give, and the tensors after them: eager, and of a program."""
    found = []
    for traced in (False, True):
        state = make()
        call = function(state)
        if traced:
            before = [x.tolist() for x in state]
            call = trace(call, *calls[0])
            assert [x.tolist() for x in state] == before
        results = []
        for examples in calls:
            arguments = [copy.copy(x) for x in examples]
            result = call(*arguments)
            results.append([x.tolist() for x in (result, *arguments, *state)])
        found.append(results)
    return found


def roots(device):
    root = burn.zeros((2, 3), device=device)
    return root, root[0], root[:, 1:], root.T


def iadd(state):
    def f(x):
        state[0][...] += x
        return state[1] * 2.0

    return f


def through_a_view(state):
    def f(x):
        state[1][...] = x
        state[2][0, 0] += 5.0
        return state[0].sum()

    return f


def through_a_view_alone(state):
    def f(x):
        state[3][0] = x[:2]
        return x * 2.0

    return f


def through_a_new_view(state):
    def f(x):
        new = state[0][1]
        new += x
        new[1:] *= 2.0
        return new * state[1]

    return f


def in_many_ways(state):
    def f(x):
        root = state[0]
        root[...] = root + x
        root[:, 0] = 7.0
        root[burn.asarray([0, 1], device=x.device), 1] = x[:2]
        other = root[0]
        root *= 2.0
        return other - state[1] + x

    return f


def to_its_argument(state):
    def f(x):
        x += state[1]
        x[0] = 9.0
        return x * 2.0

    return f


def written_back(state):
    def f(x):
        state[0][...] += 1.0
        state[0][...] -= 1.0
        return state[0][0] * x

    return f


WRITES = [iadd, through_a_view, through_a_view_alone, through_a_new_view, in_many_ways]
WRITES += [to_its_argument, written_back]


@on_each_device
@pytest.mark.parametrize("function", WRITES, ids=lambda function: function.__name__)
def test_what_a_function_writes_a_program_writes(function, device):
    calls = [[tensor(*values, device=device)] for values in [(1.0, 2.0, 3.0), (4.0, 0.5, -1.0)]]
    eager, traced = both(lambda: roots(device), function, calls * 2)
    assert traced == eager


def test_a_write_to_an_argument_reaches_what_shares_its_elements():
    def f(x):
        x[0] = 9.0

    program = trace(f, tensor(1.0, 2.0))
    root = burn.zeros((2, 2), device=CPU)
    program(root[1])
    assert root.tolist() == [[0.0, 0.0], [9.0, 0.0]]
    program(root[:, 1])
    assert root.tolist() == [[0.0, 9.0], [9.0, 0.0]]
    first = root[0]
    view = first[:]
    program(view)
    assert (first.tolist(), root.tolist()) == ([9.0, 9.0], [[9.0, 9.0], [9.0, 0.0]])


def test_writes_to_arguments_that_share_elements_are_refused():
    def f(a, b):
        a += 1.0
        return a + b

    x = tensor(1.0, 2.0)
    for arguments in ((x, x), (x, x[:]), (x[:], x)):
        with pytest.raises(burn.TraceError, match="shares elements"):
            trace(f, *arguments)
    program = trace(f, x, tensor(1.0, 2.0))
    for arguments in ((x, x), (x, x[:]), (x[:], x)):
        with pytest.raises(burn.ArgumentError, match="shares elements"):
            program(*arguments)
    assert x.tolist() == [1.0, 2.0]
    closed = trace(lambda a: f(a, x), tensor(1.0, 2.0))
    with pytest.raises(burn.ArgumentError, match="shares elements"):
        closed(x)
    read = trace(lambda a, b: a + b, x, x)
    assert read(x, x[:]).tolist() == [2.0, 4.0]


def test_a_write_to_a_leaf_is_refused_by_a_program_too():
    def f(x):
        x += 1.0

    program = trace(f, tensor(1.0, 2.0))
    with pytest.raises(burn.AutodiffError, match="leaf"):
        program(leaf(1.0, 2.0))
    w = leaf(1.0, 2.0)
    with pytest.raises(burn.AutodiffError, match="leaf"):
        trace(lambda: f(w))
    x = burn.asarray([0.0, 0.0], device=AUTODIFF)
    with pytest.raises(burn.TraceError, match="tracked value"):
        trace(lambda: operator.iadd(x, w))


def test_a_call_that_fails_writes_nothing():
    table, total = tensor(1.0, 2.0), tensor(0.0)

    def f(index):
        nonlocal total
        total += 1.0
        return burn.take(table, index, axis=0)

    program = trace(f, tensor(0))
    with pytest.raises(burn.OutOfRangeError):
        program(tensor(7)).tolist()
    assert program(tensor(1)).tolist() == [2.0]
    assert total.tolist() == [1.0]


@on_each_device
def test_an_error_of_values_names_the_op_and_the_line(device):
    table = tensor(1.0, 2.0, device=device)

    def f(index):
        return burn.take(table, index, axis=0) * 2.0  # the line

    program = trace(f, tensor(0, device=device))
    with pytest.raises(burn.OutOfRangeError, match=r"take|select") as failure:
        program(tensor(7, device=device)).tolist()
    assert "index 7" in str(failure.value)
    assert line_of(f, "# the line") in str(failure.value)


def test_a_device_without_a_dtype_of_the_program_is_named_with_the_op_or_constant():
    def wide(x):
        return burn.astype(burn.astype(x, burn.float64) * 2.0, burn.float32)

    programs = {
        r"cast\(float32\[2\], dtype=float64\) at .*test_programs.py:\d+": trace(
            wide, tensor(1.0, 2.0)
        ),
        "a constant of a program": trace(
            lambda x: x + burn.astype(tensor(1.0, 2.0, dtype=burn.float64), burn.float32),
            tensor(1.0, 2.0),
        ),
    }
    with burn.registered(mock_backend("narrow", [MockDevice("unit", without=("float64",))])):
        for message, program in programs.items():
            with pytest.raises(burn.DTypeError, match=f"{message}: narrow:0 has no float64"):
                program(tensor(1.0, 2.0, device="narrow"))


def test_constants_that_do_not_fit_are_out_of_memory():
    program = trace(lambda x: x + burn.asarray(np.ones(1000), device=CPU).sum(), tensor(1.0))
    with (
        burn.registered(mock_backend("small", [MockDevice("unit", memory=500)])),
        pytest.raises(burn.OutOfMemoryError, match="a constant of a program: small:0"),
    ):
        program(tensor(1.0, device="small"))


def test_an_error_of_a_library_names_the_op_and_the_line():
    def f(x):
        return burn.linalg.cholesky(x)  # the line

    program = trace(f, burn.eye(2, device=CPU))
    assert program(burn.eye(2, device=CPU)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(burn.BurnError, match="cholesky") as failure:
        program(-burn.eye(2, device=CPU)).tolist()
    assert line_of(f, "# the line") in str(failure.value)


# Random numbers.


def distributions(x):
    device = x.device.hardware
    return [
        x + burn.random.normal(x.shape, device=device),
        burn.random.uniform((5,), 1.0, 3.0, device=device),
        burn.random.integers((7,), 0, 9, device=device),
        burn.random.bernoulli((3, 3), 0.3, device=device),
        burn.random.permutation(6, device=device),
        burn.random.categorical(burn.asarray([0.2, 0.5, 0.3], device=device), 4),
    ]


def bits(tensors):
    return [x.detach().numpy().tobytes() for x in tensors]


@on_each_device
def test_each_replay_draws_what_the_eager_function_draws(device):
    device, x = burn.Device(device), tensor(1.0, 2.0, device=device)
    device.seed(3)
    eager = [bits(distributions(x)) for _ in range(3)]
    program = trace(distributions, x)
    saved = Program.from_bytes(program.to_bytes())
    device.seed(3)
    assert [bits(program(x)), bits(saved(x)), bits(distributions(x))] == eager
    assert eager[0] != eager[1]


def test_draws_of_replays_and_eager_draws_follow_one_another():
    x = tensor(1.0)
    program = trace(lambda x: burn.random.uniform((3,), device=CPU), x)
    CPU.seed(1)
    expected = [burn.random.uniform((3,), device=CPU).tolist() for _ in range(4)]
    CPU.seed(1)
    calls = [program, lambda _: burn.random.uniform((3,), device=CPU)] * 2
    assert [call(x).tolist() for call in calls] == expected


def test_draws_under_vmap_and_in_checkpoints_are_those_of_the_eager_function():
    def f(x):
        noisy = burn.vmap(lambda row: row + burn.random.normal((3,), device=CPU))(x)

        def region(y):
            return burn.tanh(y) * burn.random.uniform((3,), device=CPU)

        value, gradient = burn.value_and_grad(lambda y: burn.checkpoint(region)(y).sum())(noisy)
        return noisy, value, gradient, burn.random.normal((2,), device=CPU)

    x = burn.ones((4, 3), device=CPU)
    CPU.seed(5)
    eager = [bits(f(x)) for _ in range(2)]
    program = trace(f, x)
    CPU.seed(5)
    assert [bits(program(x)) for _ in range(2)] == eager


def test_a_program_that_draws_is_refused_inside_of_vmap():
    program = trace(lambda x: x + burn.random.normal((2,), device=CPU), tensor(1.0, 2.0))
    with pytest.raises(burn.ArgumentError, match="would draw the same for all examples"):
        burn.vmap(program)(burn.ones((3, 2), device=CPU))
    assert burn.grad(lambda x: program(x).sum())(tensor(1.0, 2.0)).tolist() == [1.0, 1.0]


# Gradients.


@pytest.mark.parametrize("device", [AUTODIFF, CHECKPOINTING], ids=str)
def test_leaves_from_outside_and_passed(device):
    w = leaf(1.0, 2.0, device=device)

    def f(x):
        loss = ((w * x) ** 2).sum()
        gradients = loss.backward()
        return loss, gradients[w], w.grad(gradients), loss.is_tracked, w.is_require_grad

    x = tensor(3.0, 4.0)
    program = trace(f, x)
    assert (w.device, w.is_require_grad) == (device, True)
    for item, other in zip(program(x), f(x), strict=True):
        if isinstance(item, bool):
            assert item == other
        else:
            assert (item.device, item.tolist()) == (other.device, other.tolist())
    assert not program(x)[0].is_tracked
    passed = trace(lambda w: (w * w).sum().backward()[w], w)
    assert passed(leaf(5.0, 6.0, device=device)).tolist() == [10.0, 12.0]
    assert (w * w).sum().backward()[w].tolist() == [2.0, 4.0]


def test_hooks_and_kept_gradients_are_in_the_program():
    w, scale = leaf(1.0, 2.0), tensor(10.0)
    w.register_hook(lambda g: g * scale)

    def f(x):
        y = w * x
        y.retain_grad()
        y.register_hook(lambda g: g + 1.0)
        gradients = (y * y).sum().backward()
        return gradients[w], gradients[y]

    x = tensor(3.0, 4.0)
    program = trace(f, x)
    scale += 1.0
    assert bits(program(x)) == bits(f(x))


def test_rules_of_ones_own_and_checkpoints():
    w = tensor(2.0, 3.0)

    @burn.custom_vjp
    def doubled(x):
        return x * w

    doubled.defvjp(lambda x: (x * w, x), lambda x, g: (g * w * 2.0 + x,))
    region = burn.checkpoint(lambda y: burn.exp(doubled(y)) * w)

    def f(x):
        return burn.grad(lambda y: region(y).sum())(x), doubled(x)

    x = tensor(1.0, 2.0)
    program = trace(f, x)
    w += 1.0
    assert bits(program(x)) == bits(f(x))


def test_transforms_inside_of_a_function():
    w, x = tensor(2.0, 3.0), tensor(0.5, 0.25)

    def loss(y):
        return (burn.tanh(y) * w * y).sum()

    functions = {
        "grad of grad": lambda x: [burn.grad(lambda y: (burn.grad(loss)(y) ** 2).sum())(x)],
        "hessian": lambda x: [burn.hessian(loss)(x)],
        "jacobian": lambda x: [burn.jacobian(lambda y: burn.exp(y) * w)(x)],
        "jvp": lambda x: burn.jvp(lambda y: burn.exp(y) * w, (x,), (w,)),
        "vjp": lambda x: burn.vjp(lambda y: burn.exp(y) * w, x)[1](w),
        "vmap of grad": lambda x: [burn.vmap(burn.grad(lambda y: (y * y * w[0]).sum()))(x)],
        "grad of vmap": lambda x: [burn.grad(lambda y: burn.vmap(loss)(y * w).sum())(x[None])],
        "vmap of vmap": lambda x: [burn.vmap(lambda a: burn.vmap(lambda b: a * b + w)(x))(x)],
    }
    for name, function in functions.items():
        program = trace(function, x)
        for _ in range(2):
            assert bits(program(x)) == bits(function(x)), name
            w += 1.0


def test_a_program_is_differentiated_mapped_and_traced():
    w = tensor(2.0, 3.0)

    def f(x):
        return (burn.tanh(x) * w).sum()

    x, rows = tensor(0.5, 0.25), burn.asarray([[0.5, 1.0], [2.0, 3.0]], device=CPU)
    program = trace(f, x)
    transforms = [
        lambda g: g(x),
        lambda g: burn.grad(g)(x),
        lambda g: burn.hessian(g)(x),
        lambda g: burn.jvp(g, (x,), (x,))[1],
        lambda g: burn.vmap(g)(rows),
        lambda g: burn.vmap(burn.grad(g))(rows),
        lambda g: burn.grad(lambda y: burn.vmap(g)(y).sum())(rows),
        lambda g: burn.checkpoint(g)(x),
        lambda g: g(leaf(0.5, 0.25)).detach(),
        lambda g: burn.eval_shape(g, x) and g(x),
    ]
    for transform in transforms:
        twice = trace(lambda transform=transform: transform(program))
        for _ in range(2):
            np.testing.assert_allclose(transform(program).numpy(), transform(f).numpy(), rtol=1e-6)
            assert bits([twice()]) == bits([transform(program)])
            w += 1.0
    y = leaf(0.5, 0.25)
    assert bits([program(y).backward()[y]]) == bits([burn.grad(f)(x)])
    y = leaf(0.5, 0.25, device=CHECKPOINTING)
    assert bits([program(y).backward()[y]]) == bits([burn.grad(f)(x)])


def test_a_program_inside_of_a_program_writes_and_draws():
    count = tensor(0.0)

    def f(x):
        nonlocal count
        count += 1.0
        return x + burn.random.normal((1,), device=CPU) * count

    inner = trace(f, count)
    outer = trace(lambda x: inner(inner(x)), count)
    assert count.tolist() == [0.0]
    CPU.seed(2)
    found = [outer(tensor(1.0)).tolist() for _ in range(2)]
    assert count.tolist() == [4.0]
    count[...] = 0.0
    CPU.seed(2)
    assert found == [f(f(tensor(1.0))).tolist() for _ in range(2)]


def test_a_checkpoint_of_a_program_has_its_gradient_and_draws_the_same_numbers_again():
    def f(x):
        return burn.exp(x) * burn.random.uniform((2,), device=CPU)

    x, program = tensor(0.5, 0.25), trace(f, tensor(0.5, 0.25))
    found = []
    for function in (f, burn.checkpoint(f), program, burn.checkpoint(program)):
        CPU.seed(1)
        found.append(bits([burn.grad(lambda x, function=function: function(x).sum())(x)]))
    assert found == found[:1] * 4


def test_results_are_on_the_device_of_the_arguments():
    x, y = tensor(1.0, 2.0), burn.asarray([1.0, 2.0], device=AUTODIFF)

    def f(a):
        return a * 2.0, a[:1], a > 0.0

    for example in (x, y, leaf(1.0, 2.0)):
        program = trace(f, example)
        for argument in (x, y):
            if len(argument.device.layers) >= len(example.device.layers):
                assert [r.device for r in program(argument)] == [r.device for r in f(argument)]

    leaf_program = trace(lambda a: (a * a).sum().backward()[a], leaf(1.0, 2.0))
    assert leaf_program(leaf(3.0, 4.0)).device is CPU


# Bytes, threads, processes.


@on_each_device
def test_a_program_that_is_read_back_takes_all_inputs_and_returns_all_outputs(device):
    w, total = tensor(2.0, 3.0, device=device), tensor(0.0, 0.0, device=device)

    def f(x, number):
        nonlocal total
        total += x
        noise = burn.random.uniform((2,), device=total.device.hardware)
        made = burn.asarray(np.asarray([1.0, math.nan], np.float32), device=x.device)
        stepped = burn.optim.sgd_step(x, w, w, learning_rate=number)
        return {"y": [x * w + made, noise], "steps": stepped, "name": "f"}

    x = tensor(5.0, 6.0, device=device)
    program = trace(f, x, RuntimeNumber(0.5))
    saved = Program.from_bytes(program.to_bytes())
    assert saved.to_bytes() == program.to_bytes()
    captured = program.calling.captured
    before = [tensor.detach() for tensor in captured]
    burn.Device(device).seed(1)
    expected = program(x, 0.25)
    new = total.tolist()
    burn.Device(device).seed(1)
    y, noise, first, second, rebound = saved(x, 0.25, *before)
    assert bits([y, noise, first, second]) == bits([*expected["y"], *expected["steps"]])
    assert rebound.tolist() == new == [5.0, 6.0]
    with pytest.raises(burn.ArgumentError, match="takes 4 arguments, and was given 1"):
        saved(x)


def test_threads_call_a_program_at_once():
    w = burn.asarray(np.linspace(0.0, 1.0, 64 * 64, dtype=np.float32).reshape(64, 64), device=CPU)
    program = trace(lambda x: burn.tanh(x @ w) @ w + x.sum(), w)
    inputs = [w * float(number) for number in range(8)]
    expected = [bits([program(x)]) for x in inputs]

    def work(number):
        return all(bits([program(inputs[number])]) == expected[number] for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_threads_write_through_a_program_one_after_the_other():
    x = tensor(1.0)
    total = tensor(0.0)

    def f(x):
        nonlocal total
        total += x

    program = trace(f, x)
    for _ in range(10):
        program(x)
    assert total.tolist() == [10.0]


def replayed(data):
    program = Program.from_bytes(data)
    return program(burn.asarray([1.0, 2.0], device="cpu"))[0].tolist()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_another_process_runs_a_program(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"processes do not {method} here")
    program = trace(lambda x: burn.exp(x) * 2.0, tensor(1.0, 2.0))
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(replayed, (program.to_bytes(),)) == program(tensor(1.0, 2.0)).tolist()


def test_settings_of_numpy_do_not_change_what_a_program_gives():
    program = trace(lambda x: burn.log(x) / x + burn.exp(x * 1e4), tensor(0.0, 1.0))
    x = tensor(0.0, -1.0)
    expected = bits([program(x)])
    with np.errstate(all="raise"):
        assert bits([program(x)]) == expected


# Leaves that are the same, and writes that reach arguments.


def test_a_leaf_that_is_passed_twice_has_one_gradient():
    def f(parameters):
        gradients = (parameters["in"] * parameters["out"] * k).sum().backward()
        return parameters["in"].grad(gradients), parameters["out"].grad(gradients)

    k, w = leaf(1.0, 1.0), leaf(2.0, 3.0)
    program = trace(f, {"in": w, "out": w})
    for tied in (w, leaf(5.0, 7.0)):
        expected = [tensor.tolist() for tensor in f({"in": tied, "out": tied})]
        assert [tensor.tolist() for tensor in program({"in": tied, "out": tied})] == expected
    with pytest.raises(burn.ArgumentError, match=r"\['out'\] was the same leaf as .*\['in'\]"):
        program({"in": w, "out": leaf(2.0, 3.0)})
    apart = trace(f, {"in": w, "out": leaf(2.0, 3.0)})
    assert [tensor.tolist() for tensor in apart({"in": w, "out": leaf(1.0, 1.0)})] == [
        [1, 1],
        [2, 3],
    ]


def test_a_leaf_that_is_passed_and_closed_over_has_one_gradient():
    w = leaf(2.0, 3.0)
    program = trace(lambda p: p.grad((w * w).sum().backward()), w)
    assert program(w).tolist() == [4.0, 6.0]
    with pytest.raises(burn.ArgumentError, match="from outside of the function was the same leaf"):
        program(leaf(2.0, 3.0))


def test_a_write_to_a_tensor_from_outside_that_is_an_argument_is_refused():
    total = tensor(1.0, 2.0)

    def f(x):
        nonlocal total
        total += 1.0
        return x * 1.0

    program = trace(f, total)
    for argument in (total, total[:]):
        with pytest.raises(burn.ArgumentError, match="shares elements"):
            program(argument)
    assert total.tolist() == [1.0, 2.0]
    assert program(tensor(5.0, 6.0)).tolist() == [5.0, 6.0]
    assert total.tolist() == [2.0, 3.0]


# Copies.


@pytest.mark.parametrize("is_called", [False, True])
def test_a_program_is_pickled_and_copied(is_called):
    w, x = tensor(1.0, 2.0), tensor(3.0, 4.0)
    program = trace(lambda x: {"y": x * w + tensor(1.0, 0.0)}, x)
    if is_called:
        program(x)
    sent, deep, same = (
        pickle.loads(pickle.dumps(program)),
        copy.deepcopy(program),
        copy.copy(program),
    )
    w += 10.0
    assert [function(x)["y"].tolist() for function in (sent, deep)] == [[4.0, 8.0]] * 2
    assert [function(x)["y"].tolist() for function in (same, program)] == [[34.0, 48.0]] * 2
    both, module = copy.deepcopy((program, w))
    module *= 0.0
    assert both(x)["y"].tolist() == [1.0, 0.0]


def test_a_program_is_equal_to_itself_alone():
    program, other = [trace(lambda x: x + 1.0, tensor(1.0)) for _ in range(2)]
    assert program.operations == other.operations
    assert len({program, other, program}) == 2


def test_a_constant_may_be_nan():
    program = trace(lambda x, fill: burn.where(x > 0, x, fill), tensor(1.0, -1.0), float("nan"))
    assert program(tensor(1.0, -1.0), float("nan"))[0].item() == 1.0
    with pytest.raises(burn.ArgumentError, match="traced with nan"):
        program(tensor(1.0, -1.0), 0.0)


def test_an_argument_that_is_no_tensor_says_how_to_make_one():
    program = trace(lambda x: x + 1.0, tensor(1.0))
    with pytest.raises(burn.OperandTypeError, match=r"arguments\[0\].*ndarray.*burn\.asarray"):
        program(np.ones(1, np.float32))


# Traces inside of a function that is traced.


def test_a_trace_inside_of_a_trace_uses_tensors_of_each_around_it():
    k, x = tensor(10.0, 100.0), tensor(1.0, 2.0)

    def f(x):
        made = x + 1.0
        inner = trace(lambda z: trace(lambda: made * z * k + x)(), x)
        return inner(x) + inner(made) + made * trace(lambda: made * x)()

    program = trace(f, x)
    for argument in (x, tensor(3.0, 4.0)):
        assert bits([program(argument)]) == bits([f(argument)])
    k += 1.0
    assert bits([program(x)]) == bits([f(x)])
    assert burn.eval_shape(lambda x: (x, burn.eval_shape(lambda: x * 2.0))[1], x).shape == (2,)


def test_a_program_that_takes_no_gradients_is_tracked_by_its_leaves():
    device = burn.Device("cpu").autodiff()
    w = burn.asarray([1.0, 2.0], device=device).require_grad()
    x = burn.asarray([3.0, 4.0], device=device)

    def forward(x):
        return burn.tanh(w * x).sum()

    expected = forward(x).backward()[w]
    outside = trace(forward, x)(x)
    passed = trace(lambda w, x: burn.tanh(w * x).sum(), w, x)(w, x)
    assert outside.backward()[w].tolist() == pytest.approx(expected.tolist())
    assert passed.backward()[w].tolist() == pytest.approx(expected.tolist())


def test_results_are_tracked_where_those_of_the_function_are():
    device = burn.Device("cpu").autodiff()
    w = burn.asarray([1.0, 2.0], device=device).require_grad()
    x = burn.asarray([3.0, 4.0], device=device)

    def several(w, x):
        gradient = (w * w).sum().backward()[w]
        return (w * x).sum(), gradient, x * 2.0

    tracked, gradient, constant = trace(several, w, x)(w, x)
    assert (tracked.is_tracked, gradient.is_tracked, constant.is_tracked) == (True, False, False)
    assert (gradient.device, str(constant.device)) == (several(w, x)[1].device, str(device))
    assert tracked.backward()[w].tolist() == x.tolist()


def test_each_operation_of_a_long_program_has_its_line():
    def f(x):
        for _ in range(600):
            x = x + 1.0
            x = x * 0.5
        return x

    program = trace(f, tensor(1.0, 2.0))
    loaded = Program.from_bytes(program.to_bytes())
    for run in (program, loaded):
        with burn.profile(show=False) as profile:
            run(tensor(1.0, 2.0))
        lines = [line_of(f, "x + 1.0"), line_of(f, "x * 0.5")] * 600
        assert [event.line.rpartition("/")[2] for event in profile.events[-1200:]] == lines


def test_a_backend_that_does_not_count_variables_writes_nothing_in_place(monkeypatch):
    def f(x):
        made = burn.exp(x)
        same = burn.apply_op("cast", made, dtype=burn.float32)  # the backend returns its operand
        return burn.apply_op("slice_assign", same, 9.0, slices=((0, 1, 1),)), made

    x = tensor(0.0, 0.0)
    expected = [tensor.tolist() for tensor in f(x)]
    backend = type(burn.Device("cpu").ops.backend)
    monkeypatch.setattr(backend, "can_write", lambda *_: True)
    assert [tensor.tolist() for tensor in trace(f, x)(x)] == expected


def test_a_write_to_a_tensor_that_is_made_inside_copies_nothing(monkeypatch):
    def fill(rows):
        table = burn.zeros((3, 4), device="cpu")
        first = table[0]
        for index in range(3):
            table[index] = rows[index]
        return table, first, rows

    rows = burn.asarray([[1.0] * 4, [2.0] * 4, [3.0] * 4], device="cpu")
    program = trace(fill, rows)
    expected = [tensor.tolist() for tensor in fill(rows)]
    backend = burn.Device("cpu").ops.backend
    writes = []
    write = type(backend).write_slice

    def counted(self, x, value, *, slices):
        writes.append(slices)
        write(self, x, value, slices=slices)

    monkeypatch.setattr(type(backend), "write_slice", counted)
    assert [tensor.tolist() for tensor in program(rows)] == expected
    assert writes
    rows[0] = 9.0
    kept = rows.tolist()
    assert program(rows)[0].tolist() == kept
    assert rows.tolist() == kept
