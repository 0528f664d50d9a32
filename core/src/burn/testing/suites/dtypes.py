"""Suite ``dtypes``: what `dtype_usage` claims works, and what it denies raises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, DTypeUsage, Kind, float32
from burn.errors import DTypeError
from burn.testing.suites.expectations import expect, expect_error, expect_values, typical
from burn.testing.suites.suite import DeviceSuite

__all__ = ["SUITES"]

_dtypes: Final = DeviceSuite("dtypes", "what dtype_usage claims works, and what it denies raises")


def _stored(device: Device) -> Iterable[DType]:
    return [one for one in DType.members() if DTypeUsage.STORAGE in device.dtype_usage(one)]


def _only_stored(device: Device) -> Iterable[DType]:
    return [one for one in _stored(device) if not device.supports_dtype(one)]


def _computed(device: Device) -> Iterable[DType]:
    return [one for one in DType.members() if device.supports_dtype(one)]


def _denied(device: Device) -> Iterable[DType]:
    return [one for one in DType.members() if not device.dtype_usage(one)]


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
