"""Creation and layout: views where strides allow it, else one kernel."""

from __future__ import annotations

import builtins
import functools
import math

from burn.plugin_api import (
    DeviceId,
    DType,
    RealScalar,
    Scalar,
    Shape,
    Slices,
    check_bitcast,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.elementwise import number_for
from burn_cuda.kernels import c_type
from burn_cuda.kernels.elementwise import Program
from burn_cuda.launcher import Packed

__all__ = ["LayoutOps"]


class LayoutOps(CudaOps):
    """Layout of strided memory."""

    def full(self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId) -> Array:
        """One kernel; zeros are a memset."""
        del device
        launcher = self.launcher
        result = launcher.empty(shape, dtype.numpy)
        number = number_for(fill_value, dtype)
        if not isinstance(number, Packed) and number == 0 and math.copysign(1.0, number) > 0:
            launcher.runtime.zero(result)
        else:
            self._fill(result, number, dtype)
        return result

    def _fill(self, target: Array, number: float | Packed, dtype: DType) -> None:
        """Write one number to all elements of a view."""
        program = _fill_program(dtype)
        self.launcher.strided(program, (number,), (target,), target.shape)

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Array:
        """Floats in float64, integers in 64 bits."""
        del device
        launcher = self.launcher
        if length < 0:
            raise ValueError(f"{length} numbers")
        result = launcher.empty((length,), dtype.numpy)
        kind = "arange_float" if dtype.is_float else "arange_integer"
        kernel = launcher.kernel(kind, "creation.cu", T=c_type(dtype))
        numbers = [number_for(number, dtype) for number in (start, step)]
        launcher.run(kernel, length, *numbers, result, length)
        return result

    def bitcast(self, x: Array, *, dtype: DType) -> Array:
        """A view."""
        check_bitcast(self.launcher.dtypes[x.dtype], dtype)
        return x.view(dtype.numpy)

    def reshape(self, x: Array, *, shape: Shape) -> Array:
        """A view of dense elements; others are copied first."""
        if -1 in shape:
            raise ValueError(f"{x.shape} as {shape}")
        dense = x if x.is_dense else self.launcher.copied(x)
        return dense.reshape(shape)

    def permute(self, x: Array, *, axes: tuple[int, ...]) -> Array:
        """A view."""
        return x.transpose(axes)

    def expand(self, x: Array, *, shape: Shape) -> Array:
        """A view with strides of 0."""
        return x if x.shape == shape else x.expand(shape)

    def slice(self, x: Array, *, slices: Slices) -> Array:
        """A view."""
        return x.slice(slices)

    def index_axis(self, x: Array, *, axis: int, index: int) -> Array:
        """A view."""
        return x.at(axis, index)

    def slice_assign(self, x: Array, value: Array | Scalar, *, slices: Slices) -> Array:
        """Copies `x` and writes to the copy."""
        result = self.launcher.copied(x)
        self.write_slice(result, value, slices=slices)
        return result

    def write_slice(self, x: Array, value: Array | Scalar, *, slices: Slices) -> None:
        """Writes to a view."""
        launcher = self.launcher
        target = self.slice(x, slices=slices)
        if value.__class__ in (bool, int, float, complex):
            dtype = launcher.dtypes[x.dtype]
            self._fill(target, number_for(value, dtype), dtype)
        else:
            _check_fits(value, target, x)
            launcher.write(target, value)

    def concat(self, tensors: list[Array], *, axis: int) -> Array:
        """Writes each tensor to a view of the result."""
        first = tensors[0]
        rest = (*first.shape[:axis], *first.shape[axis + 1 :])
        for tensor in tensors:
            others = (*tensor.shape[:axis], *tensor.shape[axis + 1 :])
            if others != rest or tensor.dtype is not first.dtype or axis >= tensor.ndim:
                raise ValueError("tensors of different dtypes, or with different other lengths")
        length = sum([tensor.shape[axis] for tensor in tensors])
        shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
        result = self.launcher.empty(shape, first.dtype)
        start = 0
        before = (builtins.slice(None),) * axis
        for tensor in tensors:
            stop = start + tensor.shape[axis]
            self.launcher.write(result[*before, start:stop], tensor)
            start = stop
        return result

    def flip(self, x: Array, *, axes: tuple[int, ...]) -> Array:
        """A view with negative strides."""
        backwards = builtins.slice(None, None, -1)
        whole = builtins.slice(None)
        if not axes:
            return x
        if not 0 <= min(axes) <= max(axes) < x.ndim:
            raise IndexError(f"axes {axes} of {x.ndim}")
        return x[tuple([backwards if axis in axes else whole for axis in range(x.ndim)])]

    def unfold(self, x: Array, *, axis: int, size: int, step: int = 1) -> Array:
        """A view in which windows overlap."""
        if size < 1 or step < 1 or not 0 <= axis < x.ndim or size > x.shape[axis]:
            raise ValueError(f"windows of {size} elements with step {step} of {x.shape}")
        count = (x.shape[axis] - size) // step + 1
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
        stride = x.strides[axis]
        strides = (*x.strides[:axis], stride * step, *x.strides[axis + 1 :], stride)
        return x.strided(shape, strides)


def _check_fits(value: Array, target: Array, x: Array) -> None:
    """Refuse a value that does not broadcast to the elements it is assigned to."""
    missing = len(target.shape) - len(value.shape)
    fits = missing >= 0 and all(
        length in (1, wanted)
        for length, wanted in zip(value.shape, target.shape[missing:], strict=True)
    )
    if not fits or value.dtype is not x.dtype:
        raise ValueError(f"a value of shape {value.shape} for {target.shape}")


@functools.cache
def _fill_program(dtype: DType) -> Program:
    return Program("r0 = x0;", (dtype,), (True,), (dtype,))
