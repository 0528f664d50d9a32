"""DeviceMembers: the members of `Dispatch` that a device answers: dtypes, memory, exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from burn.autodiff import value_of
from burn.device_id import DeviceId, decode_type_id
from burn.devices import Device, TensorType, under_running
from burn.dispatch._operands import DispatchTensor, join_trace
from burn.dtype import DType, DTypeUsage
from burn.errors import OperandTypeError
from burn.ops import OpTable
from burn.plugins import registry
from burn.quant_scheme import QuantScheme
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.aliases import Primitive

__all__ = ["DeviceMembers"]

_Tensor = TypeVar("_Tensor", bound=DispatchTensor)
_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


class DeviceMembers(Generic[_Tensor]):
    """Base of `Dispatch` with the members of a Backend that are about devices.

    Each takes a dispatch-level DeviceId (`Device.dispatch_id`), or a Device, which has layers.
    """

    _tables: dict[DeviceId, OpTable]

    if TYPE_CHECKING:

        def wrap(self, primitive: Primitive, tensor_type: TensorType) -> _Tensor:
            """Tensor around a primitive."""

    def device(self, device: DeviceId | Device) -> Device:
        """Handle of a dispatch-level DeviceId; a handle is returned as it is."""
        if isinstance(device, Device):
            return device
        backend_id, backend_type = decode_type_id(device.type_id)
        entry = registry.by_id(backend_id)
        if entry is not None and entry.error is not None:
            entry.load()  # raises, with the reason
        if entry is None or backend_type >= len(entry.device_types):
            raise OperandTypeError(f"no backend has the type id {device.type_id}")
        type_ = entry.device_types[backend_type]
        return Device(f"{entry.name}/{type_}:{device.index_id}")

    def device_count(self, type_id: int) -> int:
        """Number of devices of a dispatch-level type id; 0 for a backend that is not installed."""
        backend_id, backend_type = decode_type_id(type_id)
        entry = registry.by_id(backend_id)
        if entry is not None and entry.spec.parse is not None:
            return entry.load().device_count(backend_type)
        present = [] if entry is None else entry.probe()
        if entry is None or not present or backend_type >= len(entry.device_types):
            return 0
        type_ = entry.device_types[backend_type]
        return sum(info.type == type_ for info in present)

    def for_device(self, device: DeviceId) -> OpTable:
        """The ops of a device as a table, on tensors."""
        table = self._tables.get(device)
        if table is None:
            self.device(device)  # raises if there is no such device
            table = self._tables.setdefault(device, OpTable(self, device))
        return table

    def name(self, device: DeviceId | Device) -> str:
        """``dispatch<cpu>`` for a device of the backend ``cpu``."""
        device = self.device(device)
        return f"dispatch<{device.backend.name(device.id)}>"

    def native_dtype(self, dtype: DType) -> DType:
        """The dtype itself: tensors have it as their ``dtype``."""
        return dtype

    def dtype_usage(self, device: DeviceId | Device, dtype: DType) -> DTypeUsage:
        """What a device can do with a dtype."""
        return self.device(device).dtype_usage(dtype)

    def supports_dtype(self, device: DeviceId | Device, dtype: DType) -> bool:
        """Whether a device can store a dtype and compute with it."""
        return self.device(device).supports_dtype(dtype)

    def ad_enabled(self, device: DeviceId | Device) -> bool:
        """Whether tensors on a device can be tracked."""
        return self.device(device).is_autodiff

    def default_quant_scheme(self, device: DeviceId | Device) -> QuantScheme:
        """How tensors are quantized on a device where the user names no scheme: by its settings."""
        return self.device(device).settings.quantization.scheme

    def seed(self, device: DeviceId | Device, seed: int) -> None:
        """Start the random numbers of a device anew."""
        self.device(device).seed(seed)

    def sync(self, device: DeviceId | Device) -> None:
        """Wait for all work on a device."""
        self.device(device).sync()

    def staging(self, data: TensorData, device: DeviceId | Device) -> TensorData:
        """Host data that will be uploaded soon, in memory from which uploading is fast."""
        return self.device(device).staging(data)

    def memory_persistent_allocations(
        self, device: DeviceId | Device, input: _Input, func: Callable[[_Input], _Output]
    ) -> _Output:
        """Run `func` on `input`; memory that it allocates is expected to live long."""
        return self.device(device).memory_persistent_allocations(func, input)

    def memory_cleanup(self, device: DeviceId | Device) -> None:
        """Give memory that is held but not in use back to the system."""
        self.device(device).memory_cleanup()

    def share(self, data: TensorData, device: DeviceId | Device) -> _Tensor | None:
        """A tensor in the memory of host data; None where the device cannot read it there."""
        device = under_running(self.device(device))
        return self._imported(device.ops.backend.share(data, device.id), device)

    def device_of(self, x: object) -> DeviceId | None:
        """The dispatch-level DeviceId of a tensor; None for every other object."""
        return x.tensor_type.device.dispatch_id if isinstance(x, DispatchTensor) else None

    def dlpack_device(self, device: DeviceId | Device) -> tuple[int, int]:
        """Type and number of the memory of a device in DLPack's numbering."""
        device = self.device(device)
        found: tuple[int, int] = device.backend.dlpack_device(device.id)
        return found

    def to_dlpack(self, x: _Tensor, **options: Any) -> Any:
        """DLPack capsule of a tensor; the options are those of `Backend.to_dlpack`."""
        join_trace(x)
        return x.tensor_type.device.ops.backend.to_dlpack(value_of(x.primitive), **options)

    def from_dlpack(self, x: Any, device: DeviceId | Device) -> _Tensor | None:
        """A tensor in the memory of an object with `__dlpack__` on a device; None if it cannot."""
        device = under_running(self.device(device))
        return self._imported(device.ops.backend.from_dlpack(x, device.id), device)

    def _imported(self, primitive: Primitive | None, device: Device) -> _Tensor | None:
        return None if primitive is None else self.wrap(primitive, device.type_of(primitive))
