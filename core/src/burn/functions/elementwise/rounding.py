"""Nearest integers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from burn.dispatch import DispatchTensor, call_of
from burn.docstrings import documented_as
from burn.functions.common import dispatch
from burn.functions.views import independent

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "ceil",
    "floor",
    "round",
    "trunc",
]

_Unary = TypeVar("_Unary", bound=Callable[[Any], Any])


def _rounding(function: _Unary) -> _Unary:
    """Make a definition the call of the op of its name, which returns integers as they are."""
    rounded = call_of(dispatch, function.__name__)

    @functools.wraps(function)
    def call(x: Tensor, /) -> Tensor:
        if isinstance(x, DispatchTensor) and x.tensor_type.dtype.is_integer:
            return independent(x)
        return rounded(x)

    return call  # type: ignore[return-value]  # it has the signature of the definition


@_rounding
def floor(x: Tensor, /) -> Tensor:
    """Elementwise largest integer not above `x`.

    Parameters
    ----------
    x : Tensor
        Real numbers; integers are returned as they are.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    DTypeError
        If `x` is boolean or complex.

    Examples
    --------
    >>> import burn
    >>> burn.floor(burn.asarray([1.5, -1.5], device="cpu")).tolist()
    [1.0, -2.0]
    """


@_rounding
@documented_as(floor)
def ceil(x: Tensor, /) -> Tensor:
    """Elementwise smallest integer not below `x`.

    Examples
    --------
    >>> import burn
    >>> burn.ceil(burn.asarray([1.5, -1.5], device="cpu")).tolist()
    [2.0, -1.0]
    """


@_rounding
@documented_as(floor)
def trunc(x: Tensor, /) -> Tensor:
    """Elementwise nearest integer towards 0.

    Examples
    --------
    >>> import burn
    >>> burn.trunc(burn.asarray([1.5, -1.5], device="cpu")).tolist()
    [1.0, -1.0]
    """


@_rounding
def round(x: Tensor, /) -> Tensor:
    """Elementwise nearest integer; halves go to the even one.

    Complex numbers are rounded by their parts.

    Parameters
    ----------
    x : Tensor
        Numbers; integers are returned as they are.

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
    >>> burn.round(burn.asarray([0.5, 1.5, 2.6], device="cpu")).tolist()
    [0.0, 2.0, 3.0]
    """
