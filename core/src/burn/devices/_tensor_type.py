"""TensorType: the object that all tensors of one dtype on one device share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn.devices.device import Device
    from burn.dtype import DType

__all__ = ["TensorType"]


class TensorType:
    """The object that all tensors of one dtype on one device share.

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
    constants : frozenset of TensorType
        Those of the same dtype on the same hardware with fewer layers: an op on operands of this
        type and of such a type runs here.
    """

    __slots__ = ("calls", "constants", "device", "dtype", "scalars")

    def __init__(self, device: Device, dtype: DType) -> None:
        self.device = device
        self.dtype = dtype
        self.calls: dict[Any, Any] = {}
        self.scalars: dict[type, Callable[[Any], Any]] = {}
        self.constants: frozenset[TensorType] = frozenset()
        if dtype.is_float:
            self.scalars = {float: float, int: float}
        elif dtype.is_complex:
            self.scalars = {complex: complex, float: complex, int: complex}

    def __repr__(self) -> str:
        return f"TensorType({self.device}, {self.dtype})"
