"""Indexing with arrays of integers and masks, mixed with all else, by the rules of NumPy.

The key is taken apart into a basic part, which slices and inserts axes, and indices for some of the
axes that remain. A mask stands for the places where it is true; the axes that it covers count as
one. What all indices broadcast to stands in the result where they stood, or first of all if
anything lies between them.
"""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dispatch import DispatchTensor, as_python, to_scalar, unary
from burn.dtype import int64
from burn.errors import AxisError, BurnError, OperandTypeError, ShapeError
from burn.functions.common import dispatch
from burn.functions.creation import asarray, full
from burn.functions.host_values import elements_of
from burn.functions.views import independent
from burn.ops.shapes import broadcast_shapes
from burn.tensor.subscript_parts import bounds, integer
from burn.tensor_data import check_unmasked

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

_slice = unary(dispatch, "slice")
_reshape = unary(dispatch, "reshape")
_permute = unary(dispatch, "permute")


class _Key:
    """A key, taken apart for a tensor.

    Attributes
    ----------
    slices : list
        For each axis of the tensor (start, length, step).
    shape : list of int
        Shape of the slice once integers are gone, new axes are in, and those of a mask are one.
    places : list of int
        The axes of this shape that are indexed.
    indices : list of Tensor
        For each of them its indices.
    mask : Tensor or None
        The mask, flattened, if it is all that indexes.
    """

    def __init__(self, x: Tensor, parts: tuple[Any, ...]) -> None:
        self.x = x
        self.slices: list[tuple[int, int, int]] = []
        self.shape: list[int] = []
        self.places: list[int] = []
        self.indices: list[Tensor] = []
        self.mask: Tensor | None = None
        self.first: int | None = None
        """The axis before which the first index stood."""
        self._ended = False
        self.is_split = False
        """Whether anything stood between indices."""
        parts = tuple([_read(part) for part in parts])
        used = sum(map(_axes_of, parts))
        rank = len(x.shape)
        if used > rank:
            raise AxisError(f"{used} indices for a tensor with {rank} axes", operation="indexing")
        dots = sum(part is Ellipsis for part in parts)
        if dots > 1:
            raise OperandTypeError("an index has one ... at most", operation="indexing")
        for part in parts if dots else (*parts, Ellipsis):
            self._add(part, rank - used)
        self.block = self._block()

    def _add(self, part: Any, rest: int) -> None:
        axis = len(self.slices)
        if part is None:
            self.shape.append(1)
        elif part is Ellipsis:
            for length in self.x.shape[axis : axis + rest]:
                self._add_slice((0, length, 1))
        elif isinstance(part, builtins.slice):
            start, stop, step = bounds(part, self.x.shape[axis])
            self._add_slice((start, len(range(start, stop, step)), step))
        elif isinstance(part, int) and not isinstance(part, bool):
            self._begin()
            self.slices.append((integer(part, self.x.shape[axis], axis), 1, 1))
            return
        else:
            self._begin()
            self._add_index(part, axis)
            return
        self._ended = self.first is not None

    def _add_slice(self, piece: tuple[int, int, int]) -> None:
        self.slices.append(piece)
        self.shape.append(piece[1])

    def _begin(self) -> None:
        if self.first is None:
            self.first = len(self.shape)
        self.is_split = self.is_split or self._ended

    def _add_index(self, part: Any, axis: int) -> None:
        count = _axes_of(part)
        lengths = self.x.shape[axis : axis + count]
        if _is_mask(part):
            pairs = zip(part.shape, lengths, strict=True)
            if not all(count in (length, 0) for count, length in pairs):
                raise AxisError(
                    f"a mask of shape {tuple(part.shape)} for axes of lengths {lengths}",
                    hint="A mask has the lengths of the axes that it covers (0 selects nothing)",
                    operation="indexing",
                )
            fits = tuple(part.shape) == lengths
            self.mask = _flat_mask(part, self.x) if fits and not self.places else None
            indices = _true_places(part, self.x)
        else:
            self.mask = None
            indices = _on_device(part, self.x, lengths[0], axis)
        self.places.append(len(self.shape))
        self.shape.append(math.prod(lengths))
        self.indices.append(indices)
        self.slices += [(0, length, 1) for length in lengths]

    def _block(self) -> Shape:
        """What all indices broadcast to."""
        try:
            return broadcast_shapes(*[one.shape for one in self.indices])
        except BurnError as error:
            error.operation = "indexing"
            raise

    @property
    def result(self) -> Shape:
        """Shape of what the key selects."""
        rest = [length for axis, length in enumerate(self.shape) if axis not in self.places]
        return (*rest[: self.start], *self.block, *rest[self.start :])

    @property
    def start(self) -> int:
        """The axis of the result at which the block of the indices starts."""
        if self.is_split or self.first is None:
            return 0
        return self.first - sum(place < self.first for place in self.places)

    @property
    def is_whole(self) -> bool:
        """Whether the basic part takes all elements in their order."""
        lengths = [(0, length, 1) for length in self.x.shape]
        return self.slices == lengths

    def basic(self) -> Tensor:
        """What the basic part selects, in `shape`."""
        part = self.x if self.is_whole else _slice(self.x, slices=tuple(self.slices))
        shape = tuple(self.shape)
        return part if part.shape == shape else _reshape(part, shape=shape)

    def order(self) -> tuple[int, ...]:
        """Indexed axes first."""
        rest = [axis for axis in range(len(self.shape)) if axis not in self.places]
        return (*self.places, *rest)

    def rows(self) -> Tensor:
        """The indices side by side along a new last axis, as `gather_nd` takes them."""
        columns = [one.broadcast_to(self.block).reshape((*self.block, 1)) for one in self.indices]
        last = len(self.block)
        return dispatch.execute("concat", columns, axis=last)  # type: ignore[no-any-return]  # one output


