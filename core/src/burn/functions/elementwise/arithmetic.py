"""Sums, products and what follows from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.common import Operand, op_function
from burn.functions.data_type import finfo
from burn.functions.normalize import check_tensor, number_dtype
from burn.functions.views import independent
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "abs",
    "add",
    "clip",
    "copysign",
    "divide",
    "floor_divide",
    "fmod",
    "heaviside",
    "lerp",
    "maximum",
    "minimum",
    "multiply",
    "nan_to_num",
    "negative",
    "nextafter",
    "positive",
    "pow",
    "reciprocal",
    "remainder",
    "sign",
    "square",
    "subtract",
    "trunc_divide",
]


@op_function
def add(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise sum ``x1 + x2``.

    Integers wrap around.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Numbers, of shapes that broadcast; at least one is a tensor.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.

    Raises
    ------
    DTypeError
        If an operand is boolean.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.add(burn.asarray([1, 2], device="cpu"), 10).tolist()
    [11, 12]
    """


@op_function
@documented_as(add)
def subtract(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise difference ``x1 - x2``.

    Integers wrap around.

    Examples
    --------
    >>> import burn
    >>> burn.subtract(burn.asarray([1, 2], device="cpu"), 10).tolist()
    [-9, -8]
    """


@op_function
@documented_as(add)
def multiply(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise product ``x1 * x2``.

    Integers wrap around.

    Examples
    --------
    >>> import burn
    >>> burn.multiply(burn.asarray([1, 2], device="cpu"), 10).tolist()
    [10, 20]
    """


@op_function
@documented_as(add)
def divide(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise quotient ``x1 / x2``.

    It follows IEEE 754 where `x2` is zero.

    Parameters
    ----------
    x1 : Tensor or number
        Dividend.
    x2 : Tensor or number
        Divisor, of a shape that broadcasts with that of `x1`; one of both is a tensor.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.
        Integers give the default float dtype.

    Examples
    --------
    >>> import burn
    >>> burn.divide(burn.asarray([1.0, 3.0], device="cpu"), 2).tolist()
    [0.5, 1.5]
    """


@op_function
def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """Largest integer not above ``x1 / x2``.

    An integer divided by zero gives 0.

    Parameters
    ----------
    x1 : Tensor or number
        Dividend.
    x2 : Tensor or number
        Divisor, of a shape that broadcasts with that of `x1`; one of both is a tensor.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.

    Raises
    ------
    DTypeError
        If an operand is boolean or complex.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.floor_divide(burn.asarray([7, -7], device="cpu"), 2).tolist()
    [3, -4]
    """


@op_function
@documented_as(floor_divide)
def trunc_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """``x1 / x2``, rounded towards 0.

    The rest is `fmod`: ``trunc_divide(x1, x2) * x2 + fmod(x1, x2)`` is `x1`. An integer divided by
    zero gives 0.

    Examples
    --------
    >>> import burn
    >>> burn.trunc_divide(burn.asarray([7, -7], device="cpu"), 2).tolist()
    [3, -3]
    """


@op_function
@documented_as(floor_divide)
def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 - floor(x1 / x2) * x2``, which has the sign of the divisor.

    For integers, ``x % 0`` is 0.

    Examples
    --------
    >>> import burn
    >>> burn.remainder(burn.asarray([7, -7], device="cpu"), 3).tolist()
    [1, 2]
    """


@op_function
@documented_as(floor_divide)
def fmod(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 - trunc(x1 / x2) * x2``, which has the sign of the dividend.

    The result is exact. For integers, ``fmod(x, 0)`` is 0.

    Examples
    --------
    >>> import burn
    >>> burn.fmod(burn.asarray([7, -7], device="cpu"), 3).tolist()
    [1, -1]
    """


@op_function
@documented_as(add)
def pow(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise power ``x1 ** x2``.

    Integers are exact and wrap around. A negative integer exponent in a tensor gives the truncated
    reciprocal: 0, 1 or -1 (0 for the base 0).

    Parameters
    ----------
    x1 : Tensor or number
        Base.
    x2 : Tensor or number
        Exponent, of a shape that broadcasts with that of `x1`; one of both is a tensor.

    Examples
    --------
    >>> import burn
    >>> burn.pow(burn.asarray([1.0, 2.0, 3.0], device="cpu"), 2).tolist()
    [1.0, 4.0, 9.0]
    """


@op_function
def negative(x: Tensor, /) -> Tensor:
    """Elementwise ``-x``.

    Integers wrap around.

    Parameters
    ----------
    x : Tensor
        Numbers.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is boolean.

    Examples
    --------
    >>> import burn
    >>> burn.negative(burn.asarray([1, -2], device="cpu")).tolist()
    [-1, 2]
    """


@op_function
@documented_as(negative)
def abs(x: Tensor, /) -> Tensor:
    """Elementwise absolute value, of a complex number its magnitude.

    The smallest integer of a signed dtype stays itself.

    Returns
    -------
    Tensor
        Of the shape of `x`, and its dtype; of complex numbers the dtype of their parts.

    Examples
    --------
    >>> import burn
    >>> burn.abs(burn.asarray([-1.5, 2.0], device="cpu")).tolist()
    [1.5, 2.0]
    """


@op_function
@documented_as(negative)
def sign(x: Tensor, /) -> Tensor:
    """Elementwise sign: -1, 0 or 1; NaN stays NaN.

    Of a complex number it is ``x / abs(x)``, or 0.

    Examples
    --------
    >>> import burn
    >>> burn.sign(burn.asarray([-2.0, 0.0, 3.0], device="cpu")).tolist()
    [-1.0, 0.0, 1.0]
    """


@op_function
@documented_as(negative)
def square(x: Tensor, /) -> Tensor:
    """Elementwise ``x * x``.

    Integers wrap around.

    Examples
    --------
    >>> import burn
    >>> burn.square(burn.asarray([-2, 3], device="cpu")).tolist()
    [4, 9]
    """


@op_function
@documented_as(negative)
def reciprocal(x: Tensor, /) -> Tensor:
    """Elementwise ``1 / x``.

    Returns
    -------
    Tensor
        Of the shape of `x`, and its dtype; of integers the default float dtype.

    Examples
    --------
    >>> import burn
    >>> burn.reciprocal(burn.asarray([2.0, -4.0], device="cpu")).tolist()
    [0.5, -0.25]
    """


@op_function
def maximum(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise larger value.

    NaN propagates. Equal operands share the gradient.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Real numbers, of shapes that broadcast; at least one is a tensor.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.

    Raises
    ------
    DTypeError
        If an operand is boolean or complex.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.maximum(burn.asarray([1, 5], device="cpu"), 3).tolist()
    [3, 5]
    """


@op_function
@documented_as(maximum)
def minimum(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise smaller value.

    NaN propagates. Equal operands share the gradient.

    Examples
    --------
    >>> import burn
    >>> burn.minimum(burn.asarray([1, 5], device="cpu"), 3).tolist()
    [1, 3]
    """


@op_function
def copysign(x1: Operand, x2: Operand, /) -> Tensor:
    """Magnitude of `x1` with the sign of `x2`.

    A zero and a NaN have a sign, too.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Real numbers, of shapes that broadcast; integers become the default float dtype.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote.
        Integers give the default float dtype.

    Raises
    ------
    DTypeError
        If an operand is boolean or complex.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.copysign(burn.asarray([1.0, -2.0], device="cpu"), -0.0).tolist()
    [-1.0, -2.0]
    """


@op_function
@documented_as(copysign)
def nextafter(x1: Operand, x2: Operand, /) -> Tensor:
    """Next number that the dtype represents after `x1` towards `x2`.

    Raises
    ------
    UnsupportedOpError
        If an operand is tracked: there is no gradient.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0], dtype="float64", device="cpu")
    >>> burn.nextafter(x, 2.0).tolist()
    [1.0000000000000002]
    """


def positive(x: Tensor, /) -> Tensor:
    """Elementwise ``+x``: the same values in another tensor.

    Parameters
    ----------
    x : Tensor
        Any tensor.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; no view of it.

    Examples
    --------
    >>> import burn
    >>> burn.positive(burn.asarray([1, -2], device="cpu")).tolist()
    [1, -2]
    """
    if not isinstance(x, DispatchTensor):
        check_tensor(x, "x", "positive")
    return independent(x)


@documented_as(maximum)
def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Elementwise value nearest to `x` between two bounds.

    Parameters
    ----------
    x : Tensor
        Real numbers.
    min, max : Tensor or number, optional
        Bounds, broadcast to `x`; None for none. Where `min` is above `max`, the result is `max`.

    Examples
    --------
    >>> import burn
    >>> burn.clip(burn.asarray([-1.0, 0.5, 3.0], device="cpu"), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    if min is None:
        return positive(x) if max is None else minimum(x, max)
    if max is None:
        return maximum(x, min)
    return calls.clip(x, min, max)


@op_function
@documented_as(copysign)
def heaviside(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise step: 0 where `x1` is negative, 1 where it is positive, `x2` where it is 0.

    Returns
    -------
    Tensor
        Of the shape to which the operands broadcast and the dtype to which they promote; NaN where
        `x1` is NaN. Integers give the default float dtype.

    Raises
    ------
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import burn
    >>> burn.heaviside(burn.asarray([-1.5, 0.0, 2.0], device="cpu"), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """


@op_function
@documented_as(copysign)
def lerp(start: Operand, end: Operand, weight: Operand, /) -> Tensor:
    """Elementwise linear interpolation ``start + weight * (end - start)``.

    Parameters
    ----------
    start, end : Tensor or number
        Real numbers: what the weights 0 and 1 give, exactly.
    weight : Tensor or number
        Where to interpolate; beyond [0, 1] the line goes on. The shapes broadcast, integers become
        the default float dtype, and at least one operand is a tensor.

    Raises
    ------
    DTypeError
        If an operand is complex.

    Examples
    --------
    >>> import burn
    >>> burn.lerp(burn.asarray([0.0, 10.0], device="cpu"), 20.0, 0.25).tolist()
    [5.0, 12.5]
    """


def nan_to_num(
    x: Tensor, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`x` with numbers in place of NaN and infinities.

    Parameters
    ----------
    x : Tensor
        Numbers. Of complex ones each part is replaced by itself.
    nan : float
        What replaces NaN.
    posinf, neginf : float, optional
        What replaces inf and -inf: the largest and the smallest number of the dtype if left out.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`. Integers and booleans stay as they are.

    Raises
    ------
    OperandTypeError
        If `x` is no tensor, or a replacement no real number.

    Notes
    -----
    The gradient of what is replaced is 0.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([float("nan"), float("inf"), 1.5], device="cpu")
    >>> burn.nan_to_num(x, posinf=9.0).tolist()
    [0.0, 9.0, 1.5]
    """
    numbers = [
        None if number is None else real_number(number, name, "nan_to_num", takes_nan=True)
        for name, number in (("nan", nan), ("posinf", posinf), ("neginf", neginf))
    ]
    check_tensor(x, "x", "nan_to_num")
    dtype = number_dtype(x)
    if not (dtype.is_float or dtype.is_complex):
        return independent(x)
    limits = [0.0, finfo(dtype).max, finfo(dtype).min]
    values = [
        limit if number is None else number for number, limit in zip(numbers, limits, strict=True)
    ]
    if not dtype.is_complex:
        return _replaced(x, values)
    return calls.complex(_replaced(calls.real(x), values), _replaced(calls.imag(x), values))


def _replaced(x: Tensor, values: list[float]) -> Tensor:
    nan, above, below = values
    result = calls.where(calls.isnan(x), nan, x)
    result = calls.where(calls.equal(x, math.inf), above, result)
    return calls.where(calls.equal(x, -math.inf), below, result)
