"""Suite ``compiled_calls``: a compiled function that is called again, with something else."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.compiler import compiled
from burn.devices import Device
from burn.dtype import bool_, float32, int32
from burn.errors import ExecutionError, OutOfRangeError
from burn.ir import GraphIr, OperationIr, Status, TensorIr
from burn.ops import resolve
from burn.testing._check import Check, Failure
from burn.testing._first_calls import first_call
from burn.testing._watching import Watching, watched
from burn.testing.op_samples import Array
from burn.testing.subject import Subject
from burn.testing.suites.expectations import expect, expect_values, typical
from burn.testing.suites.suite import DeviceSuite, Suite

__all__ = ["SUITES"]

_calls: Final = DeviceSuite("compiled_calls", "a compiled function called again gives what is new")

_ROUNDS: Final = 5
"""Calls of a function: a device may record the second one, and replay it from the third on."""

_JOIN_SECONDS: Final = 60.0
"""How long a thread may take."""


def _ready(function: Callable[..., Any], *examples: Any) -> Any:
    """A compiled function that was called once."""
    program = burn.compile(function)
    with first_call():
        program(*examples)
    return program


def _compiling(program: Any, *arguments: Any) -> Any:
    """A call for which another program may be compiled."""
    with first_call():
        return program(*arguments)


def _numbers(device: Device, *shape: int, plus: float = 0.0) -> Any:
    return burn.asarray(typical(float32, *shape) + np.float32(plus), device=device)


def _expect_near(what: str, found: Any, expected: Any) -> None:
    expect_values(what, found, np.asarray(expected), exact=False)


@_calls.check("random numbers are those of the generator")
def random_state(device: Device) -> None:
    """Each call draws what comes next, and another seed other numbers."""

    def draws(x: Any) -> Any:
        uniform = burn.random.uniform((5,), device=device)
        return x + uniform, burn.random.normal((3,), device=device)

    x = _numbers(device, 5)
    program = _ready(draws, x)
    for seed in (3, 4, (1 << 63) + 5):
        found: list[Array] = []
        expected: list[Array] = []
        for function, results in ((program, found), (draws, expected)):
            burn.random.seed(seed, device=device)
            results += [tensor.numpy() for _ in range(_ROUNDS) for tensor in function(x)]
        for number, pair in enumerate(zip(found, expected, strict=True)):
            _expect_near(f"draw {number % 2} of call {number // 2}, seed {seed}", *pair)


@_calls.check("the number of a step and its learning rate are those of the call")
def runtime_numbers(device: Device) -> None:
    """An optimizer with a schedule takes the steps that it takes without `burn.compile`."""

    def weights(wrap: Callable[[Any], Any]) -> list[Array]:
        module = burn.nn.Linear(3, 2).to(device.autodiff())
        halves = {"weight": np.full((2, 3), 0.5, np.float32), "bias": np.zeros(2, np.float32)}
        module.load_state_dict(
            {name: burn.asarray(value, device=device) for name, value in halves.items()}
        )
        optimizer = burn.optim.Adam(module, lambda step: 0.1 / (1 + step))
        x = burn.asarray(typical(float32, 4, 3), device=device.autodiff())

        def step(x: Any) -> None:
            optimizer.step((module(x) ** 2).sum().backward())

        function, found = wrap(step), []
        for _ in range(_ROUNDS):
            function(x)
            found += [parameter.detach().numpy() for parameter in module.parameters()]
        return found

    with first_call():
        found = weights(burn.compile)
    for number, pair in enumerate(zip(found, weights(lambda item: item), strict=True)):
        _expect_near(f"parameter {number % 2} after step {number // 2 + 1}", *pair)


@_calls.check("numbers that are arguments are those of the call")
def number_arguments(device: Device) -> None:
    """Python's numbers: they may be part of a program, which is then that of another number."""
    x = _numbers(device, 4)
    program = _ready(lambda x, number: x * number + number, x, 2.0)
    for number in (3.0, 2.0, -1.5, 0.0, 1e30):
        expected = x.numpy() * np.float32(number) + np.float32(number)
        _expect_near(f"a call with {number}", _compiling(program, x, number), expected)


