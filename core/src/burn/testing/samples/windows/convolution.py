"""Samples of convolutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import floats
from burn.testing.op_samples import Array, error, reference, sample
from burn.testing.samples.windows._convolutions import SAMPLES, WEIGHT, X, convolved, numbers_of


def _conv_terms(x: Array, weight: Array, bias: Array | None, **numbers: Any) -> tuple[Any, Any]:
    magnitude = convolved(abs(x), abs(weight), None if bias is None else abs(bias), **numbers)
    return math.prod(weight.shape[1:]) + 1, magnitude


_CONVOLVED = [
    *SAMPLES,
    sample(
        "windows that end before the input",
        floats(1, 2, 6, 7),
        WEIGHT,
        None,
        **numbers_of(stride=(4, 4)),
    ),
    sample("no channels", floats(2, 0, 3, 3), floats(2, 0, 2, 2), floats(2), **numbers_of()),
    sample("no outputs", floats(2, 2, 3, 3), floats(0, 2, 2, 2), None, **numbers_of()),
    sample(
        "ones that 16-bit addition would lose",
        np.ones((1, 500, 1)),
        np.ones((1, 500, 1)),
        None,
        **numbers_of(1),
    ),
    sample(
        "NaN and infinity reach their own windows",
        np.where(
            floats(1, 1, 5, 5) > 1.8, np.nan, np.where(floats(1, 1, 5, 5) < -1.8, np.inf, 1.0)
        ),
        np.abs(floats(2, 1, 2, 2)),
        None,
        **numbers_of(padding=((1, 1),) * 2),
    ),
]


reference(
    "conv",
    samples=_CONVOLVED,
    errors=[
        error("unbatched", ShapeError, floats(4, 5, 6), floats(6, 4, 3, 3), None, **numbers_of()),
        error("weight of other rank", ShapeError, X, floats(6, 4, 3), None, **numbers_of()),
        error("no spatial axes", ShapeError, floats(2, 3), floats(2, 3), None, **numbers_of(0)),
        error("other channels", ShapeError, X, floats(6, 3, 3, 3), None, **numbers_of()),
        error("one channel", ShapeError, X, floats(6, 1, 3, 3), None, **numbers_of()),
        error("groups of inputs", ShapeError, X, floats(6, 1, 3, 3), None, **numbers_of(groups=3)),
        error("groups of outputs", ShapeError, X, floats(5, 2, 3, 3), None, **numbers_of(groups=2)),
        error("no groups", ArgumentError, X, floats(6, 4, 3, 3), None, **numbers_of(groups=0)),
        error("bias of other length", ShapeError, X, floats(6, 4, 3, 3), floats(5), **numbers_of()),
        error("bias of one", ShapeError, X, floats(6, 4, 3, 3), floats(1), **numbers_of()),
        error("bias with axes", ShapeError, X, floats(6, 4, 3, 3), floats(6, 1, 1), **numbers_of()),
        error("kernel too long", ShapeError, X, floats(6, 4, 6, 1), None, **numbers_of()),
        error(
            "dilated kernel too long",
            ShapeError,
            X,
            floats(6, 4, 1, 4),
            None,
            **numbers_of(dilation=(1, 2)),
        ),
        error(
            "kernel without elements", ArgumentError, X, floats(6, 4, 0, 3), None, **numbers_of()
        ),
        error(
            "empty spatial axis",
            ShapeError,
            floats(2, 4, 0, 6),
            floats(6, 4, 1, 1),
            None,
            **numbers_of(),
        ),
        error("stride 0", ArgumentError, X, floats(6, 4, 3, 3), None, **numbers_of(stride=(0, 1))),
        error(
            "dilation 0", ArgumentError, X, floats(6, 4, 3, 3), None, **numbers_of(dilation=(1, 0))
        ),
        error(
            "negative padding",
            ArgumentError,
            X,
            floats(6, 4, 3, 3),
            None,
            **numbers_of(padding=((0, 0), (-1, 0))),
        ),
        error(
            "one stride", ArgumentError, X, floats(6, 4, 3, 3), None, **numbers_of(dilation=(1,))
        ),
        error(
            "too much padding",
            ShapeError,
            X,
            floats(6, 4, 3, 3),
            None,
            **numbers_of(padding=((1 << 61, 1 << 61),) * 2),
        ),
    ],
    terms=_conv_terms,
)(convolved)
