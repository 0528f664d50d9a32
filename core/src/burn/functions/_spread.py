"""What functions of the spread of elements share: their accumulation, and their arguments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.dtype import DType, float32
from burn.errors import ShapeError
from burn.functions.elementwise import sqrt
from burn.functions.normalize import check_tensor
from burn.functions.quantization import numbers_of
from burn.functions.searching import where
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["accumulation_dtype", "finite_correction", "given_mean", "root"]


def accumulation_dtype(x: Tensor) -> DType:
    """The dtype in which sums of a tensor are computed: float32 for 16-bit floats."""
    return float32 if x.dtype.is_float and x.dtype.itemsize < float32.itemsize else x.dtype


def root(variance: Tensor) -> Tensor:
    """Square root whose gradient is 0 at 0."""
    flat = variance == 0
    return where(flat, variance, sqrt(where(flat, 1.0, variance)))


def given_mean(mean: Tensor, shape: Shape, operation: str) -> Tensor:
    """A mean that a caller gives; it must broadcast to the shape of the elements."""
    check_tensor(mean, "mean", operation)
    lengths = (1,) * (len(shape) - mean.ndim) + mean.shape
    if mean.ndim > len(shape) or any(
        length not in (1, expected) for length, expected in zip(lengths, shape, strict=True)
    ):
        raise ShapeError(
            f"a mean of shape {mean.shape} for elements of shape {shape}",
            hint="burn.mean(x, axis=axis, keepdims=True) has the shape that fits",
            operation=operation,
        )
    return numbers_of(mean)


def finite_correction(correction: float, operation: str) -> float:
    """What the number of elements is reduced by, as a float."""
    return real_number(correction, "correction", operation, above=-math.inf, below=math.inf)
