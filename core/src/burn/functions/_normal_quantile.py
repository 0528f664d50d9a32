"""Quantiles of the standard normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from burn.dtype import DType, float32, float64
from burn.functions.elementwise import abs, less_equal, log, sqrt
from burn.functions.searching import where

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["LARGEST_BELOW_1", "normal_quantile"]

LARGEST_BELOW_1: Final = {float32: 1.0 - 2.0**-24, float64: 1.0 - 2.0**-53}

_CENTRAL: Final = 0.85
_FAR_RADIUS: Final = 5.0
"""Root of the negative logarithm of the tail beyond a quantile, from where on it is far out."""

_COEFFICIENTS: Final[dict[DType, tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]]] = {
    float32: (
        (
            (59.10937472, 159.29113202, 50.434271938, 3.3871327179),
            (67.1875636, 78.757757664, 17.895169469, 1.0),
        ),
        (
            (0.17023821103, 1.3067284816, 2.75681539, 1.4234372777),
            (0.12021132975, 0.7370016425, 1.0),
        ),
    ),
    float64: (
        (
            (
                2509.0809287301226727,
                33430.575583588128105,
                67265.770927008700853,
                45921.953931549871457,
                13731.693765509461125,
                1971.5909503065514427,
                133.14166789178437745,
                3.387132872796366608,
            ),
            (
                5226.495278852854561,
                28729.085735721942674,
                39307.89580009271061,
                21213.794301586595867,
                5394.1960214247511077,
                687.1870074920579083,
                42.313330701600911252,
                1.0,
            ),
        ),
        (
            (
                7.7454501427834140764e-4,
                0.0227238449892691845833,
                0.24178072517745061177,
                1.27045825245236838258,
                3.64784832476320460504,
                5.7694972214606914055,
                4.6303378461565452959,
                1.42343711074968357734,
            ),
            (
                1.05075007164441684324e-9,
                5.475938084995344946e-4,
                0.0151986665636164571966,
                0.14810397642748007459,
                0.68976733498510000455,
                1.6763848301838038494,
                2.05319162663775882187,
                1.0,
            ),
        ),
        (
            (
                2.01033439929228813265e-7,
                2.71155556874348757815e-5,
                0.0012426609473880784386,
                0.026532189526576123093,
                0.29656057182850489123,
                1.7848265399172913358,
                5.4637849111641143699,
                6.6579046435011037772,
            ),
            (
                2.04426310338993978564e-15,
                1.4215117583164458887e-7,
                1.8463183175100546818e-5,
                7.868691311456132591e-4,
                0.0148753612908506148525,
                0.13692988092273580531,
                0.59983220655588793769,
                1.0,
            ),
        ),
    ),
}
"""Numerators and denominators, the highest power first: of central quantiles, outer ones, and,
where the dtype tells those from infinity, the far ones."""


def normal_quantile(x: Tensor, largest: float) -> Tensor:
    """The quantiles at ``(1 + x) / 2``, which is ``sqrt(2)`` times the inverse of `erf`.

    Algorithm AS 241 of M. J. Wichura, "The percentage points of the normal distribution" (Applied
    Statistics 37, 1988): in float64 PPND16, to 1e-15 of the value; in float32 PPND7, to 5e-7.

    Parameters
    ----------
    x : Tensor
        Of float32 or float64, in (-1, 1).
    largest : float
        A bound of the magnitudes, up to `LARGEST_BELOW_1`: the branches beyond it are left out.
    """
    central, *outer = [
        (numerator, denominator) for numerator, denominator in _COEFFICIENTS[x.dtype]
    ]
    quantile = x * 0.5 * _ratio(central, 0.180625 - x * x * 0.25)
    if largest <= _CENTRAL:
        return quantile
    magnitude = abs(x)
    radius = sqrt(-log((1.0 - magnitude) * 0.5))
    tail = _ratio(outer[0], radius - 1.6)
    if math.sqrt(-math.log((1.0 - largest) * 0.5)) > _FAR_RADIUS:
        tail = where(less_equal(radius, _FAR_RADIUS), tail, _ratio(outer[1], radius - _FAR_RADIUS))
    tail = where(less_equal(x, 0.0), -tail, tail)
    return where(less_equal(magnitude, _CENTRAL), quantile, tail)


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Tensor) -> Tensor:
    numerator, denominator = [_polynomial(one, x) for one in coefficients]
    return numerator / denominator


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """By Horner's rule; the coefficient of the highest power is the first."""
    first, second, *rest = coefficients
    value = x * first + second
    for one in rest:
        value = value * x + one
    return value
