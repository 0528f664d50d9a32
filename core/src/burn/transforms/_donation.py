"""Inputs of a compiled function whose memory its run overwrites if nothing else refers to it."""

from __future__ import annotations

import functools
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from burn.devices.transfer import fail
from burn.functions.common import dispatch
from burn.functions.views import has_views
from burn.ir import Donation, GraphIr, OperationIr, ScalarIr, may_raise
from burn.ops import REGISTRY, Tag, observing
from burn.transforms._code import Code, Given

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.transforms._compiling import Recorded

__all__ = ["Donors", "with_donations"]

_CALLS: Final = 4
"""Calls after which it is known whether an executable uses the memory that it may overwrite."""


def with_donations(recorded: Recorded, given_up: Collection[Given]) -> GraphIr:
    """The program with all that a run may overwrite.

    That is each input which is rebound, by its new value, and what the caller gives up, by a result
    of its shape and dtype. What the gradient needs is not overwritten, nor what is returned as it
    is. Nor is what is rebound before an operation that may raise an error of values: after such an
    error all is as before.
    """
    graph = recorded.graph
    ids = Counter([output.id for output in graph.outputs])
    inputs = {source.id for source in graph.inputs if not isinstance(source, ScalarIr)}
    early = {constant.tensor.id for constant in graph.constants} | _made_before_an_error(graph)
    saved = recorded.backward.saved if recorded.backward is not None else ()
    kept = {index for kind, index in saved if kind == "input"}
    free = [
        index
        for index, output in enumerate(graph.outputs[: len(recorded.outputs)])
        if ids[output.id] == 1 and output.id not in inputs and output.id not in early
    ]

    is_free = set(free)

    def may_be_written(index: int) -> bool:
        one = graph.inputs[index]
        if isinstance(one, ScalarIr) or recorded.given[index].part:  # parts may be those of views
            return False
        return index not in kept and one.id not in ids

    pairs: list[tuple[int, int | None]] = [
        (input, output)
        for input, output in recorded.rebound
        if output in is_free
        and may_be_written(input)
        and graph.inputs[input][1:3] == graph.outputs[output][1:3]  # type: ignore[index]  # a tensor
    ]
    taken = {output for _, output in pairs}
    chosen = {input for input, _ in pairs}
    results: dict[Any, list[int]] = {}  # by shape and dtype, the first one at the end
    for index in reversed(free):
        if index not in taken and index < recorded.result_count:
            results.setdefault(graph.outputs[index][1:3], []).append(index)
    donated = {id(given) for given in given_up}
    for input, one in enumerate(recorded.given):
        if id(one) not in donated or input in chosen or not may_be_written(input):
            continue
        fitting = results.get(graph.inputs[input][1:3])  # type: ignore[index]  # likewise
        pairs.append((input, fitting.pop() if fitting else None))
    return replace(graph, donated=tuple([Donation(*pair) for pair in pairs]))


def _made_before_an_error(graph: GraphIr) -> set[int]:
    """The tensors that are there when the last operation runs that may raise an error of values.

    All of them, if it is one that no kernel runs: it may run after those that kernels run.
    """
    last = 0
    operations = [operation for operation in graph.operations if isinstance(operation, OperationIr)]
    for index, operation in enumerate(operations):
        if may_raise(operation):
            is_of_indices = Tag.CHECKS_INDICES in REGISTRY[operation.name].tags
            last = max(last, index if is_of_indices else len(operations))
    return {output.id for operation in operations[:last] for output in operation.outputs}


@dataclass(slots=True)
class _Donor:
    """An input whose memory may be overwritten.

    Attributes
    ----------
    given : Given
        The input.
    input : int
        Its index.
    reference : str
        The name, in the generated function, of a weak reference to what the tensor held when
        `Backend.can_write` was asked, and nothing but the tensor referred to it.
    counts : list of str
        The names of the counts of references at that time.
    counted : list of str
        What they are of, for a tensor ``{x}``.
    """

    given: Given
    input: int
    reference: str
    counts: list[str]
    counted: list[str]

    @property
    def is_checked(self) -> bool:
        """Whether the condition says all that the checks of a tensor from outside say."""
        return not (self.given.is_argument or self.given.has_hooks)

    def condition(self, code: Code) -> str:
        """Whether the tensor holds that still, and nothing has begun to refer to it."""
        if not self.counts:
            return "False"
        given = self.given
        x = given.variable
        parts = [f"{self.reference}() is {x}.primitive", f"not {x}.link"]
        if self.is_checked:
            parts.append(f"{x}.tensor_type is {code.shared(given.tensor_type, 'T')}")
            if given.state:
                parts.append(f"{x}.primitive.node.hooks is None")
        for name, counted in zip(self.counts, self.counted, strict=True):
            parts.append(f"getrefcount({counted.format(x=x)}) <= {name}")
        return " and ".join(parts)


