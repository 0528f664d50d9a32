"""Error functions, gamma functions, Bessel functions and their like."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from burn.docstrings import documented_as
from burn.dtype import float32
from burn.functions import calls
from burn.functions.common import op_function
from burn.functions.normalize import as_float
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["digamma", "erf", "erfc", "erfinv", "i0", "lgamma", "multigammaln", "polygamma", "sinc"]

_MOST_DIMENSIONS: Final = 1000
"""Of `multigammaln`, which computes a function for each."""


@op_function
def erfc(x: Tensor, /) -> Tensor:
    """Elementwise complementary error function ``1 - erf(x)``.

    Its digits are exact where it is small: in float64 up to 26.

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
    >>> burn.erfc(burn.asarray([0.0, 9.0], dtype="float64", device="cpu")).tolist()
    [1.0, 4.13703174651381e-37]
    """


@op_function
@documented_as(erfc)
def erf(x: Tensor, /) -> Tensor:
    """Elementwise error function.

    It is ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to `x`.

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


@op_function
@documented_as(erfc)
def erfinv(x: Tensor, /) -> Tensor:
    """Elementwise inverse of the error function `erf`.

    At -1 and 1 it is infinite, beyond them NaN. The quantile at p of the standard normal
    distribution is ``sqrt(2) * erfinv(2 * p - 1)``.

    Parameters
    ----------
    x : Tensor
        Real numbers in [-1, 1].

    Examples
    --------
    >>> import burn
    >>> round(burn.erfinv(burn.asarray(0.5, device="cpu")).item(), 4)
    0.4769
    """


@op_function
@documented_as(erfc)
def lgamma(x: Tensor, /) -> Tensor:
    """Elementwise logarithm of the magnitude of the gamma function.

    At the poles, which are 0 and the negative integers, it is infinite.

    Examples
    --------
    >>> import burn
    >>> burn.lgamma(burn.asarray([0.5, 3.0, 11.0], device="cpu"))
    Tensor([ 0.5723649,  0.6931472, 15.104414 ], device='cpu:0')
    """


def multigammaln(x: Tensor, d: int, /) -> Tensor:
    """Elementwise logarithm of the multivariate gamma function.

    It is the sum of ``lgamma(x - j / 2)`` for j from 0 to ``d - 1``, and ``d (d - 1) / 4 log(pi)``
    (Muirhead, "Aspects of multivariate statistical theory", 1982).

    Parameters
    ----------
    x : Tensor
        Real numbers.
    d : int
        The dimension, 1 or more.

    Returns
    -------
    Tensor
        Of the shape of `x`, and its dtype; of integers the default float dtype. NaN where `x` is
        not above ``(d - 1) / 2``.

    Raises
    ------
    ArgumentError
        If `d` is below 1 or above 1000.
    DTypeError
        If `x` is boolean or complex.

    Examples
    --------
    >>> import burn
    >>> burn.multigammaln(burn.asarray([2.0], device="cpu"), 2)
    Tensor([0.4515827], device='cpu:0')
    """
    count = as_integer(d, "d", "multigammaln", least=1, most=_MOST_DIMENSIONS)
    x = as_float(x, "multigammaln")
    dtype = x.dtype
    if dtype.itemsize < float32.itemsize:
        x = x.astype(float32)
    total = lgamma(x) + count * (count - 1) / 4.0 * math.log(math.pi)
    for j in range(1, count):
        total = total + lgamma(x - j / 2.0)
    return calls.where(x > (count - 1) / 2.0, total, math.nan).astype(dtype)


@op_function
@documented_as(erfc)
def digamma(x: Tensor, /) -> Tensor:
    """Elementwise derivative of `lgamma`.

    At 0 it is -inf, at -0 inf, at negative integers NaN.

    Examples
    --------
    >>> import burn
    >>> burn.digamma(burn.asarray([1.0, 2.0], device="cpu"))
    Tensor([-0.5772157 ,  0.42278433], device='cpu:0')
    """


def polygamma(n: int, x: Tensor, /) -> Tensor:
    """Elementwise derivative of order `n` of `digamma`.

    Parameters
    ----------
    n : int
        The order, from 0 to 25; 1 is the trigamma function.
    x : Tensor
        Real numbers.

    Returns
    -------
    Tensor
        Of the shape of `x`, and its dtype; of integers the default float dtype. At the poles, which
        are 0 and the negative integers, it is inf for an odd `n`, and -inf for an even one above 0.

    Raises
    ------
    ArgumentError
        If `n` is not in [0, 25].
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import burn
    >>> burn.polygamma(1, burn.asarray([1.0, 2.0], device="cpu"))
    Tensor([1.644934  , 0.64493406], device='cpu:0')
    """
    n = as_integer(n, "n", "polygamma")
    return calls.polygamma(as_float(x, "polygamma"), n=n)


@op_function
@documented_as(erfc)
def i0(x: Tensor, /) -> Tensor:
    """Elementwise modified Bessel function of the first kind, of order 0.

    Examples
    --------
    >>> import burn
    >>> burn.i0(burn.asarray([0.0, 1.0], dtype="float64", device="cpu"))
    Tensor([1.        , 1.26606588], device='cpu:0', dtype=float64)
    """


@op_function
@documented_as(erfc)
def sinc(x: Tensor, /) -> Tensor:
    """Elementwise ``sin(pi * x) / (pi * x)``, which is 1 at 0.

    Examples
    --------
    >>> import burn
    >>> burn.sinc(burn.asarray([0.0, 0.5], device="cpu"))
    Tensor([1.        , 0.63661975], device='cpu:0')
    """
