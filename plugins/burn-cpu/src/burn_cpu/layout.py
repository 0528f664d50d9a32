"""Host data, creation, casts and layout on NumPy arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from burn.backend.array import check_sliced, python_slices
from burn.device_id import DeviceId
from burn.tensor_data import TensorData
from burn_cpu.base import Array, CpuOps

if TYPE_CHECKING:
    from burn.aliases import RealScalar, Scalar, Shape, Slices
    from burn.dtype import DType


class LayoutOps(CpuOps):
    """Ops that hold no arithmetic. Views cost nothing: no op writes to an operand."""

    def from_data(self, data: TensorData, device: DeviceId) -> Array:
        """A copy: the caller may change its memory afterwards."""
        del device
        return data.array.copy()

    def share(self, data: TensorData, device: DeviceId) -> Array:
        """The array itself."""
        del device
        return data.array

    def device_of(self, x: object) -> DeviceId | None:
        """The one device, for arrays and NumPy's numbers: a subclass computes differently."""
        return DeviceId(0, 0) if x.__class__ is np.ndarray or isinstance(x, np.generic) else None

    def to_data(self, x: Array) -> TensorData:
        """The array itself; NumPy has nothing to wait for."""
        return TensorData(np.asarray(x))

    def full(self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId) -> Array:
        """Zeros come from the system at no cost."""
        del device
        if not dtype.is_complex and fill_value == 0 and math.copysign(1, fill_value) > 0:  # type: ignore[arg-type]  # real, as its dtype is
            return np.zeros(shape, dtype.numpy)
        return np.full(shape, fill_value, dtype.numpy)

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Array:
        """Counted in the dtype, like everywhere."""
        del device
        native = dtype.numpy
        if dtype.name in ("float16", "bfloat16"):
            count = np.arange(length, dtype=np.float32)
            return (count * np.float32(step) + np.float32(start)).astype(native)
        return np.arange(length, dtype=native) * native.type(step) + native.type(start)

    def reshape(self, x: Array, *, shape: Shape) -> Array:
        """A view where the strides allow it."""
        result = x.reshape(shape)
        if result.shape != shape:  # NumPy works out any negative length
            raise ValueError("a negative length")
        return result

    def permute(self, x: Array, *, axes: tuple[int, ...]) -> Array:
        """A view."""
        return x.transpose(axes)

    def expand(self, x: Array, *, shape: Shape) -> Array:
        """A view with strides of 0. One number is the common case, which NumPy is slow at."""
        if (
            x.size == 1
            and x.dtype.kind != "V"
            and len(shape) >= x.ndim
            and min(shape, default=0) >= 0
        ):
            # ml_dtypes' bfloat16 (kind V) has no buffer for this constructor.
            return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
        return np.broadcast_to(x, shape)

    def slice(self, x: Array, *, slices: Slices) -> Array:
        """A view."""
        result = x[python_slices(slices)]
        check_sliced(result.shape, slices)
        return result

    def slice_assign(self, x: Array, value: Array | Scalar, *, slices: Slices) -> Array:
        """A copy, assigned to."""
        result = np.array(x)
        places = python_slices(slices)
        check_sliced(result[places].shape, slices)
        result[places] = value
        return result

    def concat(self, tensors: list[Array], *, axis: int) -> Array:
        """`numpy.concatenate`."""
        return np.concatenate(tensors, axis=axis)

    def unfold(self, x: Array, *, axis: int, size: int, step: int = 1) -> Array:
        """A view."""
        if size < 1 or step < 1:
            raise ValueError(f"windows of {size} elements, {step} places apart")
        windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=axis)
        return windows[(slice(None),) * axis + (slice(None, None, step),)]
