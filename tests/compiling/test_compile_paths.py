"""What a compiled function reads of Python objects is never stale: each later value is seen."""

from __future__ import annotations

import argparse
import ast
import asyncio.base_events
import collections
import dataclasses
import dis
import functools
import inspect
import sys
import tarfile
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.transforms import bytecode
from burn.transforms.code_values import UNKNOWN, Call

CPU = burn.Device("cpu")
X = burn.asarray([1.0, 2.0], device=CPU)

Case = tuple[Callable[[Any], Any], list[Callable[[], object]]]


class Base:
    base = 2.0

    def scaled(self, x: Any) -> Any:
        return self.base * x


class Trainer(Base):
    rate = 0.5
    options = {"rate": 1.0}  # noqa: RUF012 — a class attribute that is changed is under test

    def __init__(self) -> None:
        self.scale = 2.0
        self.model: Any = lambda x: x + 1.0
        self.table = [1.0, 2.0]
        self.nested = {"optimizer": {"rate": 3.0}}
        self.config = SimpleNamespace(rate=2.0, inner=SimpleNamespace(bias=1.0))
        self._hidden = 4.0
        self.flag = False
        self.mode = "plus"
        self.weight = burn.asarray([1.0, 1.0], device=CPU)
        self.tensors = {"w": burn.asarray([2.0, 2.0], device=CPU)}
        self.layers = [SimpleNamespace(factor=2.0), SimpleNamespace(factor=3.0)]
        self.array = np.ones(2, np.float32)
        self.lambdas = [lambda x: x * 2.0]

    @property
    def hidden(self) -> float:
        return self._hidden * 2.0

    @functools.cached_property
    def cached(self) -> float:
        return self._hidden + 1.0

    @staticmethod
    def fixed(x: Any, factor: float) -> Any:
        return x * factor

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return cls.rate * x

    def helper(self, x: Any) -> Any:
        return self.config.inner.bias + x

    def scaled(self, x: Any) -> Any:
        return super().scaled(x) + 1.0

    def __call__(self, x: Any) -> Any:
        return x * self.scale

    def walk(self, x: Any) -> Any:
        for layer in self.layers:
            x = x * layer.factor
        return x


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: float


@dataclasses.dataclass
class Options:
    rate: float = 2.0
    frozen: Frozen = dataclasses.field(default_factory=lambda: Frozen(1.0))


class Slotted:
    __slots__ = ("rate",)

    def __init__(self) -> None:
        self.rate = 2.0


class Dynamic:
    """Attributes that code computes."""

    def __init__(self) -> None:
        self.__dict__["values"] = {"rate": 2.0}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None


class Registry:
    def __init__(self) -> None:
        self.items = {"rate": 2.0}

    def __getitem__(self, key: str) -> float:
        return self.items[key]


LIMIT = 2.0
TABLE = {"rate": 2.0}


def of_globals(x: Any) -> Any:
    return x * LIMIT + TABLE["rate"]


def default_of(x: Any, options: dict[str, float] = {"rate": 2.0}) -> Any:  # noqa: B006 — under test
    return x * options["rate"]


def first_and_second(pair: tuple[float, float], x: Any) -> Any:
    return pair[0] * x + pair[1]


def set_global(name: str, value: Any) -> None:
    globals()[name] = value


