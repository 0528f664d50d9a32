"""Samples of convolutions in deformed windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.windows._deformed_windows import (
    OFFSET,
    SAMPLES,
    X,
    between,
    mask_of,
    numbers_of,
    unfolded,
    value_terms,
)


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
    columns = unfolded(x, offset, mask, kernel_size=weight.shape[2:], **numbers)
    outputs, inputs = weight.shape[:2]
    columns = columns.reshape(x.shape[0], x.shape[1], *weight.shape[2:], *offset.shape[2:])
    output = np.zeros((x.shape[0], outputs, *offset.shape[2:]))
    for index in range(outputs):
        group = index // (outputs // weight_groups)
        part = columns[:, group * inputs : (group + 1) * inputs]
        output[:, index] = np.einsum("ncijyx,cij->nyx", part, weight[index])
        if bias is not None:
            output[:, index] += bias[index]
    return output


def _deform_conv2d_terms(
    x: Array, offset: Array, weight: Array, mask: Array | None, bias: Array | None, **numbers: Any
) -> tuple[Any, Any]:
    del offset, numbers
    count, reach = value_terms(x, mask)
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

_PLAIN = {name: value for name, value in numbers_of().items() if name != "kernel_size"}
_WEIGHT = floats(2, 2, 2, 2, phase=0.1)

reference(
    "deform_conv2d",
    samples=[
        *[_convolved(sample) for sample in SAMPLES if sample.note not in _OF_OFFSETS],
        sample(
            "without mask and bias",
            X,
            between(2, 8, 3, 4),
            _WEIGHT,
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
        sample(
            "groups of weights",
            floats(2, 4, 3, 4),
            between(2, 16, 2, 3),
            floats(6, 2, 2, 2, phase=0.1),
            mask_of(2, 8, 2, 3),
            floats(6),
            weight_groups=2,
            **{**_PLAIN, "offset_groups": 2},
        ),
        sample(
            "depthwise",
            floats(1, 2, 3, 4),
            between(1, 8, 2, 3),
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
            X,
            floats(2, 4, 3, 4),
            _WEIGHT,
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
        error("mask", ShapeError, X, OFFSET, _WEIGHT, OFFSET, None, weight_groups=1, **_PLAIN),
        error(
            "other channels",
            ShapeError,
            X,
            OFFSET,
            floats(2, 1, 2, 2),
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
        error(
            "bias of one",
            ShapeError,
            X,
            OFFSET,
            _WEIGHT,
            None,
            floats(1),
            weight_groups=1,
            **_PLAIN,
        ),
        error(
            "no groups of weights",
            ArgumentError,
            X,
            OFFSET,
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
            OFFSET,
            _WEIGHT,
            None,
            None,
            weight_groups=1,
            **_PLAIN,
        ),
    ],
    terms=_deform_conv2d_terms,
)(_deform_conv2d)
