"""Samples of what deformed windows hold, and of its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.errors import ShapeError
from burn.testing.arrays import floats, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.windows._deformed_windows import (
    ERRORS,
    OFFSET,
    SAMPLES,
    X,
    columns_shape,
    numbers_of,
    sample_points,
    unfolded,
    value_terms,
)


def _unfold_terms(x: Array, offset: Array, mask: Array | None, **numbers: Any) -> tuple[Any, Any]:
    del offset, numbers
    return value_terms(x, mask)


reference(
    "deform_unfold4d",
    samples=SAMPLES,
    errors=[error(note, kind, *operands, **numbers) for note, kind, *operands, numbers in ERRORS],
    terms=_unfold_terms,
)(unfolded)


def _gradients(
    x: Array, offset: Array, mask: Array | None, g: Array, **numbers: Any
) -> tuple[Array, Array, Array]:
    kernel, groups = numbers["kernel_size"], numbers["offset_groups"]
    parts = (offset.shape[0], groups * kernel[0] * kernel[1], *offset.shape[2:])
    to_x, to_offset, to_mask = np.zeros(x.shape), np.zeros(offset.shape), np.zeros(parts)
    for sample_point in sample_points(x.shape, offset, numbers):
        share = g[sample_point.image, sample_point.row, sample_point.column]
        shared = (sample_point.image, sample_point.part, *sample_point.window)
        factor = 1.0 if mask is None else mask[shared]
        for index, weight, down, across in sample_point.corners:
            if index is None:
                continue
            element = (sample_point.image, sample_point.channel, *index)
            to_x[element] += share * factor * weight
            to_mask[shared] += share * weight * x[element]
            for axis, slope in enumerate((down, across)):
                to_offset[
                    (sample_point.image, 2 * sample_point.part + axis, *sample_point.window)
                ] += share * factor * slope * x[element]
    return to_x, to_offset, to_mask


def _gradient_terms(
    x: Array, offset: Array, mask: Array | None, g: Array, **numbers: Any
) -> tuple[Any, Any]:
    del offset, numbers
    count, reach = value_terms(x, mask)
    most = max([float(np.abs(tensor).max(initial=1.0)) for tensor in (x, g)])
    return count * max(x.shape[1], 1), reach * most * max(x.shape[1], 1)


def _of_gradient(one: Sample) -> Sample:
    """A sample of `deform_unfold4d` as one of its gradient."""
    x, offset, mask = one.operands
    numbers = dict(one.attributes)
    g = floats(*columns_shape(offset, x.shape[1], numbers), phase=0.8)
    if one.note == "transposed":
        g = transposed(g)
    return sample(one.note, x, offset, mask, g, differentiable=one.differentiable, **numbers)


reference(
    "deform_unfold4d_grad",
    samples=[
        _of_gradient(sample) for sample in SAMPLES if sample.note != "offsets that are no numbers"
    ],
    errors=[
        *[
            error(note, kind, *operands, floats(2, 8, 12), **numbers)
            for note, kind, *operands, numbers in ERRORS
        ],
        error("gradient", ShapeError, X, OFFSET, None, floats(2, 8, 11), **numbers_of()),
        error(
            "gradient to be repeated", ShapeError, X, OFFSET, None, floats(1, 8, 12), **numbers_of()
        ),
    ],
    terms=_gradient_terms,
)(_gradients)
