"""Schemes, shapes, layouts and numbers as drawn: codes, scales, numbers and products by the kit's
reference, on each device."""

import math

import numpy as np
import pytest

from burn import Device
from burn.dtype import DType, bfloat16, float16, float32, float64
from burn.quant_scheme import QuantLevel, QuantScheme, QuantStore, QuantValue, ScaleDType
from burn.quantized.calibration import quantize_dynamic
from burn.testing import Subject, quantization_reference as reference
from burn.testing.tolerance import compare
from gate import EXAMPLES

FLOATS = (float32, float16, bfloat16, float64)

ROUNDING = {float16: 2.0**-11, bfloat16: 2.0**-8}
"""Of a weight that is rounded to the dtype of the other operand, relative."""

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])

MAGNITUDES = np.array([1e-38, 1e-30, 1e-6, 1e30, 3e38])


def devices(*, is_example):
    for device in Device.enumerate():
        if (device.name in EXAMPLES) is is_example:
            marks = pytest.mark.exhaustive if is_example else ()
            yield pytest.param(Subject.of(device), id=device.name, marks=marks)


OF_BURN, OF_EXAMPLES = list(devices(is_example=False)), list(devices(is_example=True))

on_devices = pytest.mark.parametrize("subject", [*OF_BURN, *OF_EXAMPLES])


@pytest.fixture
def count(everything):
    """How many calls are drawn."""
    return 1000 if everything else 100


def drawn_scheme(rng, rank):
    """A scheme for a tensor of some axes."""
    axis = -int(rng.integers(1, min(rank, 2) + 1))
    store = QuantStore(str(rng.choice(["native", "packed_u32", "packed_native"])), axis)
    lengths = [int(rng.choice([1, 2, 4, 8, -1])) for _ in range(rng.integers(0, rank + 1))]
    scale = list(ScaleDType)[rng.integers(len(ScaleDType))]
    may_have_two = lengths and scale in (ScaleDType.F16, ScaleDType.UE4M3)
    level = QuantLevel(tuple(lengths), is_global=bool(may_have_two and rng.random() < 0.4))
    return QuantScheme(list(QuantValue)[rng.integers(len(QuantValue))], store, level, scale)


def fitting(scheme, shape):
    """A shape that blocks and words divide."""
    shape = list(shape)
    block = scheme.level.block
    for position, length in enumerate(block, len(shape) - len(block)):
        shape[position] *= max(length, 1)
    if scheme.per_word > 1:
        length = shape[scheme.store.axis]
        shape[scheme.store.axis] = math.lcm(length, scheme.per_word)
    return tuple(shape)


def drawn_numbers(rng, shape, dtype):
    """Ordinary numbers, ties between codes, special numbers, or extremes, of a float dtype."""
    x = rng.standard_normal(shape)
    kind = rng.integers(5)
    if kind == 1:
        x = x * np.exp2(rng.integers(-20, 15, shape))
    elif kind == 2:
        x = rng.integers(-130, 131, shape) / 2.0
    elif kind == 3:
        x = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), x)
    elif kind == 4:
        x = x * rng.choice(MAGNITUDES, shape)
    with np.errstate(all="ignore"):
        return laid_out(rng, np.asarray(x).astype(dtype.numpy))


def laid_out(rng, array):
    """The array, or the same elements with other strides."""
    kind = rng.integers(3)
    if kind == 1:
        return np.asfortranarray(array)
    if kind == 2:
        return np.flip(np.ascontiguousarray(np.flip(array)))
    return array


def drawn_dtype(rng, subject):
    found = [dtype for dtype in FLOATS if subject.supports(dtype)]
    return found[rng.integers(len(found))]


def is_stored(subject, scheme):
    stored = (scheme.storage_dtype, scheme.native.storage_dtype, scheme.scale_dtype.storage)
    return all(map(subject.supports, stored))


def assert_bits(found, expected, what):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    if expected.dtype.kind not in "iu":
        found, expected = found.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_array_equal(
            np.signbit(found[found == 0]), np.signbit(expected[found == 0])
        )
    np.testing.assert_array_equal(found, expected, what)


@on_devices
def test_tensors_are_quantized_and_restored_to_the_bit(subject, count):
    rng = np.random.default_rng(7)
    tried = 0
    while tried < count:
        shape = tuple(rng.integers(1, 5, rng.integers(1, 5)).tolist())
        scheme = drawn_scheme(rng, len(shape))
        shape = fitting(scheme, shape)
        if math.prod(shape) > 2000 or not is_stored(subject, scheme):
            continue
        tried += 1
        dtype, target = drawn_dtype(rng, subject), drawn_dtype(rng, subject)
        x = drawn_numbers(rng, shape, dtype)
        expected = reference.quantize(x, scheme)
        what = f"{scheme}, {dtype}{list(shape)} to {target}"
        with subject.quiet():
            found = quantize_dynamic(subject.table, subject.upload(x, x), scheme)
            numbers = found.dequantized(subject.table, target)
        assert_bits(subject.read(found.scales), expected.scales, what)
        if expected.global_scale is not None:
            assert_bits(subject.read(found.global_scale), expected.global_scale, what)
        assert_bits(subject.read(found.values), expected.values, what)
        assert_bits(subject.read(numbers), reference.dequantize(expected, scheme, target), what)


