"""Devices: handles of hardware, their settings, and which one is the default."""

from burn.devices._tensor_type import TensorType
from burn.devices.device import Device
from burn.devices.settings import DeviceSettings

__all__ = ["Device", "DeviceSettings", "TensorType"]
