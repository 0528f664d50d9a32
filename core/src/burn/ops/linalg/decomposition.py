"""Decompositions of matrices, which are the last two axes.

Numbers of floating-point operations are those of G. H. Golub and C. F. Van Loan, "Matrix
computations" (1996, chapters 4 and 5, table 5.4.1), without lower powers of the lengths.

Where only the signs of vectors are free, or the phases of complex ones, they are chosen, so that
every backend gives the same. Comments name the sources of the gradients.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.dtype import DType, Kind, int32
from burn.errors import DTypeError, UnsupportedOpError
from burn.ops.batching import leading_axes
from burn.ops.linalg._host_linear_algebra import (
    NOT_DECOMPOSED,
    Array,
    check_matrix,
    check_square,
    column_factors,
    compute,
    hermitian,
    positive_factors,
    read,
    stack_of,
    upload,
)
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.signature import (
    Cotangent,
    Flag,
    Gradients,
    InexactOperand,
    Meta,
    Primitive,
    TargetDType,
)
from burn.ops.table import OpTable
from burn.tensor_data import TensorData


@op(Tag.COMPUTE_BOUND | Tag.RAISES)
def cholesky(x: InexactOperand) -> Meta:
    """Lower triangles L with ``L @ conj(L.mT)`` equal to Hermitian, positive definite matrices.

    The mean of a matrix and its conjugate transpose is decomposed. One that is not positive
    definite is an `ExecutionError`.
    """
    check_square(x)
    return x


@cholesky.on_host
def _(ops: OpTable, x: Primitive) -> Primitive:
    array = hermitian(read(ops, x))
    lower = compute(np.linalg.cholesky, _not_positive, array, hint=_HOW_TO_DECOMPOSE)
    return upload(ops, lower, x)


_HOW_TO_DECOMPOSE: Final = (
    "All eigenvalues must be positive: add a multiple of eye() to the matrix, or use eigh()"
)


def _not_positive(matrix: Array) -> str:
    """What is wrong with a matrix, by its first leading block that is not positive definite."""
    order = next(
        count for count in range(1, len(matrix) + 1) if not _is_positive(matrix[:count, :count])
    )
    return f"is not positive definite: its leading minor of order {order} is not positive"


def _is_positive(matrix: Array) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


@cholesky.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # I. Murray, "Differentiation of the Cholesky decomposition" (2016, arXiv:1602.07527), eq. 10.
    (lower,) = ctx.saved
    upper = transpose_matrices(ops, lower)
    inner = _triangle(ops, ops.matmul(upper, g), 0)
    inner = ops.subtract(inner, ops.multiply(_diagonal_part(ops, inner), 0.5))
    half = ops.solve(upper, inner)
    whole = ops.solve(upper, transpose_matrices(ops, half))
    return (mean_with_transpose(ops, whole),)


cholesky.batching(leading_axes)


@cholesky.cost
def _(output: Meta, x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * n**3 // 3


@op(Tag.COMPUTE_BOUND | Tag.RAISES, outputs=("q", "r"))
def qr(x: InexactOperand, *, complete: Flag = False) -> tuple[Meta, Meta]:
    """Orthonormal columns Q and upper triangles R with ``Q @ R`` equal to the matrices.

    The diagonal of R is real and not negative. `complete` makes Q square, else it has as many
    columns as the smaller side.
    """
    check_matrix(x)
    *batch, rows, columns = x.shape
    inner = rows if complete else min(rows, columns)
    return Meta((*batch, rows, inner), x.dtype), Meta((*batch, inner, columns), x.dtype)


@qr.on_host
def _(ops: OpTable, x: Primitive, *, complete: bool = False) -> tuple[Primitive, Primitive]:
    def decompose(array: Array) -> tuple[Array, Array]:
        return np.linalg.qr(array, "complete" if complete else "reduced")

    q, r = compute(decompose, NOT_DECOMPOSED, read(ops, x))
    count = min(x.shape[-2:])
    factors = positive_factors(np.diagonal(r, axis1=-2, axis2=-1))
    q[..., :count] *= factors.conj()[..., None, :]
    r[..., :count, :] *= factors[..., :, None]
    r = np.triu(r)  # a factor of -1 made negative zeros below the diagonal
    return upload(ops, q, x), upload(ops, r, x)


@qr.gradient(saves=("x", "q", "r"))
def _(ops: OpTable, ctx: Context, g_q: Cotangent, g_r: Cotangent) -> Gradients:
    # S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with
    # application in optimum experimental design" (2018), in the form of H.-J. Liao et al.,
    # "Differentiable programming tensor networks" (2019, arXiv:1903.09650), appendix.
    x, q, r = ctx.saved
    rows, columns = x.shape[-2:]
    if ctx.attrs.get("complete", False) and rows > columns:
        raise UnsupportedOpError(
            "the columns that complete Q have no gradient", hint='Use mode="reduced"'
        )
    g_q = _zeros_like(ops, q) if g_q is None else g_q
    g_r = _zeros_like(ops, r) if g_r is None else g_r
    if rows >= columns:
        return (_qr_gradient(ops, q, r, g_q, g_r),)
    # x = [A B] with A square: R = [U V] with A = Q U and V = Q.T B.
    rest = _columns(ops, x, rows, columns)
    g_rest = _columns(ops, g_r, rows, columns)
    g_q = ops.add(g_q, ops.matmul(rest, transpose_matrices(ops, g_rest)))
    square = _qr_gradient(ops, q, _columns(ops, r, 0, rows), g_q, _columns(ops, g_r, 0, rows))
    return (ops.concat([square, ops.matmul(q, g_rest)], axis=len(x.shape) - 1),)


qr.batching(leading_axes)


@qr.cost
def _(outputs: tuple[Meta, Meta], x: Meta, *, complete: bool = False) -> int:
    count, rows, columns = stack_of(x)
    k, inner = min(rows, columns), outputs[0].shape[-1]
    triangle = 2 * k * k * max(rows, columns) - 2 * k**3 // 3
    vectors = 4 * rows * inner * k - 2 * (rows + inner) * k * k + 4 * k**3 // 3
    return count * (triangle + vectors)


def _qr_gradient(
    ops: OpTable, q: Primitive, r: Primitive, g_q: Cotangent, g_r: Cotangent
) -> Primitive:
    inner = ops.subtract(
        ops.matmul(r, transpose_matrices(ops, g_r)), ops.matmul(transpose_matrices(ops, g_q), q)
    )
    mirrored = ops.add(_triangle(ops, inner, 0), transpose_matrices(ops, _triangle(ops, inner, -1)))
    return _divide_by_transpose(ops, ops.add(g_q, ops.matmul(q, mirrored)), r)


@op(Tag.COMPUTE_BOUND | Tag.RAISES, outputs=("u", "s", "vh"))
def svd(x: InexactOperand, *, full_matrices: Flag) -> tuple[Meta, Meta, Meta]:
    """Singular value decompositions: ``u * s @ vh`` is the matrix, and `s` is real and descending.

    In each column of `u` the element of the largest magnitude, the first of them, is positive.
    """
    check_matrix(x)
    *batch, rows, columns = x.shape
    inner = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (inner, inner)
    return (
        Meta((*batch, rows, left), x.dtype),
        Meta((*batch, inner), x.dtype.component),
        Meta((*batch, right, columns), x.dtype),
    )


@svd.on_host
def _(ops: OpTable, x: Primitive, *, full_matrices: bool) -> tuple[Primitive, Primitive, Primitive]:
    u, s, vh = compute(
        lambda array: np.linalg.svd(array, full_matrices=full_matrices),
        NOT_DECOMPOSED,
        read(ops, x),
    )
    factors = column_factors(u)
    count = s.shape[-1]
    vh[..., :count, :] *= factors.conj()[..., :count, None]
    return upload(ops, u * factors[..., None, :], x), upload(ops, s, x), upload(ops, vh, x)


@svd.gradient(saves=("u", "s", "vh"))
def _(ops: OpTable, ctx: Context, g_u: Cotangent, g_s: Cotangent, g_vh: Cotangent) -> Gradients:
    # J. Townsend, "Differentiating the singular value decomposition" (2016).
    u, s, vh = ctx.saved
    rows, columns, count = u.shape[-2], vh.shape[-1], s.shape[-1]
    if u.shape[-1] > count or vh.shape[-2] > count:
        if g_u is not None or g_vh is not None:
            raise UnsupportedOpError(
                "the vectors that complete u and vh have no gradient",
                hint="Use full_matrices=False",
            )
        u = _columns(ops, u, 0, count)
        vh = transpose_matrices(ops, _columns(ops, transpose_matrices(ops, vh), 0, count))
    row = ops.reshape(s, shape=(*s.shape[:-1], 1, count))
    column = ops.reshape(s, shape=(*s.shape[:-1], count, 1))
    gaps = ops.multiply(ops.subtract(row, column), ops.add(row, column))
    slopes = safe_inverse(ops, gaps)
    inverse = safe_inverse(ops, row)
    terms: list[Primitive] = []
    if g_s is not None:
        weights = ops.reshape(g_s, shape=tuple(row.shape))
        terms.append(ops.matmul(ops.multiply(u, weights), vh))
    if g_u is not None:
        turned = ops.matmul(transpose_matrices(ops, u), g_u)
        part = ops.multiply(slopes, turned)
        both = ops.multiply(ops.add(part, transpose_matrices(ops, part)), row)
        terms.append(ops.matmul(ops.matmul(u, both), vh))
        if rows > count:
            outside = ops.subtract(g_u, ops.matmul(u, turned))
            terms.append(ops.matmul(ops.multiply(outside, inverse), vh))
    if g_vh is not None:
        v, g_v = transpose_matrices(ops, vh), transpose_matrices(ops, g_vh)
        turned = ops.matmul(vh, g_v)
        part = ops.multiply(slopes, turned)
        both = ops.multiply(ops.add(part, transpose_matrices(ops, part)), column)
        terms.append(ops.matmul(ops.matmul(u, both), vh))
        if columns > count:
            outside = ops.subtract(g_v, ops.matmul(v, turned))
            terms.append(ops.matmul(ops.multiply(u, inverse), transpose_matrices(ops, outside)))
    total = terms[0]
    for term in terms[1:]:
        total = ops.add(total, term)
    return (total,)


svd.batching(leading_axes)


@svd.cost
def _(outputs: tuple[Meta, Meta, Meta], x: Meta, *, full_matrices: bool) -> int:
    count, *sides = stack_of(x)
    n, m = sorted(sides)
    if full_matrices:
        return count * (4 * m * m * n + 8 * m * n * n + 9 * n**3)
    return count * (14 * m * n * n + 8 * n**3)


@op(Tag.COMPUTE_BOUND | Tag.RAISES)
def svdvals(x: InexactOperand) -> Meta:
    """Singular values of matrices, which are real, the largest first."""
    check_matrix(x)
    return Meta((*x.shape[:-2], min(x.shape[-2:])), x.dtype.component)


@svdvals.on_host
def _(ops: OpTable, x: Primitive) -> Primitive:
    return upload(ops, compute(np.linalg.svdvals, NOT_DECOMPOSED, read(ops, x)), x)


@svdvals.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    u, _, vh = ops.svd(ctx.saved[0], full_matrices=False)
    weights = ops.reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
    return (ops.matmul(ops.multiply(u, weights), vh),)


svdvals.batching(leading_axes)


@svdvals.cost
def _(output: Meta, x: Meta) -> int:
    count, *sides = stack_of(x)
    n, m = sorted(sides)
    return count * (4 * m * n * n - 4 * n**3 // 3)


@op(Tag.COMPUTE_BOUND | Tag.RAISES, outputs=("lu", "permutation"))
def lu_decomposition(x: InexactOperand, *, index_dtype: TargetDType) -> tuple[Meta, Meta]:
    """Lower and upper triangles whose product is the matrix with its rows in another order.

    The first output has U on and above its diagonal, and below it L, whose diagonal is 1. Row i of
    the product is row ``permutation[i]`` of the matrix: in each column the element of the largest
    magnitude, the first of them, is brought to the diagonal.
    """
    check_matrix(x)
    if index_dtype.kind not in Kind.INTEGER:
        raise DTypeError(f"indices are integers, not {index_dtype}")
    return x, Meta(x.shape[:-1], index_dtype)


@lu_decomposition.on_host
def _(ops: OpTable, x: Primitive, *, index_dtype: DType) -> tuple[Primitive, Primitive]:
    array = read(ops, x)
    rows, columns = array.shape[-2:]
    stack = (
        array.reshape((-1, rows, columns))
        if array.size
        else np.zeros((0, rows, columns), array.dtype)
    )
    with np.errstate(all="ignore"):
        result, order = _eliminate(np.array(stack))
    sources = np.broadcast_to(np.arange(rows), array.shape[:-1])
    if array.size:
        sources = order.reshape(array.shape[:-1])
    permutation = ops.backend.from_data(TensorData(sources.astype(index_dtype.numpy)), ops.device)
    return upload(ops, result.reshape(array.shape), x), permutation


def _eliminate(stack: Array) -> tuple[Array, Array]:
    """Gaussian elimination with partial pivoting, in place, of all matrices of a stack at once."""
    count, rows, columns = stack.shape
    order = np.tile(np.arange(rows), (count, 1))
    every = np.arange(count)
    for step in range(min(rows, columns)):
        pivot = step + np.argmax(np.abs(stack[:, step:, step]), axis=1)
        for table in (stack, order):
            table[every, pivot], table[:, step] = table[:, step].copy(), table[every, pivot]
        divisor = stack[:, step, step]
        below = stack[:, step + 1 :, step]
        below /= np.where(divisor == 0.0, 1.0, divisor)[:, None].astype(stack.dtype)
        stack[:, step + 1 :, step + 1 :] -= below[:, :, None] * stack[:, step, None, step + 1 :]
    return stack, order


@lu_decomposition.gradient(saves=("lu", "permutation"))
def _(ops: OpTable, ctx: Context, g: Cotangent, g_permutation: Cotangent) -> Gradients:
    # By the same steps as in Giles (2008): inv(L) dA inv(U) is strictly lower plus upper.
    if g is None:
        return (None,)
    packed, permutation = ctx.saved
    *batch, rows, columns = packed.shape
    count, last = min(rows, columns), len(packed.shape) - 1
    square, g_square = (_block(ops, x, 0, count, 0, count) for x in (packed, g))
    unit = ops.eye(rows=count, columns=count, offset=0, dtype=ops.dtype(packed))
    lower = ops.add(_triangle(ops, square, -1), unit)
    upper = ops.subtract(square, _triangle(ops, square, -1))
    g_lower = _triangle(ops, g_square, -1)
    g_upper = ops.subtract(g_square, g_lower)
    beside = None
    if rows > columns:
        rest, g_rest = (_block(ops, x, count, rows, 0, count) for x in (packed, g))
        beside = _divide_by_transpose(ops, g_rest, upper)
        g_upper = ops.subtract(g_upper, ops.matmul(transpose_matrices(ops, rest), beside))
    elif columns > rows:
        rest, g_rest = (_block(ops, x, 0, count, count, columns) for x in (packed, g))
        beside = ops.solve(transpose_matrices(ops, lower), g_rest)
        g_lower = ops.subtract(g_lower, ops.matmul(beside, transpose_matrices(ops, rest)))
    left = _triangle(ops, ops.matmul(transpose_matrices(ops, lower), g_lower), -1)
    right = ops.matmul(g_upper, transpose_matrices(ops, upper))
    right = ops.subtract(right, _triangle(ops, right, -1))
    ordered = _divide_by_transpose(
        ops, ops.solve(transpose_matrices(ops, lower), ops.add(left, right)), upper
    )
    if beside is not None:
        ordered = ops.concat([ordered, beside], axis=last - 1 if rows > columns else last)
    row = ops.arange(start=0, step=1, length=rows, dtype=ops.dtype(permutation))
    moved = ops.equal(ops.reshape(permutation, shape=(*batch, 1, rows)), _column(ops, row))
    return (ops.matmul(ops.cast(moved, dtype=ops.dtype(packed)), ordered),)


lu_decomposition.batching(leading_axes)


@lu_decomposition.cost
def _(outputs: tuple[Meta, Meta], x: Meta, *, index_dtype: DType) -> int:
    count, *sides = stack_of(x)
    n, m = sorted(sides)
    return count * (m * n * n - n**3 // 3)


def _zeros_like(ops: OpTable, x: Primitive) -> Primitive:
    return ops.full(shape=tuple(x.shape), fill_value=0.0, dtype=ops.dtype(x))


def _column(ops: OpTable, x: Primitive) -> Primitive:
    return ops.reshape(x, shape=(*x.shape, 1))


def _block(ops: OpTable, x: Primitive, top: int, bottom: int, left: int, right: int) -> Primitive:
    """Rows from `top` to `bottom` and columns from `left` to `right`, without the last ones."""
    whole = tuple((0, length, 1) for length in x.shape[:-2])
    return ops.slice(x, slices=(*whole, (top, bottom - top, 1), (left, right - left, 1)))


def _columns(ops: OpTable, x: Primitive, start: int, stop: int) -> Primitive:
    return _block(ops, x, 0, x.shape[-2], start, stop)


def _triangle(ops: OpTable, x: Primitive, offset: int) -> Primitive:
    """Elements on and below the `offset`-th diagonal of square matrices; zeros above."""
    index = ops.arange(start=0, step=1, length=x.shape[-1], dtype=int32)
    kept = ops.less_equal(index, ops.add(_column(ops, index), offset))
    return ops.where(kept, x, 0.0)


def _diagonal_part(ops: OpTable, x: Primitive) -> Primitive:
    """Zeros beside the diagonal of square matrices."""
    count = x.shape[-1]
    return ops.multiply(x, ops.eye(rows=count, columns=count, offset=0, dtype=ops.dtype(x)))


def mean_with_transpose(ops: OpTable, x: Primitive) -> Primitive:
    return ops.multiply(ops.add(x, transpose_matrices(ops, x)), 0.5)


def _divide_by_transpose(ops: OpTable, x: Primitive, matrix: Primitive) -> Primitive:
    """``x @ inv(matrix).mT``."""
    return transpose_matrices(ops, ops.solve(matrix, transpose_matrices(ops, x)))


def safe_inverse(ops: OpTable, x: Primitive) -> Primitive:
    """1 / x, but 0 where x is 0.

    What gradients of vectors divide by is 0 where they are not defined, of equal singular values
    and eigenvalues. What does not depend on a choice among such vectors has the right gradient.
    """
    zero = ops.equal(x, 0.0)
    return ops.where(zero, 0.0, ops.divide(1.0, ops.where(zero, 1.0, x)))
