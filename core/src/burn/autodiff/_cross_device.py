"""Moves of tracked tensors to another device, which are differentiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from burn.autodiff.backend import Autodiff
from burn.autodiff.graph import custom_node
from burn.autodiff.recording import records
from burn.batching import Batch

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.ops import OpTable
    from burn.ops.signature import Primitive

__all__ = ["Route"]

Move: TypeAlias = "Callable[[Primitive], Primitive]"


@dataclass(frozen=True)
class Route:
    """A move from one device to another, for tensors of backends with gradients.

    Attributes
    ----------
    source, target : Autodiff
        The backends, under the same decorators.
    source_device, target_device : DeviceId
        The devices.
    there, back : callable
        Move an undecorated primitive from source to target, and from target to source.
    """

    source: Any
    source_device: DeviceId
    target: Any
    target_device: DeviceId
    there: Move
    back: Move

    def carry(self, tensor: Primitive) -> Primitive:
        """The tensor on the target; a tracked one is tracked there, and this move recorded.

        The gradient is moved back by a route of the level below, so that it has a gradient itself.
        """
        if not isinstance(self.source, (Autodiff, Batch)):
            return self.there(tensor)
        below = Route(
            self.source.below,
            self.source_device,
            self.target.below,
            self.target_device,
            self.there,
            self.back,
        )
        if isinstance(self.source, Batch):
            if not self.source.is_batched(tensor):
                return below.carry(tensor)
            return self.target.wrap(below.carry(tensor.primitive), tensor.frame)
        if not self.source.is_tracked(tensor):
            return below.carry(tensor)
        primitive = below.carry(tensor.primitive)
        if not records(self.source.tensor_type, (tensor,)):
            return primitive
        back = below.reversed()

        def vjp(ops: OpTable, cotangents: Sequence[Primitive]) -> tuple[Primitive]:
            del ops
            return (back.carry(cotangents[0]),)

        ops = self.target.for_device(self.target_device).below
        (result,) = custom_node(
            self.target.tensor_type, [tensor.node], [primitive], vjp, ops, "to_device"
        )
        return result

    def reversed(self) -> Route:
        """The move back."""
        return Route(
            self.target,
            self.target_device,
            self.source,
            self.source_device,
            self.back,
            self.there,
        )
