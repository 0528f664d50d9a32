"""Which device tensors are made on where nobody says."""

from __future__ import annotations

import contextlib
from typing import overload

from burn.devices.default import enter, leave, set_for_process
from burn.devices.device import Device
from burn.functions.common import DeviceLike

__all__ = ["default_device", "set_default_device"]


class DefaultDevice(contextlib.ContextDecorator):
    """Context in which a device is the default; `burn.default_device` makes it.

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
    """The default device; or, given a device, a context in which that one is the default.

    The context holds for the current thread or asyncio task: others, and threads that are started
    within it, have their own. It also decorates functions.

    Parameters
    ----------
    device : Device or str, optional
        The device to be the default.

    Returns
    -------
    Device, or a context manager

    Raises
    ------
    DeviceUnavailableError
        If there is no such device; without one, if there is none at all.

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
    return Device.default() if device is None else DefaultDevice(Device(device))


def set_default_device(device: DeviceLike | None) -> None:
    """Make a device the default of the process: of all threads, until it is called again.

    It comes before ``BURN_DEVICE``, and after a context of `burn.default_device`.

    Parameters
    ----------
    device : Device, str or None
        The device; None for the one that is found as if this had never been called.

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
    set_for_process(None if device is None else Device(device))
