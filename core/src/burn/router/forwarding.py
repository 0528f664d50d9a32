"""Bases of channels and clients that wrap others: they forward every member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.dtype import DType, DTypeUsage
from burn.ir import OperationIr, TensorIr
from burn.router.channel import RunnerChannel, RunnerClient
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.device_id import DeviceId

__all__ = ["ForwardingChannel", "ForwardingClient"]


class ForwardingClient(RunnerClient):
    """A client over another, to which a subclass leaves what it does not override.

    Parameters
    ----------
    inner : RunnerClient
        The client that gets the calls.
    """

    def __init__(self, inner: RunnerClient) -> None:
        self.inner = inner
        self.device = inner.device

    def next_id(self) -> int:
        """A number for a new tensor."""
        return self.inner.next_id()

    def register(self, operation: OperationIr) -> None:
        """Run an operation, now or later."""
        self.inner.register(operation)

    def register_data(self, tensor: TensorIr, data: TensorData) -> None:
        """Make a tensor of host data."""
        self.inner.register_data(tensor, data)

    def drop(self, id: int) -> None:
        """Forget a tensor."""
        self.inner.drop(id)

    def read(self, tensor: TensorIr) -> TensorData:
        """The values of a tensor."""
        return self.inner.read(tensor)

    def read_all(self, tensors: Sequence[TensorIr]) -> list[TensorData]:
        """The values of several tensors."""
        return self.inner.read_all(tensors)

    def shapes(self, tensors: Sequence[TensorIr]) -> list[tuple[int, ...]]:
        """The shapes of tensors that depend on data."""
        return self.inner.shapes(tensors)

    def flush(self) -> None:
        """Send what is queued."""
        self.inner.flush()

    def sync(self) -> None:
        """Send what is queued, and wait until it is done."""
        self.inner.sync()

    def seed(self, seed: int) -> None:
        """Seed the random numbers of the device that runs operations."""
        self.inner.seed(seed)

    def dtype_usage(self, dtype: DType) -> DTypeUsage:
        """What the device can do with a dtype."""
        return self.inner.dtype_usage(dtype)

    def memory_cleanup(self) -> None:
        """Return cached memory that is not in use to the system."""
        self.inner.memory_cleanup()


class ForwardingChannel(RunnerChannel):
    """A channel over another, to which a subclass leaves what it does not override.

    Its clients are `ForwardingClient`, or a subclass that `wrap_client` returns.

    Parameters
    ----------
    inner : RunnerChannel
        The channel that gets the calls.
    """

    def __init__(self, inner: RunnerChannel) -> None:
        self.inner = inner

    def wrap_client(self, client: RunnerClient) -> ForwardingClient:
        """The client over a new client of the inner channel."""
        return ForwardingClient(client)

    def name(self, device: DeviceId) -> str:
        """Name of the router's backend for a device."""
        return self.inner.name(device)

    def device_count(self, type_id: int) -> int:
        """Number of devices of a type."""
        return self.inner.device_count(type_id)

    def init_client(self, device: DeviceId) -> RunnerClient:
        """A new client of a device."""
        return self.wrap_client(self.inner.init_client(device))

    def get_tensor_handle(self, tensor: TensorIr, client: RunnerClient) -> Any:
        """What the runner of a client has for a tensor."""
        return self.inner.get_tensor_handle(tensor, _inner(client))

    def register_tensor(self, tensor: TensorIr, handle: Any, client: RunnerClient) -> None:
        """Make a handle the value of a new tensor of a client."""
        self.inner.register_tensor(tensor, handle, _inner(client))

    def change_client_backend(
        self, tensor: TensorIr, source: RunnerClient, target: RunnerClient
    ) -> TensorIr | None:
        """A tensor of one client as a new one of another client."""
        return self.inner.change_client_backend(tensor, _inner(source), _inner(target))


def _inner(client: RunnerClient) -> RunnerClient:
    assert isinstance(client, ForwardingClient)  # noqa: S101 — the channel made it
    return client.inner
