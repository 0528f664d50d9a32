"""Samples of the gradients of convolutions by their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.errors import ShapeError
from burn.testing.arrays import floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.windows._convolutions import SAMPLES, X, convolved, meetings, numbers_of


def _conv_weight_grad(x: Array, g: Array, *, kernel_size: tuple[int, ...], **numbers: Any) -> Array:
    groups = numbers["groups"]
    inputs, features = x.shape[1] // groups, g.shape[1] // groups
    gradient = np.zeros((g.shape[1], inputs, *kernel_size))
    for window, index, element in meetings(x.shape[2:], g.shape[2:], kernel_size, numbers):
        products = (g[window][:, :, None] * x[element][:, None, :]).sum(axis=0)
        for output in range(g.shape[1]):
            group = output // features
            gradient[(output, *index[1:])] += products[
                output, group * inputs : (group + 1) * inputs
            ]
    return gradient


def _conv_weight_grad_terms(x: Array, g: Array, **attributes: Any) -> tuple[Any, Any]:
    count = max(g.size // max(g.shape[1], 1), 1)
    return count, _conv_weight_grad(abs(x), abs(g), **attributes)


def _of_weight(one: Sample) -> Sample:
    """A sample of `conv` as one of its gradient: its output stands for the gradient."""
    x, weight, _ = one.operands
    output = convolved(x, weight, None, **one.attributes)
    g = floats(*output.shape, phase=0.4)
    views = {"transposed": transposed, "strided": strided, "reversed": reversed_view}
    view = views.get(one.note, np.asarray)
    return sample(one.note, x, view(g), kernel_size=weight.shape[2:], **one.attributes)


reference(
    "conv_weight_grad",
    samples=[
        *[_of_weight(sample) for sample in SAMPLES],
        sample(
            "ones that 16-bit addition would lose",
            np.ones((1, 1, 500)),
            np.ones((1, 1, 500)),
            kernel_size=(1,),
            **numbers_of(1),
        ),
        sample(
            "no channels",
            floats(2, 0, 3, 3),
            floats(2, 2, 2, 2),
            kernel_size=(2, 2),
            **numbers_of(),
        ),
    ],
    errors=[
        error(
            "windows that there are not",
            ShapeError,
            X,
            floats(2, 3, 3, 3),
            kernel_size=(3, 3),
            **numbers_of(),
        ),
        error(
            "another batch", ShapeError, X, floats(1, 3, 3, 4), kernel_size=(3, 3), **numbers_of()
        ),
        error("another rank", ShapeError, X, floats(2, 3, 3), kernel_size=(3, 3), **numbers_of()),
        error(
            "without channels", ShapeError, floats(2), floats(2), kernel_size=(3, 3), **numbers_of()
        ),
        error(
            "groups of outputs",
            ShapeError,
            X,
            floats(2, 3, 3, 4),
            kernel_size=(3, 3),
            **numbers_of(groups=2),
        ),
        error(
            "kernel of one axis",
            ShapeError,
            X,
            floats(2, 3, 3, 4),
            kernel_size=(3,),
            **numbers_of(),
        ),
    ],
    terms=_conv_weight_grad_terms,
)(_conv_weight_grad)
