"""Random numbers as users draw them; the generator itself is in the conformance samples."""

import itertools
import math
import threading

import numpy as np
import pytest
import torch

import burn
from burn import random
from burn.generator import get_state, set_state

CPU = burn.Device("cpu")


def test_the_same_seed_gives_the_same_numbers_and_another_others():
    def draw(seed):
        CPU.seed(seed)
        return [
            random.uniform(5, device=CPU).tolist(),
            random.normal((2, 3), device=CPU).tolist(),
            random.integers(4, 0, 1000, device=CPU).tolist(),
            random.permutation(6, device=CPU).tolist(),
        ]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_calls_continue_where_the_last_one_ended():
    CPU.seed(5)
    first, second = random.uniform(8, device=CPU), random.uniform(8, device=CPU)
    CPU.seed(5)
    both = random.uniform(16, device=CPU)
    assert first.tolist() + second.tolist() == both.tolist()


def test_a_large_draw_is_the_same_whether_in_one_or_in_parts():
    CPU.seed(9)
    whole = random.uniform(200_000, device=CPU).numpy()
    CPU.seed(9)
    parts = [random.uniform(n, device=CPU).numpy() for n in (4, 40_000, 100_000, 59_996)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_the_state_can_be_read_and_restored():
    random.uniform(3, device=CPU)
    state = get_state(CPU.generator)
    first = random.normal(5, device=CPU).tolist()
    set_state(CPU.generator, state)
    assert random.normal(5, device=CPU).tolist() == first


def test_an_autodiff_device_draws_from_the_generator_of_its_hardware():
    CPU.seed(3)
    first = random.uniform(4, device=CPU).tolist()
    CPU.autodiff().seed(3)
    assert random.uniform(4, device=CPU.autodiff()).tolist() == first


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers_lie_in_a_half_open_range(dtype):
    CPU.seed(0)
    for low, high in ((0.0, 1.0), (-3.0, 5.0), (0.1, 0.3)):
        x = random.uniform(50_000, low, high, dtype=dtype, device=CPU)
        kind = burn.DType.of(dtype).numpy.type
        values = x.numpy()
        assert (values >= kind(low)).all()
        assert (values < kind(high)).all()
        middle = values.astype("float64").mean()
        assert abs(middle - (low + high) / 2) < 0.02 * (high - low)


def test_normal_numbers_have_their_mean_and_standard_deviation():
    CPU.seed(1)
    x = random.normal(100_000, 3.0, 2.0, dtype="float64", device=CPU).numpy()
    assert abs(x.mean() - 3.0) < 0.03
    assert abs(x.std() - 2.0) < 0.03
    assert abs(((x - 3) / 2) ** 3).mean() == pytest.approx(1.596, abs=0.05)


def truncated(count, *, seed=0, **options):
    device = burn.Device(options.pop("device", CPU))
    device.seed(seed)
    return random.truncated_normal(count, device=device, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("mean", "std", "low", "high"),
    [
        (0.0, 1.0, -2.0, 2.0),
        (0.5, 0.02, 0.5, 0.6),
        (1.0, 2.0, -1.0, math.inf),
        (0.0, 1.0, 2.0, 9.0),
        (0.0, 1.0, -0.1, 0.1),
        (-3.0, 1.5, -math.inf, math.inf),
    ],
)
def test_truncated_normal_numbers_are_the_quantiles_of_uniform_ones(mean, std, low, high, dtype):
    found = truncated(20_000, mean=mean, std=std, low=low, high=high, dtype=dtype)
    assert found.dtype is burn.DType.of(dtype)
    numbers = found.astype("float64").numpy()
    assert np.isfinite(numbers).all()
    kind = burn.DType.of(dtype).numpy.type
    assert (numbers >= kind(low)).all()
    assert (numbers <= kind(high)).all()
    # A uniform number for each: their order is kept, and their distribution.
    start, stop = [math.erf((item - mean) / std / math.sqrt(2.0)) for item in (low, high)]
    largest = 1.0 - 2.0 ** (-24 if dtype == "float32" else -53)
    CPU.seed(0)
    uniform = random.uniform(
        20_000, max(start, -largest), min(stop, largest), dtype=dtype, device=CPU
    )
    expected = torch.erfinv(torch.tensor(uniform.astype("float64").numpy()))
    expected = (mean + std * math.sqrt(2.0) * expected).numpy()
    rtol = 1e-6 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(
        numbers, np.clip(expected, low, high), rtol=rtol, atol=rtol * (std + abs(mean))
    )


def test_truncated_normal_numbers_have_the_moments_of_the_truncated_distribution():
    numbers = truncated(200_000, low=-1.0, high=2.0, dtype="float64").numpy()
    # With the density d at the bounds and the probability z between them: (d(low) - d(high)) / z.
    below, above = [math.exp(-(number**2) / 2) / math.sqrt(2 * math.pi) for number in (-1.0, 2.0)]
    between = (math.erf(2.0 / math.sqrt(2.0)) + math.erf(1.0 / math.sqrt(2.0))) / 2
    mean = (below - above) / between
    variance = 1 + (-below - 2 * above) / between - mean**2
    assert abs(numbers.mean() - mean) < 0.01
    assert abs(numbers.var() - variance) < 0.01


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_truncated_normal_numbers_are_the_same_on_every_device(device, dtype):
    if not device.supports_dtype(burn.DType.of(dtype)):
        with pytest.raises(burn.DTypeError):
            truncated(4, dtype=dtype, device=device)
        return
    options = {"dtype": dtype, "std": 0.5, "low": -1.0, "high": 2.0}
    expected = truncated((50, 4), **options).astype("float64").numpy()
    found = truncated((50, 4), device=device, **options).astype("float64").numpy()
    rtol = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("low", "high"), [(2.0, 2.0), (1.0, -1.0), (8.0, 9.0), (math.nan, 1.0), (-math.inf, -5.0)]
)
def test_a_range_that_is_hardly_drawn_from_is_refused(low, high):
    with pytest.raises(burn.ArgumentError, match=r"random\.truncated_normal"):
        truncated(3, low=low, high=high)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 6, "int8"), (-6, 6, "int32"), (0, 1 << 32, "int64"), (-(2**63), 2**63, "int64"),
     (0, 1 << 64, "uint64"), (10, 10 + (1 << 40), "int64"),
     (-(2**62), 2**62 + 3, "int64")],
)  # fmt: skip
def test_integers_cover_their_range(low, high, dtype):
    CPU.seed(2)
    values = random.integers(4000, low, high, dtype=dtype, device=CPU).numpy()
    assert values.dtype == dtype
    assert low <= int(values.min())
    assert int(values.max()) < high
    buckets = (values.astype(object) - low) * 6 // (high - low)
    counts = np.bincount(np.array(buckets, dtype=int), minlength=6)
    assert (abs(counts - 4000 / 6) < 120).all()


