"""What samples of convolutions share. References loop over all windows and their elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, sample

__all__ = [
    "BIAS",
    "SAMPLES",
    "WEIGHT",
    "X",
    "convolved",
    "matrix_of",
    "meetings",
    "numbers_of",
    "product",
]


def numbers_of(axes: int = 2, **changed: Any) -> dict[str, Any]:
    """Attributes of a convolution in which nothing is special but what is said."""
    plain = {"stride": (1,) * axes, "padding": ((0, 0),) * axes, "dilation": (1,) * axes}
    return {**plain, "groups": 1, **changed}


def meetings(
    lengths: tuple[int, ...],
    counts: tuple[int, ...],
    kernel: tuple[int, ...],
    numbers: dict[str, Any],
) -> Iterator[tuple[Any, Any, Any]]:
    """Each window, each index of the kernel, and the element below it, unless that is padding."""
    for window in itertools.product(*map(range, counts)):
        for index in itertools.product(*map(range, kernel)):
            element = tuple(
                i * step - before + k * spread
                for i, k, step, (before, _), spread in zip(
                    window,
                    index,
                    numbers["stride"],
                    numbers["padding"],
                    numbers["dilation"],
                    strict=True,
                )
            )
            if all(0 <= item < length for item, length in zip(element, lengths, strict=True)):
                everything = (slice(None), slice(None))
                yield (*everything, *window), (*everything, *index), (*everything, *element)


def matrix_of(weight: Array, groups: int) -> Array:
    """Weights of one element of the kernel: from all channels to all outputs, 0 between groups."""
    outputs, inputs = weight.shape
    matrix = np.zeros((outputs, inputs * groups))
    features = outputs // groups
    for output in range(outputs):
        group = output // features
        matrix[output, group * inputs : (group + 1) * inputs] = weight[output]
    return matrix


def convolved(x: Array, weight: Array, bias: Array | None, **numbers: Any) -> Array:
    """Return what `conv` should."""
    counts = tuple(
        (length + sum(ends) - spread * (taps - 1) - 1) // step + 1
        for length, taps, step, ends, spread in zip(
            x.shape[2:],
            weight.shape[2:],
            numbers["stride"],
            numbers["padding"],
            numbers["dilation"],
            strict=True,
        )
    )
    output = np.zeros((x.shape[0], weight.shape[0], *counts))
    for window, index, element in meetings(x.shape[2:], counts, weight.shape[2:], numbers):
        output[window] += product(x[element], matrix_of(weight[index], numbers["groups"]).T)
    return output if bias is None else output + bias.reshape(-1, *[1] * len(counts))


def product(rows: Array, matrix: Array) -> Array:
    """Matrix product in which 0 times anything is 0: those are the channels of other groups."""
    terms = np.where(matrix == 0.0, 0.0, rows[:, :, None] * matrix)
    return np.asarray(terms.sum(axis=1))


WEIGHT = floats(3, 2, 3, 2, phase=0.1)
BIAS = floats(3, phase=0.7)

SAMPLES: Final[list[Sample]] = [
    sample("images", floats(2, 2, 4, 5), WEIGHT, BIAS, **numbers_of()),
    sample("without a bias", floats(2, 2, 4, 5), WEIGHT, None, **numbers_of()),
    sample("padding", floats(1, 2, 4, 5), WEIGHT, BIAS, **numbers_of(padding=((1, 1), (2, 2)))),
    sample(
        "padding at one end",
        floats(1, 2, 4, 5),
        WEIGHT,
        None,
        **numbers_of(padding=((0, 2), (1, 0))),
    ),
    sample(
        "stride",
        floats(1, 2, 7, 6),
        WEIGHT,
        BIAS,
        **numbers_of(stride=(2, 3), padding=((1, 0),) * 2),
    ),
    sample(
        "stride larger than the kernel",
        floats(1, 2, 9, 6),
        WEIGHT,
        None,
        **numbers_of(stride=(5, 3)),
    ),
    sample("dilation", floats(1, 2, 7, 6), WEIGHT, None, **numbers_of(dilation=(2, 3))),
    sample(
        "everything",
        floats(2, 2, 6, 7),
        WEIGHT,
        BIAS,
        **numbers_of(stride=(2, 1), dilation=(2, 2), padding=((1, 2), (0, 1))),
    ),
    sample(
        "groups",
        floats(2, 4, 3, 4),
        floats(6, 2, 2, 2, phase=0.1),
        floats(6),
        **numbers_of(groups=2),
    ),
    sample(
        "depthwise",
        floats(2, 3, 4, 4),
        floats(3, 1, 3, 3, phase=0.1),
        BIAS,
        **numbers_of(groups=3, padding=((1, 1),) * 2),
    ),
    sample(
        "depthwise, two outputs each",
        floats(2, 2, 4, 5),
        floats(4, 1, 2, 3, phase=0.1),
        None,
        **numbers_of(groups=2, padding=((1, 0), (0, 2))),
    ),
    sample(
        "depthwise with a stride",
        floats(1, 2, 5, 5),
        floats(2, 1, 3, 3, phase=0.1),
        None,
        **numbers_of(groups=2, stride=(2, 2)),
    ),
    sample("kernel equal to the input", floats(2, 2, 3, 2), WEIGHT, BIAS, **numbers_of()),
    sample("1x1 images", floats(3, 2, 1, 1), floats(4, 2, 1, 1, phase=0.1), None, **numbers_of()),
    sample(
        "1x1 images with padding",
        floats(3, 2, 1, 1),
        WEIGHT,
        None,
        **numbers_of(padding=((1, 1),) * 2),
    ),
    sample(
        "pointwise", floats(2, 3, 3, 4), floats(2, 3, 1, 1, phase=0.1), floats(2), **numbers_of()
    ),
    sample(
        "more padding than kernel",
        floats(1, 1, 2, 2),
        floats(1, 1, 2, 1, phase=0.1),
        None,
        **numbers_of(padding=((3, 1), (0, 2)), stride=(1, 2)),
    ),
    sample(
        "small images with many channels",
        floats(3, 16, 3, 3),
        floats(4, 16, 3, 3, phase=0.1),
        floats(4),
        **numbers_of(padding=((1, 1),) * 2),
    ),
    sample("one axis", floats(2, 2, 6), floats(2, 2, 3, phase=0.1), floats(2), **numbers_of(1)),
    sample(
        "three axes",
        floats(1, 2, 3, 4, 3),
        floats(2, 2, 2, 3, 1, phase=0.1),
        floats(2),
        **numbers_of(3, stride=(1, 2, 1), padding=((0, 1), (1, 1), (0, 0))),
    ),
    sample(
        "four axes",
        floats(1, 1, 2, 3, 2, 2),
        floats(1, 1, 1, 2, 2, 1, phase=0.1),
        None,
        **numbers_of(4),
    ),
    sample("empty batch", floats(0, 2, 4, 5), WEIGHT, BIAS, **numbers_of()),
    sample("transposed", transposed(floats(2, 2, 4, 5)), transposed(WEIGHT), BIAS, **numbers_of()),
    sample("strided", strided(floats(2, 2, 4, 5)), strided(WEIGHT), strided(BIAS), **numbers_of()),
    sample(
        "reversed",
        reversed_view(floats(2, 2, 4, 5)),
        reversed_view(WEIGHT),
        None,
        **numbers_of(padding=((1, 1),) * 2),
    ),
    sample(
        "expanded",
        expanded(floats(4, 1), 2, 2, 4, 5),
        expanded(floats(3, 1, 1, 2, phase=0.1), 3, 2, 3, 2),
        expanded(floats(), 3),
        **numbers_of(),
    ),
]
"""Operands and attributes of a convolution, of which its gradient has samples as well."""

X = floats(2, 4, 5, 6)
