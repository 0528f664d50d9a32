"""Creation, casts and layout: views wherever torch's strides can express them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from burn.plugin_api import DeviceId, DType, RealScalar, Scalar, Shape, Slices, check_bitcast
from burn_torch.base import TorchOps
from burn_torch.dtypes import (
    BURN_DTYPES,
    HALF_FLOATS,
    NUMBER_TYPES,
    SIGNED_OF_UNSIGNED,
    TORCH_DTYPES,
    Tensor,
    rounded,
)

_reshape, _permute, _expand = torch.reshape, torch.permute, Tensor.expand
_narrow, _select = torch.narrow, torch.select
_to, _stride, _as_strided = Tensor.to, Tensor.stride, torch.as_strided


class LayoutOps(TorchOps):
    """Creation, casts and layout."""

    def full(self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId) -> Tensor:
        """`torch.full` of the rounded number: torch refuses one beyond the range of the dtype."""
        del device
        native = TORCH_DTYPES[dtype]
        if fill_value == 0 and math.copysign(1.0, fill_value.real) > 0.0:
            return torch.zeros(shape, dtype=native, device=self.torch_device)
        return torch.full(
            shape, rounded(fill_value, native), dtype=native, device=self.torch_device
        )

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Tensor:
        """Arithmetic on int64 indices; floats in float64 where the device has it."""
        del device
        if length < 0:
            raise ValueError(f"a range of {length} numbers")
        native = TORCH_DTYPES[dtype]
        count = torch.arange(length, dtype=torch.int64, device=self.torch_device)
        if dtype.is_integer:
            if dtype.name == "uint64":
                start, step = _wrapped(int(start)), _wrapped(int(step))
            if step != 1:
                count *= int(step)
            if start:
                count += int(start)
            return count if native is torch.int64 else count.to(native)
        if dtype.is_complex:
            raise TypeError("a range of complex numbers")
        wide = torch.float32 if self.torch_device.type == "mps" else torch.float64
        numbers = count.to(wide)
        if step != 1:
            numbers *= step
        if start:
            numbers += start
        return numbers if native is wide else numbers.to(native)

    def eye(
        self, *, rows: int, columns: int, offset: int, dtype: DType, device: DeviceId
    ) -> Tensor:
        """`torch.eye`; with an offset, ones on a diagonal of zeros."""
        del device
        native = TORCH_DTYPES[dtype]
        if native in SIGNED_OF_UNSIGNED:
            return self.eye(
                rows=rows,
                columns=columns,
                offset=offset,
                dtype=BURN_DTYPES[torch.int64],
                device=self.device_id,
            ).to(native)
        if not offset:
            return torch.eye(rows, columns, dtype=native, device=self.torch_device)
        result = torch.zeros(rows, columns, dtype=native, device=self.torch_device)
        if -rows < offset < columns:
            result.diagonal(offset).fill_(1)
        return result

    def cast(self, x: Tensor, *, dtype: DType) -> Tensor:
        """`Tensor.to`; floats are clipped to the range of an integer dtype."""
        native, source = TORCH_DTYPES[dtype], x.dtype
        if source is native:
            return x
        if source.is_floating_point:
            if dtype.is_integer:
                return _saturated(x, dtype)
        elif source.is_complex and not dtype.is_complex and not dtype.is_bool:
            raise TypeError("a complex tensor cannot become a real one")
        return _to(x, native)

    def bitcast(self, x: Tensor, *, dtype: DType) -> Tensor:
        """A view."""
        check_bitcast(BURN_DTYPES[x.dtype], dtype)
        return x.view(TORCH_DTYPES[dtype])

    def reshape(self, x: Tensor, *, shape: Shape) -> Tensor:
        """A view where strides allow it."""
        result = _reshape(x, shape)
        if result.shape != shape:
            raise ValueError(f"a shape of {shape}")
        return result

    def permute(self, x: Tensor, *, axes: tuple[int, ...]) -> Tensor:
        """A view."""
        if axes and min(axes) < 0:
            raise IndexError(f"axes {axes}")
        return _permute(x, axes)

    def expand(self, x: Tensor, *, shape: Shape) -> Tensor:
        """A view."""
        result = _expand(x, shape)
        if result.shape != shape:
            raise ValueError(f"a shape of {shape}")
        return result

    def slice(self, x: Tensor, *, slices: Slices) -> Tensor:
        """A view; a copy for a negative step, as torch has no negative strides."""
        result = x
        for axis, (part, extent) in enumerate(zip(slices, x.shape, strict=True)):
            start, length, step = part
            if step != 1 or start < 0 or length < 1:
                break
            if start or length != extent:
                result = _narrow(result, axis, start, length)
        else:
            return result
        result, reverse = _sliced(x, slices)
        return flipped(result, reverse) if reverse else result

    def index_axis(self, x: Tensor, *, axis: int, index: int) -> Tensor:
        """A view."""
        if axis < 0 or index < 0:
            raise IndexError(f"index {index} of axis {axis}")
        return _select(x, axis, index)

    def slice_assign(self, x: Tensor, value: Tensor | Scalar, *, slices: Slices) -> Tensor:
        """Assigns to a copy."""
        result = x.clone()
        self.write_slice(result, value, slices=slices)
        return result

    def write_slice(self, x: Tensor, value: Tensor | Scalar, *, slices: Slices) -> None:
        """Copies to a view."""
        target, reverse = _sliced(x, slices)
        if value.__class__ in NUMBER_TYPES:
            value = rounded(value, x.dtype)
            if x.dtype in SIGNED_OF_UNSIGNED:
                value = torch.full((), value, dtype=x.dtype, device=self.torch_device)  # type: ignore[arg-type]  # a number
                target.copy_(value)
            else:
                target.fill_(value)
            return
        value = _expand(value, target.shape)  # type: ignore[arg-type]  # a tensor by now
        target.copy_(flipped(value, reverse) if reverse else value)

    def concat(self, tensors: list[Tensor], *, axis: int) -> Tensor:
        """`torch.cat`, which would accept an empty vector beside tensors of any rank."""
        rank = tensors[0].dim()
        for tensor in tensors:
            if tensor.dim() != rank:
                raise ValueError("tensors with different numbers of axes")
        bits = SIGNED_OF_UNSIGNED.get(tensors[0].dtype)
        if bits is None:
            return torch.cat(tensors, axis)
        return torch.cat([tensor.view(bits) for tensor in tensors], axis).view(tensors[0].dtype)

    def flip(self, x: Tensor, *, axes: tuple[int, ...]) -> Tensor:
        """`torch.flip`."""
        if axes and not 0 <= min(axes) <= max(axes) < len(x.shape):
            raise IndexError(f"axes {axes}")
        return flipped(x, tuple(sorted(set(axes))))

    def pad(
        self,
        x: Tensor,
        *,
        padding: tuple[tuple[int, int], ...],
        mode: str = "constant",
        value: Scalar = 0,
    ) -> Tensor:
        """`torch.constant_pad_nd`; the default for other modes, which gather."""
        if mode != "constant" or x.dtype in SIGNED_OF_UNSIGNED or x.dtype in HALF_FLOATS:
            return self.decomposed("pad", x, padding=padding, mode=mode, value=value)
        if len(padding) != x.dim() or any(min(pair) < 0 for pair in padding):
            raise ValueError(f"padding {padding} for {x.dim()} axes")
        ends = [end for pair in reversed(padding) for end in pair]
        return torch.constant_pad_nd(x, ends, value)

    def unfold(self, x: Tensor, *, axis: int, size: int, step: int = 1) -> Tensor:
        """A view."""
        if size < 1 or step < 1 or not 0 <= axis < len(x.shape):
            raise ValueError(f"windows of {size} elements, with a step of {step} along axis {axis}")
        return x.unfold(axis, size, step)


def flipped(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Elements in reverse order along axes."""
    bits = SIGNED_OF_UNSIGNED.get(x.dtype)
    if bits is None:
        return torch.flip(x, tuple(axes))
    return torch.flip(x.view(bits), tuple(axes)).view(x.dtype)