def _cases() -> dict[str, Callable[[], Case]]:  # noqa: C901 — a row for each way to read
    cases: dict[str, Callable[[], Case]] = {}

    def of_trainer(name: str, function: Any, *changes: Callable[[Trainer], object]) -> None:
        def make() -> Case:
            one = Trainer()
            return (lambda x: function(one, x)), [
                functools.partial(change, one) for change in changes
            ]

        cases[name] = make

    def put(name: str, value: Any) -> Callable[[Trainer], object]:
        return lambda item: setattr(item, name, value)

    of_trainer("attribute", lambda s, x: s.scale * x, put("scale", 3.0), put("scale", 2.0))
    of_trainer("integer that equals", lambda s, x: x + s.scale // 1, put("scale", 3))
    of_trainer("function", lambda s, x: s.model(x), put("model", lambda x: x - 1.0))
    of_trainer(
        "item of a list",
        lambda s, x: s.table[1] * x,
        lambda s: s.table.append(9.0),
        lambda s: s.table.__setitem__(1, 5.0),
    )
    of_trainer(
        "unknown item",
        lambda s, x: s.table[len(s.mode) - 3] * x,
        lambda s: s.table.__setitem__(1, 7.0),
    )
    of_trainer(
        "nested items",
        lambda s, x: s.nested["optimizer"]["rate"] * x,
        lambda s: s.nested["optimizer"].__setitem__("rate", 5.0),
        lambda s: s.nested.__setitem__("optimizer", {"rate": 6.0}),
    )
    of_trainer(
        "get",
        lambda s, x: s.nested["optimizer"].get("rate", 0.0) * x,
        lambda s: s.nested["optimizer"].__setitem__("rate", 5.0),
        lambda s: s.nested["optimizer"].clear(),
    )
    of_trainer(
        "namespace",
        lambda s, x: s.config.rate * x,
        lambda s: setattr(s.config, "rate", 5.0),
        put("config", SimpleNamespace(rate=7.0)),
    )
    of_trainer(
        "two levels, in a method",
        lambda s, x: s.helper(x),
        lambda s: setattr(s.config.inner, "bias", 5.0),
        lambda s: setattr(s.config, "inner", SimpleNamespace(bias=8.0)),
    )
    of_trainer("property", lambda s, x: s.hidden * x, put("_hidden", 5.0))
    of_trainer("static method", lambda s, x: s.fixed(x, s.scale), put("scale", 5.0))
    of_trainer("super", lambda s, x: s.scaled(x), put("base", 5.0))
    of_trainer("call of the object", lambda s, x: s(x), put("scale", 5.0))
    of_trainer("branch", lambda s, x: x * 2.0 if s.flag else x, put("flag", True))
    of_trainer(
        "string", lambda s, x: x + 1.0 if s.mode == "plus" else x - 1.0, put("mode", "minus")
    )
    of_trainer("format", lambda s, x: x * len(f"{s.mode}"), put("mode", "longer"))
    of_trainer("tensor", lambda s, x: s.weight * x, put("weight", X + 3.0), put("weight", X + 4.0))
    of_trainer(
        "tensor in a dict",
        lambda s, x: s.tensors["w"] * x,
        lambda s: s.tensors.__setitem__("w", X + 5.0),
    )
    of_trainer(
        "tensors of a dict",
        lambda s, x: sum(s.tensors.values(), x),
        lambda s: s.tensors.__setitem__("v", X + 5.0),
    )
    of_trainer(
        "stack of a list",
        lambda s, x: burn.stack([*s.tensors.values(), x]),
        lambda s: s.tensors.__setitem__("v", X + 5.0),
    )
    of_trainer(
        "loop",
        lambda s, x: s.walk(x),
        lambda s: setattr(s.layers[1], "factor", 7.0),
        lambda s: s.layers.append(SimpleNamespace(factor=2.0)),
    )
    of_trainer(
        "enumerate",
        lambda s, x: sum((i * layer.factor * x for i, layer in enumerate(s.layers)), x),
        lambda s: setattr(s.layers[1], "factor", 7.0),
    )
    of_trainer(
        "zip",
        lambda s, x: sum([a.factor * b * x for a, b in zip(s.layers, s.table)], x),  # noqa: B905 — under test
        lambda s: setattr(s.layers[0], "factor", 7.0),
        lambda s: s.table.__setitem__(0, 7.0),
    )
    of_trainer(
        "items",
        lambda s, x: sum([v["rate"] * x for k, v in s.nested.items()], x),
        lambda s: s.nested["optimizer"].__setitem__("rate", 5.0),
    )
    of_trainer(
        "comprehension",
        lambda s, x: sum([layer.factor for layer in s.layers]) * x,
        lambda s: setattr(s.layers[0], "factor", 7.0),
    )
    of_trainer("sum of a list", lambda s, x: sum(s.table) * x, lambda s: s.table.append(3.0))
    of_trainer(
        "membership", lambda s, x: x if 9.0 in s.table else -x, lambda s: s.table.append(9.0)
    )
    of_trainer(
        "array",
        lambda s, x: burn.asarray(s.array, device=CPU) * x,
        lambda s: s.array.__setitem__(0, 7.0),
    )
    of_trainer(
        "function in a list",
        lambda s, x: s.lambdas[0](x),
        lambda s: s.lambdas.__setitem__(0, lambda x: x * 5.0),
    )
    of_trainer("walrus", lambda s, x: x * rate if (rate := s.scale) > 1.0 else x, put("scale", 5.0))
    of_trainer("getattr", lambda s, x: getattr(s, "scale") * x, put("scale", 5.0))  # noqa: B009 — under test
    of_trainer(
        "getattr with a default", lambda s, x: getattr(s, "later", 2.0) * x, put("later", 5.0)
    )
    of_trainer(
        "getattr of any name",
        lambda s, x: getattr(s.config, "ra" + "te"[: len(s.mode)]) * x,
        lambda s: setattr(s.config, "rate", 5.0),
    )
    of_trainer("hasattr", lambda s, x: x * 2.0 if hasattr(s, "later") else x, put("later", 5.0))
    of_trainer(
        "vars",
        lambda s, x: sum(v for k, v in vars(s.config).items() if k == "rate") * x,
        lambda s: setattr(s.config, "rate", 5.0),
    )
    of_trainer(
        "shadowed class attribute",
        lambda s, x: s.rate * x,
        put("rate", 5.0),
        lambda s: delattr(s, "rate"),
    )
    of_trainer(
        "keywords",
        lambda s, x: default_of(x, options=s.nested["optimizer"]),
        lambda s: s.nested["optimizer"].__setitem__("rate", 5.0),
    )
    of_trainer(
        "unpacked",
        lambda s, x: (lambda a, b: a * x + b)(*s.table),  # noqa: PLC3002 — the call is under test
        lambda s: s.table.__setitem__(0, 5.0),
    )
    of_trainer(
        "sequence",
        lambda s, x: first_and_second((s.scale, s.mode == "plus"), x),
        put("scale", 5.0),
        put("mode", "minus"),
    )
    of_trainer(
        "transform", lambda s, x: burn.vmap(lambda item: item * s.scale)(x), put("scale", 5.0)
    )
    of_trainer(
        "scan",
        lambda s, x: burn.scan(lambda c, item: (c + item * s.scale, None), x[0], x)[0],
        put("scale", 5.0),
    )
    of_trainer(
        "map of a lambda",
        lambda s, x: sum(map(lambda layer: layer.factor * x, s.layers), x),  # noqa: C417 — under test
        lambda s: setattr(s.layers[0], "factor", 7.0),
    )
    of_trainer(
        "tuple swap",
        lambda s, x: s.config.rate * x,
        lambda s: setattr(s, "config", SimpleNamespace(rate=1.5)),
    )

    @_case(cases, "class attribute")
    def _() -> Case:
        class Config:
            rate = 2.0

        return (lambda x: Config.rate * x), [lambda: setattr(Config, "rate", 3.0)]

    @_case(cases, "class method")
    def _() -> Case:
        class Own(Trainer):
            rate = 2.0

        return Own().of_class, [lambda: setattr(Own, "rate", 3.0)]

    @_case(cases, "module")
    def _() -> Case:
        config = types.ModuleType("config")
        config.LR = 2.0
        return (lambda x: config.LR * x), [lambda: setattr(config, "LR", 3.0)]

    @_case(cases, "bound method")
    def _() -> Case:
        one = Trainer()
        return one.helper, [lambda: setattr(one.config.inner, "bias", 3.0)]

    @_case(cases, "callable object")
    def _() -> Case:
        one = Trainer()
        return one, [lambda: setattr(one, "scale", 3.0)]

    @_case(cases, "partial")
    def _() -> Case:
        bound = functools.partial(default_of, options={"rate": 2.0})
        return bound, [lambda: bound.keywords["options"].__setitem__("rate", 3.0)]

    @_case(cases, "keywords of a partial")
    def _() -> Case:
        bound = functools.partial(lambda x, rate: x * rate, rate=2.0)
        return (lambda x: bound(x)), [lambda: bound.keywords.__setitem__("rate", 3.0)]

    @_case(cases, "wrapped")
    def _() -> Case:
        config = SimpleNamespace(rate=2.0)

        def doubled(function: Any) -> Any:
            @functools.wraps(function)
            def call(*args: Any, **keywords: Any) -> Any:
                return 2.0 * function(*args, **keywords)

            return call

        @doubled
        def step(x: Any) -> Any:
            return config.rate * x

        return step, [lambda: setattr(config, "rate", 3.0)]

    @_case(cases, "globals of a function that is called")
    def _() -> Case:
        set_global("LIMIT", 2.0)
        TABLE["rate"] = 2.0
        return (lambda x: of_globals(x)), [
            lambda: set_global("LIMIT", 3.0),
            lambda: TABLE.__setitem__("rate", 5.0),
            lambda: set_global("LIMIT", 2.0),
        ]

    @_case(cases, "default")
    def _() -> Case:
        def step(x: Any, options: dict[str, float] = {"rate": 2.0}) -> Any:  # noqa: B006
            return x * options["rate"]

        return step, [lambda: step.__defaults__[0].__setitem__("rate", 3.0)]

    @_case(cases, "dataclass")
    def _() -> Case:
        options = Options()
        return (lambda x: options.rate * x + options.frozen.rate), [
            lambda: setattr(options, "rate", 3.0),
            lambda: setattr(options, "frozen", Frozen(7.0)),
        ]

    @_case(cases, "slots")
    def _() -> Case:
        one = Slotted()
        return (lambda x: one.rate * x), [lambda: setattr(one, "rate", 3.0)]

    @_case(cases, "__getattr__")
    def _() -> Case:
        one = Dynamic()
        return (lambda x: one.rate * x), [lambda: one.values.__setitem__("rate", 3.0)]

    @_case(cases, "__getitem__")
    def _() -> Case:
        one = Registry()
        return (lambda x: one["rate"] * x), [lambda: one.items.__setitem__("rate", 3.0)]

    @_case(cases, "deque")
    def _() -> Case:
        queue = collections.deque([1.0, 2.0])
        return (lambda x: sum(queue) * x), [lambda: queue.append(3.0)]

    @_case(cases, "set")
    def _() -> Case:
        names = {"plus"}
        return (lambda x: x + 1.0 if "minus" not in names else x - 1.0), [
            lambda: names.add("minus")
        ]

    @_case(cases, "closure in a closure")
    def _() -> Case:
        rate = 2.0

        def outer() -> Any:
            return lambda x: rate * x

        def change() -> None:
            nonlocal rate
            rate = 3.0

        return (lambda x: outer()(x)), [change]

    @_case(cases, "module of layers")
    def _() -> Case:
        one = SimpleNamespace(net=nn.Linear(2, 2, device=CPU))
        return (lambda x: one.net(x.reshape((1, 2)))), [
            lambda: setattr(one, "net", nn.Linear(2, 2, device=CPU)),
            lambda: one.net.weight.assign(one.net.weight.detach() * 2.0),
        ]

    @_case(cases, "layers in a list")
    def _() -> Case:
        nets = [nn.Dropout(0.0), nn.LayerNorm(2, device=CPU)]

        def forward(x: Any) -> Any:
            x = x.reshape((1, 2))
            for net in nets:
                x = net(x)
            return x

        return forward, [
            lambda: nets.append(nn.Linear(2, 2, device=CPU)),
            lambda: nets.__setitem__(2, nn.Linear(2, 2, device=CPU)),
        ]

    @_case(cases, "plain objects of a module")
    def _() -> Case:
        class Net(nn.Module):
            factor = 2.0

            def __init__(self) -> None:
                self.config = SimpleNamespace(rate=2.0)
                self.scale = 1.0

            def forward(self, x: Any) -> Any:
                return x * self.config.rate * self.scale * self.factor

        net = Net()
        return (lambda x: net(x)), [
            lambda: setattr(net.config, "rate", 3.0),
            lambda: setattr(net, "scale", 4.0),
            lambda: setattr(Net, "factor", 5.0),
        ]

    return cases


def _case(cases: dict[str, Any], name: str) -> Callable[[Callable[[], Case]], None]:
    def attach(make: Callable[[], Case]) -> None:
        cases[name] = make

    return attach


CASES = _cases()


def values(result: Any) -> list[float]:
    return np.asarray(result.detach().numpy(), np.float64).round(4).tolist()


@pytest.mark.parametrize("name", CASES)
def test_what_a_function_reads_is_what_it_is_now(name):
    function, changes = CASES[name]()
    compiled = burn.compile(function)
    assert values(compiled(X)) == values(function(X))
    assert values(compiled(X)) == values(function(X))
    assert compiled.programs == 1
    for change in changes:
        before = values(function(X))
        change()
        expected = values(function(X))
        assert expected != before or name in ("item of a list", "tensor in a dict")
        assert values(compiled(X)) == expected
        programs = compiled.programs
        assert values(compiled(X)) == expected
        assert compiled.programs == programs


@pytest.mark.parametrize("name", ["attribute", "nested items", "namespace", "property"])
def test_a_value_that_comes_back_finds_its_program(name):
    function, (change, *_) = CASES[name]()
    one = change.args[0]
    before = dict(vars(one))
    compiled = burn.compile(function)
    compiled(X)
    change()
    compiled(X)
    assert compiled.programs == 2
    for key, value in before.items():
        setattr(one, key, value)
    if name == "nested items":
        one.nested["optimizer"]["rate"] = 3.0
    if name == "namespace":
        one.config.rate = 2.0
    assert values(compiled(X)) == values(function(X))
    assert compiled.programs == 2


def test_a_trainer_trains_the_model_that_it_has():
    class Own:
        def __init__(self) -> None:
            self.model = nn.Linear(2, 1, device=CPU.autodiff())
            self.optimizer = optim.SGD(self.model, learning_rate=0.1)

        @burn.compile
        def step(self, x: Any) -> Any:
            loss = (self.model(x) ** 2).mean()
            self.optimizer.step(loss.backward())
            return loss.detach()

    one, x = Own(), burn.ones((3, 2), device=CPU)
    one.step(x)
    one.model = nn.Linear(2, 1, device=CPU.autodiff())
    one.optimizer = optim.SGD(one.model, learning_rate=0.1)
    new = one.model.weight.detach().tolist()
    first = one.step(x).item()
    assert one.step(x).item() < first
    assert one.model.weight.detach().tolist() != new


def test_what_is_not_read_makes_no_program():
    one = Trainer()
    compiled = burn.compile(lambda x: one.scale * x)
    compiled(X)
    one.history = []
    for index in range(3):
        one.history.append(index)
        one.mode = str(index)
        one.table.append(1.0)
        compiled(X)
    assert compiled.programs == 1


def test_what_the_function_changes_itself_is_not_compared():
    one = SimpleNamespace(calls=0, log=[])

    def step(x):
        one.calls += 1
        one.log.append("called")
        return x * 2.0

    compiled = burn.compile(step)
    for _ in range(3):
        assert compiled(X).tolist() == [2.0, 4.0]
    assert compiled.programs == 1


def test_what_code_computes_anew_is_warned_about_by_name():
    class Anew:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return SimpleNamespace(rate=2.0)

    settings = Anew()
    with pytest.warns(UserWarning, match=r"settings\.training is read while"):
        burn.compile(lambda x: settings.training.rate * x)(X)


def test_code_of_installed_packages_is_not_looked_through():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = burn.compile(lambda x: x * np.float32(np.prod([2.0, 3.0])) * sys.float_info.max)
        compiled(X)
    assert compiled.programs == 1


INSTALLED = """
RATE = 2.0

def scaled(x):
    return x * RATE

def step(x):
    return scaled(x) + RATE
"""


def test_code_of_the_package_of_the_compiled_function_is_looked_through():
    names: dict[str, Any] = {"__name__": "trainers.steps"}
    code = compile(INSTALLED, "/usr/lib/site-packages/trainers/steps.py", "exec")
    exec(code, names)  # noqa: S102 — code with the path of an installed file
    compiled = burn.compile(names["step"])
    assert compiled(X).tolist() == [4.0, 6.0]
    names["RATE"] = 3.0
    assert compiled(X).tolist() == [6.0, 9.0]


def test_an_attribute_that_raises_anything_is_no_error_of_compile():
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name) if name == "missing" else ZeroDivisionError(name)

    one = Hostile()
    one.rate = 2.0
    compiled = burn.compile(lambda x: x * (1.0 if hasattr(one, "missing") else one.rate))
    assert compiled(X).tolist() == [2.0, 4.0]


