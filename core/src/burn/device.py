"""Device: the handle of one piece of hardware, and the choice of a default."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from burn.autodiff import Autodiff
from burn.device_id import DeviceId, encode_type_id
from burn.dtype import DType, DTypeUsage, int32, int64
from burn.errors import ArgumentError, BurnError, DeviceUnavailableError, DTypeError, PluginError
from burn.generator import Key as GeneratorKey, seed as seed_generator
from burn.ops import Op, OpTable, Tag, resolve
from burn.plugins import BackendEntry, DeviceInfo, describe, registry
from burn.ranking import nothing_there, ranked
from burn.tensor_type import DeviceSettings, TensorType

if TYPE_CHECKING:
    from burn.backend import Backend

__all__ = ["Device", "DeviceSettings", "TensorType"]


class Device:
    """One piece of hardware, or one with automatic differentiation on top.

    Parameters
    ----------
    name : str
        ``backend[/type][:index]``, such as ``"cuda"`` (the same as ``"cuda:0"``), ``"cuda:1"`` or
        ``"torch/cuda:0"``. Without a type, the first one of the backend that is there.

    Raises
    ------
    DeviceUnavailableError
        If there is no such device; the message says what there is, or what to install.
    PluginError
        If the plugin that would bring it is broken.

    Notes
    -----
    There is one object per device, so ``is`` tells devices apart. ``==`` and ``hash`` are of the
    hardware: a device with autodiff equals the one without.

    Examples
    --------
    >>> import burn
    >>> burn.Device("cpu") is burn.Device("cpu:0")
    True
    >>> burn.Device("cpu").autodiff() == burn.Device("cpu")
    True
    """

    __slots__ = (
        "_backend",
        "_checkpointing",
        "_entry",
        "_hardware",
        "_lock",
        "_ops",
        "_settings",
        "_types",
        "_with_autodiff",
        "_with_checkpointing",
        "id",
        "index",
        "type",
        "types",
    )

    id: DeviceId
    """Type and number in the numbering of its own backend."""

    type: str
    index: int

    types: dict[Any, TensorType]
    """TensorType of each dtype object that primitives on the device carry."""

    _backend: Any
    _checkpointing: bool
    _entry: BackendEntry
    _hardware: Device
    _lock: threading.RLock
    _ops: OpTable | None
    _settings: DeviceSettings | None
    _types: dict[DType, TensorType]
    _with_autodiff: Device | None
    _with_checkpointing: Device | None

    def __new__(cls, name: str | Device) -> Device:  # noqa: D102, PYI034 — see the class; handles are shared
        if isinstance(name, Device):
            return name
        return _find(name)

    @classmethod
    def _make(cls, entry: BackendEntry, type_: str, index: int, hardware: Device | None) -> Device:
        self = object.__new__(cls)
        self.id = DeviceId(entry.spec.device_types.index(type_), index)
        self.type = type_
        self.index = index
        self.types = {}
        self._entry = entry
        self._hardware = hardware or self
        self._lock = threading.RLock()
        self._ops = None
        self._backend = None
        self._settings = None
        self._types = {}
        self._with_autodiff = self if hardware else None
        self._with_checkpointing = None
        self._checkpointing = False
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._hardware is other._hardware

    def __hash__(self) -> int:
        return hash((self._entry.name, self.id))

    def __str__(self) -> str:
        if self._checkpointing:
            return f"autodiff<{self.name}, checkpointing>"
        return f"autodiff<{self.name}>" if self.is_autodiff else self.name

    def __repr__(self) -> str:
        autodiff = ".autodiff()" if self.is_autodiff else ""
        checkpointing = ".gradient_checkpointing()" if self._checkpointing else ""
        return f"Device({self.name!r}){autodiff}{checkpointing}"

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (self.name, self.is_autodiff, self._checkpointing)

    @property
    def name(self) -> str:
        """The canonical spelling, such as ``"cuda:0"`` or ``"torch/cpu:0"``."""
        several = len(self._entry.spec.device_types) > 1
        kind = f"/{self.type}" if several else ""
        return f"{self._entry.name}{kind}:{self.index}"

    @property
    def backend_name(self) -> str:
        """Name of the backend that the device belongs to."""
        return self._entry.name

    @property
    def dispatch_id(self) -> DeviceId:
        """The DeviceId that is unique among all backends of this process."""
        return DeviceId(encode_type_id(self._entry.backend_id, self.id.type_id), self.id.index_id)

    @property
    def hardware(self) -> Device:
        """The device without autodiff."""
        return self._hardware

    @property
    def is_autodiff(self) -> bool:
        """Whether tensors on it can be tracked."""
        return self._hardware is not self

    def autodiff(self) -> Device:
        """The same hardware with automatic differentiation.

        Raises
        ------
        ArgumentError
            If it has it already: autodiff of a device is first order.
        """
        if self.is_autodiff:
            raise ArgumentError(
                f"{self} has autodiff already",
                hint="Device.autodiff() is first order; see burn.autodiff.Autodiff for more",
            )
        with self._lock:
            if self._with_autodiff is None:
                self._with_autodiff = Device._make(self._entry, self.type, self.index, self)
            return self._with_autodiff

    def gradient_checkpointing(self) -> Device:
        """The same autodiff device, keeping less for the backward pass.

        The outputs of memory-bound ops (elementwise functions, casts, layout) are computed again
        in backward; those of compute-bound ones (contractions, reductions) are kept. Gradients
        are the same.

        Raises
        ------
        ArgumentError
            If it is no autodiff device.
        """
        if not self.is_autodiff:
            raise ArgumentError(
                f"{self} has no autodiff",
                hint="Call device.autodiff().gradient_checkpointing()",
            )
        with self._lock:
            if self._with_checkpointing is None:
                other = Device._make(self._entry, self.type, self.index, self._hardware)
                other._checkpointing = True
                other._with_checkpointing = other
                self._with_checkpointing = other
            return self._with_checkpointing

    def inner(self) -> Device:
        """The device below autodiff; itself where there is none."""
        return self._hardware

    @property
    def backend(self) -> Any:
        """The backend that computes, an `Autodiff` on an autodiff device; loaded at first use."""
        if self._backend is None:
            backend = self._entry.load()
            self._backend = _autodiff_over(backend) if self.is_autodiff else backend
        return self._backend

    @property
    def ops(self) -> OpTable:
        """The op table of the device."""
        if self._ops is None:
            with self._lock:
                if self._checkpointing:
                    self._ops = self.backend.for_device(self.id, checkpointing=True)
                else:
                    self._ops = resolve(self.backend, self.id)
        return self._ops

    @property
    def info(self) -> DeviceInfo:
        """What is known of the hardware."""
        for info in self._entry.probe():
            if (info.type, info.index) == (self.type, self.index):
                return info
        raise DeviceUnavailableError(f"{self.name} is not there any more")

    def tensor_type(self, dtype: DType) -> TensorType:
        """What tensors of a dtype on this device share.

        Raises
        ------
        DTypeError
            If the device cannot store the dtype.
        """
        found = self._types.get(dtype)
        if found is not None:
            return found
        native = self.backend.native_dtype(dtype)
        if native is None or DTypeUsage.STORAGE not in self.dtype_usage(dtype):
            raise DTypeError(
                f"{self.name} has no {dtype}",
                hint=f"It has {', '.join(str(one) for one in self.dtypes())}",
            )
        with self._lock:
            found = self._types.setdefault(dtype, TensorType(self, dtype))
            self.types[native] = found
        if self.is_autodiff and not self._checkpointing:
            self._hardware.tensor_type(dtype).tracking = found
        return found

    def type_of(self, primitive: Any) -> TensorType:
        """TensorType of a primitive on this device."""
        found = self.types.get(primitive.dtype)
        return found if found is not None else self.tensor_type(self.ops.dtype(primitive))

    def dtypes(self) -> list[DType]:
        """Dtypes that the device can store."""
        return [dtype for dtype in DType.members() if self.dtype_usage(dtype)]

    def dtype_usage(self, dtype: DType | str) -> DTypeUsage:
        """What the device can do with a dtype."""
        return self.backend.dtype_usage(self.id, DType.of(dtype))  # type: ignore[no-any-return]  # of a Backend

    def supports_dtype(self, dtype: DType | str) -> bool:
        """Whether the device can store a dtype and compute with it."""
        return DTypeUsage.GENERAL in self.dtype_usage(dtype)

    def check_usage(self, dtype: DType, definition: Op) -> None:
        """Refuse arithmetic in a dtype that the device can only store."""
        free = Tag.VIEW | Tag.CREATION
        if definition.tags & free or definition.name in _STORAGE_OPS:
            return
        if not self.supports_dtype(dtype):
            raise DTypeError(
                f"{self.name} stores {dtype} but does not compute with it",
                hint="Cast to a dtype that `burn devices` shows as supported",
            )

    @property
    def settings(self) -> DeviceSettings:
        """Default dtypes of the device."""
        hardware = self._hardware
        if hardware._settings is None:
            has_int64 = hardware.supports_dtype(int64)
            hardware._settings = DeviceSettings(int_dtype=int64 if has_int64 else int32)
        return hardware._settings

    def configure(
        self,
        *,
        float_dtype: DType | str | None = None,
        int_dtype: DType | str | None = None,
        complex_dtype: DType | str | None = None,
    ) -> None:
        """Choose the default dtypes of the device, before the first tensor on it.

        Raises
        ------
        ArgumentError
            If there are tensors on it already: their dtypes would not agree with the new ones.
        DTypeError
            If a dtype is of the wrong kind, or the device does not support it.
        """
        hardware = self._hardware
        with hardware._lock:
            if hardware._types or (hardware._with_autodiff and hardware._with_autodiff._types):
                raise ArgumentError(
                    f"{self.name} is in use: its default dtypes cannot change any more",
                    hint="Call configure() before the first tensor is made on the device",
                )
            chosen: dict[str, DType] = {}
            for name, dtype in (
                ("float_dtype", float_dtype),
                ("int_dtype", int_dtype),
                ("complex_dtype", complex_dtype),
            ):
                if dtype is None:
                    continue
                found = DType.of(dtype)
                if found.kind is not getattr(hardware.settings, name).kind:
                    raise DTypeError(f"{name} cannot be {found}")
                if not self.supports_dtype(found):
                    raise DTypeError(f"{self.name} does not support {found}")
                chosen[name] = found
            hardware._settings = replace(hardware.settings, **chosen)

    @property
    def generator(self) -> GeneratorKey:
        """Key of the device's random number generator in `burn.generator`."""
        return (self._entry.name, self.id)

    def seed(self, seed: int) -> None:
        """Start the random numbers of the device anew from a seed."""
        seed_generator(self.generator, seed)

    def sync(self) -> None:
        """Wait for all work on the device.

        Raises
        ------
        ExecutionError
            If work failed after it was queued.
        """
        self.backend.sync(self.id)

    def memory_cleanup(self) -> None:
        """Give memory that is held but not in use back to the system."""
        self.backend.memory_cleanup(self.id)

    @classmethod
    def enumerate(cls, backend: str | None = None) -> list[Device]:
        """Every device that is there, in the order in which a default is chosen.

        Parameters
        ----------
        backend : str, optional
            Only devices of this backend.
        """
        return [
            _handle(entry, info.type, info.index)
            for entry, info in ranked()
            if backend is None or entry.name == backend
        ]

    @classmethod
    def preferred(cls) -> Device:
        """What `default` gives if the backend of the device can be loaded, without loading it.

        Raises
        ------
        DeviceUnavailableError
            If there is no device, or not the one that ``BURN_DEVICE`` names.
        """
        forced = os.environ.get("BURN_DEVICE")
        if forced:
            try:
                return cls(forced)
            except BurnError as error:
                error.rule = f"BURN_DEVICE={forced}: {error.rule}"
                raise
        for device in cls.enumerate():
            return device
        raise DeviceUnavailableError("there is no device to compute on", hint=nothing_there())

    @classmethod
    def default(cls) -> Device:
        """The best device that is really there.

        ``BURN_DEVICE`` forces one; ``BURN_DEVICE_PRIORITY`` (names in order, separated by commas)
        changes the order. A device that was chosen automatically and cannot be loaded is passed
        over (see `fallbacks`).

        Raises
        ------
        DeviceUnavailableError
            If there is none, or not the one that ``BURN_DEVICE`` names.
        """
        first = cls.preferred()
        if os.environ.get("BURN_DEVICE"):
            return first
        reasons = []
        for device in cls.enumerate():
            try:
                device._entry.load()
            except PluginError as error:
                reasons.append(f"{device.name}: {describe(error.__cause__ or error)}")
                continue
            _fallbacks[:] = reasons
            return device
        raise DeviceUnavailableError(
            f"no device works: {'; '.join(reasons)}", hint="`burn devices` lists what is there"
        )

    @staticmethod
    def fallbacks() -> list[str]:
        """Devices that the last automatic choice passed over because they failed, and why."""
        return list(_fallbacks)


