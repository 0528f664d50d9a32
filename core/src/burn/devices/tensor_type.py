"""What tensors have in common: the default dtypes of a device, and the type of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burn.dtype import DType, complex64, float32, int64

if TYPE_CHECKING:
    from burn.devices.device import Device

__all__ = ["DeviceSettings", "TensorType"]


@dataclass(frozen=True)
class DeviceSettings:
    """Dtypes that a device gives to tensors when nobody says which.

    Attributes
    ----------
    float_dtype : DType
        For floats.
    int_dtype : DType
        For integers, and for indices.
    complex_dtype : DType
        For complex numbers.
    """

    float_dtype: DType = float32
    int_dtype: DType = int64
    complex_dtype: DType = complex64

    def default_for(self, dtype: DType) -> DType:
        """The default dtype of the same kind (bool is its own)."""
        if dtype.is_float:
            return self.float_dtype
        if dtype.is_integer:
            return self.int_dtype
        return dtype if dtype.is_bool else self.complex_dtype


class TensorType:
    """What all tensors of one dtype on one device share. There is one per device and dtype.

    Two operands of one TensorType are of one device and one dtype, so a single comparison by
    identity lets an op go ahead, and `calls` has what it needs.

    Attributes
    ----------
    device : Device
        Where the tensors live.
    dtype : DType
        The dtype of their elements.
    calls : dict
        How ops run whose first tensor is of this type; see `burn.dispatch.resolution`, which fills
        it at first use.
    scalars : dict of type to callable
        For each type of Python number that may meet such a tensor without changing its dtype:
        what converts it.
    tracking : TensorType or None
        That of the same dtype on the autodiff device of the same hardware, once there is one: an
        op on operands of both runs there.
    """

    __slots__ = ("calls", "device", "dtype", "scalars", "tracking")

    def __init__(self, device: Device, dtype: DType) -> None:
        self.device = device
        self.dtype = dtype
        self.calls: dict[Any, Any] = {}
        self.scalars: dict[type, Callable[[Any], Any]] = {}
        self.tracking: TensorType | None = None
        if dtype.is_float:
            self.scalars = {float: float, int: float}
        elif dtype.is_complex:
            self.scalars = {complex: complex, float: complex, int: complex}

    def __repr__(self) -> str:
        return f"TensorType({self.device}, {self.dtype})"
