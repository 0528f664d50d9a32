"""Weighted sums of elements along the axes of a tensor, where no op has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from burn.dtype import DType, Kind, bool_, float32
from burn.errors import DTypeError
from burn.functions.creation import asarray
from burn.functions.indexing import take
from burn.functions.manipulation import reshape
from burn.functions.normalize import check_tensor
from burn.functions.quantization import numbers_of
from burn.functions.searching import where
from burn.functions.statistical import sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn.tensor.tensor import Tensor

__all__ = ["AxisSums", "float_numbers", "sums_along_axes"]

AxisSums = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Of each element of a result along an axis: indices of the elements that it sums, and their
weights, both of shape (count, terms). A term of weight 0 is left out, whatever its element is."""


def float_numbers(x: Tensor, operation: str) -> Tensor:
    """A float tensor; of a quantized one the floats that it stands for."""
    check_tensor(x, "x", operation)
    x = numbers_of(x)
    if x.dtype.kind is not Kind.FLOAT:
        raise DTypeError(
            f"x must be floats, not {x.dtype}",
            hint="Convert it with .astype()",
            operation=operation,
        )
    return x


def sums_along_axes(x: Tensor, sums: Sequence[AxisSums]) -> Tensor:
    """Sums along each of the last axes, one after the other; of 16-bit floats in float32."""
    total = x.astype(float32) if x.dtype.itemsize < float32.itemsize else x
    for axis, (indices, weights) in enumerate(sums, start=x.ndim - len(sums)):
        total = _sums_along(total, axis, indices, weights)
    return total


def _sums_along(
    x: Tensor, axis: int, indices: NDArray[np.int64], weights: NDArray[np.float64]
) -> Tensor:
    table = (*weights.shape, *(1,) * (x.ndim - 1 - axis))

    def beside_terms(values: NDArray[Any], dtype: DType) -> Tensor:
        return asarray(values.reshape(table), dtype=dtype, device=x.device)

    integers = x.device.settings.int_dtype
    elements = asarray(indices.reshape(-1), dtype=integers, device=x.device)
    shape = (*x.shape[:axis], *weights.shape, *x.shape[axis + 1 :])
    terms = reshape(take(x, elements, axis=axis), shape)
    present = weights != 0.0
    if not present.all():
        terms = where(beside_terms(present, bool_), terms, 0.0)
    if not (weights[present] == 1.0).all():
        terms = terms * beside_terms(weights, x.dtype)
    return sum(terms, axis=axis + 1)
