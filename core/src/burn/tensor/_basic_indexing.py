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
from burn.functions.views import Step, assign_slice, independent, is_view_of, view_by_steps, write
from burn.tensor import _advanced_indexing as advanced_indexing
from burn.tensor._assigned_value import broadcast_value, value_tensor
from burn.tensor._index_normalization import normalize_index, normalize_slice

if TYPE_CHECKING:
    from burn.aliases import Shape, Slices
    from burn.tensor.tensor import Tensor

__all__ = ["getitem", "setitem"]

_BASIC: Final = frozenset([int, builtins.slice, NoneType, EllipsisType])
_ADVANCED: Final = (DispatchTensor, list, tuple, np.ndarray, bool, np.bool_)


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
    parts = key if key.__class__ is tuple else (key,)
    if not _BASIC.issuperset(map(type, parts)) and any(
        isinstance(part, _ADVANCED) for part in parts
    ):
        return advanced_indexing.getitem(x, parts)
    steps = _view_steps(x, *_normalize_key(x.shape, key))
    if not steps and x.is_require_grad:
        return independent(x)  # a leaf refuses writes, so all of it is useful as a copy alone
    return view_by_steps(x, steps)


def setitem(x: Tensor, key: Any, value: Any, /) -> None:
    """``x[key] = value``."""
    parts = key if key.__class__ is tuple else (key,)
    if not _BASIC.issuperset(map(type, parts)) and any(
        isinstance(part, _ADVANCED) for part in parts
    ):
        write(x, lambda: advanced_indexing.setitem(x, parts, value), "indexing")
        return
    slices, shape = _normalize_key(x.shape, key)
    if is_view_of(value, x, _view_steps(x, slices, shape)):
        return  # ``x[key] += value`` has written to the view already
    value = as_python(value)
    if not isinstance(value, (bool, int, float, complex)):
        value = value_tensor(x, value)
        target = tuple(length for _, length, _ in slices)
        if value.shape != target:
            # The value lacks the axes that integers index, and has the new ones.
            value = broadcast_value(value, shape).reshape(target)
    assign_slice(x, value, slices)


def _view_steps(x: Tensor, slices: Slices, shape: Shape) -> list[Step]:
    """The view ops that make ``x[key]`` from `x`, given the key as `_normalize_key` returns it."""
    steps: list[Step] = []
    counts = tuple([count for _, count, _ in slices])
    if counts != x.shape or any(start or step != 1 for start, _, step in slices):
        steps.append(("slice", {"slices": slices}))
    if counts != shape:
        steps.append(("reshape", {"shape": shape}))
    return steps


def _normalize_key(shape: Shape, key: Any) -> tuple[Slices, Shape]:
    """A basic key as a slice (start, length, step) for each axis, and the shape of ``x[key]``."""
    parts = key if isinstance(key, tuple) else (key,)
    ellipses = sum([part is Ellipsis for part in parts])
    used = len(parts) - ellipses - sum([part is None for part in parts])
    if used > len(shape):
        raise AxisError(f"{used} indices for a tensor with {len(shape)} axes", operation="indexing")
    if ellipses > 1:
        raise OperandTypeError("an index has one ... at most", operation="indexing")
    if not ellipses:
        parts = (*parts, Ellipsis)
    slices: list[tuple[int, int, int]] = []
    result: list[int] = []
    for part in parts:
        axis = len(slices)
        if part is None:
            result.append(1)
        elif part is Ellipsis:
            rest = shape[axis : axis + len(shape) - used]
            slices += [(0, length, 1) for length in rest]
            result += rest
        elif isinstance(part, builtins.slice):
            start, stop, step = normalize_slice(part, shape[axis])
            length = len(range(start, stop, step))
            slices.append((start, length, step))
            result.append(length)
        else:
            slices.append((normalize_index(part, shape[axis], axis), 1, 1))
    return tuple(slices), tuple(result)
