"""Bodies of branches and loops in a trace: programs of their own, and the ops that run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from burn.autodiff import recording
from burn.devices import VMAP, plans_hidden_from_traces, tracing, transforms
from burn.dispatch import meta_of
from burn.errors import TraceError
from burn.functions.common import dispatch
from burn.generator import reserve, reserved_by
from burn.ir import GraphIr, OperationIr, ScalarIr, TensorIr, with_last_uses
from burn.router import Recorder, RouterTensor
from burn.transforms._arguments import is_tensor
from burn.transforms._escapes import check_escapes, name_of
from burn.transforms.tracing import Tracing

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.devices import TensorType
    from burn.tensor.tensor import Tensor
    from burn.transforms.tracing import TensorSpec

__all__ = ["Body", "record_cond", "record_scan", "record_while_loop"]


class Body(Protocol):
    """A function of the user, from leaves to tensors.

    Attributes
    ----------
    name : str
        How errors name it.
    """

    name: str

    def __call__(self, leaves: Sequence[Any]) -> list[Tensor]:
        """The leaves of the result."""


def record_cond(
    predicate: Tensor, bodies: Sequence[Body], leaves: Sequence[Any]
) -> tuple[Tensor, ...]:
    """Record one of two programs: the leaves of the result."""
    traced = [_traced(body, leaves, "cond") for body in bodies]
    first, second = [one.words for one in traced]
    if first != second:
        raise TraceError(
            f"the branches draw different amounts of random numbers, {first} and {second} words, "
            "so what is drawn after them would depend on the predicate",
            hint="Draw them before, and use them in the branches",
            operation="cond",
        )
    if not traced[0].outputs:
        return ()
    captured = _captured(traced)
    operands = [*filter(is_tensor, leaves), *captured]
    true_function, false_function = [one.graph(captured) for one in traced]
    outputs: tuple[Tensor, ...] = dispatch.execute(
        "cond",
        predicate,
        operands,
        true_function=true_function,
        false_function=false_function,
        **_drawing([predicate], first, "cond"),
    )
    return outputs


def record_while_loop(condition: Body, body: Body, carry: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Record a loop of a number of iterations that is not known: the last carry."""
    traced = [_traced(one, carry, "while_loop") for one in (condition, body)]
    if any(one.words for one in traced):
        raise TraceError(
            "the loop draws random numbers, and it is not known how many",
            hint="Use burn.scan, or burn.fori_loop with bounds that are Python integers; or draw "
            "the numbers before",
            operation="while_loop",
        )
    captured = _captured(traced)
    goes_on, following = [one.graph(captured) for one in traced]
    outputs: tuple[Tensor, ...] = dispatch.execute(
        "while_loop", list(carry), captured, condition=goes_on, body=following
    )
    return outputs


def record_scan(
    body: Body,
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    elements: Sequence[TensorSpec],
    operation: str,
    **attributes: Any,
) -> tuple[Tensor, ...] | None:
    """Record a loop: the last carry, and what is stacked.

    None if there is no tensor to say where it runs.
    """
    traced = _traced(body, [*carry, *elements], operation)
    captured = _captured([traced])
    tensors = [*carry, *xs, *captured]
    if not traced.outputs:
        return ()
    if not tensors:
        return None
    words = traced.words
    drawing = _drawing(tensors, words * attributes["length"], operation)
    if drawing:
        drawing["offset_stride"] = words // 4
    outputs: tuple[Tensor, ...] = dispatch.execute(
        "scan",
        list(carry),
        list(xs),
        captured,
        body=traced.graph(captured),
        **attributes,
        **drawing,
    )
    return outputs


def _drawing(tensors: Sequence[Tensor], words: int, operation: str) -> dict[str, Any]:
    """The attributes of an op that draws random numbers."""
    if not words:
        return {}
    if any(one.kind == VMAP for one in transforms()):
        raise TraceError(
            "in burn.vmap a body that draws random numbers would draw the same for all examples",
            hint="Draw them outside of it, and use them in it",
            operation=operation,
        )
    state = reserve(tensors[0].device.generator, words)
    return {"seed": state.seed, "offset": state.offset}


