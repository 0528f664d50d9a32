"""Device: the handle of one piece of hardware, and the choice of a default."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from burn.device_id import DeviceId, encode_type_id
from burn.devices._opened import OpenedDevice, TensorTypes
from burn.devices._spelling import Spelling, parse, spelled
from burn.devices._tensor_type import forget_plans
from burn.devices._transforms import AUTODIFF
from burn.devices.default import default, fallbacks, preferred
from burn.devices.ranking import ranked, spellings
from burn.devices.settings import DeviceSettings, changed_settings
from burn.dtype import DType, DTypeUsage, int32, int64
from burn.errors import (
    ArgumentError,
    DeviceUnavailableError,
    OperandTypeError,
    PluginError,
)
from burn.generator import Key as GeneratorKey, seed as seed_generator
from burn.plugins import BackendEntry, DeviceInfo, registry
from burn.public_calls import shown_as_text
from burn.quant_scheme import QuantConfig

__all__ = ["Device"]


@shown_as_text
class Device(OpenedDevice):
    """One piece of hardware, or one with automatic differentiation on top.

    Parameters
    ----------
    name : str
        ``backend[/type][:index]``, such as ``"cuda"`` (the same as ``"cuda:0"``), ``"cuda:1"`` or
        ``"torch/cuda:0"``. Without a type, the first one of the backend that is there.
        ``"router/cuda:1"`` runs the ops of a program as operations on another device.
        ``"autodiff<cuda:1>"`` and ``"autodiff<cuda:1, checkpointing>"`` are what `str` gives for
        such devices.

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

    __slots__ = ()

    def __new__(cls, name: str | Device) -> Device:  # noqa: D102, PYI034 — see the class; handles are shared
        if isinstance(name, Device):
            return name
        generation, device = _named.get(name, _NOT_NAMED) if name.__class__ is str else _NOT_NAMED
        if device is None or generation != registry.generation or device.entry.error is not None:
            device = _find(name)
            _named[name] = registry.generation, device
        return device

    @classmethod
    def _make(
        cls,
        entry: BackendEntry,
        type_: str,
        index: int,
        hardware: Device | None = None,
        layers: tuple[str, ...] = (),
        *,
        is_checkpointing: bool = False,
        physical: Device | None = None,
    ) -> Device:
        self = object.__new__(cls)
        self.id = DeviceId(entry.device_types.index(type_), index)
        self.type = type_
        self.index = index
        self.types = TensorTypes(self)
        self.entry = entry
        self.layers = layers
        self.is_checkpointing = is_checkpointing
        self._hardware = hardware or self
        self._physical = physical or (hardware._physical if hardware else self)
        self.compiles = True
        self.is_traced = self._physical is not (hardware or self)
        self._traced = None
        self._layered = {}
        self._lock = hardware._lock if hardware else threading.RLock()
        self._ops = None
        self._quantized_ops = None
        self._backend = None
        self._settings = None
        self._types = {}
        self._is_used = False
        _alive[id(self)] = self
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._physical is other._physical

    def __hash__(self) -> int:
        return hash((self.entry.name, self.id))

    def __str__(self) -> str:
        hardware = f"trace<{self.name}>" if self.is_traced else self.name
        return spelled(hardware, self.layers, self.gradient_checkpointing_strategy)

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Device, (str(self),)

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Device:
        return self

    @property
    def backend_name(self) -> str:
        """Name of the backend that the device belongs to."""
        return self.entry.name

    @property
    def dispatch_id(self) -> DeviceId:
        """The DeviceId that is unique among all backends of this process."""
        return DeviceId(encode_type_id(self.entry.backend_id, self.id.type_id), self.id.index_id)

    def autodiff(self) -> Device:
        """The same hardware with automatic differentiation.

        Raises
        ------
        ArgumentError
            If it has it already: autodiff of a device is first order.
        """
        if self.layers:
            raise ArgumentError(
                f"{self} has autodiff already",
                hint="Device.autodiff() is first order; burn.grad of burn.grad is of second order",
            )
        return self.layered((AUTODIFF,))

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
        if not self.layers:
            raise ArgumentError(
                f"{self} has no autodiff",
                hint="Call device.autodiff().gradient_checkpointing()",
            )
        return self._hardware.layered(self.layers, is_checkpointing=True)

    @property
    def gradient_checkpointing_strategy(self) -> str | None:
        """``"balanced"`` on a device of `gradient_checkpointing`, else None: all is kept."""
        return "balanced" if self.is_checkpointing else None

    def inner(self) -> Device:
        """The device below the outermost layer, such as autodiff; itself where there is none."""
        return self.below

    def layered(self, layers: tuple[str, ...], *, is_checkpointing: bool = False) -> Device:
        """The one handle of the same hardware under these layers, from the hardware outwards."""
        hardware = self._hardware
        if not layers:
            return hardware
        key = (layers, is_checkpointing)
        found = hardware._layered.get(key)
        if found is None:
            with hardware._lock:
                found = hardware._layered.get(key)
                if found is None:
                    found = hardware._layered[key] = Device._make(
                        self.entry,
                        self.type,
                        self.index,
                        hardware,
                        layers,
                        is_checkpointing=is_checkpointing,
                    )
        return found

    def _make_traced(self) -> Device:
        with self._lock:
            if self._traced is None:
                self._traced = Device._make(self.entry, self.type, self.index, physical=self)
            return self._traced

    @property
    def info(self) -> DeviceInfo:
        """What is known of the hardware."""
        for info in self.entry.probe():
            if (info.type, info.index) == (self.type, self.index):
                return info
        raise DeviceUnavailableError(f"{self.name} is not there any more")

    @property
    def settings(self) -> DeviceSettings:
        """Default dtypes of the device, and whether functions are compiled for it."""
        hardware = self._physical
        if hardware._settings is None:
            has_int64 = hardware.supports_dtype(int64)
            with hardware._lock:
                if hardware._settings is None:
                    scheme = hardware.backend.default_quant_scheme(hardware.id)
                    hardware._settings = DeviceSettings(
                        int_dtype=int64 if has_int64 else int32, quantization=QuantConfig(scheme)
                    )
        return hardware._settings

    def configure(
        self,
        *,
        float_dtype: DType | str | None = None,
        int_dtype: DType | str | None = None,
        complex_dtype: DType | str | None = None,
        compile: bool | None = None,
        quantization: QuantConfig | None = None,
    ) -> None:
        """Choose the default dtypes of the device, before the first tensor on it.

        Parameters
        ----------
        float_dtype, int_dtype, complex_dtype : DType or str, optional
            The dtypes; those that are left out stay.
        compile : bool, optional
            Whether functions of `burn.compile` run as programs on the device, or as they are
            written, for debugging. It may change at any time.
        quantization : QuantConfig, optional
            The default scheme of quantized tensors, and whether arithmetic on them gives such
            again. It may change at any time.

        Raises
        ------
        ArgumentError
            If there have been tensors on it: their dtypes would not agree with the new ones. Or if
            `quantization` is something else.
        DTypeError
            If a dtype is of the wrong kind, or the device does not support it.
        """
        wanted = {
            "float_dtype": float_dtype,
            "int_dtype": int_dtype,
            "complex_dtype": complex_dtype,
        }
        if quantization is not None and not isinstance(quantization, QuantConfig):
            raise ArgumentError(
                f"quantization must be a QuantConfig, not {quantization!r}",
                hint="QuantConfig(scheme) has a scheme",
                operation="configure",
            )
        changes = {name: DType.of(dtype) for name, dtype in wanted.items() if dtype is not None}
        hardware = self._physical
        now = hardware.settings
        settings = changed_settings(now, changes, self.name, hardware.supports_dtype)
        with hardware._lock:
            if hardware._is_used and settings != now:
                raise ArgumentError(
                    f"{self.name} is in use: its default dtypes cannot change any more",
                    hint="Call configure() before the first tensor is made on the device",
                )
            compiles = now.compile if compile is None else bool(compile)
            hardware._settings = replace(
                settings, compile=compiles, quantization=quantization or now.quantization
            )
            hardware.compiles = compiles
        if quantization is not None:
            forget_plans()

    @property
    def generator(self) -> GeneratorKey:
        """Key of the device's random number generator in `burn.generator`."""
        return (self.entry.name, self.id)

    def seed(self, seed: int) -> None:
        """Start the random numbers of the device anew from a seed.

        Raises
        ------
        OperandTypeError
            If it is no integer.
        ArgumentError
            Inside of a function of `burn.vmap` or `burn.checkpoint`, whose draws are reproduced.
        """
        from burn.ops.arguments import as_integer  # to list devices takes no ops

        seed_generator(self.generator, as_integer(seed, "seed", "seed"))

    @classmethod
    def enumerate(
        cls,
        backend: str | Iterable[str] | None = None,
        *,
        type: str | Iterable[str] | None = None,
        dtype: DType | str | Iterable[DType | str] | None = None,
    ) -> list[Device]:
        """Every device that is there, of all types, in the order in which a default is chosen.

        A device is listed if it passes all filters; each filter is one value, or several.

        Parameters
        ----------
        backend : str or iterable of str, optional
            Only devices of this backend, of one type of it, or this device: ``"torch"``,
            ``"torch/cuda"``, ``"torch/cuda:1"``. Of several: of any of them.
        type : str or iterable of str, optional
            Only devices of this type, of whichever backend. Of several: of any of them.
        dtype : DType, dtype of NumPy, str, or iterable of them, optional
            Only devices that compute with this dtype. Of several: with all of them. Backends that
            cannot say without their library are loaded, and left out if they cannot be.

        Raises
        ------
        OperandTypeError
            If a filter is neither a name nor an iterable of names.
        DTypeError
            If there is no such dtype.

        Examples
        --------
        >>> import burn
        >>> burn.Device.enumerate("cpu")
        [Device('cpu:0')]
        >>> burn.Device.enumerate({"cpu", "abacus"}, dtype=[burn.bfloat16, burn.float64])
        [Device('cpu:0')]
        >>> burn.Device.enumerate(type="abacus")
        []
        """
        backends, types = _names(backend, "backend"), _names(type, "type")
        wanted = [DType.of(item) for item in _several(dtype)]
        return [
            _handle(entry, info.type, info.index)
            for entry, info in ranked()
            if (backend is None or backends & spellings(entry, info.type, info.index))
            and (type is None or info.type in types)
            and all(_handle(entry, info.type, info.index)._computes_with(dtype) for dtype in wanted)
        ]

    def _computes_with(self, dtype: DType) -> bool:
        """Whether it supports a dtype, as the probe says, or the library if only that knows."""
        usage = self.info.usage
        try:
            found = self.dtype_usage(dtype) if usage is None else usage.get(dtype, DTypeUsage.NONE)
        except (DeviceUnavailableError, PluginError):
            return False
        return DTypeUsage.GENERAL in found

    @classmethod
    def preferred(cls) -> Device:
        """The device that `default` returns if it can be opened, without loading its backend.

        Raises
        ------
        DeviceUnavailableError
            If there is no device, or not the one that ``BURN_DEVICE`` names.
        """
        return preferred(cls)

    @classmethod
    def default(cls) -> Device:
        """The device on which tensors are made without a device argument.

        In this order: that of ``with burn.default_device(...)``, of the thread or asyncio task;
        that of `burn.set_default_device`; the one that ``BURN_DEVICE`` names; the best one that is
        there, where ``BURN_DEVICE_PRIORITY`` (names such as ``torch/cuda``, separated by commas)
        puts others first. Of the best ones, those that cannot be loaded or opened are passed over
        (see `fallbacks`); a device that the user names is never passed over.

        Raises
        ------
        DeviceUnavailableError
            If there is none, or not the one that ``BURN_DEVICE`` names.
        """
        return default(cls)

    @staticmethod
    def fallbacks() -> list[str]:
        """What the last automatic choice passed over because it failed, and why."""
        return list(fallbacks())