def getitem(x: Tensor, parts: tuple[Any, ...]) -> Tensor:
    """``x[parts]`` where at least one of them is an array, a mask or a list."""
    if len(parts) == 1 and _names_rows(parts[0], x):
        return dispatch.execute("select", x, parts[0], axis=0)  # type: ignore[no-any-return]  # one output
    key = _Key(x, parts)
    part = key.basic()
    if not key.places:  # its arrays have no axes: they are integers
        return independent(part)
    if len(key.places) == 1:
        (place,) = key.places
        indices = key.indices[0].reshape((math.prod(key.block),))
        chosen: Tensor = dispatch.execute("select", part, indices, axis=place)
        shape = (*part.shape[:place], *key.block, *part.shape[place + 1 :])
        chosen = chosen if chosen.shape == shape else _reshape(chosen, shape=shape)
        return _moved(chosen, place, key.start, len(key.block))
    part = _permute(part, axes=key.order())
    chosen = dispatch.execute("gather_nd", part, key.rows())
    return _moved(chosen, 0, key.start, len(key.block))


def _names_rows(part: Any, x: Tensor) -> bool:
    """Whether a part of a key is a vector of places on the device: what picks a batch."""
    return (
        isinstance(part, DispatchTensor)
        and part.tensor_type.dtype is int64
        and len(part.primitive.shape) == 1
        and len(x.primitive.shape) > 0
        and part.tensor_type.device.hardware is x.tensor_type.device.hardware
    )


def setitem(x: Tensor, parts: tuple[Any, ...], value: Any) -> Tensor:
    """What `x` is after ``x[parts] = value``; of several values for one place the last wins."""
    key = _Key(x, parts)
    value = as_value(x, value)
    part = key.basic()
    if key.mask is not None and value.ndim == 0:
        # Without knowing how many places are true, which a device would have to be asked for.
        (place,) = key.places
        column = [length if axis == place else 1 for axis, length in enumerate(part.shape)]
        result: Tensor = dispatch.execute("where", key.mask.reshape(tuple(column)), value, part)
    else:
        result = broadcast_value(value, key.result)
        if key.places:
            result = _assigned(key, part, result)
    if key.is_whole:
        return result.reshape(x.shape)
    sliced = result.reshape(tuple([length for _, length, _ in key.slices]))
    return dispatch.execute("slice_assign", x, sliced, slices=tuple(key.slices))  # type: ignore[no-any-return]  # one output


def _assigned(key: _Key, part: Tensor, value: Tensor) -> Tensor:
    """What the basic part is with the values of the result in it."""
    size = len(key.block)
    if len(key.places) == 1:
        (place,) = key.places
        value = _moved(value, key.start, place, size)
        count = math.prod(key.block)
        value = value.reshape((*part.shape[:place], count, *part.shape[place + 1 :]))
        return dispatch.execute(  # type: ignore[no-any-return]  # one output
            "select_assign",
            part,
            key.indices[0].reshape((count,)),
            value,
            axis=place,
            update="assign",
        )
    order = key.order()
    inverse = tuple([order.index(axis) for axis in range(len(order))])
    value = _moved(value, key.start, 0, size)
    moved = _permute(part, axes=order)
    result: Tensor = dispatch.execute("scatter_nd", moved, key.rows(), value, update="assign")
    return _permute(result, axes=inverse)


