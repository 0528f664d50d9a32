"""Comparisons, and what kind of number an element is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions.common import Operand, op_function

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "not_equal",
    "signbit",
]


@op_function
def equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 == x2``.

    NaN equals nothing.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Values of any dtype, of shapes that broadcast; at least one is a tensor.

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
    >>> burn.equal(burn.asarray([1, 2], device="cpu"), 2).tolist()
    [False, True]
    """


@op_function
@documented_as(equal)
def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 != x2``.

    NaN equals nothing.

    Examples
    --------
    >>> import burn
    >>> burn.not_equal(burn.asarray([1, 2], device="cpu"), 2).tolist()
    [True, False]
    """


@op_function
def less(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 < x2``.

    False is less than True.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Booleans or real numbers, of shapes that broadcast; at least one is a tensor.

    Returns
    -------
    Tensor
        Booleans, of the shape to which the operands broadcast.

    Raises
    ------
    DTypeError
        If an operand is complex.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.less(burn.asarray([1, 2, 3], device="cpu"), 2).tolist()
    [True, False, False]
    """


@op_function
@documented_as(less)
def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 <= x2``.

    False is less than True.

    Examples
    --------
    >>> import burn
    >>> burn.less_equal(burn.asarray([1, 2, 3], device="cpu"), 2).tolist()
    [True, True, False]
    """


@op_function
@documented_as(less)
def greater(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 > x2``.

    False is less than True.

    Examples
    --------
    >>> import burn
    >>> burn.greater(burn.asarray([1, 2, 3], device="cpu"), 2).tolist()
    [False, False, True]
    """


@op_function
@documented_as(less)
def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 >= x2``.

    False is less than True.

    Examples
    --------
    >>> import burn
    >>> burn.greater_equal(burn.asarray([1, 2, 3], device="cpu"), 2).tolist()
    [False, True, True]
    """


@op_function
def isnan(x: Tensor, /) -> Tensor:
    """Whether each element is NaN, or a part of it.

    Parameters
    ----------
    x : Tensor
        Numbers.

    Returns
    -------
    Tensor
        Booleans, of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is boolean.

    Examples
    --------
    >>> import burn
    >>> burn.isnan(burn.asarray([1.0, burn.nan], device="cpu")).tolist()
    [False, True]
    """


@op_function
@documented_as(isnan)
def isinf(x: Tensor, /) -> Tensor:
    """Whether each element is infinite, of either sign, or a part of it.

    Examples
    --------
    >>> import burn
    >>> burn.isinf(burn.asarray([1.0, -burn.inf], device="cpu")).tolist()
    [False, True]
    """


@op_function
@documented_as(isnan)
def isfinite(x: Tensor, /) -> Tensor:
    """Whether each element is neither infinite nor NaN.

    Examples
    --------
    >>> import burn
    >>> burn.isfinite(burn.asarray([1.0, burn.nan], device="cpu")).tolist()
    [True, False]
    """


@op_function
def signbit(x: Tensor, /) -> Tensor:
    """Whether each element is negative, -0.0 included.

    Of a NaN the backend decides.

    Parameters
    ----------
    x : Tensor
        Real numbers.

    Returns
    -------
    Tensor
        Booleans, of the shape of `x`.

    Raises
    ------
    DTypeError
        If `x` is boolean or complex.

    Examples
    --------
    >>> import burn
    >>> burn.signbit(burn.asarray([1.0, -0.0], device="cpu")).tolist()
    [False, True]
    """
