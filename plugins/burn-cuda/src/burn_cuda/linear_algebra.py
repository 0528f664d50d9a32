"""Matrix products: cuBLAS for inexact dtypes, which reads transposed memory, else a kernel."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Final, NamedTuple

from burn.plugin_api import DType, Shape, float32
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type
from burn_cuda.kernels.elementwise import Program
from burn_cuda.launcher import broadcast

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["LinearAlgebraOps", "write_product"]


_TILE_SIDE: Final = 16


def _is_inexact(dtype: DType) -> bool:
    return dtype.is_float or dtype.is_complex


class _Matrices(NamedTuple):
    """Matrices as arguments of cuBLAS: memory, orientation, row stride and matrix stride."""

    x: Array
    transposed: bool
    leading: int
    step: int


class _Plan(NamedTuple):
    """The arguments of one product of two matrices."""

    shape: tuple[int, int, int]
    transposed: tuple[bool, bool]
    leading: tuple[int, int]


@functools.lru_cache(maxsize=4096)
def _plan(
    shape1: Shape, strides1: tuple[int, ...], shape2: Shape, strides2: tuple[int, ...], item: int
) -> _Plan | None:
    """The plan of a product of two matrices; None for operands that cuBLAS cannot read."""
    if len(shape1) != 2 or len(shape2) != 2 or shape1[1] != shape2[0] or 0 in (*shape1, *shape2):
        return None
    left, right = _orientation(shape1, strides1, item), _orientation(shape2, strides2, item)
    if left is None or right is None:
        return None
    shape = (shape1[0], shape2[1], shape1[1])
    return _Plan(shape, (left[0], right[0]), (left[1], right[1]))


def _matrices(launcher: Launcher, x: Array, batch: Shape) -> _Matrices:
    """The matrices of an operand for a batch of products; a copy where the strides require one."""
    rows, columns = x.shape[-2:]
    own = x.shape[:-2]
    if math.prod(own) == 1:
        x = x.reshape(rows, columns) if launcher.is_dense(x) else x[(0,) * len(own)]
        orientation = _orientation(x.shape, x.strides, x.dtype.itemsize)
        if orientation is None:
            return _Matrices(launcher.copied(x), transposed=False, leading=columns, step=0)
        return _Matrices(x, *orientation, 0)
    if own != batch:
        x = launcher.runtime.view(
            x, (*batch, rows, columns), _expanded_strides(x, (*batch, rows, columns))
        )
    orientation = _orientation(x.shape, x.strides, x.dtype.itemsize)
    step = _matrix_stride(x)
    if orientation is None or step is None:
        return _Matrices(launcher.copied(x), transposed=False, leading=columns, step=rows * columns)
    return _Matrices(x, *orientation, step)


def _orientation(shape: Shape, strides: tuple[int, ...], item: int) -> tuple[bool, int] | None:
    """Whether matrices are transposed in memory, and their row stride; None for other layouts."""
    rows, columns = shape[-2:]
    down, across = strides[-2] // item, strides[-1] // item
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return False, max(down, columns) if rows > 1 else columns
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return True, max(across, rows) if columns > 1 else rows
    return None


def _matrix_stride(x: Array) -> int | None:
    """Stride between matrices in elements; None if it is not the same for all."""
    item = x.dtype.itemsize
    step, covered = None, 1
    for length, stride in zip(reversed(x.shape[:-2]), reversed(x.strides[:-2]), strict=True):
        if length == 1:
            continue
        if step is None:
            step = stride // item
        elif stride != step * item * covered:
            return None
        covered *= length
    return step if step is None or step >= 0 else None


def _expanded_strides(x: Array, shape: Shape) -> list[int]:
    missing = len(shape) - len(x.shape)
    return [0] * missing + [
        stride if length == wanted else 0
        for length, wanted, stride in zip(x.shape, shape[missing:], x.strides, strict=True)
    ]


def write_product(launcher: Launcher, x1: Array, x2: Array, out: Array) -> None:
    """Write products of floats to a dense array, which for 16-bit floats may be float32."""
    batch = out.shape[:-2]
    rows, terms = x1.shape[-2:]
    columns = x2.shape[-1]
    if not out.size:
        return
    if not terms:
        launcher.runtime.zero(out)
        return
    count = math.prod(batch)
    one_right = math.prod(x2.shape[:-2]) == 1 and x1.size == count * rows * terms
    if count > 1 and one_right and launcher.is_dense(x1):
        x1, rows, count, batch = x1.reshape(-1, terms), count * rows, 1, ()
    left, right = _matrices(launcher, x1, batch), _matrices(launcher, x2, batch)
    launcher.runtime.gemm(
        left.x,
        right.x,
        out,
        (rows, columns, terms),
        transposed=(left.transposed, right.transposed),
        leading=(left.leading, right.leading),
        strides=(left.step, right.step, rows * columns),
        batch=count,
    )


@functools.cache
def _sum_program(dtype: DType) -> Program:
    """A float32 and an element of a dtype of 16 bits, added and rounded to that."""
    return Program("r0 = x0 + x1;", (float32, dtype), (False, False), (dtype,))


class LinearAlgebraOps(CudaOps):
    """Matrix products."""

    def matmul(self, x1: Array, x2: Array) -> Array:
        """Batches broadcast; a batch times one matrix is one product."""
        launcher = self.launcher
        dtype = launcher.dtypes[x1.dtype]
        plan = _plan(x1.shape, x1.strides, x2.shape, x2.strides, x1.dtype.itemsize)
        if plan is not None and x2.dtype is x1.dtype and _is_inexact(dtype):
            out = launcher.empty((plan.shape[0], plan.shape[1]), x1.dtype)
            launcher.runtime.gemm(
                x1, x2, out, plan.shape, transposed=plan.transposed, leading=plan.leading
            )
            return out
        if x2.dtype is not x1.dtype or dtype.is_bool:
            raise TypeError(f"a product of {x1.dtype} and {x2.dtype}")
        if len(x1.shape) < 2 or len(x2.shape) < 2 or x1.shape[-1] != x2.shape[-2]:
            raise ValueError(f"a product of shapes {x1.shape} and {x2.shape}")
        batch = broadcast((x1.shape[:-2], x2.shape[:-2]))
        out = launcher.empty((*batch, x1.shape[-2], x2.shape[-1]), x1.dtype)
        if dtype.is_integer and out.size and x1.shape[-1]:
            self._integers(x1, x2, out, batch)
        else:
            write_product(launcher, x1, x2, out)
        return out

    def linear(
        self, x: Array, weight: Array, bias: Array | None, *, transposed: bool = False
    ) -> Array:
        """16-bit floats are multiplied as they are, and rounded when the bias has been added."""
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        fits = len(x.shape) > 1 and weight.dtype is x.dtype and dtype.is_float
        if dtype.itemsize > 2 or not fits:
            return self.ops.decomposed("linear", x, weight, bias, transposed=transposed)
        matrix = weight.transpose() if transposed else weight
        if bias is None:
            return self.matmul(x, matrix)
        rows = launcher.dense(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
        plan = _plan(rows.shape, rows.strides, matrix.shape, matrix.strides, x.dtype.itemsize)
        shape = (*x.shape[:-1], matrix.shape[1])
        if plan is not None:
            out = launcher.empty(shape, x.dtype)
            if launcher.runtime.gemm(
                rows,
                matrix,
                out,
                plan.shape,
                transposed=plan.transposed,
                leading=plan.leading,
                bias=launcher.dense(bias),
            ):
                return out
        wide = launcher.empty(shape, float32.numpy)
        write_product(launcher, rows, matrix, wide.reshape(rows.shape[0], shape[-1]))
        (out,) = launcher.elementwise(_sum_program(dtype), (wide, bias))
        return out

    def _integers(self, x1: Array, x2: Array, out: Array, batch: Shape) -> None:
        launcher = self.launcher
        rows, terms = x1.shape[-2:]
        columns = x2.shape[-1]
        operands, steps = [], []
        for x in (x1, x2):
            one = math.prod(x.shape[:-2]) == 1
            if not one and x.shape[:-2] != batch:
                shape = (*batch, *x.shape[-2:])
                x = launcher.runtime.view(x, shape, _expanded_strides(x, shape))  # noqa: PLW2901 — the same operand
            operands.append(launcher.dense(x))
            steps.append(0 if one else x.shape[-2] * x.shape[-1])
        across, down = -(-columns // _TILE_SIDE), -(-rows // _TILE_SIDE)
        kernel = launcher.kernel(
            "matmul", "integer_matmul.cu", T=c_type(launcher.dtypes[out.dtype])
        )
        launcher.run_blocks(
            kernel,
            across * down * math.prod(batch),
            *operands,
            out,
            rows,
            columns,
            terms,
            across,
            down,
            *steps,
        )
