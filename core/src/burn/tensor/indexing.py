"""Indexing a tensor: integers, slices and new axes; other keys are passed on."""

from __future__ import annotations

import builtins
from types import EllipsisType, NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dispatch import DispatchTensor, unary
from burn.errors import AxisError, OperandTypeError
from burn.tensor import advanced_indexing
from burn.tensor.dispatcher import dispatch
from burn.tensor.index_parts import bounds, integer

if TYPE_CHECKING:
    from burn.aliases import Shape, Slices
    from burn.tensor.tensor import Tensor

_slice = unary(dispatch, "slice")
_reshape = unary(dispatch, "reshape")

_BASIC: Final = frozenset([int, builtins.slice, NoneType, EllipsisType])
_ADVANCED: Final = (DispatchTensor, list, tuple, np.ndarray, bool, np.bool_)


def getitem(x: Tensor, key: Any) -> Tensor:
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
    whole = x.shape
    slices, shape = read_key(whole, key)
    counts = tuple([count for _, count, _ in slices])
    if counts != whole or any(start or step != 1 for start, _, step in slices):
        x = _slice(x, slices=slices)
    elif counts == shape:
        # All of it: another tensor, which an assignment to this one leaves alone.
        return dispatch.wrap(x.primitive, x.tensor_type)
    return x if counts == shape else _reshape(x, shape=shape)


def setitem(x: Tensor, key: Any, value: Any) -> Tensor:
    """What ``x`` is after ``x[key] = value``."""
    parts = key if key.__class__ is tuple else (key,)
    if not _BASIC.issuperset(map(type, parts)) and any(
        isinstance(part, _ADVANCED) for part in parts
    ):
        return advanced_indexing.setitem(x, parts, value)
    slices, shape = read_key(x.shape, key)
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        value = advanced_indexing.as_value(x, value)
        target = tuple(length for _, length, _ in slices)
        if value.shape != target:
            # Axes that integers index are gone from the value, and new axes are in it.
            value = advanced_indexing.broadcast_value(value, shape).reshape(target)
    return dispatch.execute("slice_assign", x, value, slices=slices)  # type: ignore[no-any-return]  # one output


def read_key(shape: Shape, key: Any) -> tuple[Slices, Shape]:
    """A basic index as slices of an op, and the shape that the result has."""
    parts = key if isinstance(key, tuple) else (key,)
    dots = sum([part is Ellipsis for part in parts])
    used = len(parts) - dots - sum([part is None for part in parts])
    if used > len(shape):
        raise AxisError(f"{used} indices for a tensor with {len(shape)} axes", operation="indexing")
    if dots > 1:
        raise OperandTypeError("an index has one ... at most", operation="indexing")
    if not dots:
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
            start, stop, step = bounds(part, shape[axis])
            length = len(range(start, stop, step))
            slices.append((start, length, step))
            result.append(length)
        else:
            slices.append((integer(part, shape[axis], axis), 1, 1))
    return tuple(slices), tuple(result)
