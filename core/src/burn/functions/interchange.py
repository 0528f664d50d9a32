"""Memory shared with other libraries through DLPack, and what they call the namespace."""

from __future__ import annotations

import functools
import logging
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.autodiff import AutodiffTensor
from burn.backend.dlpack import HOST, Lent, Place, export_host, import_host, is_readable
from burn.devices.device import Device
from burn.dispatch import DispatchTensor
from burn.errors import (
    ArgumentError,
    AutodiffError,
    BurnError,
    DeviceMismatchError,
    DTypeError,
    ExportError,
    OperandTypeError,
    UnsupportedOpError,
)
from burn.functions.common import DeviceLike, dispatch, meet_libraries
from burn.plugins import describe, registry
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.tensor.tensor import Tensor

__all__ = ["from_dlpack"]

VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""Versions of the array API standard that the namespace follows."""

_CUDA_TYPES: Final = (2, 13)
"""What DLPack calls memory on a CUDA device: its own, and managed."""

_log = logging.getLogger("burn")


def array_namespace(api_version: str | None) -> ModuleType:
    """The module ``burn``, if it follows a version of the standard."""
    if api_version is not None and api_version not in VERSIONS:
        raise ArgumentError(
            f"burn does not follow version {api_version!r} of the array API standard",
            hint=f"It follows {', '.join(VERSIONS)}",
            operation="__array_namespace__",
        )
    return sys.modules["burn"]


def dlpack_device(device: Device) -> Place:
    """What DLPack calls the memory of a device."""
    found: Place = device.backend.dlpack_device(device.id)
    return found


def to_dlpack(
    x: Tensor,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """DLPack capsule of a tensor; see `Tensor.__dlpack__`."""
    if x.is_tracked:
        raise ExportError(
            "an export of a tracked tensor would drop its gradient",
            hint="Call .detach() or .inner() first",
            operation="__dlpack__",
        )
    own = dlpack_device(x.device)
    wanted = own if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if wanted == HOST and own != HOST and (copy is not False or is_readable(own)):
        return export_host(x.data(), max_version=max_version, copy=copy)
    if wanted != own:
        raise ExportError(
            f"memory of DLPack's device {own} cannot be exported to {wanted}"
            + (" without a copy" if wanted == HOST else ""),
            operation="__dlpack__",
        )
    return _export(x, stream, max_version, copy)


def _export(x: Tensor, stream: Any, max_version: tuple[int, int] | None, copy: bool | None) -> Any:
    """Capsule in the memory of the tensor's device, which is nobody's or marked as read-only."""
    # What takes ctypes is not for a start.
    from burn.backend.capsule import contents, mark_read_only

    export = functools.partial(x.device.ops.backend.to_dlpack, dispatch.inner(x).primitive)
    marks = max_version is not None and max_version >= (1, 0)
    if copy is None and not marks:
        copy = True
    try:
        capsule = export(stream=stream, max_version=max_version, copy=copy)
        found = contents(capsule)
        # PyTorch ends the process where it meets negative strides.
        if found.has_negative_strides and copy is False:
            raise ExportError("memory with negative strides is given away as a copy only")
        cannot_be_marked = copy is None and found.version is None
        if found.has_negative_strides or cannot_be_marked:
            capsule = export(stream=stream, max_version=max_version, copy=True)
        elif not copy:
            mark_read_only(capsule)
    except ExportError as error:
        error.operation = error.operation or "__dlpack__"
        raise
    except Exception as error:  # of whatever library is underneath
        raise ExportError(
            f"{x.device} does not export {x.dtype}: {describe(error)}", operation="__dlpack__"
        ) from error
    return capsule


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor in the memory of an array of another library.

    The memory is shared wherever it can be. Who changes it from outside changes the tensor, and
    every tensor that is a view of it: pass ``copy=True`` where that may happen.

    Parameters
    ----------
    x : object
        An array with `__dlpack__` and `__dlpack_device__`.
    device : Device or str, optional
        Where the tensor shall be. By default where the array is: with the backend of the array's
        own library, if that is installed; else on the default device, if its memory is there;
        else on the first device whose memory is there, and on the default device if there is none.
    copy : bool, optional
        True for memory of its own; False for an error where memory cannot be shared; None to
        share it if possible.

    Raises
    ------
    ExportError
        If the memory cannot be shared, or not read: that of a PyTorch tensor which requires a
        gradient, for example. It is a `BufferError`.
    OperandTypeError
        If the object has no such methods.
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise OperandTypeError(
            f"an object of type {type(x).__name__} does not have DLPack's methods",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation="from_dlpack",
        )
    meet_libraries()
    place = place_of(x)
    if isinstance(x, DispatchTensor) and device is None:
        device = x.tensor_type.device
    target = device_at(x, place) if device is None else Device(device)
    if is_readable(place):
        return _from_host(x, target or Device.default(), copy)
    if target is not None and dlpack_device(target) == place:
        shared = _import(_lent(x, place, target, copy), target)
        if shared is not None:
            return shared
    if copy is False:
        raise ExportError(
            f"memory of DLPack's device {place} cannot be shared with {target}",
            hint="Leave copy out",
            operation="from_dlpack",
        )
    return dispatch.from_data(_read(x, place), target or Device.default())


def place_of(x: Any) -> Place:
    """Where an array of another library lies, as DLPack has it.

    Raises
    ------
    ExportError
        If it does not say, or its memory holds other values than it has.
    """
    try:
        kind, number = x.__dlpack_device__()
        # PyTorch exports the memory of such a tensor without a word of it that all signs differ.
        is_negated = getattr(x, "is_neg", None)
        if callable(is_negated) and is_negated():
            raise ExportError("its memory holds the negatives of its values; call .resolve_neg()")
        return int(kind), int(number)
    except Exception as error:
        raise ExportError(
            f"an object of type {type(x).__name__} cannot be read: {describe(error)}",
            operation="from_dlpack",
        ) from error


def device_at(x: Any, place: Place) -> Device | None:
    """The device for an array that lies in such memory; None if there is none.

    That of the backend of its own library, the default one, or the first there is.
    """
    own = own_device(x, place)
    if own is not None:
        return own
    default = Device.default()
    if _lies_at(default, place):
        return default
    return next((device for device in Device.enumerate() if _lies_at(device, place)), None)


def own_device(x: Any, place: Place) -> Device | None:
    """The device for an array, of the backend of its own library; None if that is not there."""
    modules = {kind.__module__.partition(".")[0] for kind in type(x).__mro__}
    for name, entry in registry.entries.items():
        if entry.error is None and modules.intersection(entry.spec.libraries):
            for info in entry.probe():
                device = Device(f"{name}/{info.type}:{info.index}")
                if _lies_at(device, place):
                    return device
    return None


def _lies_at(device: Device, place: Place) -> bool:
    try:
        return dlpack_device(device) == place
    except BurnError:  # it is there, and does not load
        return False


def _from_host(x: Any, target: Device, copy: bool | None) -> Tensor:
    """A tensor of an array in memory that the host can read."""
    data = import_host(x)
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
    except Exception as error:  # noqa: BLE001 — of whatever libraries meet here
        _log.debug("%s does not take %s in: %s", target, type(x).__name__, describe(error))
        return None


def _lent(x: Any, place: Place, target: Device, copy: bool | None) -> Any:
    """An array as a backend is to see it: its own library's as it is, if it need not be a copy."""
    if not copy and own_device(x, place) is target.hardware:
        return x
    return Lent(x.__dlpack__, place, copies=bool(copy))


