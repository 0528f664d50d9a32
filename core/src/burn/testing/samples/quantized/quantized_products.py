"""Samples of products with quantized tensors.

The numbers that codes stand for are exact in every float dtype, so that it does not matter whether
a kernel rounds a weight to the dtype before it multiplies: scales are powers of two, or the digits
of codes and scales together fit in a bfloat16.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import burn.testing.quantization_reference as of
from burn.dtype import DType, Kind, float32, float64
from burn.errors import DTypeError, ShapeError
from burn.quant_scheme import QuantScheme, QuantValue, ScaleDType
from burn.testing.arrays import expanded, floats, strided, transposed
from burn.testing.op_samples import (
    TESTED_DTYPE,
    Array,
    ErrorSample,
    Sample,
    error,
    reference,
    sample,
)
from burn.testing.samples.linalg.dense import linear_reference, linear_terms
from burn.testing.samples.quantized._quantized import BYTES, INT8, ROWS, WORDS, quantized, scheme_of

_POWERS: Final = ScaleDType.UE8M0

_SCHEMES: Final = {
    "int8": scheme_of(QuantValue.Q8S, -1, 1, scale=_POWERS),
    "int8 of the full range": scheme_of(QuantValue.Q8F, 1, 8, scale=_POWERS),
    "int8 in words": scheme_of(QuantValue.Q8S, 1, 8, store=WORDS, scale=_POWERS),
    "int4 in words": scheme_of(QuantValue.Q4F, 1, 8, store=WORDS, scale=ScaleDType.UE4M3),
    "int4 in bytes": scheme_of(QuantValue.Q4S, 1, -1, store=BYTES, scale=_POWERS),
    "int4 in words of rows": scheme_of(QuantValue.Q4F, 8, 1, store=ROWS, scale=ScaleDType.UE4M3),
    "int4 in squares": scheme_of(QuantValue.Q4S, 4, 4, scale=ScaleDType.UE4M3),
    "int2 in words": scheme_of(QuantValue.Q2S, 1, 16, store=WORDS, scale=_POWERS),
    "E4M3": scheme_of(QuantValue.E4M3, 1, 8, scale=ScaleDType.UE4M3),
    "E5M2": scheme_of(QuantValue.E5M2, -1, 8, scale=_POWERS),
    "E2M1 in bytes": scheme_of(QuantValue.E2M1, 1, 4, store=BYTES, scale=ScaleDType.UE4M3),
}
"""For weights of shape (8, 16) or (16, 16), by which the axes of a block and a word follow."""

_ONE_SCALE: Final = scheme_of(QuantValue.Q8F, store=WORDS)
_TWO_LEVELS: Final = scheme_of(QuantValue.Q4S, 1, 8, scale=ScaleDType.UE4M3, is_global=True)


def _powers(scales: Array) -> Array:
    """The powers of two beside positive scales; 0 stays 0."""
    return np.where(scales > 0, np.exp2(np.frexp(scales)[1].astype(np.float32)), scales)


def _weight(scheme: QuantScheme, *shape: int) -> tuple[Array, Array, Array | None]:
    values, scales, global_scale = quantized(scheme, floats(*shape, phase=0.1))
    if scheme.scale_dtype is ScaleDType.F32:
        scales = _powers(scales)
    if global_scale is not None:
        global_scale = np.array([0.125], np.float32)
    return values, scales, global_scale


def _linear_sample(
    note: str,
    scheme: QuantScheme,
    shape: tuple[int, ...] = (16, 16),
    *,
    x: Array | None = None,
    bias: Array | None = None,
    layout: Any = None,
    transposed: bool = False,
) -> Sample:
    values, scales, global_scale = _weight(scheme, *shape)
    if x is None:
        x = floats(3, shape[1] if transposed else shape[0])
    if layout is not None:
        values, scales = layout(values), layout(scales)
    return sample(
        note,
        x,
        values,
        scales,
        global_scale,
        bias,
        differentiable=scales.dtype == np.uint8 and global_scale is None,
        scheme=scheme,
        transposed=transposed,
    )


def _linear_error(
    note: str,
    x: Array,
    scheme: QuantScheme,
    shape: tuple[int, ...],
    bias: Array | None = None,
    **attributes: bool,
) -> ErrorSample:
    return error(note, ShapeError, x, *_weight(scheme, *shape), bias, scheme=scheme, **attributes)


def _restored(
    values: Array, scales: Array, global_scale: Array | None, scheme: QuantScheme
) -> Array:
    """The weight in float64. Operands may be widened."""
    stored = of.Quantized(
        values.astype(scheme.storage_dtype.numpy),
        scales.astype(scheme.scale_dtype.storage.numpy),
        global_scale,
    )
    return of.dequantize(stored, scheme, float64)


def _quantized_linear_terms(
    x: Array,
    values: Array,
    scales: Array,
    global_scale: Array | None,
    bias: Array | None,
    *,
    scheme: QuantScheme,
    transposed: bool = False,
) -> tuple[int, Array]:
    weight = _restored(values, scales, global_scale, scheme)
    return linear_terms(x, weight, bias, transposed=transposed)


@reference(
    "quantized_linear",
    samples=[
        _linear_sample("bias", _SCHEMES["int8"], (8, 16), bias=floats(16)),
        sample(
            "gradients of scales",
            np.array([[1.0, 2.0], [-1.0, 0.5]]),
            np.array([[3, -2, 1, 0], [5, 6, 7, -8]], np.int8),
            np.array([[0.5], [0.25]], np.float32),
            None,
            np.array([1.0, 2.0, 3.0, 4.0]),
            differentiable=False,
            gradients=(
                np.array([[1.0, 2.5], [1.0, 2.5]]),
                None,
                np.array([[0.0], [25.0]]),
                None,
                np.full(4, 2.0),
            ),
            scheme=scheme_of(QuantValue.Q8S, 1, 4),
        ),
        *[_linear_sample(note, scheme) for note, scheme in _SCHEMES.items()],
        *[
            _linear_sample(f"(out, in), {note}", scheme, transposed=True)
            for note, scheme in _SCHEMES.items()
        ],
        _linear_sample(
            "(out, in), bias", _SCHEMES["int4 in words"], (8, 16), bias=floats(8), transposed=True
        ),
        _linear_sample("one scale", _ONE_SCALE, transposed=True),
        _linear_sample("two levels", _TWO_LEVELS),
        _linear_sample("(out, in), two levels", _TWO_LEVELS, bias=floats(16), transposed=True),
        _linear_sample("vector", _SCHEMES["int8"], x=floats(16), bias=floats(16)),
        _linear_sample("(out, in), vector", _SCHEMES["int8"], x=floats(16), transposed=True),
        _linear_sample("one row", _SCHEMES["E4M3"], x=floats(1, 16), transposed=True),
        _linear_sample("batch", _SCHEMES["int4 in words"], x=floats(2, 3, 16), transposed=True),
        _linear_sample("eight rows", _SCHEMES["int8 in words"], x=floats(8, 16), transposed=True),
        _linear_sample("nine rows", _SCHEMES["int8 in words"], x=floats(9, 16), transposed=True),
        _linear_sample("many inputs", _SCHEMES["int4 in words"], (4, 200), transposed=True),
        _linear_sample("many rows of a weight", _SCHEMES["int4 in words of rows"], (56, 16)),
        _linear_sample("no examples", _SCHEMES["int8"], x=floats(0, 16), transposed=True),
        _linear_sample("no inputs", INT8, (4, 0), bias=floats(4), transposed=True),
        _linear_sample("no outputs", INT8, (0, 4), transposed=True),
        _linear_sample(
            "transposed codes",
            scheme_of(QuantValue.Q8S, 1, 8, scale=_POWERS),
            x=transposed(floats(3, 16)),
            layout=transposed,
        ),
        _linear_sample(
            "(out, in), layouts",
            _SCHEMES["int4 in words"],
            x=expanded(floats(16), 3, 16),
            bias=strided(floats(16)),
            layout=strided,
            transposed=True,
        ),
    ],
    errors=[
        _linear_error("weight of shape (out, in)", floats(2, 8), _SCHEMES["int8"], (16, 8)),
        _linear_error(
            "weight of shape (in, out) as transposed",
            floats(2, 8),
            _SCHEMES["int4 in words"],
            (8, 16),
            transposed=True,
        ),
        _linear_error("bias of another length", floats(2, 8), _SCHEMES["int8"], (8, 16), floats(8)),
        _linear_error("weight with one axis", floats(2, 8), INT8, (8,)),
        error(
            "codes of another dtype",
            DTypeError,
            floats(2, 8),
            np.zeros((8, 4), np.int8),
            np.ones(1, np.float32),
            None,
            None,
            scheme=_ONE_SCALE,
            lenient=True,
        ),
    ],
    terms=_quantized_linear_terms,
)
def _(
    x: Array,
    values: Array,
    scales: Array,
    global_scale: Array | None,
    bias: Array | None,
    *,
    scheme: QuantScheme,
    transposed: bool = False,
) -> Array:
    weight = _restored(values, scales, global_scale, scheme)
    result: Array = linear_reference(x, weight, bias, transposed=transposed)
    return result


_ROW: Final = scheme_of(QuantValue.Q8S, 1, -1, scale=_POWERS)
"""A scale for each row."""

_FLOAT_ROW: Final = scheme_of(QuantValue.E4M3, 1, -1, scale=_POWERS)


_FLOATS_OF_8_BITS: Final = {QuantValue.E4M3, QuantValue.E5M2}

_SHORT_SUM: Final = 2.0**-13
"""Error of a sum, as a fraction of its magnitudes, that tensor cores may add for 16-bit results."""


def _product_sample(
    note: str,
    a_scheme: QuantScheme,
    b_scheme: QuantScheme,
    a_shape: tuple[int, ...] = (3, 16),
    b_shape: tuple[int, ...] = (8, 16),
    *,
    bias: Array | None = None,
    layout: Any = None,
    transposed: bool = True,
) -> Sample:
    a_values, a_scales, _ = quantized(a_scheme, floats(*a_shape))
    b_values, b_scales, _ = _weight(b_scheme, *b_shape)
    if a_scheme.scale_dtype is ScaleDType.F32:
        a_scales = _powers(a_scales)
    if layout is not None:
        a_values, b_values = layout(a_values), layout(b_values)
    return sample(
        note,
        a_values,
        a_scales,
        b_values,
        b_scales,
        bias,
        kinds=Kind.FLOAT,
        differentiable=bias is not None and a_scales.dtype == b_scales.dtype == np.uint8,
        a_scheme=a_scheme,
        b_scheme=b_scheme,
        dtype=TESTED_DTYPE,
        transposed=transposed,
    )


def _product_terms(
    a_values: Array,
    a_scales: Array,
    b_values: Array,
    b_scales: Array,
    bias: Array | None,
    *,
    a_scheme: QuantScheme,
    b_scheme: QuantScheme,
    dtype: DType,
    transposed: bool = False,
) -> tuple[int, Array]:
    a = _restored(a_values, a_scales, None, a_scheme)
    b = _restored(b_values, b_scales, None, b_scheme)
    count, magnitude = linear_terms(a, b, bias, transposed=transposed)
    if dtype.itemsize == 2 and {a_scheme.value, b_scheme.value} <= _FLOATS_OF_8_BITS:
        # The tolerance of a sum is 4 eps sqrt(n) times its magnitudes, eps that of float32.
        magnitude = magnitude * (1.0 + _SHORT_SUM / (4.0 * 2.0**-23 * np.sqrt(count)))
    return count, magnitude


@reference(
    "quantized_product",
    samples=[
        _product_sample("int8, bias", _ROW, _ROW, bias=floats(8)),
        _product_sample("int8", _ROW, _ROW),
        _product_sample("one scale each", INT8, INT8),
        _product_sample("(in, out)", _ROW, INT8, b_shape=(16, 8), bias=floats(8), transposed=False),
        _product_sample("int8 and int4", _ROW, _SCHEMES["int4 in words"]),
        _product_sample("int4 in words", _SCHEMES["int4 in words"], _SCHEMES["int4 in words"]),
        _product_sample("E4M3", _FLOAT_ROW, _FLOAT_ROW),
        _product_sample("E4M3 and E5M2", _FLOAT_ROW, _SCHEMES["E5M2"]),
        _product_sample("E2M1 in blocks", _SCHEMES["E2M1 in bytes"], _SCHEMES["E2M1 in bytes"]),
        _product_sample("int8 and E4M3", _ROW, _FLOAT_ROW),
        _product_sample("int8 in blocks", _SCHEMES["int8 in words"], _SCHEMES["int8 in words"]),
        _product_sample("vector", scheme_of(QuantValue.Q8S, -1, scale=_POWERS), _ROW, (16,)),
        _product_sample("batch", _ROW, _ROW, (2, 3, 16)),
        _product_sample("many rows", _ROW, _ROW, (20, 32), (24, 32), bias=floats(24)),
        _product_sample("no examples", _ROW, _ROW, (0, 16)),
        _product_sample("no inputs", INT8, INT8, (3, 0), (8, 0)),
        _product_sample("layouts", _ROW, _ROW, layout=transposed),
        _product_sample("strided", _FLOAT_ROW, _FLOAT_ROW, layout=strided),
    ],
    errors=[
        error(
            "other inputs",
            ShapeError,
            np.zeros((2, 8), np.int8),
            np.ones(1, np.float32),
            np.zeros((4, 16), np.int8),
            np.ones(1, np.float32),
            None,
            a_scheme=INT8,
            b_scheme=INT8,
            dtype=float32,
            transposed=True,
        ),
        error(
            "two levels",
            ShapeError,
            np.zeros((2, 8), np.int8),
            np.ones((2, 1), np.uint8),
            np.zeros((4, 8), np.int8),
            np.ones(1, np.float32),
            None,
            a_scheme=scheme_of(QuantValue.Q8S, 1, 8, scale=ScaleDType.UE4M3, is_global=True),
            b_scheme=INT8,
            dtype=float32,
            transposed=True,
        ),
        error(
            "an integer dtype",
            DTypeError,
            np.zeros((2, 8), np.int8),
            np.ones(1, np.float32),
            np.zeros((4, 8), np.int8),
            np.ones(1, np.float32),
            None,
            a_scheme=INT8,
            b_scheme=INT8,
            dtype=DType.of("int32"),
            transposed=True,
            lenient=True,
        ),
    ],
    terms=_product_terms,
)
def _(
    a_values: Array,
    a_scales: Array,
    b_values: Array,
    b_scales: Array,
    bias: Array | None,
    *,
    a_scheme: QuantScheme,
    b_scheme: QuantScheme,
    dtype: DType,
    transposed: bool = False,
) -> Array:
    del dtype
    a = _restored(a_values, a_scales, None, a_scheme)
    b = _restored(b_values, b_scales, None, b_scheme)
    result: Array = linear_reference(a, b, bias, transposed=transposed)
    return result
