"""Schemes, and tensors in them, to make samples of quantized tensors of."""

from __future__ import annotations

from typing import Final

import numpy as np

import burn.testing.quantization_reference as of
from burn.dtype import Kind
from burn.quant_scheme import QuantLevel, QuantScheme, QuantStore, QuantValue, ScaleDType
from burn.testing.arrays import floats
from burn.testing.op_samples import Array

__all__ = [
    "BYTES",
    "INT8",
    "ROWS",
    "SCHEMES",
    "TWO_LEVELS",
    "UNTESTED",
    "WORDS",
    "X",
    "native_codes",
    "quantized",
    "scheme_of",
]

INT8: Final = QuantScheme(QuantValue.Q8S, QuantStore.NATIVE)
WORDS: Final = QuantStore.packed_u32()
BYTES: Final = QuantStore.packed_native()
ROWS: Final = QuantStore.packed_u32(-2)

UNTESTED: Final = Kind.BOOL
"""For ops without a dtype to choose: one that every device has."""


def scheme_of(
    value: QuantValue,
    *block: int,
    store: QuantStore = QuantStore.NATIVE,
    scale: ScaleDType = ScaleDType.F32,
    is_global: bool = False,
) -> QuantScheme:
    """A scheme by its parts, with a native store if none is given."""
    return QuantScheme(value, store, QuantLevel(block, is_global=is_global), scale)


SCHEMES: Final = {
    "int8": INT8,
    "int8 of the full range": scheme_of(QuantValue.Q8F),
    "int8 in words": scheme_of(QuantValue.Q8F, store=WORDS),
    "int4 in words": scheme_of(QuantValue.Q4F, 1, 8, store=WORDS, scale=ScaleDType.F16),
    "int4 in bytes": scheme_of(QuantValue.Q4S, 2, 4, store=BYTES, scale=ScaleDType.BF16),
    "int4 in words of rows": scheme_of(QuantValue.Q4F, 8, 1, store=ROWS),
    "int2": scheme_of(QuantValue.Q2S, -1, 1, scale=ScaleDType.UE8M0),
    "int2 in bytes": scheme_of(QuantValue.Q2F, store=BYTES, scale=ScaleDType.F16),
    "int2 in words": scheme_of(QuantValue.Q2S, 4, 8, store=WORDS, scale=ScaleDType.UE4M3),
    "E4M3": scheme_of(QuantValue.E4M3, -1, scale=ScaleDType.F32),
    "E4M3 in words": scheme_of(QuantValue.E4M3, 8, store=WORDS, scale=ScaleDType.UE8M0),
    "E5M2": scheme_of(QuantValue.E5M2, scale=ScaleDType.BF16),
    "E2M1": scheme_of(QuantValue.E2M1, 1, 4, scale=ScaleDType.UE4M3),
    "E2M1 in bytes": scheme_of(QuantValue.E2M1, 2, 2, store=BYTES, scale=ScaleDType.F16),
    "E2M1 in words of rows": scheme_of(QuantValue.E2M1, 4, store=ROWS, scale=ScaleDType.UE8M0),
}
"""Each value, store and dtype of scales, at one level."""

TWO_LEVELS: Final = {
    "two levels": scheme_of(QuantValue.Q8S, 1, 8, scale=ScaleDType.UE4M3, is_global=True),
    "two levels of floats": scheme_of(
        QuantValue.E2M1, 8, store=BYTES, scale=ScaleDType.F16, is_global=True
    ),
}

X: Final = floats(8, 16, low=-3.0, high=3.0)
"""Numbers that every scheme here divides."""


def quantized(scheme: QuantScheme, x: Array = X) -> of.Quantized:
    """A float32 tensor in a scheme."""
    return of.quantize(x.astype(np.float32), scheme)


def native_codes(scheme: QuantScheme, x: Array = X) -> Array:
    """The codes of a float32 tensor in a scheme, before they are packed."""
    return of.unpack(quantized(scheme, x).values, scheme)
