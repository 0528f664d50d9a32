"""OpenedDevice: the backend, the op table and the tensor types of one device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from burn.device_id import DeviceId
from burn.devices._generator import hand_down_generator
from burn.devices._spelling import canonical_name
from burn.devices._tensor_type import TensorType
from burn.devices._transforms import VMAP, recorder
from burn.devices.settings import DeviceSettings
from burn.dtype import DType, DTypeUsage
from burn.errors import BurnError, DeviceUnavailableError, DTypeError, ExecutionError
from burn.plugins import BackendEntry, describe
from burn.quant_scheme import QDType

if TYPE_CHECKING:  # a list of devices needs no ops, and they take most of a start-up
    from burn.devices.device import Device
    from burn.ops import Op, OpTable
    from burn.quantized import QuantizedTable
    from burn.tensor_data import TensorData

__all__ = ["OpenedDevice", "TensorTypes"]

_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


class OpenedDevice:
    """The part of a `Device` that computes: loaded and opened when it is first used."""

    __slots__ = (
        "__weakref__",
        "_backend",
        "_hardware",
        "_is_used",
        "_layered",
        "_lock",
        "_ops",
        "_physical",
        "_quantized_ops",
        "_settings",
        "_traced",
        "_types",
        "compiles",
        "entry",
        "id",
        "index",
        "is_checkpointing",
        "is_traced",
        "layers",
        "type",
        "types",
    )

    id: DeviceId
    """Type and number in the numbering of its own backend."""

    entry: BackendEntry
    """The backend's entry in the registry of plugins."""

    type: str
    index: int

    types: dict[Any, TensorType]
    """TensorType of each dtype object that primitives on the device carry."""

    layers: tuple[str, ...]
    """What is on top of the hardware, from there outwards: autodiff, and running transforms."""

    is_checkpointing: bool
    """Whether backward computes cheap values again."""

    is_traced: bool
    """Whether ops on it are written down by a trace, and not run."""

    compiles: bool
    """Of hardware: whether functions are compiled for it, as its settings say."""

    _backend: Any
    _hardware: Device
    _physical: Device
    _traced: Device | None
    _is_used: bool
    _layered: dict[tuple[tuple[str, ...], bool], Device]
    _lock: threading.RLock
    _ops: OpTable | None
    _quantized_ops: QuantizedTable | None
    _settings: DeviceSettings | None
    _types: dict[DType, TensorType]

    @property
    def name(self) -> str:
        """The canonical spelling, such as ``"cuda:0"`` or ``"torch/cpu:0"``."""
        return canonical_name(self.entry.spec, self.type, self.index)

    @property
    def hardware(self) -> Device:
        """The device without autodiff."""
        return self._hardware

    @property
    def is_autodiff(self) -> bool:
        """Whether tensors on it can be tracked."""
        return bool(self.layers)

    @property
    def traced(self) -> Device:
        """The device of the same hardware and layers whose ops a trace writes down."""
        traced = self._physical._traced
        if traced is None:
            traced = self._physical._make_traced()
        return traced.layered(self.layers, is_checkpointing=self.is_checkpointing)

    @property
    def untraced(self) -> Device:
        """The device of the same hardware and layers whose ops run."""
        return self._physical.layered(self.layers, is_checkpointing=self.is_checkpointing)

    @property
    def below(self) -> Device:
        """The device without the outermost layer."""
        layers = self.layers[:-1]
        return self._hardware.layered(layers, is_checkpointing=self.is_checkpointing)

    def _forget_parent(self) -> None:
        """Drop the backend and ops of the parent process, unless the device survives a fork."""
        if self._hardware is self:
            self._lock = threading.RLock()
        table, self._ops = self._ops, None
        self._backend = None
        try:
            self.entry.check_process(self.type)
        except DeviceUnavailableError as error:
            for tensor_type in self._types.values():
                tensor_type.calls.clear()
            if table is not None:
                table.close(error)
        else:
            self._ops = table

    @property
    def backend(self) -> Any:
        """The backend that computes, under the decorators of the layers; loaded at first use."""
        if self._backend is None:
            entry = self.entry
            backend = entry.load()
            entry.check_process(self.type)
            if self.layers or self.is_traced:
                backend = _decorated(entry, self.layers, is_traced=self.is_traced)
            self._backend = backend
        return self._backend

    @property
    def ops(self) -> OpTable:
        """The op table of the device, which is opened at first use."""
        if self._ops is None:
            backend = self.backend
            with self._lock:
                if self._ops is None:
                    table = self._open(backend)
                    table.handle = self
                    self._ops = table
        return self._ops

    @property
    def quantized_ops(self) -> QuantizedTable:
        """The op table for calls with quantized tensors."""
        from burn.quantized import QuantizedTable

        settings = self._physical.settings
        table = self._quantized_ops
        if (
            table is None
            or table.below is not self.ops
            or table.propagation is not settings.quantization.propagation
        ):
            propagation = settings.quantization.propagation
            table = QuantizedTable(self.ops, settings.float_dtype, propagation)
            self._quantized_ops = table
        return table

    def _open(self, backend: Any) -> OpTable:
        """Resolve the op table.

        Raises
        ------
        DeviceUnavailableError
            If the backend cannot open the device.
        """
        from burn.ops import resolve
        from burn.ops.observing import plain

        hand_down_generator()
        try:
            if self.layers:
                self.below.ops  # noqa: B018 — opened, so that its table knows its device
                return backend.for_device(self.id, checkpointing=self.is_checkpointing)  # type: ignore[no-any-return]  # of a decorator
            table = resolve(backend, self.id)
        except (BurnError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self._not_opened(error) from error
        self.entry.check_overrides(plain(table.backend))
        return table

    def _not_opened(self, error: BaseException) -> DeviceUnavailableError:
        """The error for an exception of a backend that opens the device."""
        return DeviceUnavailableError(
            f"{self.name} cannot be opened: {describe(error)}",
            hint="`burn devices --check` tries every device",
        )

    def tensor_type(self, dtype: DType) -> TensorType:
        """The TensorType that all tensors of a dtype on this device share.

        Raises
        ------
        DTypeError
            If the device cannot store the dtype.
        """
        found = self._types.get(dtype)
        if found is not None:
            return found
        if isinstance(dtype, QDType):
            native: Any = dtype
            for part in dtype.scheme.part_dtypes:
                self.tensor_type(part)  # raises if the device cannot store it
        else:
            native = self._native(dtype)
        made = TensorType(self, dtype)  # type: ignore[arg-type]  # Device, the one subclass
        if self.layers:
            constant = self.below.tensor_type(dtype)
            made.constants = constant.constants | {constant}
        with self._lock:
            found = self._types.setdefault(dtype, made)
            self.types[native] = found
            self._physical._is_used = True
        return found

    def _native(self, dtype: DType) -> Any:
        """The dtype object that primitives of a dtype carry."""
        native = self.backend.native_dtype(dtype)
        if native is None or DTypeUsage.STORAGE not in self.dtype_usage(dtype):
            raise DTypeError(
                f"{self.name} has no {dtype}",
                hint=f"It has {', '.join(str(dtype) for dtype in self.dtypes())}",
            )
        return native

    def type_of(self, primitive: Any) -> TensorType:
        """TensorType of a primitive on this device."""
        return self.types[primitive.dtype]

    def dtypes(self) -> list[DType]:
        """Dtypes that the device can store."""
        return [dtype for dtype in DType.members() if self.dtype_usage(dtype)]

    def dtype_usage(self, dtype: DType | str) -> DTypeUsage:
        """What the device can do with a dtype.

        Raises
        ------
        DeviceUnavailableError
            If the backend has to open the device to answer, and cannot.
        """
        backend, wanted = self.backend, DType.of(dtype)
        if isinstance(wanted, QDType):  # the tensors that a quantized one is made of are stored
            parts = [self.dtype_usage(part_dtype) for part_dtype in wanted.scheme.part_dtypes]
            has_parts = all(DTypeUsage.STORAGE in part for part in parts)
            return DTypeUsage.GENERAL if has_parts else DTypeUsage.NONE
        try:
            return backend.dtype_usage(self.id, wanted)  # type: ignore[no-any-return]  # of a Backend
        except (BurnError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self._not_opened(error) from error

    def supports_dtype(self, dtype: DType | str) -> bool:
        """Whether the device can store a dtype and compute with it."""
        return DTypeUsage.GENERAL in self.dtype_usage(dtype)

    def check_usage(self, dtype: DType, definition: Op) -> None:
        """Refuse arithmetic in a dtype that the device can only store."""
        if definition.needs_arithmetic and not self.supports_dtype(dtype):
            raise DTypeError(
                f"{self.name} stores {dtype} but does not compute with it",
                hint="Cast to a dtype that `burn devices` shows as supported",
            )

    def sync(self) -> None:
        """Wait for all work on the device.

        Raises
        ------
        ExecutionError
            If work failed after it was queued.
        """
        backend = self.backend
        try:
            backend.sync(self.id)
        except BurnError:
            raise
        except Exception as error:
            raise ExecutionError(
                f"{self} failed with {describe(error)}", operation="sync"
            ) from error

    def staging(self, data: TensorData) -> TensorData:
        """Host data that will be uploaded soon, in memory from which uploading is fast.

        Parameters
        ----------
        data : TensorData
            The data.

        Returns
        -------
        TensorData
            A copy in pinned memory where that is faster, as on a CUDA device; else `data` itself.

        Examples
        --------
        >>> import burn, numpy
        >>> staged = burn.Device("cpu").staging(burn.TensorData(numpy.array([1.0, 2.0])))
        >>> burn.asarray(staged.array, device="cpu").tolist()
        [1.0, 2.0]
        """
        return self.backend.staging(data, self.id)  # type: ignore[no-any-return]  # of a Backend

    def memory_persistent_allocations(
        self, func: Callable[[_Input], _Output], input: _Input
    ) -> _Output:
        """Call a function; memory that it allocates on the device is expected to live long.

        Parameters
        ----------
        func : callable
            A function of one argument, such as one that makes the parameters of a model.
        input : object
            Its argument.

        Returns
        -------
        object
            What the function returns.

        Examples
        --------
        >>> import burn
        >>> device = burn.Device("cpu")
        >>> device.memory_persistent_allocations(lambda n: burn.ones(n, device=device), 3).tolist()
        [1.0, 1.0, 1.0]
        """
        return self.backend.memory_persistent_allocations(self.id, input, func)  # type: ignore[no-any-return]  # of a Backend

    def memory_cleanup(self) -> None:
        """Give memory that is held but not in use back to the system."""
        self.backend.memory_cleanup(self.id)


class TensorTypes(dict[Any, TensorType]):
    """TensorType of each dtype object of a device, found when it is first met."""

    def __init__(self, device: OpenedDevice) -> None:
        super().__init__()
        self._device = device

    def __missing__(self, native: Any) -> TensorType:
        device = self._device
        dtype = native if isinstance(native, QDType) else device.ops.dtype_of(native)
        return device.tensor_type(dtype)


def _decorated(entry: BackendEntry, layers: tuple[str, ...], *, is_traced: bool) -> Any:
    """The backend of an entry under decorators: one object for equal layers.

    So all devices of the backend know the same tracked tensors.
    """
    from burn.autodiff import Autodiff
    from burn.batching import Batch

    key = (is_traced, *layers)
    with entry.lock:
        found = entry.decorated.get(key)
        if found is None:
            if layers:
                below = _decorated(entry, layers[:-1], is_traced=is_traced)
                found = Batch(below) if layers[-1] == VMAP else Autodiff(below)
            else:
                found = _traced(entry) if is_traced else entry.load()
            entry.decorated[key] = found
        return found


def _traced(entry: BackendEntry) -> Any:
    """The backend of an entry whose ops are written down."""
    from burn.router import TraceBackend

    def spell(device: DeviceId) -> str:
        return canonical_name(entry.spec, entry.device_types[device.type_id], device.index_id)

    return TraceBackend(entry.load(), recorder, spell)  # type: ignore[abstract]  # its ops are those of its table
