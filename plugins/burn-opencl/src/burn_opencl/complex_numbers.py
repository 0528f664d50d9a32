"""Complex numbers: their parts, and operands that are Python numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.plugin_api import DType, complex64, complex128, float64, storage_bits
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes

if TYPE_CHECKING:
    from burn.plugin_api import Scalar
    from burn_opencl.launcher import Launcher

__all__ = ["ComplexOps", "as_tensor", "on_parts", "slice_axis"]


def as_tensor(ops: OpenClOps, value: Buffer | Scalar, dtype: DType) -> Buffer:
    """A number as a tensor without axes, which is cached; a tensor itself.

    The parameters of a kernel have room for 8 bytes of a number.
    """
    if isinstance(value, Buffer):
        return value
    return ops.tables(_element, storage_bits(value, dtype), dtype)[0]


def _element(bits: int, dtype: DType) -> list[np.ndarray[Any, Any]]:
    """An element from its bits, in which zeros of both signs differ."""
    return [np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype.numpy).reshape(())]


def on_parts(launcher: Launcher, function: Callable[[Buffer], Buffer], x: Buffer) -> Buffer:
    """A function that takes real and imaginary parts alike, of complex numbers."""
    return launcher.dense(function(x.parts)).of_parts(x.dtype)


def slice_axis(x: Buffer, axis: int, start: int, stop: int) -> Buffer:
    """A view of a range along an axis."""
    slices = [(0, length, 1) for length in x.shape]
    slices[axis] = (start, stop - start, 1)
    return x.sliced(tuple(slices))


class ComplexOps(OpenClOps):
    """Parts of complex numbers."""

    def real(self, x: Buffer) -> Buffer:
        """A view of the real parts."""
        return _part(x, 0) if x.dtype.is_complex else x

    def imag(self, x: Buffer) -> Buffer:
        """A view of the imaginary parts; 0 for a real dtype."""
        result: Buffer = _part(x, 1) if x.dtype.is_complex else self.ops.decomposed("imag", x)
        return result

    def conj(self, x: Buffer) -> Buffer:
        """The complex conjugate, in one kernel."""
        dtype = x.dtype
        return self.launcher.compute("conj", (x,), dtype, dtype) if dtype.is_complex else x

    def complex(self, real: Buffer, imag: Buffer) -> Buffer:
        """One kernel."""
        check_dtypes("complex", real, imag, floats=True)
        dtype = complex128 if real.dtype is float64 else complex64
        return self.launcher.compute("complex", (real, imag), real.dtype, dtype)


def _part(x: Buffer, number: int) -> Buffer:
    parts = x.parts
    return parts.viewed(x.shape, parts.strides[:-1], parts.offset + number)