def test_a_permutation_has_every_number_once():
    CPU.seed(4)
    order = random.permutation(1000, device=CPU)
    assert sorted(order.tolist()) == list(range(1000))
    assert order.dtype is burn.int64


def test_bernoulli_is_true_with_its_probability():
    CPU.seed(6)
    x = random.bernoulli(20_000, 0.3, device=CPU)
    assert x.dtype is burn.bool
    assert abs(x.astype("float32").mean().item() - 0.3) < 0.02


def test_threads_never_get_the_same_numbers():
    CPU.seed(8)
    drawn = []

    def draw():
        drawn.extend(tuple(random.uniform(4, device=CPU).tolist()) for _ in range(200))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 1600


def test_numpys_generator_is_left_alone():
    np.random.seed(0)  # noqa: NPY002 — the state that users share
    expected = np.random.rand()  # noqa: NPY002 — as above
    np.random.seed(0)  # noqa: NPY002 — as above
    random.normal(100, device=CPU)
    assert np.random.rand() == expected  # noqa: NPY002 — as above


def test_categorical_draws_classes_with_their_weights():
    CPU.seed(3)
    weights = burn.asarray([[1.0, 3.0, 0.0], [0.0, 0.0, 2.0]], device=CPU)
    drawn = random.categorical(weights, 8000)
    assert drawn.shape == (2, 8000)
    assert drawn.dtype is burn.int64
    first = np.bincount(drawn[0].numpy(), minlength=3) / 8000
    np.testing.assert_allclose(first, [0.25, 0.75, 0.0], atol=0.02)
    assert (drawn[1] == 2).all()
    for wrong in (burn.ones((), device=CPU), burn.ones((2, 0), device=CPU)):
        with pytest.raises(burn.ShapeError, match="no classes"):
            random.categorical(wrong)


@pytest.mark.parametrize(
    "wrong", [[1.0, -1.0], [0.0, 0.0], [1.0, math.nan], [1.0, math.inf], [[1.0, 1.0], [0.0, 0.0]]]
)
@pytest.mark.parametrize("device", ["cpu", "torch/cpu", "opencl/cpu"])
def test_weights_that_are_no_weights_are_refused(wrong, device):
    try:
        weights = burn.asarray(wrong, device=device)
    except burn.DeviceUnavailableError as error:
        pytest.skip(str(error))
    with pytest.raises(burn.OutOfRangeError, match=r"random\.categorical: a weight is"):
        random.categorical(weights, 2).tolist()


WEIGHTS = [0.1, 0.2, 0.3, 0.4]


