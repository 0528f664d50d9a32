"""Adapters for libraries that must register the array libraries they support: einops.

burn imports this module by itself where einops is imported and a tensor is made, in either order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from einops._backends import AbstractBackend

from burn import namespace as burn
from burn.public_calls import has_callers

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["EinopsBackend"]

has_callers(__name__)


def __dir__() -> list[str]:
    return __all__


class EinopsBackend(AbstractBackend):
    """The functions of an array library that einops needs."""

    framework_name = "burn"

    def is_appropriate_type(self, tensor: object) -> bool:
        """Whether it is a tensor of burn."""
        return isinstance(tensor, burn.Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        """A tensor on the default device."""
        return burn.asarray(x)

    def to_numpy(self, x: Tensor) -> Any:
        """The values on the host."""
        return x.numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """A range of integers."""
        return burn.arange(start, stop)

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        """One of ``sum``, ``mean``, ``max``, ``min``, ``prod``, ``any`` and ``all``."""
        reduction = getattr(burn, operation)
        return reduction(x, axis=tuple(axes))  # type: ignore[no-any-return]  # a function of burn

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        """Tensors joined along a new first axis."""
        return burn.stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """A new axis of length 1."""
        return burn.expand_dims(x, axis=new_position)

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        """Axes of length 1 repeated."""
        shape = [length * times for length, times in zip(x.shape, repeats, strict=True)]
        return burn.broadcast_to(x, tuple(shape))

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        """Tensors joined along an axis."""
        return burn.concat(tensors, axis=axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Whether a mean can be taken."""
        return x.dtype.is_float

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """Sum of products by Einstein's convention."""
        return burn.einsum(pattern, *x)
