"""Codes, scales and products of quantized tensors: the results of burn's decompositions."""

import itertools

import numpy as np
import pytest

from burn.plugin_api import (
    DeviceId,
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    bfloat16,
    float16,
    float32,
    float64,
    registry,
    resolve,
)
from burn_cpu import compiled, quantized_products
from burn_cpu.quantization import swapped

RANDOM = np.random.default_rng(5)

STORES = [
    QuantStore.NATIVE,
    QuantStore.packed_u32(),
    QuantStore.packed_native(),
    QuantStore.packed_u32(-2),
]
LEVELS = {
    "tensor": QuantLevel.TENSOR,
    "rows": QuantLevel.per_block(1, -1),
    "columns": QuantLevel.per_block(-1, 1),
    "blocks": QuantLevel.per_block(32),
    "rectangles": QuantLevel.per_block(2, 16),
    "two levels": QuantLevel.two_level(1, 16),
}
SCALES = [ScaleDType.F32, ScaleDType.F16, ScaleDType.BF16, ScaleDType.UE8M0, ScaleDType.UE4M3]


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("cpu").load(), DeviceId(0)).backend


@pytest.fixture(params=["compiled", "NumPy"])
def implementation(request, monkeypatch):
    compiled.kernels.cache_clear()
    monkeypatch.setenv("BURN_CPU_JIT", "1" if request.param == "compiled" else "0")
    assert (compiled.kernels("codes") is not None) == (request.param == "compiled")
    yield request.param
    compiled.kernels.cache_clear()


def schemes(level, stores=STORES, values=QuantValue):
    """The schemes of a level; each value with each store, and the dtypes of scales in turn."""
    allowed = [ScaleDType.F16, ScaleDType.UE4M3] if level.is_global else SCALES
    kinds = itertools.cycle(allowed)
    for value, store in itertools.product(values, stores):
        yield QuantScheme(value, store, level, next(kinds))


def with_specials(x):
    x.reshape(-1)[:7] = [0.0, -0.0, 1e-7, 0.5, np.nan, np.inf, -np.inf]
    return x


def quantized(backend, x, scheme):
    """Codes, scales and the global scale; of two levels the scales are drawn, some are 0."""
    if not scheme.level.is_global:
        _, scales = backend.ops.decomposed("quantize_dynamic", x, scheme=scheme)
        codes = backend.ops.decomposed("quantize_values", x, scales, None, scheme=scheme)
        return codes, scales, None
    shape, factor = scheme.scales_shape(x.shape), np.array([0.37], np.float32)
    scales = RANDOM.integers(0, 126, shape).astype(np.uint8)
    if scheme.scale_dtype is ScaleDType.F16:
        scales = (scales / 64).astype(np.float16)
    codes = backend.ops.decomposed("quantize_values", x, scales, factor, scheme=scheme)
    return codes, scales, factor


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.kind in "fV":
        assert np.array_equal(np.isnan(actual), np.isnan(expected))
        actual, expected = (np.where(np.isnan(item), 0, item) for item in (actual, expected))
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16], ids=str)
def test_codes_and_scales_are_those_of_the_decompositions(backend, implementation, level, dtype):
    with np.errstate(all="ignore"):
        for scheme in schemes(LEVELS[level]):
            x = RANDOM.normal(size=(64, 96)) * RANDOM.choice([1e-3, 1.0, 90.0], size=(64, 96))
            x = with_specials(x).astype(dtype.numpy)
            values, scales, factor = quantized(backend, x, scheme)
            codes = backend.ops.decomposed("unpack_values", values, scheme=scheme)
            assert_same_bits(backend.unpack_values(values, scheme=scheme), codes)
            assert_same_bits(backend.pack_values(codes, scheme=scheme), values)
            transposed = np.asfortranarray(x)
            assert_same_bits(
                backend.quantize_values(transposed, scales, factor, scheme=scheme), values
            )
            if factor is None:
                for actual, expected in zip(
                    backend.quantize_dynamic(transposed, scheme=scheme),
                    (values, scales),
                    strict=True,
                ):
                    assert_same_bits(actual, expected)
            options = {"scheme": scheme, "dtype": dtype}
            assert_same_bits(
                backend.dequantize_values(values[::-1][::-1], scales, factor, **options),
                backend.ops.decomposed("dequantize_values", values, scales, factor, **options),
            )


@pytest.mark.parametrize("level", LEVELS)
def test_large_tensors_in_parts(backend, implementation, level):
    x = RANDOM.normal(size=(608, 480)).astype(np.float32)
    for value in (QuantValue.Q8F, QuantValue.Q4S, QuantValue.E2M1):
        scheme = next(schemes(LEVELS[level], STORES[1:2], [value]))
        values, scales, factor = quantized(backend, x, scheme)
        for rows in (x, np.asfortranarray(x)):
            actual = backend.quantize_values(rows, scales, factor, scheme=scheme)
            assert_same_bits(actual, values)
        if factor is None:
            assert_same_bits(backend.quantize_dynamic(x, scheme=scheme)[1], scales)
        options = {"scheme": scheme, "dtype": float32}
        assert_same_bits(
            backend.dequantize_values(values, scales, factor, **options),
            backend.ops.decomposed("dequantize_values", values, scales, factor, **options),
        )


