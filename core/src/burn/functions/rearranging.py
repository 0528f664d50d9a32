"""Elements moved, repeated, cut into parts and padded; more of the chapter "Manipulation"."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from burn.dispatch import DispatchTensor, to_scalar, unary
from burn.errors import ArgumentError, AxisError, DTypeError, OperandTypeError, ShapeError
from burn.functions.common import Axis, dispatch
from burn.functions.creation import asarray
from burn.functions.manipulation import concat, flatten
from burn.functions.normalize import as_shape, normalize_axes, normalize_axis, rank_of
from burn.functions.views import independent, view_by_steps, viewing
from burn.ops.arguments import as_integer

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

_reshape = unary(dispatch, "reshape")
_permute = unary(dispatch, "permute")
_expand = unary(dispatch, "expand")
_slice = unary(dispatch, "slice")
_pad = unary(dispatch, "pad")
_unfold = unary(dispatch, "unfold")
_view_slice = viewing("slice")


def swapaxes(x: Tensor, axis1: int, axis2: int, /) -> Tensor:
    """Two axes exchanged."""
    first = normalize_axis(x, axis1, "swapaxes")
    second = normalize_axis(x, axis2, "swapaxes")
    order = list(range(len(x.shape)))
    order[first], order[second] = second, first
    return _permute(x, axes=tuple(order))


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Tensor:
    """Elements moved along axes; those that leave at one end enter at the other.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    shift : int or tuple of int
        By how many places, for each axis of a tuple or for all alike.
    axis : int, tuple of int or None
        Axes to move along; None moves through all elements in row-major order.

    Examples
    --------
    >>> import burn
    >>> burn.roll(burn.arange(5, device="cpu"), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    shifts = as_shape(shift)
    if axis is None:
        flat = flatten(x)
        return _reshape(_rolled(flat, sum(shifts), 0), shape=x.shape)
    axes = normalize_axes(x, axis, "roll", repeats=True)
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ArgumentError(f"{len(shifts)} shifts for {len(axes)} axes", operation="roll")
    for number, places in zip(axes, shifts, strict=True):
        x = _rolled(x, places, number)
    return independent(x)


def _rolled(x: Tensor, shift: int, axis: int) -> Tensor:
    length = x.shape[axis]
    start = -shift % length if length else 0
    if not start:
        return dispatch.wrap(x.primitive, x.tensor_type)
    return concat([_part(x, axis, start, length - start), _part(x, axis, 0, start)], axis=axis)


def _part(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    return _slice(x, slices=_slices(x.shape, axis, start, length))


def _slices(shape: Shape, axis: int, start: int, length: int) -> Slices:
    """All elements, but for some neighbours along an axis."""
    return tuple(
        [
            (start, length, 1) if number == axis else (0, extent, 1)
            for number, extent in enumerate(shape)
        ]
    )


def _view_of_part(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    return _view_slice(x, {"slices": _slices(x.shape, axis, start, length)})


def repeat(
    x: Tensor, repeats: int | Sequence[int] | Tensor, /, *, axis: int | None = None
) -> Tensor:
    """Each element several times, one after the other.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    repeats : int, or integers of shape (N,)
        How often: all elements alike, or each place along the axis. A tensor of counts is read,
        since the shape of the result depends on it.
    axis : int, optional
        The axis; without one, all elements in row-major order.

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
    if isinstance(repeats, (int, np.integer)):
        repeats = as_integer(repeats, "repeats", "repeat", least=0)
        column = _reshape(x, shape=(*x.shape[: number + 1], 1, *x.shape[number + 1 :]))
        wide = (*x.shape[: number + 1], repeats, *x.shape[number + 1 :])
        shape = (*x.shape[:number], length * repeats, *x.shape[number + 1 :])
        return _reshape(_expand(column, shape=wide), shape=shape)
    counts: Tensor = asarray(repeats, device=None if _is_tensor(repeats) else x.device)
    if counts.size == 1:
        counts = _expand(_reshape(counts, shape=(1,)), shape=(length,))
    if counts.shape != (length,):
        raise ShapeError(
            f"counts of shape {counts.shape} for an axis of length {length}", operation="repeat"
        )
    dtype = x.device.settings.int_dtype
    places = dispatch.execute("repeated_places", counts, dtype=dtype)
    return dispatch.execute("select", x, places, axis=number)  # type: ignore[no-any-return]  # one output


def _is_tensor(value: Any) -> bool:
    return isinstance(value, DispatchTensor)


def tile(x: Tensor, repetitions: int | tuple[int, ...], /) -> Tensor:
    """The whole tensor several times along each axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    repetitions : tuple of int
        How often along each axis, counted from the last; axes that `x` lacks are new ones.
    """
    counts = as_shape(repetitions)
    rank = rank_of(x, "tile")
    if min(counts, default=0) < 0:
        raise ArgumentError(f"a count is negative in {counts}", operation="tile")
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (len(counts) - rank) + x.shape
    pairs = list(zip(counts, shape, strict=True))
    column = tuple([part for _, length in pairs for part in (1, length)])
    wide = tuple([part for pair in pairs for part in pair])
    whole = tuple([count * length for count, length in pairs])
    return _reshape(_expand(_reshape(x, shape=column), shape=wide), shape=whole)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of the parts of a tensor along an axis, which they lack."""
    number = normalize_axis(x, axis, "unstack")
    shape = (*x.shape[:number], *x.shape[number + 1 :])
    reshape = ("reshape", {"shape": shape})
    return tuple(
        [
            view_by_steps(x, [("slice", {"slices": _slices(x.shape, number, index, 1)}), reshape])
            for index in range(x.shape[number])
        ]
    )


def narrow(x: Tensor, start: int, length: int, /, *, axis: int) -> Tensor:
    """A view of `length` neighbours along an axis, from `start` on."""
    number = normalize_axis(x, axis, "narrow")
    start = as_integer(start, "start", "narrow")
    length = as_integer(length, "length", "narrow")
    if length < 0 or not 0 <= start <= x.shape[number] - length:
        raise AxisError(
            f"places {start} to {start + length - 1} of axis {number} of {x.shape}",
            operation="narrow",
        )
    return _view_of_part(x, number, start, length)


def split(
    x: Tensor, indices_or_sections: int | Sequence[int], /, *, axis: int = 0
) -> tuple[Tensor, ...]:
    """Views of the parts into which a tensor is cut along an axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices_or_sections : int or sequence of int
        A number of equal parts; or the places before which to cut, as in slices.
    axis : int
        The axis.

    Raises
    ------
    ArgumentError
        If the parts would not be equal; see `chunk`, and `split_with_sizes`.
    """
    number = normalize_axis(x, axis, "split")
    length = x.shape[number]
    if not isinstance(indices_or_sections, (int, np.integer)):
        cuts = [0, *as_shape(indices_or_sections), length]
        pieces = [
            builtins.slice(start, stop).indices(length) for start, stop in itertools.pairwise(cuts)
        ]
        return tuple(
            [_view_of_part(x, number, start, max(stop - start, 0)) for start, stop, _ in pieces]
        )
    sections = as_integer(indices_or_sections, "indices_or_sections", "split", least=1)
    if length % sections:
        raise ArgumentError(
            f"an axis of length {length} has no {sections} equal parts",
            hint="chunk makes the last part shorter",
            operation="split",
        )
    return split_with_sizes(x, [length // sections] * sections, axis=number)


def chunk(x: Tensor, chunks: int, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts along an axis, of equal length but for the last."""
    number = normalize_axis(x, axis, "chunk")
    chunks = as_integer(chunks, "chunks", "chunk", least=1)
    length = x.shape[number]
    size = max(-(-length // chunks), 1)
    starts = range(0, max(length, 1), size)
    return tuple([_view_of_part(x, number, start, min(size, length - start)) for start in starts])


def split_with_sizes(x: Tensor, sizes: Sequence[int], /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Parts of these lengths along an axis, which together are its length."""
    number = normalize_axis(x, axis, "split_with_sizes")
    lengths = as_shape(sizes)
    if min(lengths, default=0) < 0 or sum(lengths) != x.shape[number]:
        raise ShapeError(
            f"lengths {lengths} do not add up to {x.shape[number]}", operation="split_with_sizes"
        )
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    return tuple(
        [_view_of_part(x, number, start, size) for start, size in zip(starts, lengths, strict=True)]
    )


def pad(
    x: Tensor, pad_width: PadWidth, /, mode: str = "constant", *, constant_values: Scalar = 0
) -> Tensor:
    """More elements before and after those of a tensor.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    pad_width : int, pair of int, or a pair for each axis
        How many before and after, for all axes alike or for each.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        What they are: `constant_values`; the nearest element (elsewhere called "replicate"); the
        tensor mirrored, without or with its edge; the tensor again ("circular").
    constant_values : number
        What is put there in the mode "constant".

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
    if not isinstance(constant_values, (bool, int, float, complex)):
        raise OperandTypeError(f"{constant_values!r} is no number", operation="pad")
    value = to_scalar(constant_values, x.dtype)
    if (x.dtype.is_integer or x.dtype.is_bool) and value != constant_values:
        raise DTypeError(
            f"a tensor of {x.dtype} does not hold {constant_values!r}",
            hint="Convert it with .astype()",
            operation="pad",
        )
    return _pad(x, padding=padding, mode=mode, value=value)


def _pairs(width: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """A pair of counts for each axis."""
    if isinstance(width, int):
        width = ((width, width),)
    try:
        if len(width) == 2 and all(hasattr(one, "__index__") for one in width):
            width = (width,)
        pairs = tuple(
            [
                (as_integer(before, "pad_width"), as_integer(after, "pad_width"))
                for before, after in width
            ]
        )
    except (TypeError, ValueError):
        raise ShapeError(
            f"{width!r} says not how much to pad",
            hint="A number, a pair, or a pair for each axis",
            operation="pad",
        ) from None
    return pairs * rank if len(pairs) == 1 else pairs


def unfold(x: Tensor, size: int, /, *, axis: int, step: int = 1) -> Tensor:
    """Windows of neighbours along an axis, each along a new last axis.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    size : int
        Length of a window.
    axis : int
        The axis; in the result it counts the windows.
    step : int
        Distance of the windows.

    Examples
    --------
    >>> import burn
    >>> burn.unfold(burn.arange(5, device="cpu"), 3, axis=0, step=2).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """
    number = normalize_axis(x, axis, "unfold")
    return _unfold(
        x,
        axis=number,
        size=as_integer(size, "size", "unfold"),
        step=as_integer(step, "step", "unfold"),
    )
