"""Creation and layout: views of the same memory where strides describe the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.plugin_api import (
    DTYPE_CODES,
    DType,
    c_type_of,
    check_bitcast,
    signed_scalar_bits,
    storage_bits,
)
from burn_opencl.base import OpenClOps, check_axis, inferred_shape
from burn_opencl.buffers import Buffer, row_major
from burn_opencl.complex_numbers import as_tensor

if TYPE_CHECKING:
    from burn.plugin_api import DeviceId, RealScalar, Scalar, Shape, Slices

__all__ = ["LayoutOps"]


class LayoutOps(OpenClOps):
    """Creation and layout."""

    def full(self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId) -> Buffer:
        """A fill command, without a kernel."""
        del device
        out = self.launcher.empty(shape, dtype)
        size = out.size * dtype.itemsize
        if size:
            pattern = storage_bits(fill_value, dtype).to_bytes(dtype.itemsize, "little")
            self.launcher.runtime.fill(out.memory.handle, pattern, size)
        return out

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Buffer:
        """Computed in float64 where the device has it, then rounded."""
        del device
        launcher = self.launcher
        out = launcher.empty((length,), dtype)
        wide = DType.of("float64") if dtype.is_float and launcher.runtime.has_fp64 else dtype
        kernel = launcher.kernel("arange", "arange.cl", c_type_of(wide))
        bits = (signed_scalar_bits(start, wide), signed_scalar_bits(step, wide))
        launcher.run(kernel, length, (length, *bits, DTYPE_CODES[dtype.name]), (out.memory,))
        return out

    def bitcast(self, x: Buffer, *, dtype: DType) -> Buffer:
        """A view."""
        check_bitcast(x.dtype, dtype)
        return Buffer(x.memory, x.shape, dtype, x.strides, x.offset, x.owner)

    def reshape(self, x: Buffer, *, shape: Shape) -> Buffer:
        """A view where strides describe one, else a copy."""
        view = x.reshaped(shape)
        return self.launcher.copied(x).viewed(shape, row_major(shape)) if view is None else view

    def permute(self, x: Buffer, *, axes: tuple[int, ...]) -> Buffer:
        """A view."""
        check_axis(x, *axes)
        if len(axes) != len(x.shape):
            raise IndexError(f"{len(axes)} axes of a tensor with {len(x.shape)}")
        return x.permuted(axes)

    def expand(self, x: Buffer, *, shape: Shape) -> Buffer:
        """A view, whose elements can be counted."""
        if math.prod(shape) >= 2**63:
            raise ValueError(f"shape {shape} has too many elements")
        return x.expanded(shape)

    def slice(self, x: Buffer, *, slices: Slices) -> Buffer:
        """A view."""
        return x.sliced(slices)

    def flip(self, x: Buffer, *, axes: tuple[int, ...]) -> Buffer:
        """A view."""
        check_axis(x, *axes)
        slices = [
            (length - 1, length, -1) if number in axes else (0, length, 1)
            for number, length in enumerate(x.shape)
        ]
        return x.sliced(tuple(slices))

    def slice_assign(self, x: Buffer, value: Buffer | Scalar, *, slices: Slices) -> Buffer:
        """A copy, over part of which the value is written."""
        x.sliced(slices)  # refuses slices that exceed an axis
        result = self.launcher.copied(x)
        self.write_slice(result, value, slices=slices)
        return result

    def write_slice(self, x: Buffer, value: Buffer | Scalar, *, slices: Slices) -> None:
        """Writes to a view."""
        target = x.sliced(slices)
        if isinstance(value, Buffer):
            if value.dtype is not x.dtype:
                raise TypeError(f"{value.dtype} into {x.dtype}")
            value.expanded(target.shape)  # refuses what does not broadcast
        elif x.dtype.is_complex:
            value = as_tensor(self, value, x.dtype)
        self.launcher.move("real", [value], target)

    def pad(
        self,
        x: Buffer,
        *,
        padding: tuple[tuple[int, int], ...],
        mode: str = "constant",
        value: Scalar = 0,
    ) -> Buffer:
        """Memory filled with the value, over part of which `x` is written; else the default."""
        attributes: dict[str, Any] = {"padding": padding, "mode": mode, "value": value}
        shape = inferred_shape("pad", x, **attributes)
        if mode != "constant":
            result: Buffer = self.ops.decomposed("pad", x, **attributes)
            return result
        out = self.full(shape=shape, fill_value=value, dtype=x.dtype, device=self.device)
        slices = [(before, length, 1) for length, (before, _) in zip(x.shape, padding, strict=True)]
        if x.size:
            self.launcher.write(out.sliced(tuple(slices)), x)
        return out

    def concat(self, tensors: Sequence[Buffer], *, axis: int) -> Buffer:
        """Each tensor is written to its part of the result."""
        launcher = self.launcher
        first = tensors[0]
        kept = (*first.shape[:axis], *first.shape[axis + 1 :])
        for tensor in tensors:
            other = (*tensor.shape[:axis], *tensor.shape[axis + 1 :])
            if (
                tensor.dtype is not first.dtype
                or other != kept
                or not 0 <= axis < len(tensor.shape)
            ):
                raise ValueError(
                    f"{tensor.dtype} {tensor.shape} joined to {first.dtype} {first.shape}"
                )
        shape = (*kept[:axis], sum([tensor.shape[axis] for tensor in tensors]), *kept[axis:])
        result = launcher.empty(shape, first.dtype)
        start = 0
        for tensor in tensors:
            offset = result.offset + start * result.strides[axis]
            launcher.write(result.viewed(tensor.shape, result.strides, offset), tensor)
            start += tensor.shape[axis]
        return result
