"""Operations on the bits of integers, and on booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.common import DTypeLike, Operand, op_function
from burn.functions.normalize import as_dtype, check_tensor

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "bitcast",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
]


@op_function
def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 & x2``, of bits or of booleans.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Booleans or integers, of shapes that broadcast; at least one is a tensor.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.

    Raises
    ------
    DTypeError
        If an operand is neither boolean nor integer.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.bitwise_and(burn.asarray([5, 6], device="cpu"), 3).tolist()
    [1, 2]
    """


@op_function
@documented_as(bitwise_and)
def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 | x2``, of bits or of booleans.

    Examples
    --------
    >>> import burn
    >>> burn.bitwise_or(burn.asarray([5, 6], device="cpu"), 3).tolist()
    [7, 7]
    """


@op_function
@documented_as(bitwise_and)
def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 ^ x2``, of bits or of booleans.

    Examples
    --------
    >>> import burn
    >>> burn.bitwise_xor(burn.asarray([5, 6], device="cpu"), 3).tolist()
    [6, 5]
    """


@op_function("bitwise_not")
def bitwise_invert(x: Tensor, /) -> Tensor:
    """Elementwise ``~x``, of bits or of booleans.

    Parameters
    ----------
    x : Tensor
        Booleans or integers.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is neither boolean nor integer.

    Examples
    --------
    >>> import burn
    >>> burn.bitwise_invert(burn.asarray([0, 5], device="cpu")).tolist()
    [-1, -6]
    """


@op_function
def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 << x2``.

    A shift by the width of the dtype or more gives 0.

    Parameters
    ----------
    x1 : Tensor or number
        Integers.
    x2 : Tensor or number
        Distance of the shift in bits, of a shape that broadcasts with that of `x1`.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.

    Raises
    ------
    DTypeError
        If an operand is not integer.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.bitwise_left_shift(burn.asarray([1, 3], device="cpu"), 2).tolist()
    [4, 12]
    """


@op_function
@documented_as(bitwise_left_shift)
def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 >> x2``, which keeps the sign.

    A shift by the width of the dtype or more leaves copies of the sign: 0 or -1.

    Examples
    --------
    >>> import burn
    >>> burn.bitwise_right_shift(burn.asarray([8, -8], device="cpu"), 2).tolist()
    [2, -2]
    """


def bitcast(x: Tensor, /, dtype: DTypeLike) -> Tensor:
    """The bits of each element, read as an element of another dtype of the same size.

    Parameters
    ----------
    x : Tensor
        Integers or floats.
    dtype : DType
        An integer or float dtype of as many bits.

    Returns
    -------
    Tensor
        Of the shape of `x`, without a gradient, and independent of `x`.

    Raises
    ------
    DTypeError
        If a dtype is of another kind, or the sizes differ.
    UnsupportedOpError
        If `x` is tracked: bits have no gradient.

    Notes
    -----
    It is ``jax.lax.bitcast_convert_type``, ``torch.Tensor.view(dtype)`` and
    ``numpy.ndarray.view(dtype)`` for dtypes of one size. For others, pack or unpack integers by
    shifts.

    Examples
    --------
    >>> import burn
    >>> bits = burn.bitcast(burn.asarray([1.0, -0.0], device="cpu"), "uint32")
    >>> [hex(one) for one in bits.tolist()]
    ['0x3f800000', '0x80000000']
    """
    check_tensor(x, "x", "bitcast")
    return calls.bitcast(x, dtype=as_dtype(dtype, "bitcast"))
