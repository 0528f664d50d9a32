"""Exponentials of matrices."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.ops.batching import leading_axes
from burn.ops.linalg._host_linear_algebra import Array, check_square, read, stack_of, upload
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.signature import Cotangent, Gradients, InexactOperand, Meta, Primitive
from burn.ops.table import OpTable

_NUMERATOR: Final = (
    *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000),
    *(10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)
"""Coefficients of the numerator of the Padé approximant of degree 13, by powers; those of odd
powers have the other sign in the denominator."""

_LARGEST_NORM: Final = 5.371920351148152
"""1-norm up to which the approximant is exact to the last digit of float64; both from N. J. Higham,
"The scaling and squaring method for the matrix exponential revisited" (2005), table 2.3."""

_MULTIPLICATIONS: Final = 6
"""Products that the approximant needs; a system of equations and squarings come on top."""


@op(Tag.COMPUTE_BOUND)
def matrix_exp(x: InexactOperand) -> Meta:
    """Exponentials of square matrices (the last two axes): sums of ``x ** k / k!`` over k.

    One that holds NaN or infinity gives NaN.
    """
    check_square(x)
    return x


@matrix_exp.on_host
def _(ops: OpTable, x: Primitive) -> Primitive:
    array = read(ops, x)
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    return upload(ops, _exponential(array.astype(wide)), x)


@matrix_exp.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # The derivative of exp at the transposed matrix T in the direction g is the upper right block
    # of exp([[T, g], [0, T]]): N. J. Higham, "Functions of matrices" (2008), theorem 3.6. A
    # direction of magnitude 1 needs no further scaling.
    transposed = transpose_matrices(ops, ctx.saved[0])
    rank, count = len(transposed.shape), transposed.shape[-1]
    if 0 in transposed.shape:
        return (transposed,)
    largest = ops.max(ops.abs(g), axis=(rank - 2, rank - 1), keepdims=True)
    size = ops.where(ops.greater(largest, 0.0), largest, 1.0)
    zeros = ops.multiply(transposed, 0.0)
    above = ops.concat([transposed, ops.divide(g, size)], axis=rank - 1)
    below = ops.concat([zeros, transposed], axis=rank - 1)
    whole = ops.matrix_exp(ops.concat([above, below], axis=rank - 2))
    batch = [(0, length, 1) for length in transposed.shape[:-2]]
    block = ops.slice(whole, slices=(*batch, (0, count, 1), (count, count, 1)))
    return (ops.multiply(block, size),)


matrix_exp.batching(leading_axes)


@matrix_exp.cost
def _(output: Meta, x: Meta) -> int:
    count, n, _ = stack_of(x)
    return count * (2 * n**3 * _MULTIPLICATIONS + 8 * n**3 // 3)


def _exponential(x: Array) -> Array:
    """Exponentials of matrices of float64 or complex128, by scaling and squaring."""
    if not x.size:
        return x
    norm = np.max(np.sum(np.abs(x), axis=-2), axis=-1)
    finite = np.isfinite(norm)
    x = np.where(finite[..., None, None], x, 0.0)
    ratio = np.where(finite, norm, 0.0) / _LARGEST_NORM
    squarings = np.ceil(np.log2(np.maximum(ratio, 1.0))).astype(np.int64)
    result = _approximant(x * np.exp2(-squarings.astype(np.float64))[..., None, None])
    for number in range(int(squarings.max())):
        more = squarings > number
        result[more] = result[more] @ result[more]
    result[~finite] = np.nan
    return result


def _approximant(x: Array) -> Array:
    """The rational function of degree 13; equation 2.3 of Higham (2005)."""
    b = _NUMERATOR
    unit = np.eye(x.shape[-1])
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    high_odd = x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2)
    odd = x @ (high_odd + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * unit)
    high_even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2)
    even = high_even + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * unit
    result: Array = np.linalg.solve(even - odd, even + odd)
    return result