@_calls.check("a tensor that the function closes over has its new values")
def captured_tensors(device: Device) -> None:
    """Written to between two calls, or replaced by another tensor."""
    x, weight = _numbers(device, 2, 3), burn.ones((2, 3), device=device)
    program = _ready(lambda x: x * weight + 1.0, x)
    for number in range(_ROUNDS):
        weight[...] = burn.full((2, 3), float(number), device=device)
        _expect_near(f"after write {number}", program(x), x.numpy() * number + 1.0)
    for number in range(_ROUNDS):
        weight = burn.full((2, 3), float(-number), device=device)
        _expect_near(f"with tensor {number}", _compiling(program, x), x.numpy() * -number + 1.0)


@_calls.check("results that are views share elements with an argument and with each other")
def views(device: Device) -> None:
    """As those of the function do: a write to one of them changes the others."""

    def parts(x: Any) -> Any:
        made = x * 2.0
        return x[0], burn.flip(made), made[1]

    program = _ready(parts, _numbers(device, 2, 3))
    for number in range(_ROUNDS):
        x, expected = _numbers(device, 2, 3), typical(float32, 2, 3)
        first, flipped, row = program(x)
        made = expected * 2.0
        first[...], row[...] = float(number), float(-number)
        expected[0], made[1] = float(number), float(-number)
        _expect_near(f"the argument after call {number}", x, expected)
        _expect_near(f"a view of what call {number} made", flipped, made[::-1, ::-1])


@_calls.check("results stay as later calls are made")
def results_stay(device: Device) -> None:
    """Also where the arguments are gone, and what they held is used again."""
    values = [typical(float32, 3, 4) + np.float32(number) for number in range(2 * _ROUNDS)]

    def function(x: Any) -> Any:
        return x * 2.0, burn.sum(x, axis=1), x.T

    program = burn.compile(function)
    kept = []
    for value in values:
        with first_call():
            kept.append(program(burn.asarray(value, device=device)))
        burn.full((3, 4), 77.0, device=device)
    for value, (double, total, turned) in zip(values, kept, strict=True):
        _expect_near("a product that was kept", double, value * 2)
        _expect_near("a sum that was kept", total, value.sum(axis=1))
        expect_values("an argument that was given back", turned, value.T)


@_calls.check("arguments stay as they are")
def arguments_stay(device: Device) -> None:
    """No call writes to them, or to other tensors that had their values."""
    x, y = _numbers(device, 3, 4), _numbers(device, 3, 4, plus=5.0)
    before = x.numpy().copy(), y.numpy().copy()
    program = _ready(lambda x, y: (x + y, y - x, burn.exp(x) * y), x, y)
    for _ in range(_ROUNDS):
        program(x, y)
        expect_values("the first argument", x, before[0])
        expect_values("the second argument", y, before[1])


@_calls.check("a tensor that a call updates leaves others alone")
def updates(device: Device) -> None:
    """The memory of a tensor that is written to may be used again, if nothing else has it."""
    state = _numbers(device, 6)
    expected = state.numpy().copy()

    def function(x: Any) -> Any:
        state[...] = state * 0.5 + x
        return burn.sum(state)

    program = burn.compile(function)
    kept = []
    for number in range(2 * _ROUNDS):
        x = burn.full((6,), float(number), device=device)
        if number % 3:
            kept.append((state.detach(), state.numpy(), expected.copy()))
        with first_call():
            program(x)
        expected = expected * np.float32(0.5) + np.float32(number)
        _expect_near(f"the state after call {number}", state, expected)
        expect_values("an argument", x, np.full(6, number, np.float32))
        for copy, array, values in kept:
            _expect_near("a copy from before a call", copy, values)
            _expect_near("an array from before a call", array, values)


@_calls.check("each result is where it belongs")
def order_of_results(device: Device) -> None:
    """Several of one shape and dtype, of others, and one of them twice."""
    x = _numbers(device, 3, 3)

    def function(x: Any) -> Any:
        y = x + 1.0
        return y, x * 3.0, x > 0, burn.astype(x, int32), y, x - 7.0

    program = _ready(function, x)
    for _ in range(_ROUNDS):
        for number, (item, other) in enumerate(zip(program(x), function(x), strict=True)):
            _expect_near(f"result {number}", item, other.numpy())


