"""Dense layers: affine maps, and embeddings."""

from __future__ import annotations

from burn.errors import ShapeError
from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes_of
from burn.ops.index_arithmetic import mark_invalid_labels
from burn.ops.linear_algebra import transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import size
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    IndexOperand,
    Meta,
    OptionalFloat,
    Primitive,
    Shape,
)
from burn.ops.table import OpTable


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND)
def linear(
    x: FloatOperand, weight: FloatOperand, bias: OptionalFloat, *, transposed: Flag = False
) -> Meta:
    """``x @ weight + bias`` over the last axis of `x`.

    `weight` has shape (in, out): the layout of burn; or, if `transposed`, (out, in): that of
    PyTorch. `bias` has shape (out,). float16 and bfloat16 add up in float32.
    """
    return Meta(_output_shape(x, weight, bias, transposed=transposed), x.dtype)


@linear.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    weight: Primitive,
    bias: Primitive | None,
    *,
    transposed: bool = False,
) -> Primitive:
    shape = _output_shape(x, weight, bias, transposed=transposed)
    if transposed:
        weight = transpose_matrices(ops, weight)
    output = ops.matmul(x if len(x.shape) > 1 else _rows(ops, x), weight)
    if bias is not None:
        output = ops.add(output, bias)
    return output if len(shape) > 1 else ops.reshape(output, shape=shape)


@linear.gradient(saves={"x": ("weight",), "weight": ("x",), "bias": ()})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, weight = ctx.saved
    transposed = ctx.attrs.get("transposed", False)
    to_x = to_weight = to_bias = None
    if ctx.needs[0]:
        to_x = ops.linear(g, weight, None, transposed=not transposed)
    if ctx.needs[1]:  # in the layout of the weight
        rows, columns = (g, x) if transposed else (x, g)
        to_weight = ops.matmul(transpose_matrices(ops, _rows(ops, rows)), _rows(ops, columns))
    if ctx.needs[2]:
        to_bias = ops.sum(_rows(ops, g), axis=(0,), keepdims=False, dtype=ops.dtype(g))
    return to_x, to_weight, to_bias


linear.batching(leading_axes_of("x"))


def _rows(ops: OpTable, x: Primitive) -> Primitive:
    """A tensor as a matrix with the same last axis."""
    shape = tuple(x.shape)
    return x if len(shape) == 2 else ops.reshape(x, shape=(size(shape[:-1]), shape[-1]))


def _output_shape(
    x: Meta | Primitive,
    weight: Meta | Primitive,
    bias: Meta | Primitive | None,
    *,
    transposed: bool,
) -> Shape:
    shape, matrix = tuple(x.shape), tuple(weight.shape)
    if len(matrix) != 2:
        layout = "(out, in)" if transposed else "(in, out)"
        raise ShapeError(f"weight has shape {matrix}", hint=f"It is a matrix of shape {layout}")
    (inputs, outputs), row, column = matrix, "row", "column"
    if transposed:
        inputs, outputs, row, column = outputs, inputs, column, row
    if not shape or shape[-1] != inputs:
        raise ShapeError(
            f"x of shape {shape} does not fit a weight of shape {matrix}",
            hint=f"The last axis of x must have length {inputs}, as weight has that many {row}s",
        )
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise ShapeError(
            f"bias has shape {tuple(bias.shape)} where {(outputs,)} is needed",
            hint=f"It has one element for each {column} of the weight",
        )
    return (*shape[:-1], outputs)


@op(Tag.CHECKS_INDICES)
def embedding(weight: FloatOperand, indices: IndexOperand) -> Meta:
    """One row of `weight` for each index, along a new last axis.

    An index is in [0, n) for n rows, and does not count from the end. Gradients of a row with
    several indices add up.
    """
    return Meta((*indices.shape, _row_length(weight)), weight.dtype)


@embedding.decomposition
def _(ops: OpTable, weight: Primitive, indices: Primitive) -> Primitive:
    length = _row_length(weight)
    shape = tuple(indices.shape)
    rows = ops.select(
        weight, ops.reshape(mark_invalid_labels(ops, indices), shape=(size(shape),)), axis=0
    )
    return ops.reshape(rows, shape=(*shape, length))


embedding.batching(leading_axes_of("indices"))


def _row_length(weight: Meta | Primitive) -> int:
    if len(weight.shape) != 2:
        raise ShapeError(
            f"weight has shape {tuple(weight.shape)}",
            hint="It is a matrix with one row for each index: shape (count, length)",
        )
    return int(weight.shape[1])
