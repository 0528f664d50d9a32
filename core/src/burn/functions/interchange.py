"""Memory shared with other libraries through DLPack."""

from __future__ import annotations

import functools
import logging
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.backend.dlpack import (
    HOST,
    DLPackDevice,
    DLPackObject,
    export_host,
    import_host,
    is_readable,
    read_in_place,
)
from burn.devices import Device
from burn.dispatch import DispatchTensor, join_trace
from burn.dtype import Kind
from burn.errors import (
    ArgumentError,
    BurnError,
    ExportError,
    OperandTypeError,
)
from burn.functions._registration import register_with_libraries
from burn.functions.common import DeviceLike, dispatch
from burn.functions.normalize import as_flag, find_device
from burn.functions.primitives import wrapped
from burn.plugins import describe, registry
from burn.public_calls import shown_value
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from burn.tensor.tensor import Tensor

__all__ = ["from_dlpack"]

VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""Versions of the array API standard that the namespace follows."""

_CUDA_TYPES: Final = (2, 13)
"""DLPack's device types of a CUDA device: its own memory, and managed memory."""

_log = logging.getLogger("burn")


def array_namespace(api_version: str | None) -> ModuleType:
    """The module ``burn``, if it follows a version of the standard."""
    if api_version is not None and api_version not in VERSIONS:
        raise ArgumentError(
            f"burn does not follow version {shown_value(api_version)} of the array API standard",
            hint=f"It follows {', '.join(VERSIONS)}",
            operation="__array_namespace__",
        )
    return sys.modules["burn"]


def dlpack_device(device: Device) -> DLPackDevice:
    """DLPack's (type, index) of the memory of a device."""
    found: DLPackDevice = device.backend.dlpack_device(device.id)
    return found


