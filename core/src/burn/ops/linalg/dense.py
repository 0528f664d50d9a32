"""Dense layers: affine maps, and embeddings."""

from __future__ import annotations

from burn.errors import ShapeError
from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes_of
from burn.ops.index_arithmetic import mark_invalid_labels
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_shape, size
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    IndexOperand,
    Integer,
    Meta,
    OptionalFloat,
    Primitive,
    Shape,
)
from burn.ops.table import OpTable


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND, fuses="decomposition")
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
    if ctx.needs[1] and ctx.needs[2]:
        to_weight, to_bias = ops.linear_grad(x, g, transposed=transposed)
    elif ctx.needs[1]:
        to_weight = _weight_gradient(ops, _rows(ops, x), _rows(ops, g), transposed=transposed)
    elif ctx.needs[2]:
        to_bias = _bias_gradient(ops, _rows(ops, g))
    return to_x, to_weight, to_bias


linear.batching(leading_axes_of("x"))


@op(Tag.COMPUTE_BOUND, outputs=("weight_gradient", "bias_gradient"), fuses="decomposition")
def linear_grad(x: FloatOperand, g: FloatOperand, *, transposed: Flag = False) -> tuple[Meta, Meta]:
    """Gradients of `linear` by its weight, in the layout of that, and by its bias."""
    inputs, outputs = _lengths(x, g)
    weight = (outputs, inputs) if transposed else (inputs, outputs)
    return Meta(weight, x.dtype), Meta((outputs,), x.dtype)


@linear_grad.decomposition
def _(
    ops: OpTable, x: Primitive, g: Primitive, *, transposed: bool = False
) -> tuple[Primitive, Primitive]:
    _lengths(x, g)
    x, g = _rows(ops, x), _rows(ops, g)
    return _weight_gradient(ops, x, g, transposed=transposed), _bias_gradient(ops, g)


def _weight_gradient(ops: OpTable, x: Primitive, g: Primitive, *, transposed: bool) -> Primitive:
    rows, columns = (g, x) if transposed else (x, g)
    return ops.matmul(transpose_matrices(ops, rows), columns)


def _bias_gradient(ops: OpTable, g: Primitive) -> Primitive:
    return ops.sum(g, axis=(0,), keepdims=False, dtype=ops.dtype(g))


def _lengths(x: Meta | Primitive, g: Meta | Primitive) -> tuple[int, int]:
    """Number of inputs and of outputs of a linear layer, from its operand and a gradient."""
    if not x.shape or not g.shape or tuple(x.shape[:-1]) != tuple(g.shape[:-1]):
        raise ShapeError(
            f"g of shape {tuple(g.shape)} does not fit x of shape {tuple(x.shape)}",
            hint="They have the same axes but for the last one",
        )
    return x.shape[-1], g.shape[-1]


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


@op(Tag.CHECKS_INDICES, fuses="decomposition")
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


@embedding.gradient(saves=("indices",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (indices,) = ctx.saved
    return ops.embedding_grad(g, indices, count=ctx.shape(0)[0]), None


embedding.batching(leading_axes_of("indices"))


@op(Tag.CHECKS_INDICES, fuses="decomposition")
def embedding_grad(g: FloatOperand, indices: IndexOperand, *, count: Integer) -> Meta:
    """Gradient of `embedding` by its weight, which has `count` rows."""
    return Meta(check_shape((count, _gradient_length(g, indices))), g.dtype)


@embedding_grad.decomposition
def _(ops: OpTable, g: Primitive, indices: Primitive, *, count: int) -> Primitive:
    length = _gradient_length(g, indices)
    number = size(indices.shape)
    zeros = ops.full(shape=(count, length), fill_value=0.0, dtype=ops.dtype(g))
    labels = ops.reshape(mark_invalid_labels(ops, indices), shape=(number,))
    return ops.select_add(zeros, labels, ops.reshape(g, shape=(number, length)), axis=0)


def _gradient_length(g: Meta | Primitive, indices: Meta | Primitive) -> int:
    shape = tuple(g.shape)
    if not shape or shape[:-1] != tuple(indices.shape):
        raise ShapeError(
            f"g of shape {shape} does not fit indices of shape {tuple(indices.shape)}",
            hint="g has a row for each index, along its last axis",
        )
    return int(shape[-1])


def _row_length(weight: Meta | Primitive) -> int:
    if len(weight.shape) != 2:
        raise ShapeError(
            f"weight has shape {tuple(weight.shape)}",
            hint="It is a matrix with one row for each index: shape (count, length)",
        )
    return int(weight.shape[1])
