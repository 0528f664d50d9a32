"""Systems of linear equations whose matrices are triangles."""

from __future__ import annotations

from burn.dtype import int32
from burn.ops._precision import in_float32
from burn.ops.linalg._host_linear_algebra import stack_of
from burn.ops.linalg.inverse import solution
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.signature import Cotangent, Flag, Gradients, InexactOperand, Meta, Primitive
from burn.ops.table import OpTable


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND | Tag.RAISES)
def solve_triangular(
    x1: InexactOperand, x2: InexactOperand, *, upper: Flag, unit_diagonal: Flag = False
) -> Meta:
    """The matrices X with ``x1 @ X = x2``, where one triangle of `x1` counts.

    Like `solve`, but what stands below the diagonal is not read, or above it unless `upper`;
    neither is the diagonal with `unit_diagonal`: then it is 1. A diagonal with 0 in it is an
    `ExecutionError`.
    """
    return solution(x1, x2)


@solve_triangular.decomposition
@in_float32
def _(
    ops: OpTable, x1: Primitive, x2: Primitive, *, upper: bool, unit_diagonal: bool = False
) -> Primitive:
    matrix = _triangle(ops, x1, upper=upper, unit_diagonal=unit_diagonal)
    if upper:
        return ops.solve(matrix, x2)
    # Reversed it is an upper triangle, whose elimination exchanges no rows, so that it is nothing
    # but a substitution.
    rank, other = len(x1.shape), len(x2.shape)
    reversed_matrix = ops.flip(matrix, axes=(rank - 2, rank - 1))
    result = ops.solve(reversed_matrix, ops.flip(x2, axes=(other - 2,)))
    return ops.flip(result, axes=(len(result.shape) - 2,))


@solve_triangular.gradient(saves=("x1", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # As of `solve`; elements that are not read have the gradient 0.
    x1, output = ctx.saved
    upper, unit_diagonal = ctx.attrs["upper"], ctx.attrs.get("unit_diagonal", False)
    to_second = ops.solve_triangular(
        transpose_matrices(ops, x1), g, upper=not upper, unit_diagonal=unit_diagonal
    )
    to_first = None
    if ctx.needs[0]:
        product = ops.negative(ops.matmul(to_second, transpose_matrices(ops, output)))
        kept = _distance_from_diagonal(ops, product, upper=upper)
        read = ops.greater(kept, 0) if unit_diagonal else ops.greater_equal(kept, 0)
        to_first = ops.where(read, product, 0.0)
    return to_first, to_second if ctx.needs[1] else None


@solve_triangular.cost
def _(output: Meta, x1: Meta, x2: Meta, *, upper: bool, unit_diagonal: bool = False) -> int:
    count, n, columns = stack_of(output)
    return count * n * n * columns


def _triangle(ops: OpTable, x: Primitive, *, upper: bool, unit_diagonal: bool) -> Primitive:
    """Zeros, and ones on the diagonal, in place of elements that are not read."""
    distance = _distance_from_diagonal(ops, x, upper=upper)
    x = ops.where(ops.less(distance, 0), 0.0, x)
    return ops.where(ops.equal(distance, 0), 1.0, x) if unit_diagonal else x


def _distance_from_diagonal(ops: OpTable, x: Primitive, *, upper: bool) -> Primitive:
    """Column minus row of each element of a matrix, or the opposite unless `upper`."""
    index = ops.arange(start=0, step=1, length=x.shape[-1], dtype=int32)
    column = ops.reshape(index, shape=(x.shape[-1], 1))
    return ops.subtract(index, column) if upper else ops.subtract(column, index)
