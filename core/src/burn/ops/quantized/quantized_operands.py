"""Operands of the ops of quantization: their kinds, and whether codes and scales fit a scheme."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from burn.dtype import DType, Kind, float32, float64
from burn.errors import DTypeError, ShapeError
from burn.ops.signature import Meta, Operand, Primitive, Shape
from burn.quant_scheme import QuantScheme

__all__ = [
    "Codes",
    "OptionalScale",
    "Scales",
    "check_codes",
    "check_one_level",
    "check_scale_shapes",
    "check_scales",
    "wide_of",
]

Codes: TypeAlias = Annotated[Meta, Operand(Kind.INTEGER, promotes=False)]
Scales: TypeAlias = Annotated[Meta, Operand(Kind("fu"), promotes=False)]
OptionalScale: TypeAlias = Annotated[
    Meta | None, Operand(Kind.FLOAT, promotes=False, optional=True)
]


def wide_of(dtype: DType) -> DType:
    """The dtype in which numbers are quantized and restored."""
    return float64 if dtype is float64 else float32


def check_codes(values: Meta, scheme: QuantScheme) -> Shape:
    """Shape of the tensor that codes stand for."""
    if values.dtype is not scheme.storage_dtype:
        raise DTypeError(f"the codes of {scheme} are {scheme.storage_dtype}, got {values.dtype}")
    shape = scheme.logical_shape(values.shape)
    scheme.check(shape)
    return shape


def check_scales(
    scales: Meta, global_scale: Meta | None, shape: Shape, scheme: QuantScheme
) -> None:
    storage = scheme.scale_dtype.storage
    if scales.dtype is not storage:
        raise DTypeError(f"the scales of {scheme} are {storage}, got {scales.dtype}")
    if global_scale is not None and global_scale.dtype is not float32:
        raise DTypeError(f"a global scale is float32, got {global_scale.dtype}")
    check_scale_shapes(scales, global_scale, shape, scheme)


def check_scale_shapes(
    scales: Meta | Primitive,
    global_scale: Meta | Primitive | None,
    shape: Shape,
    scheme: QuantScheme,
) -> None:
    expected, found = scheme.scales_shape(shape), tuple(scales.shape)
    if found != expected:
        raise ShapeError(
            f"the scales of {scheme} for a tensor of shape {shape} have shape {expected}, got "
            f"{found}"
        )
    if (global_scale is not None) is not scheme.level.is_global:
        has = "needs a" if scheme.level.is_global else "has no"
        raise ShapeError(f"{scheme} {has} global scale")
    if global_scale is not None and tuple(global_scale.shape) != (1,):
        raise ShapeError(f"a global scale has shape (1,), got {tuple(global_scale.shape)}")


def check_one_level(scheme: QuantScheme) -> None:
    if scheme.level.is_global:
        raise ShapeError(
            f"{scheme} has two levels",
            hint="Scales of one level are computed here; dequantize first, or use one level",
        )
