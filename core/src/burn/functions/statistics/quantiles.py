"""Quantiles, of all elements or of those that are not NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from burn.backend.invalid_values import InvalidValue
from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.dtype import DType, float32, float64
from burn.errors import ArgumentError, DTypeError, OperandTypeError, ShapeError
from burn.functions import elementwise
from burn.functions._value_checks import require
from burn.functions.common import Axis
from burn.functions.creation import asarray
from burn.functions.elementwise import isfinite, isnan, maximum
from burn.functions.indexing import take, take_along_axis
from burn.functions.manipulation import broadcast_to, moveaxis
from burn.functions.normalize import (
    as_flag,
    check_choice,
    normalize_axes,
    reduction,
)
from burn.functions.quantization import numbers_of
from burn.functions.searching import count_nonzero, where
from burn.functions.sorting import sort
from burn.functions.statistics._rows import kept_shape, rows_over
from burn.functions.statistics.median import median
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

__all__ = ["nanmedian", "nanquantile", "quantile"]

Quantiles: TypeAlias = "Tensor | float | list[float] | tuple[float, ...]"

_ELEMENT: Final = {"lower": "floor", "higher": "ceil", "nearest": "round"}
"""How methods that take one element round its position among the sorted ones."""

_METHODS: Final = ("linear", "midpoint", *_ELEMENT)


@reduction
def quantile(
    x: Tensor,
    q: Quantiles,
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Values below which given parts of the elements lie.

    Of n elements in sorted order, the quantile q has the position ``q * (n - 1)``. Between two
    elements the method says which value it has there.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    q : Tensor or number or sequence of numbers
        Parts, in [0, 1]: 0 gives the minimum, 0.5 the median, 1 the maximum.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    keepdims : bool
        Whether the reduced axes stay, with length 1.
    method : {"linear", "lower", "higher", "midpoint", "nearest"}
        "linear" interpolates, "lower", "higher" and "nearest" take one of the two elements (the
        one of even position if both are as near), "midpoint" takes their mean.

    Returns
    -------
    Tensor
        The axes of `q`, and then those of `x` without the reduced ones. In the dtype of `x`; with
        "linear" and "midpoint" integers give the default float dtype. NaN propagates. The gradient
        goes to the one or two elements, in the order of a stable sort; with "linear" `q` has one
        too.

    Raises
    ------
    ArgumentError
        If `method` is another string, or a number of `q` is not in [0, 1].
    AxisError
        If `x` has no such axis.
    OutOfRangeError
        If an element of a tensor `q` is not in [0, 1]; on an asynchronous device at the next read.
    ShapeError
        If there are no elements to choose from.

    See Also
    --------
    nanquantile : leaves out NaN.
    median : the quantile 0.5.

    Notes
    -----
    The methods 4 to 9 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages"
    (1996), differ in the position; "linear" is their seventh. The position is computed in float64
    where the device has it.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]], device="cpu")
    >>> burn.quantile(x, [0.25, 1.0], axis=1).tolist()
    [[1.75, 17.5], [4.0, 40.0]]
    >>> burn.quantile(x, 0.25, axis=1, method="higher").tolist()
    [2.0, 20.0]
    """
    return _quantiles(x, q, axis, method, "quantile", keepdims=keepdims, skip_nan=False)


@reduction
@documented_as(quantile)
def nanquantile(
    x: Tensor,
    q: Quantiles,
    /,
    *,
    axis: Axis = None,
    keepdims: bool = False,
    method: str = "linear",
) -> Tensor:
    """Values below which given parts of the elements that are not NaN lie.

    The other parameters are those of `quantile`.

    Parameters
    ----------
    method : {"linear", "lower", "higher", "midpoint", "nearest"}
        Which value lies between two elements; see `quantile`.

    Returns
    -------
    Tensor
        The axes of `q`, and then those of `x` without the reduced ones. Of NaN alone, and of no
        elements, it is NaN.

    Raises
    ------
    ShapeError
        If there are no elements to choose from, and no NaN in the dtype.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, burn.nan, 3.0], device="cpu")
    >>> burn.nanquantile(x, 0.25).item()
    1.5
    """
    return _quantiles(x, q, axis, method, "nanquantile", keepdims=keepdims, skip_nan=True)


