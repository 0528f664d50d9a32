"""A quantized tensor stored in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions import calls
from burn.functions.quantization import dequantize, of_tensors, part_tensors, quantize_dynamic
from burn.quant_scheme import QuantScheme

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["stored_as"]


def stored_as(x: Tensor, scheme: QuantScheme) -> Tensor:
    """A quantized tensor in another scheme: its codes, where blocks and numbers are the same."""
    own, shape = x.dtype.scheme, x.shape
    numbers = [(item.value, item.scale_dtype, bool(item.level.block)) for item in (own, scheme)]
    if numbers[0] != numbers[1] or own.blocks(shape) != scheme.blocks(shape):
        return quantize_dynamic(dequantize(x), scheme)
    values, *scales = part_tensors(x)
    codes = calls.unpack_values(values, scheme=own)
    packed = calls.pack_values(codes, scheme=scheme)
    return of_tensors([packed, *scales], scheme, "pack_values")
