"""Exponentials, logarithms, roots and the error function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions.common import Operand, op_function

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "erf",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "sqrt",
]


@op_function
def exp(x: Tensor, /) -> Tensor:
    """Elementwise exponential ``e ** x``.

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
    >>> burn.exp(burn.asarray([0.0], device="cpu")).tolist()
    [1.0]
    """


@op_function
def expm1(x: Tensor, /) -> Tensor:
    """Elementwise ``e ** x - 1``, exact near 0.

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
    >>> burn.expm1(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
def log(x: Tensor, /) -> Tensor:
    """Elementwise natural logarithm.

    0 gives -inf, a negative number NaN.

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
    >>> burn.log(burn.asarray([1.0, 0.0], device="cpu")).tolist()
    [0.0, -inf]
    """


@op_function
def log1p(x: Tensor, /) -> Tensor:
    """Elementwise ``log(1 + x)``, exact near 0.

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
    >>> burn.log1p(burn.asarray([0.0, -1.0], device="cpu")).tolist()
    [0.0, -inf]
    """


@op_function
def log2(x: Tensor, /) -> Tensor:
    """Elementwise logarithm to the base 2.

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
    >>> burn.log2(burn.asarray([1.0, 8.0], device="cpu")).tolist()
    [0.0, 3.0]
    """


@op_function
def log10(x: Tensor, /) -> Tensor:
    """Elementwise logarithm to the base 10.

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
    >>> burn.log10(burn.asarray([1.0, 100.0], device="cpu")).tolist()
    [0.0, 2.000000238418579]
    """


@op_function
def logaddexp(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``log(exp(x1) + exp(x2))`` without overflow.

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
    >>> burn.logaddexp(burn.asarray([1000.0], device="cpu"), float("-inf")).tolist()
    [1000.0]
    """


@op_function
def sqrt(x: Tensor, /) -> Tensor:
    """Elementwise square root.

    A negative number gives NaN.

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
    >>> burn.sqrt(burn.asarray([4.0, 9.0], device="cpu")).tolist()
    [2.0, 3.0]
    """


@op_function
def erf(x: Tensor, /) -> Tensor:
    """Elementwise error function.

    It is ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to `x`.

    Parameters
    ----------
    x : Tensor
        Real numbers.

    Returns
    -------
    Tensor
        Of the shape of `x`, and its dtype; of integers the default float dtype.

    Raises
    ------
    DTypeError
        If `x` is boolean or complex.

    Examples
    --------
    >>> import burn
    >>> burn.erf(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """
