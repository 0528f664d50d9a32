"""Kernels compiled by numba: the same results as NumPy's, and NumPy's where there is none."""

import subprocess
import sys

import numpy as np
import pytest

from burn.plugin_api import DeviceId, registry, resolve
from burn_cpu import compiled

RANDOM = np.random.default_rng(3)

SHAPES = [(3, 40), (2, 5, 700), (9, 513), (1, 40_000), (300, 600), (50_000,)]


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("cpu").load(), DeviceId(0)).backend


@pytest.fixture
def fresh():
    """No kernels were imported yet."""
    compiled.kernels.cache_clear()
    yield
    compiled.kernels.cache_clear()


@pytest.fixture(params=["compiled", "NumPy"])
def implementation(request, fresh, monkeypatch):
    monkeypatch.setenv("BURN_CPU_JIT", "1" if request.param == "compiled" else "0")
    assert (compiled.kernels("rows") is not None) == (request.param == "compiled")
    return request.param


def normal(*shape):
    return RANDOM.normal(size=shape)


def calls(backend):
    """Ops that have a compiled kernel, as functions of two arrays; some use the first alone."""

    def parameters(x):
        return np.linspace(0.5, 1.5, x.shape[-1]).astype(x.dtype)

    return {
        "softmax": lambda x, _: backend.softmax(x, axis=x.ndim - 1),
        "log_softmax": lambda x, _: backend.log_softmax(x, axis=x.ndim - 1),
        "softmax_grad": lambda x, g: backend.softmax_grad(x, g, axis=x.ndim - 1),
        "log_softmax_grad": lambda x, g: backend.log_softmax_grad(x, g, axis=x.ndim - 1),
        "layer_norm": lambda x, _: backend.layer_norm(
            x, parameters(x), -parameters(x), epsilon=1e-5
        ),
        "layer_norm, plain": lambda x, _: backend.layer_norm(x, None, None, epsilon=1e-5),
        "layer_norm_grad": lambda x, g: backend.layer_norm_grad(x, parameters(x), g, epsilon=1e-5),
        "layer_norm_grad, plain": lambda x, g: backend.layer_norm_grad(x, None, g, epsilon=1e-5),
        "rms_norm": lambda x, _: backend.ops.rms_norm(x, parameters(x), epsilon=1e-5),
        "rms_norm, plain": lambda x, _: backend.ops.rms_norm(x, None, epsilon=1e-5),
        "gelu": lambda x, _: backend.gelu(x),
        "gelu_grad": lambda x, g: backend.gelu_grad(x, g),
        "gelu, tanh": lambda x, _: backend.gelu(x, approximate="tanh"),
        "gelu_grad, tanh": lambda x, g: backend.gelu_grad(x, g, approximate="tanh"),
        "sigmoid": lambda x, _: backend.sigmoid(x),
        "silu": lambda x, _: backend.silu(x),
    }


NAMES = list(calls(None))

ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "soft cap": {"softcap": 2.0},
    "mask and bias": {"masks": True},
    "all of it": {"is_causal": True, "softcap": 2.0, "masks": True},
}
# Of few elements, which one kernel computes; of more than a block of queries.
ATTENTION_SHAPES = [(2, 3, 5, 5, 4, 6), (2, 3, 200, 200, 16, 24), (1, 2, 140, 170, 20, 20)]


@pytest.mark.parametrize("shape", ATTENTION_SHAPES, ids=str)
@pytest.mark.parametrize("case", ATTENTION)
def test_attention_is_that_of_float64(backend, implementation, case, shape):
    batch, heads, queries, keys, width, columns = shape
    options = dict(ATTENTION[case])
    masks = [None, None]
    if options.pop("masks", False):
        mask = RANDOM.random((batch, 1, queries, keys)) < 0.3
        mask[0, 0, 1] = True  # a query without keys
        masks = [mask, normal(heads, 1, keys)]
    attributes = {"scale": 0.4, "softcap": None, "is_causal": False, **options}
    query, key, value, g = (
        normal(batch, rows, heads, length).swapaxes(1, 2)  # not contiguous
        for rows, length in ((queries, width), (keys, width), (keys, columns), (queries, columns))
    )

    def results(dtype):
        mask, bias = (
            mask if mask is None or mask.dtype == bool else mask.astype(dtype) for mask in masks
        )
        tensors = [tensor.astype(dtype) for tensor in (query, key, value)]
        with np.errstate(all="ignore"):
            output = backend.attention(*tensors, mask, bias, **attributes)
            gradients = backend.attention_grad(*tensors, mask, bias, g.astype(dtype), **attributes)
        return output, *gradients

    for actual, expected in zip(results(np.float32), results(np.float64), strict=True):
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def operands(name, shape):
    x, g = normal(*shape), normal(*shape)
    if name == "softmax_grad":
        x = np.abs(x) / np.abs(x).sum(axis=-1, keepdims=True)
    if name == "log_softmax_grad":
        x = -np.abs(x) * 5.0
    return x, g


