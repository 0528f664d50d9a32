"""Codes, scales and products of quantized tensors, by the kernels for CPUs and for GPUs."""

import contextlib

import numpy as np
import pytest

import burn
from burn.plugin_api import (
    DType,
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    TensorData,
    bfloat16,
    float16,
    float32,
    float64,
)
from burn.testing import quantization_reference as reference
from burn_opencl.icd_loader import found_devices
from burn_opencl.programs import text_of

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

PACKED, BYTES, NATIVE = QuantStore.packed_u32(), QuantStore.packed_native(), QuantStore.NATIVE
BLOCKS = QuantLevel.per_block(1, 32)
SCHEMES = {
    "int8": QuantScheme(store=NATIVE),
    "int8 blocks": QuantScheme(QuantValue.Q8S, NATIVE, BLOCKS, ScaleDType.F16),
    "int8 words": QuantScheme(QuantValue.Q8F, PACKED, QuantLevel.per_block(1, -1)),
    "int4": QuantScheme(QuantValue.Q4F, PACKED, BLOCKS, ScaleDType.BF16),
    "int4 bytes": QuantScheme(QuantValue.Q4S, BYTES, QuantLevel.two_level(1, 64), ScaleDType.F16),
    "int4 native": QuantScheme(QuantValue.Q4S, NATIVE, QuantLevel.per_block(3, 64)),
    "int2": QuantScheme(QuantValue.Q2S, PACKED, QuantLevel.per_block(1, 64), ScaleDType.UE8M0),
    "int2 bytes": QuantScheme(QuantValue.Q2F, BYTES),
    "E4M3": QuantScheme(QuantValue.E4M3, NATIVE, QuantLevel.per_block(1, -1)),
    "E4M3 words": QuantScheme(QuantValue.E4M3, PACKED, BLOCKS, ScaleDType.UE4M3),
    "E5M2": QuantScheme(QuantValue.E5M2, NATIVE, BLOCKS, ScaleDType.UE8M0),
    "E2M1": QuantScheme(QuantValue.E2M1, BYTES, QuantLevel.two_level(1, 16), ScaleDType.UE4M3),
    "E2M1 native": QuantScheme(QuantValue.E2M1, NATIVE, BLOCKS, ScaleDType.UE8M0),
}
DTYPES = (float32, float16, bfloat16, float64)
IN_GATE = {"int8", "int4", "E2M1"}
"""Schemes that the gate tries with the kernels for GPUs too."""

PAIRS = [
    pytest.param(
        name,
        kind,
        id=f"{name}-{kind}",
        marks=() if kind == "cpu" or name in IN_GATE else pytest.mark.exhaustive,
    )
    for name in SCHEMES
    for kind in ("cpu", "gpu")
]


class Ops:
    """The ops of a device on arrays; `defaults` are the names of those that were decomposed."""

    def __init__(self, device, patch):
        self.table, self.device = device.ops, device
        self.own = device.backend.for_device(device.id)
        self.launcher = self.own.launcher
        self.defaults = []
        decomposed = self.table.decomposed

        def count(name, *operands, **attributes):
            self.defaults.append(name)
            return decomposed(name, *operands, **attributes)

        patch.setattr(self.table, "decomposed", count)

    def upload(self, x):
        if x is None or hasattr(x, "memory"):
            return x
        return self.own.from_data(TensorData(np.asarray(x)), self.device.id)

    def __call__(self, name, *operands, **attributes):
        found = getattr(self.table, name)(*map(self.upload, operands), **attributes)
        if isinstance(found, tuple):
            return tuple(self.own.to_data(item).array for item in found)
        return self.own.to_data(found).array


@pytest.fixture
def ops_of(with_kernels, monkeypatch):
    """Makes the ops with the kernels for CPUs or for GPUs, those for large tensors by default."""
    with contextlib.ExitStack() as contexts:

        def make(kind, **settings):
            use = with_kernels(kind, **{"min_specialized_elements": 0, **settings})
            return Ops(contexts.enter_context(use), monkeypatch)

        yield make


@pytest.fixture
def numbers():
    return np.random.default_rng(7)


def spread(numbers, shape, dtype):
    """Numbers of several magnitudes, zeros and a subnormal one among them."""
    x = numbers.normal(size=shape) * np.exp(2 * numbers.normal(size=shape))
    x.reshape(-1)[:4] = (0.0, -0.0, 1e-40, -3e-6)
    return x.astype(dtype.numpy)


