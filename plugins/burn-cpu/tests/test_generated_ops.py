"""Ops as generated kernels: the results of their defaults, whatever arrays and numbers they get."""

import threading

import numpy as np
import pytest

import burn
from burn.plugin_api import REGISTRY, DeviceId, OpTable, float32, int32, int64
from burn_cpu import compilation
from burn_cpu.backend import CpuBackend
from burn_cpu.base import LARGE

RANDOM = np.random.default_rng(3)

SHAPES = [(3, 40), (2, 5, 700), (9, 513), (1, 40_000), (300, 600), (50_000,)]


def table(monkeypatch, jit):
    """The ops of a backend of its own, with kernels or without."""
    assert burn.Device("cpu").ops  # op tables know the compiler from now on
    monkeypatch.setenv("BURN_CPU_JIT", jit)
    compilation.compiler.cache_clear()
    backend = CpuBackend()
    backend.ops = OpTable(backend, DeviceId(0))
    assert (backend.ops.runner is None) == (jit == "0")
    return backend.ops


@pytest.fixture
def reference(monkeypatch):
    """Defaults of ops, computed by NumPy."""
    return table(monkeypatch, "0")


@pytest.fixture
def ops(reference, monkeypatch):
    pytest.importorskip("llvmlite")
    return table(monkeypatch, "1")


def calls(ops):
    """Ops that are kernels, as functions of two arrays; some use the first alone."""

    def parameters(x):
        return np.linspace(0.5, 1.5, x.shape[-1]).astype(x.dtype)

    return {
        "softmax": lambda x, _: ops.softmax(x, axis=x.ndim - 1),
        "softmax, first": lambda x, _: ops.softmax(x, axis=0),
        "log_softmax": lambda x, _: ops.log_softmax(x, axis=x.ndim - 1),
        "softmax_grad": lambda x, g: ops.softmax_grad(x, g, axis=x.ndim - 1),
        "log_softmax_grad": lambda x, g: ops.log_softmax_grad(x, g, axis=x.ndim - 1),
        "layer_norm": lambda x, _: ops.layer_norm(x, parameters(x), -parameters(x), epsilon=1e-5),
        "layer_norm, plain": lambda x, _: ops.layer_norm(x, None, None, epsilon=1e-5),
        "layer_norm_grad": lambda x, g: ops.layer_norm_grad(x, parameters(x), g, epsilon=1e-5),
        "layer_norm_grad, plain": lambda x, g: ops.layer_norm_grad(x, None, g, epsilon=1e-5),
        "rms_norm": lambda x, _: ops.rms_norm(x, parameters(x), epsilon=1e-5),
        "gelu": lambda x, _: ops.gelu(x),
        "gelu_grad": lambda x, g: ops.gelu_grad(x, g),
        "gelu, tanh": lambda x, _: ops.gelu(x, approximate="tanh"),
        "gelu_grad, tanh": lambda x, g: ops.gelu_grad(x, g, approximate="tanh"),
        "sigmoid": lambda x, _: ops.sigmoid(x),
        "elu": lambda x, _: ops.elu(x, alpha=0.7),
        "sum": lambda x, _: (
            ops.sum(x, axis=(x.ndim - 1,), dtype=float32)
            if x.dtype == np.float32
            else x.sum(axis=-1)
        ),
        "where": lambda x, g: ops.where(x > 0, g, 0.5),
    }


NAMES = list(calls(None))


def operands(name, shape):
    x, g = RANDOM.normal(size=shape), RANDOM.normal(size=shape)
    if name == "softmax_grad":
        x = np.abs(x) / np.abs(x).sum(axis=-1, keepdims=True)
    if name == "log_softmax_grad":
        x = -np.abs(x) * 5.0
    return x, g


def outputs(call, x, g):
    with np.errstate(all="ignore"):
        result = call(x, g)
    return result if isinstance(result, tuple) else (result,)


def check(ops, reference, name, x, g, tolerance=2e-6):
    """Compare with the default in float64."""
    wide = x.astype(np.float64), g.astype(np.float64)
    expected = outputs(calls(reference)[name], *wide)
    for actual, item in zip(outputs(calls(ops)[name], x, g), expected, strict=True):
        assert actual.dtype == x.dtype
        scale = max(1.0, float(np.abs(item).max(initial=0.0)))
        np.testing.assert_allclose(
            actual.astype(np.float64), item, rtol=tolerance, atol=tolerance * scale
        )


