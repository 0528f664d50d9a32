"""One call of a function that is compiled: what it computes, reads, rebinds and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from burn.autodiff import AutodiffTensor, Freed, Leaf, Node, Rule
from burn.devices import (
    Device,
    TensorType,
    before_compilation,
    plans_hidden_from_traces,
    tracing,
    watches,
)
from burn.devices.default import asked as default_asked
from burn.dispatch import meta_of
from burn.errors import TraceError
from burn.functions.common import dispatch
from burn.generator import reserved_by
from burn.ir import GraphIr, ScalarIr, TensorIr, with_last_uses
from burn.transforms._arguments import is_tensor
from burn.transforms._checks import Check
from burn.transforms._code import Code, Given
from burn.transforms._history import History
from burn.transforms._parts import ir_of
from burn.transforms._program_vjp import Backward, program_vjp
from burn.transforms._reads import Reads, reads_of
from burn.transforms._results import Output, Results, View, rebound_of
from burn.transforms._signature import Signature, state_of
from burn.transforms.tracing import Tracing

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.router import Recorder
    from burn.tensor.tensor import Tensor
    from burn.transforms.tracing import TensorSpec

__all__ = ["Aliased", "Compiling", "Output", "Recorded", "record"]


class Aliased(Exception):  # noqa: N818 — it asks for another trace
    """The function has an argument from elsewhere too.

    Attributes
    ----------
    names : frozenset of str
        Such arguments.
    modules : frozenset of str
        Those of them that are modules, or have some, which were inputs by their parameters.
    """

    def __init__(self, names: set[str], modules: set[str]) -> None:
        self.names = frozenset(names)
        self.modules = frozenset(modules & names)


class Compiling(Tracing):
    """One call of a function that is traced to be compiled.

    Attributes
    ----------
    arguments : dict of int to str
        For the id of each tensor among the arguments that the function gets another one for: the
        name of the argument.
    aliased : set of str
        Arguments with tensors that the function uses from elsewhere too.
    passed : list of (str, object, object)
        Lists and dicts that the function gets, by their names, and copies of them.
    asked : int
        How often the default device had been asked for before.
    sources : dict of Node to Node
        For each node outside that tracks an input: the node that tracks it in the trace.
    """

    def __init__(self) -> None:
        super().__init__("compile", takes_tracked=False, compiles=True)
        self.arguments: dict[int, str] = {}
        self.aliased: set[str] = set()
        self.passed: list[tuple[str, Any, Any]] = []
        self.asked = default_asked()
        self._outside: dict[Node, Node] = {}

    @property
    def sources(self) -> dict[Node, Node]:
        return {**self._leaves, **self._outside}

    def __enter__(self) -> None:
        super().__enter__()
        for call in before_compilation:
            call()

    def forget(self) -> None:
        """Let go of what the function has made, but for the operations."""
        self.captured.clear()
        self.passed.clear()
        self.recorder.constants.clear()
        self._leaves.clear()
        self._outside.clear()

    def join(self, x: Tensor) -> bool:
        """As any trace; it also notes arguments that the function has from elsewhere."""
        has_joined = super().join(x)
        if has_joined and id(x) in self.arguments:
            self.aliased.add(self.arguments[id(x)])
        return has_joined

    def stand_in(self, x: Tensor | TensorSpec) -> tuple[Primitive, TensorType]:
        """As any trace; a tensor that was computed from leaves outside tracks its uses inside."""
        tracked: Any = x.primitive if is_tensor(x) else None
        if not isinstance(tracked, AutodiffTensor) or isinstance(tracked.node, Leaf):
            return super().stand_in(x)
        device = self._on(x.device)
        wrapped = device.backend.tensor_type()
        wrapped.primitive = self.recorder.tensor(tuple(x.shape), x.dtype)
        wrapped.node = self._outside.setdefault(tracked.node, _node_outside(x, device))
        return wrapped, device.tensor_type(x.dtype)

    def tracks(self, x: Tensor) -> bool:
        """Whether a result has a graph that may lead to an input that is tracked."""
        if not self._outside:
            return super().tracks(x)
        node = getattr(x.primitive, "node", None)
        return node is not None and node.rule.__class__ is not Freed


def _node_outside(x: Any, device: Device) -> Node:
    """What a tensor that was computed from leaves outside has for its node."""
    node = Node()
    node.rule = Rule("compile", _refuse_to_go_on, device.below.ops, 1, broadcasts=False)
    node.parents = node.needs = ()
    node.saved = ()
    node.attrs = {}
    node.output_shape = tuple(x.shape)
    return node


def _refuse_to_go_on(*_: Any) -> NoReturn:
    raise TraceError(
        "backward inside of a compiled function comes to a tensor that was computed from leaves "
        "outside of it",
        hint="Call backward outside; or pass the leaf, and compute with it inside",
    )


@dataclass(slots=True)
class Recorded:
    """A call that was traced.

    Attributes
    ----------
    graph : GraphIr
        What it computes: results, what is rebound, and what the backward pass needs.
    code : Code
        Checks of the arguments, which read their primitives.
    checks : dict of str to list of str
        For the variable of each tensor from outside: the lines that check it.
    signature : Signature
        The arguments.
    given : list of Given
        The tensors that are inputs, in order.
    numbers : list of str
        How the generated function gets the numbers that are inputs, after the tensors.
    outputs : list of Output
        The outputs that are results, or are rebound.
    views : list of View
        The results that share elements with other tensors.
    rebound : list of (int, int)
        Indices of an input, and of the output that it is rebound to.
    result : str
        How the generated function makes the result of ``r0``, ``r1``, ...
    result_count : int
        Number of outputs that are results; the others are rebound.
    leaf_count : int
        Number of leaves, and nodes of other tracked tensors, among the arguments.
    asks_for_default : bool
        Whether the function has asked for the default device.
    device : Device or None
        Where the program runs.
    backward : Backward or None
        The gradient of results that are tracked.
    effects, watched : list
        See `Tracing`.
    """

    graph: GraphIr
    code: Code
    checks: dict[str, list[str]]
    signature: Signature
    given: list[Given]
    numbers: list[str]
    outputs: list[Output]
    views: list[View]
    rebound: list[tuple[int, int]]
    result: str
    result_count: int
    leaf_count: int
    asks_for_default: bool
    device: Device | None
    backward: Backward | None
    effects: list[Callable[[], None]]
    watched: list[tuple[Callable[[], object], object]]
    is_for_one_call: bool = False

    def relax(self) -> None:
        """Permit code that rounds less often than the operations do; see `burn.compile`."""
        self.graph = replace(self.graph, relaxed=True)
        if self.backward is not None:
            graph = replace(self.backward.graph, relaxed=True)
            self.backward = replace(self.backward, graph=graph)


def record(
    function: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    names: Sequence[str],
    by_identity: frozenset[str],
    takes_apart: Callable[[str, Any], bool],
    history: History,
) -> tuple[Recorder, Recorded]:
    """Trace a call. What the function made is gone when this returns.

    `history` tells what holds other tensors than before, and what the function changes again.

    Raises
    ------
    Aliased
        If an argument that is not passed as it is has a tensor that the function uses otherwise.
    """
    trace = Compiling()
    code = Code()
    signature = Signature(trace, code, by_identity, takes_apart)
    values, named = signature.call(args, keywords, names)
    reads = reads_of(function, args, keywords)
    moving: Mapping[int, Check] = history.moving(reads)
    try:
        with (
            plans_hidden_from_traces(),
            tracing(trace),
            reserved_by(trace.recorder.reserve),
            trace,
        ):
            for obj in reads.objects:
                for watch_of in watches:
                    read = watch_of(obj)
                    if read is not None:
                        trace.watch(read)
            result = function(*values, **named)
            used = {id(captured.tensor) for captured in trace.captured}
            moving = {number: check for number, check in moving.items() if number in used}
            changed = _compared(reads, moving, code)
            recorded = _recorded(trace, code, signature, result, moving)
    except Exception as error:
        if not signature.taken_apart:
            raise
        # An optimizer knows the parameters of the module itself, and not those of its stand-in.
        raise Aliased(signature.taken_apart, signature.taken_apart) from error
    finally:
        if trace.aliased:
            raise Aliased(trace.aliased, signature.taken_apart)
    told = [history.is_traced_again(check) for check in changed]
    recorded.is_for_one_call = any(told)
    # Each call asks for these, which a trace may have changed before its end.
    recorded.watched = [(read, read()) for read, _ in trace.watched]
    recorder = trace.recorder
    signature.release()
    for given in recorded.given:
        given.release()
    trace.forget()  # a function that each call calls may hold the trace
    return recorder, recorded


def _compared(reads: Reads, moving: Mapping[int, Check], code: Code) -> list[Check]:
    """Write the checks of what the function reads; those of what it has changed are returned."""
    changed = []
    for check in reads.checks.values():
        if moving.get(id(check.value)) is check:
            continue
        if check.is_unchanged():
            check.write(code)
        elif not check.is_of_burn:
            changed.append(check)
    return changed


def _recorded(
    trace: Compiling, code: Code, signature: Signature, result: Any, moving: Mapping[int, Check]
) -> Recorded:
    """What a function did that has returned, while its trace is still running."""
    for name, made, before in trace.passed:
        _check_unchanged(name, made, before)
    captured = _captured(trace, code, moving)
    moved = {id(tensor.stand_in): tensor.variable for tensor in captured if tensor.is_argument}
    given = [*signature.given, *captured]
    results = Results(trace, code, signature.stand_ins | moved, given)
    expression = results.result(result)
    count = len(results.outputs)
    rebound = []
    for index, value in rebound_of(given):
        rebound.append((index, results.add_rebound(value)))
    recorder = trace.recorder
    boundary = len(recorder.operations)
    draw = recorder.draw
    numbers = [*signature.numbers, *_read_numbers(trace, code)]
    scalars = [number for number, _ in numbers]
    inputs = [given.ir for given in given]
    outputs = [ir_of(primitive) for primitive in results.primitives]
    backward: Backward | None = None
    saved: list[TensorIr] = []
    tracked = [index for index, output in enumerate(results.outputs) if output.is_tracked]
    if tracked:
        backward, saved = program_vjp(
            trace, list(trace.sources.values()), given, results.primitives, tracked, scalars
        )
    graph = with_last_uses(
        GraphIr(
            (*inputs, *scalars),
            tuple(recorder.constants),
            tuple(recorder.operations[:boundary]),
            (*outputs, *saved),
            draw,
        )
    )
    of_arguments = code.lines
    checks = {}
    for tensor in captured:
        if tensor.is_first and not tensor.is_argument:
            checks[tensor.variable] = code.lines = []
            code.check_tensor(tensor)
    code.lines = of_arguments
    return Recorded(
        graph,
        code,
        checks,
        signature,
        given,
        [expression for _, expression in numbers],
        results.outputs,
        results.views,
        rebound,
        expression,
        count,
        len({id(given.start.node) for given in given if given.state and given.is_argument}),
        default_asked() != trace.asked,
        _device_of(recorder),
        backward,
        trace.effects,
        [],
    )


def _check_unchanged(name: str, made: Any, before: Any) -> None:
    """Raise TraceError if a function has changed a list or dict that it got."""
    items, old = (
        (list(made.items()), list(before.items())) if isinstance(made, dict) else (made, before)
    )
    pairs = [(item, other) for item, other in zip(items, old, strict=False)]
    is_same = len(items) == len(old) and all(
        (item is other) or (isinstance(made, dict) and item[0] is other[0] and item[1] is other[1])
        for item, other in pairs
    )
    if not is_same:
        raise TraceError(
            f"the function changes the {type(made).__name__} {name}, which no call after the first "
            "would do",
            hint="Return a new one",
            operation="compile",
        )


def _captured(trace: Compiling, code: Code, moving: Mapping[int, Check]) -> list[Given]:
    """The tensors from outside that the function uses.

    Those that move are read at each call, as arguments are.
    """
    found: list[Given] = []
    for captured in trace.captured:
        x = captured.tensor
        outside = dispatch.wrap(captured.primitive, captured.tensor_type)
        check = moving.get(id(x))
        if check is None:
            name, variable = f"a tensor {meta_of(outside)} from outside", code.constant(x, "c")
        else:
            name, variable = check.name, code.attempt(check.expression(code), check.name)
            code.unless(f"{variable}.__class__ is {code.shared(x.__class__, 'k')}", name)
        given = Given(
            name,
            captured.tensor_type,
            variable,
            state_of(outside),
            is_argument=check is not None,
            tensor=outside,
            stand_in=x,
            start=captured.start,
        )
        if check is not None:
            code.check_tensor(given)
        found += given.parts()
    return found


def _read_numbers(trace: Compiling, code: Code) -> list[tuple[ScalarIr, str]]:
    return [
        (number, f"{number.kind.__name__}({code.constant(read, 'read')}())")
        for number, read in trace.numbers
    ]


def _device_of(recorder: Recorder) -> Device | None:
    return Device(recorder.device) if recorder.device else None
