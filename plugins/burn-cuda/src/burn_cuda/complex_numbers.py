"""Complex numbers: their parts, and what is computed of these alone or of neighbours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, complex64, complex128, float64
from burn_cuda.kernels.elementwise import Program

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["ComplexOps", "as_parts", "of_parts"]

Array = Any

_PART: Final = {"real": "r0 = x0.re;", "imag": "r0 = x0.im;"}


def as_parts(launcher: Launcher, x: Array) -> Array:
    """The memory of complex numbers as their parts, along a last axis of length 2."""
    component = launcher.dtypes[x.dtype].component.numpy
    return launcher.dense(x).reshape(-1).view(component).reshape((*x.shape, 2))


def of_parts(launcher: Launcher, parts: Array, dtype: DType) -> Array:
    """The complex numbers whose parts lie along the last axis."""
    return launcher.dense(parts).reshape(-1).view(dtype.numpy).reshape(parts.shape[:-1])


class ComplexOps:
    """Parts of complex numbers, and reductions and scans of them."""

    launcher: Launcher
    cast: Any
    multiply: Any
    not_equal: Any
    slice: Any
    concat: Any
    full: Any

    def real(self, x: Array) -> Array:
        """The first part; a real number is its own."""
        return self._part("real", x)

    def imag(self, x: Array) -> Array:
        """The second part; 0 of a real number."""
        if self.launcher.dtypes[x.dtype].is_complex:
            return self._part("imag", x)
        result = self.launcher.empty(x.shape, x.dtype)
        self.launcher.driver.zero(result)
        return result

    def conj(self, x: Array) -> Array:
        """The second part with the other sign; a real number is its own."""
        dtype = self.launcher.dtypes[x.dtype]
        if not dtype.is_complex:
            return x
        return self.launcher.elementwise(_program("r0 = conjugate(x0);", dtype, dtype), (x,))[0]

    def complex(self, real: Array, imag: Array) -> Array:
        """Both parts written at once."""
        dtype = self.launcher.dtypes[real.dtype]
        if imag.dtype is not real.dtype or not dtype.is_float:
            raise TypeError(f"complex numbers of {real.dtype} and {imag.dtype}")
        result = complex128 if dtype is float64 else complex64
        return self.launcher.elementwise(_joining_program(dtype, result), (real, imag))[0]

    def _part(self, name: str, x: Array) -> Array:
        dtype = self.launcher.dtypes[x.dtype]
        if not dtype.is_complex:
            return x
        program = _program(_PART[name], dtype, dtype.component)
        return self.launcher.elementwise(program, (x,))[0]

    def _of_both_parts(self, function: Callable[[Array], Array], x: Array, dtype: DType) -> Array:
        """What a linear function makes of complex numbers: it takes the parts alone."""
        launcher = self.launcher
        return of_parts(launcher, function(as_parts(launcher, x)), dtype)

    def _complex_product(self, x: Array, axis: tuple[int, ...], *, keepdims: bool) -> Array:
        """The product along axes: half of them times the other half, again and again."""
        for number in axis:
            while x.shape[number] > 1:
                length = x.shape[number]
                half = length // 2
                front = self._along(x, number, 0, half)
                product = self.multiply(front, self._along(x, number, half, half))
                rest = self._along(x, number, 2 * half, length - 2 * half)
                x = self.concat([product, rest], axis=number) if rest.size else product
            if not x.shape[number]:
                shape = tuple([1 if at == number else n for at, n in enumerate(x.shape)])
                x = self._ones(shape, x.dtype)
        if keepdims:
            return x
        return x.reshape(tuple([n for at, n in enumerate(x.shape) if at not in axis]))

    def _complex_products(self, x: Array, axis: int) -> Array:
        """The product of each element and those before it, from neighbours on.

        W. D. Hillis and G. L. Steele, "Data parallel algorithms" (1986).
        """
        length = x.shape[axis]
        step = 1
        while step < length:
            later = self._along(x, axis, step, length - step)
            earlier = self._along(x, axis, 0, length - step)
            first = self._along(x, axis, 0, step)
            x = self.concat([first, self.multiply(later, earlier)], axis=axis)
            step *= 2
        return x

    def _ones(self, shape: tuple[int, ...], dtype: Any) -> Array:
        found = self.launcher.dtypes[dtype]
        return self.full(shape=shape, fill_value=1.0, dtype=found, device=None)

    def _along(self, x: Array, axis: int, start: int, length: int) -> Array:
        """A part of an axis."""
        slices = [(0, n, 1) for n in x.shape]
        slices[axis] = (start, length, 1)
        return self.slice(x, slices=tuple(slices))


@functools.cache
def _program(body: str, source: DType, dtype: DType) -> Program:
    return Program(body, (source,), (False,), (dtype,))


@functools.cache
def _joining_program(part: DType, dtype: DType) -> Program:
    return Program(f"r0 = {dtype.name}(x0, x1);", (part, part), (False, False), (dtype,))