def _sliced(x: Tensor, slices: Slices) -> tuple[Tensor, list[int]]:
    """A view of a slice with positive steps, and the axes whose steps are negative."""
    shape = x.shape
    if len(slices) != len(shape):
        raise ValueError(f"{len(slices)} slices for {len(shape)} axes")
    strides = _stride(x)
    offset = x.storage_offset()
    lengths, steps, reverse = [], [], []
    for axis, (start, length, step) in enumerate(slices):
        if length > 0:
            last = start + (length - 1) * step
            extent = shape[axis]
            if not (0 <= start < extent and 0 <= last < extent and step):
                raise IndexError(f"elements {start} to {last} of an axis of length {extent}")
            if step < 0:
                start, step = last, -step  # noqa: PLW2901 — the same elements from the other end
                reverse.append(axis)
            offset += start * strides[axis]
        elif length < 0 or not step:
            raise IndexError(f"a slice of length {length}, step {step}")
        lengths.append(length)
        steps.append(strides[axis] * step)
    if 0 in lengths:
        return x.new_empty(lengths), []
    return _as_strided(x, lengths, steps, offset), reverse


def _wrapped(number: int) -> int:
    """A 64-bit integer as the signed one with the same bits."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _saturated(x: Tensor, dtype: DType) -> Tensor:
    """Float to integer: truncated, clipped to the range, NaN to 0."""
    native = TORCH_DTYPES[dtype]
    low, high = dtype.integer_range
    if x.dtype in HALF_FLOATS:  # float16 cannot represent the bounds
        x = x.to(torch.float32)
    # Both bounds are powers of two or 0, which float32 and float64 represent exactly.
    if dtype.itemsize < 4 and native not in SIGNED_OF_UNSIGNED:
        return torch.clamp(torch.nan_to_num(x, nan=0.0), low, high).to(native)
    bits = SIGNED_OF_UNSIGNED.get(native, native)
    above, below = x >= float(high + 1), x < float(low)
    safe = torch.where(above | below | x.isnan(), 0.0, x)
    if dtype.name == "uint64":
        # Values of 2**63 and more are converted without their highest bit, which is set after.
        large = safe >= 2.0**63
        whole = torch.where(large, safe - 2.0**63, safe).to(torch.int64)
        whole = torch.where(large, whole ^ (-1 << 63), whole)
    else:
        whole = safe.to(torch.int64).to(bits) if native in SIGNED_OF_UNSIGNED else safe.to(native)
    whole = torch.where(above, _signed(high, dtype), whole)
    whole = torch.where(below, low, whole)
    return whole.view(native) if native in SIGNED_OF_UNSIGNED else whole


def _signed(number: int, dtype: DType) -> int:
    """A number as the signed one with the same bits."""
    half = 1 << (dtype.bits - 1)
    return number - 2 * half if number >= half else number
