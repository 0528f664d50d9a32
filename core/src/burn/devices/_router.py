"""The backend ``router``: runs the ops of a program as operations on devices of this process."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, NoReturn

from burn.devices.device import Device
from burn.errors import ArgumentError
from burn.plugins import BackendSpec, DeviceInfo, registry

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.dtype import DType

__all__ = ["ROUTER"]

_NAME: Final = "router"


def _parse(spelling: str) -> DeviceInfo:
    """The device ``router/spelling``."""
    if not spelling:
        raise ArgumentError(
            f"{_NAME!r} names no device that runs operations", hint=f"Write {_NAME}/cpu"
        )
    inner = Device(spelling)
    if inner.layers:
        raise ArgumentError(
            f"a router runs operations on hardware, not on {inner}",
            hint=f"Write autodiff<{_NAME}/{inner.name}>",
        )
    _renew(inner)
    info = inner.info
    return dataclasses.replace(
        info,
        type=inner.name.rpartition(":")[0],
        fork_safe=info.fork_safe or inner.type in inner.entry.spec.fork_safe,
    )


_inner: Final[dict[str, Device]] = {}
"""The device of each name on which a device of the router runs operations."""


def _renew(inner: Device) -> None:
    """Forget a device of the router if another device now has the name of the one below it.

    That is so where a backend was registered in this process, and another one after it.
    """
    if _inner.setdefault(inner.name, inner) is inner:
        return
    _inner[inner.name] = inner
    entry = registry.entry(_NAME)
    gone = entry.handles.pop((inner.name.rpartition(":")[0], inner.index), None)
    if gone is not None and entry.backend is not None:
        entry.backend.forget(gone.id)  # type: ignore[attr-defined]  # of a RouterBackend


def _load() -> Backend:
    from burn.router import InProcessChannel, RouterBackend  # to list devices takes no ops

    return RouterBackend(InProcessChannel(_NAME, _InstalledDevices()))


class _InstalledDevices:
    """The devices of this process, as a channel of a router finds them."""

    def find(self, device: DeviceId) -> Device:
        """The device that runs the operations of a device of the router."""
        type_ = registry.entry(_NAME).device_types[device.type_id]
        return Device(f"{type_}:{device.index_id}")

    def count(self, type_id: int) -> int:
        """Number of devices of a type."""
        entry = registry.entry(_NAME)
        if type_id >= len(entry.device_types):
            return 0
        named = next(info for info in entry.probe() if info.type == entry.device_types[type_id])
        inner = Device(f"{named.type}:{named.index}")
        return sum(info.type == inner.type for info in inner.entry.probe())

    def move(self, dtype: DType, source: Any, target: Any, primitive: Primitive) -> Primitive:
        """A primitive of one device on another one."""
        from burn.devices.transfer import transfer

        return transfer(dtype, source, target, primitive)

    def fail(self, device: Any, error: Exception, operation: str) -> NoReturn:
        """Raise what a backend raised as an error of burn."""
        from burn.devices.transfer import fail

        fail(device, error, operation)


ROUTER: Final = BackendSpec(_NAME, load=_load, probe=list, device_types=(), parse=_parse)
"""What the core declares of its own backend."""