@pytest.mark.parametrize("shape", [(4, 6, 3, 4), (2, 4, 6, 1)], ids=str)
@pytest.mark.parametrize("block", [(1, -1, -1, -1), (1, 2, -1, -1), (2, -1, 3, -1), (-1, 1, 1, 1)])
def test_blocks_of_several_axes(backend, implementation, shape, block):
    x = with_specials(RANDOM.normal(size=shape).astype(np.float32))
    for value in (QuantValue.Q8S, QuantValue.E4M3):
        scheme = QuantScheme(value, QuantStore.NATIVE, QuantLevel.per_block(*block))
        with np.errstate(all="ignore"):
            values, scales, _ = quantized(backend, x, scheme)
            actual = backend.quantize_dynamic(x, scheme=scheme)
            assert_same_bits(actual[0], values)
            assert_same_bits(actual[1], scales)
            options = {"scheme": scheme, "dtype": float32}
            assert_same_bits(
                backend.dequantize_values(values, scales, None, **options),
                backend.ops.decomposed("dequantize_values", values, scales, None, **options),
            )


@pytest.mark.parametrize("value", [QuantValue.E4M3, QuantValue.E5M2, QuantValue.E2M1])
def test_all_codes_of_floats_are_restored(backend, implementation, value):
    codes = np.arange(16 if value is QuantValue.E2M1 else 256, dtype=np.uint8)
    scheme = QuantScheme(value, QuantStore.NATIVE)
    operands = codes, np.ones(1, np.float32), None
    options = {"scheme": scheme, "dtype": float32}
    assert_same_bits(
        backend.dequantize_values(*operands, **options),
        backend.ops.decomposed("dequantize_values", *operands, **options),
    )


@pytest.mark.parametrize("kind", [ScaleDType.UE8M0, ScaleDType.UE4M3])
def test_all_scales_of_8_bits_are_restored(backend, implementation, kind):
    scales = np.arange(256 if kind is ScaleDType.UE8M0 else 128, dtype=np.uint8)[:, None]
    scheme = QuantScheme(
        QuantValue.Q8S, QuantStore.NATIVE, QuantLevel.per_block(1, 64), scale_dtype=kind
    )
    codes = np.ones((len(scales), 64), np.int8)
    options = {"scheme": scheme, "dtype": float32}
    expected = backend.ops.decomposed("dequantize_values", codes, scales, None, **options)
    assert_same_bits(backend.dequantize_values(codes, scales, None, **options), expected)
    x = np.ones((1, 64), np.float32)
    with np.errstate(all="ignore"):
        for line, row in zip(scales[::9], expected[::9], strict=True):
            tile = np.tile(line[:, None], (4, 1))
            actual = backend.quantized_linear(
                x, codes[:4], tile, None, None, scheme=scheme, transposed=True
            )
            np.testing.assert_allclose(actual, np.full((1, 4), row.sum()), rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 64), (64, 0), (), (1,), (3, 5)])
def test_shapes_of_few_elements(backend, implementation, shape):
    scheme = QuantScheme(store=QuantStore.NATIVE)
    x = RANDOM.normal(size=shape).astype(np.float32)
    values, scales = backend.quantize_dynamic(x, scheme=scheme)
    expected = backend.ops.decomposed("quantize_dynamic", x, scheme=scheme)
    assert_same_bits(values, expected[0])
    assert_same_bits(scales, expected[1])
    restored = backend.dequantize_values(values, scales, None, scheme=scheme, dtype=float32)
    assert restored.shape == shape


def products(backend, x, quantity, bias, scheme):
    """The product by the weight and by its transposed one, also copied; and that in float64."""
    values, scales, factor = quantity
    other = swapped(scheme)
    turned = [scales.T if scales.ndim == 2 else scales, factor, bias]
    yield backend.quantized_linear(x, *quantity, bias, scheme=scheme, transposed=True)
    yield backend.quantized_linear(x, values.T, *turned, scheme=other)
    yield backend.quantized_linear(x, np.ascontiguousarray(values.T), *turned, scheme=other)