def _read(x: Any, place: Place) -> TensorData:
    """The values of an array whose memory the host cannot read, by whoever can."""
    reader = device_at(x, place)
    if reader is not None:
        there = _import(_lent(x, place, reader, None), reader)
        if there is not None:
            return there.data()
    try:
        return TensorData(np.from_dlpack(x, device="cpu"))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ExportError(
            f"cannot read an object of type {type(x).__name__}: {error}", operation="from_dlpack"
        ) from error


def from_cuda(x: Any, device: Device | None, copy: bool | None) -> Tensor:
    """A tensor of an array that has `__cuda_array_interface__`, and no DLPack."""
    there = [one for one in Device.enumerate() if _is_cuda(one)]
    there.sort(key=lambda one: device is None or one is not device.hardware)
    for one in there:
        made = _import(x, one)
        if made is None:
            continue
        target = one if device is None else device
        if copy is not False:
            return dispatch.from_data(made.data(), target)
        if target.hardware is one:
            return made.to_device(target)
    raise ExportError(
        f"an object of type {type(x).__name__} lies in the memory of a CUDA device, which "
        + (f"cannot be shared with {device}" if there and device else "no backend here can read"),
        hint="`burn devices` lists what there is; copy it to the host for any other device",
        operation="asarray",
    )


