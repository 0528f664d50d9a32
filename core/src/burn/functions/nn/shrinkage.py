"""Shrinkage and thresholds: units that are 0 or constant over an interval.

They take float tensors; integers and booleans become the default float dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions import calls
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["hard_shrink", "shrink", "soft_shrink", "threshold", "thresholded_relu"]


def shrink(x: Tensor, /, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """`x` moved by `bias` towards 0, but 0 within [-lambd, lambd].

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    lambd : float
        Threshold, at least 0.
    bias : float
        Distance by which elements beyond the threshold move towards 0.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    ArgumentError
        If `lambd` is negative.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.shrink(burn.asarray([-2.0, 0.5, 2.0], device="cpu"), lambd=1.0, bias=0.5).tolist()
    [-1.5, 0.0, 1.5]
    """
    return calls.shrink(
        x, lambd=real_number(lambd, "lambd", "shrink"), bias=real_number(bias, "bias", "shrink")
    )


@documented_as(shrink)
def hard_shrink(x: Tensor, /, *, lambd: float = 0.5) -> Tensor:
    """`x`, but 0 within [-lambd, lambd].

    The parameters are those of `shrink`.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.hard_shrink(burn.asarray([-2.0, 0.25, 2.0], device="cpu")).tolist()
    [-2.0, 0.0, 2.0]
    """
    return calls.shrink(x, lambd=real_number(lambd, "lambd", "hard_shrink"))


@documented_as(shrink)
def soft_shrink(x: Tensor, /, *, lambd: float = 0.5) -> Tensor:
    """`x` moved by `lambd` towards 0, but 0 within [-lambd, lambd].

    Parameters
    ----------
    lambd : float
        Threshold and distance, at least 0.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.soft_shrink(burn.asarray([-2.0, 0.25, 2.0], device="cpu")).tolist()
    [-1.5, 0.0, 1.5]
    """
    number = real_number(lambd, "lambd", "soft_shrink")
    return calls.shrink(x, lambd=number, bias=number)


def threshold(x: Tensor, /, *, threshold: float, value: float) -> Tensor:
    """`x` where it is above a threshold, otherwise `value`.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    threshold : float
        Elements above it are kept.
    value : float
        Replaces the others; it may be NaN.

    Returns
    -------
    Tensor
        In the shape of `x`; NaN propagates.

    Raises
    ------
    ArgumentError
        If `threshold` is NaN.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.threshold(burn.asarray([1.0, 3.0], device="cpu"), threshold=2.0, value=-1.0).tolist()
    [-1.0, 3.0]
    """
    return calls.threshold(
        x,
        threshold=real_number(threshold, "threshold", "threshold"),
        value=real_number(value, "value", "threshold", takes_nan=True),
    )


@documented_as(threshold)
def thresholded_relu(x: Tensor, /, *, alpha: float = 1.0) -> Tensor:
    """`x` where it is above `alpha`, otherwise 0 (Konda et al., 2015, arXiv:1402.3337).

    Parameters
    ----------
    alpha : float
        Threshold.

    Raises
    ------
    ArgumentError
        If `alpha` is NaN.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.thresholded_relu(burn.asarray([0.5, 3.0], device="cpu")).tolist()
    [0.0, 3.0]
    """
    return calls.threshold(x, threshold=real_number(alpha, "alpha", "thresholded_relu"), value=0.0)
