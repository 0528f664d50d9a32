"""Counts of elements: in bins, and of each integer."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from burn.backend.invalid_values import InvalidValue
from burn.dispatch import DispatchTensor
from burn.errors import ArgumentError, DTypeError, OperandTypeError, ShapeError
from burn.functions import calls
from burn.functions._spread import accumulation_dtype
from burn.functions._value_checks import require
from burn.functions.creation import arange, asarray, ones, zeros
from burn.functions.elementwise import isfinite, logical_and
from burn.functions.manipulation import concat
from burn.functions.normalize import as_flag, as_float, check_tensor
from burn.functions.quantization import numbers_of
from burn.functions.searching import searchsorted, where
from burn.functions.statistical import max, min, sum
from burn.ops.arguments import as_integer, real_number
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["bincount", "bucketize", "histogram"]

_MOST_BINS: Final = 2**31
"""Indices of bins fit into int32."""

Edges: TypeAlias = "Tensor | Sequence[float]"


class Histogram(NamedTuple):
    """Counts of elements in bins, and the edges of the bins."""

    counts: Any
    edges: Any


def histogram(
    x: Tensor,
    /,
    bins: int | Edges = 10,
    *,
    range: tuple[float, float] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Number of elements in each of several bins.

    A bin holds the elements from its lower edge to below its upper one; the last bin holds its
    upper edge, too. Elements outside of all bins, and NaN, are in none.

    Parameters
    ----------
    x : Tensor
        Real tensor; all of its elements are counted.
    bins : int or Tensor or sequence of numbers
        The number of bins of equal width, or their edges in ascending order.
    range : tuple of two numbers, optional
        Lower and upper edge of all bins, where `bins` is their number. By default the minimum and
        the maximum of `x`; of no elements (0, 1). Where both are equal, it is wider by 0.5 on
        either side.
    weights : Tensor, optional
        In the shape of `x`: what each element adds to the count of its bin, instead of 1.
    density : bool
        Whether the result is the density of probability: its integral over the bins is 1.

    Returns
    -------
    counts : Tensor, shape (bins,)
        In the default integer dtype; in the dtype of `weights` (booleans count as 0 and 1); floats
        if `density`. The weights have gradients.
    edges : Tensor, shape (bins + 1,)
        The edges; computed ones are in the dtype of `x`, of integers in the default float dtype.

    Raises
    ------
    ArgumentError
        If there is no bin, the range is not finite or descends, or edges in a sequence descend.
    OutOfRangeError
        If the range of the elements is not finite, or the edges in a tensor descend; on an
        asynchronous device at the next read.
    ShapeError
        If `weights` have another shape than `x`, or edges are no vector.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([0.5, 1.0, 1.5, 4.0], device="cpu")
    >>> counts, edges = burn.histogram(x, 4, range=(0.0, 4.0))
    >>> counts.tolist(), edges.tolist()
    ([1, 2, 0, 1], [0.0, 1.0, 2.0, 3.0, 4.0])
    """
    operation = "histogram"
    check_tensor(x, "x", operation)
    if x.dtype.is_complex:
        raise DTypeError("complex numbers have no order", operation=operation)
    density = as_flag(density, "density", operation)
    weights = _checked_weights(weights, x, operation)
    limits = None if range is None else _checked_range(range, operation)
    is_number = not isinstance(bins, (DispatchTensor, list, tuple)) and not np.ndim(bins)
    x = numbers_of(x if not is_number and x.dtype.is_integer else as_float(x, operation))
    flat = x.reshape((-1,))
    fault: Any = 0
    if is_number:
        count = _bin_count(bins, operation)
        if limits is None and flat.size:
            edges, fault = _edges_of_elements(flat, count)
        else:
            low, high = limits or (0.0, 1.0)
            edges = asarray(np.linspace(low, high, count + 1), dtype=x.dtype, device=x.device)
    else:
        edges, fault = _given_edges(bins, x, operation)
    counts = _counts(flat, edges, weights, fault)
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / sum(counts)
    return Histogram(counts, edges)


