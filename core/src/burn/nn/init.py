"""First values of parameters: new tensors, of random numbers that a device's seed decides.

The same seed gives the same numbers on every backend.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burn.functions import random

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = ["fans", "uniform"]


def fans(shape: Shape) -> tuple[int, int]:
    """Number of inputs and of outputs that an element of a weight's output and input sees."""
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def uniform(
    shape: Any,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform numbers in [low, high)."""
    return random.uniform(shape, low, high, dtype=dtype, device=device)
