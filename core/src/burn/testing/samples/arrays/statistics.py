"""Samples of the spread of elements over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import AxisError
from burn.testing.arrays import floats, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.arrays.reduction import layouts, over_axes

_SAMPLES: Final[list[Sample]] = [
    *layouts("floats", floats),
    *layouts("sample", floats, correction=1.0),
    sample("over no elements", floats(2, 0), axis=(1,)),
    sample("fewer elements than the correction", floats(3, 1), axis=(1,), correction=2.0),
    sample("one element and correction 1", floats(3, 1), axis=(1,), correction=1.0),
    sample("a fractional correction", floats(3, 4), axis=(0,), correction=0.5),
    sample("NaN", np.array([[1.0, math.nan, 2.0], [2.0, 4.0, 5.0]]), axis=(1,)),
    sample("infinity", np.array([[1.0, math.inf, 2.0], [2.0, 4.0, 5.0]]), axis=(1,)),
    sample("squares beyond float16", floats(2, 3) * 100.0 + 200.0, axis=(1,)),
    sample("far from 0", 100.0 + transposed(floats(5, 4)), axis=(0,)),
]
_ERRORS: Final = [
    error("axis out of range", AxisError, floats(2), axis=(2,)),
    error("an axis twice", AxisError, floats(2), axis=(0, 0)),
]


def _spread(finish: Callable[[float], float]) -> Callable[..., Array]:
    def spread(
        x: Array, *, axis: tuple[int, ...], keepdims: bool = False, correction: float = 0.0
    ) -> Array:
        def of(row: list[Any]) -> float:
            if not row or not all(map(math.isfinite, row)):
                return math.nan
            mean = math.fsum(row) / len(row)
            total = math.fsum((item - mean) ** 2 for item in row)
            divisor = max(len(row) - correction, 0.0)
            if divisor:
                return finish(total / divisor)
            return math.inf if total else math.nan

        return over_axes(of, x, axis, keepdims)

    return spread


reference("var", samples=_SAMPLES, errors=_ERRORS)(_spread(float))
reference(
    "std",
    samples=[
        *_SAMPLES,
        sample(
            "no spread, no gradient",
            np.array([[1.0, 1.0], [0.0, 0.0]]),
            axis=(1,),
            differentiable=False,
            gradients=(np.zeros((2, 2)),),
        ),
    ],
    errors=_ERRORS,
)(_spread(math.sqrt))
