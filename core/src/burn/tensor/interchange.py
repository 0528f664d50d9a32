"""Memory shared with other libraries through DLPack, and what they call the namespace."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.backend.dlpack import HOST, export_host
from burn.data import TensorData
from burn.device import Device
from burn.errors import ArgumentError, ExportError, OperandTypeError
from burn.tensor.dispatcher import DeviceLike, dispatch

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""Versions of the array API standard that the namespace follows."""

_HOST_TYPES: Final = (1, 3, 11, 13)
"""What DLPack calls memory that the host can read: its own, pinned (CUDA, ROCm), and managed."""


def array_namespace(api_version: str | None) -> ModuleType:
    """The module ``burn``, if it follows a version of the standard."""
    if api_version is not None and api_version not in VERSIONS:
        raise ArgumentError(
            f"burn does not follow version {api_version!r} of the array API standard",
            hint=f"It follows {', '.join(VERSIONS)}",
            operation="__array_namespace__",
        )
    return sys.modules["burn"]


def dlpack_device(device: Device) -> tuple[int, int]:
    """What DLPack calls the memory of a device."""
    found: tuple[int, int] = device.backend.dlpack_device(device.id)
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
    primitive = dispatch.inner(x).primitive
    if wanted == own:
        return x.device.ops.backend.to_dlpack(
            primitive, stream=stream, max_version=max_version, copy=copy
        )
    if wanted == HOST and copy is not False:
        return export_host(x.data(), max_version=max_version, copy=copy)
    raise ExportError(
        f"memory of DLPack's device {own} cannot be exported to {wanted}"
        + (" without a copy" if wanted == HOST else ""),
        operation="__dlpack__",
    )


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor in the memory of an array of another library.

    The memory is shared wherever it can be. Who changes it from outside changes the tensor, and
    every tensor that is a view of it: pass ``copy=True`` where that may happen.

    Parameters
    ----------
    x : object
        An array with `__dlpack__` and `__dlpack_device__`.
    device : Device or str, optional
        Where the tensor shall be. By default where the array is.
    copy : bool, optional
        True for memory of its own; False for an error where memory cannot be shared; None to
        share it if possible.

    Raises
    ------
    ExportError
        If the memory cannot be shared, or not read. It is a `BufferError`.
    OperandTypeError
        If the object has no such methods.
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise OperandTypeError(
            f"an object of type {type(x).__name__} does not have DLPack's methods",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation="from_dlpack",
        )
    place = tuple(map(int, x.__dlpack_device__()))
    target = _device_at(place) if device is None else Device(device)
    if target is not None and copy is not True and dlpack_device(target) == place:
        shared = _shared(x, target, on_host=place == HOST)
        if shared is not None:
            return shared
    if copy is False:
        raise ExportError(
            f"memory of DLPack's device {place} cannot be shared with {target}",
            hint="Leave copy out",
            operation="from_dlpack",
        )
    return dispatch.from_data(_on_host(x, place), target or Device.default())


def _shared(x: Any, target: Device, *, on_host: bool) -> Tensor | None:
    """A tensor in the memory of an array that lies where the device's memory does."""
    backend = target.ops.backend
    if on_host:
        data = _on_host(x, HOST)
        primitive = backend.share(data, target.id)
    else:
        primitive = backend.from_dlpack(x, target.id)
    if primitive is None:
        return None
    return dispatch.wrap(primitive, target.type_of(primitive))


def _on_host(x: Any, place: tuple[int, ...]) -> TensorData:
    """The values of an array in host memory, shared if they lie there."""
    try:
        if place[0] in _HOST_TYPES:
            return TensorData(np.from_dlpack(x))
        return TensorData(np.from_dlpack(x, device="cpu"))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ExportError(
            f"cannot read an object of type {type(x).__name__}: {error}", operation="from_dlpack"
        ) from error


def _device_at(place: tuple[int, ...]) -> Device | None:
    """The device whose memory DLPack calls so: the default one, or the first there is."""
    default = Device.default()
    if dlpack_device(default) == place:
        return default
    return next((one for one in Device.enumerate() if dlpack_device(one) == place), None)
