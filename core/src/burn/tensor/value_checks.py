"""Checks of the values in tensors, which the device makes: no later than the next read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.backend.refusal import Refusal, refused_index
from burn.ops.places import index_dtype
from burn.tensor.creation_functions import zeros
from burn.tensor.indexing_functions import take
from burn.tensor.searching_functions import where
from burn.tensor.utility_functions import all

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["require"]


def require(valid: Tensor, refusal: Refusal) -> Tensor:
    """Zero, of shape (1,) and an integer dtype, which is an error unless everything is valid.

    Add it to a result, so that this depends on the check.
    """
    dtype = index_dtype(valid.device.ops)
    zero = zeros(1, dtype=dtype, device=valid.device)
    index = where(all(valid), zero, refused_index(dtype, refusal))
    return take(zero, index, axis=0)