def test_a_choice_with_replacement_has_the_given_probabilities():
    CPU.seed(1)
    drawn = random.choice(4, (40, 100), p=burn.asarray(WEIGHTS, device=CPU))
    counts = np.bincount(drawn.numpy().reshape(-1), minlength=4) / 4000
    np.testing.assert_allclose(counts, WEIGHTS, atol=0.02)
    counts = np.bincount(random.choice(4, 4000, device=CPU).numpy(), minlength=4) / 4000
    np.testing.assert_allclose(counts, [0.25] * 4, atol=0.02)


def test_a_choice_without_replacement_draws_from_what_is_left():
    CPU.seed(2)
    p = burn.asarray(WEIGHTS, device=CPU)
    draw = burn.vmap(lambda _: random.choice(4, 2, replace=False, p=p))
    pairs = draw(burn.zeros(4000, device=CPU)).numpy()
    for first, second in itertools.permutations(range(4), 2):
        expected = WEIGHTS[first] * WEIGHTS[second] / (1 - WEIGHTS[first])
        found = np.mean((pairs == [first, second]).all(axis=1))
        assert abs(found - expected) < 0.02
    assert sorted(random.choice(50, 50, replace=False, device=CPU).tolist()) == list(range(50))
    only = burn.asarray([0.0, 2.0, 0.0, 1.0], device=CPU)
    assert sorted(random.choice(4, 2, replace=False, p=only).tolist()) == [1, 3]


def test_a_choice_takes_slices_along_an_axis_and_has_gradients():
    x = burn.asarray(np.arange(12.0).reshape(3, 4), device=CPU.autodiff()).require_grad()
    drawn = random.choice(x, (2, 5), axis=1)
    assert drawn.shape == (3, 2, 5)
    gradient = x.grad(drawn.sum().backward())
    assert gradient.sum().item() == 30.0
    assert random.choice(x).shape == (4,)
    assert random.choice(0, 0, device=CPU).shape == (0,)
    for count in (1, (2, 3)):
        with pytest.raises(burn.ArgumentError, match="nothing to draw from"):
            random.choice(0, count, device=CPU)


@pytest.mark.parametrize("device", ["torch/cpu", "opencl/cpu"])
def test_choices_are_the_same_on_every_device(device):
    def draw(device):
        burn.random.seed(7, device=device)
        p = burn.asarray(RANDOM_WEIGHTS, device=device)
        return [
            random.choice(100, 30, replace=False, p=p).tolist(),
            random.choice(100, 30, replace=False, device=device).tolist(),
            random.choice(100, 30, p=p).tolist(),
            random.choice(100, 30, device=device).tolist(),
        ]

    try:
        expected = draw(device)
    except burn.DeviceUnavailableError as error:
        pytest.skip(str(error))
    assert draw("cpu") == expected


RANDOM_WEIGHTS = np.random.default_rng(3).random(100).astype(np.float32)


@pytest.mark.parametrize("wrong", [[1.0, -1.0, 1.0], [1.0, 0.0, 0.0], [1.0, math.nan, 1.0]])
def test_too_few_weights_for_a_choice_without_replacement_are_refused(wrong):
    with pytest.raises(burn.OutOfRangeError, match="a weight is"):
        random.choice(3, 2, replace=False, p=burn.asarray(wrong, device=CPU)).tolist()


FAILING = {
    "more than there are": lambda: random.choice(3, 4, replace=False, device=CPU),
    "weights of another length": lambda: random.choice(3, p=burn.ones(2, device=CPU)),
    "another device": lambda: random.choice(burn.ones(2, device=CPU), device="torch/cpu"),
    "a negative length": lambda: random.uniform((2, -1), device=CPU),
    "a range that is empty": lambda: random.uniform(3, 2.0, 1.0, device=CPU),
    "no floats": lambda: random.uniform(3, dtype="int32", device=CPU),
    "too much memory": lambda: random.uniform(1 << 50, device=CPU),
    "a range without a number": lambda: random.integers(3, 5, 5, device=CPU),
    "half a number": lambda: random.integers(3, 0.5, 5, device=CPU),
    "a negative deviation": lambda: random.normal(3, std=-1.0, device=CPU),
    "no deviation": lambda: random.truncated_normal(3, std=0.0, device=CPU),
    "truncated integers": lambda: random.truncated_normal(3, dtype="int32", device=CPU),
    "an infinite mean": lambda: random.normal(3, mean=math.inf, device=CPU),
    "no probability": lambda: random.bernoulli(3, 1.5, device=CPU),
    "no count": lambda: random.permutation(-1, device=CPU),
    "weights": lambda: random.categorical(burn.asarray([-1.0, 2.0], device=CPU)),
    "classes of floats": lambda: random.categorical(burn.ones(2, device=CPU), dtype="float32"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_call_that_fails_draws_nothing(name):
    CPU.seed(0)
    expected = random.uniform(3, device=CPU).tolist()
    CPU.seed(0)
    with pytest.raises(burn.BurnError):
        FAILING[name]()
    assert random.uniform(3, device=CPU).tolist() == expected
