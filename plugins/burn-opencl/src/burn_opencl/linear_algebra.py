"""Matrix products: small ones by an item per element, large ones by panels or tiles."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Final

from burn.plugin_api import DTYPE_CODES, accumulator_dtype, c_type_of, float32
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes
from burn_opencl.elementwise import ElementwiseOps
from burn_opencl.elementwise_variants import broadcast
from burn_opencl.gemm import Gemm, multiply_panels, multiply_tiles, split_inner
from burn_opencl.launcher import Rows
from burn_opencl.layout import LayoutOps
from burn_opencl.reduction import reduce_parts

if TYPE_CHECKING:
    from burn.plugin_api import Shape
    from burn_opencl.launcher import Launcher

__all__ = ["LinearAlgebraOps"]

_MIN_MULTIPLICATIONS_FOR_TILES: Final = 1 << 14
"""Products of fewer multiplications are computed by an item per element."""

_MAX_TERMS_PER_GPU_ITEM: Final = 512
"""Sums of more terms take an item of a GPU too long, also in small products."""


class LinearAlgebraOps(ElementwiseOps, LayoutOps):
    """Matrix products; 16-bit floats are added in float32."""

    def matmul(self, x1: Buffer, x2: Buffer) -> Buffer:
        """Operands may have any strides."""
        dtype = x1.dtype
        check_dtypes("matmul", x1, x2)
        if dtype.is_bool:
            raise TypeError(f"matmul of {dtype}")
        m, inner = x1.shape[-2:]
        other, n = x2.shape[-2:]
        if inner != other:
            raise ValueError(f"{x1.shape} times {x2.shape}")
        batch = broadcast([x1.shape[:-2], x2.shape[:-2]])
        if dtype.is_complex:
            return self._complex_matmul(x1, x2, (*batch, m, n))
        out = self.launcher.empty((*batch, m, n), dtype)
        self.matmul_into(x1, x2, out)
        return out

    def _complex_matmul(self, x1: Buffer, x2: Buffer, shape: Shape) -> Buffer:
        """Real parts times `x2`, and imaginary parts times ``i * x2``: two real products, added.

        Both add in the same order, so the product of a matrix and its adjoint is hermitian.
        """
        launcher, dtype = self.launcher, x1.dtype
        if x1.is_dense and len(x2.shape) == 2:
            x1 = x1.viewed((math.prod(shape[:-1]), x1.shape[-1]), (x1.shape[-1], 1))
        rank = max(len(x1.shape), len(x2.shape))
        left = _with_rank(x1, rank).parts.permuted((rank, *range(rank)))
        right = launcher.empty((2, *_with_rank(x2, rank).shape), dtype)
        words = right.parts
        launcher.write(words.at(0), x2.parts)
        launcher.write(words.at(1), self.flip(self.conj(x2).parts, axes=(len(x2.shape),)))
        columns = right.shape[-1]
        products = self.matmul(left, self.reshape(words, shape=(*right.shape[:-1], 2 * columns)))
        result = self.add(products.at(0), products.at(1))
        return self.reshape(result, shape=(*shape, 2)).of_parts(dtype)

    def matmul_into(self, x1: Buffer, x2: Buffer, out: Buffer) -> None:
        """Write the product to new, dense memory."""
        launcher, dtype = self.launcher, x1.dtype
        batch, (m, n), inner = out.shape[:-2], out.shape[-2:], x1.shape[-1]
        if not out.size:
            return
        count = math.prod(batch)
        work = count * m * n * inner
        floating = dtype.is_float
        if (
            floating
            and dtype.itemsize == 2
            and work >= _MIN_MULTIPLICATIONS_FOR_TILES
            and launcher.runtime.is_cpu
        ):
            # Its elements are read many times, so they are converted once.
            x1 = self.cast(x1, dtype=float32)
        if batch and not x2.shape[:-2] and x1.is_dense:
            # All products have the same right matrix: the batch is more rows of the left one.
            m, count, batch = count * m, 1, ()
            x1 = x1.viewed((m, inner), (inner, 1))
        left, first = _batched(launcher, x1, batch)
        right, second = _batched(launcher, x2, batch)
        small = work < _MIN_MULTIPLICATIONS_FOR_TILES and (
            launcher.runtime.is_cpu or inner < _MAX_TERMS_PER_GPU_ITEM
        )
        if not floating or small or not inner:
            codes = (DTYPE_CODES[x1.dtype.name], DTYPE_CODES[dtype.name])
            parameters = [count, m, inner, n, left.offset, right.offset, *first, *second]
            kernel = launcher.kernel("multiply_elements", "matmul.cl", c_type_of(dtype))
            memories = (left.memory, right.memory, out.memory)
            launcher.run(kernel, out.size, (*parameters, *codes, out.offset), memories)
        else:
            product = Gemm(count, m, inner, n, left, right, first, second)
            if launcher.runtime.is_cpu:
                multiply_panels(launcher, product, out)
            else:
                tiles = functools.partial(self._multiply_tiles, product, out)
                launcher.clblast.multiply(product, out, tiles)

    def _multiply_tiles(self, product: Gemm, out: Buffer) -> None:
        """By tiles; where those are few, by parts of the inner axis, which are added in order."""
        launcher = self.launcher
        parts, chunk = split_inner(launcher, product)
        if parts == 1 or out.offset:  # `reduce_parts` writes to the start of memory
            multiply_tiles(launcher, product, out)
            return
        shape = (product.matrices, parts, product.m, product.n)
        partial = launcher.empty(shape, accumulator_dtype(out.dtype))
        multiply_tiles(launcher, product, partial, parts, chunk)
        rows = Rows(partial, product.matrices, parts, product.m * product.n)
        reduce_parts(launcher, "sum", rows, 1, parts, out)


def _with_rank(x: Buffer, rank: int) -> Buffer:
    """A view with axes of length 1 before the others."""
    more = rank - len(x.shape)
    return x.viewed((1,) * more + x.shape, (0,) * more + x.strides)


def _batched(
    launcher: Launcher, x: Buffer, batch: tuple[int, ...]
) -> tuple[Buffer, tuple[int, int, int]]:
    """A tensor, and its strides from matrix to matrix, from row to row and from column to column.

    It is copied where no single stride leads from matrix to matrix.
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
    """The stride that leads from index to index over several axes; None if there is none."""
    step: int | None = 0
    expected: int | None = None
    for length, stride in zip(reversed(lengths), reversed(strides), strict=True):
        if length == 1:
            continue
        if expected is None:
            step = stride
        elif stride != expected:
            return None
        expected = stride * length
    return step
