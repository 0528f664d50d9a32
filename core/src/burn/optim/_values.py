"""Values of parameters, on the device below autodiff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.devices import AUTODIFF
from burn.functions.common import dispatch

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["converted", "is_leaf", "plain", "value_of", "with_value"]


def plain(x: Tensor) -> Tensor:
    """The value of a tensor on the device below autodiff, untracked."""
    return x.detach().inner() if x.device.layers else x.detach()


def is_leaf(x: Tensor) -> bool:
    """Whether a tensor is a leaf of the user's, not of a transform."""
    return x.device.layers == (AUTODIFF,) and x.is_require_grad


def value_of(x: Tensor) -> Tensor:
    """What an update computes with: the value of a leaf, or the tensor itself."""
    return plain(x) if is_leaf(x) else x


def with_value(x: Tensor, value: Tensor) -> Tensor:
    """A new value of a parameter, which is a leaf if the parameter is."""
    return dispatch.from_inner(value, x.device).require_grad() if is_leaf(x) else value


def converted(value: Tensor, x: Tensor) -> Tensor:
    """A value on the device of another tensor, in its dtype."""
    if value.tensor_type is x.tensor_type:
        return value
    return value.to_device(x.device).astype(x.dtype)
