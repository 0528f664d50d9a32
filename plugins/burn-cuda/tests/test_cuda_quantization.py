"""Codes, scales and products of quantized tensors by the kernels of the plugin.

They run on a GPU where there is one, and else by a host compiler (see emulation/).
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn.plugin_api import (
    DeviceId,
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
from burn.testing import Subject
from burn_cuda.backend import CudaBackend

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

PACKED, BYTES, NATIVE = QuantStore.packed_u32(), QuantStore.packed_native(), QuantStore.NATIVE
FLOATS = (float16, bfloat16, float32)


def _runtime():
    """Makes the runtime of a GPU; that of the emulation where there is none."""
    try:
        from burn_cuda.runtime import Runtime, device_count
    except ImportError:
        return emulated.Runtime
    return Runtime if device_count() else emulated.Runtime


MAKES = _runtime()
ON_GPU = MAKES is not emulated.Runtime
pytestmark = pytest.mark.skipif(
    not ON_GPU and emulated.COMPILER is None, reason="there is neither a GPU nor a C++ compiler"
)


@pytest.fixture(scope="module")
def subject():
    return Subject(CudaBackend(MAKES, lambda: 1), DeviceId(0, 0))


class Ops:
    """The ops of the device, and in `defaults` the names of those that were decomposed."""

    def __init__(self, table):
        self._table = table
        self._decomposed = table.decomposed
        self.defaults = []

    def __getattr__(self, name):
        return getattr(self._table, name)

    def decomposed(self, name, *operands, **attributes):
        """What the decomposition gives; it is not counted."""
        found = self._decomposed(name, *operands, **attributes)
        del self.defaults[:]
        return found

    def count(self, name, *operands, **attributes):
        self.defaults.append(name)
        return self._decomposed(name, *operands, **attributes)


@pytest.fixture
def ops(subject, monkeypatch):
    made = Ops(subject.table)
    monkeypatch.setattr(subject.table, "decomposed", made.count)
    return made


def put(ops, values, dtype=None):
    values = np.asarray(values)
    values = values.astype(dtype.numpy) if dtype else values
    return ops.backend.from_data(TensorData(values), DeviceId(0, 0))


def get(ops, x):
    return np.asarray(ops.backend.to_data(x).array)


def same(first, second):
    """Whether bits are equal, all NaN being one."""
    if first.dtype.kind in "iu":
        return np.array_equal(first, second)
    return np.array_equal(first.astype(np.float64), second.astype(np.float64), equal_nan=True)


def numbers(*shape, seed=0):
    drawn = np.random.default_rng(seed).normal(size=shape)
    return drawn * np.exp(np.random.default_rng(seed + 1).normal(size=(*shape[:-1], 1)))


SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-30, 65504.0, 3e38, -448.0, 464.0, 1e-3]

SCHEMES = [
    (QuantScheme(), (3, 32)),
    (QuantScheme(QuantValue.Q8S, NATIVE).per_block((1, -1), ScaleDType.F16), (3, 32)),
    (QuantScheme(QuantValue.Q4F, PACKED).per_block((1, 32), ScaleDType.BF16), (2, 96)),
    (QuantScheme(QuantValue.Q4S, BYTES).per_block((1, 8), ScaleDType.F16), (2, 3, 24)),
    (QuantScheme(QuantValue.Q4F, NATIVE).per_block((1, 5), ScaleDType.F32), (3, 25)),
    (QuantScheme(QuantValue.Q2S, PACKED).per_block((1, 64), ScaleDType.F32), (2, 128)),
    (QuantScheme(QuantValue.E4M3, PACKED).per_block((1, -1), ScaleDType.F32), (4, 64)),
    (QuantScheme(QuantValue.E4M3, NATIVE), (7,)),
    (QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, -1), ScaleDType.F32), (2, 4096)),
    (QuantScheme(QuantValue.Q8F, NATIVE), (4, 2048)),
]


@pytest.mark.parametrize(("scheme", "shape"), SCHEMES, ids=str)
@pytest.mark.parametrize("dtype", [float16, bfloat16, float32], ids=str)
def test_codes_and_scales_are_those_of_the_decomposition(ops, scheme, shape, dtype):
    values = numbers(*shape)
    values.reshape(-1)[:2] = 0.0, -0.0
    x = put(ops, values, dtype)
    codes, scales = ops.quantize_dynamic(x, scheme=scheme)
    again = ops.quantize_values(x, scales, None, scheme=scheme)
    restored = ops.dequantize_values(codes, scales, None, scheme=scheme, dtype=dtype)
    assert not ops.defaults
    wanted = ops.decomposed("quantize_values", x, scales, None, scheme=scheme)
    assert same(get(ops, codes), get(ops, wanted))
    assert same(get(ops, again), get(ops, wanted))
    wanted = ops.decomposed("dequantize_values", codes, scales, None, scheme=scheme, dtype=dtype)
    assert same(get(ops, restored), get(ops, wanted))
    _, wanted = ops.decomposed("quantize_dynamic", x, scheme=scheme)
    assert same(get(ops, scales), get(ops, wanted))


@pytest.mark.parametrize("value", [QuantValue.Q8F, QuantValue.Q4S, QuantValue.E4M3], ids=str)
@pytest.mark.parametrize("scale", [0.0, 1.0, 3e-39, np.inf, np.nan, 0.37], ids=str)
def test_special_numbers_have_the_codes_of_the_decomposition(ops, value, scale):
    scheme = QuantScheme(value, NATIVE)
    x, scales = put(ops, SPECIAL, float32), put(ops, [scale], float32)
    found = ops.quantize_values(x, scales, None, scheme=scheme)
    assert not ops.defaults
    wanted = ops.decomposed("quantize_values", x, scales, None, scheme=scheme)
    assert same(get(ops, found), get(ops, wanted))
    restored = ops.dequantize_values(found, scales, None, scheme=scheme, dtype=float32)
    wanted = ops.decomposed("dequantize_values", found, scales, None, scheme=scheme, dtype=float32)
    assert same(get(ops, restored), get(ops, wanted))


@pytest.mark.parametrize("scale_dtype", [ScaleDType.F32, ScaleDType.F16, ScaleDType.BF16], ids=str)
@pytest.mark.parametrize("special", [0.0, np.nan, np.inf, 1e-42, 3e38], ids=str)
def test_scales_of_special_numbers_are_those_of_the_decomposition(ops, scale_dtype, special):
    scheme = QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, 4), scale_dtype)
    x = put(ops, [[special, 0, 0, 0, 1, 2, 3, 4]], float32)
    codes, scales = ops.quantize_dynamic(x, scheme=scheme)
    assert not ops.defaults
    wanted = ops.decomposed("quantize_dynamic", x, scheme=scheme)
    assert same(get(ops, scales), get(ops, wanted[1]))
    assert same(get(ops, codes), get(ops, wanted[0]))


def test_all_codes_of_e4m3_have_the_numbers_of_the_decomposition(ops):
    scheme = QuantScheme(QuantValue.E4M3, NATIVE)
    codes, scales = put(ops, np.arange(256), DType.of("uint8")), put(ops, [0.3], float32)
    found = ops.dequantize_values(codes, scales, None, scheme=scheme, dtype=float64)
    assert not ops.defaults
    wanted = ops.decomposed("dequantize_values", codes, scales, None, scheme=scheme, dtype=float64)
    assert same(get(ops, found), get(ops, wanted))


WEIGHTS = [
    (QuantScheme(QuantValue.Q8F, NATIVE), 80),
    (QuantScheme(QuantValue.Q8S, PACKED).per_block((1, -1), ScaleDType.F16), 144),
    (QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, 32), ScaleDType.BF16), 128),
    (QuantScheme(QuantValue.Q8F, PACKED).per_block((1, 128), ScaleDType.F32), 640),
    (QuantScheme(QuantValue.Q4F, PACKED).per_block((1, 32), ScaleDType.F16), 384),
    (QuantScheme(QuantValue.Q4S, BYTES).per_block((1, 64), ScaleDType.F32), 128),
    (QuantScheme(QuantValue.Q4F, PACKED).per_block((1, 128), ScaleDType.BF16), 256),
    (QuantScheme(QuantValue.Q4F, PACKED).per_block((1, -1), ScaleDType.F32), 160),
    (QuantScheme(QuantValue.Q4F, NATIVE).per_block((1, 16), ScaleDType.F32), 64),
    (QuantScheme(QuantValue.Q2F, PACKED).per_block((1, 64), ScaleDType.F32), 256),
    (QuantScheme(QuantValue.Q2S, PACKED), 64),
    (QuantScheme(QuantValue.E4M3, NATIVE).per_block((1, -1), ScaleDType.F32), 64),
    (QuantScheme(QuantValue.E4M3, PACKED).per_block((1, 64), ScaleDType.F16), 192),
    (
        QuantScheme(QuantValue.Q4F, PACKED, QuantLevel.two_level(1, 32), ScaleDType.F16),
        128,
    ),
]


def quantized(ops, values, scheme):
    """Codes, scales, global scale, and the numbers that they stand for in float64."""
    x = put(ops, values, float32)
    one = scheme.with_level(QuantLevel(scheme.level.block))
    codes, scales = ops.quantize_dynamic(x, scheme=one)
    overall = None
    if scheme.level.is_global:
        overall = put(ops, [0.75], float32)
    restored = ops.decomposed(
        "dequantize_values", codes, scales, overall, scheme=scheme, dtype=float64
    )
    return codes, scales, overall, get(ops, restored)


def close(found, x, weight, dtype, bias=0.0):
    """Whether a product is right: sums in float32, and one rounding."""
    exact = x @ weight.T + bias
    sums = np.abs(x) @ np.abs(weight).T + np.abs(bias)
    eps = {float16: 2.0**-11, bfloat16: 2.0**-8, float32: 2.0**-24}[dtype]
    bound = 4 * 2.0**-24 * np.sqrt(x.shape[-1]) * sums + eps * np.abs(exact)
    return np.all(np.abs(found.astype(np.float64) - exact) <= bound + 1e-30)


@pytest.mark.parametrize(("scheme", "terms"), WEIGHTS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_product_of_few_rows_reads_the_codes(ops, scheme, terms, dtype):
    columns = 37
    codes, scales, overall, weight = quantized(ops, numbers(columns, terms, seed=3), scheme)
    for rows in ((1,), (3, 2), (8,), (12,), (32,)):
        x = put(ops, numbers(*rows, terms, seed=5), dtype)
        bias = put(ops, numbers(columns, seed=7), dtype) if rows != (1,) else None
        found = ops.quantized_linear(
            x, codes, scales, overall, bias, scheme=scheme, transposed=True
        )
        assert not ops.defaults
        assert found.shape == (*rows, columns)
        exact = get(ops, x).astype(np.float64).reshape(-1, terms)
        vector = 0.0 if bias is None else get(ops, bias).astype(np.float64)
        assert close(get(ops, found).reshape(-1, columns), exact, weight, dtype, vector)


def test_a_weight_of_inputs_by_outputs_is_read_where_its_transpose_is_stored(ops):
    scheme = QuantScheme(QuantValue.Q4F, PACKED).per_block((1, 32), ScaleDType.F16)
    codes, scales, _, weight = quantized(ops, numbers(20, 128), scheme)
    there = QuantScheme(QuantValue.Q4F, QuantStore.packed_u32(-2)).per_block(
        (32, 1), ScaleDType.F16
    )
    x = put(ops, numbers(2, 128), bfloat16)
    views = (codes.transpose(), scales.transpose())
    found = ops.quantized_linear(x, *views, None, None, scheme=there, transposed=False)
    assert not ops.defaults
    assert close(get(ops, found), get(ops, x).astype(np.float64), weight, bfloat16)
    restored = ops.dequantize_values(*views, None, scheme=there, dtype=float32)
    assert not ops.defaults
    assert same(get(ops, restored), weight.T.astype(np.float32))


def test_a_weight_whose_outputs_are_adjacent_is_restored_first(ops):
    scheme = QuantScheme(QuantValue.Q8F, PACKED)
    codes, scales, _, weight = quantized(ops, numbers(128, 20), scheme)
    x = put(ops, numbers(2, 128), float32)
    found = ops.quantized_linear(x, codes, scales, None, None, scheme=scheme, transposed=False)
    assert close(get(ops, found), get(ops, x).astype(np.float64), weight.T, float32)


def test_a_product_that_starts_early_reads_what_the_kernel_before_it_wrote(ops):
    scheme = QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, -1), ScaleDType.F32)
    side, count = (2048, 12) if ON_GPU else (64, 3)
    weights = [put(ops, numbers(side, side, seed=seed), bfloat16) for seed in range(count)]
    first = put(ops, numbers(1, side), bfloat16)

    def chain(pause=lambda: None):
        x, found = first, []
        for weight in weights:
            codes = ops.quantize_dynamic(weight, scheme=scheme)
            pause()
            x = ops.quantized_linear(x, *codes, None, None, scheme=scheme, transposed=True)
            pause()
            x = ops.divide(x, side**0.5)
            pause()
            found.append(x)
        return found

    runtime = ops.backend.runtime
    one_by_one = [get(ops, item) for item in chain(runtime.synchronize)]
    assert all(np.all(np.isfinite(item.astype(np.float32))) for item in one_by_one)
    launch, captured = runtime.capture(chain)
    for found in (chain(), captured, captured):
        launch()
        for item, two in zip(one_by_one, found, strict=True):
            assert same(item, get(ops, two))


@pytest.mark.skipif(not ON_GPU, reason="no GPU captures a program")
def test_a_compiled_program_with_products_on_several_lanes_gives_what_it_gives_eagerly():
    device = burn.Device("cuda")
    scheme = QuantScheme(QuantValue.Q4F).per_block((1, 32), ScaleDType.F16)
    drawn = [burn.asarray(numbers(1024, 1024, seed=seed), device=device) for seed in range(6)]
    weights = [item.astype(burn.bfloat16).quantize_dynamic(scheme) for item in drawn]
    x = burn.asarray(numbers(2, 1024), device=device).astype(burn.bfloat16)

    def branches(x):
        parts = [F.linear(x * (1 + i), weight, transposed=True) for i, weight in enumerate(weights)]
        joined = parts[0]
        for part in parts[1:]:
            joined = joined * 0.5 + part / 64.0
        return F.linear(joined / 16.0, weights[0], transposed=True)

    eager = branches(x).astype(burn.float32).numpy()
    program = burn.compile(branches)
    for _ in range(4):
        found = program(x).astype(burn.float32).numpy()
        assert np.allclose(found, eager, rtol=2e-2, atol=2e-2 * np.abs(eager).max())


def test_infinities_and_nan_reach_their_row_alone(ops):
    scheme = QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, -1), ScaleDType.F32)
    codes, scales, _, weight = quantized(ops, 1.0 + np.abs(numbers(16, 64)), scheme)
    for dtype in FLOATS:
        values = np.abs(numbers(3, 64))
        values[0, 5], values[1, 7] = np.inf, np.nan
        x = put(ops, values, dtype)
        found = ops.quantized_linear(x, codes, scales, None, None, scheme=scheme, transposed=True)
        found = get(ops, found).astype(np.float64)
        assert np.all(np.isposinf(found[0]))
        assert np.all(np.isnan(found[1]))
        assert close(found[2:], get(ops, x).astype(np.float64)[2:], weight, dtype)


PAIRS = [
    (QuantScheme(QuantValue.Q8F, NATIVE), QuantScheme(QuantValue.Q8F, PACKED)),
    (
        QuantScheme(QuantValue.Q8S, NATIVE).per_block((1, -1), ScaleDType.F32),
        QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, -1), ScaleDType.F16),
    ),
    (QuantScheme(QuantValue.E4M3, NATIVE), QuantScheme(QuantValue.E4M3, PACKED)),
    (
        QuantScheme(QuantValue.E4M3, NATIVE).per_block((1, -1), ScaleDType.F32),
        QuantScheme(QuantValue.E4M3, NATIVE),
    ),
    (
        QuantScheme(QuantValue.E4M3, NATIVE).per_block((1, -1), ScaleDType.BF16),
        QuantScheme(QuantValue.E4M3, NATIVE).per_block((1, -1), ScaleDType.F32),
    ),
]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_of_codes_run_on_tensor_cores(ops, first, second, dtype):
    columns, terms = 48, 64
    b_codes, b_scales, _, weight = quantized(ops, numbers(columns, terms, seed=3), second)
    for rows in ((2,), (2, 9), (32,)):
        codes, scales, _, x = quantized(ops, numbers(*rows, terms, seed=5), first)
        bias = put(ops, numbers(columns, seed=7), dtype) if rows == (32,) else None
        found = ops.quantized_product(
            *(codes, scales, b_codes, b_scales, bias),
            a_scheme=first,
            b_scheme=second,
            dtype=dtype,
            transposed=True,
        )
        assert not ops.defaults
        assert found.shape == (*rows, columns)
        vector = 0.0 if bias is None else get(ops, bias).astype(np.float64)
        x = x.reshape(-1, terms)
        if ON_GPU and first.value is QuantValue.E4M3:
            # Tensor cores of Hopper add products of E4M3 with 13 bits behind the point or more.
            bound = 2.0**-10 * (np.abs(x) @ np.abs(weight).T) + 2.0**-8 * np.abs(
                x @ weight.T + vector
            )
            error = np.abs(get(ops, found).reshape(-1, columns) - x @ weight.T - vector)
            assert np.all(error <= bound)
        else:
            assert close(get(ops, found).reshape(-1, columns), x, weight, dtype, vector)


def test_what_kernels_do_not_read_is_left_to_the_decomposition(ops):
    blocks = QuantScheme(QuantValue.Q8F, NATIVE).per_block((2, 2), ScaleDType.F32)
    powers = QuantScheme(QuantValue.Q8F, NATIVE).with_scale_dtype(ScaleDType.UE8M0)
    floats = QuantScheme(QuantValue.E5M2, NATIVE)
    x = put(ops, numbers(4, 8), float32)
    for scheme in (blocks, powers, floats):
        del ops.defaults[:]
        codes, scales = ops.quantize_dynamic(x, scheme=scheme)
        assert ops.defaults
        restored = ops.dequantize_values(codes, scales, None, scheme=scheme, dtype=float32)
        assert np.allclose(get(ops, restored), get(ops, x), rtol=0.3, atol=0.1)
