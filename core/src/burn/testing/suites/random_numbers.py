"""Suites ``seeding`` and ``distributions``: the numbers of every backend, and what they look like.

Seeds are fixed, so that a check gives the same verdict every time. A sample of n numbers is
compared with its distribution by the statistic of Kolmogorov and Smirnov, the largest distance D
of the two distribution functions. Its critical value for a significance of 0.1 % is that of
Stephens, "EDF Statistics for Goodness of Fit and Some Comparisons", Journal of the American
Statistical Association 69 (1974), table 1A: ``(sqrt(n) + 0.12 + 0.11 / sqrt(n)) D < 1.949``. For
a discrete distribution the true significance is smaller still. Moments may be off by four of their
standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, Kind, bfloat16, bool_, float16, float32, int32, uint32
from burn.generator import get_state, set_state
from burn.ops.arrays.random import integer_words, normal_words, uniform_words
from burn.testing.op_samples import SAMPLES, Array
from burn.testing.samples.arrays.random import KNOWN_ANSWERS, philox_words
from burn.testing.suites.expectations import expect, expect_values
from burn.testing.suites.suite import DeviceSuite, for_each_dtype

__all__ = ["SUITES", "kolmogorov_smirnov"]

_seeding: Final = DeviceSuite("seeding", "a seed gives the numbers that it gives everywhere")
_distributions: Final = DeviceSuite("distributions", "random numbers are distributed as they say")

_CRITICAL_STATISTIC: Final = 1.949
_DRAWS: Final = 8000
_floats: Final = for_each_dtype(lambda dtype: dtype.is_float)


# Seeding.


@_seeding.check("bits are those of Random123")
def known_answers(device: Device) -> None:
    """The known answers of the generator's authors."""
    dtype = uint32 if device.supports_dtype(uint32) else int32
    for note, (seed, offset, words) in KNOWN_ANSWERS.items():
        bits = device.ops.random_bits(seed=seed, offset=offset, count=4, dtype=dtype)
        found = [int(word) % (1 << 32) for word in device.ops.backend.to_data(bits).array]
        expect(found == list(words), f"{note}: the words are {found}, not {list(words)}")


def _expected(op: str, seed: int, offset: int, dtype: DType, **attributes: Any) -> Array:
    """What the reference of an op that draws numbers gives."""
    values = SAMPLES[op].reference(seed=seed, offset=offset, dtype=dtype, **attributes)
    return np.asarray(values).astype(dtype.numpy)


@_seeding.check("a seeded program draws what it draws on every backend", dtypes=_floats)
def program(device: Device, dtype: DType) -> None:
    """Calls one after the other, each consuming whole blocks of four words."""
    device.seed(1234)
    offset = 0
    for count in (5, 1, 64, 7):
        drawn = burn.random.uniform((count,), -1.0, 3.0, dtype=dtype, device=device)
        limits = {"low": -1.0, "high": 3.0}
        expected = _expected("random_uniform", 1234, offset, dtype, shape=(count,), **limits)
        expect_values(f"uniform number {offset}", drawn, expected)
        offset += -(-uniform_words(count, dtype) // 4)
        drawn = burn.random.normal((count, 2), 1.0, 0.5, dtype=dtype, device=device)
        limits = {"mean": 1.0, "std": 0.5}
        expected = _expected("random_normal", 1234, offset, dtype, shape=(count, 2), **limits)
        expect_values(f"normal number {offset}", drawn, expected, exact=False)
        wide = float32 if dtype.itemsize < 4 else dtype
        offset += -(-normal_words(2 * count, wide) // 4)


@_seeding.check("integers and booleans too", dtypes=for_each_dtype(lambda dtype: dtype.is_integer))
def integer_program(device: Device, dtype: DType) -> None:
    """Integers of each dtype, and what is made of bits."""
    device.seed(99)
    low, high = (-100, 100) if dtype.kind is Kind.INT else (3, 200)
    drawn = burn.random.integers((50,), low, high, dtype=dtype, device=device)
    expected = _expected("random_integers", 99, 0, dtype, shape=(50,), low=low, high=high)
    expect_values("integers", drawn, expected)
    offset = -(-integer_words(50, low, high) // 4)
    fractions = _expected("random_uniform", 99, offset, float32, shape=(40,), low=0.0, high=1.0)
    drawn = burn.random.bernoulli((40,), 0.3, device=device)
    expect_values("booleans", drawn, fractions < np.float32(0.3))
    words = philox_words(99, offset + 10, 20)
    order = np.argsort([(word >> 1) & 0x7FFFFFFF for word in words], kind="stable")
    drawn = burn.random.permutation(20, device=device)
    expect_values("a permutation", drawn, order.astype(drawn.dtype.numpy))


@_seeding.check("a seed starts anew, and another gives others")
def starts_anew(device: Device) -> None:
    """Any integer is a seed, modulo 2**64."""

    def draw(seed: int) -> list[Any]:
        device.seed(seed)
        drawn: list[Any] = burn.random.uniform(6, device=device).tolist()
        return drawn

    expect(draw(1) == draw(1), "the same seed gave other numbers")
    expect(draw(1) != draw(2), "another seed gave the same numbers")
    expect(draw(-1) == draw((1 << 64) - 1), "a negative seed is not taken modulo 2**64")


@_seeding.check("the state is read and restored")
def state_is_restored(device: Device) -> None:
    """As checkpoints of a training do it."""
    device.seed(5)
    burn.random.uniform(3, device=device)
    state = get_state(device.generator)
    first = burn.random.normal(5, device=device).tolist()
    set_state(device.generator, state)
    expect(burn.random.normal(5, device=device).tolist() == first, "other numbers came")


@_seeding.check("the autodiff device draws from the same generator")
def autodiff_draws(device: Device) -> None:
    """There is one generator per piece of hardware."""
    device.seed(3)
    first = burn.random.uniform(4, device=device).tolist()
    device.autodiff().seed(3)
    second = burn.random.uniform(4, device=device.autodiff()).tolist()
    expect(first == second, "the autodiff device drew other numbers")


@_seeding.check("a large draw is that of many small ones")
def large_draw(device: Device) -> None:
    """However a backend splits the work, the numbers are the same."""
    device.seed(8)
    whole = burn.random.uniform(40_000, dtype=float32, device=device).numpy()
    device.seed(8)
    parts = [
        burn.random.uniform(n, dtype=float32, device=device).numpy() for n in (4, 20_000, 19_996)
    ]
    expect_values("draws one after the other", np.concatenate(parts), whole)


# Distributions.


def kolmogorov_smirnov(numbers: Array, distribution: Callable[[Array], Array]) -> float:
    """Largest distance of a sample's distribution function from another.

    Parameters
    ----------
    numbers : array, shape (n,)
        The sample; values may repeat.
    distribution : callable
        The probability of a value that is not larger, for an array of values.

    Examples
    --------
    >>> import numpy as np
    >>> middles = (np.arange(10) + 0.5) / 10
    >>> round(kolmogorov_smirnov(middles, lambda x: x), 10)
    0.05
    """
    values, counts = np.unique(numbers, return_counts=True)
    after = np.cumsum(counts) / numbers.size
    theory = distribution(values)
    above = np.abs(after - theory).max()
    # Just below a value; a discrete distribution has its own step there.
    jumps = counts.max() > 1
    below = 0.0 if jumps else float(np.abs(theory - (after - counts / numbers.size)).max())
    return max(float(above), below)


def _fits(what: str, numbers: Array, distribution: Callable[[Array], Array]) -> None:
    distance = kolmogorov_smirnov(numbers.astype(np.float64).reshape(-1), distribution)
    root = math.sqrt(numbers.size)
    statistic = (root + 0.12 + 0.11 / root) * distance
    expect(
        statistic < _CRITICAL_STATISTIC,
        f"{what}: the distance of Kolmogorov and Smirnov is {distance:.4f}, which times "
        f"{statistic / distance:.1f} is {statistic:.3f}, over {_CRITICAL_STATISTIC}",
    )


def _has_moments(what: str, numbers: Array, mean: float, std: float, fourth: float) -> None:
    """Mean and variance; how sure the latter is says the fourth central moment."""
    values = numbers.astype(np.float64).reshape(-1)
    count = values.size
    allowed = 4 * std / math.sqrt(count)
    found = values.mean()
    expect(abs(found - mean) <= allowed, f"{what}: mean {found:.5f}, not {mean} ± {allowed:.5f}")
    allowed = 4 * math.sqrt((fourth - std**4) / count)
    found = values.var()
    expect(
        abs(found - std**2) <= allowed,
        f"{what}: variance {found:.5f}, not {std**2:.5f} ± {allowed:.5f}",
    )


@_distributions.check("uniform numbers", dtypes=_floats)
def uniform(device: Device, dtype: DType) -> None:
    """Half-open, flat, with the mean and the variance of a flat distribution."""
    bits = {float16: 11, bfloat16: 8}.get(dtype)
    device.seed(2024)
    numbers = burn.random.uniform(_DRAWS, dtype=dtype, device=device).numpy().astype(np.float64)
    expect((numbers >= 0).all() and (numbers < 1).all(), "a number is not in [0, 1)")

    def distribution(x: Array) -> Array:
        return x if bits is None else (np.floor(x * 2.0**bits) + 1) * 2.0**-bits

    _fits("uniform numbers", numbers, distribution)
    mean = 0.5 if bits is None else 0.5 - 2.0 ** -(bits + 1)
    _has_moments("uniform numbers", numbers, mean, 12**-0.5, 1 / 80)
    for low, high in ((-3.0, 5.0), (0.1, 0.3)):
        drawn = burn.random.uniform(_DRAWS, low, high, dtype=dtype, device=device).numpy()
        kind = dtype.numpy.type
        expect((drawn >= kind(low)).all(), f"a number is below {low}")
        expect((drawn < kind(high)).all(), f"a number is not below {high}")


@_distributions.check("normal numbers", dtypes=_floats)
def normal(device: Device, dtype: DType) -> None:
    """Against the error function; both halves of what Box and Muller give."""
    device.seed(77)
    numbers = burn.random.normal(_DRAWS, 2.0, 3.0, dtype=dtype, device=device).numpy()
    standard = (numbers.astype(np.float64) - 2) / 3

    def distribution(x: Array) -> Array:
        return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x])

    # A number of 8 bits stands for all that round to it, up to half a step away.
    step = 2.0**-8 * np.abs(standard + 2 / 3) if dtype is bfloat16 else 0.0
    spread = np.random.Generator(np.random.PCG64(0)).uniform(-0.5, 0.5, _DRAWS)
    _fits("normal numbers", standard + step * spread, distribution)
    _has_moments("normal numbers", standard, 0.0, 1.0, 3.0)
    first, second = standard[: _DRAWS // 2], standard[_DRAWS // 2 :]
    correlation = float(np.corrcoef(first, second)[0, 1])
    allowed = 4 / math.sqrt(_DRAWS // 2)
    expect(abs(correlation) < allowed, f"the halves of the pairs correlate: {correlation:.4f}")


@_distributions.check("integers", dtypes=for_each_dtype(lambda dtype: dtype.is_integer))
def integers(device: Device, dtype: DType) -> None:
    """A range that divides no power of two, and, where it fits, a range of over 32 bits."""
    device.seed(31)
    low, high = (-30, 70) if dtype.kind is Kind.INT else (5, 105)
    drawn = burn.random.integers(_DRAWS, low, high, dtype=dtype, device=device).numpy()
    values = drawn.astype(np.int64)
    expect(values.min() == low, f"the smallest integer is {values.min()}, not {low}")
    expect(values.max() == high - 1, f"the largest integer is {values.max()}, not {high - 1}")
    _fits("integers", values, lambda x: (x - low + 1) / (high - low))
    if dtype.itemsize == 8:
        drawn = burn.random.integers(_DRAWS, 0, 1 << 40, dtype=dtype, device=device).numpy()
        _fits("integers of 40 bits", drawn.astype(np.float64), lambda x: x * 2.0**-40)


@_distributions.check("booleans")
def booleans(device: Device) -> None:
    """True with their probability; never at 0, always at 1."""
    device.seed(6)
    for probability in (0.0, 0.01, 0.3, 0.5, 1.0):
        drawn = burn.random.bernoulli(_DRAWS, probability, device=device)
        expect(drawn.dtype is bool_, f"bernoulli() gave {drawn.dtype}")
        share = float(drawn.numpy().mean())
        allowed = 4 * math.sqrt(probability * (1 - probability) / _DRAWS)
        expect(abs(share - probability) <= allowed, f"{share} are true, not {probability}")


@_distributions.check("permutations")
def permutations(device: Device) -> None:
    """Every number once, and every number anywhere."""
    device.seed(4)
    counts = np.zeros((10, 10))
    for _ in range(100):
        order = burn.random.permutation(10, device=device).numpy()
        expect(sorted(order.tolist()) == list(range(10)), f"{order} is no permutation")
        counts[np.arange(10), order] += 1
    # 81 degrees of freedom: chi-squared has mean 81 and deviation sqrt(162).
    statistic = float(((counts - 10) ** 2 / 10).sum())
    expect(statistic < 81 + 4 * math.sqrt(162), f"chi-squared of the positions is {statistic:.1f}")


@_distributions.check("classes")
def classes(device: Device) -> None:
    """Drawn with their weights; one of weight 0 is never drawn."""
    device.seed(15)
    weights = np.array([[1.0, 3.0, 0.0, 4.0], [0.0, 0.0, 2.0, 0.0]], np.float32)
    drawn = burn.random.categorical(burn.asarray(weights, device=device), _DRAWS).numpy()
    for row, chances in zip(drawn, weights / weights.sum(1, keepdims=True), strict=True):
        shares = np.bincount(row, minlength=4) / _DRAWS
        allowed = 4 * np.sqrt(chances * (1 - chances) / _DRAWS)
        expect((np.abs(shares - chances) <= allowed).all(), f"{shares} instead of {chances}")


SUITES: Final = [_seeding.suite, _distributions.suite]
