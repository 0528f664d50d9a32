"""Checks of values on the device, whose errors are raised no later than the next read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.backend.invalid_values import InvalidValue, invalid_value_index
from burn.functions.creation import zeros
from burn.functions.indexing import take
from burn.functions.searching import where
from burn.functions.utility import all
from burn.ops.index_arithmetic import index_dtype

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["require"]


def require(valid: Tensor, value: InvalidValue) -> Tensor:
    """Check that all elements of a boolean tensor are true; the result is 0, or an error when read.

    Add the result, an integer tensor of shape (1,), to that of an op, which then depends on the
    check.
    """
    dtype = index_dtype(valid.device.ops)
    zero = zeros(1, dtype=dtype, device=valid.device)
    index = where(all(valid), zero, invalid_value_index(dtype, value))
    return take(zero, index, axis=0)
