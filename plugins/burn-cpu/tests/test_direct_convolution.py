"""Compiled convolutions give what NumPy gives in float64, for all geometries and layouts."""

import numpy as np
import pytest

from burn.plugin_api import DeviceId, conv_geometry, registry, resolve
from burn.testing.samples.windows import _convolutions as samples
from burn_cpu import direct_convolution

pytest.importorskip("numba")

RANDOM = np.random.default_rng(5)

# Images, kernel, stride, padding and dilation.
GEOMETRIES = {
    "many windows": ((3, 5, 30, 31), (70, 5, 3, 3), (1, 1), (1, 1), (1, 1)),
    "many terms": ((2, 120, 5, 6), (33, 120, 3, 3), (1, 1), (1, 1), (1, 1)),
    "stride and few channels": ((3, 3, 17, 9), (20, 3, 7, 5), (2, 3), (3, 2), (1, 1)),
    "stride longer than the kernel": ((3, 9, 17, 19), (20, 9, 1, 2), (2, 3), (0, 1), (1, 1)),
    "stride and dilation": ((5, 20, 17, 9), (130, 20, 3, 2), (3, 2), (2, 1), (2, 3)),
    "many small images": ((50, 30, 2, 2), (16, 30, 3, 3), (1, 1), (1, 1), (1, 1)),
    "one axis": ((4, 20, 57), (70, 20, 5), (2,), (2,), (1,)),
    "three axes": ((2, 7, 4, 7, 6), (33, 7, 3, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 1)),
    "the middle of the kernel": ((80, 12, 1, 1), (24, 12, 3, 3), (1, 1), (1, 1), (1, 1)),
}


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("cpu").load(), DeviceId(0)).backend


@pytest.fixture(autouse=True)
def always_direct(monkeypatch):
    for name in ("_MIN_PRODUCTS", "_MIN_COLUMNS", "_MIN_WINDOWS", "_MIN_PRODUCTS_FOR_THREADS"):
        monkeypatch.setattr(direct_convolution, name, 1)


def check(actual, expected, tolerance=1e-5):
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual.astype(np.float64), expected, atol=tolerance * scale)


def check_all(backend, x, weight, bias, attributes, dtype=np.float32, tolerance=1e-5):
    """The convolution, its adjoint and the gradient by the weight."""
    wide = [tensor if tensor is None else tensor.astype(np.float64) for tensor in (x, weight, bias)]
    narrow = [tensor if tensor is None else tensor.astype(dtype) for tensor in (x, weight, bias)]
    expected = backend.conv(*wide, **attributes)
    check(backend.conv(*narrow, **attributes), expected, tolerance)
    g = RANDOM.normal(size=expected.shape).astype(dtype)
    rest = conv_geometry(x.shape, weight.shape, **attributes).output_padding
    if all(item < step for item, step in zip(rest, attributes["stride"], strict=True)):
        numbers = {**attributes, "output_padding": rest}
        adjoint = backend.conv_transpose(g.astype(np.float64), wide[1], None, **numbers)
        check(backend.conv_transpose(g, narrow[1], None, **numbers), adjoint, tolerance)
    numbers = {**attributes, "kernel_size": weight.shape[2:]}
    gradient = backend.conv_weight_grad(wide[0], g.astype(np.float64), **numbers)
    check(backend.conv_weight_grad(narrow[0], g, **numbers), gradient, tolerance)


def operands(name):
    shape, weight_shape, stride, padding, dilation = GEOMETRIES[name]
    x, weight = RANDOM.normal(size=shape), RANDOM.normal(size=weight_shape)
    pairs = tuple((item, item) for item in padding)
    numbers = {"stride": stride, "padding": pairs, "dilation": dilation, "groups": 1}
    return x, weight, RANDOM.normal(size=weight_shape[0]), numbers


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_results_are_those_of_float64(backend, monkeypatch, name, threads):
    monkeypatch.setattr(direct_convolution, "thread_count", lambda: threads)
    check_all(backend, *operands(name))


@pytest.mark.parametrize(
    "sample",
    [item for item in samples.SAMPLES if item.attributes["groups"] == 1 and item.operands[0].size],
    ids=lambda item: item.note,
)
def test_samples_of_the_kit_give_the_same(backend, sample):
    check_all(backend, *sample.operands, sample.attributes)


def test_16_bit_floats_are_computed_in_float32(backend):
    check_all(backend, *operands("many small images"), dtype=np.float16, tolerance=1e-3)


def test_views_and_read_only_arrays_give_what_copies_do(backend):
    x, weight, bias, numbers = operands("many windows")
    x, weight, bias = (tensor.astype(np.float32) for tensor in (x, weight, bias))
    expected = backend.conv(x, weight, bias, **numbers)
    frozen = x.copy()
    frozen.flags.writeable = False
    turned = np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3)
    for view in (frozen, turned, np.asfortranarray(x), x[::-1].copy()[::-1]):
        found = backend.conv(view, weight, bias, **numbers)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_kernels_are_used_from_a_number_of_products_on(backend, monkeypatch):
    x, weight, bias, numbers = operands("many windows")
    used = []
    monkeypatch.setattr(
        direct_convolution.Direct, "convolved", lambda *arguments: used.append(1) or arguments[1]
    )
    for dtype, count in ((np.float32, 1), (np.float64, 0)):
        backend.conv(x.astype(dtype), weight.astype(dtype), bias.astype(dtype), **numbers)
        assert len(used) == count
        used.clear()
    monkeypatch.setattr(direct_convolution, "_MIN_PRODUCTS", 1 << 60)
    backend.conv(*(tensor.astype(np.float32) for tensor in (x, weight, bias)), **numbers)
    assert not used
