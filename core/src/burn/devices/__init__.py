"""Devices: handles of hardware, their settings, their layers, and which one is the default."""

from burn.devices._tensor_type import TensorType
from burn.devices._transforms import (
    AUTODIFF,
    GRAD,
    VMAP,
    Transform,
    each_layer,
    running,
    transforms,
    under,
    under_running,
)
from burn.devices.device import Device
from burn.devices.settings import DeviceSettings

__all__ = [
    "AUTODIFF",
    "GRAD",
    "VMAP",
    "Device",
    "DeviceSettings",
    "TensorType",
    "Transform",
    "each_layer",
    "running",
    "transforms",
    "under",
    "under_running",
]