def bincount(x: Tensor, /, *, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer occurs.

    The length of the result depends on the data, which are read for it; with `histogram`, or with
    `scatter_add`, it does not.

    Parameters
    ----------
    x : Tensor, shape (N,)
        Integers that are not negative.
    weights : Tensor, shape (N,), optional
        What each element adds to the count of its integer, instead of 1.
    minlength : int
        The least length of the result.

    Returns
    -------
    Tensor
        The counts of 0, 1, ... up to the largest element; in the default integer dtype. With
        `weights` their sums, as floats; the weights have gradients.

    Raises
    ------
    ArgumentError
        If an element or `minlength` is negative.
    DTypeError
        If the elements are no integers.
    ShapeError
        If `x` is no vector, or `weights` have another shape.

    Examples
    --------
    >>> import burn
    >>> burn.bincount(burn.asarray([1, 3, 1], device="cpu")).tolist()
    [0, 2, 0, 1]
    """
    check_tensor(x, "x", "bincount")
    if not (x.dtype.is_integer or x.dtype.is_bool):
        raise DTypeError(
            f"x must be integers, not {x.dtype}",
            hint="histogram() counts floats in bins",
            operation="bincount",
        )
    if x.ndim != 1:
        raise ShapeError(
            f"x must have one axis, not shape {x.shape}",
            hint="Flatten it with .reshape(-1)",
            operation="bincount",
        )
    length = as_integer(minlength, "minlength", "bincount", least=0)
    weights = _checked_weights(weights, x, "bincount")
    if weights is not None:
        weights = as_float(weights, "bincount")
    if x.dtype.is_bool:
        x = x.astype(x.device.settings.int_dtype)
    if x.size:
        least, largest = int(min(x).item()), int(max(x).item())
        if least < 0:
            raise ArgumentError(
                f"an element is {least}", hint="Use 0 or more", operation="bincount"
            )
        length = builtins.max(length, largest + 1)
    return _added(x, _units(x, weights), length)


def bucketize(x: Tensor | float, boundaries: Edges, /, *, right: bool = False) -> Tensor:
    """Index of the bucket of each element, between ascending boundaries.

    It is ``searchsorted(boundaries, x)`` with the operands in the order of PyTorch. NumPy's
    ``digitize`` gives the same with the opposite `right`.

    Parameters
    ----------
    x : Tensor or number
        The elements.
    boundaries : Tensor, shape (N,), or sequence of numbers
        The boundaries, in ascending order.
    right : bool
        Whether an element that equals a boundary is in the bucket after it: the index i has
        ``boundaries[i - 1] <= x < boundaries[i]``. Otherwise it is in the one before it:
        ``boundaries[i - 1] < x <= boundaries[i]``.

    Returns
    -------
    Tensor
        Indices from 0 to N in the shape of `x`, in the device's default integer dtype. NaN is in
        the last bucket.

    Raises
    ------
    ShapeError
        If the boundaries are no vector.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([0.5, 1.0, 2.5], device="cpu")
    >>> burn.bucketize(x, [1.0, 2.0]).tolist(), burn.bucketize(x, [1.0, 2.0], right=True).tolist()
    ([0, 0, 2], [0, 1, 2])
    """
    is_right = as_flag(right, "right", "bucketize")
    if not isinstance(boundaries, DispatchTensor):
        check_tensor(x, "x", "bucketize")  # which has the device
    boundaries = _edge_tensor(boundaries, x, "boundaries", "bucketize")
    if boundaries.ndim != 1:
        raise ShapeError(
            f"boundaries must have one axis, not shape {boundaries.shape}", operation="bucketize"
        )
    return searchsorted(boundaries, x, side="right" if is_right else "left")


def _checked_weights(weights: Tensor | None, x: Tensor, operation: str) -> Tensor | None:
    if weights is None:
        return None
    check_tensor(weights, "weights", operation)
    if weights.shape != x.shape:
        raise ShapeError(
            f"weights of shape {weights.shape} for elements of shape {x.shape}",
            hint="There is a weight for each element",
            operation=operation,
        )
    if weights.dtype.is_complex:
        raise DTypeError(f"weights must be real, not {weights.dtype}", operation=operation)
    weights = numbers_of(weights)
    if weights.dtype.is_bool:
        weights = weights.astype(weights.device.settings.int_dtype)
    return weights


def _checked_range(range: Any, operation: str) -> tuple[float, float]:
    if not isinstance(range, (tuple, list)) or len(range) != 2:
        raise OperandTypeError(
            f"range must be a pair of numbers, not {shown_value(range)}", operation=operation
        )
    low, high = [
        real_number(one, "an edge of range", operation, above=-math.inf, below=math.inf)
        for one in range
    ]
    if low > high:
        raise ArgumentError(
            f"range is {shown_value(range)}", hint="The lower edge comes first", operation=operation
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _bin_count(bins: Any, operation: str) -> int:
    count = as_integer(bins, "bins", operation, least=1)
    if count >= _MOST_BINS:
        raise ArgumentError(
            f"bins is {shown_value(count)}",
            hint=f"Use fewer than {_MOST_BINS}",
            operation=operation,
        )
    return count


def _edges_of_elements(flat: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Edges of bins of equal width from minimum to maximum, and an index that checks these."""
    low, high = min(flat, keepdims=True), max(flat, keepdims=True)
    fault = require(logical_and(isfinite(low), isfinite(high)), InvalidValue.RANGE)
    wide = accumulation_dtype(flat)
    is_one = low == high
    low = where(is_one, low - 0.5, low).astype(wide)
    high = where(is_one, high + 0.5, high).astype(wide)
    steps = arange(count, dtype=wide, device=flat.device) * ((high - low) / count)
    return concat([steps + low, high]).astype(flat.dtype), fault


def _given_edges(bins: Any, x: Tensor, operation: str) -> tuple[Tensor, Tensor]:
    edges = _edge_tensor(bins, x, "bins", operation)
    if edges.ndim != 1 or not edges.size:
        raise ShapeError(
            f"edges of bins of shape {edges.shape}",
            hint="A vector has the lower edge of each bin, and the upper one of the last",
            operation=operation,
        )
    return edges, require(edges[1:] >= edges[:-1], InvalidValue.EDGES)


def _edge_tensor(edges: Any, x: Any, name: str, operation: str) -> Tensor:
    """Edges as a tensor on the device of `x`; those in a sequence in the dtype that both have."""
    if isinstance(edges, DispatchTensor):
        if edges.dtype.is_complex:
            raise DTypeError("complex numbers have no order", operation=operation)
        return numbers_of(edges)  # type: ignore[arg-type]  # a Tensor
    try:
        array = np.asarray(edges, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise OperandTypeError(
            f"{name} must be numbers in a sequence or a tensor", operation=operation
        ) from None
    if array.ndim != 1:
        raise ShapeError(f"{name} must have one axis, not shape {array.shape}", operation=operation)
    descents = np.flatnonzero(~(array[1:] >= array[:-1]))
    if descents.size:
        raise ArgumentError(
            f"{name} do not ascend after index {descents[0]}",
            hint="Sort them in ascending order",
            operation=operation,
        )
    settings = x.device.settings
    if x.dtype.is_float:
        return asarray(array, dtype=x.dtype, device=x.device)
    whole = np.asarray(edges)
    if whole.dtype.kind in "iub" and array.size:
        return asarray(whole, dtype=settings.int_dtype, device=x.device)
    return asarray(array, dtype=settings.float_dtype, device=x.device)


def _counts(flat: Tensor, edges: Tensor, weights: Tensor | None, fault: Any) -> Tensor:
    """Sums of weights in the bins; the elements in no bin are added up behind them, and cut."""
    count = edges.size - 1
    index = searchsorted(edges, flat, side="right") - 1
    index = where(flat == edges[-1], count - 1, index)
    index = where(logical_and(index >= 0, index < count), index, count) + fault
    return _added(index, _units(flat, weights), count + 1)[:count].reshape((count,), copy=True)


def _units(x: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return ones(x.shape, dtype=x.device.settings.int_dtype, device=x.device)
    return weights.reshape((-1,))


def _added(indices: Tensor, weights: Tensor, length: int) -> Tensor:
    wide = accumulation_dtype(weights)
    nothing = zeros(length, dtype=wide, device=indices.device)
    total = calls.scatter_add(nothing, indices, weights.astype(wide), axis=0)
    return total.astype(weights.dtype)
