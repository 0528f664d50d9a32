"""The elements over some axes as rows: for functions that sort or search over several axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["kept_shape", "rows_over"]


def rows_over(x: Tensor, axes: Sequence[int]) -> Tensor:
    """`x` with the elements over `axes` along a new last axis, and the other axes before it."""
    kept = [number for number in range(x.ndim) if number not in axes]
    count = math.prod([x.shape[number] for number in axes])
    lengths = [x.shape[number] for number in kept]
    return x.permute_dims((*kept, *axes)).reshape((*lengths, count))


def kept_shape(shape: Shape, axes: Sequence[int], *, keepdims: bool) -> Shape:
    """The shape that is left of one after the reduction of `axes`."""
    if keepdims:
        return tuple([1 if number in axes else length for number, length in enumerate(shape)])
    return tuple([length for number, length in enumerate(shape) if number not in axes])