def _several(given: Any) -> list[Any]:
    """The values of a filter: none, one or several."""
    if given is None:
        return []
    is_one = isinstance(given, str | DType) or not isinstance(given, Iterable)
    return [given] if is_one else list(given)


def _names(given: Any, what: str) -> set[str]:
    """The names of a filter."""
    found = _several(given)
    wrong = [item for item in found if not isinstance(item, str)]
    if wrong:
        raise OperandTypeError(
            f"{what} has an object of type {type(wrong[0]).__name__} among its names",
            hint='Names are strings, such as "torch" and "torch/cuda"',
            operation="Device.enumerate",
        )
    return set(found)


_alive: Final[weakref.WeakValueDictionary[int, Device]] = weakref.WeakValueDictionary()
"""Every handle by its identity: equal ones are several objects."""


_named: Final[dict[str, tuple[int, Device]]] = {}
"""The handle that each name stood for, and the generation of the registry at that time."""

_NOT_NAMED: Final[tuple[int, None]] = (-1, None)


def _handle(entry: BackendEntry, type_: str, index: int) -> Device:
    """The one handle of a device without autodiff."""
    found: Device | None = entry.handles.get((type_, index))
    if found is None:
        made = Device._make(entry, type_, index)
        found = entry.handles.setdefault((type_, index), made)
    return found


