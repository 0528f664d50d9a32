"""Convolutions: what the windows hold as columns of a matrix, some examples at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Unpack

from burn.ops import OpTable
from burn.ops.convolution_windows import (
    Convolution,
    ConvRule,
    ConvWeightGradRule,
    check_bias,
    convolution,
    weight_gradient,
)
from burn.ops.precision import in_float32
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.windows import AXES, launch_windows

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["ConvolutionOps"]

_COLUMNS: Final = 1 << 22
"""Elements of the columns that are there at a time."""


class ConvolutionOps:
    """Convolution and its gradient by the weight; that by the operand is a convolution too."""

    launcher: Launcher
    table: OpTable
    add: Any
    matmul_into: Any
    sum: Any

    def conv(
        self, x: Buffer, weight: Buffer, bias: Buffer | None, **rule: Unpack[ConvRule]
    ) -> Buffer:
        """A product of matrices for each group and example."""
        return _conv(self.table, x, weight, bias, **rule)  # type: ignore[no-any-return]  # a Buffer

    def conv_weight_grad(self, x: Buffer, g: Buffer, **rule: Unpack[ConvWeightGradRule]) -> Buffer:
        """A product for each group and example, and a sum over the examples."""
        return _weight_grad(self.table, x, g, **rule)  # type: ignore[no-any-return]  # a Buffer


@in_float32
def _conv(ops: OpTable, x: Buffer, weight: Buffer, bias: Buffer | None, **attributes: Any) -> Any:
    if len(attributes["stride"]) > AXES:
        return ops.decomposed("conv", x, weight, bias, **attributes)
    plan = convolution(x.shape, weight.shape, **attributes)
    check_bias(bias, plan.outputs)
    check_dtypes("conv", x, weight, bias)
    own = x.owner
    launcher: Launcher = own.launcher
    x = launcher.dense(x)
    groups, features, count = plan.groups, plan.outputs // plan.groups, math.prod(plan.counts)
    matrices = ops.reshape(weight, shape=(1, groups, features, plan.terms))
    output = launcher.empty((plan.batch, groups, features, count), x.dtype)
    if output.size:
        for start, held in _parts(plan, count):
            columns = _columns(launcher, x, plan, start, held)
            target = output.viewed(
                (held, *output.shape[1:]), output.strides, start * output.strides[0]
            )
            own.matmul_into(matrices, columns, target)
    output = ops.reshape(output, shape=plan.output_shape)
    if bias is None:
        return output
    return ops.add(output, ops.reshape(bias, shape=(plan.outputs, *[1] * len(plan.axes))))


@in_float32
def _weight_grad(ops: OpTable, x: Buffer, g: Buffer, **attributes: Any) -> Any:
    if len(attributes["stride"]) > AXES:
        return ops.decomposed("conv_weight_grad", x, g, **attributes)
    plan = weight_gradient(x.shape, g.shape, **attributes)
    check_dtypes("conv_weight_grad", x, g)
    own = x.owner
    launcher: Launcher = own.launcher
    x = launcher.dense(x)
    groups, features, count = plan.groups, plan.outputs // plan.groups, math.prod(plan.counts)
    g = ops.reshape(g, shape=(plan.batch, groups, features, count))
    products = launcher.empty((plan.batch, groups, features, plan.terms), x.dtype)
    if products.size:
        for start, held in _parts(plan, count):
            columns = _columns(launcher, x, plan, start, held).permuted((0, 1, 3, 2))
            part = g.viewed((held, *g.shape[1:]), g.strides, g.offset + start * g.strides[0])
            target = products.viewed(
                (held, *products.shape[1:]), products.strides, start * products.strides[0]
            )
            own.matmul_into(part, columns, target)
    total = ops.sum(products, axis=(0,), keepdims=False, dtype=x.dtype)
    return ops.reshape(total, shape=plan.weight_shape)


def _parts(plan: Convolution, count: int) -> list[tuple[int, int]]:
    """First example and number of examples of each part."""
    each = max(1, _COLUMNS // max(1, plan.groups * plan.terms * count))
    return [(start, min(each, plan.batch - start)) for start in range(0, plan.batch, each)]


def _columns(launcher: Launcher, x: Buffer, plan: Convolution, start: int, held: int) -> Buffer:
    """What each window of some examples holds: a column per window, in matrices per group."""
    count = math.prod(plan.counts)
    out = launcher.empty((held, plan.groups, plan.terms, count), x.dtype)
    part = x.viewed((held, *x.shape[1:]), x.strides, x.offset + start * x.strides[0])
    # On a CPU the kernel goes along rows of windows, on a GPU from element to element.
    items = out.size // max(1, plan.counts[-1]) if launcher.runtime.is_cpu else out.size
    launch_windows(launcher, "columns", plan.axes, part, [out], items=items)
    return out
