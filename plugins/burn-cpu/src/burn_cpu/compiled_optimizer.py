"""Steps of optimizers in one pass, which numba compiles."""

from __future__ import annotations

import numpy as np

from burn_cpu.base import Array
from burn_cpu.compiled_base import compiled_exactly, float32

__all__ = ["adam"]


@compiled_exactly
def adam(
    parameter: Array,
    gradient: Array,
    first_moment: Array,
    second_moment: Array,
    beta1: float,
    beta2: float,
    rate: float,
    scale: float,
    epsilon: float,
    decay: float,
) -> None:
    """A step of Adam in place; `rate`, `scale` and `decay` are those of one step."""
    new1, old1 = float32(1.0 - beta1), float32(beta1)
    new2, old2 = float32(1.0 - beta2), float32(beta2)
    step, factor, least, kept = float32(rate), float32(scale), float32(epsilon), float32(decay)
    for i in range(len(parameter)):
        slope = gradient[i]
        first = old1 * first_moment[i] + new1 * slope
        second = old2 * second_moment[i] + new2 * (slope * slope)
        first_moment[i] = first
        second_moment[i] = second
        parameter[i] = kept * parameter[i] - step * (first / (factor * np.sqrt(second) + least))
