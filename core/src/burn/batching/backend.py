"""Batch: a decorator that runs the ops of any backend on all examples of a batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.backend.decorator import Decorator
from burn.batching.table import BatchingTable, check_active
from burn.batching.tensor import BatchedTensor, Frame
from burn.locks import new_lock
from burn.ops.table import resolve_below

if TYPE_CHECKING:
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.ops.signature import Primitive

__all__ = ["Batch"]


class Batch(Decorator):
    """A backend over another, some of whose tensors have a hidden batch axis.

    A tensor that is the same for all examples is a primitive of the backend below. Batch over Batch
    has two hidden axes; Batch and Autodiff decorate each other.

    Parameters
    ----------
    below : Backend
        The backend that computes.
    """

    def __init__(self, below: Backend) -> None:
        super().__init__(below)
        self.tensor_type: type[BatchedTensor] = type(
            "BatchedTensor", (BatchedTensor,), {"__slots__": ()}
        )
        self._tables: dict[tuple[DeviceId, bool], BatchingTable] = {}
        self._lock = new_lock()

    def name(self, device: DeviceId) -> str:
        """``vmap<cpu>`` for the backend ``cpu``."""
        return f"vmap<{self.below.name(device)}>"

    def for_device(self, device: DeviceId, *, checkpointing: bool = False) -> BatchingTable:
        """The batching op table of a device.

        Parameters
        ----------
        device : DeviceId
            The device.
        checkpointing : bool
            Whether autodiff below computes again what it does not keep.
        """
        with self._lock:
            table = self._tables.get((device, checkpointing))
            if table is None:
                below = resolve_below(self.below, device, checkpointing=checkpointing)
                table = BatchingTable(below, self.tensor_type)
                self._tables[device, checkpointing] = table
            return table

    def is_batched(self, tensor: Primitive) -> bool:
        """Whether a tensor has the hidden batch axis of this level."""
        return tensor.__class__ is self.tensor_type

    def wrap(self, primitive: Primitive, frame: Frame) -> BatchedTensor:
        """A tensor whose batch axis is axis 0 of a primitive of the backend below."""
        tensor = self.tensor_type()
        tensor.primitive = primitive
        tensor.frame = frame
        return tensor

    def batch(
        self, primitive: Primitive, frame: Frame, axis: int, ops: BatchingTable
    ) -> BatchedTensor:
        """A tensor whose batch axis is an axis, in [0, rank), of a primitive of the backend below.

        `ops` is the table of the primitive's device.
        """
        if axis:
            order = (axis, *[index for index in range(len(primitive.shape)) if index != axis])
            primitive = ops.below.permute(primitive, axes=order)
        return self.wrap(primitive, frame)

    def unbatch(self, tensor: Primitive, frame: Frame, axis: int, ops: BatchingTable) -> Primitive:
        """The primitive of the backend below with the batch axis at `axis`, in [0, rank].

        A tensor that is the same for all examples is repeated.

        Raises
        ------
        ArgumentError
            If the tensor belongs to a call that has returned, or to another one.
        """
        if self.is_batched(tensor):
            check_active(tensor, frame)
            primitive = tensor.primitive
        else:
            primitive = ops.below.expand(tensor, shape=(frame.size, *tensor.shape))
        if not axis:
            return primitive
        rank = len(primitive.shape)
        order = (*range(1, axis + 1), 0, *range(axis + 1, rank))
        return ops.below.permute(primitive, axes=order)
