"""What a router sends operations through: a channel, and a client of it for each device."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from burn.backend import Backend
from burn.dtype import DType, DTypeUsage
from burn.ir import OperationIr, TensorIr
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.device_id import DeviceId

__all__ = ["RunnerChannel", "RunnerClient"]


class RunnerClient(Protocol):
    """Sends the operations on the tensors of one device to whatever runs them.

    A client may queue operations. Errors of values are raised no later than by the next read.
    """

    device: DeviceId

    def next_id(self) -> int:
        """A number for a new tensor."""

    def register(self, operation: OperationIr) -> None:
        """Run an operation, now or later."""

    def register_data(self, tensor: TensorIr, data: TensorData) -> None:
        """Make a tensor of host data."""

    def drop(self, id: int) -> None:
        """Forget a tensor; nothing happens if it was never made."""

    def read(self, tensor: TensorIr) -> TensorData:
        """The values of a tensor; waits for the operations that they depend on."""

    def read_all(self, tensors: Sequence[TensorIr]) -> list[TensorData]:
        """The values of several tensors, in one round trip."""

    def shape(self, tensor: TensorIr) -> tuple[int, ...]:
        """The shape of a tensor that depends on data; waits for the operations."""

    def flush(self) -> None:
        """Send what is queued."""

    def sync(self) -> None:
        """Send what is queued, and wait until it is done."""

    def seed(self, seed: int) -> None:
        """Seed the random numbers of the device."""

    def dtype_usage(self, dtype: DType) -> DTypeUsage:
        """What the device can do with a dtype."""


class RunnerChannel(Protocol):
    """Connects a router with the devices that run its operations."""

    def name(self, device: DeviceId) -> str:
        """Name of the device, such as ``router<cpu>``."""

    def init_client(self, device: DeviceId) -> RunnerClient:
        """A new client of a device; see `get_client` for the one that a device has."""