def equal_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind not in "iu":
        expected = np.where(np.isnan(expected), found.dtype.type(np.nan), expected)
        found = np.where(np.isnan(found), found.dtype.type(np.nan), found)
        bits = f"u{found.dtype.itemsize}"
        found, expected = found.view(bits), expected.view(bits)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_codes_scales_and_numbers_are_those_of_the_formulas(ops_of, numbers, name, kind, request):
    everything = request.config.getoption("all")
    scheme, ops = SCHEMES[name], ops_of(kind)
    turn = [*SCHEMES].index(name) % len(DTYPES)
    dtypes = DTYPES if everything else DTYPES[turn : turn + 1]
    for dtype in dtypes:
        x = spread(numbers, (6, 9, 192), dtype)
        expected = reference.quantize(x, scheme)
        scales = expected.scales
        if scheme.level.is_global:
            found = ops("quantize_values", x, scales, expected.global_scale, scheme=scheme)
            equal_bits(found, expected.values)
        else:
            found = ops("quantize_dynamic", x, scheme=scheme)
            equal_bits(found[1], scales)
            equal_bits(found[0], expected.values)
        restored = ops("dequantize_values", *expected, scheme=scheme, dtype=dtype)
        equal_bits(restored, reference.dequantize(expected, scheme, dtype))
        codes = reference.unpack(expected.values, scheme)
        equal_bits(ops("unpack_values", expected.values, scheme=scheme), codes)
        equal_bits(ops("pack_values", codes, scheme=scheme), expected.values)
    is_rectangular = scheme.level.block[:1] == (3,)
    assert ops.defaults == ["quantize_dynamic"] * len(dtypes) * is_rectangular


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("name", ["int8 blocks", "int4", "E4M3"])
def test_small_tensors_have_kernels_that_no_scheme_is_compiled_into(ops_of, numbers, name, kind):
    scheme = SCHEMES[name]
    ops = ops_of(kind, min_specialized_elements=1 << 20)
    x = spread(numbers, (5, 64), float32)
    expected = reference.quantize(x, scheme)
    found = ops("quantize_dynamic", x, scheme=scheme)
    equal_bits(found[0], expected.values)
    equal_bits(found[1], expected.scales)
    restored = ops("dequantize_values", *expected, scheme=scheme, dtype=float16)
    equal_bits(restored, reference.dequantize(expected, scheme, float16))
    assert not ops.defaults


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_numbers_that_are_not_finite(ops_of, kind):
    x = np.ones((4, 64), np.float32)
    x[0, 3], x[1, 40], x[2] = np.nan, np.inf, 0.0
    ops = ops_of(kind)
    for name in ("int8 blocks", "int4", "E2M1 native", "E4M3 words"):
        scheme = SCHEMES[name]
        expected = reference.quantize(x, scheme)
        values, scales = ops("quantize_dynamic", x, scheme=scheme)
        equal_bits(values, expected.values)
        equal_bits(scales, expected.scales)
        found = ops("dequantize_values", values, scales, None, scheme=scheme, dtype=float32)
        equal_bits(found, reference.dequantize(expected, scheme, float32))


def test_all_codes_and_all_scales_of_8_bits(ops_of):
    codes, ops = np.arange(256, dtype=np.uint8), ops_of("cpu")
    for value in (QuantValue.E4M3, QuantValue.E5M2):
        for scale in (ScaleDType.UE8M0, ScaleDType.UE4M3):
            scheme = QuantScheme(value, NATIVE, QuantLevel.per_block(1, 256), scale)
            scales = np.arange(255 if scale is ScaleDType.UE8M0 else 127, dtype=np.uint8)
            values = np.tile(codes, (scales.size, 1))
            quantized = reference.Quantized(values, scales[:, None])
            for dtype in (float32, float64):
                found = ops("dequantize_values", *quantized, scheme=scheme, dtype=dtype)
                equal_bits(found, reference.dequantize(quantized, scheme, dtype))


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_the_magnitude_of_many_numbers_is_found_in_steps(ops_of, numbers, kind):
    scheme, ops = SCHEMES["int8"], ops_of(kind)
    for size in (100_000, 8193):
        x = numbers.normal(size=size).astype(np.float32)
        expected = reference.quantize(x, scheme)
        values, scales = ops("quantize_dynamic", x, scheme=scheme)
        equal_bits(scales, expected.scales)
        equal_bits(values, expected.values)


