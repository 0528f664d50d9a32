"""burn.compile: signatures, arguments and results, what traces anew, and switching it off."""

import copy
import dataclasses
import functools
import gc
import inspect
import math
import multiprocessing
import pickle
import threading
import warnings
import weakref
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import burn
from burn import nn
from burn.ir import OperationIr, RuntimeNumber
from burn.router import recorder
from burn.transforms import Compiled
from burn.transforms.tracing import Tracing

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = ["cpu", "torch/cpu", "opencl"]

pytestmark = pytest.mark.usefixtures("no_transform_is_left")
on_each_device = pytest.mark.parametrize("device", DEVICES)


def tensor(*values, device=CPU, **options):
    return burn.asarray(values, device=device, **options)


def leaf(*values, device=AUTODIFF):
    return tensor(*values, device=device).require_grad()


class Counted:
    """A function whose Python code counts how often it runs."""

    def __init__(self, function):
        self.function, self.count = function, 0
        functools.update_wrapper(self, function)

    def __call__(self, *args, **keywords):
        self.count += 1
        return self.function(*args, **keywords)


def compiled(function, **options):
    counted = Counted(function)
    return burn.compile(counted, **options), counted


# Arguments and results.


@on_each_device
def test_a_compiled_function_gives_what_the_function_gives(device):
    def function(x, y):
        return burn.exp(x) * y + burn.sum(x), {"mean": burn.mean(y)}

    step, counted = compiled(function)
    x, y = tensor(0.5, -1.0, device=device), tensor(2.0, 3.0, device=device)
    expected = function(x, y)
    for _ in range(3):
        found = step(x, y)
        np.testing.assert_allclose(found[0].tolist(), expected[0].tolist(), 1e-6)
        assert found[1]["mean"].tolist() == expected[1]["mean"].tolist()
        assert found[0].device == x.device
    assert counted.count == 1
    np.testing.assert_allclose(step(y, x)[0].tolist(), function(y, x)[0].tolist(), 1e-6)
    assert counted.count == 1


def test_it_decorates_with_and_without_options():
    @burn.compile
    def one(x):
        """The docstring."""
        return x + 1.0

    @burn.compile(donate="x")
    def other(x):
        return x + 2.0

    assert isinstance(one, Compiled)
    assert (one.__name__, one.__doc__, one.__wrapped__(tensor(1.0)).tolist()) == (
        "one",
        "The docstring.",
        [2.0],
    )
    assert one(tensor(1.0)).tolist() == [2.0]
    assert other(tensor(1.0)).tolist() == [3.0]
    assert "one" in repr(one)
    assert list(inspect.signature(one).parameters) == ["x"]


def test_methods_are_bound():
    class Scale:
        def __init__(self, factor):
            self.factor = tensor(factor)

        @burn.compile
        def __call__(self, x):
            return x * self.factor

        @burn.compile
        def twice(self, x, *, plus=0.0):
            return self(x) * 2.0 + plus

    two, three = Scale(2.0), Scale(3.0)
    assert two(tensor(5.0)).tolist() == [10.0]
    assert three(tensor(5.0)).tolist() == [15.0]
    assert two.twice(tensor(5.0)).tolist() == [20.0]
    assert two.twice(tensor(5.0), plus=1.0).tolist() == [21.0]
    assert Scale.twice.programs == 2
    assert two.twice.programs == 2
    bound = burn.compile(two.__call__)
    assert bound(tensor(1.0)).tolist() == [2.0]


class Pair(NamedTuple):
    a: object
    b: object


class Box:
    def __init__(self, x, name):
        self.x, self.name = x, name


burn.tree.register(Box, lambda item: ((item.x,), item.name), lambda name, parts: Box(*parts, name))