class Donors:
    """Finds out at each call, of each input for itself, whether it is free to be overwritten.

    What is not is copied.

    Parameters
    ----------
    graph : GraphIr
        With what may be overwritten.
    given : sequence of Given
        Its inputs.
    device : Device
        Where it runs.
    code : Code
        The generated function.
    """

    def __init__(self, graph: GraphIr, given: Sequence[Given], device: Device, code: Code) -> None:
        self._graph = graph
        self._device = device
        self._table = device.ops
        self._backend = observing.plain(self._table.backend)
        self._code = code
        self._donors = [self._donor(given[input], input) for input, _ in graph.donated]
        self._calls = 0
        self._is_used = False
        code.names |= {donor.reference: _nothing for donor in self._donors}
        code.names |= {name: 0 for donor in self._donors for name in donor.counts}
        code.names |= {"donates": True, "verify": self._verify, "with_copies": self._with_copies}
        code.names["getrefcount"] = sys.getrefcount

    def _donor(self, given: Given, input: int) -> _Donor:
        value = "{x}.primitive.primitive" if given.state else "{x}.primitive"
        paths = getattr(self._backend, "counts_references", ()) if _exclusive() else ()
        counted = [value + path for path in paths]
        if counted and given.state:
            counted += ["{x}.primitive", "{x}.primitive.node"]
        new = self._code.new
        return _Donor(given, input, new("w"), [new("w") for _ in counted], counted)

    def lines(self, checks: dict[str, list[str]]) -> list[str]:
        """The lines that say which inputs are to be copied, before their primitives are read.

        What the function has in variables would count as references.

        Parameters
        ----------
        checks : dict of str to list of str
            For variables of inputs, the lines that check them. Those of the donors are taken out:
            where a donor is what it was, nothing else is checked.
        """
        donating, others = [], []
        for number, donor in enumerate(self._donors):
            x = donor.given.variable
            own = checks.pop(x, []) if donor.is_checked else []
            others += own
            donating += [
                f"if not ({donor.condition(self._code)}):",
                *[f"    {line}" for line in own],
                f"    copies += verify({number}, {x})",
            ]
        lines = ["copies = ()", "if donates:", *[f"    {line}" for line in donating]]
        return [*lines, "else:", *[f"    {line}" for line in others]] if others else lines

    def _verify(self, number: int, x: Any) -> tuple[int, ...]:
        """The index of an input that something else refers to, in a tuple; else an empty one."""
        donor, names = self._donors[number], self._code.names
        if not self._is_exclusive(x, is_leaf=bool(donor.given.state)):
            names[donor.reference] = _nothing
            return (donor.input,)
        names[donor.reference] = _reference(x.primitive)
        for name, counted in zip(donor.counts, donor.counted, strict=True):
            names[name] = _counting(counted)(x)
        return ()

    def _is_exclusive(self, x: Any, *, is_leaf: bool) -> bool:
        """Whether the backend may write to the memory of a tensor, which nothing else refers to."""
        if x.link and has_views(x):
            return False
        can_write: Callable[[Any, Any], bool] = self._backend.can_write
        if not is_leaf:
            return can_write(x.primitive, [])
        count = _exclusive()
        if not count or sys.getrefcount(x.primitive) > count:
            return False
        if sys.getrefcount(x.primitive.node) > count:
            return False
        x.primitive.node.primitive = None  # the leaf refers to its value, as its tensor does
        try:
            return can_write(x.primitive.primitive, [])
        finally:
            x.primitive.node.primitive = x.primitive.primitive

    def _with_copies(self, given: tuple[Any, ...], copies: Sequence[int]) -> tuple[Any, ...]:
        """The inputs of a run, with copies of some.

        Raises
        ------
        BurnError
            If a copy fails, as where there is no memory for it.
        """
        inputs = list(given)
        for index in copies:
            x = inputs[index]
            whole = tuple([(0, length, 1) for length in x.shape])
            try:
                inputs[index] = self._table.slice_assign(x, x, slices=whole)
            except Exception as error:  # noqa: BLE001 — of whatever library is underneath
                fail(self._device, error, f"copying {self._graph.inputs[index]}")
        return tuple(inputs)

    def watched(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A run that finds out whether an executable overwrites anything: not all of them do."""
        pairs = [(input, output) for input, output in self._graph.donated if output is not None]

        def watched(*arguments: Any) -> Any:
            outputs = run(*arguments)
            self._calls += 1
            self._is_used |= any(outputs[output] is arguments[input] for input, output in pairs)
            if self._is_used or self._calls >= _CALLS:
                self._code.names["run"] = run
                self._code.names["donates"] = self._is_used
            return outputs

        return run if self._is_used or self._calls >= _CALLS else watched


def _nothing() -> None:
    """A reference to nothing that is there: no primitive is None."""


def _reference(primitive: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(primitive)
    except TypeError:  # of a class without weak references
        return _nothing


@functools.cache
def _exclusive() -> int:
    """References to what only an attribute of a tensor refers to, as generated code counts them.

    0 where there are no counts.
    """
    if sys.implementation.name != "cpython":
        return 0
    x: Any = dispatch.wrap([], None)  # type: ignore[arg-type]  # no type is asked for
    count = _counting("{x}.primitive")
    one = count(x)
    second = x.primitive
    return one if count(x) == one + 1 and second is not None else 0


@functools.cache
def _counting(counted: str) -> Callable[[Any], int]:
    """The function that counts references to a part of a tensor, as generated code does."""
    names: dict[str, Any] = {"getrefcount": sys.getrefcount}
    exec(f"def count(x): return getrefcount({counted.format(x='x')})", names)  # noqa: S102 — of attributes
    return names["count"]  # type: ignore[no-any-return]  # the function
