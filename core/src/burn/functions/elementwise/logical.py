"""Logic on booleans, and on numbers as booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions.common import Operand
from burn.functions.elementwise.bitwise import bitwise_and, bitwise_invert, bitwise_or, bitwise_xor
from burn.functions.elementwise.comparison import not_equal
from burn.functions.normalize import check_tensor
from burn.ops.arguments import as_python

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]


def logical_not(x: Tensor, /) -> Tensor:
    """Elementwise logical "not".

    Parameters
    ----------
    x : Tensor
        Booleans, or numbers that count as True unless they are 0.

    Returns
    -------
    Tensor
        Booleans, of the shape of `x`.

    Examples
    --------
    >>> import burn
    >>> burn.logical_not(burn.asarray([0, 2], device="cpu")).tolist()
    [True, False]
    """
    return bitwise_invert(_booleans(x, "x", "logical_not"))


def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise logical "and".

    Parameters
    ----------
    x1, x2 : Tensor or number
        Booleans, or numbers that count as True unless they are 0, of shapes that broadcast;
        at least one is a tensor.

    Returns
    -------
    Tensor
        Booleans, of the shape to which the operands broadcast.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.logical_and(burn.asarray([True, False], device="cpu"), True).tolist()
    [True, False]
    """
    first = _truth(x1, "x1", "logical_and")
    return bitwise_and(first, _truth(x2, "x2", "logical_and"))


@documented_as(logical_and)
def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise logical "or".

    Examples
    --------
    >>> import burn
    >>> burn.logical_or(burn.asarray([True, False], device="cpu"), True).tolist()
    [True, True]
    """
    first = _truth(x1, "x1", "logical_or")
    return bitwise_or(first, _truth(x2, "x2", "logical_or"))


@documented_as(logical_and)
def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise logical "exclusive or".

    Examples
    --------
    >>> import burn
    >>> burn.logical_xor(burn.asarray([True, False], device="cpu"), True).tolist()
    [False, True]
    """
    first = _truth(x1, "x1", "logical_xor")
    return bitwise_xor(first, _truth(x2, "x2", "logical_xor"))


def _truth(x: Operand, name: str, operation: str) -> Operand:
    """The truth of a number, or of each element of a tensor."""
    number = as_python(x)
    if isinstance(number, (bool, int, float, complex)):
        return bool(number)
    return _booleans(number, name, operation)


def _booleans(x: Tensor, name: str, operation: str) -> Tensor:
    """The truth of each element of a tensor."""
    check_tensor(x, name, operation)
    return x if x.dtype.is_bool else not_equal(x, 0)