def test_quotients_are_exact_on_devices_that_do_not_divide_so(ops_of, numbers, monkeypatch):
    scheme = QuantScheme(store=NATIVE)
    scale = np.array([0.7], np.float32)
    halves = ((np.arange(-100, 100) + 0.5) * 0.7).astype(np.float32)
    x = np.concatenate([np.nextafter(halves, np.float32(s)) for s in (-999, 999)] + [halves])
    expected = reference.quantize_values(x, scale, None, scheme)
    text = text_of("quantization.cl")
    inexact = text.replace("first = x / y", "first = x * (1.0f / y)")
    assert inexact != text
    ops = ops_of("cpu")
    monkeypatch.setattr(ops.launcher.runtime, "divides_exactly", False)
    equal_bits(ops("quantize_values", x, scale, None, scheme=scheme), expected)
    monkeypatch.setattr(ops.launcher.runtime, "has_fp64", False)
    monkeypatch.setattr(
        "burn_opencl.programs.text_of",
        lambda file: inexact if file == "quantization.cl" else text_of(file),
    )
    ops = ops_of("cpu")
    equal_bits(ops("quantize_values", x, scale, None, scheme=scheme), expected)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_views_of_quantized_tensors(ops_of, numbers, kind):
    ops = ops_of(kind)
    scheme = QuantScheme(QuantValue.Q4F, PACKED, BLOCKS, ScaleDType.F16)
    turned = QuantScheme(
        QuantValue.Q4F, QuantStore.packed_u32(-2), QuantLevel.per_block(32, 1), ScaleDType.F16
    )
    x = numbers.normal(size=(30, 128)).astype(np.float32)
    quantized = reference.quantize(x, scheme)
    expected = reference.dequantize(quantized, scheme, float32)
    values, scales = ops.upload(quantized.values), ops.upload(quantized.scales)
    found = ops(
        "dequantize_values",
        *(values.permuted((1, 0)), scales.permuted((1, 0)), None),
        scheme=turned,
        dtype=float32,
    )
    equal_bits(found, expected.T)
    rows = ((28, 14, -2),)
    found = ops(
        "dequantize_values",
        *(values.sliced((*rows, (4, 12, 1))), scales.sliced((*rows, (1, 3, 1))), None),
        scheme=scheme,
        dtype=float32,
    )
    equal_bits(found, expected[28:0:-2, 32:])
    found = ops("quantize_dynamic", x.T.copy(), scheme=turned)
    equal_bits(found[0], quantized.values.T)
    equal_bits(found[1], quantized.scales.T)
    equal_bits(
        ops("unpack_values", values.permuted((1, 0)), scheme=turned),
        reference.unpack(quantized.values, scheme).T,
    )
    assert not ops.defaults


# Products


def bound_of(x, weight, product, dtype):
    """What sums in float32 may be away from a product, and one rounding."""
    terms = np.abs(x).astype(np.float64) @ np.abs(weight).T
    rounding = {float32: 2.0**-24, float16: 2.0**-11, bfloat16: 2.0**-8}[dtype]
    return 4 * 2.0**-24 * np.sqrt(x.shape[-1]) * terms + rounding * np.abs(product) + 1e-30


def check_product(ops, numbers, scheme, dtype, x_shape, outputs, *, bias=True, native=True):
    inner = x_shape[-1]
    made = reference.quantize(numbers.normal(size=(outputs, inner)).astype(np.float32), scheme)
    weight = reference.dequantize(made, scheme, float64)
    x = numbers.normal(size=x_shape).astype(dtype.numpy)
    added = numbers.normal(size=outputs).astype(dtype.numpy) if bias else None
    found = ops("quantized_linear", x, *made, added, scheme=scheme, transposed=True)
    product = x.astype(np.float64) @ weight.T + (added.astype(np.float64) if bias else 0.0)
    assert found.dtype == dtype.numpy
    assert found.shape == (*x_shape[:-1], outputs)
    assert np.all(np.abs(found.astype(np.float64) - product) <= bound_of(x, weight, product, dtype))
    assert bool(ops.defaults) is not native
    return found


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_products_of_few_rows_read_the_codes(ops_of, numbers, name, kind):
    ops = ops_of(kind)
    for dtype, rows in ((float32, 1), (bfloat16, 3), (float16, 8)):
        check_product(ops, numbers, SCHEMES[name], dtype, (rows, 448), 39, bias=rows != 1)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_rows_of_all_numbers_and_ranks(ops_of, numbers, kind):
    ops = ops_of(kind)
    scheme = SCHEMES["int4"]
    for shape in [(448,), (2, 3, 448), (2, 448), (7, 448), (13, 448)]:
        check_product(ops, numbers, scheme, float32, shape, 41)


