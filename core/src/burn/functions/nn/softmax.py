"""Softmax and its variants: weights that sum to 1 along an axis.

They take float tensors; integers and booleans become the default float dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.elementwise import negative
from burn.functions.normalize import normalize_axis

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "log_softmax",
    "quiet_softmax",
    "softmax",
    "softmin",
]


def softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers and booleans become the default float dtype.
    axis : int
        Axis along which the result sums to 1.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.softmax(burn.asarray([999.0, 999.0], device="cpu")).tolist()
    [0.5, 0.5]
    """
    return calls.softmax(x, axis=normalize_axis(x, axis, "softmax"))


@documented_as(softmax)
def softmin(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """``exp(-x) / sum(exp(-x))`` along an axis, without overflow.

    The parameters are those of `softmax`.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.softmin(burn.asarray([0.0, 999.0], device="cpu")).tolist()
    [1.0, 0.0]
    """
    number = normalize_axis(x, axis, "softmin")
    if x.dtype.is_integer or x.dtype.is_bool:  # the negative of an unsigned number is large
        x = x.astype(x.device.settings.float_dtype)
    return calls.softmax(negative(x), axis=number)


@documented_as(softmax)
def log_softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """Logarithm of `softmax`, computed as ``x - log(sum(exp(x)))`` without overflow.

    Parameters
    ----------
    axis : int
        Axis along which the exponentials of the result sum to 1.

    Returns
    -------
    Tensor
        In the shape of `x`, at most 0.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.log_softmax(burn.asarray([0.0, 999.0], device="cpu")).tolist()
    [-999.0, 0.0]
    """
    return calls.log_softmax(x, axis=normalize_axis(x, axis, "log_softmax"))


@documented_as(softmax)
def quiet_softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """``exp(x) / (1 + sum(exp(x)))`` along an axis, without overflow.

    Unlike with `softmax` all elements may be near 0 (E. Miller, "Attention Is Off By One", 2023).

    Parameters
    ----------
    axis : int
        Axis along which the result sums to less than 1.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.quiet_softmax(burn.asarray([0.0], device="cpu")).tolist()
    [0.5]
    """
    return calls.quiet_softmax(x, axis=normalize_axis(x, axis, "quiet_softmax"))