def test_containers_go_in_and_out():
    def function(x):
        return {
            "list": [x["pair"].a + 1.0, None, ("text", 3)],
            "pair": Pair(x["pair"].b, x["box"].x),
            "box": Box(x["box"].x * 2.0, x["box"].name + "!"),
            "ordered": OrderedDict(z=x["list"][0] * 1.0, a=x["list"][1]),
        }

    step, counted = compiled(function)

    def argument(name="b"):
        return {
            "pair": Pair(tensor(1.0), tensor(2.0)),
            "box": Box(tensor(3.0), name),
            "list": [tensor(4.0), None],
        }

    for _ in range(2):
        found = step(argument())
        assert found["list"][0].tolist() == [2.0]
        assert found["list"][1:] == [None, ("text", 3)]
        assert isinstance(found["pair"], Pair)
        assert found["pair"].a.tolist() == [2.0]
        assert (found["box"].x.tolist(), found["box"].name) == ([6.0], "b!")
        assert list(found["ordered"]) == ["z", "a"]
        assert found["ordered"]["a"] is None
    assert counted.count == 1
    assert step(argument("c"))["box"].name == "c!"
    assert counted.count == 2
    assert step({**argument(), "list": [tensor(4.0)] * 1 + [None]})["pair"].b.tolist() == [3.0]
    assert counted.count == 2


def test_a_dict_in_another_order_is_the_same_signature():
    step, counted = compiled(lambda batch, scale=1.0: batch["x"] - batch["y"])
    x, y = tensor(5.0), tensor(3.0)
    assert step({"x": x, "y": y}).tolist() == [2.0]
    assert step({"y": y, "x": x}).tolist() == [2.0]
    assert counted.count == 1
    with pytest.raises(KeyError):
        step({"x": x, "z": y})
    assert step(batch={"x": x, "y": y}, scale=1.0).tolist() == [2.0]
    assert step(scale=1.0, batch={"x": x, "y": y}).tolist() == [2.0]
    assert counted.count == 3  # the one with z too


def test_a_tensor_that_is_passed_on_is_the_same_object():
    outside = tensor(7.0)
    step, _ = compiled(lambda x, y: (x, y + x, outside))
    x, y = tensor(1.0), tensor(2.0)
    for _ in range(2):
        first, total, last = step(x, y)
        assert first is x
        assert last is outside
        assert total.tolist() == [3.0]


def test_a_device_that_is_returned_is_none_of_the_trace():
    step, _ = compiled(lambda x: (x.device, [x + 1.0, (x + 1.0).device]))
    for device in (CPU, AUTODIFF):
        first, (_, second) = step(tensor(1.0, device=device))
        assert first == second == device


@on_each_device
def test_what_is_flat_far_from_zero_has_no_gradient_there(device):
    x = burn.asarray([9.5, 50.0, -50.0, 3e38, -3e38], dtype="float32", device=device)
    step, _ = compiled(burn.grad(lambda x: (x * burn.tanh(x)).sum()))
    np.testing.assert_allclose(step(x).tolist(), [1.0, 1.0, -1.0, 1.0, -1.0], rtol=1e-5)


@on_each_device
@pytest.mark.parametrize("length", [5, 33])
def test_transposed_operands_of_odd_lengths(device, length):
    values = np.random.default_rng(0).normal(size=(length, length)).astype(np.float32)
    x = burn.asarray(values, device=device)
    step, _ = compiled(lambda x: [x + x.T, x * burn.tanh(x * (x + 1.0).T)])
    shifted = values * np.tanh(values * (values + 1.0).T)
    for found, expected in zip(step(x), (values + values.T, shifted), strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_result_that_is_there_twice_is_one_tensor():
    def function(x):
        y = x + 1.0
        return y, [y]

    y, (same,) = burn.compile(function)(tensor(1.0))
    assert y is same


def test_a_function_without_tensors_is_called_once():
    step, counted = compiled(lambda n: n + 1)
    assert [step(1), step(1), step(2)] == [2, 2, 3]
    assert counted.count == 2
    assert step.explain() == "nothing runs"


def test_a_function_may_make_its_tensors():
    step, counted = compiled(lambda n: burn.arange(n, device=CPU) * 2)
    assert step(3).tolist() == step(3).tolist() == [0, 2, 4]
    assert counted.count == 1


# What is a signature.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("a", "b"),
        ((1, 2), [1, 2]),
        (None, 0),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1, 2]), np.array([1, 2], np.int32)),
        ({1}, {2}),
        (np.float32(1.0), np.float64(1.0)),
    ],
)
def test_python_values_are_constants(one, other):
    step, counted = compiled(lambda x, value: (x + 1.0, value))
    x = tensor(1.0)
    for _ in range(2):
        for value in (one, other):
            found = step(x, value)[1]
            assert found is value or (type(found) is type(value) and np.all(found == value))
    assert counted.count == 2


