"""Matrix products by CLBlast: which ones use it, and that it is optional."""

import importlib.util
import itertools
import json
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import burn
from burn.plugin_api import DiskCache
from burn_opencl import clblast
from burn_opencl.clblast import ClBlast
from burn_opencl.icd_loader import found_devices

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)


@pytest.fixture
def cache(tmp_path):
    """An empty cache on disk; kernels are in another."""
    found = DiskCache("opencl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BURN_CACHE", str(tmp_path))
        assert found.folder.is_relative_to(tmp_path)  # from now on it stays
    return found


@pytest.fixture
def device(with_kernels, cache):
    with with_kernels("gpu", min_specialized_elements=0) as device:
        launcher = device.backend.for_device(device.id).launcher
        launcher.clblast = ClBlast(launcher.runtime, cache)
        yield device


@pytest.fixture
def library(monkeypatch):
    """A library that records its calls, and counts as taking no time, kernels as a second."""
    asked = []
    found = SimpleNamespace(gemm=lambda *a, **b: asked.append((a, b)), asked=asked)
    measure = ClBlast._seconds

    def seconds(self, function):
        before = len(asked)
        measure(self, function)
        return float(len(asked) == before)

    monkeypatch.setattr(clblast, "_library", lambda: found)
    monkeypatch.setattr(ClBlast, "_seconds", seconds)
    return found


def measured(device, cache):
    """Whether CLBlast is faster, for the classes of shapes that were measured."""
    identity = device.backend.for_device(device.id).launcher.runtime.identity
    return list(json.loads(cache.get(f"CLBlast|{identity}")).values())


def operands(device, m, k, n, *, transposed=(False, False), dtype="float32"):
    rng = np.random.default_rng(0)
    result = []
    for is_transposed, shape in zip(transposed, ((m, k), (k, n)), strict=True):
        values = rng.normal(size=shape[::-1] if is_transposed else shape).astype(dtype)
        x = burn.asarray(values, device=device)
        result.append((x.T, values.T) if is_transposed else (x, values))
    return result


def test_each_class_of_shapes_is_measured_once(device, library, cache):
    (x, _), (y, _) = operands(device, 300, 300, 300)
    x @ y
    assert len(library.asked) > 2
    assert measured(device, cache) == [True]
    library.asked.clear()
    x @ y
    assert len(library.asked) == 1
    launcher = device.backend.for_device(device.id).launcher
    launcher.clblast = ClBlast(launcher.runtime, cache)
    x @ y
    assert len(library.asked) == 2


def test_a_library_that_fails_is_not_used(device, library, cache):
    def gemm(*arguments, **more):
        raise RuntimeError("PyCLBlast: 'CLBlastXgemm' failed")

    library.gemm = gemm
    (x, a), (y, b) = operands(device, 300, 300, 300)
    np.testing.assert_allclose((x @ y).numpy(), a @ b, atol=1e-3)
    assert measured(device, cache) == [False]
    (kept,) = cache.folder.glob("*.bin")
    kept.write_text("cut sho")
    launcher = device.backend.for_device(device.id).launcher
    launcher.clblast = ClBlast(launcher.runtime, cache)
    np.testing.assert_allclose((x @ y).numpy(), a @ b, atol=1e-3)


def test_small_products_and_other_dtypes_do_not_use_it(device, library):
    for m, dtype in ((40, "float32"), (300, "float16")):
        (x, _), (y, _) = operands(device, m, m, m, dtype=dtype)
        x @ y
    (x, _), _ = operands(device, 300, 300, 300)
    stacked = burn.stack([x, x])
    stacked @ stacked
    x[:, ::2] @ x[::2]
    assert not library.asked


def test_nothing_is_missing_without_it(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyclblast", None)
    clblast._library.cache_clear()
    (x, a), (y, b) = operands(device, 300, 300, 300)
    np.testing.assert_allclose((x @ y).numpy(), a @ b, atol=1e-3)
    assert clblast._library() is None
    clblast._library.cache_clear()


@pytest.mark.skipif(
    importlib.util.find_spec("pyclblast") is None, reason="the package pyclblast is not installed"
)
@pytest.mark.parametrize("transposed", list(itertools.product((False, True), repeat=2)))
def test_its_products_are_right(device, monkeypatch, transposed):
    launcher = device.backend.for_device(device.id).launcher
    monkeypatch.setattr(ClBlast, "_measured", lambda *_: True)
    (x, a), (y, b) = operands(device, 300, 260, 270, transposed=transposed)
    np.testing.assert_allclose((x @ y).numpy(), a @ b, atol=1e-3)
    assert list(launcher.clblast._is_faster.values()) == [True]


def test_one_thread_measures_for_all(device, library, monkeypatch):
    measured = []
    measure = ClBlast._measured

    def measure_and_note(*arguments):
        measured.append(measure(*arguments))
        return measured[-1]

    monkeypatch.setattr(ClBlast, "_measured", measure_and_note)
    (x, _), (y, _) = operands(device, 300, 300, 300)
    threads = [threading.Thread(target=lambda: x @ y) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    launcher = device.backend.for_device(device.id).launcher
    assert list(launcher.clblast._is_faster.values()) == measured
    assert len(measured) == 1
