"""Samples of convolutions in deformed windows. The references look at one place after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample


def _numbers(**changed: Any) -> dict[str, Any]:
    plain = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}
    return {"kernel_size": (2, 2), **plain, "offset_groups": 1, **changed}


class _Place(NamedTuple):
    """A place of a window after it was moved.

    `row` and `column` say where its value stands in the columns, `part` is the channel of the mask,
    and `window` where the window is. `corners` are the four elements around it: their places (None
    outside the image), their weights, and the slopes of these down and across.
    """

    image: int
    channel: int
    row: int
    column: int
    part: int
    window: tuple[int, int]
    corners: list[tuple[Any, float, float, float]]


def _places(shape: tuple[int, ...], offset: Array, numbers: dict[str, Any]) -> Iterator[_Place]:
    images, channels, height, width = shape
    kernel, groups = numbers["kernel_size"], numbers["offset_groups"]
    counts = offset.shape[2:]
    for image, channel in np.ndindex(images, channels):
        group = channel // (channels // groups)
        for (i, j), index in itertools.product(np.ndindex(*kernel), np.ndindex(*counts)):
            part = (group * kernel[0] + i) * kernel[1] + j
            row = (channel * kernel[0] + i) * kernel[1] + j
            y, x = (
                place * numbers["dilation"][axis]
                + index[axis] * numbers["stride"][axis]
                - numbers["padding"][axis][0]
                + offset[(image, 2 * part + axis, *index)]
                for axis, place in enumerate((i, j))
            )
            corners = list(_corners(y, x, height, width))
            column = index[0] * counts[1] + index[1]
            yield _Place(image, channel, row, column, part, (index[0], index[1]), corners)


def _corners(
    y: float, x: float, height: int, width: int
) -> Iterator[tuple[Any, float, float, float]]:
    if math.isinf(y) or math.isinf(x):
        return
    if math.isnan(y) or math.isnan(x):
        yield (0, 0), math.nan, math.nan, math.nan
        return
    top, left = math.floor(y), math.floor(x)
    for row, column in itertools.product((top, top + 1), (left, left + 1)):
        down, across = 1.0 - abs(y - row), 1.0 - abs(x - column)
        inside = 0 <= row < height and 0 <= column < width
        yield (
            (row, column) if inside else None,
            down * across,
            across * (1.0 if row > top else -1.0),
            down * (1.0 if column > left else -1.0),
        )


def _shape(offset: Array, channels: int, numbers: dict[str, Any]) -> tuple[int, int, int]:
    places = numbers["kernel_size"][0] * numbers["kernel_size"][1]
    return (offset.shape[0], channels * places, offset.shape[2] * offset.shape[3])


def _unfold(x: Array, offset: Array, mask: Array | None, **numbers: Any) -> Array:
    columns = np.zeros(_shape(offset, x.shape[1], numbers))
    for one in _places(x.shape, offset, numbers):
        value = sum(
            weight * x[(one.image, one.channel, *place)]
            for place, weight, _, _ in one.corners
            if place is not None
        )
        if mask is not None:
            value *= mask[(one.image, one.part, *one.window)]
        columns[one.image, one.row, one.column] = value
    return columns


def _terms(x: Array, mask: Array | None) -> tuple[Any, Any]:
    """For a value of a window."""
    # What the weights are made of is rounded at the size of the coordinates, not of the weights.
    reach = max(x.shape[2:]) * float(np.abs(x).max(initial=0.0))
    return 4, reach * (1.0 if mask is None else float(np.abs(mask).max(initial=0.0)))


def _unfold_terms(x: Array, offset: Array, mask: Array | None, **numbers: Any) -> tuple[Any, Any]:
    del offset, numbers
    return _terms(x, mask)


def _mask(*shape: int) -> Array:
    return floats(*shape, low=0.2, high=1.5, phase=0.6)


def _between(*shape: int, low: float = -1.9, high: float = 1.9) -> Array:
    """Offsets that lead between elements, where the slopes exist."""
    offset = floats(*shape, low=low, high=high, phase=0.45)
    near = np.abs(offset - np.round(offset)) < 0.05
    return np.where(near, offset + 0.1, offset)


_X = floats(2, 2, 4, 5)

_SAMPLES = [
    sample("images", _X, _between(2, 8, 3, 4), _mask(2, 4, 3, 4), **_numbers()),
    sample("without a mask", _X, _between(2, 8, 3, 4), None, **_numbers()),
    sample(
        "padding",
        floats(1, 2, 3, 3),
        _between(1, 8, 4, 5),
        _mask(1, 4, 4, 5),
        **_numbers(padding=((1, 1), (2, 1))),
    ),
    sample("stride", _X, _between(2, 8, 2, 2), None, **_numbers(stride=(2, 3))),
    sample(
        "dilation",
        _X,
        _between(2, 12, 2, 1),
        _mask(2, 6, 2, 1),
        **_numbers(dilation=(2, 2), kernel_size=(2, 3)),
    ),
    sample(
        "groups",
        floats(2, 4, 3, 4),
        _between(2, 16, 2, 3),
        _mask(2, 8, 2, 3),
        **_numbers(offset_groups=2),
    ),
    sample(
        "a group for each channel",
        floats(1, 3, 3, 3),
        _between(1, 12, 3, 2),
        None,
        **_numbers(offset_groups=3, kernel_size=(1, 2)),
    ),
    sample("far outside", _X, _between(2, 8, 3, 4, low=-9.0, high=9.0), None, **_numbers()),
    sample(
        "1x1 images",
        floats(2, 1, 1, 1),
        _between(2, 2, 1, 1, low=-0.9, high=0.9),
        None,
        **_numbers(kernel_size=(1, 1)),
    ),
    sample("empty batch", floats(0, 2, 4, 5), floats(0, 8, 3, 4), floats(0, 4, 3, 4), **_numbers()),
    sample(
        "no channels", floats(2, 0, 4, 5), _between(2, 8, 3, 4), _mask(2, 4, 3, 4), **_numbers()
    ),
    sample(
        "transposed",
        transposed(_X),
        transposed(_between(2, 8, 3, 4)),
        transposed(_mask(2, 4, 3, 4)),
        **_numbers(),
    ),
    sample("strided", strided(_X), strided(_between(2, 8, 3, 4)), None, **_numbers()),
    sample(
        "reversed",
        reversed_view(_X),
        reversed_view(_between(2, 8, 3, 4)),
        expanded(_mask(1, 4, 1, 1), 2, 4, 3, 4),
        **_numbers(),
    ),
    sample(
        "places that are elements",
        _X,
        np.round(floats(2, 8, 3, 4)),
        None,
        **_numbers(),
        differentiable=False,
    ),
    sample(
        "offsets that are no numbers",
        floats(1, 1, 2, 2),
        np.array([[[[np.nan, np.inf], [-np.inf, 0.5]], [[0.0, 0.0], [np.nan, np.inf]]]]),
        None,
        **_numbers(kernel_size=(1, 1)),
    ),
]

_OFFSET = floats(2, 8, 3, 4)

_ERRORS = [
    ("unbatched", ShapeError, floats(2, 4, 5), _OFFSET, None, _numbers()),
    ("offset", ShapeError, _X, floats(2, 4, 3, 4), None, _numbers()),
    ("offset of another batch", ShapeError, _X, floats(1, 8, 3, 4), None, _numbers()),
    ("offset of other windows", ShapeError, _X, floats(2, 8, 4, 3), None, _numbers()),
    ("mask", ShapeError, _X, _OFFSET, floats(2, 8, 3, 4), _numbers()),
    ("mask to be repeated", ShapeError, _X, _OFFSET, floats(1, 4, 3, 4), _numbers()),
    ("groups of channels", ShapeError, _X, floats(2, 24, 3, 4), None, _numbers(offset_groups=3)),
    ("no groups", ArgumentError, _X, floats(2, 0, 3, 4), None, _numbers(offset_groups=0)),
    ("kernel too long", ShapeError, _X, _OFFSET, None, _numbers(kernel_size=(5, 2))),
    ("stride 0", ArgumentError, _X, _OFFSET, None, _numbers(stride=(1, 0))),
]

reference(
    "deform_unfold4d",
    samples=_SAMPLES,
    errors=[error(note, kind, *operands, **numbers) for note, kind, *operands, numbers in _ERRORS],
    terms=_unfold_terms,
)(_unfold)


def _gradients(
    x: Array, offset: Array, mask: Array | None, g: Array, **numbers: Any
) -> tuple[Array, Array, Array]:
    kernel, groups = numbers["kernel_size"], numbers["offset_groups"]
    parts = (offset.shape[0], groups * kernel[0] * kernel[1], *offset.shape[2:])
    to_x, to_offset, to_mask = np.zeros(x.shape), np.zeros(offset.shape), np.zeros(parts)
    for one in _places(x.shape, offset, numbers):
        share = g[one.image, one.row, one.column]
        shared = (one.image, one.part, *one.window)
        factor = 1.0 if mask is None else mask[shared]
        for place, weight, down, across in one.corners:
            if place is None:
                continue
            element = (one.image, one.channel, *place)
            to_x[element] += share * factor * weight
            to_mask[shared] += share * weight * x[element]
            for axis, slope in enumerate((down, across)):
                to_offset[(one.image, 2 * one.part + axis, *one.window)] += (
                    share * factor * slope * x[element]
                )
    return to_x, to_offset, to_mask


def _gradient_terms(
    x: Array, offset: Array, mask: Array | None, g: Array, **numbers: Any
) -> tuple[Any, Any]:
    del offset, numbers
    count, reach = _terms(x, mask)
    most = max([float(np.abs(one).max(initial=1.0)) for one in (x, g)])
    return count * max(x.shape[1], 1), reach * most * max(x.shape[1], 1)


def _of_gradient(one: Sample) -> Sample:
    """A sample of `deform_unfold4d` as one of its gradient."""
    x, offset, mask = one.operands
    numbers = dict(one.attributes)
    g = floats(*_shape(offset, x.shape[1], numbers), phase=0.8)
    if one.note == "transposed":
        g = transposed(g)
    return sample(one.note, x, offset, mask, g, differentiable=one.differentiable, **numbers)


reference(
    "deform_unfold4d_grad",
    samples=[_of_gradient(one) for one in _SAMPLES if one.note != "offsets that are no numbers"],
    errors=[
        *[
            error(note, kind, *operands, floats(2, 8, 12), **numbers)
            for note, kind, *operands, numbers in _ERRORS
        ],
        error("gradient", ShapeError, _X, _OFFSET, None, floats(2, 8, 11), **_numbers()),
        error(
            "gradient to be repeated", ShapeError, _X, _OFFSET, None, floats(1, 8, 12), **_numbers()
        ),
    ],
    terms=_gradient_terms,
)(_gradients)


def _deform_conv2d(
    x: Array,
    offset: Array,
    weight: Array,
    mask: Array | None,
    bias: Array | None,
    *,
    weight_groups: int,
    **numbers: Any,
) -> Array:
    columns = _unfold(x, offset, mask, kernel_size=weight.shape[2:], **numbers)
    outputs, inputs = weight.shape[:2]
    columns = columns.reshape(x.shape[0], x.shape[1], *weight.shape[2:], *offset.shape[2:])
    output = np.zeros((x.shape[0], outputs, *offset.shape[2:]))
    for place in range(outputs):
        group = place // (outputs // weight_groups)
        part = columns[:, group * inputs : (group + 1) * inputs]
        output[:, place] = np.einsum("ncijyx,cij->nyx", part, weight[place])
        if bias is not None:
            output[:, place] += bias[place]
    return output


def _deform_conv2d_terms(
    x: Array, offset: Array, weight: Array, mask: Array | None, bias: Array | None, **numbers: Any
) -> tuple[Any, Any]:
    del offset, numbers
    count, reach = _terms(x, mask)
    terms = math.prod(weight.shape[1:])
    total = terms * reach * float(np.abs(weight).max(initial=0.0))
    return count * terms + 1, total + (0.0 if bias is None else float(np.abs(bias).max()))


def _conv(one: Sample, weight: Array, bias: Array | None, weight_groups: int = 1) -> Sample:
    """A sample of `deform_unfold4d` as one of `deform_conv2d`."""
    x, offset, mask = one.operands
    numbers = {name: value for name, value in one.attributes.items() if name != "kernel_size"}
    return sample(
        one.note,
        x,
        offset,
        weight,
        mask,
        bias,
        weight_groups=weight_groups,
        differentiable=one.differentiable,
        **numbers,
    )


def _convolved(one: Sample) -> Sample:
    weight = floats(2, one.operands[0].shape[1], *one.attributes["kernel_size"], phase=0.1)
    views = {"transposed": transposed, "strided": strided, "reversed": reversed_view}
    view = views.get(one.note, np.asarray)
    return _conv(one, view(weight), floats(2, phase=0.7))


_OF_OFFSETS = {"dilation", "groups", "far outside", "a group for each channel", "reversed"}
"""What samples of the columns show well enough."""

_PLAIN = {name: value for name, value in _numbers().items() if name != "kernel_size"}
_WEIGHT = floats(2, 2, 2, 2, phase=0.1)

reference(
    "deform_conv2d",
    samples=[
        *[_convolved(one) for one in _SAMPLES if one.note not in _OF_OFFSETS],
        sample(
            "without mask and bias",
            _X,
            _between(2, 8, 3, 4),
            _WEIGHT,
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
        sample(
            "groups of weights",
            floats(2, 4, 3, 4),
            _between(2, 16, 2, 3),
            floats(6, 2, 2, 2, phase=0.1),
            _mask(2, 8, 2, 3),
            floats(6),
            weight_groups=2,
            **{**_PLAIN, "offset_groups": 2},
        ),
        sample(
            "depthwise",
            floats(1, 2, 3, 4),
            _between(1, 8, 2, 3),
            floats(2, 1, 2, 2, phase=0.1),
            None,
            None,
            weight_groups=2,
            **_PLAIN,
        ),
    ],
    errors=[
        error(
            "offset",
            ShapeError,
            _X,
            floats(2, 4, 3, 4),
            _WEIGHT,
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
        error("mask", ShapeError, _X, _OFFSET, _WEIGHT, _OFFSET, None, weight_groups=1, **_PLAIN),
        error(
            "other channels",
            ShapeError,
            _X,
            _OFFSET,
            floats(2, 1, 2, 2),
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
        error(
            "bias of one",
            ShapeError,
            _X,
            _OFFSET,
            _WEIGHT,
            None,
            floats(1),
            weight_groups=1,
            **_PLAIN,
        ),
        error(
            "no groups of weights",
            ArgumentError,
            _X,
            _OFFSET,
            _WEIGHT,
            None,
            None,
            weight_groups=0,
            **_PLAIN,
        ),
        error(
            "unbatched",
            ShapeError,
            floats(2, 4, 5),
            _OFFSET,
            _WEIGHT,
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
    ],
    terms=_deform_conv2d_terms,
)(_deform_conv2d)
