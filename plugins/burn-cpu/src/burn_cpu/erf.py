"""A rational approximation of the error function in float32."""

from __future__ import annotations

from typing import Final

__all__ = ["DENOMINATOR", "LIMIT", "NUMERATOR"]

LIMIT: Final = 3.925
"""From here on the error function is 1 in float32."""

NUMERATOR: Final = (
    2.0459963867e-06,
    2.8484335906e-04,
    3.7726106788e-03,
    5.2769487444e-02,
    1.9059539413e-01,
    1.1283791404,
)
DENOMINATOR: Final = (
    3.8047437556e-05,
    1.1638693977e-03,
    1.4983323403e-02,
    1.1418336630e-01,
    5.0224351883e-01,
    1.0,
)
"""Coefficients of ``erf(x) / x`` as a function of ``x**2``, the highest power first.

The relative error is below 5e-8 up to `LIMIT` (least squares with Lawson's weights).
"""