def test_not_a_number_is_one_value():
    step, counted = compiled(lambda x, value: x + value)
    for value in (math.nan, float("nan"), math.nan):
        assert math.isnan(step(tensor(1.0), value).item())
    assert counted.count == 1
    step, counted = compiled(lambda x, value: x + float(value))
    for _ in range(3):
        assert math.isnan(step(tensor(1.0), np.float64("nan")).item())
    assert counted.count == 1


def test_an_array_that_changes_is_another_constant():
    step, counted = compiled(lambda x, value: x + burn.asarray(value, device=CPU))
    value = np.array([1.0], np.float32)
    assert step(tensor(1.0), value).tolist() == [2.0]
    value[0] = 5.0
    assert step(tensor(1.0), value).tolist() == [6.0]
    assert counted.count == 2


def test_a_dataclass_that_changes_is_another_constant():
    @dataclasses.dataclass
    class Options:
        factor: float
        shifts: list
        weight: burn.Tensor

    weights = tensor(1.0), tensor(1.0)
    step, counted = compiled(lambda x, o: o.factor * x * o.weight + sum(o.shifts))
    options = Options(2.0, [1.0], weights[0])
    assert step(tensor(1.0), options).tolist() == [3.0]
    options.factor = 3.0
    assert step(tensor(1.0), options).tolist() == [4.0]
    options.shifts.append(5.0)
    assert step(tensor(1.0), options).tolist() == [9.0]
    options.weight = weights[1]
    weights[1][...] = 2.0
    assert step(tensor(1.0), options).tolist() == [12.0]
    assert step(tensor(1.0), Options(2.0, [1.0], weights[0])).tolist() == [3.0]
    assert counted.count == 4


def test_an_object_that_refuses_comparison_is_compared_by_identity():
    class Refusing:
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError

    one, other = Refusing(), Refusing()
    step, counted = compiled(lambda x, value: x + 1.0)
    for value in (one, other, one, other):
        step(tensor(1.0), value)
    assert counted.count == 2


@pytest.mark.parametrize(
    "other",
    [
        tensor(1.0, 2.0, 3.0),
        tensor(1, 2),
        tensor(1.0, 2.0, dtype="float64"),
        tensor(1.0, 2.0, device="torch/cpu"),
        tensor(1.0, 2.0, device=AUTODIFF),
        leaf(1.0, 2.0),
        leaf(1.0, 2.0) * 1.0,
    ],
    ids=["shape", "dtype", "width", "device", "autodiff", "leaf", "tracked"],
)
def test_tensors_of_another_kind_trace_anew(other):
    step, counted = compiled(lambda x: x + x)
    one = tensor(1.0, 2.0)
    for _ in range(2):
        for x in (one, other):
            found = step(x)
            assert found.tolist() == (x + x).tolist()
            assert (found.dtype, found.device, str(found.device), found.is_tracked) == (
                x.dtype,
                x.device,
                str(x.device),
                x.is_tracked,
            )
    assert counted.count == 2


def test_a_tensor_that_is_passed_twice_is_one():
    def function(x, y):
        x += 1.0
        return y * 1.0

    step, counted = compiled(function)
    x, y = tensor(1.0), tensor(1.0)
    assert step(x, y).tolist() == [1.0]
    assert step(x, x).tolist() == [3.0]
    assert step(y, x).tolist() == [3.0]
    assert (x.tolist(), y.tolist()) == ([3.0], [2.0])
    assert counted.count == 2


def test_a_runtime_number_is_an_input():
    def function(x, gradient, rate):
        return burn.optim.sgd_step(x, gradient, burn.zeros_like(x), learning_rate=rate)[0]

    step, counted = compiled(function)
    x, gradient = tensor(1.0), tensor(2.0)
    found = [step(x, gradient, RuntimeNumber(rate)).tolist() for rate in (0.5, 0.25, 1.0)]
    assert found == [[0.0], [0.5], [-1.0]]
    assert counted.count == 1
    assert step(x, gradient, RuntimeNumber(1)).tolist() == [-1.0]
    assert counted.count == 2
    with pytest.raises(burn.TraceError, match="runtime number"):
        burn.compile(lambda rate: rate)(RuntimeNumber(0.5))


