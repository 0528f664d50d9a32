"""Eigenvalues and eigenvectors of square matrices, which are the last two axes.

The phase of an eigenvector is free, and is chosen so that every backend gives the same. Gradients:
M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008).
"""

from __future__ import annotations

import numpy as np

from burn.dtype import DTypeUsage, complex64, promote
from burn.errors import UnsupportedOpError
from burn.ops.batching import leading_axes
from burn.ops.linalg._host_linear_algebra import (
    NOT_DECOMPOSED,
    Array,
    check_square,
    column_factors,
    compute,
    hermitian,
    read,
    stack_of,
    upload,
)
from burn.ops.linalg.decomposition import mean_with_transpose, safe_inverse
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.signature import Cotangent, Gradients, InexactOperand, Meta, Primitive
from burn.ops.table import OpTable
from burn.tensor_data import TensorData


@op(Tag.COMPUTE_BOUND | Tag.RAISES, outputs=("eigenvalues", "eigenvectors"))
def eigh(x: InexactOperand) -> tuple[Meta, Meta]:
    """Eigenvalues of Hermitian matrices, real and ascending, and their eigenvectors as columns.

    The mean of a matrix and its conjugate transpose is decomposed. In each eigenvector the
    element of the largest magnitude, the first of them, is positive.
    """
    check_square(x)
    return Meta(x.shape[:-1], x.dtype.component), x


@eigh.on_host
def _(ops: OpTable, x: Primitive) -> tuple[Primitive, Primitive]:
    values, vectors = compute(np.linalg.eigh, NOT_DECOMPOSED, hermitian(read(ops, x)))
    scaled = vectors * column_factors(vectors)[..., None, :]
    return upload(ops, values, x), upload(ops, scaled, x)


@eigh.gradient(saves=("eigenvalues", "eigenvectors"))
def _(ops: OpTable, ctx: Context, g_values: Cotangent, g_vectors: Cotangent) -> Gradients:
    values, vectors = ctx.saved
    count = values.shape[-1]
    row = ops.reshape(values, shape=(*values.shape[:-1], 1, count))
    left = transpose_matrices(ops, vectors)
    total = None
    if g_values is not None:
        weights = ops.reshape(g_values, shape=tuple(row.shape))
        total = ops.matmul(ops.multiply(vectors, weights), left)
    if g_vectors is not None:
        column = ops.reshape(values, shape=(*values.shape[:-1], count, 1))
        slopes = safe_inverse(ops, ops.subtract(row, column))
        part = ops.multiply(slopes, ops.matmul(left, g_vectors))
        turned = ops.matmul(ops.matmul(vectors, part), left)
        total = turned if total is None else ops.add(total, turned)
    return (mean_with_transpose(ops, total),)


eigh.batching(leading_axes)


@eigh.cost
def _(outputs: tuple[Meta, Meta], x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * 9 * n**3  # Golub and Van Loan, section 8.3


@op(Tag.COMPUTE_BOUND | Tag.RAISES)
def eigvalsh(x: InexactOperand) -> Meta:
    """Eigenvalues of Hermitian matrices, real and ascending.

    They are those of the mean of a matrix and its conjugate transpose.
    """
    check_square(x)
    return Meta(x.shape[:-1], x.dtype.component)


@eigvalsh.on_host
def _(ops: OpTable, x: Primitive) -> Primitive:
    return upload(ops, compute(np.linalg.eigvalsh, NOT_DECOMPOSED, hermitian(read(ops, x))), x)


@eigvalsh.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    _, vectors = ops.eigh(ctx.saved[0])
    weights = ops.reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
    return (ops.matmul(ops.multiply(vectors, weights), transpose_matrices(ops, vectors)),)


eigvalsh.batching(leading_axes)


@eigvalsh.cost
def _(output: Meta, x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * 4 * n**3 // 3


@op(
    Tag.COMPUTE_BOUND | Tag.NO_GRADIENT | Tag.UNTRACKED | Tag.RAISES,
    outputs=("eigenvalues", "eigenvectors"),
)
def eig(x: InexactOperand) -> tuple[Meta, Meta]:
    """Eigenvalues of square matrices and their eigenvectors as columns, all complex.

    They are in the order in which LAPACK finds them. An eigenvector has the length 1, and its
    element of the largest magnitude, the first of them, is positive.
    """
    check_square(x)
    dtype = promote(x.dtype, complex64)
    return Meta(x.shape[:-1], dtype), Meta(x.shape, dtype)


@eig.on_host
def _(ops: OpTable, x: Primitive) -> tuple[Primitive, Primitive]:
    values, vectors = compute(np.linalg.eig, NOT_DECOMPOSED, read(ops, x))
    scaled = vectors * column_factors(vectors)[..., None, :]
    return _upload_complex(ops, values, x), _upload_complex(ops, scaled, x)


eig.batching(leading_axes)


@eig.cost
def _(outputs: tuple[Meta, Meta], x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * 25 * n**3  # Golub and Van Loan, section 7.5


@op(Tag.COMPUTE_BOUND | Tag.NO_GRADIENT | Tag.UNTRACKED | Tag.RAISES)
def eigvals(x: InexactOperand) -> Meta:
    """Eigenvalues of square matrices, complex, in the order in which LAPACK finds them."""
    check_square(x)
    return Meta(x.shape[:-1], promote(x.dtype, complex64))


@eigvals.on_host
def _(ops: OpTable, x: Primitive) -> Primitive:
    return _upload_complex(ops, compute(np.linalg.eigvals, NOT_DECOMPOSED, read(ops, x)), x)


eigvals.batching(leading_axes)


@eigvals.cost
def _(output: Meta, x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * 10 * n**3


def _upload_complex(ops: OpTable, array: Array, like: Primitive) -> Primitive:
    """A complex tensor of the precision of another one."""
    dtype = promote(ops.dtype(like), complex64)
    if DTypeUsage.STORAGE not in ops.backend.dtype_usage(ops.device, dtype):
        raise UnsupportedOpError(
            f"the result is {dtype}, which the device does not have",
            hint="Move the matrices to a device that has complex numbers, such as the CPU",
        )
    return ops.backend.from_data(TensorData(array.astype(dtype.numpy)), ops.device)