def as_value(x: Tensor, value: Any) -> Tensor:
    """What is assigned to a part of `x`, as a tensor of its dtype."""
    if isinstance(value, DispatchTensor):
        return value.astype(x.dtype)  # type: ignore[attr-defined, no-any-return]  # a Tensor
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        return asarray(value, dtype=x.dtype, device=x.device)
    number = as_python(value)
    kinds = (bool, int) if x.dtype.is_integer or x.dtype.is_bool else (bool, int, float)
    if isinstance(number, (float, complex)) and not isinstance(number, kinds):
        if not (x.dtype.is_float or x.dtype.is_integer or x.dtype.is_bool):
            return asarray(number, dtype=x.dtype, device=x.device)
        raise OperandTypeError(
            f"{number!r} cannot be assigned to elements of {x.dtype}",
            hint="Convert the tensor with .astype(), or the number",
            operation="indexing",
        )
    return full((), to_scalar(number, x.dtype), dtype=x.dtype, device=x.device)


def broadcast_value(value: Tensor, shape: Shape) -> Tensor:
    """A value in the shape of what it is assigned to; leading axes of length 1 may be too many."""
    extra = max(value.ndim - len(shape), 0)
    if extra and set(value.shape[:extra]) == {1}:
        value = value.reshape(value.shape[extra:])
    try:
        return value if value.shape == shape else value.broadcast_to(shape)
    except ShapeError:
        raise ShapeError(
            f"cannot assign a value of shape {value.shape} to a part of shape {shape}",
            operation="indexing",
        ) from None


def _moved(x: Tensor, source: int, destination: int, count: int) -> Tensor:
    """`count` neighbouring axes moved to another place."""
    if source == destination or not count:
        return x
    block = range(source, source + count)
    order = [axis for axis in range(x.ndim) if axis not in block]
    order[destination:destination] = block
    return _permute(x, axes=tuple(order))


def _read(part: Any) -> Any:
    """A part of a key as None, ..., a slice, an int, a tensor, or an array of ints or bools."""
    if part is None or part is Ellipsis or isinstance(part, (builtins.slice, DispatchTensor)):
        return part
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if isinstance(part, (list, tuple, np.ndarray)):
        try:
            for one in elements_of(part).arrays:
                check_unmasked(one)
            array = np.asarray(part)
        except ValueError as error:
            raise OperandTypeError(f"no index: {error}", operation="indexing") from None
        if array.size == 0 and not isinstance(part, np.ndarray):
            array = array.astype(np.intp)
        if array.dtype.kind not in "iub":
            raise OperandTypeError(
                f"an array of {array.dtype} is no index",
                hint="Index with integers or booleans",
                operation="indexing",
            )
        return int(array) if array.ndim == 0 and array.dtype.kind != "b" else array
    return integer(part)


def _is_mask(part: Any) -> bool:
    if isinstance(part, DispatchTensor):
        dtype = part.tensor_type.dtype
        if not (dtype.is_bool or dtype.is_integer):
            raise OperandTypeError(
                f"a tensor of {dtype} is no index",
                hint="Index with integers or booleans",
                operation="indexing",
            )
        return dtype.is_bool
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


def _axes_of(part: Any) -> int:
    """Number of axes that a part of a key uses up."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, (DispatchTensor, np.ndarray)) and _is_mask(part):
        return len(part.shape)  # type: ignore[union-attr]  # a Tensor
    return 1


def _flat_mask(mask: Any, x: Tensor) -> Tensor:
    tensor: Any = mask if isinstance(mask, DispatchTensor) else asarray(mask, device=x.device)
    return tensor.reshape((tensor.size,))  # type: ignore[no-any-return]  # a Tensor


def _true_places(mask: Any, x: Tensor) -> Tensor:
    """Where a mask is true, among its elements in row-major order."""
    dtype = x.device.settings.int_dtype
    if isinstance(mask, np.ndarray):
        return asarray(np.flatnonzero(mask), dtype=dtype, device=x.device)
    places: Tensor = dispatch.execute("argwhere", mask.reshape((mask.size,)), dtype=dtype)
    return places.reshape((places.size,))


def _on_device(indices: Any, x: Tensor, length: int, axis: int) -> Tensor:
    """Indices as a tensor; those from the host are checked here."""
    dtype = x.device.settings.int_dtype
    if isinstance(indices, DispatchTensor):
        return indices.astype(dtype)  # type: ignore[attr-defined, no-any-return]  # a Tensor
    wrong = indices[(indices < -length) | (indices >= length)]
    if wrong.size:
        raise AxisError(
            f"index {wrong.flat[0]} is out of range for axis {axis} of length {length}",
            operation="indexing",
        )
    return asarray(indices, dtype=dtype, device=x.device)