@reduction
@documented_as(median)
def nanmedian(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Median of the elements that are not NaN.

    The parameters are those of `median`.

    Returns
    -------
    Tensor
        The medians, without the reduced axes. Of NaN alone, and of no elements, it is NaN.

    Examples
    --------
    >>> import burn
    >>> burn.nanmedian(burn.asarray([1.0, burn.nan, 4.0, 2.0], device="cpu")).item()
    2.0
    """
    return _quantiles(x, 0.5, axis, "linear", "nanmedian", keepdims=keepdims, skip_nan=True)


def _quantiles(
    x: Tensor,
    q: Quantiles,
    axis: Axis,
    method: str,
    operation: str,
    *,
    keepdims: bool,
    skip_nan: bool,
) -> Tensor:
    axes = normalize_axes(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    check_choice(method, _METHODS, "method", operation)
    if x.dtype.is_complex:
        raise DTypeError("complex numbers have no order", operation=operation)
    if x.dtype.is_bool or (x.dtype.is_integer and method not in _ELEMENT):
        x = x.astype(x.device.settings.float_dtype)
    x = numbers_of(x)
    rows = sort(rows_over(x, axes))
    length = rows.shape[-1]
    skip_nan = skip_nan and x.dtype.is_float
    if not (length or skip_nan):
        raise ShapeError(
            f"there is no quantile of no elements (axis {axis} of {x.shape})", operation=operation
        )
    parts, shape, fault = _parts(q, x.device, operation)
    if skip_nan:
        count = count_nonzero(~isnan(rows), axis=-1, keepdims=True)
        if length:
            result = _at(rows, parts, maximum(count - 1, 0), fault, method)
            result = where(count == 0, float("nan"), result)
        else:
            result = broadcast_to(
                where(count == 0, float("nan"), rows.sum(axis=-1, keepdims=True)),
                (*rows.shape[:-1], *parts.shape),
            )
    else:
        result = _at(rows, parts, length - 1, fault, method)
        if x.dtype.is_float:
            largest = rows[..., -1:]  # NaN sorts last
            result = where(isnan(largest), largest, result)
    result = moveaxis(result, -1, 0)
    return result.reshape((*shape, *kept_shape(x.shape, axes, keepdims=keepdims)), copy=True)


def _parts(q: Any, device: Device, operation: str) -> tuple[Any, tuple[int, ...], Tensor | int]:
    """The parts as a vector: of NumPy, or a tensor; their shape; an index that checks a tensor."""
    if isinstance(q, DispatchTensor):
        return _checked_parts(q, device, operation)  # type: ignore[arg-type]  # a Tensor
    try:
        array = np.asarray(q, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise OperandTypeError(
            f"q must be a number, a sequence of numbers or a tensor, not {shown_value(q)}",
            operation=operation,
        ) from None
    if not np.all((array >= 0) & (array <= 1)):
        raise ArgumentError(
            f"q is {shown_value(q)}", hint="It must be in [0, 1]", operation=operation
        )
    return array.reshape(-1), array.shape, 0


def _checked_parts(
    q: Tensor, device: Device, operation: str
) -> tuple[Tensor, tuple[int, ...], Tensor]:
    if not q.dtype.is_float:
        raise DTypeError(f"q must be a float tensor, not one of {q.dtype}", operation=operation)
    valid = (q >= 0) & (q <= 1)
    parts = where(valid, q, 0.0).reshape((-1,), copy=True).astype(_position_dtype(device))
    return parts, q.shape, require(valid, InvalidValue.QUANTILE)


def _at(rows: Tensor, parts: Any, last: Any, fault: Any, method: str) -> Tensor:
    """Quantiles of sorted rows, along the last axis, of which each has the last index `last`."""
    device = rows.device
    is_on_host = isinstance(parts, np.ndarray) and isinstance(last, int)
    functions: Any = np if is_on_host else elementwise
    if not is_on_host:
        dtype = _position_dtype(device)
        parts = _as_tensor(parts, dtype, device)
        last = last if isinstance(last, int) else last.astype(dtype)
    position = parts * last
    if method in _ELEMENT:
        return _elements(rows, getattr(functions, _ELEMENT[method])(position), fault)
    before = functions.floor(position)
    fraction = functions.ceil(position) - before if method == "midpoint" else position - before
    wide = float32 if rows.dtype.itemsize < float32.itemsize else rows.dtype
    weight = _as_tensor(fraction, wide, device)
    if method == "midpoint":
        weight = weight / 2
    lower = _elements(rows, before, fault).astype(wide)
    upper = _elements(rows, functions.ceil(position), fault).astype(wide)
    step = upper - lower
    mixed = where(lower == upper, lower, lower * (1 - weight) + upper * weight)
    # The first is exact where elements are equal; the second, where their difference is too large.
    result = where(isfinite(step), lower + step * weight, mixed)
    return result.astype(rows.dtype)


def _elements(rows: Tensor, position: Any, fault: Any) -> Tensor:
    """The elements at positions, which are those of all rows or of each."""
    dtype = rows.device.settings.int_dtype
    indices = _as_tensor(position, dtype, rows.device) + fault
    if indices.ndim == 1:
        return take(rows, indices, axis=-1)
    return take_along_axis(rows, indices, axis=-1)


def _as_tensor(values: Any, dtype: DType, device: Device) -> Tensor:
    if isinstance(values, DispatchTensor):
        return values.astype(dtype)  # type: ignore[attr-defined,no-any-return]  # a Tensor
    return asarray(values, dtype=dtype, device=device)


def _position_dtype(device: Device) -> DType:
    return float64 if device.supports_dtype(float64) else float32
