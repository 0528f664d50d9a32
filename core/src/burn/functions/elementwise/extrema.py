"""Elementwise extrema of numbers that may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.functions.common import Operand
from burn.functions.creation import full
from burn.functions.elementwise.arithmetic import maximum, minimum
from burn.functions.elementwise.comparison import isnan
from burn.functions.searching import where

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["fmax", "fmin"]


@documented_as(maximum)
def fmax(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise larger value, ignoring NaN.

    Unlike `maximum` it is NaN only where both operands are.

    Examples
    --------
    >>> import burn
    >>> burn.fmax(burn.asarray([1.0, burn.nan, 5.0], device="cpu"), 3.0).tolist()
    [3.0, 3.0, 5.0]
    """
    return _without_nan(maximum(x1, x2), x1, x2)


@documented_as(fmax)
def fmin(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise smaller value, ignoring NaN.

    Unlike `minimum` it is NaN only where both operands are.

    Examples
    --------
    >>> import burn
    >>> burn.fmin(burn.asarray([1.0, burn.nan, 5.0], device="cpu"), 3.0).tolist()
    [1.0, 3.0, 3.0]
    """
    return _without_nan(minimum(x1, x2), x1, x2)


def _without_nan(extremum: Tensor, x1: Operand, x2: Operand) -> Tensor:
    if not extremum.dtype.is_float:
        return extremum
    for tensor, other in ((x1, x2), (x2, x1)):
        number = (
            tensor
            if isinstance(tensor, DispatchTensor)
            else full((), tensor, dtype=extremum.dtype, device=extremum.device)
        )
        extremum = where(isnan(number), other, extremum)
    return extremum