def check_product(backend, scheme, shape, rows, dtype=float32):
    weight = RANDOM.normal(size=shape).astype(np.float32)
    quantity = quantized(backend, weight, scheme)
    restored = backend.dequantize_values(*quantity, scheme=scheme, dtype=float64)
    x = RANDOM.normal(size=(*rows, shape[1])).astype(dtype.numpy)
    bias = RANDOM.normal(size=shape[:1]).astype(dtype.numpy)
    wide, expected = x.astype(np.float64), bias.astype(np.float64)
    expected = wide @ restored.T + expected
    size = np.abs(wide) @ np.abs(restored.T) + np.abs(expected)
    tolerance = {float32: 1e-6, float64: 1e-14, float16: 2e-3, bfloat16: 1e-2}[dtype]
    for actual in products(backend, x, quantity, bias, scheme):
        assert actual.dtype == dtype.numpy
        assert actual.shape == expected.shape
        assert (np.abs(actual.astype(np.float64) - expected) <= tolerance * size).all()


@pytest.mark.parametrize("level", LEVELS)
def test_products_are_those_of_restored_weights(backend, implementation, level, request):
    step = 1 if request.config.getoption("all") else 3  # each scheme on one of three levels
    for scheme in list(schemes(LEVELS[level]))[list(LEVELS).index(level) % step :: step]:
        check_product(backend, scheme, (80, 128), (1,))


@pytest.mark.parametrize("dtype", [float32, float64, float16, bfloat16], ids=str)
@pytest.mark.parametrize("rows", [(), (2, 2), (11,), (40,)], ids=str)
def test_products_of_some_rows(backend, implementation, rows, dtype):
    for value in (QuantValue.Q8S, QuantValue.Q4F):
        scheme = QuantScheme(value, level=LEVELS["blocks"], scale_dtype=ScaleDType.F16)
        check_product(backend, scheme, (70, 128), rows, dtype)


@pytest.mark.parametrize("level", LEVELS)
def test_products_with_parts_of_the_weight(backend, implementation, level, monkeypatch):
    monkeypatch.setattr(quantized_products, "_PANEL_ELEMENTS", 2048)
    for scheme in schemes(LEVELS[level], values=[QuantValue.Q8S, QuantValue.Q4F]):
        check_product(backend, scheme, (80, 128), (33,))


@pytest.mark.parametrize("shape", [(1, 64), (3, 64), (5, 192), (131, 40)], ids=str)
def test_products_of_odd_weights(backend, implementation, shape):
    for store in STORES[:3]:
        check_product(backend, QuantScheme(QuantValue.Q8F, store), shape, (1,))


def kernel_calls(monkeypatch):
    """The families of the compiled kernels that are used from now on."""
    calls = []

    def count(name):
        family = compiled.kernels(name)
        product = family.product

        def counted(*arguments, **options):
            calls.append(name)
            return product(*arguments, **options)

        monkeypatch.setattr(family, "product", counted)

    count("quantized")
    count("columns")
    return calls


@pytest.mark.parametrize(
    ("value", "block"),
    [(QuantValue.Q8S, 32), (QuantValue.Q4S, 32), (QuantValue.Q2S, 64), (QuantValue.E4M3, 128)],
)
def test_a_compiled_kernel_computes_few_rows(backend, monkeypatch, value, block):
    calls = kernel_calls(monkeypatch)
    scheme = QuantScheme(value, level=QuantLevel.per_block(block))
    check_product(backend, scheme, (70, 128), (1,))
    assert calls == ["quantized"] * 2  # the copied transpose has words in its columns
    check_product(backend, scheme, (70, 128), (33,))
    assert len(calls) == 2


@pytest.mark.parametrize("value", [QuantValue.Q8S, QuantValue.Q4S, QuantValue.Q2S, QuantValue.E4M3])
@pytest.mark.parametrize("level", [(), (1, -1), (-1, 1), (1, 64), (8, 64), (-1, 64)], ids=str)
def test_a_compiled_kernel_computes_with_codes_in_the_order_of_results(
    backend, monkeypatch, value, level
):
    calls = kernel_calls(monkeypatch)
    scheme = QuantScheme(value, level=QuantLevel.per_block(*level) if level else LEVELS["tensor"])
    quantity = quantized(backend, RANDOM.normal(size=(72, 192)).astype(np.float32), scheme)
    weight = backend.dequantize_values(*quantity, scheme=scheme, dtype=float64)
    for rows in (1, 2, 7):
        x = RANDOM.normal(size=(rows, 72)).astype(np.float32)
        actual = backend.quantized_linear(x, *quantity, None, scheme=scheme)
        size = np.abs(x) @ np.abs(weight)
        assert (np.abs(actual - x.astype(np.float64) @ weight) <= 1e-6 * size).all()
    assert calls == ["columns"] * 4  # of 4 rows at a time