def test_rows_that_no_vector_divides(ops_of, numbers):
    ops = ops_of("cpu")
    for name, inner in (("int8", 1003), ("int8 words", 1004), ("int2 bytes", 1004)):
        check_product(ops, numbers, SCHEMES[name], float32, (2, inner), 39)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_products_that_are_left_to_the_default(ops_of, numbers, kind):
    for scheme, shape in (
        (QuantScheme(QuantValue.Q8F, NATIVE, QuantLevel.per_block(1, 6)), (4, 600)),
        (SCHEMES["int8"], (200, 448)),
    ):
        check_product(ops_of(kind), numbers, scheme, float32, shape, 39, native=False)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_turned_weight_whose_rows_are_contiguous(ops_of, numbers, kind):
    ops = ops_of(kind)
    scheme = SCHEMES["int4"]
    made = reference.quantize(numbers.normal(size=(39, 448)).astype(np.float32), scheme)
    turned = scheme.with_store(QuantStore.packed_u32(-2)).with_level(QuantLevel.per_block(32, 1))
    values, scales = (ops.upload(item).permuted((1, 0)) for item in made[:2])
    x = numbers.normal(size=(3, 448)).astype(np.float32)
    found = ops("quantized_linear", x, values, scales, None, None, scheme=turned)
    expected = ops("quantized_linear", x, *made, None, scheme=scheme, transposed=True)
    equal_bits(found, expected)
    part = ops.upload(made.values).sliced(((4, 30, 1), (0, 56, 1)))
    own_scales = ops.upload(made.scales).sliced(((4, 30, 1), (0, 14, 1)))
    found = ops("quantized_linear", x, part, own_scales, None, None, scheme=scheme, transposed=True)
    equal_bits(found, expected[:, 4:34])
    assert not ops.defaults


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize(
    "scheme",
    [
        QuantScheme(),
        QuantScheme(QuantValue.Q4F, PACKED, BLOCKS, ScaleDType.F16),
        QuantScheme(QuantValue.E4M3, NATIVE, QuantLevel.per_block(-1, 16), ScaleDType.F16),
        QuantScheme(QuantValue.Q2S, BYTES, QuantLevel.per_block(32, -1)),
        QuantScheme(QuantValue.Q8F, NATIVE, QuantLevel.per_block(32, 1)),
    ],
    ids=str,
)
def test_a_weight_whose_columns_are_contiguous(ops_of, numbers, scheme, kind):
    ops = ops_of(kind)
    made = reference.quantize(numbers.normal(size=(96, 544)).astype(np.float32), scheme)
    weight = reference.dequantize(made, scheme, float64)
    for rows in (1, 7):
        x, bias = numbers.normal(size=(rows, 96)), numbers.normal(size=544)
        x, bias = x.astype(np.float32), bias.astype(np.float32)
        found = ops("quantized_linear", x, *made, bias, scheme=scheme)
        product = x.astype(np.float64) @ weight + bias
        assert np.all(np.abs(found - product) <= bound_of(x, weight.T, product, float32))
    has_kernel = kind == "cpu" and scheme.level.block != (32, 1)
    assert bool(ops.defaults) is not has_kernel


def test_products_of_two_quantized_tensors(ops_of, numbers):
    ops = ops_of("cpu")
    scheme = SCHEMES["int8 blocks"]
    a, b = (
        reference.quantize(numbers.normal(size=shape).astype(np.float32), scheme)
        for shape in ((5, 448), (39, 448))
    )
    left, right = (reference.dequantize(tensor, scheme, float64) for tensor in (a, b))
    bias = numbers.normal(size=39)
    for dtype in (float32, bfloat16, float64):
        added = bias.astype(dtype.numpy)
        operands = (*a[:2], *b[:2], added)
        attributes = {"a_scheme": scheme, "b_scheme": scheme, "dtype": dtype, "transposed": True}
        found = ops("quantized_product", *operands, **attributes)
        assert found.dtype == dtype.numpy
        product = left @ right.T + added.astype(np.float64)
        bound = bound_of(left, right, product, float32 if dtype is float64 else dtype)
        assert np.all(np.abs(found.astype(np.float64) - product) <= bound)


def test_errors_are_those_of_the_op(ops_of, numbers):
    ops = ops_of("cpu")
    made = reference.quantize(np.ones((8, 32), np.float32), SCHEMES["int8"])
    x = np.ones((2, 31), np.float32)
    with pytest.raises(burn.ShapeError, match="must have length 32"):
        ops("quantized_linear", x, *made, None, scheme=SCHEMES["int8"], transposed=True)
    with pytest.raises(burn.ShapeError, match="no global scale"):
        ops(
            "dequantize_values",
            *made[:2],
            made[1],
            scheme=SCHEMES["int8"],
            dtype=DType.of("float32"),
        )