@pytest.mark.together("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_are_those_of_float64(ops, reference, name, shape):
    x, g = operands(name, shape)
    check(ops, reference, name, x.astype(np.float32), g.astype(np.float32), tolerance=4e-6)


@pytest.mark.together("name", NAMES)
def test_views_and_read_only_arrays_give_what_copies_do(ops, name):
    call = calls(ops)[name]
    x, g = (operand.astype(np.float32) for operand in operands(name, (60, 400)))
    wide = np.zeros((60, 800), np.float32)
    wide[:, ::2] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    expected = outputs(call, x, g)
    for view in (wide[:, ::2], np.asfortranarray(x), x[::-1].copy()[::-1], read_only):
        for actual, item in zip(outputs(call, view, g), expected, strict=True):
            np.testing.assert_allclose(actual, item, rtol=4e-6, atol=4e-6)


@pytest.mark.together("name", [name for name in NAMES if name != "sum"])
def test_16_bit_floats_are_computed_in_float32(ops, reference, name):
    x, g = (operand.astype(np.float16) for operand in operands(name, (30, 50)))
    check(ops, reference, name, x, g, tolerance=2e-3)


@pytest.mark.parametrize("name", ["softmax", "gelu", "layer_norm"])
def test_empty_arrays_stay_empty(ops, name):
    for shape in ((0, 12), (4, 0, 12)):
        x = np.zeros(shape, np.float32)
        assert outputs(calls(ops)[name], x, x)[0].shape == shape


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_that_are_not_finite(ops, reference, name):
    rows = [
        [np.nan, 1.0, 2.0],
        [np.inf, 1.0, 2.0],
        [-np.inf, -np.inf, -np.inf],
        [-np.inf, 0.0, 0.0],
        [-1e30, 1e30, 0.0],
        [-200.0, 0.0, -200.0],
        [3.0, 4.0, 5.0],
    ]
    x = np.tile(np.array(rows, np.float32), (1, 40))
    check(ops, reference, name, x, x)


def test_which_code_computes_follows_from_shapes_and_dtypes_alone(ops):
    x = RANDOM.normal(size=LARGE).astype(np.float32)
    few, many = x[: LARGE - 1], x
    assert ops.max(few, axis=(0,)) == few.max()
    assert "max" not in ops.backend._large
    assert ops.max(many, axis=(0,)) == many.max()
    assert "max" in ops.backend._large


@pytest.mark.parametrize("name", ["log", "log1p", "expm1", "tanh", "sin", "cos", "tan", "exp"])
@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 4), (np.float64, 5)])
def test_functions_are_right_to_the_last_digits(ops, name, dtype, ulps):
    for limit in (0.9, 30.0, 700.0, 1e9):
        x = RANDOM.uniform(-limit, limit, 20_001).astype(dtype)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x.astype(np.longdouble))
            actual = ops.generated(name)(x)
            unit = np.spacing(np.maximum(np.abs(expected.astype(dtype)), dtype(1e-2)))
            error = np.abs((actual - expected) / unit)
            rounded = expected.astype(dtype)
        is_finite = np.isfinite(rounded)
        assert error[is_finite].max() <= ulps
        np.testing.assert_array_equal(actual[~is_finite], rounded[~is_finite])


def test_numbers_make_no_new_kernels(ops, monkeypatch):
    x = RANDOM.normal(size=(4, 7)).astype(np.float32)
    ops.softplus(x, beta=1.5)
    monkeypatch.setattr(compilation.NativeRunner, "program", None)  # a plan more would call it
    for beta in (0.25, 3.0):
        expected = np.log1p(np.exp(x.astype(np.float64) * beta)) / beta
        np.testing.assert_allclose(ops.softplus(x, beta=beta), expected, rtol=1e-5)


def test_numbers_that_decide_what_is_computed_are_not_mixed_up(ops):
    x = RANDOM.normal(size=(4, 7))
    for correction in (0.0, 1.0, 2.0, 1.0, 0.0):
        actual = ops.var(x, axis=(1,), correction=correction)
        np.testing.assert_allclose(actual, x.var(axis=1, ddof=correction), rtol=1e-12)
    for order in (1.0, 2.0, 3.0, 1.0):
        actual = ops.lp_norm(x, axis=(1,), ord=order)
        np.testing.assert_allclose(actual, np.linalg.norm(x, order, axis=1), rtol=1e-12)


def test_labels_that_are_out_of_range_are_errors(ops):
    x = np.zeros((3, 5), np.float32)
    with pytest.raises(IndexError):
        ops.cross_entropy(x, np.array([0, 5, 1]), axis=1)
    assert ops.cross_entropy(x, np.array([0, 4, 1]), axis=1).shape == (3,)


def test_threads_run_one_kernel_at_a_time_or_many(ops):
    x = RANDOM.normal(size=(40, 3000)).astype(np.float32)
    g = RANDOM.normal(size=(40, 3000)).astype(np.float32)
    expected = ops.layer_norm_grad(x, None, g, epsilon=1e-5)
    wrong = []

    def call():
        for _ in range(50):
            found = ops.layer_norm_grad(x, None, g, epsilon=1e-5)
            wrong.extend(1 for a, b in zip(found, expected, strict=True) if (a != b).any())

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_an_op_says_that_it_is_generated(ops, reference):
    assert ops.origin(REGISTRY["softmax"]) == "generated"
    assert reference.origin(REGISTRY["softmax"]) == "derived"
    assert ops.origin(REGISTRY["add"]) == "native"


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(500, 60), (40, 3, 300), (20_000,)], ids=str)
def test_the_index_of_an_extremum_is_the_first_one(ops, name, shape):
    x = RANDOM.integers(-50, 50, shape).astype(np.float32)
    special = x.copy()
    special.reshape(-1)[[777, 9_999]] = np.nan
    find = getattr(np, name)
    call = ops.generated(name, None)
    for values in (x, special, x.astype(np.int16), x > 48):
        for axis in range(len(shape)):
            for keepdims, dtype in ((False, int64), (True, int32)):
                result = call(values, axis=axis, keepdims=keepdims, dtype=dtype)
                assert result.dtype == dtype.numpy
                np.testing.assert_array_equal(result, find(values, axis=axis, keepdims=keepdims))
                own = getattr(ops, name)(values, axis=axis, keepdims=keepdims, dtype=dtype)
                np.testing.assert_array_equal(own, result)


def test_code_is_kept_for_a_bounded_number_of_kernels(ops, monkeypatch):
    from burn_cpu import native

    x = RANDOM.normal(size=(4, 7)).astype(np.float32)
    expected = {name: getattr(ops, name)(x) for name in ("sigmoid", "silu", "mish")}
    monkeypatch.setattr(native, "_MOST_KEPT", 1)
    for name in ("softsign", "tanhshrink", "hard_swish"):
        getattr(ops, name)(x)
    assert len(native.machine()._kept) == 1
    for name, result in expected.items():  # plans keep their code
        np.testing.assert_array_equal(getattr(ops, name)(x), result)
