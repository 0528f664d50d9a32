"""Checks of the values in tensors, which the device makes: no later than the next read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.backend.refusal import Refusal, refused_index
from burn.functions.creation import zeros
from burn.functions.indexing import take
from burn.functions.searching import where
from burn.functions.utility import all
from burn.ops.index_arithmetic import index_dtype

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
