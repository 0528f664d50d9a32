"""Lengths at which kernels distribute elements differently; emulated, and on a GPU."""

import sys
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.plugin_api import DeviceId, DType, TensorData
from burn.testing import Subject
from burn_cuda.backend import CudaBackend
from crossing import crossed

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

GPUS = burn.Device.enumerate("cuda")
RNG = np.random.default_rng(7)
FLOATS = {"float32": 1e-5, "float64": 1e-11, "float16": 3e-3, "bfloat16": 2e-2}
"""Relative tolerance of each dtype."""

MAX_EMULATED_MULTIPLICATIONS = 120_000
"""Multiplications of one head of attention that the emulation can compute in reasonable time."""

ROWS = (1, 31, 33, 129, 1025, 8193, 40_000)


class Ops:
    """The ops of a device, on NumPy arrays."""

    def __init__(self, subject):
        self.subject = subject

    def put(self, array):
        return self.subject.backend.from_data(TensorData(array), self.subject.device)

    def get(self, primitive):
        return self.subject.backend.to_data(primitive).array

    def skip_if_emulated(self, work):
        if work > MAX_EMULATED_MULTIPLICATIONS and isinstance(
            self.subject.backend.runtime, emulated.Runtime
        ):
            pytest.skip("it takes half a minute without a GPU")

    def __call__(self, name, *arrays, **attributes):
        operands = [self.put(array) if isinstance(array, np.ndarray) else array for array in arrays]
        results = getattr(self.subject.table, name)(*operands, **attributes)
        if isinstance(results, tuple):
            return tuple([self.get(result) for result in results])
        return self.get(results)


@pytest.fixture(scope="module", params=["emulated", "gpu"])
def ops(request):
    if request.param == "gpu":
        if not GPUS:
            pytest.skip("there is no NVIDIA GPU, or no CuPy for it")
        return Ops(Subject.of(GPUS[0]))
    if emulated.COMPILER is None:
        pytest.skip("there is no C++ compiler to emulate a GPU with")
    return Ops(Subject(CudaBackend(emulated.Runtime, lambda: 1), DeviceId(0)))


