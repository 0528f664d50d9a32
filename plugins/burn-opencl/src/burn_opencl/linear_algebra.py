"""Matrix products: small ones element by element, large ones as the device likes them best."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import float32
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of
from burn_opencl.forms import broadcast
from burn_opencl.launcher import Rows
from burn_opencl.products import Product, multiply_panels, multiply_tiles, split
from burn_opencl.reduction import partial_dtype

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["LinearAlgebraOps"]

_SMALL: Final = 1 << 14
"""Products of fewer multiplications are made element by element."""

_LONG: Final = 512
"""Sums of so many products take an item of a GPU too long."""


class LinearAlgebraOps:
    """Matrix products; 16-bit floats are added up in float32."""

    launcher: Launcher
    cast: Any
    reduce_parts: Any

    def matmul(self, x1: Buffer, x2: Buffer) -> Buffer:
        """Operands are read where they lie, whatever their strides."""
        dtype = x1.dtype
        if x2.dtype is not dtype or dtype.is_bool:
            raise TypeError(f"a product of {dtype} and {x2.dtype}")
        m, inner = x1.shape[-2:]
        other, n = x2.shape[-2:]
        if inner != other:
            raise ValueError(f"{x1.shape} times {x2.shape}")
        batch = broadcast([x1.shape[:-2], x2.shape[:-2]])
        out = self.launcher.empty((*batch, m, n), dtype)
        self.matmul_into(x1, x2, out)
        return out

    def matmul_into(self, x1: Buffer, x2: Buffer, out: Buffer) -> None:
        """The same, written to dense memory that is new."""
        launcher, dtype = self.launcher, x1.dtype
        batch, (m, n), inner = out.shape[:-2], out.shape[-2:], x1.shape[-1]
        if not out.size:
            return
        count = math.prod(batch)
        work = count * m * n * inner
        floating = dtype.is_float
        if floating and dtype.itemsize == 2 and work >= _SMALL and launcher.runtime.is_cpu:
            # What is read over and over is converted once.
            x1 = self.cast(x1, dtype=float32)
        if batch and not x2.shape[:-2] and x1.is_dense:
            # One matrix for all: the batch is more rows.
            m, count, batch = count * m, 1, ()
            x1 = x1.viewed((m, inner), (inner, 1))
        left, first = _batched(launcher, x1, batch)
        right, second = _batched(launcher, x2, batch)
        numbers = [count, m, inner, n, left.offset, right.offset, *first, *second]
        numbers += [CODES[x2.dtype.name], CODES[dtype.name], out.offset]
        computed = class_of(dtype)

        def kernel(name: str, **more: str | int) -> Any:
            return launcher.kernel(name, "matmul.cl", computed, more)

        small = work < _SMALL and (launcher.runtime.is_cpu or inner < _LONG)
        if not floating or small or not inner:
            memories = (left.memory, right.memory, out.memory)
            numbers[-3] = CODES[x1.dtype.name]
            launcher.run(kernel("multiply_each"), out.size, numbers, memories)
        else:
            product = Product(count, m, inner, n, left, right, first, second)
            if launcher.runtime.is_cpu:
                multiply_panels(launcher, product, out)
            else:
                tiles = functools.partial(self._multiply_tiles, product, out)
                launcher.clblast.multiply(product, out, tiles)

    def _multiply_tiles(self, product: Product, out: Buffer) -> None:
        """In tiles; where those are few, in parts that are added up in their order."""
        launcher = self.launcher
        parts, chunk = split(launcher, product)
        if parts == 1 or out.offset:  # sums of parts are written to the start of memory
            multiply_tiles(launcher, product, out)
            return
        each = launcher.empty((product.matrices, parts, *out.shape[-2:]), partial_dtype(out.dtype))
        multiply_tiles(launcher, product, each, parts, chunk)
        rows = Rows(each, product.matrices, parts, product.m * product.n)
        source, target = CODES[each.dtype.name], CODES[out.dtype.name]
        self.reduce_parts("sum", rows, 1, parts, source, target, out.memory)


def _batched(
    launcher: Launcher, x: Buffer, batch: tuple[int, ...]
) -> tuple[Buffer, tuple[int, int, int]]:
    """A tensor, and its strides from matrix to matrix, from row to row and from column to column.

    It is copied where the matrices do not follow each other at one distance.
    """
    view = x.expanded((*batch, *x.shape[-2:]))
    rows, columns = view.strides[-2:]
    step = _single_stride(batch, view.strides[:-2])
    if step is None:
        view = launcher.copied(view)
        rows, columns = view.strides[-2:]
        step = rows * view.shape[-2]
    return view, (step, rows, columns)


def _single_stride(lengths: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Distance from one place to the next over several axes, where there is one."""
    step: int | None = 0
    ahead: int | None = None
    for length, stride in zip(reversed(lengths), reversed(strides), strict=True):
        if length == 1:
            continue
        if ahead is None:
            step = stride
        elif stride != ahead:
            return None
        ahead = stride * length
    return step
