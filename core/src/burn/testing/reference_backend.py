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

__all__ = ["NumpyBackend", "reference_devices"]


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


class _TwoDevices(NumpyBackend):
    """A backend with another device, whose tensors do not mix with those of the first."""

    def device_count(self, type_id: int) -> int:
        """Two of the only type."""
        return 2 if type_id == 0 else 0


_SPEC: Final = BackendSpec(
    name="reference",
    load=_TwoDevices,
    probe=lambda: [DeviceInfo(type="numpy", index=index, hardware="NumPy") for index in range(2)],
    device_types=("numpy",),
    api_version=(0, 1),
)


@functools.cache
def reference_devices() -> tuple[Device, Device]:
    """Two devices of a `NumpyBackend` as users know them; ``Device.enumerate()`` lists neither.

    Other devices are compared with the first in how they treat wrong calls.
    """
    registry.build_in(_SPEC)
    return Device("reference:0"), Device("reference:1")
