"""Kernels compiled by numba: the same results as NumPy's, and NumPy's where there is none."""

import subprocess
import sys

import numpy as np
import pytest

from burn.plugin_api import DeviceId, registry, resolve
from burn_cpu import compiled

RANDOM = np.random.default_rng(3)


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
    assert (compiled.kernels("attention") is not None) == (request.param == "compiled")
    return request.param


def normal(*shape):
    return RANDOM.normal(size=shape)


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
    x = normal(2, 30, 40).astype(np.float32)
    with caplog.at_level("INFO", "burn"):
        result = backend.attention(
            x, x, np.ones_like(x), None, None, scale=1.0, softcap=None, is_causal=False
        )
    assert compiled.kernels("attention") is None
    np.testing.assert_allclose(result, 1.0, rtol=1e-6)
    assert not recwarn.list
    assert not caplog.records


def test_numba_that_does_not_work_is_left_alone(fresh, monkeypatch, tmp_path):
    monkeypatch.setenv("BURN_CPU_JIT", "1")
    (tmp_path / "numba.py").write_text("raise RuntimeError('of another NumPy')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [module for module in sys.modules if module.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    forget_kernels(monkeypatch)
    assert compiled.kernels("attention") is None


def test_float64_is_left_to_numpy(fresh):
    assert compiled.kernels_for(np.dtype(np.float64), "attention") is None


WITHOUT_KERNELS = """
import sys, burn
from burn.nn import functional as F
x = burn.ones((4, 4), device="cpu")
(F.linear(x, x) + x @ x).sum().item(), F.embedding(x, burn.asarray([1, 2], device="cpu"))
burn.where(x > 0, burn.exp(x), x).max(), burn.reshape(x, (2, 8)).tolist()
raise SystemExit("numba" in sys.modules or "llvmlite" in sys.modules)
"""


def test_functions_of_numpy_wait_for_no_compiler():
    subprocess.run([sys.executable, "-c", WITHOUT_KERNELS], check=True, timeout=120)
