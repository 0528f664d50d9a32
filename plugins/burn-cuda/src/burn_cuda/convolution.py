"""Convolutions by im2col and cuBLAS, for a range of images at a time; by cuDNN or Winograd."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Unpack

from burn.plugin_api import (
    ConvAttributes,
    ConvGeometry,
    ConvTransposeAttributes,
    ConvWeightGradAttributes,
    DType,
    Shape,
    check_conv_bias,
    conv_geometry,
    conv_transpose_geometry,
    conv_weight_grad_geometry,
    fits_windows,
    float32,
    launch_columns,
    launch_fold,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.linear_algebra import write_product
from burn_cuda.winograd import Winograd

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["ConvolutionOps"]


_MAX_COLUMN_BYTES: Final = 1 << 30
_COLUMN_MEMORY_SHARE: Final = 64
"""Columns take at most this part of the memory of the GPU, and these bytes, for any batch."""


def _accumulator_dtype(dtype: DType) -> DType:
    return float32 if dtype.itemsize < 4 else dtype


class ConvolutionOps(CudaOps):
    """Convolutions over any number of axes; 16-bit floats add up in float32."""

    @functools.cached_property
    def _winograd(self) -> Winograd:
        return Winograd(self.launcher)

    def conv(
        self, x: Array, weight: Array, bias: Array | None, **rule: Unpack[ConvAttributes]
    ) -> Array:
        """The weight times the columns of each image."""
        plan = conv_geometry(x.shape, weight.shape, **rule)
        if not fits_windows(plan.axes):
            return self.ops.decomposed("conv", x, weight, bias, **rule)
        check_conv_bias(bias, plan.outputs)
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        winograd = self._winograd
        if winograd.suits(plan, x.dtype):
            return winograd.forward(launcher.dense(x), weight, bias, plan)
        # With a bias the product is rounded to 16 bits after the addition alone.
        wide = dtype if bias is None else _accumulator_dtype(dtype)
        result = self._by_cudnn("fprop", (x, weight), plan.output_shape, wide, plan)
        if result is not None:
            return result if bias is None else self._with_bias(result, bias, dtype)
        positions = math.prod(plan.counts)
        groups, features = plan.groups, plan.outputs // plan.groups
        out = launcher.empty((plan.batch, groups, features, positions), wide.numpy)
        left = launcher.dense(weight).reshape(1, groups, features, plan.terms)
        for start, stop, columns in self._columns(launcher.dense(x), plan):
            write_product(launcher, left, columns, out[start:stop])
        result = out.reshape(plan.output_shape)
        return result if bias is None else self._with_bias(result, bias, dtype)

    def _with_bias(self, result: Array, bias: Array, dtype: DType) -> Array:
        """Add a bias in float32 and round the sum."""
        wide = self.launcher.dtypes[result.dtype]
        column = self.cast(bias, dtype=wide).reshape(bias.shape[0], *[1] * (result.ndim - 2))
        return self.cast(self.add(result, column), dtype=dtype)

    def _by_cudnn(
        self,
        kind: str,
        operands: tuple[Array, Array],
        shape: Shape,
        dtype: DType,
        plan: ConvGeometry,
    ) -> Array | None:
        """The result of cuDNN; None where it is not installed, or does not suit."""
        launcher = self.launcher
        cudnn = launcher.runtime.cudnn
        if cudnn is None or not cudnn.suits(kind, plan, operands[0].dtype):
            return None
        out = launcher.empty(shape, dtype.numpy)
        dense = [launcher.dense(operand) for operand in operands]
        return out if launcher.runtime.convolve(kind, dense, out, plan) else None

    def conv_transpose(
        self, x: Array, weight: Array, bias: Array | None, **rule: Unpack[ConvTransposeAttributes]
    ) -> Array:
        """The transposed weight times each image, then col2im."""
        plan = conv_transpose_geometry(x.shape, weight.shape, **rule)
        if not fits_windows(plan.axes):
            return self.ops.decomposed("conv_transpose", x, weight, bias, **rule)
        check_conv_bias(bias, plan.inputs)
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        winograd = self._winograd
        if winograd.suits(plan, x.dtype):
            return winograd.backward(launcher.dense(x), weight, bias, plan)
        wide = dtype if bias is None else _accumulator_dtype(dtype)
        result = self._by_cudnn("dgrad", (x, weight), plan.input_shape, wide, plan)
        if result is not None:
            return result if bias is None else self._with_bias(result, bias, dtype)
        positions = math.prod(plan.counts)
        groups, features = plan.groups, plan.outputs // plan.groups
        left = launcher.dense(weight).reshape(1, groups, features, plan.terms)
        left = left.transpose((0, 1, 3, 2))
        right = launcher.dense(x).reshape(plan.batch, groups, features, positions)
        out = launcher.empty(plan.input_shape, x.dtype)
        wide = _accumulator_dtype(dtype)
        for start, stop in self._ranges(plan, wide.itemsize):
            shape = (stop - start, groups, plan.terms, positions)
            columns = launcher.empty(shape, wide.numpy)
            write_product(launcher, left, right[start:stop], columns)
            vector = None if bias is None else launcher.dense(bias)
            images = out[start:stop]
            launch_fold(launcher, columns, plan.axes, vector, images, channels=plan.inputs)
        return out

    def conv_weight_grad(
        self, x: Array, g: Array, **rule: Unpack[ConvWeightGradAttributes]
    ) -> Array:
        """The sum over images of the gradient times the columns of the image."""
        plan = conv_weight_grad_geometry(x.shape, g.shape, **rule)
        if not fits_windows(plan.axes):
            return self.ops.decomposed("conv_weight_grad", x, g, **rule)
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        wide = _accumulator_dtype(dtype)
        winograd = self._winograd
        if winograd.suits(plan, x.dtype):
            return winograd.weight_gradient(launcher.dense(x), launcher.dense(g), plan)
        result = self._by_cudnn("wgrad", (x, g), plan.weight_shape, dtype, plan)
        if result is not None:
            return result
        groups, features = plan.groups, plan.outputs // plan.groups
        positions = math.prod(plan.counts)
        gradients = launcher.dense(g).reshape(plan.batch, groups, features, positions)
        # One product for all images, of which copies are made, or one for each, if that takes less.
        copied = (features + plan.terms * _has_points(plan)) * positions
        joined = features * plan.terms > copied
        total = None
        for start, stop, columns in self._columns(launcher.dense(x), plan, joined=joined):
            own = gradients[start:stop]
            if joined:
                own = _joined(launcher, own)
                part = launcher.empty((groups, features, plan.terms), wide.numpy)
                write_product(launcher, own, columns.transpose((0, 2, 1)), part)
            else:
                each = launcher.empty((stop - start, groups, features, plan.terms), wide.numpy)
                write_product(launcher, own, columns.transpose((0, 1, 3, 2)), each)
                part = self.sum(each, axis=(0,), dtype=wide)
            total = part if total is None else self.add(total, part)
        if total is None:  # no images
            total = launcher.empty((groups, features, plan.terms), wide.numpy)
            launcher.runtime.zero(total)
        return self.cast(total.reshape(plan.weight_shape), dtype=dtype)

    def _ranges(self, plan: ConvGeometry, itemsize: int) -> Iterator[tuple[int, int]]:
        """Ranges of images whose columns fit into the memory."""
        each = max(plan.terms * plan.groups * math.prod(plan.counts), 1)
        room = min(_MAX_COLUMN_BYTES, self.launcher.runtime.memory // _COLUMN_MEMORY_SHARE)
        step = max(1, min(room // (each * itemsize), ((1 << 31) - 1) // each))
        for start in range(0, plan.batch, step):
            yield start, min(start + step, plan.batch)

    def _columns(
        self, x: Array, plan: ConvGeometry, *, joined: bool = False
    ) -> Iterator[tuple[int, int, Array]]:
        """The columns of ranges of images: (images, groups, terms, windows).

        Those of the images of a range lie side by side if `joined`: (groups, terms, windows).
        """
        launcher = self.launcher
        positions = math.prod(plan.counts)
        if _has_points(plan):  # each window is an element
            columns = x.reshape(plan.batch, plan.groups, plan.terms, positions)
            yield 0, plan.batch, _joined(launcher, columns) if joined else columns
            return
        for start, stop in self._ranges(plan, x.dtype.itemsize):
            images = stop - start
            shape: Shape = (images, plan.groups, plan.terms, positions)
            if joined:
                shape = (plan.groups, plan.terms, images * positions)
            columns = launcher.empty(shape, x.dtype)
            launch_columns(
                launcher,
                x[start:stop],
                plan.axes,
                columns,
                channels=plan.inputs,
                images=images * joined,
            )
            yield start, stop, columns


def _has_points(plan: ConvGeometry) -> bool:
    """Whether windows are the elements of the operand."""
    return all(
        axis.kernel == axis.stride == 1 and not axis.before and axis.count == axis.length
        for axis in plan.axes
    )


def _joined(launcher: Launcher, matrices: Array) -> Array:
    """Matrices of images (images, groups, rows, columns) as (groups, rows, all columns)."""
    images, groups, rows, columns = matrices.shape
    moved = launcher.dense(matrices.transpose((1, 2, 0, 3)))
    return moved.reshape(groups, rows, images * columns)
