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
from burn.functions.rearranging import unstack
from burn.functions.searching import searchsorted, where
from burn.functions.statistical import max, min, sum
from burn.ops.arguments import as_integer, real_number
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["bincount", "bucketize", "histogram", "histogramdd"]

_MOST_BINS: Final = 2**31
"""Indices of bins fit into int32."""

Edges: TypeAlias = "Tensor | Sequence[float]"


class Histogram(NamedTuple):
    """Counts of elements in bins, and the edges of the bins."""

    counts: Any
    edges: Any


class HistogramDD(NamedTuple):
    """Counts of points in boxes, and the edges of the boxes along each coordinate."""

    counts: Any
    edges: tuple[Any, ...]


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
    is_number = _is_number(bins)
    x = numbers_of(x if not is_number and x.dtype.is_integer else as_float(x, operation))
    flat = x.reshape((-1,))
    edges, fault = _edges(flat, bins, limits, operation)
    counts = _counts(flat, edges, weights, fault)
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / sum(counts)
    return Histogram(counts, edges)


def histogramdd(
    x: Tensor,
    /,
    bins: int | Sequence[int | Edges] = 10,
    *,
    range: Sequence[tuple[float, float] | None] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> HistogramDD:
    """Number of points in each of several boxes, which are the products of bins of coordinates.

    The bins of each coordinate are those of `histogram`.

    Parameters
    ----------
    x : Tensor, shape (N, D)
        Real coordinates of N points.
    bins : int or sequence
        The number of bins of equal width; or for each of the D coordinates that number, or the
        edges of its bins in ascending order.
    range : sequence of D pairs of numbers, optional
        Lower and upper edge of all bins of each coordinate; None stands for its minimum and
        maximum, as everywhere by default.
    weights : Tensor, shape (N,), optional
        What each point adds to the count of its box, instead of 1.
    density : bool
        Whether the result is the density of probability: its integral over the boxes is 1.

    Returns
    -------
    counts : Tensor, shape (bins of the first coordinate, ..., bins of the last)
        In the default integer dtype; in the dtype of `weights` (booleans count as 0 and 1); floats
        if `density`. The weights have gradients.
    edges : tuple of Tensor
        The edges of each coordinate.

    Raises
    ------
    ArgumentError
        If there is no bin, the range is not finite or descends, or edges in a sequence descend.
    OutOfRangeError
        If the range of the elements is not finite, or the edges in a tensor descend; on an
        asynchronous device at the next read.
    ShapeError
        If `x` is no matrix with a column or more, `bins` or `range` have another length than D, or
        `weights` another length than N.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[0.5, 0.5], [1.5, 0.5], [1.5, 0.25]], device="cpu")
    >>> counts, edges = burn.histogramdd(x, 2, range=[(0.0, 2.0), (0.0, 1.0)])
    >>> counts.tolist()
    [[0, 1], [1, 1]]
    """
    operation = "histogramdd"
    check_tensor(x, "x", operation)
    if x.dtype.is_complex:
        raise DTypeError("complex numbers have no order", operation=operation)
    if x.ndim != 2 or not x.shape[1]:
        raise ShapeError(
            f"points of shape {x.shape}", hint="They are rows of a matrix", operation=operation
        )
    density = as_flag(density, "density", operation)
    x = numbers_of(as_float(x, operation))
    columns = unstack(x, axis=1)
    each: Any = [bins] * len(columns) if _is_number(bins) else bins
    limits: Any = [None] * len(columns) if range is None else range
    for name, items in (("bins", each), ("range", limits)):
        if not isinstance(items, (list, tuple)) or len(items) != len(columns):
            raise ShapeError(
                f"{name} is {shown_value(items)} for points of {len(columns)} coordinates",
                hint="Give a sequence with an item for each coordinate",
                operation=operation,
            )
    weights = _checked_weights(weights, columns[0], operation)
    flat: Any = 0
    inside: Any = True
    found = []
    for column, wanted, pair in zip(columns, each, limits, strict=True):
        checked = None if pair is None else _checked_range(pair, operation)
        edges, fault = _edges(column, wanted, checked, operation)
        count = builtins.max(edges.size - 1, 0)
        index = _bin_indices(column, edges)
        flat = flat * count + index + fault
        inside = logical_and(index < count, inside)
        found.append(edges)
    lengths = tuple(builtins.max(edges.size - 1, 0) for edges in found)
    total = math.prod(lengths)
    if total >= _MOST_BINS:
        raise ArgumentError(
            f"boxes of shape {lengths}", hint=f"Use fewer than {_MOST_BINS}", operation=operation
        )
    sums = _added(where(inside, flat, total), _units(columns[0], weights), total + 1)
    counts = sums[:total].reshape(lengths, copy=True)
    if density:
        for axis, edges in enumerate(found):
            widths = (edges[1:] - edges[:-1]).reshape((-1,) + (1,) * (len(found) - 1 - axis))
            counts = counts / widths
        counts = counts / sum(sums[:total])
    return HistogramDD(counts, tuple(found))


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
    x = numbers_of(x) if isinstance(x, DispatchTensor) else x
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
        real_number(item, "an edge of range", operation, above=-math.inf, below=math.inf)
        for item in range
    ]
    if low > high:
        raise ArgumentError(
            f"range is {shown_value(range)}", hint="The lower edge comes first", operation=operation
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _is_number(bins: Any) -> bool:
    return not isinstance(bins, (DispatchTensor, list, tuple)) and not np.ndim(bins)


def _edges(
    flat: Tensor, bins: Any, limits: tuple[float, float] | None, operation: str
) -> tuple[Tensor, Any]:
    """The edges of bins of a vector, and an index that checks these."""
    if not _is_number(bins):
        return _given_edges(bins, flat, operation)
    count = _bin_count(bins, operation)
    if limits is None and flat.size:
        return _edges_of_elements(flat, count)
    low, high = limits or (0.0, 1.0)
    edges = np.linspace(low, high, count + 1)
    return asarray(edges, dtype=flat.dtype, device=flat.device), 0


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
    index = _bin_indices(flat, edges) + fault
    return _added(index, _units(flat, weights), count + 1)[:count].reshape((count,), copy=True)


def _bin_indices(flat: Tensor, edges: Tensor) -> Tensor:
    """The bin of each element; their number for those in none."""
    count = edges.size - 1
    index = searchsorted(edges, flat, side="right") - 1
    index = where(flat == edges[-1], count - 1, index)
    return where(logical_and(index >= 0, index < count), index, count)


def _units(x: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return ones(x.shape, dtype=x.device.settings.int_dtype, device=x.device)
    return weights.reshape((-1,))


def _added(indices: Tensor, weights: Tensor, length: int) -> Tensor:
    wide = accumulation_dtype(weights)
    nothing = zeros(length, dtype=wide, device=indices.device)
    total = calls.scatter_add(nothing, indices, weights.astype(wide), axis=0)
    return total.astype(weights.dtype)
