"""Convolutions: windows as columns of a matrix (im2col), some examples at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Unpack

from burn.plugin_api import (
    ConvAttributes,
    ConvGeometry,
    ConvWeightGradAttributes,
    OpTable,
    check_conv_bias,
    conv_geometry,
    conv_weight_grad_geometry,
    fits_windows,
    in_float32,
    launch_columns,
)
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["ConvolutionOps"]

_MAX_COLUMN_ELEMENTS: Final = 1 << 22
"""Elements of the matrices of columns that are in memory at a time."""


class ConvolutionOps(OpenClOps):
    """Convolution and its gradient by the weight; that by the operand is a convolution too."""

    def conv(
        self, x: Buffer, weight: Buffer, bias: Buffer | None, **attributes: Unpack[ConvAttributes]
    ) -> Buffer:
        """A matrix product for each group and example."""
        result: Buffer = _conv(self.ops, x, weight, bias, **attributes)
        return result

    def conv_weight_grad(
        self, x: Buffer, g: Buffer, **attributes: Unpack[ConvWeightGradAttributes]
    ) -> Buffer:
        """A matrix product for each group and example, and a sum over the examples."""
        result: Buffer = _weight_grad(self.ops, x, g, **attributes)
        return result


@in_float32
def _conv(ops: OpTable, x: Buffer, weight: Buffer, bias: Buffer | None, **attributes: Any) -> Any:
    plan = conv_geometry(x.shape, weight.shape, **attributes)
    if not fits_windows(plan.axes):
        return ops.decomposed("conv", x, weight, bias, **attributes)
    check_conv_bias(bias, plan.outputs)
    check_dtypes("conv", x, weight, bias)
    device = x.owner
    launcher: Launcher = device.launcher
    x = launcher.dense(x)
    groups, features, count = plan.groups, plan.outputs // plan.groups, math.prod(plan.counts)
    matrices = ops.reshape(weight, shape=(1, groups, features, plan.terms))
    output = launcher.empty((plan.batch, groups, features, count), x.dtype)
    if output.size:
        for start, examples in _parts(plan, count):
            columns = _columns(launcher, x, plan, start, examples)
            target = output.viewed(
                (examples, *output.shape[1:]), output.strides, start * output.strides[0]
            )
            device.matmul_into(matrices, columns, target)
    output = ops.reshape(output, shape=plan.output_shape)
    if bias is None:
        return output
    return ops.add(output, ops.reshape(bias, shape=(plan.outputs, *[1] * len(plan.axes))))


@in_float32
def _weight_grad(ops: OpTable, x: Buffer, g: Buffer, **attributes: Any) -> Any:
    plan = conv_weight_grad_geometry(x.shape, g.shape, **attributes)
    if not fits_windows(plan.axes):
        return ops.decomposed("conv_weight_grad", x, g, **attributes)
    check_dtypes("conv_weight_grad", x, g)
    device = x.owner
    launcher: Launcher = device.launcher
    x = launcher.dense(x)
    groups, features, count = plan.groups, plan.outputs // plan.groups, math.prod(plan.counts)
    g = ops.reshape(g, shape=(plan.batch, groups, features, count))
    products = launcher.empty((plan.batch, groups, features, plan.terms), x.dtype)
    if products.size:
        for start, examples in _parts(plan, count):
            columns = _columns(launcher, x, plan, start, examples).permuted((0, 1, 3, 2))
            part = g.viewed((examples, *g.shape[1:]), g.strides, g.offset + start * g.strides[0])
            target = products.viewed(
                (examples, *products.shape[1:]), products.strides, start * products.strides[0]
            )
            device.matmul_into(part, columns, target)
    total = ops.sum(products, axis=(0,), keepdims=False, dtype=x.dtype)
    return ops.reshape(total, shape=plan.weight_shape)


def _parts(plan: ConvGeometry, count: int) -> list[tuple[int, int]]:
    """First example and number of examples of each part."""
    per_part = max(1, _MAX_COLUMN_ELEMENTS // max(1, plan.groups * plan.terms * count))
    return [(start, min(per_part, plan.batch - start)) for start in range(0, plan.batch, per_part)]


def _columns(
    launcher: Launcher, x: Buffer, plan: ConvGeometry, start: int, examples: int
) -> Buffer:
    """Windows of some examples: a column for each window, a matrix for each group."""
    count = math.prod(plan.counts)
    out = launcher.empty((examples, plan.groups, plan.terms, count), x.dtype)
    part = x.viewed((examples, *x.shape[1:]), x.strides, x.offset + start * x.strides[0])
    launch_columns(launcher, part, plan.axes, out)
    return out