@pytest.mark.parametrize("transposed", [False, True])
def test_threads_give_the_same_bits(backend, monkeypatch, transposed):
    scheme = QuantScheme(QuantValue.Q8F)
    shape = (301, 128) if transposed else (128, 3088)
    quantity = quantized(backend, RANDOM.normal(size=shape).astype(np.float32), scheme)
    x = RANDOM.normal(size=(3, 128)).astype(np.float32)

    def result():
        return backend.quantized_linear(x, *quantity, None, scheme=scheme, transposed=transposed)

    alone = result()
    monkeypatch.setattr(quantized_products, "_MIN_CODES_FOR_THREADS", 0)
    monkeypatch.setattr(quantized_products, "thread_count", lambda: 3)
    assert_same_bits(result(), alone)


def test_a_sum_of_a_block_may_overflow(backend, implementation):
    scheme = QuantScheme(QuantValue.Q8S, QuantStore.NATIVE)
    codes, scales = np.full((4, 64), 127, np.int8), np.array([2.0**-20], np.float32)
    x = np.full((1, 64), 1e37, np.float32)
    result = backend.quantized_linear(x, codes, scales, None, None, scheme=scheme, transposed=True)
    np.testing.assert_allclose(result, 64 * 127 * 1e37 * 2.0**-20, rtol=1e-6)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_is_that_of_the_decomposition(backend, implementation, number):
    scheme = QuantScheme(QuantValue.Q8S, level=LEVELS["blocks"])
    x, weight = (RANDOM.normal(size=(rows, 64)).astype(np.float32) for rows in (2, 6))
    weight[1, 3] = x[1, 2] = number
    with np.errstate(all="ignore"):
        operands = x, *quantized(backend, weight, scheme), None
        options = {"scheme": scheme, "transposed": True}
        expected = backend.ops.decomposed("quantized_linear", *operands, **options)
        actual = backend.quantized_linear(*operands, **options)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


INTEGERS = {
    "tensor": (QuantScheme(QuantValue.Q8S), QuantScheme(QuantValue.Q8F)),
    "rows": (
        QuantScheme(QuantValue.Q8S, level=LEVELS["rows"], scale_dtype=ScaleDType.BF16),
        QuantScheme(QuantValue.Q4F, level=LEVELS["rows"]),
    ),
    "blocks": (QuantScheme(QuantValue.Q8S), QuantScheme(QuantValue.Q8S, level=LEVELS["blocks"])),
    "floats": (QuantScheme(QuantValue.E4M3), QuantScheme(QuantValue.E4M3)),
}


@pytest.mark.parametrize("rows", [(), (1,), (2, 5), (3, 0)], ids=str)
@pytest.mark.parametrize("kind", INTEGERS)
def test_products_of_two_quantized_tensors(backend, implementation, kind, rows):
    a, b = (RANDOM.normal(size=(*item, 128)).astype(np.float32) for item in (rows, (40,)))
    first, second = INTEGERS[kind]
    first = first if rows else first.with_level(QuantLevel.TENSOR)
    values, scales, _ = quantized(backend, b, second)
    operands = [*quantized(backend, a, first)[:2], values, scales]
    bias = RANDOM.normal(size=40).astype(np.float32)
    options = {"a_scheme": first, "b_scheme": second, "transposed": True}
    exact = backend.ops.decomposed("quantized_product", *operands, None, dtype=float64, **options)
    for dtype, tolerance in ((float32, 1e-5), (float16, 1e-2), (float64, 1e-12)):
        own = bias.astype(dtype.numpy)
        actual = backend.quantized_product(*operands, own, dtype=dtype, **options)
        assert actual.dtype == dtype.numpy
        np.testing.assert_allclose(actual, exact + own, rtol=tolerance, atol=tolerance)
    turned = [*operands[:2], values.T, scales.T if scales.ndim == 2 else scales]
    options |= {"b_scheme": swapped(second), "transposed": False}
    actual = backend.quantized_product(*turned, None, dtype=float32, **options)
    np.testing.assert_allclose(actual, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shapes", [((5, 64), (7, 64)), ((9, 65_536), (4, 65_536))], ids=str)
def test_sums_of_integers_are_exact(backend, shapes):
    a, b = (np.full(shape, -128, np.int8) for shape in shapes)
    a[:, ::3] = 127
    scheme = QuantScheme(QuantValue.Q8F, QuantStore.NATIVE)
    operands = a, np.ones(1, np.float32), b, np.ones(1, np.float32), None
    options = {"a_scheme": scheme, "b_scheme": scheme, "dtype": float64, "transposed": True}
    product = backend.quantized_product(*operands, **options)
    np.testing.assert_array_equal(product, a.astype(np.int64) @ b.astype(np.int64).T)


def test_a_view_of_codes_of_8_bits_is_no_copy(backend):
    scheme = QuantScheme(QuantValue.Q8S)
    codes = RANDOM.integers(-127, 128, (3, 8)).astype(np.int8)
    words = backend.pack_values(codes, scheme=scheme)
    assert np.shares_memory(words, codes)
    assert np.shares_memory(backend.unpack_values(words, scheme=scheme), codes)
