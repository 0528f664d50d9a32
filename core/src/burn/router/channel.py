"""What a router sends operations through: a channel, and a client of it for each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from burn.dtype import DType, DTypeUsage
from burn.ir import OperationIr, TensorIr
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.device_id import DeviceId

__all__ = ["DirectClient", "RunnerChannel", "RunnerClient", "TensorOwner"]


class TensorOwner(Protocol):
    """What gives tensors their numbers, and learns when nothing holds one any more."""

    def next_id(self) -> int:
        """A number for a new tensor."""

    def register(self, operation: OperationIr) -> None:
        """Run an operation, now or later."""

    def drop(self, id: int) -> None:
        """Forget a tensor; nothing happens if it was never made.

        It may be called at any time, by any thread, also while this thread runs another method.
        """


class RunnerClient(TensorOwner, Protocol):
    """Sends the operations on the tensors of one device to what runs them.

    A client may queue operations. Errors of values are raised no later than by the next read, and
    name the op.

    Attributes
    ----------
    device : DeviceId
        The device, in the numbering of the router.
    """

    device: DeviceId

    def register_data(self, tensor: TensorIr, data: TensorData) -> None:
        """Make a tensor of host data, which may change afterwards."""

    def read(self, tensor: TensorIr) -> TensorData:
        """The values of a tensor; waits for the operations that they depend on."""

    def read_all(self, tensors: Sequence[TensorIr]) -> list[TensorData]:
        """The values of several tensors, in one round trip."""

    def shapes(self, tensors: Sequence[TensorIr]) -> list[tuple[int, ...]]:
        """The shapes of tensors that depend on data, in one round trip; flushes, and waits."""

    def flush(self) -> None:
        """Send what is queued."""

    def sync(self) -> None:
        """Send what is queued, and wait until it is done."""

    def seed(self, seed: int) -> None:
        """Seed the random numbers of the device that runs operations.

        The numbers that a program draws do not depend on it: their operations have seeds.
        """

    def dtype_usage(self, dtype: DType) -> DTypeUsage:
        """What the device can do with a dtype."""

    def memory_cleanup(self) -> None:
        """Return cached memory that is not in use to the system."""


class DirectClient(RunnerClient, Protocol):
    """A client that runs operations at once, on objects of this process; see `burn.router.direct`.

    Attributes
    ----------
    handles : dict of int to object
        What the backend has for each tensor. A table may run an op on them, and add the result
        under a new number, instead of registering an operation.
    """

    handles: dict[int, Any]

    def function(self, name: str, dtype: DType | None) -> Callable[..., Any]:
        """What runs an op on such objects, whose promoted dtype is this; None if none promotes."""

    def explain(self, error: Exception, operation: OperationIr) -> NoReturn:
        """Raise the error of an operation that failed."""


class RunnerChannel(Protocol):
    """Connects a router with the devices that run its operations."""

    def name(self, device: DeviceId) -> str:
        """Name of the router's backend for a device; that of its `BackendSpec`."""

    def device_count(self, type_id: int) -> int:
        """Number of devices of a type; 0 for a type that there is not."""

    def init_client(self, device: DeviceId) -> RunnerClient:
        """A new client of a device; `RouterBackend.get_client` keeps one for each."""

    def get_tensor_handle(self, tensor: TensorIr, client: RunnerClient) -> Any:
        """What the runner of a client has for a tensor."""

    def register_tensor(self, tensor: TensorIr, handle: Any, client: RunnerClient) -> None:
        """Make a handle the value of a new tensor of a client."""

    def change_client_backend(
        self, tensor: TensorIr, source: RunnerClient, target: RunnerClient
    ) -> TensorIr | None:
        """A tensor of one client as a new one of another client; None to go through the host."""