def _is_cuda(device: Device) -> bool:
    try:
        return dlpack_device(device)[0] in _CUDA_TYPES
    except BurnError:  # it is there, and does not load
        return False


def from_primitive(primitive: Any, device: Device) -> Tensor:
    """A tensor of what the device's backend computes with; see `Tensor.from_primitive`."""
    below = primitive
    if isinstance(primitive, AutodiffTensor):
        if not device.is_autodiff or not device.backend.is_tracked(primitive):
            raise AutodiffError(
                f"the primitive of a tracked tensor is none of {device}",
                hint="Take that of tensor.detach(), or name the device of the tensor",
                operation="from_primitive",
            )
        below = primitive.primitive
    place = _checked_place(below, device)
    if place != device.id:
        raise DeviceMismatchError(
            f"the primitive is on {_name_of(place, device)}, not on {device.name}",
            hint=f'Call .to_device("{device.name}") on a tensor that is made of it where it is',
            operation="from_primitive",
        )
    native = below.dtype
    dtype = device.ops.dtypes.get(native)
    if dtype is None:
        raise DTypeError(
            f"{device.name} has no dtype {native!r}",
            hint=f"It has {', '.join(str(one) for one in device.dtypes())}",
            operation="from_primitive",
        )
    meet_libraries()
    return dispatch.wrap(primitive, device.tensor_type(dtype))


def _checked_place(primitive: Any, device: Device) -> DeviceId:
    """Where a primitive lies; an error where it is no primitive of the device's backend."""
    kind = f"an object of type {type(primitive).__name__}"
    if isinstance(primitive, DispatchTensor):
        raise OperandTypeError(
            "a tensor is no primitive",
            hint="Its attribute `primitive` is one; .to_device() moves a tensor",
            operation="from_primitive",
        )
    backend = device.ops.backend
    try:
        place: DeviceId | None = backend.device_of(primitive)
    except BurnError as error:
        error.operation = error.operation or "from_primitive"
        raise
    except Exception as error:
        raise OperandTypeError(
            f"{kind} is no primitive of {device.name}: {describe(error)}",
            operation="from_primitive",
        ) from error
    if place is not None:
        return place
    zero = device.ops.full(shape=(), fill_value=0, dtype=device.settings.float_dtype)
    if backend.device_of(zero) is None:
        raise UnsupportedOpError(
            f"the backend {device.backend_name!r} does not say which primitives it takes",
            hint="burn.asarray() and burn.from_dlpack() make tensors of arrays",
            operation="from_primitive",
        )
    raise OperandTypeError(
        f"{kind} is no primitive of {device.name}, which computes with {type(zero).__name__}",
        hint="burn.asarray() makes a tensor of any array",
        operation="from_primitive",
    )


def _name_of(place: DeviceId, device: Device) -> str:
    """Name of another device of the same backend."""
    found = [one.name for one in Device.enumerate(device.backend_name) if one.id == place]
    return found[0] if found else f"another device of {device.backend_name}"
