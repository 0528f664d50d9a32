"""Ops that run programs, on all examples of a batch in a trace: the programs get the batch axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.batching import Batch, BatchedTensor, Frame
from burn.ir import Execution, GraphIr, with_last_uses
from burn.ops import BatchedCall, observing
from burn.ops.batching import expanded
from burn.router import Recorder, TraceBackend

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.ops import OpTable

__all__ = ["batch_cond", "batch_scan", "batch_while_loop"]

_Function = Callable[[Any, list["Primitive"]], Sequence["Primitive"]]
"""From a table of the batch, and operands, to results."""


def batch_cond(
    ops: OpTable,
    batch: BatchedCall,
    predicate: Primitive,
    operands: list[Primitive],
    *,
    true_function: GraphIr,
    false_function: GraphIr,
    **state: Any,
) -> Sequence[Primitive]:
    """The batching rule of ``cond``, whose predicate is the same for all examples."""
    flags: Any = batch.is_batched[1]
    first, second = [
        _batched(graph, _running(graph), flags, batch.size, ops)
        for graph in (true_function, false_function)
    ]
    outputs: Sequence[Primitive] = ops.cond(
        predicate, operands, true_function=first, false_function=second, **state
    )
    return outputs


def batch_while_loop(
    ops: OpTable,
    batch: BatchedCall,
    carry: list[Primitive],
    captured: list[Primitive],
    *,
    condition: GraphIr,
    body: GraphIr,
) -> Sequence[Primitive]:
    """The batching rule of ``while_loop``: it goes on while one example does.

    The carry of an example that is done stays as it is.
    """
    carried, shared = _flags(batch.is_batched)
    flags = [True] * len(carried) + shared
    goes_on, following = _running(condition), _running(body)

    def one_goes_on(table: Any, operands: list[Primitive]) -> Sequence[Primitive]:
        (predicate,) = goes_on(table, operands)
        if isinstance(predicate, BatchedTensor):
            return (table.below.any(predicate.primitive, axis=(0,)),)
        return (predicate,)

    def masked(table: Any, operands: list[Primitive]) -> Sequence[Primitive]:
        (predicate,) = goes_on(table, operands)
        values = following(table, operands)
        if isinstance(predicate, BatchedTensor):
            pairs = zip(values, operands, strict=False)
            values = [table.where(predicate, new, old) for new, old in pairs]
        return values

    outputs: Sequence[Primitive] = ops.while_loop(
        expanded(ops, batch, carry, carried),
        captured,
        condition=_batched(condition, one_goes_on, flags, batch.size, ops, is_batched=False),
        body=_batched(body, masked, flags, batch.size, ops),
    )
    return outputs


def batch_scan(
    ops: OpTable,
    batch: BatchedCall,
    carry: list[Primitive],
    xs: list[Primitive],
    captured: list[Primitive],
    *,
    body: GraphIr,
    **attributes: Any,
) -> Sequence[Primitive]:
    """The batching rule of ``scan``."""
    carried, given, shared = _flags(batch.is_batched)
    flags = [True] * len(carried) + given + shared
    outputs = ops.scan(
        expanded(ops, batch, carry, carried),
        [_moved(ops, x) if flag else x for x, flag in zip(xs, given, strict=True)],
        captured,
        body=_batched(body, _running(body), flags, batch.size, ops),
        **attributes,
    )
    count = len(carry)
    return (*outputs[:count], *[_moved(ops, output) for output in outputs[count:]])


def _flags(is_batched: Sequence[Any]) -> list[list[bool]]:
    """For each list of operands whether its tensors are batched."""
    return [list(item) for item in is_batched]


def _moved(ops: OpTable, x: Primitive) -> Primitive:
    """A tensor whose first two axes are exchanged."""
    return ops.permute(x, axes=(1, 0, *range(2, len(x.shape))))


def _running(graph: GraphIr) -> _Function:
    draw: Any = (0, 0)
    if graph.draw is not None:  # scalars stand for the numbers
        draw = graph.draw.seed, graph.draw.offset
    return lambda table, operands: Execution(graph, table).run(operands, draw)


def _batched(
    graph: GraphIr,
    function: _Function,
    flags: Sequence[bool],
    size: int,
    ops: OpTable,
    *,
    is_batched: bool = True,
) -> GraphIr:
    """A program of what a function computes of a batch.

    Parameters
    ----------
    graph : GraphIr
        The program of one example, whose inputs the function takes.
    function : callable
        What is computed.
    flags : sequence of bool
        For each input whether each example has its own.
    size : int
        Number of examples.
    ops : OpTable
        What is to run it.
    is_batched : bool
        Whether the outputs get the batch axis, as those do that are the same for all examples.
    """
    recorder = Recorder()
    backend = TraceBackend(  # type: ignore[abstract]  # its ops are those of its table
        observing.plain(ops.backend), lambda: recorder, lambda _: ""
    )
    level, frame = Batch(backend), Frame(size)
    table = level.for_device(ops.device)
    tensors: Sequence[Any] = graph.inputs  # no scalars, and of known lengths
    inputs = [
        recorder.tensor((size, *tensor.shape) if flag else tensor.shape, tensor.dtype)
        for tensor, flag in zip(tensors, flags, strict=True)
    ]
    given = [level.wrap(x, frame) if flag else x for x, flag in zip(inputs, flags, strict=True)]
    outputs = [
        batched_tensor
        if not is_batched
        else batched_tensor.primitive
        if isinstance(batched_tensor, BatchedTensor)
        else table.below.expand(batched_tensor, shape=(size, *batched_tensor.shape))
        for batched_tensor in function(table, given)
    ]
    made = GraphIr(
        tuple([source.ir for source in inputs]),
        tuple(recorder.constants),
        tuple(recorder.operations),
        tuple([output.ir for output in outputs]),
        graph.draw,
    )
    return with_last_uses(made)