class _Tracing(Tracing):
    """The call of a body in a trace. It gets values alone: the op that runs it has a gradient."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation, takes_tracked=True)
        self.body = operation
        self.recorder = Recorder(
            None if self._outer is None else self._outer.recorder.scalars,
            is_differentiated=recording.get() is not False,
        )

    def stand_in(self, x: Tensor | TensorSpec) -> tuple[Primitive, TensorType]:
        """The primitive and type of an input of the body for a tensor."""
        device = self._on(x.device)
        return self.recorder.tensor(tuple(x.shape), x.dtype), device.tensor_type(x.dtype)


class _Traced(NamedTuple):
    """A body as a program.

    Attributes
    ----------
    recorder : Recorder
        What it computes.
    inputs, outputs : list of TensorIr
        Its arguments that are tensors, and its results.
    captured : list of (Tensor, TensorIr)
        The tensors from outside that it uses.
    """

    recorder: Recorder
    inputs: list[TensorIr]
    outputs: list[TensorIr]
    captured: list[tuple[Tensor, TensorIr]]

    @property
    def words(self) -> int:
        """Number of 32-bit words that a run draws."""
        return 0 if self.recorder.draw is None else self.recorder.draw.words

    def graph(self, captured: Sequence[Tensor]) -> GraphIr:
        """The program, with these tensors from outside as its last inputs."""
        own = {id(tensor): ir for tensor, ir in self.captured}
        inputs = [
            own.get(id(one)) or TensorIr(self.recorder.next_id(), tuple(one.shape), one.dtype)
            for one in captured
        ]
        graph = GraphIr(
            (*self.inputs, *inputs),
            tuple(self.recorder.constants),
            tuple(self.recorder.operations),
            tuple(self.outputs),
            self.recorder.draw,
        )
        return with_last_uses(graph)


def _captured(bodies: Sequence[_Traced]) -> list[Tensor]:
    """The tensors from outside that some bodies use, each once."""
    return list({id(tensor): tensor for body in bodies for tensor, _ in body.captured}.values())


def _traced(body: Body, leaves: Sequence[Any], operation: str) -> _Traced:
    """A body as a program."""
    traced = _called(body, leaves, operation)
    check_escapes(traced.recorder, operation)
    _check_scalars(traced.recorder, body.name, operation)
    return traced


def _called(body: Body, leaves: Sequence[Any], operation: str) -> _Traced:
    """A body as a program. What the function made is gone when this returns."""
    trace = _Tracing(operation)
    values = [
        leaf
        if not (is_tensor(leaf) or hasattr(leaf, "dtype"))
        else dispatch.wrap(*trace.stand_in(leaf))
        for leaf in leaves
    ]
    inputs = [_ir_of(one.primitive) for one in values if is_tensor(one)]
    with (
        plans_hidden_from_traces(),
        tracing(trace),
        reserved_by(trace.recorder.reserve),
        trace,
    ):
        results = body(values)
        for one in results:
            trace.join(one)
        outputs = [_ir_of(one.primitive) for one in results]
        for captured in trace.captured:
            x = captured.tensor
            if x.primitive is not captured.start:
                name = name_of(x, trace.captured, vars(trace))
                raise TraceError(
                    f"{body.name} writes to {name or f'a tensor {meta_of(x)} from outside'}",
                    hint="Return the new value, and write it to the tensor outside",
                    operation=operation,
                )
    captures = [(one.tensor, _ir_of(one.start)) for one in trace.captured]
    return _Traced(trace.recorder, inputs, outputs, captures)


def _check_scalars(recorder: Recorder, name: str, operation: str) -> None:
    """Raise unless the numbers that each run gets anew are those of the body."""
    own = set() if recorder.draw is None else {recorder.draw.seed.id, recorder.draw.offset.id}
    for one in recorder.operations:
        if not isinstance(one, OperationIr):
            continue
        for key, value in one.attributes.items():
            if isinstance(value, ScalarIr) and value.id not in own:
                raise TraceError(
                    f"in {name}, {key} of {one.name} is a runtime number from outside",
                    hint="Compute with a tensor instead, which a body may use from outside",
                    operation=operation,
                )


def _ir_of(primitive: Primitive) -> TensorIr:
    """The tensor of a program below autodiff."""
    while not isinstance(primitive, RouterTensor):
        primitive = primitive.primitive
    return primitive.ir
