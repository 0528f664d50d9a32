"""Convolutions: by compiled kernels, or as products over blocks of windows (im2col by blocks).

Without compiled kernels the elements of the windows are copied into a buffer that stays in the
cache, and BLAS multiplies it by the weight straight into the result. The copy costs a fraction of
the product, and the size of the buffer does not depend on that of the images.

The part of a kernel that meets nothing but padding is left out of all computations.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, Final, Unpack

import numpy as np

from burn.plugin_api import (
    ConvAttributes,
    ConvGeometry,
    ConvTransposeAttributes,
    ConvWeightGradAttributes,
    PatchAttributes,
    Sizes,
    Windows,
    check_columns,
    check_conv_bias,
    conv_geometry,
    conv_transpose_geometry,
    conv_weight_grad_geometry,
    flipped_padding,
    image_windows,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import wide_dtype
from burn_cpu.direct_convolution import direct
from burn_cpu.window_blocks import Part, inside, layout, padded, windows

_SCATTER_COST: Final = 3
"""Time to add an element to overlapping windows, in copies of an element."""


class ConvolutionOps(CpuOps):
    """Convolutions over any number of axes; 16-bit floats in float32."""

    def conv(
        self, x: Array, weight: Array, bias: Array | None, **attributes: Unpack[ConvAttributes]
    ) -> Array:
        """The algorithm that is fastest for the shapes."""
        plan = conv_geometry(x.shape, weight.shape, **attributes)
        check_conv_bias(bias, plan.outputs)
        plan, kept = _trimmed(plan)
        weight = weight[kept]
        kernels = direct(plan, x.dtype, plan.outputs)
        if kernels is not None:
            return kernels.convolved(x, weight, bias).astype(x.dtype, copy=False)
        if _scatter_is_faster(plan):
            weight = _flipped(weight, plan.groups)
            adjoint = conv_transpose_geometry(
                x.shape,
                weight.shape,
                stride=attributes["stride"],
                padding=flipped_padding(plan.axes),
                output_padding=(0,) * len(plan.axes),
                dilation=attributes["dilation"],
                groups=plan.groups,
            )
            return _scattered(x, weight, bias, adjoint)
        return _convolved(x, weight, bias, plan)

    def conv_transpose(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        **attributes: Unpack[ConvTransposeAttributes],
    ) -> Array:
        """A convolution where the stride is 1; otherwise overlapping windows are added up."""
        plan = conv_transpose_geometry(x.shape, weight.shape, **attributes)
        check_conv_bias(bias, plan.inputs)
        plan, kept = _trimmed(plan)
        weight = weight[kept]
        kernels = direct(plan, x.dtype, plan.inputs)
        if kernels is not None:
            return kernels.spread(x, weight, bias).astype(x.dtype, copy=False)
        if max(attributes["stride"]) > 1 or plan.outputs >= _SCATTER_COST * plan.inputs:
            return _scattered(x, weight, bias, plan)
        ends = flipped_padding(plan.axes)
        # Elements whose whole window the padding cuts off contribute nothing.
        visible = [
            slice(max(-before, 0), count + min(after, 0))
            for (before, after), count in zip(ends, plan.counts, strict=True)
        ]
        x = x[(slice(None), slice(None), *visible)]
        weight = _flipped(weight, plan.groups)
        adjoint = conv_geometry(
            x.shape,
            weight.shape,
            stride=attributes["stride"],
            padding=tuple([(max(before, 0), max(after, 0)) for before, after in ends]),
            dilation=attributes["dilation"],
            groups=plan.groups,
        )
        return _convolved(x, weight, bias, adjoint)

    def conv_weight_grad(
        self, x: Array, g: Array, **attributes: Unpack[ConvWeightGradAttributes]
    ) -> Array:
        """The windows, multiplied by the gradient of the output."""
        whole = conv_weight_grad_geometry(x.shape, g.shape, **attributes)
        plan, kept = _trimmed(whole)
        gradient = _weight_gradient(x, g, plan)
        if plan is whole:
            return gradient
        result = np.zeros(whole.weight_shape, x.dtype)
        result[kept] = gradient
        return result

    def unfold4d(self, x: Array, **attributes: Unpack[PatchAttributes]) -> Array:
        """One copy of a strided view."""
        axes = image_windows(x.shape, **attributes)
        window_size = x.shape[1] * math.prod(attributes["kernel_size"])
        view = windows(padded(x, axes), axes)
        return view.reshape(len(x), window_size, math.prod([axis.count for axis in axes]))

    def fold4d(
        self, x: Array, *, output_size: Sizes, **attributes: Unpack[PatchAttributes]
    ) -> Array:
        """One addition for each element of the kernel."""
        shape, axes = check_columns(x.shape, output_size, **attributes)
        counts = [axis.count for axis in axes]
        canvas = _canvas(shape[:2], axes, wide_dtype(x.dtype))
        _add_up(canvas, x.reshape(*shape[:2], *attributes["kernel_size"], *counts), axes)
        return canvas[(slice(None), slice(None), *inside(axes))].astype(x.dtype)


@functools.lru_cache(maxsize=1024)
def _trimmed(plan: ConvGeometry) -> tuple[ConvGeometry, Any]:
    """A convolution without the ends of the kernel that meet padding alone, and an index for them.

    The index is that of what is left of the weight.
    """
    axes = [_trimmed_axis(axis) for axis in plan.axes]
    if all(windows is axis for (windows, _), axis in zip(axes, plan.axes, strict=True)):
        return plan, ()
    trimmed = dataclasses.replace(plan, axes=tuple([axis for axis, _ in axes]))
    return trimmed, (slice(None), slice(None), *[kept for _, kept in axes])


def _trimmed_axis(axis: Windows) -> tuple[Windows, slice]:
    starts = range(-axis.before, axis.count * axis.stride - axis.before, axis.stride)
    met = [
        number
        for number in range(axis.kernel)
        if any(0 <= start + number * axis.dilation < axis.length for start in starts)
    ]
    if not met or len(met) == axis.kernel:
        return axis, slice(None)
    first = min(met[0], axis.before // axis.dilation)
    left_out = min(axis.kernel - 1 - met[-1], axis.after // axis.dilation)
    kept = slice(first, axis.kernel - left_out)
    if kept == slice(0, axis.kernel):
        return axis, kept
    return dataclasses.replace(
        axis,
        kernel=kept.stop - first,
        before=axis.before - first * axis.dilation,
        after=axis.after - left_out * axis.dilation,
    ), kept


def _weight_gradient(x: Array, g: Array, plan: ConvGeometry) -> Array:
    kernels = direct(plan, x.dtype, plan.outputs)
    if kernels is not None:
        return kernels.weight_gradient(x, g).astype(x.dtype, copy=False)
    wide = g.astype(wide_dtype(x.dtype), copy=False)
    features = plan.outputs // plan.groups
    wide = wide.reshape(plan.batch, plan.groups, features, math.prod(plan.counts))
    if _rows_are_faster(plan):
        gradient = _weight_gradient_by_rows(x, wide, plan)
    else:
        gradient = _weight_gradient_by_columns(x, wide, plan)
    return gradient.reshape(plan.weight_shape).astype(x.dtype, copy=False)


def _convolved(x: Array, weight: Array, bias: Array | None, plan: ConvGeometry) -> Array:
    dtype = wide_dtype(x.dtype)
    result = np.empty(plan.output_shape, dtype)
    weight = weight.astype(dtype, copy=False)
    if bias is not None:
        bias = bias.astype(dtype, copy=False)
    if result.size:
        multiply = _by_rows if _rows_are_faster(plan) else _by_columns
        multiply(x, weight, bias, plan, result)
    return result.astype(x.dtype, copy=False)


def _scatter_is_faster(plan: ConvGeometry) -> bool:
    """Whether to add up few outputs is less work than to copy many inputs."""
    return (
        plan.inputs >= _SCATTER_COST * plan.outputs > 0
        and plan.terms > plan.inputs
        and all(axis.stride == 1 and axis.before < axis.span > axis.after for axis in plan.axes)
    )


_NS_PER_RUN: Final = 8.0
_NS_PER_CONTIGUOUS_ELEMENT: Final = 0.25
_NS_PER_STRIDED_ELEMENT: Final = 0.6
"""Nanoseconds that a copy takes for each run of elements, and for each element of the run."""


@functools.lru_cache(maxsize=256)
def _rows_are_faster(plan: ConvGeometry) -> bool:
    """Whether copies by rows take less time than by columns; the products take the same.

    By columns a run lies along the last axis of the result. By rows it is the channels of adjacent
    elements, but the input and the output are transposed as well.
    """
    if plan.groups > 1:
        return False
    last = plan.axes[-1]
    lines = plan.batch * math.prod(plan.counts[:-1])
    kernel_size = math.prod(plan.kernel)
    step = _NS_PER_CONTIGUOUS_ELEMENT if last.stride == 1 else _NS_PER_STRIDED_ELEMENT
    columns = lines * plan.inputs * kernel_size * (_NS_PER_RUN + step * last.count)
    together = last.kernel if last.dilation == 1 else 1
    run = _NS_PER_RUN + _NS_PER_CONTIGUOUS_ELEMENT * plan.inputs * together
    ends = math.prod(plan.input_shape) + math.prod(plan.output_shape)
    return lines * last.count * kernel_size // together * run + ends < columns


def _copied(held: Array, buffer: Array | None, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The windows in a buffer, which is made for the first and largest block."""
    if buffer is None:
        buffer = np.empty(held.size, held.dtype)
    used = buffer[: held.size]
    np.copyto(used.reshape(held.shape), held)
    return used.reshape(shape), buffer


