"""NumpyBackend: the base for array libraries over NumPy, and nothing else.

It is what the kit compares gradients with, so that a device is not asked for hundreds of central
differences, and an example of the least that a backend is.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from burn.backend import ArrayBackend
from burn.device_id import DeviceId
from burn.dtype import DType, DTypeUsage, Kind, bfloat16
from burn.tensor_data import TensorData

__all__ = ["NumpyBackend"]


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
