"""Attributes of a tensor that need no computation: shape, dtype, device, whether it is tracked."""

from __future__ import annotations

from typing import Any

from burn.devices import Device
from burn.dispatch import Dispatch, DispatchTensor
from burn.functions import common
from burn.ops.shapes import size

__all__ = ["TensorAttributes", "dispatch"]

dispatch: Dispatch[Any] = common.dispatch
"""The Dispatch of `Tensor`, typed for the bases of `Tensor`, which to a type checker are none."""


class TensorAttributes(DispatchTensor):
    """Base of `Tensor` and of its other bases: what is known without a computation."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.primitive.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return size(self.primitive.shape)

    @property
    def device(self) -> Device:
        """Device that holds the tensor, and where operations on it run."""
        return self.tensor_type.device

    @property
    def is_require_grad(self) -> bool:
        """Whether it is a leaf that gradients are kept for."""
        return dispatch.is_require_grad(self)

    @property
    def is_tracked(self) -> bool:
        """Whether it is a leaf, or was computed from one."""
        return dispatch.is_tracked(self)
