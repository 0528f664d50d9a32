"""Operations on the bits of integers, and on booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions.common import Operand, op_function

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
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
def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 | x2``, of bits or of booleans.

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
    >>> burn.bitwise_or(burn.asarray([5, 6], device="cpu"), 3).tolist()
    [7, 7]
    """


@op_function
def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 ^ x2``, of bits or of booleans.

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
def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 >> x2``, which keeps the sign.

    A shift by the width of the dtype or more leaves copies of the sign: 0 or -1.

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
    >>> burn.bitwise_right_shift(burn.asarray([8, -8], device="cpu"), 2).tolist()
    [2, -2]
    """
