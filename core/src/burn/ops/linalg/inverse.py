"""Systems of linear equations, inverses and determinants.

Gradients: M. B. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), where nothing else is said. Floating-point operations are those
of a decomposition into triangles, n**3 2/3, and of the two systems that these make of one, 2 n**2.
"""

from __future__ import annotations

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes
from burn.ops.linalg._host_linear_algebra import (
    Array,
    check_matrix,
    check_square,
    compute,
    read,
    stack_of,
    upload,
)
from burn.ops.linalg.linear_algebra import adjoint, transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import broadcast_shapes
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    Gradients,
    InexactOperand,
    Meta,
    Number,
    Primitive,
)
from burn.ops.table import OpTable


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND | Tag.RAISES)
def solve(x1: InexactOperand, x2: InexactOperand) -> Meta:
    """The matrices X with ``x1 @ X = x2``; axes before the last two broadcast.

    `x1` has the shape (..., n, n) and `x2` (..., n, k). A matrix that is singular to the last digit
    is an `ExecutionError`.
    """
    return solution(x1, x2)


@solve.on_host
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    if len(x2.shape) < 2:
        raise ShapeError("the right side has fewer than two axes")
    return upload(ops, _solved(read(ops, x1), read(ops, x2)), x1)


def _solved(matrices: Array, columns: Array) -> Array:
    hint = "lstsq() and pinv() take singular matrices"
    solution: Array = compute(np.linalg.solve, "is singular", matrices, columns, hint=hint)
    return solution


def solution(x1: Meta, x2: Meta) -> Meta:
    """Shape and dtype of the matrices X with ``x1 @ X = x2``; raises ShapeError without any."""
    check_square(x1)
    check_matrix(x2)
    if x1.shape[-1] != x2.shape[-2]:
        raise ShapeError(
            f"{x1.shape[-1]} equations, but {x2.shape[-2]} rows on the right of {x1.shape} and "
            f"{x2.shape}",
            hint="The last length of the first must equal the last but one of the second",
        )
    return Meta((*broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), *x2.shape[-2:]), x1.dtype)


@solve.cost
def _(output: Meta, x1: Meta, x2: Meta) -> int:
    count, n, columns = stack_of(output)
    return count * (_triangles(n) + 2 * n * n * columns)


def _triangles(n: int) -> int:
    return 2 * n**3 // 3


