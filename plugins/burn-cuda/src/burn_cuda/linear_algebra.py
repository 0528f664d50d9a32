"""Matrix products: cuBLAS for inexact dtypes, which reads transposed memory, else a kernel."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    """Matrices as cuBLAS reads them: orientation, row stride and matrix stride."""

    transposed: bool
    leading: int
    step: int


class _BatchPlan(NamedTuple):
    """The products of a batch; an operand whose matrices are None is copied first."""

    left: _Matrices | None
    right: _Matrices | None
    shape: tuple[int, int, int]
    products: int


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


class _LinearPlan(NamedTuple):
    """The shape of the result, and the product of a dense matrix of rows and a weight."""

    output: Shape
    shape: tuple[int, int, int]
    is_transposed: bool
    leading: tuple[int, int]


@functools.lru_cache(maxsize=4096)
def _linear_plan(
    shape: Shape,
    weight_shape: Shape,
    strides: tuple[int, ...],
    item: int,
    transposed: bool,
) -> _LinearPlan | None:
    """The plan of a linear layer; None for what the default computes, or refuses."""
    if transposed:
        weight_shape, strides = weight_shape[::-1], strides[::-1]
    if len(weight_shape) != 2 or len(shape) < 2 or shape[-1] != weight_shape[0]:
        return None
    rows, (inputs, outputs) = math.prod(shape[:-1]), weight_shape
    orientation = _orientation(weight_shape, strides, item)
    if orientation is None or 0 in (rows, inputs, outputs):
        return None
    own = (rows, outputs, inputs)
    return _LinearPlan((*shape[:-1], outputs), own, orientation[0], (inputs, orientation[1]))


def _matrices(shape: Shape, strides: tuple[int, ...], batch: Shape, item: int) -> _Matrices | None:
    """The matrices of an operand for a batch of products; None for layouts that need a copy."""
    orientation = _orientation(shape, strides, item)
    if orientation is None:
        return None
    if math.prod(shape[:-2]) == 1:
        return _Matrices(*orientation, 0)
    step = _matrix_stride(batch, _expanded_strides(shape, strides, batch), item)
    return None if step is None else _Matrices(*orientation, step)


def _orientation(shape: Shape, strides: tuple[int, ...], item: int) -> tuple[bool, int] | None:
    """Whether matrices are transposed in memory, and their row stride; None for other layouts."""
    rows, columns = shape[-2:]
    down, across = strides[-2] // item, strides[-1] // item
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return False, max(down, columns) if rows > 1 else columns
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return True, max(across, rows) if columns > 1 else rows
    return None


def _matrix_stride(batch: Shape, strides: tuple[int, ...], item: int) -> int | None:
    """Stride between matrices in elements; None if it is not the same for all."""
    step, covered = None, 1
    for length, stride in zip(reversed(batch), reversed(strides), strict=True):
        if length == 1:
            continue
        if step is None:
            step = stride // item
        elif stride != step * item * covered:
            return None
        covered *= length
    return step if step is None or step >= 0 else None


def _expanded_strides(shape: Shape, strides: tuple[int, ...], batch: Shape) -> tuple[int, ...]:
    """Strides along the axes of a batch, 0 where an operand broadcasts."""
    own = shape[:-2]
    missing = len(batch) - len(own)
    return (0,) * missing + tuple(
        [
            stride if length == wanted else 0
            for length, wanted, stride in zip(own, batch[missing:], strides[:-2], strict=True)
        ]
    )


@functools.lru_cache(maxsize=4096)
def _batch_plan(
    shape1: Shape,
    strides1: tuple[int, ...],
    shape2: Shape,
    strides2: tuple[int, ...],
    batch: Shape,
    item: int,
) -> _BatchPlan:
    """The plan of a batch of products; a dense batch times one matrix is one product."""
    left, right = [
        _matrices(shape, strides, batch, item)
        for shape, strides in ((shape1, strides1), (shape2, strides2))
    ]
    rows, terms = shape1[-2:]
    shape, count = (rows, shape2[-1], terms), math.prod(batch)
    if count > 1 and math.prod(shape2[:-2]) == 1 and left == (False, terms, rows * terms):
        left, shape, count = left._replace(step=0), (count * rows, shape2[-1], terms), 1
    return _BatchPlan(left, right, shape, count)


def _readable(launcher: Launcher, x: Array, batch: Shape) -> Array:
    """A dense copy of the matrices of an operand for a batch."""
    if math.prod(x.shape[:-2]) > 1:
        strides = (*_expanded_strides(x.shape, x.strides, batch), *x.strides[-2:])
        x = launcher.runtime.view(x, (*batch, *x.shape[-2:]), strides)
    return launcher.copied(x)


def write_product(launcher: Launcher, x1: Array, x2: Array, out: Array) -> None:
    """Write products of floats to a dense array, which for 16-bit floats may be float32."""
    batch = out.shape[:-2]
    if not out.size:
        return
    if not x1.shape[-1]:
        launcher.runtime.zero(out)
        return
    item = x1.dtype.itemsize
    plan = _batch_plan(x1.shape, x1.strides, x2.shape, x2.strides, batch, item)
    if plan.left is None or plan.right is None:
        x1 = _readable(launcher, x1, batch) if plan.left is None else x1
        x2 = _readable(launcher, x2, batch) if plan.right is None else x2
        plan = _batch_plan(x1.shape, x1.strides, x2.shape, x2.strides, batch, item)
    left: Any = plan.left  # a dense copy has matrices
    right: Any = plan.right
    rows, columns, _ = plan.shape
    launcher.runtime.gemm(
        x1,
        x2,
        out,
        plan.shape,
        transposed=(left.transposed, right.transposed),
        leading=(left.leading, right.leading),
        strides=(left.step, right.step, rows * columns),
        batch=plan.products,
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
        """One product, which adds the bias where cuBLASLt does; 16 bits are rounded after that.

        Of matrices whose rows are no multiples of 16 bytes cuBLASLt rounds them before, too.
        """
        launcher = self.launcher
        dtype = x.dtype
        plan = _linear_plan(x.shape, weight.shape, weight.strides, dtype.itemsize, transposed)
        vectors = () if bias is None else (bias,)
        if (
            plan is None
            or any(tensor.dtype is not dtype for tensor in (weight, *vectors))
            or any(vector.shape != plan.output[-1:] for vector in vectors)
            or not launcher.dtypes[dtype].is_float
        ):
            return self.ops.decomposed("linear", x, weight, bias, transposed=transposed)
        x = launcher.dense(x)
        out = launcher.empty(plan.output, dtype)
        multiply = functools.partial(
            launcher.runtime.gemm,
            x,
            weight,
            shape=plan.shape,
            transposed=(False, plan.is_transposed),
            leading=plan.leading,
        )
        if bias is None:
            multiply(out)
            return out
        is_wide = dtype.itemsize >= float32.itemsize
        is_exact = is_wide or not any(length % 8 for length in plan.shape[1:])
        if is_exact and multiply(out, bias=launcher.dense(bias)):
            return out
        if is_wide:
            multiply(out)
            return self.add(out, bias)
        wide = launcher.empty(plan.output, float32.numpy)
        multiply(wide)
        (out,) = launcher.elementwise(_sum_program(launcher.dtypes[dtype]), (wide, bias))
        return out

    def linear_grad(self, x: Array, g: Array, *, transposed: bool = False) -> tuple[Array, Array]:
        """One product, and the sum of the columns of `g`."""
        launcher = self.launcher
        dtype, inputs, outputs = x.dtype, x.shape[-1], g.shape[-1]
        rows = math.prod(x.shape[:-1])
        fits = rows and inputs and outputs and x.shape[:-1] == g.shape[:-1]
        if not fits or g.dtype is not dtype or not launcher.dtypes[dtype].is_float:
            to_weight, to_bias = self.ops.decomposed("linear_grad", x, g, transposed=transposed)
            return to_weight, to_bias
        x, g = launcher.dense(x), launcher.dense(g)
        shape = (outputs, inputs) if transposed else (inputs, outputs)
        to_weight = launcher.empty(shape, dtype)
        operands = (g, x) if transposed else (x, g)
        launcher.runtime.gemm(*operands, to_weight, (*shape, rows), transposed=(True, False))
        axis = tuple(range(len(g.shape) - 1))
        return to_weight, self.sum(g, axis=axis, dtype=launcher.dtypes[dtype])

    def _integers(self, x1: Array, x2: Array, out: Array, batch: Shape) -> None:
        launcher = self.launcher
        rows, terms = x1.shape[-2:]
        columns = x2.shape[-1]
        operands, steps = [], []
        for x in (x1, x2):
            one = math.prod(x.shape[:-2]) == 1
            if not one and x.shape[:-2] != batch:
                shape = (*batch, *x.shape[-2:])
                strides = (*_expanded_strides(x.shape, x.strides, batch), *x.strides[-2:])
                x = launcher.runtime.view(x, shape, strides)  # noqa: PLW2901 — the same operand
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
