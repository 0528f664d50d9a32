"""Quantized tensors by torch: the bits of the decompositions, and products of codes."""

import ctypes
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import burn
from burn.plugin_api import (
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    registry,
    resolve,
)
from burn_torch.launching import Launch

DEVICES = ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]
DTYPES = {
    torch.float16: burn.float16,
    torch.bfloat16: burn.bfloat16,
    torch.float32: burn.float32,
    torch.float64: burn.float64,
}
NATIVE = QuantStore.NATIVE
U32, BYTES = QuantStore.packed_u32, QuantStore.packed_native
STORES = [NATIVE, U32(), U32(-2), BYTES(), BYTES(-2)]
LEVELS = [
    QuantLevel.TENSOR,
    *(QuantLevel.per_block(*block) for block in [(1, 32), (1, -1), (-1, 1), (2, 2), (16,)]),
    QuantLevel.two_level(1, 32),
]
ROWS = QuantScheme(QuantValue.Q8S, NATIVE, QuantLevel.per_block(1, -1))
"""A scale for each row."""


@pytest.fixture(params=DEVICES)
def table(request):
    """The ops of a device, on which torch makes tensors meanwhile."""
    with torch.device(request.param):
        yield resolve(registry.entry("torch").load(), burn.Device(f"torch/{request.param}").id)


def schemes(count):
    """Some of all combinations."""
    found = [
        parts
        for parts in itertools.product(QuantValue, STORES, LEVELS, ScaleDType)
        if not parts[2].is_global or parts[3] in (ScaleDType.F16, ScaleDType.UE4M3)
    ]
    order = np.random.default_rng(0).permutation(len(found))
    return [QuantScheme(*found[number]) for number in order[:count]]


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def special(shape, dtype):
    """Numbers of very different magnitudes, zeros, blocks of zeros, ties and NaN."""
    x = normal(*shape, seed=1) * torch.exp(8 * normal(*shape, seed=2))
    x[..., 1, :] = 0.0
    x[..., 2, 0::3] = -0.0
    x[..., 3, :] = torch.arange(shape[-1]) / 2 - 16
    x[..., 4, 5] = torch.nan
    x[..., 5, 7] = -torch.inf
    return x.to(dtype)


def equal_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype is torch.uint32:  # torch does not compare them on every device
        found, expected = found.view(torch.int32), expected.view(torch.int32)
    if found.is_floating_point():
        assert torch.equal(found.isnan(), expected.isnan())
        found, expected = found.nan_to_num(nan=1.0), expected.nan_to_num(nan=1.0)
        assert torch.equal(found.signbit(), expected.signbit())
    assert torch.equal(found, expected)


def parameters(table, x, scheme):
    """Scales of a tensor, and a global one where the scheme has it."""
    if not scheme.level.is_global:
        return table.decomposed("quantize_dynamic", x, scheme=scheme)[1], None
    scales = normal(*scheme.scales_shape(tuple(x.shape)), seed=3).abs()
    return table.round_up_scales(scales, scheme=scheme), torch.tensor([0.7])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scheme", schemes(24), ids=str)
