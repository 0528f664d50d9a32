"""Draws of ops over windows: kernels, strides, dilations, groups and padding of any size."""

from __future__ import annotations

import math
from typing import Any

from burn.aliases import Shape
from burn.testing.arrays import floats
from burn.testing.draws._draw import Draw, Sort, draws
from burn.testing.op_samples import INDEX_DTYPE, Sample, sample

Numbers = dict[str, Any]


def _numbers(draw: Draw, axes: int) -> Numbers:
    """Stride, padding and dilation: all of them at first, then each or not, along each axis."""
    likely = 1.0 if draw.number == 0 else 0.6
    return {
        "stride": tuple(draw.among(2, 3, 4) if draw.chance(likely) else 1 for _ in range(axes)),
        "padding": tuple(
            (draw.integer(1, 3), draw.integer(0, 2)) if draw.chance(likely) else (0, 0)
            for _ in range(axes)
        ),
        "dilation": tuple(draw.among(2, 3) if draw.chance(likely) else 1 for _ in range(axes)),
    }


def _kernel(draw: Draw, axes: int) -> Shape:
    if draw.sort is Sort.PART:  # what libraries have code of its own for
        return (draw.among(1, 3),) * axes
    return tuple(draw.among(1, 2, 3, 3, 4, 7 if axes < 3 else 2) for _ in range(axes))


def _lengths(draw: Draw, kernel: Shape, numbers: Numbers) -> Shape:
    """Lengths that at least one window fits in."""
    return tuple(
        max(1, spread * (taps - 1) + 1 - sum(ends) + draw.integer(0, 5))
        for taps, ends, spread in zip(kernel, numbers["padding"], numbers["dilation"], strict=True)
    )


def _channels(draw: Draw) -> tuple[int, int, int]:
    """Groups, and channels in and out of each."""
    if draw.sort is Sort.LONG:
        chosen: tuple[int, int, int] = draw.among((1, 33, 34), (1, 3, 65), (2, 17, 4), (33, 1, 1))
        return chosen
    groups = 1 if draw.sort is Sort.PART else draw.among(2, 3)
    return groups, draw.among(1, 2, 3), draw.among(1, 2, 3)


@draws("conv", "conv_weight_grad", "conv_transpose")
def _(draw: Draw) -> Sample | None:
    """All at once: groups with dilation, strides beyond the kernel, padding at one end."""
    axes = {Sort.LONG: 2, Sort.PART: 2}.get(draw.sort) or draw.among(1, 2, 2, 3)
    kernel = (3,) * axes if draw.sort is Sort.LONG else _kernel(draw, axes)
    numbers = _numbers(draw, axes)
    groups, inputs, outputs = _channels(draw)
    batch = draw.integer(1, 3)
    lengths = _lengths(draw, kernel, numbers)
    if draw.op.name == "conv_transpose":
        extra = tuple(
            draw.integer(0, max(step, spread) - 1)
            for step, spread in zip(numbers["stride"], numbers["dilation"], strict=True)
        )
        lengths = tuple(draw.integer(1, 5) for _ in range(axes))
        weight = draw.floats(inputs * groups, outputs, *kernel)
        numbers["output_padding"] = extra
    else:
        weight = draw.floats(outputs * groups, inputs, *kernel)
    x = draw.floats(batch, inputs * groups, *lengths)
    if draw.op.name == "conv_weight_grad":
        counts = _counts(lengths, kernel, numbers)
        g = draw.floats(batch, outputs * groups, *counts)
        return sample("", x, g, kernel_size=kernel, groups=groups, **numbers)
    bias = draw.floats(outputs * groups) if draw.chance(0.5) else None
    return sample("", x, weight, bias, groups=groups, **numbers)


def _counts(lengths: Shape, kernel: Shape, numbers: Numbers) -> Shape:
    return tuple(
        (length + sum(ends) - spread * (taps - 1) - 1) // step + 1
        for length, taps, step, ends, spread in zip(
            lengths,
            kernel,
            numbers["stride"],
            numbers["padding"],
            numbers["dilation"],
            strict=True,
        )
    )


@draws("unfold4d")
def _(draw: Draw) -> Sample | None:
    kernel, numbers = _kernel(draw, 2), _numbers(draw, 2)
    lengths = _lengths(draw, kernel, numbers)
    x = draw.floats(draw.integer(1, 2), 3 if draw.number == 0 else draw.integer(1, 3), *lengths)
    return sample("", x, kernel_size=kernel, **numbers)


