"""Elements moved, repeated, split and padded; more of the chapter "Manipulation"."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.errors import ArgumentError, AxisError, DTypeError, ShapeError
from burn.functions import calls
from burn.functions.common import Axis
from burn.functions.creation import arange, asarray
from burn.functions.manipulation import concat, flatten
from burn.functions.normalize import (
    as_integers,
    as_number,
    as_scalar,
    normalize_axes,
    normalize_axis,
    rank_of,
)
from burn.functions.quantization import is_quantized
from burn.functions.views import independent, viewing
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.aliases import Scalar, Shape, Slices
    from burn.tensor.tensor import Tensor

__all__ = [
    "chunk",
    "narrow",
    "pad",
    "repeat",
    "roll",
    "split",
    "split_with_sizes",
    "swapaxes",
    "tile",
    "unfold",
    "unstack",
]

PadWidth: TypeAlias = int | tuple[int, int] | Sequence[tuple[int, int]]

_view_slice = viewing("slice")
_view_index = viewing("index_axis")


def swapaxes(x: Tensor, axis1: int, axis2: int, /) -> Tensor:
    """The elements with two axes exchanged; no view.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axis1, axis2 : int
        The axes.

    Returns
    -------
    Tensor
        The elements of `x` in the new order.

    Examples
    --------
    >>> import burn
    >>> burn.swapaxes(burn.zeros((2, 3, 4), device="cpu"), 0, 2).shape
    (4, 3, 2)
    """
    first = normalize_axis(x, axis1, "swapaxes")
    second = normalize_axis(x, axis2, "swapaxes")
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    return calls.permute(x, axes=tuple(order))


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Tensor:
    """Elements shifted along axes; those beyond one end re-enter at the other.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    shift : int or tuple of int
        Distance of the shift: one for each axis, or one for all.
    axis : int, tuple of int or None
        Axes to shift along; None shifts all elements in row-major order.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    ArgumentError
        If the numbers of shifts and axes differ.

    Examples
    --------
    >>> import burn
    >>> burn.roll(burn.arange(5, device="cpu"), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    shifts = as_integers(shift, "shift", "roll")
    if axis is None:
        rank_of(x, "roll")
        flat = flatten(x)
        return calls.reshape(_rolled(flat, sum(shifts), 0), shape=x.shape)
    axes = normalize_axes(x, axis, "roll", repeats=True)
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ArgumentError(f"{len(shifts)} shifts for {len(axes)} axes", operation="roll")
    for number, distance in zip(axes, shifts, strict=True):
        x = _rolled(x, distance, number)
    return independent(x)


def _rolled(x: Tensor, shift: int, axis: int) -> Tensor:
    length = x.shape[axis]
    start = -shift % length if length else 0
    if not start:
        return x
    return concat([_part(x, axis, start, length - start), _part(x, axis, 0, start)], axis=axis)


def _part(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    return calls.slice(x, slices=_slices(x.shape, axis, start, length))


def _slices(shape: Shape, axis: int, start: int, length: int) -> Slices:
    """The slices of an op that takes all elements of the other axes."""
    return tuple(
        [
            (start, length, 1) if number == axis else (0, extent, 1)
            for number, extent in enumerate(shape)
        ]
    )


def _view_of_part(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    return _view_slice(x, _slices(x.shape, axis, start, length))


def repeat(
    x: Tensor, repeats: int | Sequence[int] | Tensor, /, *, axis: int | None = None
) -> Tensor:
    """Each element repeated, next to itself.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    repeats : int, or integers of shape (N,)
        Number of repetitions: one for all elements, or one for each index along the axis. A tensor
        of counts is read, since the shape of the result depends on it.
    axis : int, optional
        The axis. By default all elements are repeated in row-major order.

    Returns
    -------
    Tensor
        The repeated elements.

    Raises
    ------
    ArgumentError
        If a number of repetitions is negative.
    ShapeError
        If there are not as many counts as indices.

    Examples
    --------
    >>> import burn
    >>> burn.repeat(burn.asarray([1, 2], device="cpu"), 2).tolist()
    [1, 1, 2, 2]
    """
    if axis is None:
        rank_of(x, "repeat")
        x, axis = flatten(x), 0
    number = normalize_axis(x, axis, "repeat")
    length = x.shape[number]
    if _is_integer(repeats):
        repeats = as_integer(repeats, "repeats", "repeat", least=0)
        if x.size * repeats >= 2**63:
            raise ShapeError(
                f"{shown_value(repeats)} repeats of {x.size} elements",
                hint="Make fewer than 2**63 elements",
                operation="repeat",
            )
        if is_quantized(x) and x.dtype.scheme.level.block:
            rows = repeat(arange(length, device=x.device), repeats)
            return calls.select(x, rows, axis=number)
        column = calls.reshape(x, shape=(*x.shape[: number + 1], 1, *x.shape[number + 1 :]))
        wide = (*x.shape[: number + 1], repeats, *x.shape[number + 1 :])
        shape = (*x.shape[:number], length * repeats, *x.shape[number + 1 :])
        return calls.reshape(calls.expand(column, shape=wide), shape=shape)
    counts = asarray(repeats, device=None if isinstance(repeats, DispatchTensor) else x.device)
    if counts.size == 1:
        counts = calls.expand(calls.reshape(counts, shape=(1,)), shape=(length,))
    if counts.shape != (length,):
        raise ShapeError(
            f"repeats of shape {counts.shape} for an axis of length {length}",
            hint="Give one number, or one for each index of the axis",
            operation="repeat",
        )
    dtype = x.device.settings.int_dtype
    indices = calls.repeat_indices(counts, dtype=dtype)
    return calls.select(x, indices, axis=number)


def _is_integer(value: Any) -> TypeGuard[int]:
    """Whether an argument is one integer, a 0-d NumPy array of integers included."""
    if isinstance(value, np.ndarray):
        return not value.ndim and value.dtype.kind in "iu"
    return isinstance(value, (int, np.integer))


def tile(x: Tensor, repetitions: int | tuple[int, ...], /) -> Tensor:
    """The whole tensor repeated along each axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    repetitions : tuple of int
        Number of repetitions along each axis, counted from the last; an axis that `x` lacks is new.

    Returns
    -------
    Tensor
        The repeated tensor.

    Raises
    ------
    ArgumentError
        If a number of repetitions is negative.

    Examples
    --------
    >>> import burn
    >>> burn.tile(burn.asarray([1, 2], device="cpu"), 2).tolist()
    [1, 2, 1, 2]
    """
    rank = rank_of(x, "tile")
    counts = as_integers(repetitions, "repetitions", "tile")
    if min(counts, default=0) < 0:
        raise ArgumentError(
            f"repetitions are {shown_value(counts)}", hint="None is negative", operation="tile"
        )
    if x.size * math.prod(counts) >= 2**63:
        raise ShapeError(
            f"{shown_value(counts)} repetitions of {x.size} elements",
            hint="Make fewer than 2**63 elements",
            operation="tile",
        )
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (len(counts) - rank) + x.shape
    pairs = list(zip(counts, shape, strict=True))
    column = tuple([part for _, length in pairs for part in (1, length)])
    wide = tuple([part for pair in pairs for part in pair])
    whole = tuple([count * length for count, length in pairs])
    return calls.reshape(calls.expand(calls.reshape(x, shape=column), shape=wide), shape=whole)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of the elements at each index of an axis, without that axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axis : int
        The axis.

    Returns
    -------
    tuple of Tensor
        A view for each index.

    Examples
    --------
    >>> import burn
    >>> [one.tolist() for one in burn.unstack(burn.asarray([[1, 2], [3, 4]], device="cpu"))]
    [[1, 2], [3, 4]]
    """
    number = normalize_axis(x, axis, "unstack")
    return tuple([_view_index(x, number, index) for index in range(x.shape[number])])


def narrow(x: Tensor, start: int, length: int, /, *, axis: int) -> Tensor:
    """A view of consecutive elements along an axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    start : int
        Index of the first element.
    length : int
        Number of elements.
    axis : int
        The axis.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If an index is out of range.

    Examples
    --------
    >>> import burn
    >>> burn.narrow(burn.arange(5, device="cpu"), 1, 3, axis=0).tolist()
    [1, 2, 3]
    """
    number = normalize_axis(x, axis, "narrow")
    start = as_integer(start, "start", "narrow")
    length = as_integer(length, "length", "narrow")
    if length < 0 or not 0 <= start <= x.shape[number] - length:
        raise AxisError(
            f"start is {shown_value(start)} and length {shown_value(length)} along axis {number} "
            f"of {x.shape}",
            hint=f"Neither is negative, and their sum is at most {x.shape[number]}",
            operation="narrow",
        )
    return _view_of_part(x, number, start, length)


def split(
    x: Tensor, indices_or_sections: int | Sequence[int], /, *, axis: int = 0
) -> tuple[Tensor, ...]:
    """Views of the parts of a tensor along an axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices_or_sections : int or sequence of int
        Number of equal parts; or the indices at which the next part starts, as in slices.
    axis : int
        The axis.

    Returns
    -------
    tuple of Tensor
        The views.

    Raises
    ------
    ArgumentError
        If the parts would not be equal; see `chunk`, and `split_with_sizes`.

    Examples
    --------
    >>> import burn
    >>> x = burn.arange(6, device="cpu")
    >>> [part.tolist() for part in burn.split(x, [1, 3])]
    [[0], [1, 2], [3, 4, 5]]
    """
    number = normalize_axis(x, axis, "split")
    length = x.shape[number]
    if not _is_integer(indices_or_sections):
        bounds = [0, *as_integers(indices_or_sections, "indices_or_sections", "split"), length]
        parts = [
            builtins.slice(start, stop).indices(length)
            for start, stop in itertools.pairwise(bounds)
        ]
        return tuple(
            [_view_of_part(x, number, start, max(stop - start, 0)) for start, stop, _ in parts]
        )
    sections = as_integer(indices_or_sections, "indices_or_sections", "split", least=1)
    if length % sections:
        raise ArgumentError(
            f"an axis of length {length} has no {shown_value(sections)} equal parts",
            hint="chunk makes the last part shorter",
            operation="split",
        )
    size = length // sections
    return tuple([_view_of_part(x, number, index * size, size) for index in range(sections)])


def chunk(x: Tensor, chunks: int, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of equal length along an axis; the last one may be shorter.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    chunks : int
        Largest number of parts.
    axis : int
        The axis.

    Returns
    -------
    tuple of Tensor
        The views.

    Examples
    --------
    >>> import burn
    >>> [part.tolist() for part in burn.chunk(burn.arange(5, device="cpu"), 2)]
    [[0, 1, 2], [3, 4]]
    """
    number = normalize_axis(x, axis, "chunk")
    chunks = as_integer(chunks, "chunks", "chunk", least=1)
    length = x.shape[number]
    size = max(-(-length // chunks), 1)
    starts = range(0, max(length, 1), size)
    return tuple([_view_of_part(x, number, start, min(size, length - start)) for start in starts])


@documented_as(chunk)
def split_with_sizes(x: Tensor, sizes: Sequence[int], /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of given lengths along an axis.

    The other parameters are those of `chunk`.

    Parameters
    ----------
    sizes : sequence of int
        Lengths of the parts, which add up to that of the axis.

    Raises
    ------
    ShapeError
        If the lengths do not add up to that of the axis.

    Examples
    --------
    >>> import burn
    >>> x = burn.arange(4, device="cpu")
    >>> [part.tolist() for part in burn.split_with_sizes(x, [1, 3])]
    [[0], [1, 2, 3]]
    """
    number = normalize_axis(x, axis, "split_with_sizes")
    lengths = as_integers(sizes, "sizes", "split_with_sizes")
    if min(lengths, default=0) < 0 or sum(lengths) != x.shape[number]:
        raise ShapeError(
            f"lengths {shown_value(lengths)} do not add up to {x.shape[number]}",
            hint=f"Give lengths from 0 on whose sum is that of axis {number}",
            operation="split_with_sizes",
        )
    starts = itertools.accumulate(lengths, initial=0)
    return tuple([_view_of_part(x, number, *part) for part in zip(starts, lengths, strict=False)])


def pad(
    x: Tensor, pad_width: PadWidth, /, mode: str = "constant", *, constant_values: Scalar = 0
) -> Tensor:
    """A tensor with elements added at the ends of its axes.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    pad_width : int, pair of int, or a pair for each axis
        Numbers of elements to add before and after: for all axes, or for each.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The added elements: `constant_values`; the nearest element ("replicate" in PyTorch); the
        tensor mirrored, without or with its edge; the tensor repeated ("circular" in PyTorch).
    constant_values : number
        Value of the added elements in the mode "constant".

    Returns
    -------
    Tensor
        Of the dtype of `x`.

    Raises
    ------
    DTypeError
        If the dtype does not hold `constant_values`, such as 1.5 for integers.

    Examples
    --------
    >>> import burn
    >>> burn.pad(burn.arange(3, device="cpu"), (1, 2), "edge").tolist()
    [0, 0, 1, 2, 2, 2]
    """
    padding = _pairs(pad_width, rank_of(x, "pad"))
    number = as_number(constant_values, "constant_values", "pad")
    value = as_scalar(number, x.dtype, "pad")
    if (x.dtype.is_integer or x.dtype.is_bool) and value != number:
        raise DTypeError(
            f"a tensor of {x.dtype} does not hold {shown_value(number)}",
            hint="Convert it with .astype()",
            operation="pad",
        )
    return calls.pad(x, padding=padding, mode=mode, value=value)


def _pairs(width: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """A pair of numbers of elements for each axis."""
    if isinstance(width, int) or _is_integer(width):
        width = ((width, width),)
    try:
        if len(width) == 2 and all(hasattr(item, "__index__") for item in width):
            width = (width,)
        pairs = tuple(
            [
                (as_integer(before, "pad_width"), as_integer(after, "pad_width"))
                for before, after in width
            ]
        )
    except (TypeError, ValueError):
        raise ShapeError(
            f"{shown_value(width)} does not say how much to pad",
            hint="A number, a pair, or a pair for each axis",
            operation="pad",
        ) from None
    return pairs * rank if len(pairs) == 1 else pairs


def unfold(x: Tensor, size: int, /, *, axis: int, step: int = 1) -> Tensor:
    """Windows of consecutive elements along an axis, each along a new last axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    size : int
        Length of a window.
    axis : int
        The axis; in the result it is that of the windows.
    step : int
        Distance of the first elements of consecutive windows.

    Returns
    -------
    Tensor
        The windows; no view.

    Raises
    ------
    ShapeError
        If a window is longer than the axis.

    Examples
    --------
    >>> import burn
    >>> burn.unfold(burn.arange(5, device="cpu"), 3, axis=0, step=2).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """
    number = normalize_axis(x, axis, "unfold")
    longest = 2**63 - 1  # what int64 holds
    return calls.unfold(
        x,
        axis=number,
        size=as_integer(size, "size", "unfold"),
        step=as_integer(step, "step", "unfold", most=longest),
    )