def test_codes_and_scales_have_the_bits_of_the_decomposition(table, scheme, dtype):
    x = special((16, 64), dtype)
    scales, factor = parameters(table, x, scheme)
    if factor is None:
        found = table.backend.quantize_dynamic(x, scheme=scheme)
        for item, other in zip(
            found, table.decomposed("quantize_dynamic", x, scheme=scheme), strict=True
        ):
            equal_bits(item, other)
    operands = (x.mT.contiguous().mT, scales, factor)
    values = table.decomposed("quantize_values", *operands, scheme=scheme)
    equal_bits(table.backend.quantize_values(*operands, scheme=scheme), values)
    codes = table.decomposed("unpack_values", values, scheme=scheme)
    equal_bits(table.backend.unpack_values(values, scheme=scheme), codes)
    equal_bits(table.backend.pack_values(codes, scheme=scheme), values)
    stored = (values, scales, factor)
    attributes = {"scheme": scheme, "dtype": DTYPES[dtype]}
    equal_bits(
        table.backend.dequantize_values(*stored, **attributes),
        table.decomposed("dequantize_values", *stored, **attributes),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("value", QuantValue)
@pytest.mark.parametrize("level", [QuantLevel.TENSOR, QuantLevel.per_block(1, -1)])
def test_long_rows_have_the_bits_of_the_decomposition(table, level, value, dtype):
    scheme = QuantScheme(value, NATIVE, level)
    bits = np.random.default_rng(1).integers(-(2**31), 2**31, (9, 4104), np.int32)
    for x in (torch.tensor(bits).view(torch.float32).to(dtype), special((9, 4104), dtype)):
        codes, scales = table.backend.quantize_dynamic(x, scheme=scheme)
        expected = table.decomposed("quantize_dynamic", x, scheme=scheme)
        equal_bits(scales, expected[1])
        equal_bits(codes, table.decomposed("quantize_values", x, scales, None, scheme=scheme))
        for factor in (0.125, 3.7, 1e-30, 0.0):
            given = (x, (scales * factor).nan_to_num(1.0), None)
            equal_bits(
                table.backend.quantize_values(*given, scheme=scheme),
                table.decomposed("quantize_values", *given, scheme=scheme),
            )


@pytest.mark.parametrize("value", [QuantValue.E4M3, QuantValue.E5M2])
def test_each_code_of_a_float8_is_the_number_that_torch_reads(table, value):
    codes = torch.arange(256, dtype=torch.uint8)
    scheme = QuantScheme(value, NATIVE)
    found = table.backend.dequantize_values(codes, torch.ones(1), scheme=scheme, dtype=burn.float32)
    theirs = {QuantValue.E4M3: torch.float8_e4m3fn, QuantValue.E5M2: torch.float8_e5m2}
    equal_bits(found, codes.view(theirs[value]).to(torch.float32))


def test_words_are_read_and_written_at_any_offset_and_stride(table):
    scheme = QuantScheme(QuantValue.Q4S)
    memory = torch.arange(1000, dtype=torch.int8) % 15 - 7
    for codes in (memory[3:67].view(2, 32), memory.as_strided((4, 16), (17, 1), 5), memory[:0]):
        words = table.backend.pack_values(codes, scheme=scheme)
        equal_bits(table.backend.unpack_values(words, scheme=scheme), codes)
        joined = torch.cat([words, words], -1)[..., : words.shape[-1]]
        equal_bits(table.backend.unpack_values(joined, scheme=scheme), codes)


def near(found, exact, magnitude, count, *, rounding=0.0):
    """Within the tolerance of sums of products, with one rounding to the dtype of the result.

    `rounding` is what else may be rounded of each product, relative to it.
    """
    of_result = torch.finfo(found.dtype)
    eps = of_result.eps if found.dtype is torch.float64 else torch.finfo(torch.float32).eps
    allowed = (4 * eps * count**0.5 + rounding) * magnitude
    allowed += of_result.eps / 2 * exact.abs() + of_result.tiny
    assert ((found.double() - exact).abs() <= allowed).all()


def of_weight(found):
    """The rounding of a weight that is restored in the dtype of the result, as on accelerators."""
    return 0.0 if found.is_cpu or found.dtype is torch.float64 else torch.finfo(found.dtype).eps / 2


def products(dtype):
    """Examples, and whether there is a bias."""
    for rows, has_bias in itertools.product([(), (1,), (3,), (2, 5)], [False, True]):
        yield normal(*rows, 64, dtype=dtype, seed=4), normal(32, seed=5).to(dtype) * has_bias


def schemes_and_parts():
    """In the gate each scheme with one size of parts."""
    for number, (scheme, part) in enumerate(itertools.product(schemes(40), [100, 1 << 20])):
        marks = pytest.mark.exhaustive if number % 4 in (1, 2) else ()
        yield pytest.param(scheme, part, id=f"{scheme}-{part}", marks=marks)


@pytest.mark.parametrize(("scheme", "part"), list(schemes_and_parts()))
def test_a_product_by_rows_is_that_of_the_restored_weight(
    table, monkeypatch, scheme, part, request
):
    everything = request.config.getoption("all")
    monkeypatch.setattr("burn_torch.quantized_products.PART", part)
    cases = itertools.product(DTYPES, [((32, 64), True), ((64, 32), False)])
    turn = sum(map(ord, str(scheme))) % 3  # of three cases the gate tries one
    for number, (dtype, (shape, is_transposed)) in enumerate(cases):
        if not everything and number % 3 != turn:
            continue
        weight = normal(*shape, seed=6)
        scales, factor = parameters(table, weight, scheme)
        values = table.quantize_values(weight, scales, factor, scheme=scheme)
        if number % 3:
            values = values.mT.contiguous().mT
        restored = table.dequantize_values(
            values, scales, factor, scheme=scheme, dtype=burn.float64
        )
        restored = restored.mT if is_transposed else restored
        for x, bias in products(dtype):
            found = table.backend.quantized_linear(
                x,
                *(values, scales, factor, bias if bias.any() else None),
                scheme=scheme,
                transposed=is_transposed,
            )
            assert found.dtype is dtype
            wide = x.double()
            exact, magnitude = wide @ restored + bias.double(), wide.abs() @ restored.abs() + 1
            near(found, exact, magnitude, 64, rounding=of_weight(found))


@pytest.mark.parametrize("kind", ScaleDType)
@pytest.mark.parametrize("inner", [32, 40, 96])
def test_bfloat16_is_rounded_once_whatever_the_scales_are(table, kind, inner):
    scheme = ROWS.with_scale_dtype(kind)
    values, scales = table.quantize_dynamic(normal(24, inner, seed=7), scheme=scheme)
    weight = table.dequantize_values(values, scales, None, scheme=scheme, dtype=burn.float64).mT
    x = normal(5, inner, dtype=torch.bfloat16, seed=8)
    found = table.backend.quantized_linear(x, values, scales, scheme=scheme, transposed=True)
    magnitude = x.double().abs() @ weight.abs()
    near(found, x.double() @ weight, magnitude, inner, rounding=of_weight(found))


def products_of_codes():
    """In the gate one of three."""
    values = (QuantValue.Q8F, QuantValue.Q4S, QuantValue.E4M3)
    cases = itertools.product(values, LEVELS[:-1], [True, False], DTYPES)
    for number, item in enumerate(cases):
        yield pytest.param(*item, marks=pytest.mark.exhaustive if number % 3 else ())


@pytest.mark.parametrize(("value", "level", "is_transposed", "dtype"), list(products_of_codes()))
def test_a_product_of_codes_is_that_of_the_restored_operands(
    table, value, level, is_transposed, dtype
):
    shape = (32, 64) if is_transposed else (64, 32)
    b_scheme = QuantScheme(value, U32(), level)
    b = table.quantize_dynamic(normal(*shape, seed=9), scheme=b_scheme)
    weight = table.dequantize_values(*b, None, scheme=b_scheme, dtype=burn.float64)
    weight = weight.mT if is_transposed else weight
    for block in [(), (-1,), (16,)]:
        a_scheme = QuantScheme(value, NATIVE, QuantLevel(block))
        for x, bias in products(dtype):
            a = table.quantize_dynamic(x, scheme=a_scheme)
            restored = table.dequantize_values(*a, None, scheme=a_scheme, dtype=burn.float64)
            found = table.backend.quantized_product(
                *(*a, *b, bias if bias.any() else None),
                a_scheme=a_scheme,
                b_scheme=b_scheme,
                dtype=DTYPES[dtype],
                transposed=is_transposed,
            )
            assert found.dtype is dtype
            # Tensor cores keep 14 bits of the largest one of 32 products of float8.
            rounding = 2.0**-11 if value.is_float and not found.is_cpu else 0.0
            exact, magnitude = restored @ weight + bias.double(), restored.abs() @ weight.abs() + 1
            near(found, exact, magnitude, 64, rounding=rounding)


@pytest.mark.parametrize("is_transposed", [True, False])
@pytest.mark.parametrize("lengths", [(1, 12, 1), (1, 1, 8), (3, 1, 1), (1, 64, 16), (5, 16, 1)])
def test_codes_of_one_row_or_column_have_any_strides(table, lengths, is_transposed):
    rows, inner, outer = lengths
    scheme = QuantScheme(QuantValue.Q8S, NATIVE)
    a = torch.arange(-3, rows * inner - 3, dtype=torch.int8)
    b = torch.arange(-5, inner * outer - 5, dtype=torch.int8)
    a, b = a.view(rows, inner), b.view(outer, inner) if is_transposed else b.view(inner, outer)
    if rows == 1:
        a = a.as_strided((1, inner), (1, 1))
    if is_transposed and outer == 1:
        b = b.as_strided((1, inner), (1, 1))
    elif outer == 1:
        b = b.as_strided((inner, 1), (1, 1))
    scale = torch.ones(1)
    attributes = {"a_scheme": scheme, "b_scheme": scheme, "dtype": burn.float32}
    found = table.backend.quantized_product(
        a, scale, b, scale, None, **attributes, transposed=is_transposed
    )
    wide = b.double().mT if is_transposed else b.double()
    assert torch.equal(found.double(), a.double() @ wide)


def test_sums_of_codes_that_int32_does_not_hold_are_computed_in_floats(table):
    length = 2**17
    ones = torch.full((1, length), -128, dtype=torch.int8)
    scheme = QuantScheme(QuantValue.Q8F, NATIVE)
    scale = torch.ones(1)
    found = table.backend.quantized_product(
        *(ones, scale, ones, scale),
        a_scheme=scheme,
        b_scheme=scheme,
        dtype=burn.float32,
        transposed=True,
    )
    assert found.item() == 2.0**31


def test_a_launch_passes_addresses_and_integers_as_a_kernel_reads_them(monkeypatch):
    calls = []

    def driver(function, *numbers_and_pointers):
        *numbers, stream, pointers, extra = numbers_and_pointers
        types = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
        parameters = [
            ctypes.cast(pointer, ctypes.POINTER(type_))[0]
            for pointer, type_ in zip(pointers, types, strict=True)
        ]
        calls.append((function, numbers, stream, parameters, extra))
        return len(calls) - 1

    kernel = SimpleNamespace(func=ctypes.c_void_p(7))
    monkeypatch.setattr("burn_torch.launching._driver_launch", lambda: driver)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 9 + index, False)
    launch = Launch(kernel, torch.device("cuda", 1), 256)
    x = torch.ones(3)
    launch(5, [x, x.new_empty(0), 2**31 - 1])
    parameters = [x.data_ptr(), None, 2**31 - 1]
    assert calls == [(kernel.func, [5, 1, 1, 256, 1, 1, 0], 10, parameters, None)]
    with pytest.raises(RuntimeError, match="CUDA error 1"):
        launch(5, [x, x, 1])
