"""Draws of ops that rearrange elements."""

from __future__ import annotations

import math
from typing import Any

from burn.aliases import Shape, Slices
from burn.dtype import float64
from burn.testing.draws._draw import Draw, Sort, draws
from burn.testing.op_samples import Sample, sample


@draws("reshape")
def _(draw: Draw) -> Sample | None:
    """To any factors of the size, in any order."""
    shape = draw.shape()
    rest = math.prod(shape)
    lengths: list[int] = []
    while rest > 1 and len(lengths) < 5:
        factors = [index for index in range(2, min(rest, 2100) + 1) if rest % index == 0]
        lengths.append(draw.among(*factors[:4], rest))
        rest //= lengths[-1]
    lengths += [rest] if rest != 1 or draw.chance(0.3) else []
    draw.random.shuffle(lengths)
    return sample("", draw.values(*shape), shape=tuple(lengths))


@draws("permute")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=2)
    axes = list(range(len(shape)))
    while axes == sorted(axes) and len(axes) > 1:
        draw.random.shuffle(axes)
    return sample("", draw.values(*shape), axes=tuple(axes))


@draws("expand")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape()
    return sample("", draw.values(*draw.broadcastable(shape)), shape=shape)


@draws("flip")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape()
    return sample("", draw.values(*shape), axes=tuple(sorted(draw.axes(shape))))


@draws("detach")
def _(draw: Draw) -> Sample | None:
    return sample("", draw.values(*draw.shape()))


def _slices(draw: Draw, shape: Shape) -> tuple[Shape, Slices]:
    """Slices with small and large steps of either sign, and a shape that is long enough."""
    lengths, slices = list(shape), []
    long = shape.index(max(shape, default=0)) if shape else 0
    for axis, length in enumerate(shape):
        count = draw.integer(1 if length else 0, length)
        step = draw.among(1, 1, 2, -1, -2, 3)
        if axis == long and draw.sort is not Sort.LONG:
            step = draw.among(130, -150) if draw.sort is Sort.PART else draw.among(9, -11, 17)
            count = min(length, 4)
        span = (count - 1) * abs(step) + 1 if count else 0
        lengths[axis] = max(length, span + draw.integer(0, 2))
        start = draw.integer(0, lengths[axis] - span)
        slices.append((start if step > 0 else start + max(span, 1) - 1, count, step))
    return tuple(lengths), tuple(slices)


@draws("slice")
def _(draw: Draw) -> Sample | None:
    shape, slices = _slices(draw, draw.shape())
    return sample("", draw.values(*shape), slices=slices)


@draws("slice_assign")
def _(draw: Draw) -> Sample | None:
    shape, slices = _slices(draw, draw.shape())
    x = draw.values(*shape)
    value = draw.broadcastable(tuple(length for _, length, _ in slices))
    if math.prod(value) == 0:
        return None
    return sample("", x, draw.like(x if x.size else x.reshape(-1), value), slices=slices)


@draws("index_axis")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    axis = draw.axis(shape)
    return sample("", draw.values(*shape), axis=axis, index=draw.integer(0, shape[axis] - 1))


@draws("unfold")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    axis = draw.axis(shape)
    size = draw.integer(1, min(shape[axis], 5))
    step = draw.integer(1, 4) if shape[axis] < 30 else draw.among(11, 17)
    return sample("", draw.values(*shape), axis=axis, size=size, step=step)


@draws("concat")
def _(draw: Draw) -> Sample | None:
    """Few tensors of different lengths, or so many that a kernel takes no more at once."""
    shape = draw.shape(least=1, empty=False)
    axis = draw.axis(shape)
    many = draw.sort is Sort.PART
    lengths = [1, 2] * 20 if many else [draw.integer(0, 3) for _ in range(draw.integer(2, 4))]
    if draw.sort is Sort.LONG:
        lengths = [shape[axis], 1, shape[axis]]
    first = draw.values(*shape)
    parts = [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]
    return sample("", [draw.like(first, part) for part in parts], axis=axis)


@draws("pad")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(empty=False)
    padding = tuple((draw.integer(0, 2), draw.integer(0, 2)) for _ in shape)
    attributes: dict[str, Any] = {"padding": padding}
    mode = draw.among("constant", "edge", "reflect", "symmetric", "wrap")
    if mode != "constant":
        attributes["mode"] = mode
    x = draw.values(*shape)
    if mode == "constant" and draw.chance(0.5):
        attributes["value"] = {"f": -1.5, "i": 7, "b": True}[x.dtype.kind]
    return sample("", x, **attributes)


@draws("cast")
def _(draw: Draw) -> Sample | None:
    """To each of the dtypes that samples cast to."""
    targets = [sample.attributes["dtype"] for sample in draw.samples.samples]
    x = draw.values(*draw.shape())
    dtype = draw.among(*targets)
    return sample("", x, dtype=dtype, differentiable=dtype is float64)
