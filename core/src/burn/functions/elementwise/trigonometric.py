"""Trigonometric and hyperbolic functions, and the angles they take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions.common import Operand, op_function
from burn.functions.elementwise.arithmetic import multiply

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "hypot",
    "rad2deg",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


@op_function
def sin(x: Tensor, /) -> Tensor:
    """Elementwise sine.

    Parameters
    ----------
    x : Tensor
        Angles in radians.

    Returns
    -------
    Tensor
        Of the shape of `x`, and its dtype; of integers the default float dtype.

    Raises
    ------
    DTypeError
        If `x` is boolean.

    Examples
    --------
    >>> import burn
    >>> burn.sin(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(sin)
def cos(x: Tensor, /) -> Tensor:
    """Elementwise cosine.

    Examples
    --------
    >>> import burn
    >>> burn.cos(burn.asarray([0.0], device="cpu")).tolist()
    [1.0]
    """


@op_function
@documented_as(sin)
def tan(x: Tensor, /) -> Tensor:
    """Elementwise tangent.

    Examples
    --------
    >>> import burn
    >>> burn.tan(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
def asin(x: Tensor, /) -> Tensor:
    """Elementwise inverse sine.

    Outside of [-1, 1] it is NaN.

    Parameters
    ----------
    x : Tensor
        Numbers.

    Returns
    -------
    Tensor
        Angles in radians, from -pi/2 to pi/2, as floats.

    Raises
    ------
    DTypeError
        If `x` is boolean.

    Examples
    --------
    >>> import burn
    >>> burn.asin(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(asin)
def acos(x: Tensor, /) -> Tensor:
    """Elementwise inverse cosine.

    Outside of [-1, 1] it is NaN.

    Returns
    -------
    Tensor
        Angles in radians, from 0 to pi, as floats.

    Examples
    --------
    >>> import burn
    >>> burn.acos(burn.asarray([1.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(asin)
def atan(x: Tensor, /) -> Tensor:
    """Elementwise inverse tangent.

    Examples
    --------
    >>> import burn
    >>> burn.atan(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
def atan2(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise angle between the first axis and the point (`x2`, `x1`).

    Parameters
    ----------
    x1 : Tensor or number
        Second coordinate of the point.
    x2 : Tensor or number
        First coordinate of the point, of a shape that broadcasts with that of `x1`.

    Returns
    -------
    Tensor
        Angles in radians, from -pi to pi, of the shape to which the operands broadcast.

    Raises
    ------
    DTypeError
        If an operand is boolean or complex.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.atan2(burn.asarray([0.0], device="cpu"), 1.0).tolist()
    [0.0]
    """


@op_function
def sinh(x: Tensor, /) -> Tensor:
    """Elementwise hyperbolic sine.

    Parameters
    ----------
    x : Tensor
        Numbers.

    Returns
    -------
    Tensor
        Of the shape of `x`, and its dtype; of integers the default float dtype.

    Raises
    ------
    DTypeError
        If `x` is boolean.

    Examples
    --------
    >>> import burn
    >>> burn.sinh(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(sinh)
def cosh(x: Tensor, /) -> Tensor:
    """Elementwise hyperbolic cosine.

    Examples
    --------
    >>> import burn
    >>> burn.cosh(burn.asarray([0.0], device="cpu")).tolist()
    [1.0]
    """


@op_function
@documented_as(sinh)
def tanh(x: Tensor, /) -> Tensor:
    """Elementwise hyperbolic tangent.

    Examples
    --------
    >>> import burn
    >>> burn.tanh(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(sinh)
def asinh(x: Tensor, /) -> Tensor:
    """Elementwise inverse hyperbolic sine.

    Examples
    --------
    >>> import burn
    >>> burn.asinh(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(sinh)
def acosh(x: Tensor, /) -> Tensor:
    """Elementwise inverse hyperbolic cosine.

    Below 1 it is NaN.

    Examples
    --------
    >>> import burn
    >>> burn.acosh(burn.asarray([1.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(sinh)
def atanh(x: Tensor, /) -> Tensor:
    """Elementwise inverse hyperbolic tangent.

    Outside of [-1, 1] it is NaN.

    Examples
    --------
    >>> import burn
    >>> burn.atanh(burn.asarray([0.0, 1.0], device="cpu")).tolist()
    [0.0, inf]
    """


@op_function
@documented_as(atan2)
def hypot(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``sqrt(x1**2 + x2**2)`` where the squares may be too large or too small.

    It is inf where an operand is, also beside NaN.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Real numbers, of shapes that broadcast; integers become the default float dtype.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.
        Integers give the default float dtype.

    Examples
    --------
    >>> import burn
    >>> burn.hypot(burn.asarray([3.0], device="cpu"), 4.0).tolist()
    [5.0]
    """


def deg2rad(x: Tensor, /) -> Tensor:
    """Elementwise conversion of degrees to radians.

    Parameters
    ----------
    x : Tensor
        Angles in degrees.

    Returns
    -------
    Tensor
        Angles in radians, as floats.

    Raises
    ------
    DTypeError
        If `x` is boolean.

    Examples
    --------
    >>> import burn
    >>> burn.deg2rad(burn.asarray([0.0, 180.0], dtype="float64", device="cpu")).tolist()
    [0.0, 3.141592653589793]
    """
    return multiply(x, math.pi / 180.0)


@documented_as(sin)
def rad2deg(x: Tensor, /) -> Tensor:
    """Elementwise conversion of radians to degrees.

    Returns
    -------
    Tensor
        Angles in degrees, as floats.

    Examples
    --------
    >>> import burn
    >>> burn.rad2deg(burn.asarray([0.0, burn.pi], dtype="float64", device="cpu")).tolist()
    [0.0, 180.0]
    """
    return multiply(x, 180.0 / math.pi)