def assert_near(found, x, weight, bias, what):
    """A product is near that of float64 numbers; a 16-bit weight may have been rounded."""
    dtype = DType.of(x.dtype)
    x, added = x.astype(np.float64), 0.0 if bias is None else bias.astype(np.float64)
    expected = x @ weight + added
    magnitude = np.abs(x) @ np.abs(weight) + np.abs(added)
    count = x.shape[-1] + 1
    rounded = ROUNDING.get(dtype, 0.0) / (4.0 * 2.0**-23 * math.sqrt(count))
    text = compare(found, expected, dtype, terms=(count, magnitude * (1.0 + rounded))).text
    assert not text, f"{what}: {text}"


def product(subject, x, weight, bias, scheme, *, transposed):
    values, scales, global_scale = weight
    with subject.quiet():
        return subject.read(
            subject.table.quantized_linear(
                subject.upload(x, x),
                subject.upload(values, values),
                subject.upload(scales),
                None if global_scale is None else subject.upload(global_scale),
                None if bias is None else subject.upload(bias),
                scheme=scheme,
                transposed=transposed,
            )
        )


@on_devices
def test_products_with_quantized_weights_are_near_those_with_their_numbers(subject, count):
    rng = np.random.default_rng(8)
    tried = 0
    while tried < count:
        scheme = drawn_scheme(rng, 2)
        shape = fitting(scheme, rng.integers(1, 30, 2).tolist())
        if math.prod(shape) > 6000 or not is_stored(subject, scheme):
            continue
        tried += 1
        transposed = bool(rng.integers(2))
        outputs, inputs = shape if transposed else shape[::-1]
        rows = [(), (1,), (3,), (8,), (9,), (2, 20), (0,)][rng.integers(7)]
        dtype = drawn_dtype(rng, subject)
        x = laid_out(rng, rng.standard_normal((*rows, inputs)).astype(dtype.numpy))
        bias = rng.standard_normal(outputs).astype(dtype.numpy) if rng.integers(2) else None
        weight = reference.quantize(rng.standard_normal(shape).astype(np.float32), scheme)
        matrix = reference.dequantize(weight, scheme, float64)
        weight = weight._replace(values=laid_out(rng, weight.values))
        found = product(subject, x, weight, bias, scheme, transposed=transposed)
        what = f"{scheme}, {dtype}{list(x.shape)}, {transposed=}"
        assert_near(found, x, matrix.T if transposed else matrix, bias, what)


LARGE_SHAPES = [(512, 512), (304, 256), (1024, 128), (128, 2048), (64, 4096), (4096, 64)]

LARGE_BLOCKS = [(), (1, 32), (1, 128), (32,), (1, -1), (-1, 1), (32, 1), (16, 16), (1, 16)]

ROWS = [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 130]


@pytest.mark.exhaustive
@pytest.mark.parametrize("subject", OF_BURN)
def test_large_weights_are_quantized_and_multiplied(subject):
    rng = np.random.default_rng(9)
    for _ in range(60):
        lengths = LARGE_BLOCKS[rng.integers(len(LARGE_BLOCKS))]
        scheme = drawn_scheme(rng, 2).with_level(QuantLevel(lengths))
        shape = LARGE_SHAPES[rng.integers(len(LARGE_SHAPES))]
        scheme = scheme.fitting(shape)
        if not is_stored(subject, scheme) or any(
            length > 1 and whole % length
            for length, whole in zip(lengths, shape[-len(lengths) :], strict=False)
        ):
            continue
        dtype = drawn_dtype(rng, subject)
        x = rng.standard_normal(shape).astype(dtype.numpy)
        weight = reference.quantize(x, scheme)
        what = f"{scheme}, {dtype}{list(shape)}"
        with subject.quiet():
            found = quantize_dynamic(subject.table, subject.upload(x), scheme)
            numbers = found.dequantized(subject.table, dtype)
        assert_bits(subject.read(found.scales), weight.scales, what)
        assert_bits(subject.read(found.values), weight.values, what)
        assert_bits(subject.read(numbers), reference.dequantize(weight, scheme, dtype), what)
        matrix = reference.dequantize(weight, scheme, float64)
        for transposed in (True, False):
            outputs, inputs = shape if transposed else shape[::-1]
            rows = rng.standard_normal((ROWS[rng.integers(len(ROWS))], inputs)).astype(dtype.numpy)
            bias = rng.standard_normal(outputs).astype(dtype.numpy) if rng.integers(2) else None
            result = product(subject, rows, weight, bias, scheme, transposed=transposed)
            assert_near(
                result, rows, matrix.T if transposed else matrix, bias, f"{what}, {transposed=}"
            )