def normal(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(DType.of(dtype).numpy)


def assert_near(result, expected, tolerance):
    scale = np.maximum(np.abs(expected), 1.0)
    with np.errstate(invalid="ignore"):
        near = (np.abs(result.astype(np.float64) - expected) <= tolerance * scale) | (
            result == expected
        )
    assert np.all(near | (np.isnan(result) & np.isnan(expected)))


def softmax(x):
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return powers / np.sum(powers, axis=-1, keepdims=True)


@pytest.mark.parametrize(("n", "dtype"), crossed(ROWS, FLOATS))
def test_rows_of_any_length(ops, n, dtype):
    x, g = normal(3, n, dtype=dtype), normal(3, n, dtype=dtype)
    gamma, beta = normal(n, dtype=dtype), normal(n, dtype=dtype)
    wide, slope = x.astype(np.float64), g.astype(np.float64)
    weights = softmax(wide)
    assert_near(ops("softmax", x, axis=1), weights, FLOATS[dtype])
    assert_near(ops("log_softmax", x, axis=1), np.log(weights), FLOATS[dtype])
    given = ops("softmax", x, axis=1)
    known = given.astype(np.float64)
    steep = known * (slope - np.sum(known * slope, axis=1, keepdims=True))
    assert_near(ops("softmax_grad", given, g, axis=1), steep, FLOATS[dtype])
    centred = wide - np.mean(wide, axis=1, keepdims=True)
    scaled = centred / np.sqrt(np.var(wide, axis=1, keepdims=True) + 1e-5)
    scaled = scaled * gamma.astype(np.float64) + beta.astype(np.float64)
    result = ops("layer_norm", x, gamma, beta, epsilon=1e-5)
    assert_near(result, scaled, 4 * FLOATS[dtype])


def test_rows_that_are_not_aligned_to_packs(ops):
    x = normal(1 + 4 * 64)
    shifted = ops.subject.table.slice(ops.put(x), slices=((1, 256, 1),))
    rows = ops.subject.table.reshape(shifted, shape=(4, 64))
    assert_near(ops("softmax", rows, axis=1), softmax(x[1:].reshape(4, 64).astype(float)), 1e-5)
    sums = np.cumsum(x[1:].reshape(4, 64).astype(float), axis=1)
    assert_near(ops("cumsum", rows, axis=1), sums, 1e-5)


@pytest.mark.parametrize("n", [5, 1000, 40_000])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_with_nan_and_infinities(ops, value, n):
    x = normal(3, n)
    x[0, n // 2] = value
    x[1, :] = value
    assert_near(ops("softmax", x, axis=1), softmax(x.astype(np.float64)), 1e-5)


@pytest.mark.parametrize(
    ("n", "dtype"),
    crossed([1, 31, 1025, 8193, 70_001], ["int8", "int64", "float16", "float32", "float64"]),
)
def test_scans_of_any_length(ops, n, dtype):
    x = RNG.integers(-3, 4, (2, n)).astype(DType.of(dtype).numpy)
    if dtype == "float16":
        x = (x == 0).astype(x.dtype)  # sums that 16 bits can hold
        x[:, 2000:] = 0
    sums = np.cumsum(x, axis=1, dtype=np.float32 if dtype == "float16" else x.dtype)
    np.testing.assert_array_equal(ops("cumsum", x, axis=1), sums.astype(x.dtype))
    np.testing.assert_array_equal(ops("cummax", x, axis=1), np.maximum.accumulate(x, axis=1))


def test_a_scan_over_tiles_groups_and_groups_of_groups(ops, monkeypatch):
    monkeypatch.setattr("burn_cuda.scan._MAX_ELEMENTS_OF_THREAD", 1)  # tiles of 256 elements
    n = 256 * 1024 + 256 * 33 + 5
    x = RNG.integers(-9, 9, n)
    np.testing.assert_array_equal(ops("cumsum", x, axis=0), np.cumsum(x))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    crossed(
        [(16, 1024), (33, 600), (70, 300), (130, 129), (8, 30, 80)],
        ["int8", "float16", "float32", "float64"],
    ),
)
def test_a_transposed_array_is_copied(ops, dtype, shape):
    x = normal(*shape).astype(dtype)
    axes = tuple(reversed(range(len(shape))))
    moved = ops.subject.table.permute(ops.put(x), axes=axes)
    np.testing.assert_array_equal(ops.get(moved), x.transpose(axes))


@pytest.mark.parametrize("count", [1, 7, 8, 1000, 1001, 4096])
@pytest.mark.parametrize("dtype", FLOATS)
def test_random_numbers_do_not_depend_on_their_distribution_to_threads(ops, dtype, count):
    attributes = {
        "seed": 5,
        "offset": 3,
        "dtype": DType.of(dtype),
        "device": ops.subject.device,
    }
    numbers = ops("random_uniform", shape=(count,), low=0.0, high=1.0, **attributes)
    longer = ops("random_uniform", shape=(count + 3,), low=0.0, high=1.0, **attributes)
    np.testing.assert_array_equal(numbers, longer[:count])


def attention(query, key, value, *, scale, mask=None, bias=None, softcap=None, is_causal=False):
    scores = query @ np.swapaxes(key, -1, -2) * scale
    if softcap is not None:
        scores = np.tanh(scores / softcap) * softcap
    queries, keys = scores.shape[-2:]
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    if is_causal:
        beyond = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
        scores = np.where(beyond, -np.inf, scores)
    if bias is not None:
        scores = scores + bias
    peak = np.max(scores, axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(peak), 0.0, peak))
    total = np.sum(powers, axis=-1, keepdims=True)
    return (powers / np.where(total == 0.0, 1.0, total)) @ value


