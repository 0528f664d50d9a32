"""Devices: handles of hardware, their settings, and which one is the default."""

from burn.devices.device import Device
from burn.devices.settings import DeviceSettings
from burn.devices.tensor_type import TensorType

__all__ = ["Device", "DeviceSettings", "TensorType"]
