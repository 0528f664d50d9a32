"""The value of ``x[key] = value``: a tensor of the dtype of `x`, in the shape of ``x[key]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dispatch import DispatchTensor, as_python
from burn.errors import OperandTypeError, ShapeError
from burn.functions.creation import asarray, full
from burn.functions.normalize import as_scalar
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["broadcast_value", "value_tensor"]


def value_tensor(x: Tensor, value: Any) -> Tensor:
    """The value as a tensor of the dtype of `x`."""
    if isinstance(value, DispatchTensor):
        return value.astype(x.dtype)  # type: ignore[attr-defined, no-any-return]  # a Tensor
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        return asarray(value, dtype=x.dtype, device=x.device)
    number = as_python(value)
    kinds = (bool, int) if x.dtype.is_integer or x.dtype.is_bool else (bool, int, float)
    if isinstance(number, (float, complex)) and not isinstance(number, kinds):
        if not (x.dtype.is_float or x.dtype.is_integer or x.dtype.is_bool):
            return asarray(number, dtype=x.dtype, device=x.device)
        raise OperandTypeError(
            f"{shown_value(number)} cannot be assigned to elements of {x.dtype}",
            hint="Convert the tensor with .astype(), or the number",
            operation="indexing",
        )
    return full((), as_scalar(number, x.dtype, "indexing"), dtype=x.dtype, device=x.device)


def broadcast_value(value: Tensor, shape: Shape) -> Tensor:
    """The value in the shape of ``x[key]``; surplus leading axes of length 1 are dropped."""
    surplus = max(value.ndim - len(shape), 0)
    if surplus and set(value.shape[:surplus]) == {1}:
        value = value.reshape(value.shape[surplus:])
    try:
        return value if value.shape == shape else value.broadcast_to(shape)
    except ShapeError:
        raise ShapeError(
            f"cannot assign a value of shape {value.shape} to a part of shape {shape}",
            operation="indexing",
        ) from None
