"""A quantized tensor stored in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions import calls
from burn.functions.common import dispatch
from burn.functions.quantization import dequantize, quantize_dynamic
from burn.ops.quantized_primitive import QuantizedPrimitive
from burn.quant_scheme import QDType, QuantScheme

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["stored_as"]


def stored_as(x: Tensor, scheme: QuantScheme) -> Tensor:
    """A quantized tensor in another scheme: its codes, where blocks and numbers are the same."""
    own, shape, device = x.dtype.scheme, x.shape, x.device
    numbers = [(one.value, one.scale_dtype, bool(one.level.block)) for one in (own, scheme)]
    if numbers[0] != numbers[1] or own.blocks(shape) != scheme.blocks(shape):
        return quantize_dynamic(dequantize(x), scheme)
    values, scales, *rest = [
        dispatch.wrap(part, device.tensor_type(dtype))
        for part, dtype in zip(x.primitive.parts, own.part_dtypes, strict=True)
    ]
    codes = calls.unpack_values(values, scheme=own)
    packed = calls.pack_values(codes, scheme=scheme)
    primitive = QuantizedPrimitive(
        packed.primitive, scales.primitive, rest[0].primitive if rest else None, scheme
    )
    return dispatch.wrap(primitive, device.tensor_type(QDType(scheme)))
