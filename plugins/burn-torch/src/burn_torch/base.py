"""TorchOps: the typed base of the mixins of `TorchBackend`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

import torch

from burn.plugin_api import Backend, DeviceId
from burn_torch.index_checks import IndexChecks, as_int64, checked
from burn_torch.settings import Precision, without_autocast

__all__ = ["TorchOps"]

_Result = TypeVar("_Result")
_NO_CONTEXT: Final = contextlib.nullcontext()


class TorchOps(Backend):
    """Ops on tensors of one device; each mixin adds methods for one family of ops."""

    device_id: DeviceId
    """The device, as burn numbers it."""

    torch_device: torch.device
    """The device, as torch names it."""

    on_host: bool
    """Whether tensors lie in host memory."""

    products: Precision
    """The precision to which torch is set for products of float32 matrices."""

    convolutions: Precision
    """The precision to which torch is set for convolutions of float32."""

    recurrences: Precision
    """The precision to which torch is set for recurrent layers of float32."""

    index_checks: IndexChecks
    """Indices that were passed to kernels and not checked yet."""

    def decomposed(self, name: str, *operands: Any, **attributes: Any) -> _Result:  # type: ignore[type-var]  # what the caller returns: a tensor, or a tuple of them
        """The default of an op, made of other ops: for cases that a method leaves to it."""
        result: _Result = self.ops.decomposed(name, *operands, **attributes)
        return result

    def exact_products(self) -> contextlib.AbstractContextManager[Any]:
        """Context in which torch neither rounds operands of products nor casts them."""
        reduced, casting = self.products.is_reduced(), torch._C._is_any_autocast_enabled()
        if not reduced and not casting:
            return _NO_CONTEXT
        stack = contextlib.ExitStack()
        if reduced:
            stack.enter_context(self.products.exact())
        if casting:
            stack.enter_context(without_autocast(self.torch_device))
        return stack

    def indexed(
        self,
        function: Callable[[torch.Tensor], torch.Tensor],
        indices: torch.Tensor,
        length: int,
        *,
        least: int | None = None,
    ) -> torch.Tensor:
        """The result of a function of indices in [0, length) for indices in [-length, length).

        With `least` 0 negative indices are out of range.
        """
        if indices.dtype is not torch.int64:
            indices = as_int64(indices)
        if not self.on_host:
            return function(self.index_checks.recorded(indices, length, least=least))
        try:
            return function(indices)
        except (IndexError, RuntimeError):
            return function(checked(indices, length, least=least))
