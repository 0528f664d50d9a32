"""Suite ``dtypes``: what `dtype_usage` claims works, and what it denies raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, DTypeUsage, Kind, bool_, float32
from burn.errors import DTypeError
from burn.testing.suites.expectations import expect, expect_error, expect_values, typical
from burn.testing.suites.suite import DeviceSuite

__all__ = ["SUITES"]

_dtypes: Final = DeviceSuite("dtypes", "what dtype_usage claims works, and what it denies raises")


def _stored(device: Device) -> Iterable[DType]:
    return [dtype for dtype in DType.members() if DTypeUsage.STORAGE in device.dtype_usage(dtype)]


def _only_stored(device: Device) -> Iterable[DType]:
    return [dtype for dtype in _stored(device) if not device.supports_dtype(dtype)]


def _computed(device: Device) -> Iterable[DType]:
    return [dtype for dtype in DType.members() if device.supports_dtype(dtype)]


def _denied(device: Device) -> Iterable[DType]:
    return [dtype for dtype in DType.members() if not device.dtype_usage(dtype)]


@_dtypes.check("what is stored comes back to the bit", dtypes=_stored)
def values_come_back(device: Device, dtype: DType) -> None:
    """Upload and read values that need every bit of the dtype."""
    values = _every_bit(dtype)
    x = burn.asarray(values, device=device)
    expect(x.dtype is dtype, f"a tensor of {dtype} values has dtype {x.dtype}")
    found = x.numpy()
    expect(found.dtype == values.dtype, f"{dtype} was read as {found.dtype}")
    same = found.tobytes() == values.tobytes()
    expect(same, f"{values.tolist()} came back as {found.tolist()}")


@_dtypes.check("what is stored can be made and rearranged", dtypes=_stored)
def layout_works(device: Device, dtype: DType) -> None:
    """Creation and layout of a dtype that is stored."""
    values = typical(dtype, 3, 4)
    x = burn.asarray(values, device=device)
    zeros, ones = np.zeros((2, 3), dtype.numpy), np.ones(2, dtype.numpy)
    expect_values("zeros", burn.zeros((2, 3), dtype=dtype, device=device), zeros)
    expect_values("full", burn.full((2,), 1, dtype=dtype, device=device), ones)
    expect_values("reshape", burn.reshape(x, (2, 6)), values.reshape(2, 6))
    expect_values("permute_dims", burn.permute_dims(x, (1, 0)), values.T)
    expect_values("flip", burn.flip(x, axis=1), values[:, ::-1])
    expect_values("a slice", x[1:, ::2], values[1:, ::2])
    expect_values("concat", burn.concat([x, x[:1]]), np.concatenate([values, values[:1]]))
    expanded = burn.broadcast_to(x[:1], (2, 4))
    expect_values("broadcast_to", expanded, np.broadcast_to(values[:1], (2, 4)))
    x[0, 1:3] = x[2, :2]
    changed = values.copy()
    changed[0, 1:3] = values[2, :2]
    expect_values("an assignment", x, changed)


@_dtypes.check("what is stored is cast from and to float32", dtypes=_stored)
def casts_work(device: Device, dtype: DType) -> None:
    """Casts between a stored dtype and the one that every device has."""
    values = np.array([0, 1, 1, 0, 1]) if dtype.is_bool else np.array([0, 1, 2, 100, 3])
    x = burn.asarray(values.astype(dtype.numpy), device=device)
    if dtype.is_complex:
        if device.supports_dtype(dtype.component):
            expect_values("the real part", burn.real(x), values.astype(dtype.component.numpy))
        return
    floats = x.astype(float32)
    expect_values("a cast to float32", floats, values.astype(np.float32))
    expect_values("a cast from float32", floats.astype(dtype), values.astype(dtype.numpy))


@_dtypes.check("what can be computed with gives results of its dtype", dtypes=_computed)
def arithmetic_works(device: Device, dtype: DType) -> None:
    """A few ops of each kind; the suite ``values`` has the others."""
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype.numpy)
    x = burn.asarray(values, device=device)
    if dtype.is_bool:
        expect_values("logical_not", burn.logical_not(x), ~values)
        expect_values("any", burn.any(x, axis=0), values.any(0))
    else:
        expect_values("x + x", x + x, values + values)
        expect_values("x * 2", x * 2, values + values)
        expect_values("sum", burn.sum(x, axis=1, dtype=dtype), values.sum(1, dtype=values.dtype))
    expect_values("x == x", burn.equal(x, x), np.ones((2, 3), np.bool_))


@_dtypes.check("what is only stored refuses arithmetic", dtypes=_only_stored)
def storage_alone_refuses_arithmetic(device: Device, dtype: DType) -> None:
    """An error is better than a wrong result."""
    x = burn.asarray(typical(dtype, 3), device=device)
    for name, call in {
        "x == x": lambda: burn.equal(x, x),
        "where": lambda: burn.sum(burn.where(x == x, x, x)),  # noqa: PLR0124 — an op, not a test
        "sum": lambda: burn.sum(x),
        "max": lambda: burn.max(x),
    }.items():
        expect_error(DTypeError, f"{name} of {dtype}, which {device} only stores", call)


@_dtypes.check("what is denied raises", dtypes=_denied)
def denied_dtypes_raise(device: Device, dtype: DType) -> None:
    """Every way to make a tensor of a dtype that the device lacks raises."""
    values = typical(dtype, 3)
    x = burn.ones(3, dtype=float32, device=device)
    for name, call in {
        "asarray": lambda: burn.asarray(values, device=device),
        "asarray with a dtype": lambda: burn.asarray([1, 0], dtype=dtype, device=device),
        "zeros": lambda: burn.zeros(2, dtype=dtype, device=device),
        "full": lambda: burn.full(2, 1, dtype=dtype, device=device),
        "astype": lambda: x.astype(dtype),
    }.items():
        expect_error(DTypeError, f"{name} of {dtype}, which {device} denies", call, says=dtype.name)
    if dtype.kind in Kind.NUMERIC:
        expect_error(
            DTypeError,
            f"arange of {dtype}, which {device} denies",
            lambda: burn.arange(3, dtype=dtype, device=device),
            says=dtype.name,
        )


@_dtypes.check("the probe says what the loaded backend says")
def probe_agrees(device: Device) -> None:
    """`DeviceInfo.usage` is a promise, where it is not None."""
    promised = device.info.usage
    if promised is None:
        return
    for dtype in DType.members():
        declared, found = promised.get(dtype, DTypeUsage.NONE), device.dtype_usage(dtype)
        expect(declared == found, f"{dtype}: the probe says {declared}, the backend {found}")


@_dtypes.check("the default dtypes can be computed with")
def defaults_are_supported(device: Device) -> None:
    """The dtype of a tensor that is made without one."""
    for dtype in (device.settings.float_dtype, device.settings.int_dtype):
        expect(device.supports_dtype(dtype), f"the default dtype {dtype} is not supported")
    expect(burn.ones(2, device=device).dtype is device.settings.float_dtype, "of ones()")
    expect(burn.arange(2, device=device).dtype is device.settings.int_dtype, "of arange()")


def _wide(device: Device) -> Iterable[DType]:
    return [dtype for dtype in _computed(device) if dtype.is_integer and dtype.itemsize == 8]


@_dtypes.check("numbers that no float64 holds stay as they are", dtypes=_wide)
def wide_numbers(device: Device, dtype: DType) -> None:
    """Python's integers beside tensors and in new ones, whose last bits a float would lose."""
    big = 2**53 + 1
    values = np.array([[big, big + 1, big - 2], [2**60 + 1, 5, 2**61 + 3]], dtype.numpy)
    x = burn.asarray(values, device=device)
    odd = values % 2 == 1
    condition = burn.asarray(odd, device=device)
    for what, found, expected in (
        ("full", burn.full((2,), big, dtype=dtype, device=device), np.full(2, big)),
        (
            "arange",
            burn.arange(big, big + 7, 3, dtype=dtype, device=device),
            big + np.arange(0, 7, 3),
        ),
        ("asarray of a list", burn.asarray([big, 1], dtype=dtype, device=device), [big, 1]),
        ("x + a number", x + big, values + big),
        ("a number - x", 2**62 + 5 - x, 2**62 + 5 - values),
        ("x * a number", x * 3, values * 3),
        ("x // a number", x // 3, values // 3),
        ("x % a number", x % 1000, values % 1000),
        ("maximum", burn.maximum(x, big), np.maximum(values, big)),
        ("minimum of tensors", burn.minimum(x, x[::-1]), np.minimum(values, values[::-1])),
        ("clip", burn.clip(x, big, 2**60), np.clip(values, big, 2**60)),
        ("where", burn.where(condition, x, big + 3), np.where(odd, values, big + 3)),
        ("sum", burn.sum(x, axis=0, dtype=dtype), values.sum(0)),
        ("cumulative sums", burn.cumulative_sum(x, axis=1), values.cumsum(1)),
        ("max", burn.max(x, axis=1), values.max(1)),
        ("min", burn.min(x), values.min()),
        ("sort", burn.sort(x, axis=1), np.sort(values, 1)),
        ("take", burn.take(x, burn.asarray([2, 0], device=device), axis=1), values[:, [2, 0]]),
        ("abs", burn.abs(x), values),
        ("x ** 1", x**1, values),
        ("matmul", x @ x.T[:, :1], values @ values.T[:, :1]),
    ):
        expect_values(what, found, np.asarray(expected).astype(dtype.numpy))
    for what, truths, expected in (
        ("x == a number", x == big, values == big),
        ("x < a number", x < big + 1, values < big + 1),
        ("x >= a number", x >= big, values >= big),
        ("argmax", burn.argmax(x, axis=1), values.argmax(1)),
        ("argmin", burn.argmin(x, axis=1), values.argmin(1)),
    ):
        expect(truths.tolist() == expected.tolist(), f"{what} is {truths.tolist()}")


def _floats(device: Device) -> Iterable[DType]:
    return [dtype for dtype in _computed(device) if dtype.is_float]


@_dtypes.check("subnormal numbers are not 0", dtypes=_floats)
def subnormal_numbers(device: Device, dtype: DType) -> None:
    """Numbers below the smallest normal one have a sign, an order, and a logarithm."""
    tiny = float(burn.finfo(dtype).smallest_normal)
    values = np.array([tiny / 2, -tiny / 4, 0.0, tiny / 8, tiny], np.float64).astype(dtype.numpy)
    wide = values.astype(np.float64)
    x = burn.asarray(values, device=device)
    for what, found, expected in (
        ("x > 0", x > 0, wide > 0),
        ("x == 0", x == 0, wide == 0),
        ("x < x.flip", x < burn.flip(x), wide < wide[::-1]),
        ("a cast to bool", x.astype(bool_), wide != 0),
        ("any", burn.any(x[:2]), True),
        ("argmax", burn.argmax(x[:4]), 0),
        ("argmin", burn.argmin(x), 1),
        ("argsort", burn.argsort(x), np.argsort(wide)),
        ("sign", burn.sign(x), np.sign(wide)),
    ):
        expect(found.tolist() == np.asarray(expected).tolist(), f"{what} is {found.tolist()}")
    for what, result, exact in (
        ("abs", burn.abs(x), np.abs(wide)),
        ("negative", -x, -wide),
        ("max", burn.max(x[:4]), wide[0]),
        ("min", burn.min(x), wide[1]),
        ("maximum", burn.maximum(x, 0.0), np.maximum(wide, 0.0)),
        ("where", burn.where(x > 0, x, x * 0), np.where(wide > 0, wide, 0.0 * wide)),
        ("sort", burn.sort(x), np.sort(wide)),
        ("x + x", x + x, wide + wide),
        ("x * 2", x * 2.0, wide * 2),
        ("x / 2 of a normal number", x[4:] * 0.5, wide[4:] * 0.5),
        ("x - y", x[4:] - x[:1], wide[4:] - wide[:1]),
        ("x / x", x[:2] / x[:2], np.ones(2)),
    ):
        expect_values(what, result, exact.astype(dtype.numpy))
    logarithms = burn.log(burn.abs(x[:2]))
    expect_values("log", logarithms, np.log(np.abs(wide[:2])).astype(dtype.numpy), exact=False)


def _every_bit(dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Values that are lost if any bit is; those of floats with NaN, infinities and subnormals."""
    if dtype.is_bool:
        return np.array([True, False, True])
    if dtype.is_integer:
        return typical(dtype, 21)
    part = dtype.component
    info = burn.finfo(part)
    tiny = float(info.smallest_normal)
    one = part.numpy.type(1)
    values = np.array(
        [0.0, -0.0, 1.0, np.nextafter(one, part.numpy.type(2)), np.nextafter(-one, one),
         tiny, tiny / 2, info.max, info.min, np.inf, -np.inf, np.nan],
    ).astype(part.numpy)  # fmt: skip
    if not dtype.is_complex:
        return values
    pairs = np.empty(values.size, dtype.numpy)
    pairs.real, pairs.imag = values, values[::-1]
    return pairs


SUITES: Final = [_dtypes.suite]
