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
from burn.quant_scheme import QDType
from burn.router import Recorder
from burn.transforms._arguments import is_tensor
from burn.transforms._escapes import check_escapes, name_of
from burn.transforms._parts import irs_of, joined, new_input, part_tensors
from burn.transforms.tracing import Tracing

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.devices import TensorType
    from burn.dtype import DType
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
    first, second = [traced.words for traced in traced]
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
    operands = part_tensors([*filter(is_tensor, leaves), *captured])
    true_function, false_function = [traced.graph(captured) for traced in traced]
    outputs: tuple[Tensor, ...] = dispatch.execute(
        "cond",
        predicate,
        operands,
        true_function=true_function,
        false_function=false_function,
        **_drawing([predicate], first, "cond"),
    )
    return _whole(outputs, traced[0].dtypes)


def record_while_loop(condition: Body, body: Body, carry: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Record a loop of a number of iterations that is not known: the last carry."""
    traced = [_traced(body, carry, "while_loop") for body in (condition, body)]
    if any(traced.words for traced in traced):
        raise TraceError(
            "the loop draws random numbers, and it is not known how many",
            hint="Use burn.scan, or burn.fori_loop with bounds that are Python integers; or draw "
            "the numbers before",
            operation="while_loop",
        )
    captured = _captured(traced)
    goes_on, following = [traced.graph(captured) for traced in traced]
    outputs: tuple[Tensor, ...] = dispatch.execute(
        "while_loop",
        part_tensors(carry),
        part_tensors(captured),
        condition=goes_on,
        body=following,
    )
    return _whole(outputs, traced[1].dtypes)


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
    if any(isinstance(element.dtype, QDType) for element in elements):
        raise TraceError(
            f"in a trace, a {operation} is not along a quantized tensor: elements share scales",
            hint="Call .dequantize() on it; what the function uses from outside, and what it "
            "carries, may be quantized",
            operation=operation,
        )
    traced = _traced(body, [*carry, *elements], operation)
    if any(isinstance(dtype, QDType) for dtype in traced.dtypes[len(carry) :]):
        raise TraceError(
            f"in a trace, a {operation} stacks no quantized tensors, whose scales may differ",
            hint="Call .dequantize() on what the function returns",
            operation=operation,
        )
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
        part_tensors(carry),
        list(xs),
        part_tensors(captured),
        body=traced.graph(captured),
        **attributes,
        **drawing,
    )
    return _whole(outputs, traced.dtypes)


def _whole(tensors: Sequence[Tensor], dtypes: Sequence[DType]) -> tuple[Tensor, ...]:
    """Tensors of these dtypes, of which the parts of quantized ones are given."""
    device = tensors[0].tensor_type.device
    primitives = joined([tensor.primitive for tensor in tensors], dtypes)
    if len(primitives) == len(tensors):
        return tuple(tensors)
    return tuple(
        [
            dispatch.wrap(primitive, device.tensor_type(dtype))
            for primitive, dtype in zip(primitives, dtypes, strict=True)
        ]
    )


def _drawing(tensors: Sequence[Tensor], words: int, operation: str) -> dict[str, Any]:
    """The attributes of an op that draws random numbers."""
    if not words:
        return {}
    if any(transform.kind == VMAP for transform in transforms()):
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
            None if self.outer is None else self.outer.recorder.scalars,
            is_differentiated=recording.get() is not False,
        )

    def stand_in(self, x: Tensor | TensorSpec) -> tuple[Primitive, TensorType]:
        """The primitive and type of an input of the body for a tensor."""
        device = self._on(x.device)
        primitive = new_input(self.recorder, tuple(x.shape), x.dtype)
        return primitive, device.tensor_type(x.dtype)


class _Traced(NamedTuple):
    """A body as a program.

    Attributes
    ----------
    recorder : Recorder
        What it computes.
    inputs, outputs : list of TensorIr
        Its arguments that are tensors, and its results.
    dtypes : list of DType
        Those of the results, of which a quantized one has an output for each part.
    captured : list of (Tensor, list of TensorIr)
        The tensors from outside that it uses, and the inputs for them.
    """

    recorder: Recorder
    inputs: list[TensorIr]
    outputs: list[TensorIr]
    dtypes: list[DType]
    captured: list[tuple[Tensor, list[TensorIr]]]

    @property
    def words(self) -> int:
        """Number of 32-bit words that a run draws."""
        return 0 if self.recorder.draw is None else self.recorder.draw.words

    def graph(self, captured: Sequence[Tensor]) -> GraphIr:
        """The program, with these tensors from outside as its last inputs."""
        own = {id(tensor): irs for tensor, irs in self.captured}
        inputs = [
            ir
            for tensor in captured
            for ir in own.get(id(tensor))
            or [
                TensorIr(self.recorder.next_id(), tuple(part.shape), part.dtype)
                for part in part_tensors([tensor])
            ]
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
    inputs = [ir for value in values if is_tensor(value) for ir in irs_of(value.primitive)]
    with (
        plans_hidden_from_traces(),
        tracing(trace),
        reserved_by(trace.recorder.reserve),
        trace,
    ):
        results = body(values)
        for result in results:
            trace.join(result)
        outputs = [ir for result in results for ir in irs_of(result.primitive)]
        dtypes = [result.tensor_type.dtype for result in results]
        for captured in trace.captured:
            x = captured.tensor
            if x.primitive is not captured.start:
                name = name_of(x, trace.captured, vars(trace))
                raise TraceError(
                    f"{body.name} writes to {name or f'a tensor {meta_of(x)} from outside'}",
                    hint="Return the new value, and write it to the tensor outside",
                    operation=operation,
                )
    captures = [(captured.tensor, irs_of(captured.start)) for captured in trace.captured]
    return _Traced(trace.recorder, inputs, outputs, dtypes, captures)


def _check_scalars(recorder: Recorder, name: str, operation: str) -> None:
    """Raise unless the numbers that each run gets anew are those of the body."""
    own = set() if recorder.draw is None else {recorder.draw.seed.id, recorder.draw.offset.id}
    for item in recorder.operations:
        if not isinstance(item, OperationIr):
            continue
        for key, value in item.attributes.items():
            if isinstance(value, ScalarIr) and value.id not in own:
                raise TraceError(
                    f"in {name}, {key} of {item.name} is a runtime number from outside",
                    hint="Compute with a tensor instead, which a body may use from outside",
                    operation=operation,
                )
