"""The default device: of a context, or of the whole process."""

from __future__ import annotations

import contextlib
from typing import overload

from burn.devices import Device
from burn.devices.default import enter, leave, set_for_process
from burn.functions.common import DeviceLike
from burn.functions.normalize import find_device

__all__ = ["default_device", "set_default_device"]


class DefaultDevice(contextlib.ContextDecorator):
    """Context in which a device is the default, made by `burn.default_device`.

    Attributes
    ----------
    device : Device
        The device.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def __repr__(self) -> str:
        return f"default_device({self.device!r})"

    def __enter__(self) -> Device:
        enter(self.device)
        return self.device

    def __exit__(self, *exception: object) -> None:
        leave()


@overload
def default_device() -> Device: ...


@overload
def default_device(device: DeviceLike) -> DefaultDevice: ...


def default_device(device: DeviceLike | None = None) -> Device | DefaultDevice:
    """The default device; or, given a device, a context in which that device is the default.

    The context holds for the current thread or asyncio task; other threads, also those that start
    inside of it, keep their default. It also decorates functions.

    Parameters
    ----------
    device : Device or str, optional
        The device that becomes the default.

    Returns
    -------
    Device, or a context manager
        Without an argument the default device.

    Raises
    ------
    DeviceUnavailableError
        If there is no such device; without an argument, if there is no device at all.

    See Also
    --------
    set_default_device : the same for the whole process, until it is called again.

    Examples
    --------
    >>> import burn
    >>> with burn.default_device("cpu"):
    ...     burn.zeros(2).device
    Device('cpu:0')
    """
    found = find_device(device, "default_device")
    return found if device is None else DefaultDevice(found)


def set_default_device(device: DeviceLike | None) -> None:
    """Make a device the default of the process: of all threads, until it is called again.

    It comes before ``BURN_DEVICE``, and after a context of `burn.default_device`.

    Parameters
    ----------
    device : Device, str or None
        The device; None to undo an earlier call.

    Raises
    ------
    DeviceUnavailableError
        If there is no such device.

    Examples
    --------
    >>> import burn
    >>> burn.set_default_device("cpu")
    >>> burn.zeros(2).device
    Device('cpu:0')
    >>> burn.set_default_device(None)
    """
    set_for_process(None if device is None else find_device(device, "set_default_device"))
