"""InProcessChannel: runs the operations of a router at once, on the backends of this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from burn.dtype import DType, DTypeUsage
from burn.errors import ArgumentError, UnsupportedOpError
from burn.ir import OperationIr, TensorIr, promoted_dtype
from burn.ops import REGISTRY, observing
from burn.ops.table import specialized
from burn.router.bridge import InnerDevice, MultiBackendBridge, TensorHandle
from burn.router.channel import RunnerChannel, RunnerClient
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.device_id import DeviceId

__all__ = ["InProcessChannel", "InProcessClient", "InstalledDevices"]


class InstalledDevices(Protocol):
    """The devices of this process, on which a channel runs operations."""

    def find(self, device: DeviceId) -> InnerDevice:
        """The device that runs the operations of a device of the router."""

    def count(self, type_id: int) -> int:
        """Number of devices of a type in the numbering of the router."""

    def move(
        self, dtype: DType, source: InnerDevice, target: InnerDevice, primitive: Primitive
    ) -> Primitive:
        """A primitive of one device on another one."""

    def fail(self, device: InnerDevice, error: Exception, operation: str) -> NoReturn:
        """Raise what a backend raised as an error of burn."""


class InProcessClient(RunnerClient):
    """Runs operations at once on a device of this process.

    Parameters
    ----------
    device : DeviceId
        The device in the numbering of the router.
    inner : InnerDevice
        The device that runs the operations.
    installed : InstalledDevices
        Where it comes from.

    Attributes
    ----------
    handles : dict of int to Primitive
        What the backend has for each tensor.
    """

    next_id = staticmethod(itertools.count().__next__)
    """Numbers of tensors, of all clients: so no client takes a tensor of another for its own."""

    def __init__(self, device: DeviceId, inner: InnerDevice, installed: InstalledDevices) -> None:
        self.device = device
        self.inner = inner
        self.handles: dict[int, Primitive] = {}
        self._installed = installed
        self._functions: dict[tuple[str, DType | None], Callable[..., Any]] = {}
        self._generation = -1
        self._ops = inner.ops  # raises if the device cannot be opened

    def drop(self, id: int) -> None:
        """Forget a tensor."""
        self.handles.pop(id, None)

    def function(self, name: str, dtype: DType | None) -> Callable[..., Any]:
        """What runs an op on primitives whose promoted dtype is this; None if none promotes."""
        generation = observing.generation()
        if self._generation != generation:
            self._functions, self._generation = {}, generation
        functions = self._functions  # another thread may begin a new one in the meantime
        found = functions.get((name, dtype))
        if found is None:
            found = getattr(self._ops, name)
            if dtype is not None:
                found = specialized(found, dtype)
            functions[name, dtype] = found
        return found

    def register(self, operation: OperationIr) -> None:
        """Run an operation.

        Raises
        ------
        BurnError
            If it fails; the error names the op and what it got.
        """
        name, inputs, attributes, outputs, _ = operation
        definition = REGISTRY.get(name)
        if definition is None:
            raise UnsupportedOpError(f"there is no op {name!r}", hint="`burn ops` lists all ops")
        operands: list[Any] = []
        one: Any
        for one in inputs:
            if one.__class__ is TensorIr:
                operands.append(self.handle(one))
            elif one.__class__ is tuple:
                operands.append([self.handle(each) for each in one])
            else:
                operands.append(one)
        try:
            function = self.function(name, promoted_dtype(definition, inputs))
            result = function(*operands, **attributes)
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            self.explain(error, operation)
        results = result if definition.returns_tuple else (result,)
        for output, primitive in zip(outputs, results, strict=True):
            self.handles[output.id] = primitive

    def handle(self, tensor: TensorIr) -> Primitive:
        """What the backend has for a tensor.

        Raises
        ------
        ArgumentError
            If the client has no such tensor.
        """
        try:
            return self.handles[tensor.id]
        except KeyError:
            raise ArgumentError(
                f"the client of {self.inner.name} has no tensor {tensor.id}",
                hint="A tensor belongs to one client, until it is dropped",
            ) from None

    def explain(self, error: Exception, operation: OperationIr) -> NoReturn:
        """Raise the error of an operation that failed."""
        self._fail(error, operation.describe())

    def _fail(self, error: Exception, operation: str) -> NoReturn:
        self._installed.fail(self.inner, error, operation)

    def register_data(self, tensor: TensorIr, data: TensorData) -> None:
        """Make a tensor of host data."""
        backend, id = self._ops.backend, self.inner.id
        try:
            self.handles[tensor.id] = backend.from_data(data, id)
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            self._fail(error, f"from_data({tensor})")

    def read(self, tensor: TensorIr) -> TensorData:
        """The values of a tensor."""
        primitive = self.handle(tensor)
        try:
            return self._ops.backend.to_data(primitive)  # type: ignore[no-any-return]  # of a Backend
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            self._fail(error, f"to_data({tensor})")

    def read_all(self, tensors: Sequence[TensorIr]) -> list[TensorData]:
        """The values of several tensors."""
        primitives = [self.handle(tensor) for tensor in tensors]
        try:
            return self._ops.backend.read_all(primitives)  # type: ignore[no-any-return]  # of a Backend
        except Exception as error:  # noqa: BLE001 — of whatever library is underneath
            self._fail(error, "read_all")

    def shapes(self, tensors: Sequence[TensorIr]) -> list[tuple[int, ...]]:
        """The shapes of tensors that depend on data."""
        return [tuple(self.handle(tensor).shape) for tensor in tensors]

    def flush(self) -> None:
        """Nothing to do: no operation is queued here."""

    def sync(self) -> None:
        """Wait for all work on the device."""
        self.inner.sync()

    def seed(self, seed: int) -> None:
        """Seed the random numbers of the device that runs operations."""
        self.inner.backend.seed(self.inner.id, seed)

    def dtype_usage(self, dtype: DType) -> DTypeUsage:
        """What the device can do with a dtype."""
        return self.inner.dtype_usage(dtype)

    def memory_cleanup(self) -> None:
        """Return cached memory that is not in use to the system."""
        self.inner.memory_cleanup()


class InProcessChannel(RunnerChannel):
    """Runs operations on the backends of this process, several of them in one router.

    Parameters
    ----------
    name : str
        Name of the router's backend.
    installed : InstalledDevices
        The devices that run operations.
    bridge : MultiBackendBridge, optional
        How tensors get from one to another; by default as ``Tensor.to_device`` does it.
    """

    def __init__(
        self, name: str, installed: InstalledDevices, bridge: MultiBackendBridge | None = None
    ) -> None:
        self._name = name
        self._installed = installed
        self._bridge = MultiBackendBridge(installed.move) if bridge is None else bridge

    def name(self, device: DeviceId) -> str:
        """Name of the router's backend."""
        del device
        return self._name

    def device_count(self, type_id: int) -> int:
        """Number of devices of a type."""
        return self._installed.count(type_id)

    def init_client(self, device: DeviceId) -> InProcessClient:
        """A new client of a device.

        Raises
        ------
        DeviceUnavailableError
            If the device that runs its operations cannot be opened.
        """
        return InProcessClient(device, self._installed.find(device), self._installed)

    def get_tensor_handle(self, tensor: TensorIr, client: RunnerClient) -> TensorHandle:
        """The primitive of a tensor, and its device."""
        owner = _own(client)
        return TensorHandle(owner.handle(tensor), tensor.dtype, owner.inner)

    def register_tensor(self, tensor: TensorIr, handle: TensorHandle, client: RunnerClient) -> None:
        """Make a handle the value of a new tensor of a client."""
        _own(client).handles[tensor.id] = handle.primitive

    def change_client_backend(
        self, tensor: TensorIr, source: RunnerClient, target: RunnerClient
    ) -> TensorIr:
        """A tensor of one client as a new one of another client."""
        handle = self.get_tensor_handle(tensor, source)
        moved = self._bridge.change_backend(handle, _own(target).inner)
        made = tensor._replace(id=target.next_id())
        self.register_tensor(made, moved, target)
        return made


def _own(client: RunnerClient) -> InProcessClient:
    assert isinstance(client, InProcessClient)  # noqa: S101 — the channel made it
    return client