_STORAGE_OPS: Final = frozenset({"cast", "slice_assign", "concat"})
_fallbacks: list[str] = []
_handles: dict[tuple[str, str, int], Device] = {}
_decorated: dict[int, Autodiff] = {}
_lock = threading.Lock()


def _autodiff_over(backend: Backend) -> Autodiff:
    """The Autodiff over a backend: one, so that all its devices know the same tracked tensors."""
    with _lock:
        return _decorated.setdefault(id(backend), Autodiff(backend))


def _handle(entry: BackendEntry, type_: str, index: int) -> Device:
    with _lock:
        key = (entry.name, type_, index)
        found = _handles.get(key)
        if found is None or found._entry is not entry:
            found = _handles[key] = Device._make(entry, type_, index, None)
        return found


def _unpickle(name: str, autodiff: bool, checkpointing: bool) -> Device:
    device = Device(name)
    if checkpointing:
        return device.autodiff().gradient_checkpointing()
    return device.autodiff() if autodiff else device


def _find(name: object) -> Device:
    if not isinstance(name, str):
        raise ArgumentError(f"a device is named by a string, not by {name!r}")
    rest, colon, number = name.partition(":")
    backend, slash, type_ = rest.partition("/")
    if not backend or (slash and not type_) or (colon and not number.isdecimal()):
        raise ArgumentError(
            f"{name!r} is no device name", hint="Write backend[/type][:index], such as cuda:1"
        )
    entry = registry.entry(backend)
    types = entry.spec.device_types
    if type_ and type_ not in types:
        raise DeviceUnavailableError(
            f"{backend!r} has no devices of type {type_!r}", hint=f"It has {', '.join(types)}"
        )
    present = entry.probe()
    if entry.error is not None:
        entry.load()  # raises, with the reason
    index = int(number) if number else 0
    for info in present:
        if info.index == index and type_ in ("", info.type):
            return _handle(entry, info.type, info.index)
    there = ", ".join(_handle(entry, info.type, info.index).name for info in present)
    raise DeviceUnavailableError(
        f"there is no device {name!r}",
        hint=f"{backend} has {there}" if there else f"{backend} finds no hardware",
    )
