"""Exponentials, logarithms and roots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.common import Operand, op_function
from burn.functions.elementwise.arithmetic import clip
from burn.functions.normalize import as_float
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logit",
    "rsqrt",
    "sqrt",
    "xlogy",
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
def exp2(x: Tensor, /) -> Tensor:
    """Elementwise power ``2 ** x``.

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
        If `x` is complex.

    Examples
    --------
    >>> import burn
    >>> burn.exp2(burn.asarray([-1.0, 10.0], device="cpu")).tolist()
    [0.5, 1024.0]
    """


@op_function
@documented_as(exp)
def expm1(x: Tensor, /) -> Tensor:
    """Elementwise ``e ** x - 1``, exact near 0.

    Examples
    --------
    >>> import burn
    >>> burn.expm1(burn.asarray([0.0], device="cpu")).tolist()
    [0.0]
    """


@op_function
@documented_as(exp)
def log(x: Tensor, /) -> Tensor:
    """Elementwise natural logarithm.

    0 gives -inf, a negative number NaN.

    Examples
    --------
    >>> import burn
    >>> burn.log(burn.asarray([1.0, 0.0], device="cpu")).tolist()
    [0.0, -inf]
    """


@op_function
@documented_as(exp)
def log1p(x: Tensor, /) -> Tensor:
    """Elementwise ``log(1 + x)``, exact near 0.

    Examples
    --------
    >>> import burn
    >>> burn.log1p(burn.asarray([0.0, -1.0], device="cpu")).tolist()
    [0.0, -inf]
    """


@op_function
@documented_as(exp)
def log2(x: Tensor, /) -> Tensor:
    """Elementwise logarithm to the base 2.

    Examples
    --------
    >>> import burn
    >>> burn.log2(burn.asarray([1.0, 8.0], device="cpu")).tolist()
    [0.0, 3.0]
    """


@op_function
@documented_as(exp)
def log10(x: Tensor, /) -> Tensor:
    """Elementwise logarithm to the base 10.

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
@documented_as(exp)
def sqrt(x: Tensor, /) -> Tensor:
    """Elementwise square root.

    A negative number gives NaN.

    Examples
    --------
    >>> import burn
    >>> burn.sqrt(burn.asarray([4.0, 9.0], device="cpu")).tolist()
    [2.0, 3.0]
    """


@op_function
@documented_as(exp2)
def rsqrt(x: Tensor, /) -> Tensor:
    """Elementwise ``1 / sqrt(x)``.

    0 gives inf, a negative number NaN.

    Examples
    --------
    >>> import burn
    >>> burn.rsqrt(burn.asarray([4.0, 0.0], device="cpu")).tolist()
    [0.5, inf]
    """


@op_function
@documented_as(exp2)
def cbrt(x: Tensor, /) -> Tensor:
    """Elementwise cube root, which of a negative number is negative.

    Examples
    --------
    >>> import burn
    >>> burn.cbrt(burn.asarray([1.0, -8.0], device="cpu")).tolist()
    [1.0, -2.0]
    """


@documented_as(exp2)
def logit(x: Tensor, /, *, epsilon: float | None = None) -> Tensor:
    """Elementwise ``log(x / (1 - x))``: the inverse of the sigmoid.

    0 gives -inf, 1 gives inf, a number beyond them NaN.

    Parameters
    ----------
    x : Tensor
        Probabilities.
    epsilon : float, optional
        What `x` is kept away from 0 and from 1, between 0 and 0.5; 0 if left out, and beyond it the
        result is NaN.

    Raises
    ------
    ArgumentError
        If `epsilon` is not in [0, 0.5].

    Examples
    --------
    >>> import burn
    >>> burn.logit(burn.asarray([0.5, 0.0], device="cpu")).tolist()
    [0.0, -inf]
    """
    x = as_float(x, "logit")
    if epsilon is not None:
        epsilon = real_number(epsilon, "epsilon", "logit", least=0.0, most=0.5)
        x = clip(x, epsilon, 1.0 - epsilon)
    return calls.logit(x)


@op_function
@documented_as(logaddexp)
def xlogy(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise ``x1 * log(x2)``, which is 0 where `x1` is, whatever number `x2` is.

    Raises
    ------
    DTypeError
        If an operand is complex.

    Notes
    -----
    Where `x1` is 0 and `x2` not positive or infinite, its gradients are 0.

    Examples
    --------
    >>> import burn
    >>> burn.xlogy(burn.asarray([0.0, 2.0], device="cpu"), burn.asarray([0.0, 1.0], device="cpu"))
    Tensor([0., 0.], device='cpu:0')
    """
