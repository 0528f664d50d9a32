"""Suite ``quantization``: schemes to the bit, and ops on quantized operands by their tags."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

import burn.testing.quantization_reference as of
from burn.dtype import bfloat16, float16, float32, float64
from burn.ops import Tag
from burn.quant_scheme import QuantLevel, QuantScheme, QuantStore, QuantValue, ScaleDType
from burn.quantized.calibration import quantize_dynamic
from burn.testing._check import Check, Failure
from burn.testing._quantized_ops import (
    check_quantized_operands,
    check_refused_operand,
    schemes_of,
    takes_floats,
)
from burn.testing.arrays import floats
from burn.testing.op_samples import Array, OpSamples
from burn.testing.subject import Subject
from burn.testing.suites.suite import Suite, named_check
from burn.testing.tolerance import compare

__all__ = ["SUITES"]

_STORES: Final = (
    QuantStore.NATIVE,
    QuantStore.packed_u32(),
    QuantStore.packed_native(),
    QuantStore.packed_u32(-2),
)

_LENGTHS: Final = (2, 4, 32)
"""Lengths of a tensor of the suite: two words of every value along the last axis."""

_LEVELS: Final = (
    QuantLevel.TENSOR,
    QuantLevel.per_block(8),
    QuantLevel.per_block(-1, 1),
    QuantLevel.per_block(2, 2, 16),
    QuantLevel.two_level(1, 16),
)
"""Levels for a packed last axis; of a packed axis before it, the last two lengths are exchanged."""

_TWO_LEVEL_SCALES: Final = (ScaleDType.F16, ScaleDType.UE4M3)

_SAMPLES_IN_QUICK_RUN: Final = 2


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    if subject.compiles:  # programs of single ops have a suite of their own
        return
    if not subject.supports(float32):
        return
    for number, value in enumerate(QuantValue):
        for number_of_store, store in enumerate(_STORES):
            if store.kind == "packed_native" and value.bits == 8:  # as native
                continue
            axis = "" if store.kind == "native" else f" along {store.axis}"
            yield named_check(
                subject,
                "quantization",
                "",
                None,
                f"{value.name}, {store.kind}{axis}",
                _check_schemes,
                value,
                store,
                is_quick=number_of_store == number % 2,
            )
    note = "products of views, of all lengths"
    yield named_check(subject, "quantization", "", None, note, _check_products_of_views)
    if schemes_of(subject):
        for samples in table:
            yield from _checks_of_op(subject, samples)


def _checks_of_op(subject: Subject, samples: OpSamples) -> Iterator[Check]:
    name = samples.op.name
    if Tag.CREATION in samples.op.tags or not samples.op.operands:
        return
    chosen = [sample for sample in samples.samples if subject.dtypes(samples, sample)]
    if not takes_floats(samples.op):
        for sample in chosen[:1]:
            note = "a quantized operand is refused"
            yield named_check(
                subject, "quantization", name, None, note, check_refused_operand, samples, sample
            )
        return
    chosen = [sample for sample in chosen if float32 in subject.dtypes(samples, sample)]
    for number, sample in enumerate(chosen):
        yield named_check(
            subject,
            "quantization",
            name,
            float32,
            sample.note,
            check_quantized_operands,
            samples,
            sample,
            is_quick=number < _SAMPLES_IN_QUICK_RUN,
        )


def _schemes(value: QuantValue, store: QuantStore) -> Iterator[QuantScheme]:
    """The schemes of a value and a store: each level with each dtype of scales that it may have."""
    for level, scale in itertools.product(_LEVELS, ScaleDType):
        if not level.is_global or scale in _TWO_LEVEL_SCALES:
            yield QuantScheme(value, store, _turned(level, store), scale)


def _turned(level: QuantLevel, store: QuantStore) -> QuantLevel:
    if store.axis == -1 or not level.block:
        return level
    *rest, row, last = level.block if len(level.block) > 1 else (1, *level.block)
    return QuantLevel((*rest, last, row), is_global=level.is_global)


def _numbers(store: QuantStore) -> Array:
    """Numbers of magnitudes from 2**-6 to 2**6, with a row of zeros."""
    x = floats(*_LENGTHS)
    x = x * np.exp2(floats(2, 4, 1, low=-6.0, high=6.0))
    x[1, 2] = 0.0
    return (x if store.axis == -1 else x.swapaxes(-1, -2)).astype(np.float32)


def _check_schemes(subject: Subject, value: QuantValue, store: QuantStore) -> None:
    """Compare codes, scales and numbers of every scheme of a value and a store to the bit."""
    numbers = _numbers(store)
    targets = [dtype for dtype in (float32, float16, bfloat16, float64) if subject.supports(dtype)]
    for number, scheme in enumerate(_schemes(value, store)):
        dtypes = (scheme.storage_dtype, scheme.native.storage_dtype, scheme.scale_dtype.storage)
        if not all(map(subject.supports, dtypes)):
            continue
        expected = of.quantize(numbers, scheme)
        table = subject.table
        with subject.quiet():
            found = quantize_dynamic(table, subject.upload(numbers), scheme)
            _expect(subject, scheme, "scales", found.scales, expected.scales)
            if expected.global_scale is not None:
                _expect(subject, scheme, "global scale", found.global_scale, expected.global_scale)
            _expect(subject, scheme, "codes", found.values, expected.values)
            dtype = targets[number % len(targets)]
            restored = found.dequantized(table, dtype)
            _expect(subject, scheme, str(dtype), restored, of.dequantize(expected, scheme, dtype))
            beyond = (numbers * np.float32(3.0)).astype(np.float32)
            clamped = table.quantize_values(
                subject.upload(beyond), found.scales, found.global_scale, scheme=scheme
            )
            codes = of.quantize_values(beyond, expected.scales, expected.global_scale, scheme)
            _expect(subject, scheme, "clamped codes", clamped, of.pack(codes, scheme))
            unpacked = table.unpack_values(clamped, scheme=scheme)
            _expect(subject, scheme, "unpacked codes", unpacked, codes)
            packed = table.pack_values(unpacked, scheme=scheme)
            _expect(subject, scheme, "packed codes", packed, of.pack(codes, scheme))


def _check_products_of_views(subject: Subject) -> None:
    """Multiply codes that were uploaded transposed: an axis of length 1 then has any stride."""
    schemes = [QuantScheme(value, QuantStore.NATIVE) for value in (QuantValue.Q8S, QuantValue.E4M3)]
    lengths = itertools.product(schemes, (1, 2, 17), (1, 16, 32), (1, 8, 24))
    for scheme, rows, inputs, outputs in lengths:
        if not subject.supports(scheme.storage_dtype):
            continue
        a = of.quantize(floats(rows, inputs).astype(np.float32), scheme)
        b = of.quantize(floats(inputs, outputs, phase=0.1).astype(np.float32), scheme)
        left, right = (of.dequantize(tensor, scheme, float64) for tensor in (a, b))
        terms = inputs + 1, np.abs(left) @ np.abs(right)
        a_values, a_scales = _transposed(subject, a.values), subject.upload(a.scales)
        b_scales = subject.upload(b.scales)
        x = subject.upload(left.astype(np.float32))
        for transposed in (False, True):
            values = b.values.T if transposed else b.values
            options = {"transposed": transposed}
            b_values = _transposed(subject, values)
            with subject.quiet():
                results = {
                    "quantized_product": subject.table.quantized_product(
                        *(a_values, a_scales, b_values, b_scales, None),
                        a_scheme=scheme,
                        b_scheme=scheme,
                        dtype=float32,
                        **options,
                    ),
                    "quantized_linear": subject.table.quantized_linear(
                        x, b_values, b_scales, None, None, scheme=scheme, **options
                    ),
                }
            for op, result in results.items():
                text = compare(subject.read(result), left @ right, float32, terms=terms).text
                if text:
                    shapes = f"{[rows, inputs]} and {list(values.shape)}"
                    raise Failure(f"{op} of {shapes} in {scheme}, {transposed=}: {text}")


def _transposed(subject: Subject, array: Array) -> Any:
    """A primitive of a matrix, as the transpose of another one."""
    return subject.table.permute(subject.upload(np.ascontiguousarray(array.T)), axes=(1, 0))


def _expect(
    subject: Subject, scheme: QuantScheme, what: str, primitive: object, expected: Array
) -> None:
    found = subject.read(primitive)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise Failure(
            f"{what} in {scheme} are {found.dtype}{list(found.shape)}, "
            f"not {expected.dtype}{list(expected.shape)}"
        )
    wrong = found != expected
    if expected.dtype.kind not in "iu":
        wrong &= ~(np.isnan(found) & np.isnan(expected))
        wrong |= np.signbit(found) != np.signbit(expected)
    if wrong.any():
        index = tuple(int(item[0]) for item in np.nonzero(wrong))
        raise Failure(
            f"{int(wrong.sum())} of {wrong.size} {what} in {scheme} differ, first at {index}: "
            f"got {found[index]!s}, expected {expected[index]!s}"
        )


SUITES: Final = [
    Suite("quantization", "every scheme to the bit, and ops on quantized operands", _checks),
]