def to_dlpack(
    x: Tensor,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """DLPack capsule of a tensor; see `Tensor.__dlpack__`."""
    join_trace(x)
    if x.is_tracked:
        raise ExportError(
            "an export of a tracked tensor would drop its gradient",
            hint="Call .detach() or .inner() first",
            operation="__dlpack__",
        )
    if x.dtype.kind is Kind.QUANTIZED:
        raise ExportError(
            f"{x.dtype} is codes and scales, which no array has",
            hint="Export .dequantize(), or the arrays of .data()",
            operation="__dlpack__",
        )
    own = dlpack_device(x.device)
    wanted = own if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if wanted == HOST and own != HOST and (copy is not False or is_readable(own)):
        try:
            data = read_in_place(x.data) if copy is False else x.data()
            return export_host(data, max_version=max_version, copy=copy)
        except ExportError as error:
            error.operation = error.operation or "__dlpack__"
            raise
    if wanted != own:
        raise ExportError(
            f"memory of DLPack's device {own} cannot be exported to {wanted}"
            + (" without a copy" if wanted == HOST else ""),
            operation="__dlpack__",
        )
    return _export(x, stream, max_version, copy)


def _export(x: Tensor, stream: Any, max_version: tuple[int, int] | None, copy: bool | None) -> Any:
    """Capsule in the memory of the tensor's device: a copy, or marked as read-only."""
    # ctypes is not imported with burn.
    from burn.backend.capsule import mark_read_only, read_capsule

    export = functools.partial(x.device.ops.backend.to_dlpack, dispatch.inner(x).primitive)
    can_mark = max_version is not None and max_version >= (1, 0)
    if copy is None and not can_mark:
        copy = True
    try:
        capsule = export(stream=stream, max_version=max_version, copy=copy)
        found = read_capsule(capsule)
        # PyTorch ends the process where it meets negative strides.
        if found.has_negative_strides and copy is False:
            raise ExportError("memory with negative strides is exported as a copy only")
        cannot_be_marked = copy is None and found.version is None
        if found.has_negative_strides or cannot_be_marked:
            capsule = export(stream=stream, max_version=max_version, copy=True)
        elif not copy:
            mark_read_only(capsule)
    except ExportError as error:
        error.operation = error.operation or "__dlpack__"
        raise
    except Exception as error:  # of the library underneath
        raise ExportError(
            f"{x.device} does not export {x.dtype}: {describe(error)}", operation="__dlpack__"
        ) from error
    return capsule


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor in the memory of an array of another library.

    The memory is shared where possible. A change of the array then changes the tensor, and every
    tensor that is a view of it: pass ``copy=True`` where that may happen.

    Parameters
    ----------
    x : object
        An array with `__dlpack__` and `__dlpack_device__`.
    device : Device or str, optional
        Device of the tensor. By default a device that holds the memory of the array: the one that
        the backend of the array's own library names, if that is installed; else the default
        device, if it holds the memory; else the first device that does, and the default device if
        none does.
    copy : bool, optional
        True for a copy; False for an error where memory cannot be shared; None to share memory
        where possible.

    Returns
    -------
    Tensor
        Of the shape and dtype of the array.

    Raises
    ------
    ExportError
        If the memory can be neither shared nor read, as that of a PyTorch tensor which requires a
        gradient, or has a dtype that no tensor has. It is a `BufferError`.
    OperandTypeError
        If the object has no such methods.

    Examples
    --------
    >>> import burn
    >>> import numpy as np
    >>> burn.from_dlpack(np.asarray([1.0, 2.0]), device="cpu").tolist()
    [1.0, 2.0]
    """
    if copy is not None and copy.__class__ is not bool:
        copy = as_flag(copy, "copy", "from_dlpack")
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise OperandTypeError(
            f"an object of type {type(x).__name__} does not have DLPack's methods",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation="from_dlpack",
        )
    register_with_libraries()
    memory = memory_of(x)
    if isinstance(x, DispatchTensor):
        own = x.tensor_type.device
        device = own if device is None else find_device(device, "from_dlpack")
        if copy is not True and device.hardware is own.hardware and _is_exchanged(x):
            return dispatch.wrap(x.primitive, device.type_of(x.primitive))
    target = device_of_memory(x, memory) if device is None else find_device(device, "from_dlpack")
    if copy is not True and target is not None and _owner(x) is target.hardware:
        return _adopted(x, target)
    if is_readable(memory):
        return _from_host(x, target or Device.default(), copy)
    if target is not None and dlpack_device(target) == memory:
        shared = _import(_exported(x, memory, target, copy), target)
        if shared is not None:
            return shared
    if copy is False:
        raise ExportError(
            f"memory of DLPack's device {memory} cannot be shared with {target}",
            hint="Leave copy out",
            operation="from_dlpack",
        )
    return dispatch.from_data(_read(x, memory), target or Device.default())


def _is_exchanged(x: Any) -> bool:
    """Whether DLPack exports a tensor, which has values and no gradient that would be lost."""
    return not (x.dtype.kind is Kind.QUANTIZED or x.is_tracked or x.device.is_traced)


def _adopted(x: Any, device: Device) -> Tensor:
    """A tensor of an array of the backend's own library."""
    backend = device.ops.backend
    primitive = backend.from_dlpack(x, device.id)
    if primitive is None:
        primitive = backend.as_primitive(x)
    return wrapped(primitive, device, ExportError, "from_dlpack")


def memory_of(x: Any) -> DLPackDevice:
    """DLPack's (type, index) of the device whose memory holds an array of another library.

    Raises
    ------
    ExportError
        If the array does not say, or its memory holds other values than it has.
    """
    try:
        kind, number = x.__dlpack_device__()
        # PyTorch exports such a tensor with the signs of its memory, which all differ from its own.
        is_negated = getattr(x, "is_neg", None)
        if callable(is_negated) and is_negated():
            raise ExportError("its memory holds the negatives of its values; call .resolve_neg()")
        return int(kind), int(number)
    except Exception as error:
        raise ExportError(
            f"an object of type {type(x).__name__} cannot be read: {describe(error)}",
            operation="from_dlpack",
        ) from error


def device_of_memory(x: Any, memory: DLPackDevice) -> Device | None:
    """The device for an array in such memory; None if there is none.

    That of the backend of its own library, else the default one, else the first one; the first that
    computes in host memory comes before others whose data go through it.
    """
    own = own_device(x, memory)
    if own is not None:
        return own
    default = Device.default()
    if _has_memory(default, memory):
        return default
    devices = [device for device in Device.enumerate() if _has_memory(device, memory)]
    sharing = [device for device in devices if is_readable(memory) and _shares(device)]
    return next(iter(sharing or devices), None)


def _shares(device: Device) -> bool:
    """Whether the device computes in memory of the host."""
    return device.backend.share(TensorData(np.zeros(1, np.float32)), device.id) is not None


def own_device(x: Any, memory: DLPackDevice) -> Device | None:
    """The device for an array, of the backend of its own library; None without that backend.

    The one that the backend names, else its first device with the memory.
    """
    owner = _owner(x)
    if owner is not None:
        return owner
    devices = [device for devices in _devices_of_library(x) for device in devices]
    return next((device for device in devices if _has_memory(device, memory)), None)


def _owner(x: Any) -> Device | None:
    """The device that the backend of an array's own library names; None if it names none."""
    for devices in _devices_of_library(x):
        try:
            own = devices[0].backend.device_of(x)
        except Exception as error:  # noqa: BLE001 — DLPack's methods say what is wrong with it
            _log.debug("%s does not take %s: %s", devices[0], type(x).__name__, describe(error))
            continue
        for device in devices:
            if device.id == own:
                return device
    return None


def _devices_of_library(x: Any) -> Iterator[list[Device]]:
    """The devices of each backend that declares the library of an array, best first."""
    modules = {kind.__module__.partition(".")[0] for kind in type(x).__mro__}
    for name, entry in registry.entries.items():
        if entry.error is None and modules.intersection(entry.spec.libraries):
            devices = [Device(f"{name}/{info.type}:{info.index}") for info in entry.probe()]
            if devices:
                yield devices


def _has_memory(device: Device, memory: DLPackDevice) -> bool:
    try:
        return dlpack_device(device) == memory
    except BurnError:  # its backend does not load
        return False


def _from_host(x: Any, target: Device, copy: bool | None) -> Tensor:
    """A tensor of an array whose memory the host can read."""
    try:
        data = import_host(x, copy=copy)
    except ExportError as error:
        error.operation = error.operation or "from_dlpack"
        raise
    target.tensor_type(data.dtype)
    if copy is not True:
        shared = target.ops.backend.share(data, target.id)
        if shared is not None:
            return dispatch.wrap(shared, target.type_of(shared))
    if copy is False:
        raise ExportError(
            f"the memory of the host cannot be shared with {target}",
            hint="Leave copy out",
            operation="from_dlpack",
        )
    return dispatch.from_data(data, target)


def _import(x: Any, target: Device) -> Tensor | None:
    """A tensor in the memory of an array on the device; None where the backend cannot make one."""
    try:
        primitive = target.ops.backend.from_dlpack(x, target.id)
        return None if primitive is None else dispatch.wrap(primitive, target.type_of(primitive))
    except Exception as error:  # noqa: BLE001 — two libraries may raise anything
        _log.debug("%s does not import %s: %s", target, type(x).__name__, describe(error))
        return None


def _exported(x: Any, memory: DLPackDevice, target: Device, copy: bool | None) -> Any:
    """An array for a backend: unwrapped if it is of the backend's own library and not copied."""
    if not copy and own_device(x, memory) is target.hardware:
        return x
    return DLPackObject(x.__dlpack__, memory, copy=copy)


def _read(x: Any, memory: DLPackDevice) -> TensorData:
    """The values of an array whose memory the host cannot read, through a device that can."""
    reader = device_of_memory(x, memory)
    if reader is not None:
        imported = _import(_exported(x, memory, reader, None), reader)
        if imported is not None:
            return imported.data()
    try:
        return TensorData(np.from_dlpack(x, device="cpu"))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ExportError(
            f"cannot read an object of type {type(x).__name__}: {error}", operation="from_dlpack"
        ) from error


def from_cuda(x: Any, device: Device | None, copy: bool | None) -> Tensor:
    """A tensor of an array that has `__cuda_array_interface__`, and no DLPack."""
    readers = [device for device in Device.enumerate() if _is_cuda(device)]
    readers.sort(key=lambda reader: device is None or reader is not device.hardware)
    for reader in readers:
        imported = _import(x, reader)
        if imported is None:
            continue
        target = reader if device is None else device
        if copy is not False:
            return dispatch.from_data(imported.data(), target)
        if target.hardware is reader:
            return imported.to_device(target)
    raise ExportError(
        f"an object of type {type(x).__name__} is in the memory of a CUDA device, which "
        + (f"cannot be shared with {device}" if readers and device else "no backend here can read"),
        hint="`burn devices` lists the devices; copy it to the host for any other device",
        operation="asarray",
    )


def _is_cuda(device: Device) -> bool:
    try:
        return dlpack_device(device)[0] in _CUDA_TYPES
    except BurnError:  # its backend does not load
        return False
