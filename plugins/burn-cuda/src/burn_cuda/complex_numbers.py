"""Complex numbers: real and imaginary parts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from burn.plugin_api import DType, complex64, complex128, float64
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels.elementwise import Program

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["ComplexOps", "as_parts", "of_parts", "on_parts", "slice_axis"]


_PART_PROGRAMS: Final = {"real": "r0 = x0.re;", "imag": "r0 = x0.im;"}


def as_parts(launcher: Launcher, x: Array) -> Array:
    """A real view of complex numbers: real and imaginary part along a last axis of length 2."""
    component = launcher.dtypes[x.dtype].component.numpy
    return launcher.dense(x).reshape(-1).view(component).reshape((*x.shape, 2))


def of_parts(launcher: Launcher, parts: Array, dtype: DType) -> Array:
    """The complex numbers of a real array with their parts along the last axis."""
    return launcher.dense(parts).reshape(-1).view(dtype.numpy).reshape(parts.shape[:-1])


def on_parts(
    launcher: Launcher, function: Callable[[Array], Array], x: Array, dtype: DType
) -> Array:
    """A linear function of complex numbers, which takes real and imaginary parts alike."""
    return of_parts(launcher, function(as_parts(launcher, x)), dtype)


def slice_axis(x: Array, axis: int, start: int, stop: int) -> Array:
    """A view of a range along an axis."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


class ComplexOps(CudaOps):
    """Parts of complex numbers."""

    def real(self, x: Array) -> Array:
        """The real part."""
        return self._part("real", x)

    def imag(self, x: Array) -> Array:
        """The imaginary part; 0 for a real dtype."""
        if self.launcher.dtypes[x.dtype].is_complex:
            return self._part("imag", x)
        result = self.launcher.empty(x.shape, x.dtype)
        self.launcher.runtime.zero(result)
        return result

    def conj(self, x: Array) -> Array:
        """The complex conjugate."""
        dtype = self.launcher.dtypes[x.dtype]
        if not dtype.is_complex:
            return x
        return self.launcher.elementwise(_program("r0 = conjugate(x0);", dtype, dtype), (x,))[0]

    def complex(self, real: Array, imag: Array) -> Array:
        """One kernel."""
        dtype = self.launcher.dtypes[real.dtype]
        if imag.dtype is not real.dtype or not dtype.is_float:
            raise TypeError(f"complex numbers of {real.dtype} and {imag.dtype}")
        result = complex128 if dtype is float64 else complex64
        return self.launcher.elementwise(_complex_program(dtype, result), (real, imag))[0]

    def _part(self, name: str, x: Array) -> Array:
        dtype = self.launcher.dtypes[x.dtype]
        if not dtype.is_complex:
            return x
        program = _program(_PART_PROGRAMS[name], dtype, dtype.component)
        return self.launcher.elementwise(program, (x,))[0]


@functools.cache
def _program(body: str, source: DType, dtype: DType) -> Program:
    return Program(body, (source,), (False,), (dtype,))


@functools.cache
def _complex_program(part: DType, dtype: DType) -> Program:
    return Program(f"r0 = {dtype.name}(x0, x1);", (part, part), (False, False), (dtype,))