def _after_fork() -> None:
    """Make the handles of a child process its own."""
    alive = list(_alive.values())
    for device in alive:
        device._forget_parent()
    for device in alive:
        device._lock = device._hardware._lock


if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(after_in_child=_after_fork)


def _find(name: object) -> Device:
    """The handle of a device, by its name."""
    spelling = parse(name)
    entry = registry.entry(spelling.backend)
    device = _find_hardware(entry, spelling)
    if spelling.is_autodiff:
        device = device.autodiff()
    return device.gradient_checkpointing() if spelling.is_checkpointing else device


def _find_hardware(entry: BackendEntry, spelling: Spelling) -> Device:
    """The handle of a device without autodiff, by the parts of its name."""
    if entry.spec.parse is not None:
        parsed = entry.parse(spelling.inside)
        return _handle(entry, parsed.type, parsed.index)
    present = entry.probe(is_asked_for=True)
    if entry.error is not None:
        entry.load()  # raises, with the reason
    types = entry.spec.device_types
    if spelling.type and spelling.type not in types:
        raise DeviceUnavailableError(
            f"{entry.name!r} has no devices of type {spelling.type!r}",
            hint=f"It has {', '.join(types)}",
        )
    wanted = (spelling.type or (present[0].type if present else ""), spelling.index)
    for info in present:
        if (info.type, info.index) == wanted:
            return _handle(entry, info.type, info.index)
    names = ", ".join(_handle(entry, info.type, info.index).name for info in present)
    nothing = f"{entry.name} finds no hardware{f': {entry.absence}' if entry.absence else ''}"
    raise DeviceUnavailableError(
        f"there is no device {spelling.hardware!r}",
        hint=f"{entry.name} has {names}" if names else nothing,
    )
