"""``x[key]`` and ``x[key] = value``: integers, slices, ... and new axes.

Keys with arrays or masks go to `burn.tensor._advanced_indexing`.
"""

from __future__ import annotations

import builtins
from types import EllipsisType, NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dispatch import DispatchTensor, as_python
from burn.errors import AxisError, OperandTypeError
from burn.functions.quantization import dequantize, quantize_dynamic
from burn.functions.views import (
    Step,
    assign_slice,
    independent,
    is_view_of,
    viewing,
    write,
)
from burn.ops.quantized_primitive import is_quantized
from burn.tensor import _advanced_indexing as advanced_indexing
from burn.tensor._assigned_value import broadcast_value, value_tensor
from burn.tensor._index_normalization import normalize_index, normalize_slice

if TYPE_CHECKING:
    from burn.aliases import Shape, Slices
    from burn.tensor.tensor import Tensor

__all__ = ["getitem", "setitem"]

_BASIC: Final = frozenset([int, builtins.slice, NoneType, EllipsisType])
_ADVANCED: Final = (DispatchTensor, list, tuple, np.ndarray, bool, np.bool_)

_view_index = viewing("index_axis")
_view_slice = viewing("slice")


def getitem(x: Tensor, key: Any, /) -> Tensor:
    """``x[key]``, by the rules of NumPy.

    The key is made of integers, slices, ``...``, None (a new axis), arrays of integers (tensors,
    NumPy arrays or lists) and masks.

    Raises
    ------
    AxisError
        If there are more indices than axes, or an integer is out of range.
    OperandTypeError
        If the key has anything else in it.
    OutOfRangeError
        If an integer in a tensor is out of range.
    """
    shape = x.primitive.shape
    if shape:  # one index or slice, as in loops and for batches
        extent = shape[0]
        if key.__class__ is int and -extent <= key < extent:
            return _view_index(x, 0, key + extent if key < 0 else key)
        if key.__class__ is builtins.slice:
            first = normalize_slice(key, extent)
            if first != (0, extent, 1):
                return _view_slice(x, _with_whole_axes(first, shape))
    if key.__class__ is tuple:
        found = _only_index(shape, key)
        if found is not None:
            return _view_index(x, *found)
    parts = key if key.__class__ is tuple else (key,)
    if not _BASIC.issuperset(map(type, parts)) and any(
        isinstance(part, _ADVANCED) for part in parts
    ):
        return advanced_indexing.getitem(x, parts)
    _, _, steps = _normalize_key(shape, parts)
    if steps[0] == ("reshape", (shape,)) and x.is_require_grad:
        return independent(x)  # a leaf refuses writes, so all of it is useful as a copy alone
    for name, values in steps:
        x = viewing(name)(x, *values)
    return x


def setitem(x: Tensor, key: Any, value: Any, /) -> None:
    """``x[key] = value``; of a quantized tensor all numbers are quantized again."""
    if is_quantized(x.primitive):
        write(x, lambda: _requantized(x, key, value), "indexing")
        return
    parts = key if key.__class__ is tuple else (key,)
    if not _BASIC.issuperset(map(type, parts)) and any(
        isinstance(part, _ADVANCED) for part in parts
    ):
        write(x, lambda: advanced_indexing.setitem(x, parts, value), "indexing")
        return
    slices, shape, steps = _normalize_key(x.shape, parts)
    if is_view_of(value, x, steps):
        return  # ``x[key] += value`` has written to the view already
    value = as_python(value)
    if not isinstance(value, (bool, int, float, complex)):
        value = value_tensor(x, value)
        target = tuple(length for _, length, _ in slices)
        if value.shape != target:
            # The value lacks the axes that integers index, and has the new ones.
            value = broadcast_value(value, shape).reshape(target)
    assign_slice(x, value, slices)


def _requantized(x: Tensor, key: Any, value: Any) -> Tensor:
    """The value of a quantized tensor after an assignment."""
    numbers = dequantize(x)
    setitem(numbers, key, value)
    return quantize_dynamic(numbers, x.dtype.scheme)


def _with_whole_axes(first: tuple[int, int, int], shape: Shape) -> Slices:
    """Slices that take all of the axes after the first."""
    slices = [first]
    for length in shape[1:]:
        slices.append((0, length, 1))  # noqa: PERF401 — faster for so few
    return tuple(slices)


def _only_index(shape: Shape, key: tuple[Any, ...]) -> tuple[int, int] | None:
    """Axis and index of a key such as ``[:, i]`` and ``[..., i]``; None for all other keys."""
    found: tuple[int, int] | None = None
    has_ellipsis = False
    axis = 0
    for part in key:
        if part.__class__ is int and found is None:
            found = axis, part
        elif part is Ellipsis and not has_ellipsis:
            has_ellipsis = True
            axis += len(shape) - len(key)
        elif part.__class__ is not builtins.slice or not (
            part.start is part.stop is part.step is None
        ):
            return None
        axis += 1
    if found is None or len(key) - has_ellipsis > len(shape):
        return None
    axis, index = found
    extent = shape[axis]
    if not -extent <= index < extent:
        return None
    return axis, index + extent if index < 0 else index


def _normalize_key(shape: Shape, parts: tuple[Any, ...]) -> tuple[Slices, Shape, list[Step]]:
    """A basic key as a slice (start, length, step) for each axis, and what makes ``x[key]``.

    Returns
    -------
    tuple of tuple of int
        The slices. Those of integers have one element.
    tuple of int
        The shape of ``x[key]``.
    list of Step
        The view ops that make it of a tensor of `shape`, one or two.
    """
    rank = len(shape)
    if len(parts) > rank:
        _check_count(rank, parts)
    slices: list[tuple[int, int, int]] = []
    result: list[int] = []
    indexed: list[tuple[int, int]] = []
    is_sliced = has_new_axes = False
    for number, part in enumerate(parts, start=1):
        axis = len(slices)
        if part.__class__ is builtins.slice:
            extent = shape[axis]
            start, length, step = normalize_slice(part, extent)
            slices.append((start, length, step))
            result.append(length)
            is_sliced |= start != 0 or step != 1 or length != extent
        elif part is None:
            has_new_axes = True
            result.append(1)
        elif part is Ellipsis:
            following = [part for part in parts[number:] if part is not None]
            if EllipsisType in map(type, following):
                _check_count(rank, parts)
            lengths = shape[axis : rank - len(following)]
            slices += [(0, length, 1) for length in lengths]
            result += lengths
        else:
            index = normalize_index(part, shape[axis], axis)
            slices.append((index, 1, 1))
            indexed.append((axis, index))
    lengths = shape[len(slices) :]
    slices += [(0, length, 1) for length in lengths]
    result += lengths
    whole, target = tuple(slices), tuple(result)
    if len(indexed) == 1 and not is_sliced and not has_new_axes:
        return whole, target, [("index_axis", indexed[0])]
    steps: list[Step] = []
    if indexed or is_sliced:
        steps.append(("slice", (whole,)))
    if indexed or has_new_axes or not steps:
        steps.append(("reshape", (target,)))
    return whole, target, steps


def _check_count(rank: int, parts: tuple[Any, ...]) -> None:
    """Raise unless the parts of a key fit as many axes."""
    ellipses = sum([part is Ellipsis for part in parts])
    used = len(parts) - ellipses - sum([part is None for part in parts])
    if used > rank:
        raise AxisError(f"{used} indices for a tensor with {rank} axes", operation="indexing")
    if ellipses > 1:
        raise OperandTypeError("an index has one ... at most", operation="indexing")