@draws("fold4d")
def _(draw: Draw) -> Sample | None:
    kernel, numbers = _kernel(draw, 2), _numbers(draw, 2)
    lengths = _lengths(draw, kernel, numbers)
    rows, columns = _counts(lengths, kernel, numbers)
    x = draw.floats(2, draw.integer(1, 3) * kernel[0] * kernel[1], rows * columns)
    return sample("", x, output_size=lengths, kernel_size=kernel, **numbers)


def _pooled(draw: Draw) -> tuple[Shape, Numbers]:
    """Shape of the input of a pooling, and its attributes; padding of at most half a kernel."""
    axes = 2 if draw.number == 0 else draw.among(1, 2, 2, 3)
    kernel = _kernel(draw, axes)
    numbers = _numbers(draw, axes)
    if "dilation" not in draw.op.attributes:
        numbers["dilation"] = (1,) * axes
    numbers["padding"] = tuple(
        (min(first, taps // 2), min(last, taps // 2))
        for (first, last), taps in zip(numbers["padding"], kernel, strict=True)
    )
    lead = {Sort.RANK: (2, 3), Sort.LONG: (33,), Sort.PART: ()}.get(draw.sort, (2,))
    lengths = _lengths(draw, kernel, numbers)
    numbers.update(kernel_size=kernel, ceil_mode=draw.chance(0.4))
    return (*lead, *lengths), numbers


@draws("max_pool", "max_pool_with_indices")
def _(draw: Draw) -> Sample | None:
    """All elements are below 0 at times: padding is never the largest."""
    shape, numbers = _pooled(draw)
    if draw.op.name == "max_pool_with_indices":
        numbers["index_dtype"] = INDEX_DTYPE
    return sample("", draw.floats(*shape, low=-5.0, high=draw.among(-1.0, 5.0)), **numbers)


@draws("avg_pool")
def _(draw: Draw) -> Sample | None:
    shape, numbers = _pooled(draw)
    del numbers["dilation"]
    return sample("", draw.floats(*shape), count_include_pad=draw.chance(0.5), **numbers)


@draws("avg_pool_grad", "max_pool_grad")
def _(draw: Draw) -> Sample | None:
    """Gradients of windows that overlap, or leave elements out."""
    shape, numbers = _pooled(draw)
    axes = len(numbers["kernel_size"])
    lead, size = shape[:-axes], shape[-axes:]
    if draw.op.name == "max_pool_grad":
        counts = tuple(draw.integer(1, 6) for _ in range(axes))
        indices = draw.integers(*lead, *counts, low=0, high=math.prod(size))
        return sample("", draw.floats(*lead, *counts), indices, input_size=size)
    counts = _counts(size, numbers["kernel_size"], numbers)
    del numbers["dilation"]
    numbers.update(ceil_mode=False, count_include_pad=draw.chance(0.5), input_size=size)
    return sample("", draw.floats(*lead, *counts), **numbers)


@draws("adaptive_avg_pool", "adaptive_avg_pool_grad")
def _(draw: Draw) -> Sample | None:
    axes = draw.among(1, 2, 3)
    lead = {Sort.RANK: (2, 3), Sort.LONG: (33,)}.get(draw.sort, (2,))
    lengths = [draw.integer(1, 9) for _ in range(axes)]
    output_size = tuple(draw.integer(1, 11) for _ in range(axes))
    if draw.op.name == "adaptive_avg_pool_grad":
        return sample("", draw.floats(*lead, *output_size), input_size=tuple(lengths))
    return sample("", draw.floats(*lead, *lengths), output_size=output_size)


@draws("interpolate")
def _(draw: Draw) -> Sample | None:
    """Larger, smaller, and much smaller, with the attributes of another sample."""
    chosen = [
        sample
        for sample in draw.samples.samples
        if sample.attributes.get("scale") is None and sample.operands[0].ndim > 1
    ]
    attributes = dict(draw.among(*chosen).attributes)
    axes = len(attributes["output_size"])
    lengths = [draw.integer(1, 9) for _ in range(axes)]
    attributes["output_size"] = tuple(
        draw.among(1, 2, length, length + 3, 2 * length, 17) for length in lengths
    )
    lead = {Sort.RANK: (2, 3), Sort.LONG: (33,)}.get(draw.sort, (2,))
    return sample("", draw.view(floats(*lead, *lengths)), **attributes)
