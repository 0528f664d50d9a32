"""QuantizedPrimitive: the codes and scales of a quantized tensor, as primitives of a backend."""

from __future__ import annotations

from typing import Any

from burn.aliases import Primitive, Shape
from burn.dtype import DType
from burn.quant_scheme import QDType, QuantScheme

__all__ = ["QuantizedPrimitive", "is_quantized", "of_parts"]


class QuantizedPrimitive:
    """What a quantized tensor is made of. No backend sees it: backends see its parts.

    Attributes
    ----------
    values : primitive
        The stored codes.
    scales : primitive
        The stored scales, of shape (1,), or one for each block.
    global_scale : primitive or None
        The scale of the tensor beside those of its blocks, float32 of shape (1,).
    dtype : QDType
        The dtype, which has the scheme.
    shape : tuple of int
        Shape of the tensor.
    """

    __slots__ = ("dtype", "global_scale", "scales", "shape", "values")

    def __init__(
        self,
        values: Primitive,
        scales: Primitive,
        global_scale: Primitive | None,
        scheme: QuantScheme,
    ) -> None:
        self.values = values
        self.scales = scales
        self.global_scale = global_scale
        self.dtype = QDType(scheme)
        self.shape: Shape = scheme.logical_shape(tuple(values.shape))

    @property
    def scheme(self) -> QuantScheme:
        """How it is stored."""
        return self.dtype.scheme

    @property
    def parts(self) -> list[Primitive]:
        """Codes, scales and, if there is one, the global scale."""
        parts = [self.values, self.scales]
        return parts if self.global_scale is None else [*parts, self.global_scale]

    def dequantized(self, ops: Any, dtype: DType) -> Primitive:
        """The numbers, by a table of ops on the parts."""
        return ops.dequantize_values(
            self.values, self.scales, self.global_scale, scheme=self.scheme, dtype=dtype
        )


def of_parts(parts: list[Primitive], scheme: QuantScheme) -> QuantizedPrimitive:
    """The tensor with these codes, scales and, in two levels, global scale."""
    values, scales, *rest = parts
    return QuantizedPrimitive(values, scales, rest[0] if rest else None, scheme)


def is_quantized(operand: Any) -> bool:
    """Whether an operand is quantized."""
    return operand.__class__ is QuantizedPrimitive
