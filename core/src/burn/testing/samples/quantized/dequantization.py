"""Samples of what codes stand for, and of codes in words.

Results are equal to the bit: each is rounded as `burn.testing.quantization_reference` says.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import burn.testing.quantization_reference as of
from burn.dtype import DType, Kind, int32
from burn.errors import DTypeError, ShapeError
from burn.quant_scheme import QuantScheme, QuantStore, QuantValue, ScaleDType
from burn.testing.arrays import (
    NEIGHBOURS,
    expanded,
    floats,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import TESTED_DTYPE, Array, Sample, error, reference, sample
from burn.testing.samples.quantized._quantized import (
    BYTES,
    INT8,
    ROWS,
    SCHEMES,
    TWO_LEVELS,
    UNTESTED,
    WORDS,
    X,
    native_codes,
    quantized,
    scheme_of,
)


def _restored(note: str, scheme: QuantScheme, layout: Any = None, x: Array = X) -> Sample:
    """A call of ``dequantize_values``; float32 is too coarse for differences of scales."""
    values, scales, global_scale = quantized(scheme, x)
    return sample(
        note,
        values if layout is None else layout(values),
        scales,
        global_scale,
        kinds=Kind.FLOAT,
        differentiable=False,
        scheme=scheme,
        dtype=TESTED_DTYPE,
    )


def _all_codes(value: QuantValue) -> Array:
    codes = np.arange(2**value.bits)
    return codes.astype(np.uint8) if value.is_float else (codes - codes.size // 2).astype(np.int8)


@reference(
    "dequantize_values",
    samples=[
        sample(
            "gradients of scales",
            np.array([[3, -2, 1, 0], [5, 6, 7, -8]], np.int8),
            np.array([[0.5], [0.25]], np.float32),
            None,
            kinds=Kind.FLOAT,
            differentiable=False,
            gradients=(None, np.array([[2.0], [10.0]]), None),
            scheme=scheme_of(QuantValue.Q8S, 1, 4),
            dtype=TESTED_DTYPE,
        ),
        sample(
            "gradients of scales and a global one",
            np.array([[3, -2, 1, 0], [5, 6, 7, -8]], np.int8),
            np.array([[56], [48]], np.uint8),
            np.array([3.0], np.float32),
            kinds=Kind.FLOAT,
            differentiable=False,
            gradients=(None, None, np.array([7.0])),
            scheme=scheme_of(QuantValue.Q8S, 1, 4, scale=ScaleDType.UE4M3, is_global=True),
            dtype=TESTED_DTYPE,
        ),
        *[_restored(note, scheme) for note, scheme in (SCHEMES | TWO_LEVELS).items()],
        *[
            sample(
                f"all codes of {value.name}",
                _all_codes(value),
                np.array([0.37], np.float32),
                None,
                kinds=Kind.FLOAT,
                differentiable=False,
                scheme=scheme_of(value),
                dtype=TESTED_DTYPE,
            )
            for value in QuantValue
        ],
        sample(
            "all scales of UE4M3",
            np.full((128, 1), 3, np.int8),
            np.arange(128, dtype=np.uint8).reshape(128, 1),
            None,
            kinds=Kind.FLOAT,
            differentiable=False,
            scheme=scheme_of(QuantValue.Q8S, 1, 1, scale=ScaleDType.UE4M3),
            dtype=TESTED_DTYPE,
        ),
        sample(
            "scales of powers of two",
            np.full((200, 1), 3, np.int8),
            np.arange(27, 227, dtype=np.uint8).reshape(200, 1),
            None,
            kinds=Kind.FLOAT,
            differentiable=False,
            scheme=scheme_of(QuantValue.Q8S, 1, 1, scale=ScaleDType.UE8M0),
            dtype=TESTED_DTYPE,
        ),
        sample(
            "special scales",
            np.array([[0, 1, -2]] * 3, np.int8),
            np.array([[np.nan], [np.inf], [0.0]], np.float32),
            None,
            kinds=Kind.FLOAT,
            differentiable=False,
            scheme=scheme_of(QuantValue.Q8S, 1, -1),
            dtype=TESTED_DTYPE,
        ),
        _restored("0-d", INT8, x=floats()),
        _restored("empty", SCHEMES["int8 in words"], x=floats(0, 8)),
        _restored("no blocks", scheme_of(QuantValue.Q4F, 2, 8, store=WORDS), x=floats(0, 8)),
        _restored("transposed", SCHEMES["int4 in words"], transposed),
        _restored("transposed rows", SCHEMES["E2M1 in words of rows"], transposed),
        _restored("strided", SCHEMES["E2M1 in bytes"], strided),
        _restored("reversed", SCHEMES["int8"], reversed_view),
    ],
    errors=[
        error(
            "codes of another dtype",
            DTypeError,
            np.zeros(4, np.int16),
            np.ones(1, np.float32),
            None,
            scheme=INT8,
            dtype=DType.of("float32"),
            lenient=True,
        ),
        error(
            "scales of another dtype",
            DTypeError,
            np.zeros(4, np.int8),
            np.ones(1, np.float16),
            None,
            scheme=INT8,
            dtype=DType.of("float32"),
            lenient=True,
        ),
        error(
            "an integer dtype",
            DTypeError,
            np.zeros(4, np.int8),
            np.ones(1, np.float32),
            None,
            scheme=INT8,
            dtype=int32,
            lenient=True,
        ),
        error(
            "scales of another shape",
            ShapeError,
            np.zeros((2, 4), np.int8),
            np.ones((1, 2), np.float32),
            None,
            scheme=scheme_of(QuantValue.Q8S, 1, 4),
            dtype=DType.of("float32"),
        ),
        error(
            "a global scale of another shape",
            ShapeError,
            np.zeros((2, 8), np.int8),
            np.ones((2, 1), np.uint8),
            np.ones(2, np.float32),
            scheme=TWO_LEVELS["two levels"],
            dtype=DType.of("float32"),
        ),
    ],
    exact=True,
    widens=False,
)
def _(
    values: Array,
    scales: Array,
    global_scale: Array | None,
    *,
    scheme: QuantScheme,
    dtype: DType,
) -> Array:
    return of.dequantize(of.Quantized(values, scales, global_scale), scheme, dtype)


def _packs(note: str, scheme: QuantScheme, layout: Any = None, x: Array = X) -> Sample:
    codes = native_codes(scheme, x)
    codes = codes if layout is None else layout(codes)
    return sample(note, codes, kinds=UNTESTED, scheme=scheme)


def _unpacks(note: str, scheme: QuantScheme, layout: Any = None, x: Array = X) -> Sample:
    values = quantized(scheme, x).values
    values = values if layout is None else layout(values)
    return sample(note, values, kinds=UNTESTED, scheme=scheme)


_PACKED: Final = {
    note: scheme for note, scheme in SCHEMES.items() if scheme.store is not QuantStore.NATIVE
}


@reference(
    "pack_values",
    samples=[
        *[_packs(note, scheme) for note, scheme in _PACKED.items()],
        _packs("not packed", INT8),
        _packs("int8 in bytes", scheme_of(QuantValue.Q8S, store=BYTES)),
        sample(
            "all codes of int4",
            np.resize(_all_codes(QuantValue.Q4F), 8 * 17),
            kinds=UNTESTED,
            scheme=scheme_of(QuantValue.Q4F, store=WORDS),
        ),
        _packs("empty", SCHEMES["int8 in words"], x=floats(0, 8)),
        _packs("nothing to pack", SCHEMES["int8 in words"], x=floats(8, 0)),
        _packs(
            "three axes",
            scheme_of(QuantValue.Q4F, store=QuantStore.packed_u32(-3)),
            x=floats(8, 2, 3),
        ),
        _packs("transposed", SCHEMES["int4 in words"], transposed),
        _packs("strided", SCHEMES["E2M1 in bytes"], strided),
        _packs("reversed", SCHEMES["int8 in words"], reversed_view),
        _packs("expanded", SCHEMES["int8 in words"], lambda codes: expanded(codes[0], 8, 16)),
    ],
    errors=[
        error(
            "codes of another dtype",
            DTypeError,
            np.zeros(8, np.uint8),
            scheme=SCHEMES["int8 in words"],
            lenient=True,
        ),
        error(
            "words that do not divide",
            ShapeError,
            np.zeros(7, np.int8),
            scheme=SCHEMES["int8 in words"],
        ),
        error(
            "a packed axis that is not there",
            ShapeError,
            np.zeros(8, np.int8),
            scheme=SCHEMES["int4 in words of rows"],
        ),
    ],
    exact=True,
    widens=False,
)
def _(codes: Array, *, scheme: QuantScheme) -> Array:
    return of.pack(codes, scheme)


@reference(
    "unpack_values",
    samples=[
        *[_unpacks(note, scheme) for note, scheme in _PACKED.items()],
        _unpacks("not packed", INT8),
        _unpacks("int8 in bytes", scheme_of(QuantValue.Q8S, store=BYTES)),
        sample(
            "all bits",
            (NEIGHBOURS[:, None] * np.arange(1, 9)).astype(np.uint32),
            kinds=UNTESTED,
            scheme=scheme_of(QuantValue.Q2S, store=WORDS),
        ),
        _unpacks("empty", SCHEMES["int8 in words"], x=floats(0, 8)),
        _unpacks("transposed", SCHEMES["int8 in words"], transposed),
        _unpacks("strided", SCHEMES["E2M1 in bytes"], strided),
        _unpacks("reversed", SCHEMES["int4 in words of rows"], reversed_view),
        _unpacks("expanded", SCHEMES["int8 in words"], lambda words: expanded(words[0], 8, 4)),
    ],
    errors=[
        error(
            "words of another dtype",
            DTypeError,
            np.zeros(8, np.int32),
            scheme=SCHEMES["int8 in words"],
            lenient=True,
        ),
        error(
            "a packed axis that is not there",
            ShapeError,
            np.zeros(8, np.uint32),
            scheme=scheme_of(QuantValue.Q4F, store=ROWS),
        ),
    ],
    exact=True,
    widens=False,
)
def _(values: Array, *, scheme: QuantScheme) -> Array:
    return of.unpack(values, scheme)
