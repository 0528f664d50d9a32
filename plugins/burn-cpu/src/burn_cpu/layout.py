"""Host data, creation, casts and layout on NumPy arrays."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from burn.plugin_api import (
    DeviceId,
    DType,
    RealScalar,
    Scalar,
    Shape,
    Slices,
    TensorData,
    check_bitcast,
    python_slices,
)
from burn_cpu.base import Array, CpuOps

_BEFORE: Final = [(slice(None),) * axis for axis in range(64)]
"""What a key of NumPy has before the index of an axis."""


@functools.lru_cache(1 << 10)  # to make a key takes longer than to index with it
def _key(slices: Slices) -> tuple[tuple[Any, ...], Shape]:
    """The key of some slices, and the shape of what it selects."""
    return python_slices(slices), tuple([length for _, length, _ in slices])


class LayoutOps(CpuOps):
    """Ops without arithmetic. Views are safe, as no op writes to an operand."""

    def from_data(self, data: TensorData, device: DeviceId) -> Array:
        """A copy: the caller may change the memory of `data` afterwards."""
        del device
        return data.array.copy()

    def share(self, data: TensorData, device: DeviceId) -> Array:
        """The array itself."""
        del device
        return data.array

    def device_of(self, x: object) -> DeviceId | None:
        """The device, for arrays and NumPy scalars; subclasses of arrays compute differently."""
        return DeviceId(0, 0) if x.__class__ is np.ndarray or isinstance(x, np.generic) else None

    def to_data(self, x: Array) -> TensorData:
        """The array itself."""
        return TensorData(np.asarray(x))

    def full(self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId) -> Array:
        """`numpy.full`; zeros come from the operating system at no cost."""
        del device
        if not dtype.is_complex and fill_value == 0 and math.copysign(1, fill_value) > 0:  # type: ignore[arg-type]  # real, as its dtype is
            return np.zeros(shape, dtype.numpy)
        return np.full(shape, fill_value, dtype.numpy)

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Array:
        """Computed in the dtype, 16-bit floats in float32."""
        del device
        native = dtype.numpy
        if dtype.name in ("float16", "bfloat16"):
            count = np.arange(length, dtype=np.float32)
            return (count * np.float32(step) + np.float32(start)).astype(native)
        return np.arange(length, dtype=native) * native.type(step) + native.type(start)

    def bitcast(self, x: Array, *, dtype: DType) -> Array:
        """A view."""
        check_bitcast(self.dtype(x), dtype)
        return x.view(dtype.numpy)

    def reshape(self, x: Array, *, shape: Shape) -> Array:
        """A view where the strides allow it."""
        result = x.reshape(shape)
        if result.shape != shape:  # NumPy infers a negative length
            raise ValueError("a negative length")
        return result

    def permute(self, x: Array, *, axes: tuple[int, ...]) -> Array:
        """A view."""
        return x.transpose(axes)

    def expand(self, x: Array, *, shape: Shape) -> Array:
        """A view with strides of 0; of a dense array faster than `numpy.broadcast_to`."""
        lead = len(shape) - x.ndim
        # bfloat16 of ml_dtypes (kind V) has no buffer.
        if x.flags.c_contiguous and x.dtype.kind != "V" and lead >= 0 and min(shape, default=0) > 0:
            strides = [0] * lead
            for length, wanted, stride in zip(x.shape, shape[lead:], x.strides, strict=True):
                if length not in (1, wanted):
                    break
                strides.append(stride if length == wanted else 0)
            else:
                return np.ndarray(shape, x.dtype, x, 0, strides)
        return np.broadcast_to(x, shape)

    def slice(self, x: Array, *, slices: Slices) -> Array:
        """A view."""
        key, shape = _key(slices)
        result = x[key]
        if result.shape != shape:
            raise IndexError(f"slices {slices} reach beyond the tensor")
        return result

    def index_axis(self, x: Array, *, axis: int, index: int) -> Array:
        """A view, also where it has no axes: not the number that NumPy returns for an integer."""
        if axis < 0 or index < 0:
            raise IndexError(f"index {index} of axis {axis}")
        return x[_BEFORE[axis] + (index, ...)]

    def slice_assign(self, x: Array, value: Array | Scalar, *, slices: Slices) -> Array:
        """Assigns to a copy."""
        result = np.array(x)
        key, shape = _key(slices)
        if result[key].shape != shape:
            raise IndexError(f"slices {slices} reach beyond the tensor")
        result[key] = value
        return result

    def concat(self, tensors: list[Array], *, axis: int) -> Array:
        """`numpy.concatenate`."""
        return np.concatenate(tensors, axis=axis)

    def unfold(self, x: Array, *, axis: int, size: int, step: int = 1) -> Array:
        """A view."""
        if size < 1 or step < 1:
            raise ValueError(f"windows of {size} elements, with a step of {step}")
        windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)
        return windows[(slice(None),) * axis + (slice(None, None, step),)]
