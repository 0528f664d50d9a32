"""The examples of a quantized tensor in `burn.vmap`: which of its parts have the batch axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.errors import ShapeError
from burn.ops.quantized_primitive import QuantizedPrimitive
from burn.quant_scheme import MAX_BLOCK_AXES, QuantLevel, QuantScheme, QuantStore

if TYPE_CHECKING:
    from burn.aliases import Primitive, Shape
    from burn.batching import Frame
    from burn.devices import Device

__all__ = ["batch", "unbatch"]


def batch(x: QuantizedPrimitive, frame: Frame, axis: int, device: Device) -> QuantizedPrimitive:
    """The examples along an axis, on a device whose outermost layer is that of the batch.

    A scale of the tensor, and a global scale, are those of every example.

    Raises
    ------
    ShapeError
        If examples share the scales of their blocks.
    """
    backend, ops = device.backend, device.ops
    scheme, shape, values = x.scheme, x.shape, x.values
    store = scheme.store
    packed = len(shape) + store.axis
    if scheme.per_word > 1 and axis == packed:
        below: Any = ops.below
        values, store = below.unpack_values(values, scheme=scheme), QuantStore.NATIVE
    elif scheme.per_word > 1 and axis > packed:
        store = QuantStore(store.kind, store.axis + 1)
    scales, level = x.scales, scheme.level
    if level.block:
        if scheme.blocks(shape)[axis] != 1 or len(shape) == 1:
            raise ShapeError(
                f"the examples along axis {axis} of {x.dtype}{list(shape)} share scales",
                hint="Call .dequantize() on the tensor",
                operation="vmap",
            )
        lengths = _aligned(level, len(shape))
        level = _level(level, (*lengths[:axis], *lengths[axis + 1 :]))
        scales = backend.batch(scales, frame, axis, ops)
    values = backend.batch(values, frame, axis, ops)
    return QuantizedPrimitive(values, scales, x.global_scale, _with(scheme, store, level))


def unbatch(x: QuantizedPrimitive, frame: Frame, axis: int, device: Device) -> QuantizedPrimitive:
    """The tensor with the batch axis at `axis`, of the device below.

    Where each example has a scale of its own, the examples are blocks.

    Raises
    ------
    ShapeError
        If each example has a global scale of its own, or blocks would have too many axes.
    """
    backend, ops = device.backend, device.ops
    scheme, shape = x.scheme, x.shape
    if x.global_scale is not None and backend.is_batched(x.global_scale):
        raise ShapeError(
            f"each example has a global scale of its own, and {x.dtype} has one",
            hint="Return .dequantize() of it, or a tensor of one level",
            operation="vmap",
        )
    store, level = scheme.store, scheme.level
    if scheme.per_word > 1 and axis > len(shape) + store.axis:
        store = QuantStore(store.kind, store.axis - 1)
    values = backend.unbatch(x.values, frame, axis, ops)
    scales = x.scales
    if level.block:
        lengths = _aligned(level, len(shape))
        level = _level(level, (*lengths[:axis], 1, *lengths[axis:]))
        scales = backend.unbatch(scales, frame, axis, ops)
    elif backend.is_batched(scales):
        wholes = (-1,) * len(shape)
        level = _level(level, (*wholes[:axis], 1, *wholes[axis:]))
        scales = backend.unbatch(scales, frame, 0, ops)
        target = [min(length, 1) for length in shape]  # no scales where there are no elements
        target.insert(axis, frame.size)
        scales = _reshaped(ops.below, scales, tuple(target))
    return QuantizedPrimitive(values, scales, x.global_scale, _with(scheme, store, level))


def _reshaped(ops: Any, scales: Primitive, shape: Shape) -> Primitive:
    """A scale of each example in the shape of the scales of blocks."""
    if 0 in shape:
        return ops.full(shape=shape, fill_value=0, dtype=ops.dtype(scales))
    return ops.reshape(scales, shape=shape)


def _aligned(level: QuantLevel, rank: int) -> Shape:
    """The lengths of blocks for each axis."""
    return (1,) * (rank - len(level.block)) + level.block


def _level(level: QuantLevel, lengths: Shape) -> QuantLevel:
    """The level of blocks with these lengths: the one that there was, if it has."""
    if 0 < len(level.block) <= len(lengths) and _aligned(level, len(lengths)) == lengths:
        return level
    while len(lengths) > 1 and lengths[0] == 1:
        lengths = lengths[1:]
    if len(lengths) > MAX_BLOCK_AXES:
        raise ShapeError(
            f"blocks of {len(lengths)} axes",
            hint=f"A block has at most {MAX_BLOCK_AXES} axes: return .dequantize() of the tensor",
            operation="vmap",
        )
    return QuantLevel(lengths, is_global=level.is_global)


def _with(scheme: QuantScheme, store: QuantStore, level: QuantLevel) -> QuantScheme:
    return scheme.with_store(store).with_level(level)