def test_a_tensor_that_is_another_one_at_each_call_is_an_input():
    one = SimpleNamespace(state=X, rate=2.0, tensors={"w": X})

    def step(x):
        return one.state * one.rate + x + one.tensors["w"]

    compiled = burn.compile(step)
    for index in range(5):
        expected = step(X).tolist()
        one.state = compiled(X)
        assert one.state.tolist() == expected
        one.tensors["w"] = X * float(index)
    assert compiled.programs <= 3
    one.state = burn.ones((3, 1), device=CPU)  # of another shape
    assert compiled(X).tolist() == step(X).tolist()


def test_a_tensor_that_moves_is_what_the_function_returns_and_writes():
    one = SimpleNamespace(state=X)

    def step(x):
        state = one.state
        state += x
        return state

    compiled = burn.compile(step)
    for _ in range(4):
        state = one.state = X + 1.0
        assert compiled(X) is state
        assert one.state.tolist() == [3.0, 5.0]
    assert X.tolist() == [1.0, 2.0]


def test_a_leaf_that_moves_has_gradients():
    device = CPU.autodiff()
    one = SimpleNamespace()
    compiled = burn.compile(lambda x: (one.weight * x).sum())
    for number in range(4):
        one.weight = burn.full(2, float(number), device=device).require_grad()
        gradients = compiled(X).backward()
        assert one.weight.grad(gradients).tolist() == [1.0, 2.0]
    assert compiled.programs <= 2


