"""Special functions beside SciPy's and PyTorch's: values over their whole range, and gradients."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.special
import torch

import burn
from burn.testing import MockDevice, mock_backend

DEVICES = [
    device
    for device in burn.Device.enumerate()
    if device.backend_name in ("cpu", "opencl", "torch")
]
CPU = burn.Device("cpu")


def spread(low, high, *, count=400, seed=0):
    return np.random.default_rng(seed).uniform(low, high, count)


def powers(low, high, *, count=200):
    return 10.0 ** spread(low, high, count=count)


SPECIAL = np.array([0.0, -0.0, math.inf, -math.inf, math.nan])
REALS = np.concatenate([spread(-30, 30), spread(-2, 2), powers(-300, 2), -powers(-300, 2), SPECIAL])
POSITIVE = np.concatenate(
    [spread(0, 10), powers(-300, 300), 1 + powers(-9, -1), 2 - powers(-9, -1)]
)
UNIT = np.concatenate([spread(0, 1), powers(-300, -1), 1 - powers(-15, -1), SPECIAL, [1.0, 2.0]])

VALUES = {
    "erf": (scipy.special.erf, REALS),
    "erfc": (scipy.special.erfc, REALS),
    "erfinv": (scipy.special.erfinv, np.concatenate([UNIT, -UNIT])),
    "lgamma": (
        scipy.special.gammaln,
        np.concatenate([POSITIVE, spread(-20, 0), [0.0, -1.0, -7.0]]),
    ),
    "digamma": (scipy.special.psi, np.concatenate([POSITIVE, spread(-9.9, 0), SPECIAL[:3]])),
    "i0": (scipy.special.i0, np.concatenate([spread(-20, 20), spread(-700, 700), SPECIAL[:2]])),
    "exp2": (np.exp2, np.concatenate([spread(-1070, 1020), spread(-120, 120), SPECIAL])),
    "cbrt": (np.cbrt, np.concatenate([REALS, powers(2, 300)])),
    "logit": (scipy.special.logit, np.concatenate([UNIT, 0.5 + powers(-15, -1)])),
    "sinc": (np.sinc, np.concatenate([spread(-3, 3), spread(-1000, 1000), np.arange(-5.0, 6.0)])),
}
TOLERANCES = {"float64": (1e-10, 1e-12), "float32": (1e-5, 1e-6)}


def assert_near(actual, expected, dtype, *, factor=1.0):
    """Compare with the tolerances of the kit; what the dtype cannot hold is infinite."""
    relative, absolute = TOLERANCES[dtype]
    with np.errstate(over="ignore"):
        expected = expected.astype(dtype).astype(np.float64)
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=factor * absolute)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_special_function_is_that_of_scipy_over_its_whole_range(device, name, dtype):
    if not device.supports_dtype(dtype):
        pytest.skip(f"{device} has no {dtype}")
    function, numbers = VALUES[name]
    with np.errstate(all="ignore"):
        numbers = numbers.astype(dtype)
        numbers = numbers[(np.abs(numbers) > 1e-37) | (numbers == 0) | np.isnan(numbers)]
        expected = function(numbers.astype(np.float64))
    found = getattr(burn, name)(burn.asarray(numbers, device=device)).numpy()
    # Near a zero of a reflected function its terms are larger than their difference.
    assert_near(found, expected, dtype, factor=10.0 if name in {"lgamma", "digamma"} else 1.0)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 20])
def test_polygamma_is_that_of_scipy(n):
    x = np.concatenate([spread(0, 10), powers(-5, 6), [0.0, -1.0, -2.0, math.inf]])
    found = burn.polygamma(n, burn.asarray(x, device=CPU)).numpy()
    np.testing.assert_allclose(found, scipy.special.polygamma(n, x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_polygamma_of_negative_numbers_follows_from_that_of_positive_ones(n):
    x = spread(-6, -0.01)
    steps = sum((x + step) ** -(n + 1.0) for step in range(7))
    expected = scipy.special.polygamma(n, x + 7.0) - (-1) ** n * math.factorial(n) * steps
    found = burn.polygamma(n, burn.asarray(x, device=CPU)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_lgamma_keeps_its_digits_near_its_zeros():
    distance = np.array([1e-12, 1e-9, 1e-6])
    at_1, at_2 = [burn.lgamma(burn.asarray(zero + distance, device=CPU)).numpy() for zero in (1, 2)]
    real = 1.0 + distance - 1.0  # what float64 keeps of the distance
    slope = -np.euler_gamma + math.pi**2 / 12 * real
    np.testing.assert_allclose(at_1, slope * real, rtol=1e-9)
    real = 2.0 + distance - 2.0
    slope = 1 - np.euler_gamma + (math.pi**2 / 6 - 1) / 2 * real
    np.testing.assert_allclose(at_2, slope * real, rtol=1e-9)


def test_erfc_keeps_its_digits_where_it_is_small():
    x = np.array([1.5, 5.0, 12.0, 20.0, 26.0])
    exact = [math.erfc(value) for value in x]
    np.testing.assert_allclose(burn.erfc(burn.asarray(x, device=CPU)).numpy(), exact, rtol=1e-12)


GRADIENTS = {
    "erfc": (burn.erfc, torch.erfc, spread(-3, 3)),
    "erfinv": (burn.erfinv, torch.erfinv, spread(-0.95, 0.95)),
    "lgamma": (burn.lgamma, torch.lgamma, spread(-2.9, 5)),
    "digamma": (burn.digamma, torch.digamma, spread(0.3, 5)),
    "polygamma": (lambda x: burn.polygamma(2, x), lambda x: torch.polygamma(2, x), spread(0.3, 5)),
    "exp2": (burn.exp2, torch.exp2, spread(-3, 3)),
    "rsqrt": (burn.rsqrt, torch.rsqrt, spread(0.1, 3)),
    "cbrt": (burn.cbrt, lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3), spread(0.1, 3)),
    "logit": (burn.logit, torch.logit, spread(0.05, 0.95)),
    "logit with epsilon": (
        lambda x: burn.logit(x, epsilon=0.2),
        lambda x: torch.logit(x, eps=0.2),
        spread(0.05, 0.95),
    ),
    "xlogy": (lambda x: burn.xlogy(x, x + 2), lambda x: torch.xlogy(x, x + 2), spread(-1, 3)),
    "lerp": (
        lambda x: burn.lerp(x, x * x, burn.sin(x)),
        lambda x: torch.lerp(x, x * x, torch.sin(x)),
        spread(-2, 2),
    ),
    "sinc": (burn.sinc, lambda x: torch.sin(math.pi * x) / (math.pi * x), spread(-3, 3)),
    "logsumexp": (
        lambda x: burn.logsumexp(x.reshape((20, -1)) * x.reshape((20, -1)), axis=1),
        lambda x: torch.logsumexp(x.reshape((20, -1)) * x.reshape((20, -1)), 1),
        spread(-30, 30),
    ),
    "logcumsumexp": (
        lambda x: burn.logcumsumexp(x.reshape((20, -1)) * x.reshape((20, -1)), axis=1),
        lambda x: torch.logcumsumexp(x.reshape((20, -1)) * x.reshape((20, -1)), 1),
        spread(-4, 4),
    ),
    "nan_to_num": (
        lambda x: burn.nan_to_num(x * x, nan=3.0),
        lambda x: torch.nan_to_num(x * x, nan=3.0),
        np.concatenate([spread(-2, 2, count=5), [math.nan, math.inf]]),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_first_and_second_gradients_are_those_of_torch(name):
    function, of_torch, numbers = GRADIENTS[name]
    first = burn.grad(lambda x: burn.sum(function(x)))
    second = burn.grad(lambda x: burn.sum(first(x)))
    x = burn.asarray(numbers, device=CPU)

    y = torch.tensor(numbers, requires_grad=True)
    (slope,) = torch.autograd.grad(of_torch(y).sum(), y, create_graph=True)
    np.testing.assert_allclose(first(x).numpy(), slope.detach().numpy(), rtol=1e-8, atol=1e-10)
    if name not in {"digamma", "polygamma", "nan_to_num"} or slope.requires_grad:
        (bend,) = torch.autograd.grad(slope.sum(), y)
        np.testing.assert_allclose(second(x).numpy(), bend.numpy(), rtol=1e-7, atol=1e-9)


def test_i0_has_all_derivatives_also_at_0():
    numbers = np.array([-9.0, -1.0, 0.0, 0.5, 8.0])
    x = burn.asarray(numbers, device=CPU)
    first = burn.grad(lambda x: burn.sum(burn.i0(x)))
    second = burn.grad(lambda x: burn.sum(first(x)))
    np.testing.assert_allclose(first(x).numpy(), scipy.special.ivp(0, numbers, 1), rtol=1e-12)
    np.testing.assert_allclose(second(x).numpy(), scipy.special.ivp(0, numbers, 2), rtol=1e-12)


def test_sinc_has_all_derivatives_at_0():
    x = burn.asarray(0.0, dtype="float64", device=CPU)
    slopes = [burn.sinc]
    for _ in range(4):
        slopes.append(burn.grad(slopes[-1]))
    found = [slope(x).item() for slope in slopes]
    np.testing.assert_allclose(found, [1.0, 0.0, -(math.pi**2) / 3, 0.0, math.pi**4 / 5], atol=1e-9)


def test_gradients_of_log_sums_stay_finite_beside_infinities():
    x = burn.asarray([[-math.inf, 0.0], [-math.inf, -math.inf]], device=CPU)
    slope = burn.grad(lambda x: burn.sum(burn.logsumexp(x, axis=1)))(x)
    assert slope.tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_xlogy_is_0_where_its_first_operand_is():
    zero = burn.zeros(4, device=CPU)
    others = burn.asarray([0.0, 2.0, math.inf, -1.0], device=CPU)
    first, second = burn.grad(lambda x, y: burn.sum(burn.xlogy(x, y)), argnums=(0, 1))(zero, others)
    assert burn.xlogy(zero, others).tolist() == [0.0] * 4
    assert math.isnan(burn.xlogy(zero, math.nan).tolist()[0])
    np.testing.assert_allclose(first.tolist(), [0.0, math.log(2.0), 0.0, 0.0], rtol=1e-6)
    assert second.tolist() == [0.0] * 4


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_integers_are_divided_towards_0_as_torch_does(device):
    x1 = np.array([7, -7, 7, -7, -(2**31), -(2**31), 5], np.int32)
    x2 = np.array([2, 2, -2, -2, -1, 1, 0], np.int32)
    found = burn.trunc_divide(burn.asarray(x1, device=device), burn.asarray(x2, device=device))
    assert found.tolist() == [3, -3, -3, 3, -(2**31), -(2**31), 0]
    assert burn.trunc_divide(burn.asarray(x1, device=device), 0).tolist() == [0] * 7


def test_quotients_and_rests_of_truncating_division_give_the_dividend():
    x1 = burn.asarray(np.round(spread(-1000, 1000)), device=CPU)
    x2 = burn.asarray(np.round(spread(-9, 9, seed=1)) + 0.5, device=CPU)
    again = burn.trunc_divide(x1, x2) * x2 + burn.fmod(x1, x2)
    assert again.tolist() == x1.tolist()


SAME_SIZE = [
    pair
    for size in (1, 2, 4, 8)
    for pair in itertools.product(
        [
            dtype
            for dtype in burn.dtype.DType.members()
            if dtype.itemsize == size and (dtype.is_float or dtype.is_integer)
        ],
        repeat=2,
    )
]


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_bits_are_read_as_every_dtype_of_their_size(device):
    words = np.random.default_rng(0).integers(0, 256, (6, 8), np.uint8)
    for source, dtype in SAME_SIZE:
        if device.supports_dtype(source) and device.supports_dtype(dtype):
            array = words.view(source.numpy)
            found = burn.bitcast(burn.asarray(array, device=device)[::2].mT, dtype).numpy()
            expected = array[::2].T.view(dtype.numpy)
            assert found.dtype == dtype.numpy
            # Some libraries make a signalling NaN of 16 bits a quiet one.
            same = (found == expected) | ((found != found) & (expected != expected))  # noqa: PLR0124 — NaN
            assert same.all(), (source, dtype)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_later_write_does_not_reach_the_bits(device):
    x = burn.asarray([1.0, 2.0], dtype="float32", device=device)
    bits = burn.bitcast(x, "int32")
    x[0] = 5.0
    bits[1] = 0
    assert x.tolist() == [5.0, 2.0]
    assert bits.tolist() == [0x3F800000, 0]


def test_bits_of_what_is_tracked_are_refused():
    x = burn.zeros(2, device=CPU.autodiff()).require_grad()
    with pytest.raises(burn.UnsupportedOpError, match="bitcast"):
        burn.bitcast(x, "int32")


@pytest.mark.parametrize("beta", [0.0, 2.5, 12.0, 60.0])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 32])
@pytest.mark.parametrize("periodic", [False, True])
def test_windows_are_those_of_torch(size, beta, periodic):
    for dtype in ("float64", "float32"):
        options = {"periodic": periodic, "dtype": dtype, "device": CPU}
        found = burn.signal.kaiser_window(size, beta=beta, **options).numpy()
        expected = torch.kaiser_window(size, periodic, beta, dtype=torch.float64).numpy()
        assert_near(found, expected, dtype)
        found = burn.signal.bartlett_window(size, **options).numpy()
        expected = torch.bartlett_window(size, periodic, dtype=torch.float64).numpy()
        assert_near(found, expected, dtype)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_transforms_over_two_axes_are_those_of_numpy(name):
    x = spread(-1, 1, count=120).reshape(4, 5, 6)
    x = x if name == "rfft2" else x + 1j * spread(-1, 1, count=120, seed=1).reshape(4, 5, 6)
    ours, theirs = getattr(burn.fft, name), getattr(np.fft, name)
    there = burn.asarray(x, device=CPU)
    for options in ({}, {"axes": (0, 1)}, {"s": (3, 8)}, {"norm": "ortho", "axes": (-1, 0)}):
        np.testing.assert_allclose(ours(there, **options).numpy(), theirs(x, **options), atol=1e-12)


@functools.cache
def functions_of_one_tensor():
    return {**{name: getattr(burn, name) for name in VALUES}, "rsqrt": burn.rsqrt}


def test_devices_without_64_bits_have_all_of_them():
    device = MockDevice("npu", without=("float64", "int64", "uint64"))
    with burn.registered(mock_backend("acme", [device])):
        x = burn.asarray([0.25, 0.5], dtype="float32", device="acme")
        for name, function in functions_of_one_tensor().items():
            expected = function(burn.asarray([0.25, 0.5], dtype="float32", device=CPU))
            found = function(x).tolist()
            np.testing.assert_allclose(found, expected.tolist(), rtol=1e-5, err_msg=name)
        assert burn.logsumexp(x).item() == pytest.approx(math.log(math.exp(0.25) + math.exp(0.5)))
        assert burn.bitcast(x, "int32").tolist() == [0x3E800000, 0x3F000000]
        assert burn.nan_to_num(x / 0.0).tolist() == [burn.finfo(burn.float32).max] * 2
        assert burn.polygamma(1, x).shape == burn.signal.kaiser_window(2, device="acme").shape


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_floats_are_rounded_once(dtype):
    x = burn.asarray(spread(0.1, 0.9), dtype=dtype, device=CPU)
    wide = x.astype("float32")
    for name, function in functions_of_one_tensor().items():
        assert function(x).tolist() == function(wide).astype(dtype).tolist(), name
    assert burn.logsumexp(x).item() == burn.logsumexp(wide).astype(dtype).item()


def test_empty_tensors_and_integers_are_taken():
    for name, function in functions_of_one_tensor().items():
        assert function(burn.zeros((0, 3), device=CPU)).shape == (0, 3), name
        assert function(burn.asarray([1, 1], device=CPU)).dtype is burn.float32, name
    assert burn.logsumexp(burn.zeros((2, 0), device=CPU), axis=1).tolist() == [-math.inf] * 2
    assert burn.nan_to_num(burn.asarray([1, 2], device=CPU)).tolist() == [1, 2]


def test_compiled_functions_give_what_eager_ones_give():
    def every(x):
        return [function(x) for function in functions_of_one_tensor().values()]

    x = burn.asarray(spread(0.1, 0.9), device=CPU)
    for found, expected in zip(burn.compile(every)(x), every(x), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
