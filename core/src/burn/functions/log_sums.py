"""Logarithms of sums of exponentials, which do not overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions import calls
from burn.functions.common import Axis
from burn.functions.cumulative import scan_axis
from burn.functions.normalize import as_flag, as_float, normalize_axes, reduction

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["logcumsumexp", "logsumexp"]


@reduction
def logsumexp(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """``log(sum(exp(x)))``, computed without overflow.

    Parameters
    ----------
    x : Tensor
        Real numbers.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The logarithms, without the summed axes; of no elements, and where all are -inf, -inf.
        Integers give the default float dtype.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    DTypeError
        If `x` is complex.

    Notes
    -----
    Its gradient is ``exp(x - logsumexp(x))``; it is 0 where all elements are -inf.

    Examples
    --------
    >>> import burn
    >>> burn.logsumexp(burn.asarray([[1000.0, 1000.0], [0.0, float("-inf")]], device="cpu"), axis=1)
    Tensor([1000.6932,    0.    ], device='cpu:0')
    """
    axes = normalize_axes(x, axis, "logsumexp")
    keepdims = as_flag(keepdims, "keepdims", "logsumexp")
    return calls.logsumexp(as_float(x, "logsumexp"), axis=axes, keepdims=keepdims)


def logcumsumexp(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    """``log(cumulative_sum(exp(x)))`` along an axis, computed without overflow.

    Parameters
    ----------
    x : Tensor
        Real numbers.
    axis : int, optional
        The axis; a 1-d tensor needs none.

    Returns
    -------
    Tensor
        In the shape of `x`; integers give the default float dtype.

    Raises
    ------
    AxisError
        If `x` has no such axis, or several axes and none is given.
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import burn
    >>> burn.logcumsumexp(burn.asarray([1000.0, 1000.0, 0.0], device="cpu"))
    Tensor([1000.    , 1000.6932, 1000.6932], device='cpu:0')
    """
    number = scan_axis(x, axis, "logcumsumexp")
    return calls.logcumsumexp(as_float(x, "logcumsumexp"), axis=number)
