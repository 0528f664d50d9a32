"""The reference of the kit for quantization, against ml_dtypes and results worked out by hand."""

import ml_dtypes
import numpy as np
import pytest

from burn.dtype import float32
from burn.quant_scheme import QuantLevel, QuantScheme, QuantStore, QuantValue, ScaleDType
from burn.testing import quantization_reference as reference

FORMATS = {
    QuantValue.E4M3: ml_dtypes.float8_e4m3fn,
    QuantValue.E5M2: ml_dtypes.float8_e5m2,
    QuantValue.E2M1: ml_dtypes.float4_e2m1fn,
}


def scheme_of(value, *block, store=QuantStore.NATIVE, scale=ScaleDType.F32):
    return QuantScheme(value, store, QuantLevel(block), scale)


@pytest.mark.parametrize("value", FORMATS)
def test_floats_of_few_bits_have_the_numbers_of_their_format(value):
    patterns = np.arange(2**value.bits, dtype=np.uint8)
    expected = patterns.view(FORMATS[value]).astype(np.float64)
    np.testing.assert_array_equal(reference.numbers_of(value, patterns), expected)


@pytest.mark.parametrize("value", FORMATS)
def test_floats_of_few_bits_are_rounded_to_the_nearest_and_ties_to_even(value):
    scheme = scheme_of(value)
    greatest = value.range[1]
    table = reference.numbers_of(value, np.arange(2**value.bits, dtype=np.uint8))
    table = np.unique(table[np.isfinite(table)])
    ties = ((table[1:] + table[:-1]) / 2).astype(np.float32)
    above, below = np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))
    x = np.concatenate([table.astype(np.float32), ties, above, below])
    codes = reference.quantize_values(x, np.ones(1, np.float32), None, scheme)
    expected = x.astype(FORMATS[value]).astype(np.float64)
    found = reference.numbers_of(value, codes)
    np.testing.assert_array_equal(found, expected)
    beyond = np.array([greatest * 1.5, np.inf, -np.inf, np.nan])
    codes = reference.quantize_values(beyond, np.ones(1, np.float32), None, scheme)
    numbers = reference.numbers_of(value, codes)
    np.testing.assert_array_equal(numbers, [greatest, greatest, -greatest, 0.0])


@pytest.mark.parametrize("dtype", [ScaleDType.F16, ScaleDType.BF16, ScaleDType.UE4M3])
def test_scales_are_rounded_up(dtype):
    exact = reference.scale_numbers(dtype)[1:200]
    between = np.nextafter(exact[:-1].astype(np.float32), np.float32(np.inf))
    for scales, expected in (exact, exact), (between, exact[1 : between.size + 1]):
        stored = reference.round_up(scales.astype(np.float32), dtype)
        assert stored.dtype == dtype.storage.numpy
        found = reference.scale_numbers_at(stored, dtype)
        np.testing.assert_array_equal(found, expected[: found.size])


def test_scales_of_powers_of_two_are_the_next_one():
    stored = reference.round_up(np.array([0.75, 1.0, 1.5, 2.0, 3.0], np.float32), ScaleDType.UE8M0)
    assert stored.tolist() == [127, 127, 128, 128, 129]


def test_the_first_code_is_in_the_lowest_bits_of_a_word():
    codes = np.array([1, 2, 3, -1], np.int8)
    scheme = scheme_of(QuantValue.Q8S, store=QuantStore.packed_u32())
    assert reference.pack(codes, scheme).tolist() == [0xFF030201]
    codes = np.array([1, -8, 7, 0, -1, 2, 3, 4], np.int8)
    scheme = scheme_of(QuantValue.Q4F, store=QuantStore.packed_u32())
    assert reference.pack(codes, scheme).tolist() == [0x432F0781]
    scheme = scheme_of(QuantValue.Q4F, store=QuantStore.packed_native())
    assert reference.pack(codes, scheme).tolist() == [0x81, 0x07, 0x2F, 0x43]


def test_codes_are_packed_along_an_axis():
    codes = np.arange(32, dtype=np.int8).reshape(4, 8) % 7
    scheme = scheme_of(QuantValue.Q8F, store=QuantStore.packed_u32(-2))
    words = reference.pack(codes, scheme)
    assert words.shape == (1, 8)
    assert words[0, 5] == sum(int(codes[row, 5]) << 8 * row for row in range(4))
    np.testing.assert_array_equal(reference.unpack(words, scheme), codes)


@pytest.mark.parametrize("value", QuantValue)
@pytest.mark.parametrize("axis", [-1, -2])
def test_what_is_packed_comes_back(value, axis):
    patterns = np.arange(2**value.bits)
    codes = patterns.astype(np.uint8) if value.is_float else patterns - 2 ** (value.bits - 1)
    codes = np.resize(codes.astype(np.uint8 if value.is_float else np.int8), (16, 32))
    for store in QuantStore.packed_u32(axis), QuantStore.packed_native(axis):
        scheme = scheme_of(value, store=store)
        words = reference.pack(codes, scheme)
        assert words.shape == scheme.values_shape(codes.shape)
        assert words.dtype == scheme.storage_dtype.numpy
        np.testing.assert_array_equal(reference.unpack(words, scheme), codes)


def test_a_tensor_with_one_scale():
    x = np.array([5.0, 0.0, 4.0, -12.7], np.float32)
    values, scales, rest = reference.quantize(x, scheme_of(QuantValue.Q8S))
    assert values.tolist() == [50, 0, 40, -127]
    assert scales.tolist() == [np.float32(0.1)]
    assert rest is None


def test_a_block_is_a_rectangle():
    x = np.array([[1.0, 2.0, 30.0, 40.0], [3.0, 4.0, 10.0, 20.0]], np.float32)
    values, scales, _ = reference.quantize(x, scheme_of(QuantValue.Q8S, 2, 2))
    np.testing.assert_array_equal(scales, np.array([[4 / 127, 40 / 127]], np.float32))
    assert values.tolist() == [[32, 64, 95, 127], [95, 127, 32, 64]]


def test_two_levels_share_a_global_scale():
    x = np.array([[1.0, 2.0], [3.0, 4.0], [30.0, 40.0]], np.float32)
    scheme = QuantScheme(
        QuantValue.Q8S, QuantStore.NATIVE, QuantLevel.two_level(1, 2), ScaleDType.UE4M3
    )
    quantized = reference.quantize(x, scheme)
    np.testing.assert_allclose(quantized.global_scale, 40 / 127 / 448, rtol=1e-6)
    assert reference.scale_numbers_at(quantized.scales, ScaleDType.UE4M3).max() == 448.0
    found = reference.dequantize(quantized, scheme, float32)
    np.testing.assert_allclose(found, x, rtol=0.02)


def test_zeros_have_codes_of_zero_and_finite_scales():
    x = np.zeros((2, 4), np.float32)
    for level in QuantLevel.per_block(4), QuantLevel.two_level(4):
        scheme = QuantScheme(QuantValue.Q4S, QuantStore.NATIVE, level, ScaleDType.UE4M3)
        quantized = reference.quantize(x, scheme)
        assert not quantized.values.any()
        assert not quantized.scales.any()
        if level.is_global:
            assert quantized.global_scale.item() == 2.0**-126
        assert not reference.dequantize(quantized, scheme, float32).any()