@_calls.check("each shape and dtype is computed as such")
def signatures(device: Device) -> None:
    """As many elements in another shape, longer and shorter ones, other dtypes, and back."""
    program = burn.compile(lambda x: (burn.flip(x, axis=0), burn.sum(x, axis=-1)))
    signatures = [(float32, shape) for shape in ((6,), (2, 3), (3, 2), (7,), (0, 3))]
    signatures += [(dtype, (2, 3)) for dtype in (int32, bool_) if device.supports_dtype(dtype)]
    for dtype, shape in [*signatures, *signatures[:2]]:
        values = typical(dtype, *shape)
        if dtype is int32:
            values = values % 100
        with first_call():
            turned, total = program(burn.asarray(values, device=device))
        what = f"{dtype}{list(shape)}"
        expect_values(f"flip of {what}", turned, np.flip(values, 0))
        _expect_near(f"sum of {what}", total, values.sum(axis=-1).astype(total.dtype.numpy))


@_calls.check("each attribute is that of its operation")
def attributes(device: Device) -> None:
    """Programs that differ in an attribute alone, and one that has an operation twice."""
    x = _numbers(device, 3, 3)
    values = x.numpy()
    for axis in (0, 1):
        program = _ready(lambda x, axis=axis: (burn.cumulative_sum(x, axis=axis), -x), x)
        _expect_near(f"a running sum by axis {axis}", program(x)[0], values.cumsum(axis))
    both = _ready(lambda x: (burn.sum(x, axis=0), burn.sum(x, axis=1)), x)
    for axis, total in enumerate(both(x)):
        _expect_near(f"a sum by axis {axis}", total, values.sum(axis))
    for number in (2.0, 3.0):

        def scaled(x: Any, number: float = number) -> Any:
            return x * burn.asarray([number, 1.0, -number], device=device)

        expected = values * np.array([number, 1.0, -number], np.float32)
        _expect_near(f"a product with the constant {number}", _ready(scaled, x)(x), expected)


@_calls.check("each layout is read as it is")
def layouts(device: Device) -> None:
    """Transposed, reversed, strided and expanded arguments of one shape; one tensor twice."""
    base = _numbers(device, 4, 4)
    values = base.numpy()
    other = _numbers(device, 4, 4, plus=9.0)
    wide = _numbers(device, 8, 8)
    program = _ready(lambda x, y: x * 2.0 - y, base, other)
    for what, x, expected in (
        ("a tensor", base, values),
        ("a transposed one", base.T, values.T),
        ("a reversed one", base[::-1, ::-1], values[::-1, ::-1]),
        ("every second element", wide[::2, 1::2], wide.numpy()[::2, 1::2]),
        ("a part with an offset", wide[3:7, 2:6], wide.numpy()[3:7, 2:6]),
        ("one row many times", burn.broadcast_to(base[1:2], (4, 4)), np.tile(values[1:2], (4, 1))),
    ):
        _expect_near(what, program(x, other), expected * 2 - other.numpy())
        _expect_near(f"{what}, twice", _compiling(program, x, x), expected)
        _expect_near(f"{what}, as the second", program(other, x), other.numpy() * 2 - expected)


@_calls.check("an error leaves no trace")
def after_errors(device: Device) -> None:
    """An index out of range, again and again between calls that work."""
    x = _numbers(device, 4)
    good = burn.asarray([3, 0], device=device)
    program = _ready(lambda x, indices: burn.take(x * 2.0, indices, axis=0) + 1.0, x, good)
    expected = x.numpy()[[3, 0]] * 2 + 1
    for index in (4, -5, 9):
        bad = burn.asarray([0, index], device=device)
        try:
            found = program(x, bad).numpy()
        except OutOfRangeError as error:
            expect(f"{index}" in str(error), f"the error does not say {index}: {error}")
        else:
            raise Failure(f"index {index}, which is out of range, gave {found}")
        try:
            device.sync()
        except ExecutionError as error:
            raise Failure(f"the error was told twice: {error}") from error
        for _ in range(2):
            _expect_near(f"a call after index {index}", program(x, good), expected)


@_calls.check("each index of a program is looked at")
def every_index(device: Device) -> None:
    """Also that of an operation after another one, whose indices are right."""
    x = _numbers(device, 4)
    good = burn.asarray([3, 0], device=device)
    program = _ready(
        lambda x, item, other: burn.take(x * 2.0, item, axis=0) - burn.take(x, other, axis=0),
        *(x, good, burn.asarray([3, 0], device=device)),
    )
    expected = x.numpy()[[3, 0]]
    for index, position in ((4, 1), (-5, 0), (9, 1)):
        indices = [good, burn.asarray([3, 0], device=device)]
        right = list(indices)
        indices[position] = burn.asarray([0, index], device=device)
        try:
            found = program(x, *indices).numpy()
        except OutOfRangeError as error:
            expect(f"{index}" in str(error), f"the error does not say {index}: {error}")
        else:
            raise Failure(f"index {index} of operation {position}, out of range, gave {found}")
        _expect_near(f"a call after index {index}", program(x, *right), expected)


