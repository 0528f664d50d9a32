"""NumpyBackend: NumPy through `ArrayBackend`, without any method of its own for an op.

It computes the central differences with which the kit compares gradients, and is an example of a
minimal backend.
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