def _by_columns(
    x: Array, weight: Array, bias: Array | None, plan: ConvGeometry, result: Array
) -> None:
    """A matrix for each image and group, in which a column is a window."""
    groups, terms = plan.groups, plan.terms
    features = plan.outputs // groups
    matrices = weight.reshape(groups, features, terms)
    target = result.reshape(plan.batch, groups, features, -1)
    shift = None if bias is None else bias.reshape(groups, features, 1)
    in_place = terms * groups == plan.inputs and all(axis.stride == 1 for axis in plan.axes)
    grid = layout(plan, by_rows=False)

    def work(part: Part) -> None:
        buffer = None
        for images, which, held in grid.blocks(x, result.dtype, part):
            chosen = target[images, :, :, which]
            shape = (len(chosen), groups, terms, chosen.shape[-1])
            if in_place:
                columns = held.reshape(shape)
            else:
                columns, buffer = _copied(held, buffer, shape)
            np.matmul(matrices, columns, out=chosen)
            if shift is not None:
                chosen += shift

    grid.run(work)


def _by_rows(
    x: Array, weight: Array, bias: Array | None, plan: ConvGeometry, result: Array
) -> None:
    """A matrix for all images of a block, in which a row is a window."""
    axes = (0, *range(2, weight.ndim), 1)
    matrix = weight.transpose(axes).reshape(plan.outputs, plan.terms)
    target = result.reshape(plan.batch, plan.outputs, -1)
    shift = None if bias is None else bias[:, None]
    grid = layout(plan, by_rows=True)

    def work(part: Part) -> None:
        buffer = None
        for images, which, held in grid.blocks(x, result.dtype, part):
            chosen = target[images, :, which]
            rows, buffer = _copied(held, buffer, (-1, plan.terms))
            if len(chosen) == 1:
                np.matmul(matrix, rows.T, out=chosen[0])
            else:
                product = matrix.dot(rows.T).reshape(plan.outputs, len(chosen), -1)
                chosen[...] = product.swapaxes(0, 1)
            if shift is not None:
                chosen += shift

    grid.run(work)


