"""Discrete Fourier transforms: a kernel for each factor of the length (mixed radix)."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from burn.plugin_api import DTYPE_CODES, DType, accumulator_dtype, c_type_of, signed_scalar_bits
from burn_opencl.base import OpenClOps, inferred_shape
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes
from burn_opencl.limits import INT32_LIMIT

__all__ = ["FourierOps", "radices"]

_RADICES: Final = (4, 2, 3, 5, 7, 11, 13)
_MAX_PRIME_FACTOR: Final = 256
"""Lengths with a larger prime factor are left to the default, which uses a convolution."""


class FourierOps(OpenClOps):
    """Transforms along an axis; real and imaginary parts are separate tensors."""

    def rfft(self, x: Buffer, *, axis: int, n: int) -> tuple[Buffer, Buffer]:
        """The last kernel computes the first half of the spectrum only."""
        shape = inferred_shape("rfft", x, axis=axis, n=n)
        factors = radices(n)
        if factors is None:
            parts: tuple[Buffer, Buffer] = self.ops.decomposed("rfft", x, axis=axis, n=n)
            return parts
        check_dtypes("rfft", x, floats=True)
        return self._transformed(x, None, shape, axis, factors, sign=-1)

    def irfft(self, re: Buffer, im: Buffer, *, axis: int, n: int) -> Buffer:
        """The first kernel reads the second half of the spectrum from the first."""
        shape = inferred_shape("irfft", re, im, axis=axis, n=n)
        factors = radices(n)
        if factors is None:
            result: Buffer = self.ops.decomposed("irfft", re, im, axis=axis, n=n)
            return result
        check_dtypes("irfft", re, im, floats=True)
        return self._transformed(re, im, shape, axis, factors, sign=1, mirrored=True)[0]

    def cfft(
        self, re: Buffer, im: Buffer, *, axis: int, n: int, inverse: bool = False
    ) -> tuple[Buffer, Buffer]:
        """A kernel for each factor of the length."""
        attributes = {"axis": axis, "n": n, "inverse": inverse}
        shape = inferred_shape("cfft", re, im, **attributes)
        factors = radices(n)
        if factors is None:
            parts: tuple[Buffer, Buffer] = self.ops.decomposed("cfft", re, im, **attributes)
            return parts
        check_dtypes("cfft", re, im, floats=True)
        sign = 1 if inverse else -1
        return self._transformed(re, im, shape, axis, factors, sign=sign)

    def _transformed(
        self,
        re: Buffer,
        im: Buffer | None,
        shape: tuple[int, ...],
        axis: int,
        factors: tuple[int, ...],
        *,
        sign: int,
        mirrored: bool = False,
    ) -> tuple[Buffer, Buffer]:
        launcher, dtype, n = self.launcher, re.dtype, math.prod(factors)
        wide = accumulator_dtype(dtype)
        order = (*[number for number in range(len(shape)) if number != axis], axis)
        re = launcher.dense(re.permuted(order))
        im = re if im is None else launcher.dense(im.permuted(order))
        is_real = im is re
        length, kept = re.shape[-1], shape[axis]
        outer = re.shape[:-1]
        rows, done, left = math.prod(outer), 1, n
        circle = self.tables(_unit_circle, n, wide)
        for number, p in enumerate(factors):
            left //= p
            first, last = number == 0, number == len(factors) - 1
            columns = kept if last else n
            target = dtype if last else wide
            out = [launcher.empty((*outer, columns), target) for _ in range(2)]
            definitions: dict[str, str | int] = {"IS_FIRST": int(first), "IS_LAST": int(last)}
            definitions["IS_REAL"] = int(is_real and first)
            items = rows * columns
            if p <= _RADICES[-1]:
                items = rows * (n // p)
                definitions |= {"P": p, "INDEX": "uint" if rows * n < INT32_LIMIT else "ulong"}
            kernel = launcher.kernel("transform", "fourier.cl", c_type_of(dtype), definitions)
            scale = signed_scalar_bits(1.0 / n if mirrored else 1.0, wide)
            codes = DTYPE_CODES[re.dtype.name], DTYPE_CODES[target.name]
            parameters = (
                rows,
                n,
                p,
                done,
                left,
                columns,
                length,
                sign,
                re.offset,
                im.offset,
                *codes,
            )
            memories = [buffer.memory for buffer in (re, im, *circle, *out)]
            launcher.run(kernel, items, (*parameters, int(mirrored), scale), memories)
            re, im = out
            done *= p
        back = [order.index(number) for number in range(len(shape))]
        return re.permuted(back), im.permuted(back)


@functools.lru_cache(maxsize=512)
def radices(n: int) -> tuple[int, ...] | None:
    """Factors of a length, one for each kernel; None if a prime factor is too large."""
    factors = []
    rest = n
    for radix in _RADICES:
        while rest % radix == 0:
            factors.append(radix)
            rest //= radix
    candidate = 17
    while rest > 1 and candidate * candidate <= rest:
        while rest % candidate == 0:
            factors.append(candidate)
            rest //= candidate
        candidate += 2
    if rest > 1:
        factors.append(rest)
    if max(factors, default=1) > _MAX_PRIME_FACTOR:
        return None
    return tuple(factors) or (1,)


def _unit_circle(n: int, dtype: DType) -> list[np.ndarray[Any, Any]]:
    """Cosines and sines of the multiples of 2 pi / n."""
    angle = np.arange(n) * (2.0 * math.pi / n)
    return [np.cos(angle).astype(dtype.numpy), np.sin(angle).astype(dtype.numpy)]
