"""Suite ``long_axes``: counts, indices and lengths beyond 2**16 and 2**24."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, bool_, float32, int32, int64, uint8, uint32
from burn.testing._check import Skipped
from burn.testing.suites.expectations import expect, expect_values
from burn.testing.suites.suite import DeviceSuite, for_each_dtype

__all__ = ["SUITES"]

_lengths: Final = DeviceSuite("long_axes", "counts and indices beyond 65,536 and 2**24 are right")

_LONG: Final = 65_536 + 4_099
"""More than 16 bits count, and than a grid of a GPU has along its second and third axis."""

_LONGER: Final = (1 << 24) + 5
"""More than float32 counts."""

_SLOW_SECONDS: Final = 0.005
"""What a count of `_LONG` numbers takes, at most, on a device that tries `_LONGER` ones."""

_integers: Final = for_each_dtype(lambda dtype: dtype in (int32, int64))


@_lengths.check("integers beyond 2**24 are exact", dtypes=_integers)
def large_integers(device: Device, dtype: DType) -> None:
    """float32 does not hold them: neither arithmetic nor a sort may go through it."""
    start = (1 << 24) + 1
    x = burn.arange(start, start + 6, dtype=dtype, device=device)
    values = np.arange(start, start + 6, dtype=dtype.numpy)
    expect_values("arange()", x, values)
    mixed = burn.asarray(values[[3, 0, 5, 1, 4, 2]], device=device)
    for what, found, expected in (
        ("x + 1", x + 1, values + 1),
        ("x * 3", x * 3, values * 3),
        ("x // 3", x // 3, values // 3),
        ("x % 7", x % 7, values % 7),
        ("sort(x)", burn.sort(mixed), values),
        ("max(x)", burn.max(mixed), values[-1]),
        ("sum(x)", burn.sum(x, dtype=dtype), values.sum(dtype=dtype.numpy)),
        (
            "cumulative_sum(x)",
            burn.cumulative_sum(x, dtype=dtype),
            values.cumsum(dtype=dtype.numpy),
        ),
        ("abs(-x)", burn.abs(-x), values),
        (
            "where(x > ..., x, 0)",
            burn.where(x > start + 2, x, 0),
            np.where(values > start + 2, values, 0),
        ),
        ("x == x[0]", x == x[0], values == start),
        ("clip(x)", burn.clip(x, start + 1, start + 4), values.clip(start + 1, start + 4)),
    ):
        expect_values(what, found, np.asarray(expected))


@_lengths.check("positions along an axis of more than 65,536")
def long_axis(device: Device) -> None:
    """Where an element is, and elements by where they are."""
    values = np.zeros(_LONG, np.float32)
    last = _LONG - 2
    values[last], values[1] = 3.0, -2.0
    x = burn.asarray(values, device=device)
    expect(int(burn.argmax(x)) == last, f"argmax() is {int(burn.argmax(x))}, not {last}")
    expect(int(burn.argmin(-x)) == last, f"argmin() is {int(burn.argmin(-x))}, not {last}")
    order = burn.argsort(x, stable=True)
    expected = np.argsort(values, stable=True)
    expect_values("argsort()", order, expected.astype(order.dtype.numpy))
    expect_values("sort()", burn.sort(x), np.sort(values))
    indices = np.array([last, 65_536, 65_535, 1, -2])
    where = burn.asarray(indices.tolist(), device=device)
    expect_values("take()", burn.take(x, where, axis=0), values[indices])
    found = burn.take_along_axis(x, where, axis=0)
    expect_values("take_along_axis()", found, values[indices])
    expect_values("flip()", burn.flip(x), values[::-1])
    (there,) = burn.nonzero(x)
    expect_values("nonzero()", there, np.array([1, last]).astype(there.dtype.numpy))
    added = burn.scatter_add(x, where[:4], burn.ones(4, device=device), axis=0)
    sums = values.copy()
    sums[indices[:4]] += 1.0
    expect_values("scatter_add()", added, sums)
    expect_values("a part", x[last - 1 :], values[last - 1 :])


@_lengths.check("counts of more than 65,536")
def long_counts(device: Device) -> None:
    """Ones that are counted, and numbers that count."""
    ones = burn.ones(_LONG, dtype=bool_, device=device)
    dtype = device.settings.int_dtype
    counts = np.arange(_LONG, dtype=dtype.numpy)
    expect(int(burn.count_nonzero(ones)) == _LONG, f"count_nonzero() is {burn.count_nonzero(ones)}")
    numbers = burn.arange(_LONG, device=device)
    expect_values("arange()", numbers, counts)
    expect_values("a running count", burn.cumulative_sum(burn.astype(ones, dtype)), counts + 1)
    floats = burn.cumulative_sum(burn.ones(_LONG, dtype=float32, device=device))
    expect_values("a running sum", floats, (counts + 1).astype(np.float32))
    bins = burn.bincount(burn.where(numbers == 7, 1, 0))
    expect_values("bincount()", bins, np.array([_LONG - 1, 1]).astype(bins.dtype.numpy))


@_lengths.check("random numbers of more than 65,536 blocks")
def long_draws(device: Device) -> None:
    """They go on as a draw that begins there: a counter of 16 bits would begin anew."""
    _need_speed(device)
    blocks, words = 1 << 16, 4
    dtype = uint32 if device.supports_dtype(uint32) else int32
    for name, rest in (
        ("random_bits", {"dtype": dtype}),
        ("random_uniform", {"dtype": float32, "low": 0.0, "high": 1.0}),
    ):

        def draw(offset: int, count: int, name: str = name, rest: Any = rest) -> Any:
            size = {"count": count} if name == "random_bits" else {"shape": (count,)}
            drawn = getattr(device.ops, name)(seed=42, offset=offset, **size, **rest)
            return device.backend.to_data(drawn).array

        found, expected = draw(1, blocks * words + 8)[-8:], draw(1 + blocks, 8)
        expect_values(f"the end of {name}()", found, expected)


@_lengths.check("products over more than 2,048 terms")
def long_products(device: Device) -> None:
    """A GPU splits them into parts, with memory of their own, that depend on the batches."""
    length = 2050
    for rows, columns in (
        ((1,), (length, 1)),
        ((20,), (length, 6)),
        ((3, 5), (length, 6)),
        ((2, 1, 7), (length, 5)),
        ((2, 7), (2, length, 3)),
        ((4, 16), (length, 8)),
    ):
        left = (np.arange(length * np.prod(rows)) % 5 - 2.0).reshape(*rows, length)
        right = (np.arange(np.prod(columns)) % 7 - 3.0).reshape(columns)
        x, y = (burn.asarray(tensor.astype(np.float32), device=device) for tensor in (left, right))
        expected = (left @ right).astype(np.float32)  # integers, which float32 holds
        expect_values(f"{left.shape} @ {right.shape}", x @ y, expected)
        if right.ndim == 2:
            bias = np.arange(right.shape[1], dtype=np.float32)
            found = burn.nn.functional.linear(x, y, burn.asarray(bias, device=device))
            expect_values(f"linear() of {left.shape}", found, expected + bias)


@_lengths.check("more than 65,536 rows, columns and matrices")
def long_grids(device: Device) -> None:
    """A GPU has a grid of at most 65,535 along two of its axes."""
    values = (np.arange(2 * _LONG) % 251).astype(np.float32)
    for shape in ((_LONG, 2), (2, _LONG), (_LONG, 1, 2), (1, _LONG, 2), (1, 2, _LONG)):
        array = values.reshape(shape)
        x = burn.asarray(array, device=device)
        turned = tuple(range(len(shape)))[::-1]
        expect_values(f"a transposed copy of {shape}", burn.permute_dims(x, turned) + 0.0, array.T)
        for axis in range(len(shape)):
            what = f"of {shape} by axis {axis}"
            expect_values(f"the maximum {what}", burn.max(x, axis=axis), array.max(axis))
            sums = array.sum(axis, dtype=np.float64).astype(np.float32)
            expect_values(f"the sum {what}", burn.sum(x, axis=axis), sums, exact=False)
    pairs = values.reshape(_LONG, 1, 2)
    x = burn.asarray(pairs, device=device)
    column = burn.asarray(pairs.reshape(_LONG, 2, 1), device=device)
    products = (pairs.astype(float) ** 2).sum(-1).astype(np.float32)[..., None]
    expect_values("products of many matrices", x @ column, products, exact=False)
    rows = burn.asarray([_LONG - 1, 65_536, 0], device=device)
    taken = burn.take(x[:, 0], rows, axis=0)
    expect_values("rows by their number", taken, pairs[[_LONG - 1, 65_536, 0], 0])


@_lengths.check("positions and counts beyond 2**24")
def longest_axis(device: Device) -> None:
    """What counts in float32 stays at 2**24."""
    if not device.supports_dtype(uint8):
        raise Skipped("the device has no uint8")
    _need_speed(device)
    x = burn.zeros(_LONGER, dtype=uint8, device=device)
    x[_LONGER - 2] = 9
    dtype = device.settings.int_dtype
    expect(int(burn.argmax(x)) == _LONGER - 2, f"argmax() is {int(burn.argmax(x))}")
    there = burn.asarray([_LONGER - 2, 1 << 24, 0], device=device)
    expect_values("take()", burn.take(x, there, axis=0), np.array([9, 0, 0], np.uint8))
    ones = x == 0
    count = int(burn.count_nonzero(ones))
    expect(count == _LONGER - 1, f"count_nonzero() is {count}, not {_LONGER - 1}")
    total = int(burn.sum(ones, dtype=dtype))
    expect(total == _LONGER - 1, f"the sum is {total}, not {_LONGER - 1}")
    ends: Any = burn.arange(_LONGER, dtype=int32, device=device)[-3:]
    expect_values("the end of arange()", ends, np.arange(_LONGER - 3, _LONGER, dtype=np.int32))


def _need_speed(device: Device) -> None:
    """Skip on a device to which so many elements take long."""
    x = burn.ones(_LONG, dtype=float32, device=device)
    times = []
    for _ in range(4):  # the first time may be that of a compiler
        start = time.perf_counter()
        burn.count_nonzero(x == 0.0).item()
        times.append(time.perf_counter() - start)
    if min(times) > _SLOW_SECONDS:
        raise Skipped(f"a count of {_LONG} numbers takes {min(times) * 1000:.0f} ms")


SUITES: Final = [_lengths.suite]
