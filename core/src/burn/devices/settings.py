"""The settings of a device: default dtypes, which are chosen before its use, and a switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from burn.dtype import DType, complex64, float32, int64
from burn.errors import DTypeError
from burn.public_calls import shown_as_text
from burn.quant_scheme import QuantConfig

__all__ = ["DeviceSettings", "changed_settings"]


@shown_as_text
@dataclass(frozen=True)
class DeviceSettings:
    """Dtypes of tensors on a device where the user names none, and a switch.

    Attributes
    ----------
    float_dtype : DType
        For floats.
    int_dtype : DType
        For integers, and for indices.
    complex_dtype : DType
        For complex numbers.
    compile : bool
        Whether functions of `burn.compile` run as programs. If not, they run as they are written.
    quantization : QuantConfig
        The default scheme of quantized tensors, and whether arithmetic on them gives such again.
    """

    float_dtype: DType = float32
    int_dtype: DType = int64
    complex_dtype: DType = complex64
    compile: bool = True
    quantization: QuantConfig = field(default_factory=QuantConfig)

    def default_for(self, dtype: DType) -> DType:
        """The default dtype of the same kind (bool is its own)."""
        if dtype.is_float:
            return self.float_dtype
        if dtype.is_integer:
            return self.int_dtype
        return dtype if dtype.is_bool else self.complex_dtype


def changed_settings(
    settings: DeviceSettings,
    changes: Mapping[str, DType],
    device: str,
    supports: Callable[[DType], bool],
) -> DeviceSettings:
    """Settings with other default dtypes.

    Parameters
    ----------
    settings : DeviceSettings
        The settings now.
    changes : mapping of str to DType
        New dtypes by the name of the field.
    device : str
        Name of the device, for errors.
    supports : callable
        Whether the device stores a dtype and computes with it.

    Raises
    ------
    DTypeError
        If a dtype is of another kind than the field, or the device does not support it.
    """
    for name, dtype in changes.items():
        kind = getattr(settings, name).kind
        fitting = [
            dtype.name for dtype in DType.members() if dtype.kind is kind and supports(dtype)
        ]
        hint = f"{device} computes with {', '.join(fitting) or 'none of this kind'}"
        if dtype.kind is not kind:
            raise DTypeError(f"{name} cannot be {dtype}", hint=hint)
        if dtype.name not in fitting:
            raise DTypeError(f"{device} does not support {dtype}", hint=hint)
    return replace(settings, **changes)  # type: ignore[arg-type]  # dtypes, by their fields