@_calls.check("threads call functions at the same time")
def in_threads(device: Device) -> None:
    """One function in two threads, and two functions that have the same operations."""
    first = _ready(lambda x: burn.tanh(x) * 2.0 + x, _numbers(device, 3, 3))
    second = _ready(lambda x: burn.tanh(x) * 3.0 - x, _numbers(device, 3, 3))
    wrong: list[str] = []

    def work(number: int) -> None:
        x = _numbers(device, 3, 3, plus=float(number))
        values = x.numpy().astype(float)
        try:
            for _ in range(2 * _ROUNDS):
                _expect_near("the first", first(x), (np.tanh(values) * 2 + values).astype("f4"))
                _expect_near("the second", second(x), (np.tanh(values) * 3 - values).astype("f4"))
        except Exception as error:  # noqa: BLE001 — told by the thread of the check
            wrong.append(f"thread {number}: {error}")

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_JOIN_SECONDS)
        expect(not thread.is_alive(), "a thread does not come to its end")
    expect(not wrong, "; ".join(wrong))


@_calls.check("what a call was given and gave is freed")
def freed(device: Device) -> None:
    """Without the garbage collector, with the last name of a tensor."""
    program = _ready(lambda x: burn.exp(x) * 2.0 + x, _numbers(device, 16, 16))
    watched = []
    gc.collect()
    gc.disable()
    try:
        for number in range(_ROUNDS):
            x = _numbers(device, 16, 16, plus=float(number))
            y = program(x)
            y.numpy()
            watched += [_reference_to(tensor) for tensor in (x, y)]
            del x, y
        alive = sum(reference_type() is not None for reference_type in watched)
    finally:
        gc.enable()
    # A device that replays a recording may keep the tensors of one call.
    expect(alive <= 2, f"{alive} of {len(watched)} arguments and results are still there")


def _reference_to(tensor: Any) -> weakref.ref[Any]:
    return watched(tensor.primitive, "primitive")


@_calls.check("what a backend compiled is freed with its last use")
def programs_freed(device: Device) -> None:
    """With the constants that it holds: functions come and go while a process runs."""
    watching = Watching(device.backend)
    table = resolve(watching, device.id)
    x = TensorIr(0, (4,), float32)
    y = TensorIr(1, (4,), float32, Status.NOT_INIT)
    given = _numbers(device, 4).primitive
    for number in range(_ROUNDS):
        operation = OperationIr("multiply", (x, number + 0.5), {}, (y,))
        graph = GraphIr((x,), (), (operation,), (y._replace(status=Status.READ_ONLY),))
        with first_call():
            compiled(graph, table).run([given])
    gc.collect()
    alive = sum(program() is not None for program in watching.programs)
    # A device may keep some of the programs that it ran last.
    expect(alive <= 2, f"{alive} of {len(watching.programs)} programs are still there")


@_calls.check("what is handed on is the same object")
def handed_on(device: Device) -> None:
    """An output that is an input is its primitive, and an output that is there twice is one."""
    x = TensorIr(0, (4,), float32)
    y = TensorIr(1, (4,), float32, Status.NOT_INIT)
    outputs = [tensor._replace(status=Status.READ_ONLY) for tensor in (x, y, y, x)]
    graph = GraphIr((x,), (), (OperationIr("exp", (x,), {}, (y,)),), tuple(outputs))
    with first_call():
        program = compiled(graph, device.ops)
    for number in range(_ROUNDS):
        given = _numbers(device, 4, plus=float(number)).primitive
        with first_call():
            first, second, third, fourth = program.run([given])
        expect(first is given and fourth is given, "an output that is an input is another object")
        expect(second is third, "an output that is there twice is two objects")


def _checks(subject: Subject, table: Sequence[Any]) -> Iterator[Check]:
    yield from _calls.checks(subject, table)


SUITES: Final = [Suite(_calls.name, _calls.summary, _checks, of_devices=True, compiles=True)]
