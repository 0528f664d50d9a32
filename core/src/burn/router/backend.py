"""RouterBackend: a backend whose ops become operations, which a channel sends to what runs them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.backend import Backend
from burn.backend.decorator import FoundByName, found_by_name
from burn.dtype import DType, DTypeUsage
from burn.errors import ExportError, OperandTypeError
from burn.ir import Status, TensorIr
from burn.locks import new_rlock
from burn.ops import REGISTRY
from burn.router.table import RouterTable
from burn.router.tensor import RouterTensor
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.router.channel import RunnerChannel, RunnerClient

__all__ = ["RouterBackend"]


@found_by_name(REGISTRY)
class RouterBackend(FoundByName, Backend):  # type: ignore[misc]  # Any as a base, see there
    """A backend that computes nothing itself: a channel runs its operations.

    Its primitives are RouterTensors. Every op is a method, which sends the operation to the client
    of the device of its tensors.

    Parameters
    ----------
    channel : RunnerChannel
        Connects it with the devices that run operations.
    """

    def __init__(self, channel: RunnerChannel) -> None:
        self.channel = channel
        self._clients: dict[DeviceId, RunnerClient] = {}
        self._tables: dict[DeviceId, RouterTable] = {}
        self._lock = new_rlock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in REGISTRY:
            return functools.partial(self._run, name)
        raise AttributeError(f"there is no op {name!r}")

    def _run(
        self, name: str, *operands: Any, device: DeviceId | None = None, **attributes: Any
    ) -> Any:
        if device is None:
            device = self._device_of_operands(operands)
        return getattr(self.for_device(device), name)(*operands, **attributes)

    def _device_of_operands(self, operands: Sequence[Any]) -> DeviceId:
        for operand in operands:
            for part in operand if operand.__class__ is list else (operand,):
                found = self.device_of(part)
                if found is not None:
                    return found
        raise OperandTypeError("no operand is a tensor of this router")

    def get_client(self, device: DeviceId) -> RunnerClient:
        """The one client of a device, which is made when it is first asked for."""
        client = self._clients.get(device)
        if client is None:
            with self._lock:
                client = self._clients.get(device)
                if client is None:
                    client = self._clients[device] = self.channel.init_client(device)
        return client

    def for_device(self, device: DeviceId) -> RouterTable:
        """The op table of a device."""
        table = self._tables.get(device)
        if table is None:
            client = self.get_client(device)
            with self._lock:
                table = self._tables.get(device)
                if table is None:
                    table = self._tables[device] = RouterTable(self, device, client)
        return table

    def forget(self, device: DeviceId) -> None:
        """Let a device have a new client; tensors of the one before live on with that one."""
        with self._lock:
            self._tables.pop(device, None)
            self._clients.pop(device, None)

    def name(self, device: DeviceId) -> str:
        """Name of the backend, as the channel says."""
        return self.channel.name(device)

    def native_dtype(self, dtype: DType) -> DType:
        """The dtype itself."""
        return dtype

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """What the device that runs the operations can do with a dtype."""
        return self.get_client(device).dtype_usage(dtype)

    def device_count(self, type_id: int) -> int:
        """Number of devices of a type; 0 for a type that there is not."""
        return self.channel.device_count(type_id)

    def device_of(self, x: object) -> DeviceId | None:
        """The device of a tensor of this router."""
        if not isinstance(x, RouterTensor):
            return None
        client: Any = x.client
        device: DeviceId = client.device
        return device if self._clients.get(device) is client else None

    def sync(self, device: DeviceId) -> None:
        """Wait for all operations of a device."""
        self.get_client(device).sync()

    def seed(self, device: DeviceId, seed: int) -> None:
        """Seed the random numbers of a device, and of the device that runs its operations."""
        super().seed(device, seed)
        self.get_client(device).seed(seed)

    def memory_cleanup(self, device: DeviceId) -> None:
        """Return cached memory that is not in use to the system."""
        self.get_client(device).memory_cleanup()

    def from_data(self, data: TensorData, device: DeviceId) -> RouterTensor:
        """Upload host data."""
        client = self.get_client(device)
        made = TensorIr(client.next_id(), data.shape, data.dtype, Status.NOT_INIT)
        client.register_data(made, data)
        return RouterTensor(made.id, data.shape, data.dtype, client)

    def to_data(self, x: RouterTensor) -> TensorData:
        """Read values back."""
        client: Any = x.client
        data: TensorData = client.read(x.ir)
        return data

    def read_all(self, tensors: list[RouterTensor]) -> list[TensorData]:
        """Read several tensors of one device in one round trip."""
        if not tensors:
            return []
        client: Any = tensors[0].client
        found: list[TensorData] = client.read_all([tensor.ir for tensor in tensors])
        return found

    def to_dlpack(
        self,
        x: RouterTensor,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A copy in host memory: a router cannot tell where the memory of a tensor is.

        Raises
        ------
        ExportError
            If `copy` is False, or a stream is named.
        """
        if copy is False:
            raise ExportError(
                "the memory of a device behind a router is not shared", hint="Leave copy=False out"
            )
        return super().to_dlpack(x, stream=stream, max_version=max_version, copy=copy)

    def to_device(self, x: RouterTensor, device: DeviceId) -> RouterTensor | None:
        """A tensor on another device of this router."""
        target = self.get_client(device)
        source: Any = x.client
        made = self.channel.change_client_backend(x.ir, source, target)
        return None if made is None else RouterTensor(made.id, x.shape, x.dtype, target)
