"""Control flow: ops whose attributes are programs, which they run.

A program is a `burn.ir.GraphIr`. The first of its inputs are the operands that the op says; the
last are the tensors that the function it was traced from used from outside.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from burn.dtype import bool_
from burn.errors import ArgumentError, AutodiffError, DTypeError, OperandTypeError, ShapeError
from burn.ops.batching import BatchedCall
from burn.ops.op import Op, Tag, op
from burn.ops.signature import (
    AnyList,
    AnyOperand,
    BoolOperand,
    Flag,
    Graph,
    Integer,
    Meta,
    Primitive,
    RuntimeInteger,
)
from burn.ops.table import OpTable

_GRADIENTS, _BATCHES = "burn.transforms._graph_gradients", "burn.transforms._graph_batches"
"""What makes programs of programs. It traces, so it is above this package."""


def _metas(tensors: Sequence[Any]) -> list[Meta]:
    """Shape and dtype of tensors of a program."""
    return [Meta(tuple(tensor.shape), tensor.dtype) for tensor in tensors]


def _check_same(found: Sequence[Meta], expected: Sequence[Meta], what: str, rule: str) -> None:
    """Raise unless tensors are those that a rule says."""
    if len(found) != len(expected):
        raise OperandTypeError(f"{what} are {len(found)} tensors, but {rule} {len(expected)}")
    for index, (meta, other) in enumerate(zip(found, expected, strict=True)):
        if meta != other:
            kind = DTypeError if meta.shape == other.shape else ShapeError
            raise kind(f"{what}: number {index} is {meta}, but {rule} {other}")


def _outputs(graph: Any, operands: Sequence[Meta], name: str) -> list[Meta]:
    """Outputs of a program that gets some operands."""
    if any(not hasattr(source, "shape") for source in graph.inputs):
        raise OperandTypeError(f"{name} takes runtime numbers", hint="It takes tensors alone")
    _check_same(_metas(graph.inputs), operands, f"the inputs of {name}", "it gets")
    if not graph.outputs:
        raise OperandTypeError(f"{name} has no outputs", hint="Leave it out: it has no effect")
    return _metas(graph.outputs)


def _check(ops: OpTable, definition: Op, *operands: Any, **attributes: Any) -> None:
    """Raise unless the rule of an op accepts some primitives."""

    def meta(operand: Any) -> Any:
        if isinstance(operand, list):
            return [meta(part) for part in operand]
        return Meta(tuple(operand.shape), ops.dtype(operand))

    definition.rule(*map(meta, operands), **attributes)


def _truths(ops: OpTable, predicate: Primitive) -> Any:
    """The values of a predicate: one, or that of each example of a batch."""
    while hasattr(predicate, "frame"):  # a batch, whose axis is hidden
        predicate = predicate.primitive
    return ops.backend.to_data(predicate).array


def _chosen(
    ops: OpTable, predicate: Primitive, first: Sequence[Primitive], second: Sequence[Primitive]
) -> tuple[Primitive, ...]:
    """For each example the tensors that its predicate says."""
    return tuple(
        [ops.where(predicate, item, other) for item, other in zip(first, second, strict=True)]
    )


def _total(graph: Any) -> tuple[int, int]:
    """Floating-point operations and bytes of a run of a program."""
    total = graph.cost().total
    return total.flops, total.bytes


@op(Tag.VIEW | Tag.NO_GRADIENT)
def detach(x: AnyOperand) -> Meta:
    """The same elements without a gradient: to one who differentiates a program, a constant."""
    return x


@detach.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.reshape(x, shape=tuple(x.shape))


@op(Tag.COMPUTE_BOUND, outputs=("true_function",))
def cond(
    predicate: BoolOperand,
    operands: AnyList,
    *,
    true_function: Graph,
    false_function: Graph,
    seed: RuntimeInteger = 0,
    offset: RuntimeInteger = 0,
) -> tuple[Meta, ...]:
    """The outputs of one of two programs of the operands, by a predicate without axes.

    `seed` and `offset` are the state of the generator of both programs.
    """
    if predicate.shape:
        raise ShapeError(
            f"the predicate has shape {predicate.shape}",
            hint="It has no axes; where() chooses for each element",
        )
    outputs = _outputs(true_function, operands, "true_function")
    others = _outputs(false_function, operands, "false_function")
    _check_same(others, outputs, "the outputs of false_function", "those of true_function")
    return tuple(outputs)


@cond.decomposition
def _(
    ops: OpTable,
    predicate: Primitive,
    operands: list[Primitive],
    *,
    true_function: Any,
    false_function: Any,
    seed: int = 0,
    offset: int = 0,
) -> tuple[Primitive, ...]:
    _check(
        ops, cond, predicate, operands, true_function=true_function, false_function=false_function
    )
    runs = [item.prepared(ops).run for item in (true_function, false_function)]
    if not ops.is_recorded:
        truths = _truths(ops, predicate)
        if truths.all() or not truths.any():
            return runs[not truths.any()](operands, (seed, offset))  # type: ignore[no-any-return]  # of primitives
    return _chosen(ops, predicate, *[run(operands, (seed, offset)) for run in runs])


@cond.linearization
def _(ops: OpTable, needs: Sequence[Any], *operands: Any, **attributes: Any) -> Any:
    return importlib.import_module(_GRADIENTS).linearize_cond(ops, needs, *operands, **attributes)


@cond.batching
def _(ops: OpTable, batch: BatchedCall, *operands: Any, **attributes: Any) -> Any:
    if batch.is_batched[0] or not ops.is_recorded:
        return NotImplemented
    return importlib.import_module(_BATCHES).batch_cond(ops, batch, *operands, **attributes)


@cond.cost
def _(
    output: Any, *operands: Any, true_function: Any, false_function: Any, **attributes: Any
) -> tuple[int, int]:
    return max(_total(true_function), _total(false_function))


@op(Tag.COMPUTE_BOUND, outputs=("carry",))
def while_loop(
    carry: AnyList, captured: AnyList, *, condition: Graph, body: Graph
) -> tuple[Meta, ...]:
    """What a program makes of the carry, again and again while another one says true.

    Both get the carry and the captured tensors. `condition` gives one bool without axes, `body` the
    next carry.
    """
    operands = [*carry, *captured]
    _check_same(
        _outputs(condition, operands, "condition"),
        [Meta((), bool_)],
        "the outputs of condition",
        "it must give",
    )
    outputs = _outputs(body, operands, "body")
    _check_same(outputs, carry, "the outputs of body", "the carry has")
    return tuple(outputs)


@while_loop.decomposition
def _(
    ops: OpTable,
    carry: list[Primitive],
    captured: list[Primitive],
    *,
    condition: Any,
    body: Any,
) -> tuple[Primitive, ...]:
    _check(ops, while_loop, carry, captured, condition=condition, body=body)
    goes_on, following = condition.prepared(ops).run, body.prepared(ops).run
    values = tuple(carry)
    while True:
        (predicate,) = goes_on([*values, *captured])
        truths = _truths(ops, predicate)
        if not truths.any():
            return values
        made = following([*values, *captured])
        values = made if truths.all() else _chosen(ops, predicate, made, values)


@while_loop.linearization
def _(ops: OpTable, needs: Sequence[Any], *operands: Any, **attributes: Any) -> Any:
    del needs, operands, attributes
    if ops.is_recorded:
        raise AutodiffError(
            "the number of iterations is not known, so no program computes the gradient",
            hint="Use burn.scan, or burn.fori_loop with bounds that are Python integers; or call "
            ".detach() on what the loop uses",
        )
    return NotImplemented


@while_loop.batching
def _(ops: OpTable, batch: BatchedCall, *operands: Any, **attributes: Any) -> Any:
    if not ops.is_recorded:
        return NotImplemented
    return importlib.import_module(_BATCHES).batch_while_loop(ops, batch, *operands, **attributes)


@while_loop.cost
def _(output: Any, *operands: Any, condition: Any, body: Any) -> tuple[int, int]:
    """Of one iteration."""
    flops, sizes = zip(_total(condition), _total(body), strict=True)
    return sum(flops), sum(sizes)


@op(Tag.COMPUTE_BOUND, outputs=("body",))
def scan(
    carry: AnyList,
    xs: AnyList,
    captured: AnyList,
    *,
    body: Graph,
    length: Integer,
    reverse: Flag = False,
    seed: RuntimeInteger = 0,
    offset: RuntimeInteger = 0,
    offset_stride: Integer = 0,
) -> tuple[Meta, ...]:
    """A program for each element along the first axis of some tensors, with a carry.

    `body` gets the carry, an element of each of `xs`, and the captured tensors. It gives the next
    carry, and what is stacked: the outputs are the last carry, and tensors with a first axis of
    that length. With `reverse` it begins at the last elements. Each iteration has a generator whose
    offset is `offset_stride` after that of the one before.
    """
    if length < 0:
        raise ArgumentError(f"the length is {length}", hint="It is 0 or more")
    elements = []
    for index, meta in enumerate(xs):
        if not meta.shape or meta.shape[0] != length:
            raise ShapeError(f"number {index} of xs is {meta}, and the length is {length}")
        elements.append(Meta(meta.shape[1:], meta.dtype))
    outputs = _outputs(body, [*carry, *elements, *captured], "body")
    count = len(carry)
    _check_same(outputs[:count], carry, "the first outputs of body", "the carry has")
    return (
        *outputs[:count],
        *[Meta((length, *shape), dtype) for shape, dtype in outputs[count:]],
    )


@scan.decomposition
def _(
    ops: OpTable,
    carry: list[Primitive],
    xs: list[Primitive],
    captured: list[Primitive],
    *,
    body: Any,
    length: int,
    reverse: bool = False,
    seed: int = 0,
    offset: int = 0,
    offset_stride: int = 0,
) -> tuple[Primitive, ...]:
    _check(ops, scan, carry, xs, captured, body=body, length=length)
    run = body.prepared(ops).run
    count = len(carry)
    rows = []
    take, reshape = ops.slice, ops.reshape
    shapes = [tuple(x.shape[1:]) for x in xs]
    whole = [tuple([(0, extent, 1) for extent in shape]) for shape in shapes]
    pairs = list(zip(xs, shapes, whole, strict=True))
    for step in range(length):
        position = length - 1 - step if reverse else step
        elements = [
            reshape(take(x, slices=((position, 1, 1), *others)), shape=shape)
            for x, shape, others in pairs
        ]
        results = run([*carry, *elements, *captured], (seed, offset + step * offset_stride))
        carry = list(results[:count])
        rows.append(results[count:])
    if reverse:
        rows.reverse()
    if not rows:
        return (
            *carry,
            *[
                ops.full(shape=(0, *output.shape), fill_value=0, dtype=output.dtype)
                for output in body.outputs[count:]
            ],
        )
    stacked = []
    for column in zip(*rows, strict=True):
        shape = (1, *column[0].shape)
        stacked.append(ops.concat([ops.reshape(item, shape=shape) for item in column], axis=0))
    return (*carry, *stacked)


@scan.linearization
def _(ops: OpTable, needs: Sequence[Any], *operands: Any, **attributes: Any) -> Any:
    return importlib.import_module(_GRADIENTS).linearize_scan(ops, needs, *operands, **attributes)


@scan.batching
def _(ops: OpTable, batch: BatchedCall, *operands: Any, **attributes: Any) -> Any:
    if not ops.is_recorded:
        return NotImplemented
    return importlib.import_module(_BATCHES).batch_scan(ops, batch, *operands, **attributes)


@scan.cost
def _(output: Any, *operands: Any, body: Any, length: int, **attributes: Any) -> tuple[int, int]:
    flops, size = _total(body)
    return length * flops, length * size