@solve.gradient(saves=("x1", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, output = ctx.saved
    to_second = ops.solve(transpose_matrices(ops, x1), g)
    to_first = None
    if ctx.needs[0]:
        to_first = ops.negative(ops.matmul(to_second, transpose_matrices(ops, output)))
    return to_first, to_second if ctx.needs[1] else None


@op(Tag.COMPUTE_BOUND | Tag.RAISES)
def inv(x: InexactOperand) -> Meta:
    """Inverses of square matrices (the last two axes).

    A matrix that is singular to the last digit is an `ExecutionError`.
    """
    check_square(x)
    return x


@inv.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    count = x.shape[-1]
    return ops.solve(x, ops.eye(rows=count, columns=count, offset=0, dtype=ops.dtype(x)))


@inv.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    transposed = transpose_matrices(ops, ctx.saved[0])
    return (ops.negative(ops.matmul(ops.matmul(transposed, g), transposed)),)


inv.batching(leading_axes)


@inv.cost
def _(output: Meta, x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * 2 * n**3  # half of the right side of the first system is 0


@op(Tag.COMPUTE_BOUND | Tag.RAISES)
def det(x: InexactOperand) -> Meta:
    """Determinants of square matrices (the last two axes). That of an empty one is 1."""
    check_square(x)
    return Meta(x.shape[:-2], x.dtype)


@det.on_host
def _(ops: OpTable, x: Primitive) -> Primitive:
    return upload(ops, compute(np.linalg.det, "has no determinant", read(ops, x)), x)


@det.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.multiply(_as_matrix(ops, g), ops.cofactors(ctx.saved[0])),)


det.batching(leading_axes)


@det.cost
def _(output: Meta, x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * _triangles(n)


@op(Tag.COMPUTE_BOUND | Tag.RAISES)
def cofactors(x: FloatOperand) -> Meta:
    """Slope of the determinant by each element; also of singular matrices.

    ``det(x) * inv(x).mT`` where there is an inverse. For singular ones the gradient is an error.
    """
    check_square(x)
    return x


@cofactors.on_host
def _(ops: OpTable, x: Primitive) -> Primitive:
    # With x = U diag(s) V: det(U) det(V) U diag(products of all other s) V.
    u, s, vh = compute(np.linalg.svd, "has no singular values", read(ops, x))
    others = np.ones_like(s)
    for index in range(s.shape[-1]):
        others[..., index] = np.prod(np.delete(s, index, -1), -1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return upload(ops, sign[..., None, None] * ((u * others[..., None, :]) @ vh), x)


@cofactors.gradient(saves=("x", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # d C = tr(B.T dX) C - C dX.T B, with B the transposed inverse.
    x, output = ctx.saved
    inverse = transpose_matrices(ops, ops.inv(x))
    rank = len(x.shape)
    total = ops.sum(
        ops.multiply(g, output), axis=(rank - 2, rank - 1), keepdims=True, dtype=ops.dtype(x)
    )
    turned = ops.matmul(ops.matmul(inverse, transpose_matrices(ops, g)), output)
    return (ops.subtract(ops.multiply(inverse, total), turned),)


cofactors.batching(leading_axes)


@cofactors.cost
def _(output: Meta, x: Meta) -> int:
    # A singular value decomposition, two determinants, products without each value, a product.
    count, n, _ = stack_of(x)
    return count * (21 * n**3 + 2 * _triangles(n) + n * n + 2 * n**3)


@op(Tag.COMPUTE_BOUND | Tag.RAISES, outputs=("sign", "logabsdet"))
def slogdet(x: InexactOperand) -> tuple[Meta, Meta]:
    """Signs of determinants, and logarithms of their magnitudes; 0 and -inf of singular ones.

    The sign of a complex number is the number over its magnitude; the logarithm is real.
    """
    check_square(x)
    return Meta(x.shape[:-2], x.dtype), Meta(x.shape[:-2], x.dtype.component)


@slogdet.on_host
def _(ops: OpTable, x: Primitive) -> tuple[Primitive, Primitive]:
    sign, logarithm = compute(np.linalg.slogdet, "has no determinant", read(ops, x))
    return upload(ops, sign, x), upload(ops, logarithm, x)


@slogdet.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g_sign: Cotangent, g: Cotangent) -> Gradients:
    if g is None:
        return (None,)  # the sign is constant but for jumps
    inverse = transpose_matrices(ops, ops.inv(ctx.saved[0]))
    return (ops.multiply(_as_matrix(ops, g), inverse),)


slogdet.batching(leading_axes)


@slogdet.cost
def _(outputs: tuple[Meta, Meta], x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * _triangles(n)


@op(Tag.COMPUTE_BOUND | Tag.RAISES)
def pinv(x: InexactOperand, *, rtol: Number) -> Meta:
    """Inverses of Moore and Penrose of matrices (the last two axes).

    Singular values up to `rtol` times the largest one count as 0.
    """
    check_matrix(x)
    if rtol < 0.0:
        raise ArgumentError(f"rtol is {rtol}", hint="A tolerance is not negative")
    return Meta((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


@pinv.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, rtol: float) -> Primitive:
    if rtol < 0.0:
        raise ArgumentError(f"rtol is {rtol}")
    if 0 in x.shape[-2:]:
        return transpose_matrices(ops, x)
    u, s, vh = ops.svd(x, full_matrices=False)
    cutoff = ops.multiply(ops.max(s, axis=(len(s.shape) - 1,), keepdims=True), rtol)
    counts = ops.greater(s, cutoff)
    inverse = ops.where(counts, ops.divide(1.0, ops.where(counts, s, 1.0)), 0.0)
    if ops.dtype(x).is_complex:
        inverse = ops.cast(inverse, dtype=ops.dtype(x))
    row = ops.reshape(inverse, shape=(*s.shape[:-1], 1, s.shape[-1]))
    return ops.matmul(ops.multiply(adjoint(ops, vh), row), adjoint(ops, u))


@pinv.gradient(saves=("x", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least
    # squares problems whose variables separate" (1973), equation 4.12, transposed.
    x, p = ctx.saved
    pt, gt = transpose_matrices(ops, p), transpose_matrices(ops, g)
    direct = ops.matmul(ops.matmul(pt, g), pt)
    left = ops.matmul(ops.matmul(gt, p), pt)
    left = ops.subtract(left, ops.matmul(x, ops.matmul(p, left)))
    right = ops.matmul(pt, ops.matmul(p, gt))
    right = ops.subtract(right, ops.matmul(ops.matmul(right, p), x))
    return (ops.subtract(ops.add(left, right), direct),)


pinv.batching(leading_axes)


def _as_matrix(ops: OpTable, x: Primitive) -> Primitive:
    """Numbers as matrices of one element."""
    return ops.reshape(x, shape=(*x.shape, 1, 1))
