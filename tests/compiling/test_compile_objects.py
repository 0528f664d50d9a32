"""What operators, statements and calls of compiled functions read of objects is never stale."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import dataclasses
import functools
import json
import operator
import os
import random
import time
import types
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn
from burn.nn import functional as F

CPU = burn.Device("cpu")
X = burn.asarray([1.0, 2.0, 3.0, 4.0], device=CPU)

Case = tuple[Callable[[Any], Any], Callable[[], object]]
CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def put(owner: Any, name: Any, value: Any) -> Callable[[], object]:
    """Change an attribute, or an item."""
    if hasattr(type(owner), "__setitem__"):
        return lambda: operator.setitem(owner, name, value)
    return lambda: setattr(owner, name, value)


class Number:
    """A class that most operators take."""

    offset = 1.0

    def __init__(self, value: float) -> None:
        self.value = value

    def __mul__(self, x: Any) -> Any:
        return x * self.value

    __rmul__ = __mul__

    def __float__(self) -> float:
        return self.value

    def __bool__(self) -> bool:
        return self.value > 2.0

    def __len__(self) -> int:
        return int(self.value)

    def __contains__(self, x: object) -> bool:
        return x == self.value

    def __iter__(self) -> Any:
        yield self.value
        yield self.offset

    def __getitem__(self, key: Any) -> float:
        return self.value + key

    def __enter__(self) -> float:
        return self.value

    def __exit__(self, *_: object) -> None:
        pass

    def get(self) -> float:
        return self.value


def of_number(name: str, function: Callable[[Any, Any], Any], key: str = "value") -> None:
    def make() -> Case:
        kind: Any = type("Own", (Number,), {})
        one = kind(2.0)
        return (lambda x: function(one, x)), put(kind if key == "offset" else one, key, 5.0)

    CASES[name] = make


def entered(one: Any, x: Any) -> Any:
    with one as value:
        return x * value


def looped(one: Any, x: Any) -> Any:
    for value in one:
        x = x * value
    return x


def indexed(one: Any, x: Any) -> Any:
    for index in range(2):
        x = x * one[index]
    return x


of_number("product", lambda item, x: item * x)
of_number("conversion", lambda item, x: x * float(item))
of_number("truth", lambda item, x: x * 2.0 if item else x)
of_number("length", lambda item, x: x * len(item))
of_number("membership", lambda item, x: x * 2.0 if 5.0 in item else x)
of_number("iteration", looped)
of_number("iteration over a class attribute", looped, "offset")
of_number("items", indexed)
of_number("context manager", entered)
of_number("method by its name", lambda item, x: x * operator.methodcaller("get")(item))
of_number("copy", lambda item, x: x * copy.copy(item).value)
of_number("attribute getter", lambda item, x: x * operator.attrgetter("value")(item))
of_number("any attribute", lambda item, x: x * getattr(item, "val" + "ue"[: len("xx")]))
of_number("any class attribute", lambda item, x: x * getattr(item, f"off{'set'}"), "offset")
of_number("weak reference", lambda item, x: x * weakref.ref(item)().value)
of_number("instance", lambda item, x: x * Holder(item).twice())
of_number("partial", lambda item, x: x * functools.partial(lambda other: other.value, item)())
of_number("gradient", lambda item, x: burn.grad(lambda y, other: (y * other.value).sum())(x, item))
of_number("checkpoint", lambda item, x: burn.checkpoint(lambda y, other: y * other.value)(x, item))
of_number("pattern", lambda item, x: x * matched(item))
of_number("handler", lambda item, x: x * handled(item))
of_number("list that is made", lambda item, x: x * max([y.value for y in [item] if y.value]))
of_number("generator", lambda item, x: x * next(y.value for y in [item, item]))
of_number("key of a dict", lambda item, x: x * max([k.value for k in {item: 1.0}]))
of_number("append", lambda item, x: x * appended(item)[-1].value)
of_number("keyword", lambda item, x: scaled(x, by=item))
of_number("keyword of a class", lambda item, x: x * Holder(inner=item).twice())
of_number("default of a nested function", lambda item, x: x * default_of(item))
of_number("context manager of a generator", lambda item, x: x * held(item))
of_number(
    "comprehension of globals", lambda item, x: sum([y * OFFSETS["x"] * item.value for y in [x]])
)
of_number("attributes that are set", lambda item, x: x * Namespace(value=item).value.value)
of_number("nested call", lambda item, x: recursive(item, x))


OFFSETS = {"x": 1.0}


def scaled(x: Any, factor: float = 1.0, by: Any = None) -> Any:
    return x * factor * by.value


def default_of(one: Any) -> float:
    def value(other: Any = one) -> float:
        return other.value

    return value()


@contextlib.contextmanager
def holding(one: Any) -> Any:
    yield one


def held(one: Any) -> float:
    with holding(one) as other:
        return other.value


class Namespace:
    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


def matched(one: Any) -> float:
    match one:
        case Number(value=value):
            return value
    return 0.0


def handled(one: Any) -> Any:
    other = one
    try:
        raise KeyError
    except KeyError:
        return other.value


def appended(one: Any) -> list[Any]:
    found = []
    found.append(one)
    return found


def recursive(one: Any, x: Any) -> Any:
    def again(depth: int) -> Any:
        return again(depth - 1) if depth else one.value * x

    return again(3)


class Holder:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def twice(self) -> float:
        return 2.0 * self.inner.value


@case
def function_of_burn() -> Case:
    one = SimpleNamespace(loss=F.mse_loss)
    return (lambda x: one.loss(3.0 * x, x)), put(one, "loss", F.l1_loss)


@case
def class_as_a_value() -> Case:
    one = SimpleNamespace(kind=nn.MSELoss)
    return (lambda x: one.kind()(3.0 * x, x)), put(one, "kind", nn.L1Loss)


@case
def class_of_options() -> Case:
    one = SimpleNamespace(options=type("Small", (), {"rate": 2.0}))
    return (lambda x: one.options.rate * x), put(one, "options", type("L", (), {"rate": 5.0}))


@case
def module_as_a_value() -> Case:
    first, second = types.ModuleType("first"), types.ModuleType("second")
    first.rate, second.rate = 2.0, 5.0  # type: ignore[attr-defined]
    one = SimpleNamespace(module=first)
    return (lambda x: one.module.rate * x), put(one, "module", second)


@case
def module_of_a_user_in_a_container() -> Case:
    class Scale(nn.Module):
        def __init__(self, options: Any) -> None:
            self.options = options

        def forward(self, x: Any) -> Any:
            return x * self.options.rate

    options = SimpleNamespace(rate=2.0)
    net = nn.Sequential(Scale(options), nn.ReLU())
    return (lambda x: net(x)), put(options, "rate", 5.0)


@case
def truth_of_a_list() -> Case:
    one = SimpleNamespace(extra=[])
    return (lambda x: x * 5.0 if one.extra else x), lambda: one.extra.append(1.0)


@case
def list_as_an_index() -> Case:
    index = [0, 1]
    return (lambda x: x[index]), put(index, 1, 3)


@case
def array_as_an_index() -> Case:
    index = np.asarray([0, 1])
    return (lambda x: x[index]), put(index, 1, 3)


@case
def list_as_an_argument_of_a_method() -> Case:
    shape = [2, 2]

    def change() -> None:
        shape[:] = [4, 1]

    return (lambda x: x.reshape(shape)), change


@case
def list_that_is_returned() -> Case:
    numbers = [2.0]
    return (lambda x: [x, *map(x.__mul__, numbers)][-1]), lambda: numbers.append(5.0)


@case
def index_of_a_write() -> Case:
    index = [0, 1]

    def function(x: Any) -> Any:
        y = x * 1.0
        y[index] = 0.0
        return y

    return function, put(index, 1, 3)


class AttributeDict(dict):  # type: ignore[type-arg]
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


@case
def attributes_of_a_dict() -> Case:
    options = AttributeDict(inner=AttributeDict(rate=2.0))
    return (lambda x: x * options.inner.rate), put(options.inner, "rate", 5.0)


@case
def attribute_of_a_list() -> Case:
    numbers: Any = type("Numbers", (list,), {})([1.0])
    numbers.rate = 2.0
    return (lambda x: x * numbers.rate), lambda: setattr(numbers, "rate", 5.0)


def layers(count: int) -> list[Any]:
    return [SimpleNamespace(factor=1.0 + index / count) for index in range(count)]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("slice", lambda given: given[1:]),
        ("sum", lambda given: given + given[:1]),
        ("star", lambda given: [*given, *given]),
        ("reversed", lambda given: [*reversed(given)]),
        ("sorted", lambda given: sorted(given, key=lambda item: item.factor)),
        ("filter", lambda given: [item for item in given if item.factor]),
    ],
)
def test_layers_of_a_list_that_a_function_makes_are_what_they_are_now(name, part, last):
    given = layers(200 if name == "slice" else 3)

    def function(x):
        for item in part(given):
            x = x * item.factor
        return x

    check(function, put(given[-1 if last else 1], "factor", 5.0))


@case
def linked_list() -> Case:
    first = last = SimpleNamespace(factor=2.0, after=None)
    for _ in range(20):
        last.after = SimpleNamespace(factor=2.0, after=None)
        last = last.after

    def function(x: Any) -> Any:
        one = first
        while one is not None:
            x = x * one.factor
            one = one.after
        return x

    return function, put(last, "factor", 5.0)


@case
def tree_of_objects() -> Case:
    def tree(depth: int) -> Any:
        children = [tree(depth - 1), tree(depth - 1)] if depth else []
        return SimpleNamespace(factor=1.0, children=children)

    root = tree(4)

    def function(x: Any) -> Any:
        def product(one: Any, x: Any) -> Any:
            x = x * one.factor
            for child in one.children:
                x = product(child, x)
            return x

        return product(root, x)

    leaf = root
    while leaf.children:
        leaf = leaf.children[1]
    return function, put(leaf, "factor", 5.0)


class Slots:
    __slots__ = ("model",)

    def __init__(self, model: Any) -> None:
        self.model = model


@case
def function_in_a_slot() -> Case:
    one = Slots(nn.ReLU())
    return (lambda x: one.model(x)), put(one, "model", nn.Tanh())


@case
def attribute_behind_super() -> Case:
    class Base:
        rate = 2.0

    class Own(Base):
        rate = 1.0

        def step(self, x: Any) -> Any:
            return x * super().rate

    return Own().step, put(Base, "rate", 5.0)


@case
def method_that_is_replaced() -> Case:
    class Own:
        def step(self, x: Any) -> Any:
            return x * 2.0

    one = Own()
    return (lambda x: one.step(x)), put(Own, "step", lambda self, x: x * 5.0)


@case
def method_of_the_object_alone() -> Case:
    one = Holder(Number(2.0))
    return (lambda x: x * one.twice()), put(one, "twice", lambda: 5.0)


@case
def code_of_a_function() -> Case:
    def scale(x: Any) -> Any:
        return x * 2.0

    def other(x: Any) -> Any:
        return x * 5.0

    return (lambda x: scale(x)), put(scale, "__code__", other.__code__)


@case
def cached_property() -> Case:
    class Own:
        @functools.cached_property
        def rate(self) -> float:
            return 2.0

    one = Own()
    return (lambda x: x * one.rate), lambda: one.__dict__.update(rate=5.0)


@case
def functions_of_a_loop_with_defaults() -> Case:
    given = layers(3)
    functions = [lambda x, element=item: x * element.factor for item in given]

    def function(x: Any) -> Any:
        for item in functions:
            x = item(x)
        return x

    return function, put(given[2], "factor", 5.0)


@case
def global_variables_of_a_nested_function() -> Case:
    OFFSETS["x"] = 1.0
    return (lambda x: sum([y * OFFSETS["x"] for y in [x, x]])), put(OFFSETS, "x", 5.0)


@case
def object_that_wraps_a_function() -> Case:
    class Scaled:
        def __init__(self, function: Any) -> None:
            functools.update_wrapper(self, function)
            self.function, self.rate = function, 2.0

        def __call__(self, x: Any) -> Any:
            return self.function(x) * self.rate

    one = Scaled(lambda x: x + 1.0)
    return (lambda x: one(x)), put(one, "rate", 5.0)


@case
def single_object_of_a_class() -> Case:
    class Options:
        only: Any = None
        rate = 2.0

        def __new__(cls) -> Any:
            cls.only = cls.only or super().__new__(cls)
            return cls.only

    Options()
    return (lambda x: x * Options().rate), lambda: setattr(Options(), "rate", 5.0)


@case
def object_that_a_cache_keeps() -> Case:
    @functools.cache
    def options() -> Any:
        return SimpleNamespace(rate=2.0)

    options()
    return (lambda x: x * options().rate), lambda: setattr(options(), "rate", 5.0)


@case
def class_of_an_object() -> Case:
    class First:
        def rate(self) -> float:
            return 2.0

    class Second(First):
        def rate(self) -> float:
            return 5.0

    one = First()
    return (lambda x: x * one.rate()), put(one, "__class__", Second)


@case
def method_that_a_class_inherits() -> Case:
    class Base:
        def rate(self) -> float:
            return 2.0

    class Own(Base):
        pass

    one = Own()
    return (lambda x: x * one.rate()), put(Own, "rate", lambda self: 5.0)


@case
def environment() -> Case:
    os.environ["BURN_TEST_RATE"] = "2"
    return (lambda x: x * float(os.environ["BURN_TEST_RATE"])), put(
        os.environ, "BURN_TEST_RATE", "5"
    )


@case
def environment_by_a_function() -> Case:
    os.environ["BURN_TEST_RATE"] = "2"
    return (lambda x: x * float(os.getenv("BURN_TEST_RATE", "1"))), (
        lambda: os.environ.update(BURN_TEST_RATE="5")
    )


@case
def mapping_of_the_library() -> Case:
    options = collections.UserDict({"rate": 2.0})
    return (lambda x: x * options["rate"]), put(options, "rate", 5.0)


@case
def chain_of_mappings() -> Case:
    first: dict[str, float] = {}
    options = collections.ChainMap(first, {"rate": 2.0})
    return (lambda x: x * options["rate"]), put(first, "rate", 5.0)


@case
def context_variable() -> Case:
    rate: contextvars.ContextVar[float] = contextvars.ContextVar("rate", default=2.0)
    return (lambda x: x * rate.get()), lambda: rate.set(5.0)


@case
def fields_as_a_dict() -> Case:
    @dataclasses.dataclass
    class Options:
        rate: float

    one = Options(2.0)
    return (lambda x: x * dataclasses.asdict(one)["rate"]), put(one, "rate", 5.0)


@case
def dict_that_is_written_as_text() -> Case:
    inner = {"rate": 2}
    options = {"a": {"b": {"c": {"d": inner}}}}
    return (lambda x: x * len(json.dumps(options))), put(inner, "rate", 555)


@case
def function_by_the_class_of_an_argument() -> Case:
    one = SimpleNamespace(rate=2.0)

    @functools.singledispatch
    def scale(x: Any) -> Any:
        return x * one.rate

    return (lambda x: scale(x)), put(one, "rate", 5.0)


@case
def global_variables_as_a_dict() -> Case:
    globals()["RATE"] = 2.0
    return (lambda x: x * globals()["RATE"]), put(globals(), "RATE", 5.0)


@case
def import_within_the_function() -> Case:
    def function(x: Any) -> Any:
        from test_compile_objects import Number

        return x * Number.offset

    before = Number.offset
    return function, lambda: setattr(Number, "offset", before + 1.0)


@case
def element_of_a_large_array() -> Case:
    table = np.ones(20_000, np.float32)
    return (lambda x: x * float(table.sum())), put(table, 1, 9.0)


@case
def array_without_axes() -> Case:
    rate = np.asarray(2.0, np.float32)
    return (lambda x: x * float(rate)), lambda: rate.fill(5.0)


@case
def bound_arguments_of_a_method() -> Case:
    class Own:
        def scaled(self, factor: float, x: Any) -> Any:
            return x * factor * self.rate  # type: ignore[attr-defined]

        twice = functools.partialmethod(scaled, 2.0)

    one: Any = Own()
    one.rate = 2.0
    return (lambda x: one.twice(x)), put(one, "rate", 5.0)


@case
def item_of_a_long_list() -> Case:
    numbers = [1.0] * 10_000
    return (lambda x: x * sum(numbers)), put(numbers, 9_999, 5.0)


def values(result: Any) -> list[float]:
    return np.asarray(result.detach().numpy(), np.float64).round(4).tolist()


def check(function: Callable[[Any], Any], change: Callable[[], object]) -> None:
    compiled = burn.compile(function)
    before = values(function(X))
    assert values(compiled(X)) == before
    assert values(compiled(X)) == before
    assert compiled.programs == 1
    change()
    expected = values(function(X))
    assert expected != before
    assert values(compiled(X)) == expected
    assert values(compiled(X)) == expected
    assert compiled.programs == 2


@pytest.mark.parametrize("name", CASES)
def test_what_a_function_reads_in_any_way_is_what_it_is_now(name, monkeypatch):
    monkeypatch.delenv("BURN_TEST_RATE", raising=False)
    check(*CASES[name]())


def test_arguments_that_are_equal_have_the_same_fields():
    @dataclasses.dataclass(frozen=True)
    class Options:
        name: str
        rate: float = dataclasses.field(compare=False)

    scaled = burn.compile(lambda x, options: x * options.rate)
    for rate in (2.0, 5.0, 2.0):
        assert values(scaled(X, Options("a", rate))) == values(X * rate)
    assert scaled.programs == 2


def test_a_dataclass_with_slots_is_an_argument():
    @dataclasses.dataclass(slots=True)
    class Options:
        rate: float = 2.0

    scaled = burn.compile(lambda x, options: x * options.rate)
    one = Options()
    for rate in (2.0, 5.0):
        one.rate = rate
        assert values(scaled(X, one)) == values(X * rate)


def test_equal_tuples_of_numbers_make_no_program():
    one = SimpleNamespace(shape=(2, 2))
    reshaped = burn.compile(lambda x: x.reshape(one.shape))
    for _ in range(3):
        one.shape = (*[2], 2)  # another object
        reshaped(X)
    assert reshaped.programs == 1
    one.shape = (4, 1)
    assert reshaped(X).shape == (4, 1)


def test_a_tensor_that_moves_is_read_from_no_other_path():
    one = SimpleNamespace(weight=X * 2.0, all=[])
    added = burn.compile(lambda x: sum((10.0 * y for y in one.all), 10.0 * x) + one.weight)
    for weight, x, others in (
        (X * 3.0, X, []),
        (X, X, []),  # the argument is the tensor of the attribute
        (X * 4.0, X, []),
        (X * 5.0, X * 6.0, [X]),
        (X, X * 6.0, [X]),
        (X * 7.0, X * 6.0, [X]),
    ):
        one.weight, one.all = weight, others
        expected = sum((10.0 * y for y in others), 10.0 * x) + weight
        assert values(added(x)) == values(expected)


def test_a_weight_that_is_tied_for_a_call_is_that_of_the_layer():
    layer = nn.Linear(2, 2, bias=False, device=CPU)
    one = SimpleNamespace(weight=burn.ones((2, 2), device=CPU))
    x = burn.ones((1, 2), device=CPU)
    added = burn.compile(lambda x: layer(x) + x @ one.weight)
    for weight in (one.weight, layer.weight, burn.zeros((2, 2), device=CPU)):
        one.weight = weight
        assert values(added(x)) == values(layer(x) + x @ weight)


def test_a_number_that_the_function_reads_and_changes_is_warned_about_by_name():
    one = SimpleNamespace(calls=0)

    def step(x):
        one.calls += 1
        return x * one.calls

    compiled = burn.compile(step)
    assert values(compiled(X)) == values(X)
    with pytest.warns(UserWarning, match=r"step reads one\.calls and changes it at each call"):
        assert values(compiled(X)) == values(X * 2.0)
    compiled(X)
    assert compiled.programs == 1


def test_a_cache_that_a_function_fills_makes_one_more_program_at_most():
    one = SimpleNamespace(cache=None, runs=0)

    def step(x):
        if one.cache is None:
            one.cache = 2.0
            return x * 1.0
        return x * one.cache

    compiled = burn.compile(step)
    assert [values(compiled(X)) for _ in range(3)] == [values(X), values(X * 2.0), values(X * 2.0)]
    assert compiled.programs == 1


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("random", random.random),
        ("random", np.random.default_rng(0).random),
        ("perf_counter", time.perf_counter),
        ("numbers", iter([1.0, 2.0, 3.0]).__next__),
    ],
)
def test_what_is_another_at_each_call_is_warned_about_by_name(name, read):
    numbers = iter([1.0] * 9)
    compiled = burn.compile((lambda x: x * next(numbers)) if name == "numbers" else draw(read))
    with pytest.warns(UserWarning, match=rf"{name}.* is read while the function is traced"):
        compiled(X)


def draw(read: Callable[[], float]) -> Callable[[Any], Any]:
    return lambda x: x * read()


@pytest.mark.parametrize(
    "read",
    [
        lambda item, x: x * 2.0 if item.epoch in item.window else x,
        lambda item, x: x * item.table[0] if item.augments else x,
        lambda item, x: x * item.missing["key"] if item.augments else x,
        lambda item, x: x * getattr(item.options, "momentum", 0.0) if item.augments else x,
    ],
)
def test_branches_that_are_not_taken_cost_nothing_and_run_nothing(read):
    class Options(dict):  # type: ignore[type-arg]
        __getattr__ = dict.__getitem__

    class Own:
        augments, epoch, window = False, -1, range(10**12)

        def __init__(self) -> None:
            self.missing: Any = collections.defaultdict(list)
            self.options = Options(rate=2.0)

        @functools.cached_property
        def table(self) -> list[float]:
            raise AssertionError("it is computed")

    one = Own()
    assert values(burn.compile(lambda x: read(one, x))(X)) == values(X)
    assert not one.missing


@pytest.mark.parametrize(
    "read",
    [
        lambda item, x: x * 2.0 if item.history else x,
        lambda item, x: x * 2.0 if item is not None else x,
        lambda item, x: x * max(item.layers, key=lambda layer: layer.factor).factor,
        lambda item, x: x * functools.reduce(operator.mul, [y.factor for y in item.layers]),
    ],
)
def test_what_only_lies_beside_what_is_read_makes_no_program(read):
    one = SimpleNamespace(history=[0.0], steps=0, layers=layers(2))
    compiled = burn.compile(lambda x: read(one, x))
    for step in range(4):
        compiled(X)
        one.history.append(float(step))
        one.steps += 1
        one.layers[0].calls = step
    assert compiled.programs == 1


def test_a_recursion_that_makes_containers_is_followed_without_a_warning():
    one = SimpleNamespace(rate=2.0)

    def parts(made: tuple[Any, ...], depth: int) -> tuple[Any, ...]:
        return parts((*made, [depth]), depth - 1) if depth else made

    scaled = burn.compile(lambda x: x * len(parts((), 50)) * one.rate)
    assert values(scaled(X)) == values(X * 100.0)
    one.rate = 5.0
    assert values(scaled(X)) == values(X * 250.0)


def test_objects_that_tell_no_class_are_no_errors():
    class Unbound:
        @property
        def __class__(self) -> Any:
            raise RuntimeError("outside of its context")

    one = Unbound()
    assert values(burn.compile(lambda x: x * 2.0 if one is not None else x)(X)) == values(X * 2.0)