def test_the_context_is_part_of_the_signature():
    x = leaf(1.0, 2.0)
    step, counted = compiled(lambda: x * 2.0)
    for _ in range(2):
        assert step().is_tracked
        with burn.no_grad():
            assert not step().is_tracked
    assert counted.count == 2
    make, counted = compiled(lambda: burn.ones(2))
    for _ in range(2):
        for device in ("cpu", "torch/cpu"):
            with burn.default_device(device):
                assert make().device == burn.Device(device)
    assert counted.count == 2


def test_the_settings_of_a_device_cannot_change_after_a_trace():
    burn.compile(lambda: burn.ones(2, device=CPU))()
    with pytest.raises(burn.ArgumentError, match="in use"):
        CPU.configure(float_dtype="float64")


def test_the_least_recently_used_program_is_forgotten_first():
    step, counted = compiled(lambda x, n: x + float(n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(64):
            step(tensor(1.0), n)
        assert step(tensor(1.0), 0).tolist() == [1.0]
        assert (step.programs, counted.count) == (64, 64)
        step(tensor(1.0), 64)
        assert (step.programs, counted.count) == (64, 65)
        step(tensor(1.0), 0)
        assert counted.count == 65
        step(tensor(1.0), 1)
        assert counted.count == 66


def test_a_warning_names_what_changes():
    step, _ = compiled(lambda x, rate: x * rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8):
            step(tensor(1.0), 0.5 + n)
    with pytest.warns(UserWarning, match=r"9th time.*rate was 7.5 and is 8.5.*RuntimeNumber"):
        step(tensor(1.0), 8.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(tensor(1.0), 9.5)
    step, _ = compiled(lambda x: x * 2.0)
    for n in range(1, 9):
        step(burn.ones(n, device=CPU))
    with pytest.warns(UserWarning, match=r"x was float32\[8\] on cpu:0 and is float32\[9\]"):
        step(burn.ones(9, device=CPU))


# Switched off, inside of transforms, errors.


def test_the_environment_switches_it_off(monkeypatch):
    step, counted = compiled(lambda x: x + 1.0)
    monkeypatch.setenv("BURN_COMPILE", "0")
    assert step(tensor(1.0)).tolist() == step(tensor(1.0)).tolist() == [2.0]
    assert (counted.count, step.programs) == (2, 0)
    monkeypatch.setenv("BURN_COMPILE", "1")
    step(tensor(1.0))
    assert step.programs == 1


def test_a_setting_of_the_device_switches_it_off():
    step, counted = compiled(lambda x: x + 1.0)
    outside = tensor(1.0)
    closed, closed_count = compiled(lambda: outside + 1.0)
    step(outside), closed()
    try:
        CPU.configure(compile=False)
        assert not AUTODIFF.settings.compile
        for _ in range(2):
            assert step(tensor(1.0)).tolist() == closed().tolist() == [2.0]
        assert counted.count == 3
        assert closed_count.count > 2
    finally:
        CPU.configure(compile=True)
    step(outside), closed()
    assert counted.count == 3


def test_inside_of_transforms_and_traces_it_is_the_function():
    step, counted = compiled(lambda x: burn.sum(burn.sin(x) * x))
    x = tensor(0.5, 1.5)
    step(x)
    plain = counted.function
    for _ in range(2):
        assert burn.grad(step)(x).tolist() == burn.grad(plain)(x).tolist()
    rows = burn.asarray([[0.5, 1.5], [1.0, 2.0]], device=CPU)
    assert burn.vmap(step)(rows).tolist() == burn.vmap(plain)(rows).tolist()
    assert burn.hessian(step)(x).tolist() == burn.hessian(plain)(x).tolist()
    assert burn.ir.trace(step, x)(x).tolist() == plain(x).tolist()
    assert burn.eval_shape(step, x).shape == ()
    assert step.programs == 1
    outer = burn.compile(lambda x: step(x) * burn.grad(step)(x))
    assert outer(x).tolist() == (plain(x) * burn.grad(plain)(x)).tolist()
    assert len(outer.graph.operations) > 3
    y = leaf(0.5, 1.5)
    found = burn.checkpoint(step)(y)
    assert y.grad(found.backward()).tolist() == burn.grad(plain)(x).tolist()


def test_a_branch_on_a_value_names_its_line_and_the_alternatives():
    def function(x):
        if burn.sum(x) > 0.0:
            return x
        return -x

    step = burn.compile(function)
    with pytest.raises(burn.TraceError, match=r"test_compile.py:\d+") as error:
        step(tensor(1.0))
    assert all(name in str(error.value) for name in ("burn.where", "burn.cond", "burn.while_loop"))
    assert step.programs == 0


def test_a_tensor_that_is_kept_elsewhere_is_an_error():
    kept = []

    def function(x):
        kept.append(x + 1.0)
        return x

    step = burn.compile(function)
    with pytest.raises(burn.TraceError, match="kept"):
        step(tensor(1.0))
    kept.clear()


def test_a_result_that_hides_tensors_is_an_error():
    class Hidden:
        def __init__(self, x):
            self.x = x

    with pytest.raises(burn.TraceError, match="attribute 'x' of an object of type Hidden"):
        burn.compile(lambda x: Hidden(x + 1.0))(tensor(1.0))


def test_gradients_are_not_returned():
    x = leaf(1.0, 2.0)
    with pytest.raises(burn.TraceError, match="a part of its result that is no container"):
        burn.compile(lambda: (x * x).sum().backward())()


def test_a_list_or_dict_that_the_function_changes_is_an_error():
    def append(x, items):
        items.append(x + 1.0)
        return x

    def update(x, items):
        items["y"] = x + 1.0
        return x

    with pytest.raises(burn.TraceError, match="changes the list items"):
        burn.compile(append)(tensor(1.0), [])
    with pytest.raises(burn.TraceError, match="changes the dict items"):
        burn.compile(update)(tensor(1.0), {"y": tensor(2.0)})


@on_each_device
def test_an_error_of_a_value_names_the_op_and_the_line(device):
    matrix = burn.asarray([[1.0, 0.0], [0.0, 1.0]], device=device)
    step, _ = compiled(lambda x: burn.linalg.inv(x))
    step(matrix)
    with pytest.raises(burn.BurnError, match=r"(inv|solve).*test_compile.py:\d+"):
        step(matrix * 0.0)
    assert step(matrix).tolist() == matrix.tolist()


def test_wrong_options_and_functions_are_refused():
    with pytest.raises(burn.OperandTypeError, match="takes a function"):
        burn.compile(3)
    for donate in ([1.5], 1.5, None):
        with pytest.raises(burn.OperandTypeError, match="donate"):
            burn.compile(lambda x: x, donate=donate)
    with pytest.raises(burn.ArgumentError, match="no positional argument 3"):
        burn.compile(lambda x: x + 1.0, donate=3)(tensor(1.0))
    with pytest.raises(burn.ArgumentError, match="no argument 'z'"):
        burn.compile(lambda x: x + 1.0, donate="z")(tensor(1.0))
    with pytest.raises(burn.ArgumentError, match="not compiled yet"):
        burn.compile(lambda x: x).graph  # noqa: B018 — it raises


# What was compiled.


def test_it_shows_what_was_compiled():
    step, _ = compiled(lambda x: burn.exp(x) + 1.0)
    step(tensor(1.0, 2.0))
    assert [operation.name for operation in step.graph.operations] == ["exp", "add"]
    assert step.cost().total.flops > 0
    assert step.svg().startswith("<svg")
    assert (">0 kernel: " in step.svg()) == ("0 kernel" in step.explain())
    assert ">0 kernel: " not in step.graph.svg()
    assert step.explain()
    assert isinstance(step.kernels, dict)
    step(tensor(1.0, 2.0, 3.0))
    assert step.graph.inputs[0].shape == (3,)
    step(tensor(1.0, 2.0))
    assert step.graph.inputs[0].shape == (2,)
    assert step.programs == 2
    step.clear()
    assert step.programs == 0


# Random numbers, threads, memory.


@on_each_device
def test_random_numbers_are_those_of_the_function(device):
    def function(x):
        noise = burn.random.normal(x.shape, device=x.device)
        return x + noise, burn.random.uniform((3,), device=x.device)

    x = burn.zeros((5,), device=device)
    step, counted = compiled(function)
    found, expected = [], []
    for call, results in ((step, found), (function, expected)):
        x.device.seed(3)
        for _ in range(3):
            results += [tensor.tolist() for tensor in call(x)]
    assert found == expected
    assert counted.count == 1


def test_threads_call_a_function_at_once():
    total = burn.zeros((), device=CPU)
    weight = tensor(2.0, 3.0)

    def function(x):
        total[...] = total + burn.sum(x)
        return burn.matmul(x, weight)

    step, _ = compiled(function)
    arguments = [burn.full((n % 3 + 1, 2), float(n), device=CPU) for n in range(60)]
    barrier = threading.Barrier(6)

    def run(part):
        barrier.wait()
        return [step(x).tolist() for x in part]

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(run, [arguments[index::6] for index in range(6)]))
    for index in range(6):
        assert found[index] == [(x @ weight).tolist() for x in arguments[index::6]]
    assert total.item() == sum(float(burn.sum(x).item()) for x in arguments)
    assert step.programs == 3


TRACES = {
    "compile": burn.compile,
    "trace": lambda function: functools.partial(burn.ir.trace, function),
    "eval_shape": lambda function: functools.partial(burn.eval_shape, function),
}


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("kind", ["plain", "view", "leaf"])
def test_other_threads_see_no_trace(name, kind):
    weight = tensor(2.0, 3.0)
    if kind == "view":
        weight = tensor(2.0, 0.0, 3.0)[::2]
    if kind == "leaf":
        weight = tensor(2.0, 3.0).to_device(CPU.autodiff()).require_grad()
    shifted, counted = compiled(lambda x: x + weight)
    uses = {
        "tolist": lambda: weight.tolist(),
        "numpy": lambda: weight.detach().numpy().tolist(),
        "repr": lambda: repr(weight),
        "bool": lambda: bool(weight.sum() > 1.0),
        "attributes": lambda: (weight.shape, weight.dtype, weight.device, weight.is_require_grad),
        "class": lambda: (isinstance(weight, burn.Tensor), weight.__class__),
        "add": lambda: (weight + 1.0).tolist(),
        "both": lambda: burn.stack([weight, weight]).tolist(),
        "views": lambda: (weight[0].item(), weight.reshape((2, 1)).tolist()),
        "dlpack": lambda: np.from_dlpack(weight.detach()).tolist(),
        "pickle": lambda: pickle.loads(pickle.dumps(weight)).tolist(),
        "copy": lambda: copy.copy(weight).tolist(),
        "to_device": lambda: weight.to_device(CPU.autodiff()).tolist(),
        "compiled": lambda: shifted(tensor(1.0)).tolist(),
    }
    expected = {key: use() for key, use in uses.items()}
    found = []

    def function(x):
        y = x * weight
        part = weight[0]
        with ThreadPoolExecutor(1) as pool:
            found.append({key: pool.submit(use).result(60.0) for key, use in uses.items()})
        return burn.sum(y.detach()) + part.detach()

    TRACES[name](function)(tensor(1.0))
    assert found[0] == expected
    assert counted.count == 1
    assert type(weight) is burn.Tensor


def test_writes_of_other_threads_go_on_while_a_function_is_traced():
    weight, other = tensor(2.0, 3.0), tensor(5.0)
    view = weight[1:]

    def write():
        weight[0] = 7.0
        view[...] = 8.0
        other.__iadd__(1.0)
        return weight.tolist()

    def function(x):
        inner = weight[:1]
        y = x * weight + other
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(write).result(60.0) == [7.0, 8.0]
        other[...] = other * 2.0
        return y, inner * 1.0, inner + weight

    results = [tensor.tolist() for tensor in burn.compile(function)(tensor(1.0))]
    assert results == [[13.0, 14.0], [7.0], [14.0, 15.0]]
    assert weight.tolist() == [7.0, 8.0]
    assert view.tolist() == [8.0]
    assert other.tolist() == [12.0]


def in_another_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(60.0)


def views_of(x):
    """The views of a tensor that are alive, as the running thread sees them."""
    return [view for view in [function() for function in x.link or ()] if view is not None]


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("kind", ["root", "view"])
def test_other_threads_see_no_view_that_a_trace_makes(name, kind):
    root = burn.zeros((2, 2), device=CPU)
    own = root[...]
    weight = root if kind == "root" else root[:1]
    seen = []

    def function(x):
        first, second = weight.mT, weight.reshape((-1,))
        third = second[:1]
        seen.append(in_another_thread(lambda: [id(view) for view in views_of(root)]))
        weight[...] = 1.0
        return x * first, second, third

    before = [id(view) for view in views_of(root)]
    TRACES[name](function)(tensor(1.0))
    assert seen == [before]
    assert id(own) in before


@on_each_device
def test_a_view_that_a_trace_returns_has_what_other_threads_write_at_its_end(device, monkeypatch):
    weight = burn.zeros((2, 2), device=device)
    leave = Tracing.__exit__
    found = []

    def write():
        found.append(len(views_of(weight)))
        weight[0] = weight[0] + 1.0

    def leave_and_write(trace, *exception):  # the trace has ended, and its result is still there
        leave(trace, *exception)
        in_another_thread(write)

    monkeypatch.setattr(Tracing, "__exit__", leave_and_write)
    step = burn.compile(lambda x: (x * 2.0, weight.mT))
    _, view = step(tensor(1.0, device=device))
    assert found == [0]
    assert view.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    weight[0, 1] = 7.0
    assert view.tolist() == [[1.0, 0.0], [7.0, 0.0]]
    view[1, 1] = 9.0
    assert weight.tolist() == [[1.0, 7.0], [0.0, 9.0]]


def test_a_write_of_another_thread_while_a_trace_makes_a_view_adds_nothing_to_the_program(
    monkeypatch,
):
    root = burn.zeros((2, 3), device=CPU)
    view = root[:1]
    other = tensor(1.0)
    source_line = recorder.source_line
    writes = [lambda: other.__setitem__(0, 2.0)]

    def write_and_find():  # the first operation is written down now
        while writes:
            in_another_thread(writes.pop())
        return source_line()

    monkeypatch.setattr(recorder, "source_line", write_and_find)
    program = burn.ir.trace(lambda x: x * view.mT.reshape((-1,)), burn.ones(3, device=CPU))
    monkeypatch.undo()
    assert other.tolist() == [2.0]
    operations = [
        operation.name for operation in program.operations if isinstance(operation, OperationIr)
    ]
    assert operations == ["permute", "reshape", "multiply"]
    assert [item is view for item in program.calling.captured] == [True]


@pytest.mark.parametrize("name", ["compile", "trace"])
def test_a_view_that_a_trace_makes_independent_remains_a_view_until_the_program_runs(name):
    root = tensor(1.0, 2.0)
    view = root[:1]
    seen = []

    def write():
        root[0] = 3.0
        seen.append(view.tolist())

    def function(x):
        view.assign(x * 2.0)
        in_another_thread(write)
        root[...] = root + x
        return view * 1.0

    def fails(x):
        function(x)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        TRACES[name](fails)(tensor(5.0))
    assert seen == [[3.0]]
    call = TRACES[name](function)(tensor(5.0))
    if name == "trace":
        call = call(tensor(5.0))
    assert call.tolist() == view.tolist() == [10.0]
    assert root.tolist() == [8.0, 7.0]
    root[0] = 4.0
    assert view.tolist() == [10.0]


@on_each_device
def test_a_view_that_is_kept_from_a_trace_refuses_writes_and_hinders_none(device):
    weight = burn.zeros((2, 2), device=device)
    kept = []

    def function(x):
        kept.append(weight.mT)
        return x

    with pytest.raises(burn.errors.TraceError, match="keeps a tensor"):
        burn.compile(function)(tensor(1.0, device=device))
    weight[0] = 1.0
    with pytest.raises(burn.errors.TraceError, match="was kept from a trace that has ended"):
        kept[0][0] = 2.0
    assert weight.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_traces_of_two_threads_share_a_tensor():
    weight = tensor(2.0)
    barrier = threading.Barrier(2)

    def function(x):
        view = weight[...]
        y = x * view
        barrier.wait(60.0)
        weight[...] = y + 1.0
        barrier.wait(60.0)
        return weight * view

    with ThreadPoolExecutor(2) as pool:
        traces = [pool.submit(burn.ir.trace, function, tensor(1.0)) for _ in range(2)]
        programs = [trace.result(60.0) for trace in traces]
    assert weight.tolist() == [2.0]
    assert programs[0](tensor(1.0)).tolist() == [9.0]
    assert programs[1](tensor(1.0)).tolist() == [16.0]


def test_a_trace_that_fails_leaves_tensors_alone():
    weight = tensor(2.0)

    def function(x):
        y = burn.cond(x > 0.0, lambda item: item * weight, lambda item: item - weight, x * weight)
        return bool(y > 0.0)

    with pytest.raises(burn.errors.TraceError):
        burn.compile(function)(tensor(1.0)[0])
    assert type(weight) is burn.Tensor
    assert weight.tolist() == [2.0]


def test_many_calls_leave_nothing_behind(many):
    weight = burn.zeros((100,), device=CPU)

    def function(x):
        weight[...] = weight + x
        return burn.sum(weight)

    step = burn.compile(function)
    x = burn.ones((100,), device=CPU)
    for _ in range(100):
        step(x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(many):
        step(x)
    gc.collect()
    assert len(gc.get_objects()) <= before + 10
    assert weight.tolist() == [100.0 + many] * 100


def test_arguments_are_not_kept():
    step = burn.compile(lambda x, batch: x + batch["y"])
    x, y = tensor(1.0), tensor(2.0)
    references = [weakref.ref(x), weakref.ref(y)]
    step(x, {"y": y})
    step(x, {"y": y})
    del x, y
    gc.collect()
    assert [reference() for reference in references] == [None, None]


# Other processes, copies, observers, control flow.


@burn.compile
def doubled(x):
    return x * 2.0


def test_a_compiled_function_is_pickled_and_copied():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    for item in (copy.deepcopy(doubled), copy.copy(doubled)):
        assert item is doubled
    made = burn.compile(math.fsum)
    assert pickle.loads(pickle.dumps(made))([1.0, 2.0]) == 3.0
    model = nn.Linear(2, 1, device=CPU)
    model.run = burn.compile(model.forward)
    other = copy.deepcopy(model)
    other.weight.assign(burn.zeros_like(other.weight))
    x = tensor(1.0, 1.0)
    assert other.run(x).tolist() == other(x).tolist() != model.run(x).tolist()


def run_in_child(connection, x):
    connection.send(doubled(x).tolist())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_child_process_compiles_for_itself():
    x = tensor(1.0, 2.0)
    doubled(x)
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    child = context.Process(target=run_in_child, args=(other, x))
    with doubled._lock:  # as if another thread held it
        child.start()
        assert mine.poll(60.0)
        assert mine.recv() == [2.0, 4.0]
    child.join()


def test_profiles_and_logs_see_a_program_without_changing_it():
    step, counted = compiled(lambda x: burn.sin(x) + 1.0)
    x = tensor(0.5)
    expected = step(x).tolist()
    with burn.profile():
        assert step(x).tolist() == expected
    assert step(x).tolist() == expected
    assert counted.count == 1


@on_each_device
def test_control_flow_is_part_of_a_program(device):
    def function(x, n):
        x = burn.cond(burn.sum(x) > 0.0, lambda x: x * 2.0, lambda x: x - 1.0, x)
        return burn.fori_loop(0, 3, lambda i, x: x + 1.0, x)

    step, counted = compiled(function)
    for values in ([1.0, 2.0], [-1.0, -2.0]):
        x = burn.asarray(values, device=device)
        np.testing.assert_allclose(step(x, 3).tolist(), function(x, 3).tolist(), 1e-6)
    assert counted.count == 1
