"""NumpyBackend: NumPy through `ArrayBackend`, without any method of its own for an op.

It computes the central differences with which the kit compares gradients, and is an example of a
minimal backend.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from burn.backend import ArrayBackend
from burn.device_id import DeviceId
from burn.devices import Device
from burn.dtype import DType, DTypeUsage, Kind, bfloat16
from burn.plugins import BackendSpec, DeviceInfo, registry
from burn.tensor_data import TensorData

__all__ = ["NumpyBackend", "other_device", "reference_devices"]


class NumpyBackend(ArrayBackend):
    """NumPy by its array API alone, with the dtypes that NumPy itself has."""

    def __init__(self) -> None:
        super().__init__(np)

    def name(self, device: DeviceId) -> str:
        """``numpy``."""
        del device
        return "numpy"

    def native_dtype(self, dtype: DType) -> object | None:
        """NumPy's dtypes; bfloat16 is none of them."""
        return None if dtype is bfloat16 or dtype.kind is Kind.COMPLEX else dtype.numpy

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """Everything with every dtype there is."""
        del device
        return DTypeUsage.NONE if self.native_dtype(dtype) is None else DTypeUsage.GENERAL

    def from_data(self, data: TensorData, device: DeviceId) -> Any:
        """A copy."""
        del device
        return data.array.copy()

    def to_data(self, x: Any) -> TensorData:
        """The array itself."""
        return TensorData(np.asarray(x))

    def quiet(self) -> AbstractContextManager[Any]:
        """NumPy neither warns nor raises about float results."""
        return np.errstate(all="ignore")


_WITHOUT: Final = {
    "numpy": (),
    "no_float64": ("float64",),
    "no_64bit": ("float64", "int64", "uint64"),
}
"""The dtypes that devices of a type have not."""


class _Devices(NumpyBackend):
    """A backend with two devices of each type, whose tensors do not mix."""

    def device_count(self, type_id: int) -> int:
        """Two of each type."""
        return 2 if type_id < len(_WITHOUT) else 0

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """Everything, or nothing, with a dtype, as the type of the device has it."""
        if dtype.name in list(_WITHOUT.values())[device.type_id]:
            return DTypeUsage.NONE
        return super().dtype_usage(device, dtype)


_SPEC: Final = BackendSpec(
    name="reference",
    load=_Devices,
    probe=lambda: [
        DeviceInfo(type=name, index=index, hardware="NumPy")
        for name in _WITHOUT
        for index in range(2)
    ],
    device_types=tuple(_WITHOUT),
    api_version=(0, 1),
)


@functools.cache
def reference_devices(like: Device | None = None) -> tuple[Device, Device]:
    """Two devices of a `NumpyBackend` as users know them; ``Device.enumerate()`` lists neither.

    Other devices are compared with the first in how they treat wrong calls. It has no 64-bit dtypes
    where the device that it is to be `like` has none.
    """
    _build_in()
    name = f"reference/{_type_like(like)}"
    return Device(f"{name}:0"), Device(f"{name}:1")


def other_device() -> str:
    """The spelling of a device that is there whatever is installed, in memory of the host."""
    _build_in()
    return "reference/numpy:0"


@functools.cache
def _build_in() -> None:
    registry.build_in(_SPEC)


def _type_like(device: Device | None) -> str:
    if device is None or device.supports_dtype("float64"):
        return "numpy"
    return "no_float64" if device.supports_dtype("int64") else "no_64bit"
