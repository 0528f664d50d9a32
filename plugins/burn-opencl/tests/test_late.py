"""Results that are computed late, and reductions that compute what they read."""

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn.testing import SAMPLES, Subject, check_sample, load_samples
from burn_opencl.driver import found_devices

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

load_samples()


@pytest.fixture(params=["cpu", "gpu"], scope="module")
def device(request, with_kernels):
    """A device that computes late whatever it may, with the kernels for CPUs or those for GPUs."""
    with with_kernels(request.param, large=0, late=0) as device:
        yield device


def is_pending(x):
    return getattr(x.primitive.memory, "is_pending", False)


FUNCTIONS = {
    "relu": (F.relu, lambda a: np.maximum(a, 0)),
    "square": (burn.square, np.square),
    "product": (lambda x: x * x, np.square),
    "number on the left": (lambda x: 2.0 - x, lambda a: 2 - a),
    "two numbers": (lambda x: burn.clip(x, -0.5, 0.25), lambda a: a.clip(-0.5, 0.25)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_reduction_goes_over_memory_once(device, name, dtype):
    function, reference = FUNCTIONS[name]
    a = np.random.default_rng(0).normal(size=(60, 400)).astype(dtype)
    x, expected = burn.asarray(a, device=device), reference(a)
    for axis in (None, 0, 1):
        y = function(x)
        np.testing.assert_allclose(
            burn.sum(y, axis=axis).numpy(), expected.sum(axis=axis), rtol=1e-4, atol=1e-3
        )
        assert is_pending(y)
        # Whoever asks once more finds the result.
        np.testing.assert_allclose(
            burn.max(y, axis=axis).numpy(), expected.max(axis=axis), rtol=1e-6
        )
        assert not is_pending(y)
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


def test_a_view_of_all_elements_is_reduced_so_too_and_a_part_is_not(device):
    a = np.random.default_rng(0).normal(size=(6, 40))
    x = burn.asarray(a, device=device)
    y = burn.square(x)
    np.testing.assert_allclose(
        burn.sum(burn.reshape(y, (8, 30)), axis=0).numpy(), (a * a).reshape(8, 30).sum(0)
    )
    assert is_pending(y)
    y = burn.square(x)
    np.testing.assert_allclose(burn.sum(y[::2]).numpy(), (a * a)[::2].sum())
    assert not is_pending(y)


def test_what_comes_next_comes_after_it(device):
    x = burn.asarray([-1.0, 2.0], device=device)
    y = F.relu(x)
    z = burn.negative(y)
    assert not is_pending(y)
    assert z.tolist() == [0.0, -2.0]
    y = F.relu(x)
    device.sync()
    assert not is_pending(y)
    assert y.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("name", ["relu", "add", "clip", "sum", "mean", "var"])
def test_results_are_the_same(device, name):
    subject = Subject(device.backend, device.id)
    for sample in SAMPLES[name].samples:
        for dtype in subject.dtypes(SAMPLES[name], sample):
            if dtype.name in ("float32", "bfloat16"):
                check_sample(subject, SAMPLES[name], sample, dtype)
