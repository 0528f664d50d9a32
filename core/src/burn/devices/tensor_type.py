"""What tensors have in common: the default dtypes of a device, and the type of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burn.dtype import DType, complex64, float32, int64

if TYPE_CHECKING:
    from burn.devices.device import Device
    from burn.ops import Op

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
    calls : dict of str to tuple
        For each op that may take operands of this type: the resolved callable, and the TensorType
        of its output, or None where it depends on more than the types of the operands. Filled at
        first use; an op that is not for this dtype never gets in.
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
        self.calls: dict[str, tuple[Callable[..., Any], TensorType | None]] = {}
        self.scalars: dict[type, Callable[[Any], Any]] = {}
        self.tracking: TensorType | None = None
        if dtype.is_float:
            self.scalars = {float: float, int: float}
        elif dtype.is_complex:
            self.scalars = {complex: complex, float: complex, int: complex}

    def __repr__(self) -> str:
        return f"TensorType({self.device}, {self.dtype})"

    def prepare(self, definition: Op) -> None:
        """Fill in `calls` for an op whose promoting operands are of this type.

        Raises
        ------
        DTypeError
            If the device does not compute with this dtype.
        """
        from burn.ops import Meta, Tag  # a device without tensors needs no ops

        self.device.check_usage(self.dtype, definition)
        operands = definition.operands.values()
        if any(spec.is_list or not spec.promotes for spec in operands):
            return
        if self.dtype.is_complex and "dtype" in definition.attributes:
            return  # whether there is such a conversion is for the rule of the op to say
        output = None
        fixed = not any(attribute.required for attribute in definition.attributes.values())
        if Tag.ELEMENTWISE in definition.tags and fixed:
            inferred = definition.infer(*[Meta((), self.dtype)] * len(operands))
            output = self.device.tensor_type(inferred.dtype)
        function = getattr(self.device.ops, definition.name)
        specialize = getattr(function, "specialize", None)
        if specialize is not None:
            function = specialize(self.dtype)
        self.calls[definition.name] = (function, output)