class Ignorant:
    """A reader to whom nothing is known."""

    changes = 0

    def variable(self, *_):
        return UNKNOWN

    attribute = item = contents = truth = use = operate = call = store = add = variable


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for co_const in code.co_consts:
        if isinstance(co_const, types.CodeType):
            yield from codes(co_const)


def test_no_instruction_takes_a_value_of_an_empty_stack(monkeypatch):
    short = []

    def pop(walk):
        if not walk._stack:
            short.append(walk._code)
        return walk._stack.pop() if walk._stack else UNKNOWN

    monkeypatch.setattr(bytecode._Walk, "_pop", pop)
    modules = [argparse, ast, asyncio.base_events, collections, dis, inspect, tarfile, typing]
    for module in [*modules, dataclasses, sys.modules[__name__]]:
        top = compile(Path(module.__file__).read_text("utf-8"), module.__file__, "exec")
        for code in codes(top):
            bytecode.follow(Ignorant(), code, {}, ({}, code.co_name), Call((), {}), {})
    assert short == []


def test_functions_with_comprehensions_among_arguments_are_followed():
    def scaled(x, **factors):
        return x * sum(factors.values())

    def step(x, factors):
        return scaled(
            *[tensor for tensor in (x,)],  # noqa: C416 — comprehensions are under test
            **{key: value for key, value in factors.items()},  # noqa: C416 — likewise
        )

    assert burn.compile(step)(X, {"a": 1.0, "b": 2.0}).tolist() == [3.0, 6.0]
