"""Moves of tracked tensors to another device, which are differentiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from burn.autodiff.backend import Autodiff
from burn.autodiff.recording_state import custom_node, records
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
    target_device : DeviceId
        The device where tensors go.
    move : callable
        Moves an undecorated primitive.
    back : callable
        From the table in which a gradient is computed, on the target, to the route back for it: the
        gradient may be under more decorators than the tensor.
    """

    source: Any
    target: Any
    target_device: DeviceId
    move: Move
    back: Callable[[OpTable], Route]

    def carry(self, tensor: Primitive) -> Primitive:
        """The tensor on the target; a tracked one is tracked there, and this move recorded.

        The gradient is moved back by a route of the level below, so that it has a gradient itself.
        """
        if not isinstance(self.source, (Autodiff, Batch)):
            return self.move(tensor)
        below = replace(self, source=self.source.below, target=self.target.below)
        if isinstance(self.source, Batch):
            if not self.source.is_batched(tensor):
                return below.carry(tensor)
            return self.target.wrap(below.carry(tensor.primitive), tensor.frame)
        if not self.source.is_tracked(tensor):
            return below.carry(tensor)
        primitive = below.carry(tensor.primitive)
        if not records(self.source.tensor_type, (tensor,)):
            return primitive
        back = self.back

        def vjp(ops: OpTable, cotangents: Sequence[Primitive]) -> tuple[Primitive]:
            return (back(ops).carry(cotangents[0]),)

        ops = self.target.for_device(self.target_device).below
        (result,) = custom_node(
            self.target.tensor_type, [tensor.node], [primitive], vjp, ops, "to_device"
        )
        return result