def outputs(call, x, g):
    with np.errstate(all="ignore"):
        result = call(x, g)
    return result if isinstance(result, tuple) else (result,)


def check(call, x, g, tolerance=2e-6):
    """Compare with NumPy in float64, which has no compiled kernels."""
    expected = outputs(call, x.astype(np.float64), g.astype(np.float64))
    for actual, item in zip(outputs(call, x, g), expected, strict=True):
        assert actual.dtype == x.dtype
        scale = max(1.0, float(np.abs(item).max(initial=0.0)))
        np.testing.assert_allclose(
            actual.astype(np.float64), item, rtol=tolerance, atol=tolerance * scale
        )


@pytest.mark.together("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_are_those_of_float64(backend, implementation, name, shape):
    x, g = operands(name, shape)
    check(calls(backend)[name], x.astype(np.float32), g.astype(np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_views_and_read_only_arrays_give_what_copies_do(backend, implementation, name):
    call = calls(backend)[name]
    x, g = (operand.astype(np.float32) for operand in operands(name, (60, 40)))
    wide = np.zeros((60, 80), np.float32)
    wide[:, ::2] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    expected = outputs(call, x, g)
    for view in (wide[:, ::2], np.asfortranarray(x), x[::-1].copy()[::-1], read_only):
        for actual, item in zip(outputs(call, view, g), expected, strict=True):
            np.testing.assert_allclose(actual, item, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_16_bit_floats_are_computed_in_float32(backend, implementation, name):
    x, g = (operand.astype(np.float16) for operand in operands(name, (30, 50)))
    check(calls(backend)[name], x, g, tolerance=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_empty_arrays_stay_empty(backend, implementation, name):
    for shape in ((0, 12), (4, 0, 12)):
        x = np.zeros(shape, np.float32)
        assert outputs(calls(backend)[name], x, x)[0].shape == shape


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_that_are_not_finite(backend, implementation, name):
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
    check(calls(backend)[name], x, x)


@pytest.mark.parametrize("name", [item for item in NAMES if "softmax" not in item])
def test_elements_that_are_not_finite(backend, implementation, name):
    x = normal(6, 40).astype(np.float32)
    x[0, 3], x[1, 5], x[2, 7], x[3, 9], x[4, 1] = np.nan, np.inf, -np.inf, 60.0, -60.0
    g = normal(6, 40).astype(np.float32)
    check(calls(backend)[name], x, g)


def test_an_exponential_is_right_to_the_last_digits(fresh):
    exp = compiled.kernels("base").exp
    x = np.linspace(-87.0, 0.0, 200_001, dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    actual = np.array([exp(item) for item in x[::50]])
    assert np.abs(actual / expected[::50] - 1.0).max() < 2.0 * np.finfo(np.float32).eps


def forget_kernels(monkeypatch):
    for name in [module for module in sys.modules if module.startswith("burn_cpu.compiled_")]:
        monkeypatch.delitem(sys.modules, name)


def test_without_numba_there_is_numpy(backend, fresh, monkeypatch, recwarn, caplog):
    monkeypatch.setenv("BURN_CPU_JIT", "1")
    monkeypatch.setitem(sys.modules, "numba", None)
    forget_kernels(monkeypatch)
    x = normal(30, 40).astype(np.float32)
    with caplog.at_level("INFO", "burn"):
        result = backend.softmax(x, axis=1)
    assert compiled.kernels("rows") is None
    np.testing.assert_allclose(result.sum(axis=1), 1.0, rtol=1e-6)
    assert not recwarn.list
    assert not caplog.records


def test_numba_that_does_not_work_is_left_alone(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("BURN_CPU_JIT", "1")
    (tmp_path / "numba.py").write_text("raise RuntimeError('of another NumPy')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [module for module in sys.modules if module.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    forget_kernels(monkeypatch)
    assert compiled.kernels("rows") is None


def test_float64_is_left_to_numpy(fresh):
    assert compiled.kernels_for(np.dtype(np.float64), "rows") is None


@pytest.mark.parametrize(
    "options", [["--quick", "--suite=values"], pytest.param([], marks=pytest.mark.exhaustive)]
)
def test_compiled_kernels_conform(options):
    names = sorted({name.partition(",")[0] for name in NAMES})
    ops = [word for name in names for word in ("--op", name)]
    command = [sys.executable, "-m", "burn", "check", "cpu", *options, *ops]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


WITHOUT_KERNELS = """
import sys, burn
from burn.nn import functional as F
x = burn.ones((4, 4), device="cpu")
(F.linear(x, x) + x @ x).sum().item(), F.embedding(x, burn.asarray([1, 2], device="cpu"))
raise SystemExit("numba" in sys.modules)
"""


def test_ops_without_kernels_do_not_wait_for_numba():
    subprocess.run([sys.executable, "-c", WITHOUT_KERNELS], check=True, timeout=120)
