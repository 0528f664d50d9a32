"""Discrete Fourier transforms: a kernel for each factor of the length."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dtype import DType, float32
from burn.ops import REGISTRY, Meta, OpTable
from burn_opencl.bits import signed_bits
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["FourierOps", "radices"]

_RADICES: Final = (4, 2, 3, 5, 7, 11, 13)
_COUNTED: Final = 1 << 31
_LONGEST: Final = 256
"""A factor that is a larger prime goes through a convolution, as the default has it."""


class FourierOps:
    """Transforms along an axis, of which the parts are tensors of their own."""

    launcher: Launcher
    table: OpTable
    tables: Callable[..., list[Buffer]]

    def rfft(self, x: Buffer, *, axis: int, n: int) -> tuple[Buffer, Buffer]:
        """The first half of the spectrum; no more is computed by the last kernel."""
        metas: Any = REGISTRY["rfft"].infer(Meta(x.shape, x.dtype), axis=axis, n=n)
        factors = radices(n)
        if factors is None:
            return self.table.decomposed("rfft", x, axis=axis, n=n)  # type: ignore[no-any-return]  # Buffers
        check_dtypes("rfft", x, floats=True)
        return self._transformed(x, None, metas[0].shape, axis, factors, sign=-1)

    def irfft(self, re: Buffer, im: Buffer, *, axis: int, n: int) -> Buffer:
        """The first kernel reads the other half where this one is."""
        metas = [Meta(one.shape, one.dtype) for one in (re, im)]
        meta: Any = REGISTRY["irfft"].infer(*metas, axis=axis, n=n)
        factors = radices(n)
        if factors is None:
            return self.table.decomposed("irfft", re, im, axis=axis, n=n)  # type: ignore[no-any-return]  # a Buffer
        check_dtypes("irfft", re, im, floats=True)
        return self._transformed(re, im, meta.shape, axis, factors, sign=1, mirrored=True)[0]

    def cfft(
        self, re: Buffer, im: Buffer, *, axis: int, n: int, inverse: bool = False
    ) -> tuple[Buffer, Buffer]:
        """A kernel for each factor."""
        metas = [Meta(one.shape, one.dtype) for one in (re, im)]
        result: Any = REGISTRY["cfft"].infer(*metas, axis=axis, n=n, inverse=inverse)
        factors = radices(n)
        if factors is None:
            return self.table.decomposed("cfft", re, im, axis=axis, n=n, inverse=inverse)  # type: ignore[no-any-return]  # Buffers
        check_dtypes("cfft", re, im, floats=True)
        sign = 1 if inverse else -1
        return self._transformed(re, im, result[0].shape, axis, factors, sign=sign)

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
        wide = float32 if dtype.itemsize == 2 else dtype
        order = (*[number for number in range(len(shape)) if number != axis], axis)
        re = launcher.dense(re.permuted(order))
        im = re if im is None else launcher.dense(im.permuted(order))
        is_real = im is re
        length, kept = re.shape[-1], shape[axis]
        outer = re.shape[:-1]
        rows, done, left = math.prod(outer), 1, n
        circle = self.tables(_circle, n, wide)
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
                definitions |= {"P": p, "W": "uint" if rows * n < _COUNTED else "ulong"}
            kernel = launcher.kernel("transform", "fourier.cl", class_of(dtype), definitions)
            scale = signed_bits(1.0 / n if mirrored else 1.0, wide)
            codes = CODES[re.dtype.name], CODES[target.name]
            numbers = (rows, n, p, done, left, columns, length, sign, re.offset, im.offset, *codes)
            memories = [one.memory for one in (re, im, *circle, *out)]
            launcher.run(kernel, items, (*numbers, int(mirrored), scale), memories)
            re, im = out
            done *= p
        back = [order.index(number) for number in range(len(shape))]
        return re.permuted(back), im.permuted(back)


@functools.lru_cache(maxsize=512)
def radices(n: int) -> tuple[int, ...] | None:
    """The factors of a length, one for each kernel; None if one of them is too large."""
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
    if max(factors, default=1) > _LONGEST:
        return None
    return tuple(factors) or (1,)


def _circle(n: int, dtype: DType) -> list[np.ndarray[Any, Any]]:
    """Cosine and sine of a turn in n steps."""
    angle = np.arange(n) * (2.0 * math.pi / n)
    return [np.cos(angle).astype(dtype.numpy), np.sin(angle).astype(dtype.numpy)]