@pytest.mark.parametrize(
    ("lengths", "dtype"),
    crossed(
        [
            *[(1, 1, 1, 1), (16, 64, 64, 64), (65, 33, 7, 24), (3, 300, 40, 17)],
            *[(129, 130, 40, 17), (3, 700, 128, 72)],
        ],
        FLOATS,
    ),
)
def test_attention_over_tiles_that_are_not_full(ops, lengths, dtype):
    queries, keys, features, values = lengths
    ops.skip_if_emulated(queries * keys * features)
    query, key = normal(2, queries, features, dtype=dtype), normal(2, keys, features, dtype=dtype)
    value, bias = normal(2, keys, values, dtype=dtype), normal(queries, keys, dtype=dtype)
    mask = RNG.random((2, queries, keys)) < 0.4
    mask[0, queries // 2] = True
    wide = [tensor.astype(np.float64) for tensor in (query, key, value)]
    cases = [
        ({}, None, None),
        ({"is_causal": True}, None, None),
        ({"softcap": 2.0, "is_causal": True}, mask, bias),
    ]
    for attributes, excluded, added in cases:
        result = ops("attention", query, key, value, excluded, added, scale=0.3, **attributes)
        shift = None if added is None else added.astype(np.float64)
        expected = attention(*wide, scale=0.3, mask=excluded, bias=shift, **attributes)
        assert_near(result, expected, 4 * FLOATS[dtype])


@pytest.mark.parametrize(
    ("images", "inputs", "outputs", "groups", "lengths", "padding"),
    [
        (16, 32, 48, 1, (30, 31), ((1, 1), (1, 1))),
        (5, 64, 64, 2, (33, 40), ((0, 1), (1, 0))),
        pytest.param(1, 96, 33, 1, (75, 64), ((0, 0), (0, 0)), marks=pytest.mark.exhaustive),
    ],
)
def test_large_convolutions_are_those_of_their_definition(
    ops, images, inputs, outputs, groups, lengths, padding
):
    x, weight = normal(images, inputs, *lengths), normal(outputs, inputs // groups, 3, 3)
    bias = normal(outputs)
    rules = {"stride": (1, 1), "padding": padding, "dilation": (1, 1), "groups": groups}
    reference = Ops(Subject.of(burn.Device("cpu")))
    expected = reference("conv", x.astype(float), weight.astype(float), bias.astype(float), **rules)
    found = ops("conv", x, weight, bias, **rules)
    assert np.max(np.abs(found - expected)) < 1e-5 * np.max(np.abs(expected))
    g = normal(*expected.shape)
    wide = [tensor.astype(np.float64) for tensor in (x, weight, g)]
    back = {**rules, "output_padding": (0, 0)}
    expected = reference("conv_transpose", wide[2], wide[1], None, **back)
    found = ops("conv_transpose", g, weight, None, **back)
    assert np.max(np.abs(found - expected)) < 1e-5 * np.max(np.abs(expected))
    sizes = {**rules, "kernel_size": (3, 3)}
    expected = reference("conv_weight_grad", wide[0], wide[2], **sizes)
    found = ops("conv_weight_grad", x, g, **sizes)
    assert np.max(np.abs(found - expected)) < 1e-5 * np.max(np.abs(expected))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("images", [0, 1, 5])
@pytest.mark.parametrize(
    ("inputs", "outputs", "groups", "kernel", "lengths"),
    [
        (8, 6, 1, 1, (2, 1)),  # a product for all images
        (16, 16, 2, 1, (1, 3)),
        (4, 6, 2, 3, (4, 5)),
        (2, 2, 1, 1, (7, 9)),  # one for each
        (2, 3, 1, 2, (9, 8)),
    ],
)
def test_weight_gradients_of_convolutions_are_one_product_or_many(
    ops, inputs, outputs, groups, kernel, lengths, images, dtype
):
    x = normal(images, inputs, *lengths, dtype=dtype)
    sides = [length - kernel + 1 for length in lengths]
    g = normal(images, outputs, *sides, dtype=dtype)
    rules = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": groups}
    rules["kernel_size"] = (kernel, kernel)
    reference = Ops(Subject.of(burn.Device("cpu")))
    expected = reference("conv_weight_grad", x.astype(float), g.astype(float), **rules)
    assert_near(ops("conv_weight_grad", x, g, **rules), expected, 4 * FLOATS[dtype])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("row", "column"), [(5, 6), (6, 6), (0, 0), (11, 4)])
def test_winograd_spreads_what_is_not_finite_by_one_position(ops, monkeypatch, row, column, value):
    monkeypatch.setattr("burn_cuda.winograd._MIN_CHANNELS", 1)
    monkeypatch.setattr("burn_cuda.winograd._MIN_MULTIPLICATIONS", 0)
    x, weight = normal(1, 2, 12, 12), normal(3, 2, 3, 3)
    rules = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    rows, columns = np.indices((12, 12))
    distance = np.maximum(abs(rows - row), abs(columns - column))
    for winograd, reach in ((True, 2), (False, 1)):
        monkeypatch.setattr(ops.subject.backend.runtime, "winograd", winograd)
        expected = ops("conv", x, weight, None, **rules)[0]
        spoiled = x.copy()
        spoiled[0, 1, row, column] = value
        found = ops("conv", spoiled, weight, None, **rules)[0]
        assert not np.isfinite(found[:, distance <= 1]).any()
        np.testing.assert_array_equal(found[:, distance > reach], expected[:, distance > reach])


def test_results_of_permuted_operands_have_their_layout(ops):
    x, y = normal(40, 30, 20), normal(40, 30, 20)
    table = ops.subject.table
    moved = [table.permute(ops.put(tensor), axes=(2, 0, 1)) for tensor in (x, y)]
    total = table.add(*moved)
    np.testing.assert_array_equal(ops.get(total), (x + y).transpose(2, 0, 1))
    np.testing.assert_array_equal(ops.get(table.less(moved[0], 0.0)), (x < 0).transpose(2, 0, 1))
    steps = [stride // x.itemsize for stride in total.strides]
    assert steps == [1, 600, 20]


@pytest.mark.parametrize(
    ("lengths", "dtype"),
    crossed(
        [
            *[(16, 64, 64, 64), (65, 33, 7, 24), (70, 20, 72, 40)],
            *[(129, 130, 40, 17), (70, 20, 128, 72)],
        ],
        ["float16", "bfloat16", "float32"],
    ),
)
def test_gradients_of_attention_over_tiles_that_are_not_full(ops, lengths, dtype):
    queries, keys, features, values = lengths
    query, key = normal(2, queries, features, dtype=dtype), normal(2, keys, features, dtype=dtype)
    value, bias = normal(2, keys, values, dtype=dtype), normal(queries, keys, dtype=dtype)
    g = normal(2, queries, values, dtype=dtype)
    mask = RNG.random((2, queries, keys)) < 0.4
    mask[0, queries // 2] = True
    ops.skip_if_emulated(queries * keys * features)
    reference = Ops(Subject.of(burn.Device("cpu")))
    # The second time with gradients near the least positive numbers of 16 bits.
    for small, attributes in ((1.0, {"softcap": 2.0}), (2.0**-13, {"is_causal": True})):
        slope = (g * small).astype(g.dtype)
        operands = [query, key, value, mask, bias, slope]
        wide = [
            operand if operand.dtype == bool else operand.astype(np.float64) for operand in operands
        ]
        rules = {"scale": 0.3, "softcap": None, "is_causal": False, **attributes}
        expected = reference("attention_grad", *wide, **rules)
        found = ops("attention_grad", *operands, **rules)
        allowed = FLOATS[dtype] * (4.0 if small < 1.0 else 1.0)
        for own, other in zip(found, expected, strict=True):
            distance = np.linalg.norm(own.astype(np.float64) - other)
            assert distance <= allowed * np.linalg.norm(other)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    crossed(
        [
            *[(4, 3, 30), (700, 5), (3, 2, 5501), (2, 3, 1024)],  # a block for each channel
            *[(3, 2, 5503), (17, 2, 4096)],  # several blocks
        ],
        FLOATS,
    ),
)
def test_batch_normalization_of_channels_of_any_length(ops, shape, dtype):
    x, g = normal(*shape, dtype=dtype), normal(*shape, dtype=dtype)
    gamma, beta = normal(shape[1], dtype=dtype), normal(shape[1], dtype=dtype)
    reference = Ops(Subject.of(burn.Device("cpu")))
    wide = [tensor.astype(np.float64) for tensor in (x, gamma, beta)]
    found = ops("batch_norm_training", x, gamma, beta, epsilon=1e-3)
    expected = reference("batch_norm_training", *wide, epsilon=1e-3)
    for own, other in zip(found, expected, strict=True):
        assert_near(own, other, 4 * FLOATS[dtype])
    moments = found[1:]
    wide = [item.astype(np.float64) for item in (x, gamma, *moments, g)]
    expected = reference("batch_norm_grad", *wide, epsilon=1e-3)
    found = ops("batch_norm_grad", x, gamma, *moments, g, epsilon=1e-3)
    for own, other in zip(found, expected, strict=True):
        scale = max(np.linalg.norm(other), 1.0)
        assert np.linalg.norm(own.astype(np.float64) - other) <= 4 * FLOATS[dtype] * scale


@pytest.mark.parametrize(
    ("shape", "dtype"),
    crossed(
        [(1, 17, 16), (3, 200, 70), (2, 1000, 33), (1, 40_000, 20), (1, 3000, 3)],
        ["int32", "float16", "float32"],
    ),
)
def test_reductions_of_columns_of_any_length(ops, shape, dtype):
    x = RNG.integers(-3, 4, shape).astype(dtype)
    x[0, shape[1] // 2 :, 1] = 9
    kind = DType.of(dtype)
    total = ops("sum", x, axis=(1,), dtype=kind)
    np.testing.assert_array_equal(total, x.sum(axis=1, dtype=np.int64).astype(dtype))
    np.testing.assert_array_equal(ops("max", x, axis=(1,)), x.max(axis=1))
    first = ops("argmax", x, axis=1, dtype=DType.of("int64"))
    np.testing.assert_array_equal(first, x.argmax(axis=1))


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_of_channels(ops, dtype, keepdims):
    x = RNG.integers(-3, 4, (40, 5, 1, 9, 30)).astype(dtype)
    axes = (0, 2, 3, 4)
    total = ops("sum", x, axis=axes, keepdims=keepdims, dtype=DType.of(dtype))
    expected = x.sum(axis=axes, keepdims=keepdims, dtype=np.int64)
    np.testing.assert_array_equal(total, expected.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("queries", "keys", "is_causal"), [(5, 9, True), (9, 5, True), (70, 70, True), (33, 600, False)]
)
def test_gradients_of_attention_by_products(ops, queries, keys, is_causal, dtype):
    query, key = normal(2, 3, queries, 8, dtype=dtype), normal(1, 3, keys, 8, dtype=dtype)
    value, g = normal(3, keys, 4, dtype=dtype), normal(2, 3, queries, 4, dtype=dtype)
    operands, rules = (query, key, value, None, None, g), {"scale": 0.3, "softcap": None}
    rules["is_causal"] = is_causal
    reference = Ops(Subject.of(burn.Device("cpu")))
    wide = [None if operand is None else operand.astype(np.float64) for operand in operands]
    expected = reference("attention_grad", *wide, **rules)
    for own, other in zip(ops("attention_grad", *operands, **rules), expected, strict=True):
        assert_near(own, other, 10 * FLOATS[dtype])


@pytest.mark.parametrize(
    ("shape", "dtype"),
    crossed([(1, 1), (5, 31), (1, 2000), (1100, 9), (3, 4099), (2, 9000), (1, 40_000)], FLOATS),
)
def test_gradients_of_layer_norm_for_rows_of_any_length(ops, shape, dtype, request):
    everything = request.config.getoption("all")
    x, g = normal(*shape, dtype=dtype), normal(*shape, dtype=dtype)
    gamma = normal(shape[1], dtype=dtype)
    reference = Ops(Subject.of(burn.Device("cpu")))
    for scale in (gamma, None)[: 2 if everything or x.size < 4000 else 1]:
        wide = [None if item is None else item.astype(np.float64) for item in (x, scale, g)]
        expected = reference("layer_norm_grad", *wide, epsilon=1e-3)
        found = ops("layer_norm_grad", x, scale, g, epsilon=1e-3)
        for own, other in zip(found, expected, strict=True):
            distance = np.linalg.norm(own.astype(np.float64) - other)
            assert distance <= 4 * FLOATS[dtype] * max(np.linalg.norm(other), 1.0)


@pytest.mark.parametrize(
    ("count", "hidden", "has_bias", "has_gradients"),
    [
        *[(1, 128, True, (True, False, False)), (5, 7, False, (True, True, True))],
        *[(140, 12, True, (False, True, True)), (529, 3, True, (True, False, True))],
        (3, 130, True, (True, True, True)),  # a product in each step
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_an_lstm_of_any_size(ops, count, hidden, has_bias, has_gradients, reverse):
    steps, inputs = 3, 4
    operands = [normal(steps, count, inputs), normal(count, hidden), normal(count, hidden)]
    operands += [normal(4 * hidden, inputs), normal(4 * hidden, hidden) / np.float32(hidden)]
    operands += [normal(4 * hidden) if has_bias else None for _ in range(2)]
    shapes = [(steps, count, hidden), (count, hidden), (count, hidden)]
    slopes = [
        normal(*shape) if there else None
        for shape, there in zip(shapes, has_gradients, strict=True)
    ]
    reference = Ops(Subject.of(burn.Device("cpu")))
    for name, given in (("lstm", operands), ("lstm_grad", [*operands, *slopes])):
        wide = [None if item is None else item.astype(np.float64) for item in given]
        expected = reference(name, *wide, reverse=reverse)
        for own, other in zip(ops(name, *given, reverse=reverse), expected, strict=True):
            distance = np.linalg.norm(own.astype(np.float64) - other)
            assert distance <= 1e-5 * max(np.linalg.norm(other), 1.0)


@pytest.mark.parametrize(("dtype", "half_ulp"), [("bfloat16", 2.0**-8), ("float16", 2.0**-11)])
def test_sums_over_axes_around_one_that_is_kept_round_once(ops, dtype, half_ulp):
    x = normal(2, 3, 40, dtype=dtype)
    for axis in [(0, 2), (2, 0)]:
        found = ops("sum", x, axis=axis, keepdims=False, dtype=DType.of(dtype))
        exact = x.astype(np.float64).sum(axis)
        np.testing.assert_allclose(found.astype(np.float64), exact, rtol=1.01 * half_ulp)


@pytest.mark.parametrize("batch", [(5,), (2, 7), (1, 3)])
def test_scores_that_take_much_memory_are_computed_in_parts(ops, monkeypatch, batch):
    query, key = normal(*batch, 4, 3), normal(*batch[1:], 6, 3)
    value, g = normal(*batch, 6, 2), normal(*batch, 4, 2)
    mask = RNG.random((*batch[:-1], 1, 4, 6)) < 0.3
    operands, rules = (query, key, value, mask, None, g), {"scale": 0.5}
    whole = ops("attention_grad", *operands, **rules)
    monkeypatch.setattr("burn_cuda.attention._MAX_SCORE_BYTES", 4 * 6 * 8 * 2)
    for own, other in zip(ops("attention_grad", *operands, **rules), whole, strict=True):
        assert_near(own, other.astype(np.float64), FLOATS["float32"])