def _weight_gradient_by_columns(x: Array, g: Array, plan: ConvGeometry) -> Array:
    groups, terms = plan.groups, plan.terms
    grid = layout(plan, by_rows=False)

    def work(part: Part) -> Array:
        total = np.zeros((groups, plan.outputs // groups, terms), g.dtype)
        buffer = None
        for images, which, held in grid.blocks(x, g.dtype, part):
            chosen = g[images, :, :, which]
            shape = (len(chosen), groups, terms, chosen.shape[-1])
            columns, buffer = _copied(held, buffer, shape)
            products = np.matmul(chosen, columns.swapaxes(-1, -2))
            total += products[0] if len(products) == 1 else products.sum(axis=0)
        return total

    return _total(grid.run(work))


def _weight_gradient_by_rows(x: Array, g: Array, plan: ConvGeometry) -> Array:
    grid = layout(plan, by_rows=True)

    def work(part: Part) -> Array:
        total = np.zeros((plan.outputs, plan.terms), g.dtype)
        buffer = None
        for images, which, held in grid.blocks(x, g.dtype, part):
            rows, buffer = _copied(held, buffer, (-1, plan.terms))
            lines = g[images, 0, :, which].swapaxes(0, 1).reshape(plan.outputs, len(rows))
            total += lines.dot(rows)
        return total

    total = _total(grid.run(work))
    return np.moveaxis(total.reshape(plan.outputs, *plan.kernel, plan.inputs), -1, 1)


def _total(parts: Sequence[Array]) -> Array:
    total, *others = parts
    for other in others:
        total += other
    return total


def _flipped(weight: Array, groups: int) -> Array:
    """The weight of the adjoint of a convolution with a stride of 1."""
    outputs, inputs, *kernel = weight.shape
    parts = weight.reshape(groups, outputs // groups, inputs, *kernel)
    merged = (groups * inputs, outputs // groups, *kernel)
    swapped = np.moveaxis(parts, 2, 1).reshape(merged)
    return np.flip(swapped, tuple(range(2, swapped.ndim)))


def _scattered(x: Array, weight: Array, bias: Array | None, plan: ConvGeometry) -> Array:
    """Multiply each element by the weight, and add up where windows overlap."""
    own, dtype = x.dtype, wide_dtype(x.dtype)
    groups, features = plan.groups, weight.shape[1]
    result = np.empty(plan.input_shape, dtype)
    if not result.size:
        return result.astype(own, copy=False)
    x = x.astype(dtype, copy=False)
    matrices = weight.astype(dtype, copy=False).reshape(groups, plan.outputs // groups, -1)
    matrices = matrices.swapaxes(-1, -2)
    shift = None if bias is None else bias.astype(dtype, copy=False)
    if shift is not None:
        shift = shift.reshape(-1, *[1] * len(plan.axes))
    first, *others = plan.counts
    grid = layout(plan, by_rows=False)

    def work(part: Part) -> None:
        for start in range(part.images.start, part.images.stop, grid.images):
            images = slice(start, min(start + grid.images, part.images.stop))
            chosen = x[images]
            flat = chosen.reshape(len(chosen), groups, plan.outputs // groups, first * grid.rest)
            canvas = _canvas((len(chosen), plan.inputs), plan.axes, dtype)
            for line in range(0, first, grid.lines):
                count = min(grid.lines, first - line)
                columns = np.matmul(
                    matrices, flat[..., line * grid.rest : (line + count) * grid.rest]
                )
                shape = (len(chosen), groups * features, *plan.kernel, count, *others)
                axes = (dataclasses.replace(plan.axes[0], count=count), *plan.axes[1:])
                _add_up(canvas[:, :, line * axes[0].stride :], columns.reshape(shape), axes)
            result[images] = canvas[(slice(None), slice(None), *inside(plan.axes))]
            if shift is not None:
                result[images] += shift

    grid.run(work, only_images=True)  # windows along the first axis overlap in the result
    return result.astype(own, copy=False)


def _canvas(lead: Sequence[int], axes: Sequence[Windows], dtype: Any) -> Array:
    """Zeros, as long along each axis as padded images and their windows."""
    lengths = [max(axis.before + axis.length, axis.reach) for axis in axes]
    return np.zeros((*lead, *lengths), dtype)


def _add_up(canvas: Array, held: Array, axes: Sequence[Windows]) -> None:
    """Add the elements of windows, (N, C, *kernel, *counts), to padded images."""
    for position in np.ndindex(*[axis.kernel for axis in axes]):
        parts = [
            slice(start, start + (axis.count - 1) * axis.stride + 1, axis.stride)
            for start, axis in zip(
                [number * axis.dilation for number, axis in zip(position, axes, strict=True)],
                axes,
                strict=True,
            )
        ]
        canvas[(slice(None), slice(None), *parts)] += held[(slice(None), slice(None), *position)]
