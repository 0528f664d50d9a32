"""Suite ``sizes``: tensors without elements, and tensors of more than 2**31 bytes."""

from __future__ import annotations

import math
import os
from typing import Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, float32, int32, int64, uint8
from burn.testing._check import Skipped
from burn.testing.suites.expectations import expect, expect_values, typical
from burn.testing.suites.suite import DeviceSuite, for_each_dtype

__all__ = ["SUITES"]

_sizes: Final = DeviceSuite("sizes", "tensors without elements, and very large ones")

_BYTES_BEYOND_INT32: Final = (1 << 31) + 24
"""More bytes, and elements of one byte, than 31 bits count."""


@_sizes.check("tensors without elements", dtypes=for_each_dtype())
def empty(device: Device, dtype: DType) -> None:
    """What is defined on them has the result that Python gives for an empty list."""
    x = burn.zeros((0, 3), dtype=dtype, device=device)
    expect(x.tolist() == [], f"its list is {x.tolist()}")
    for what, tensor, shape in (
        ("a transposed one", x.T, (3, 0)),
        ("a joined one", burn.concat([x, x]), (0, 3)),
        ("a slice", x[:, 1:], (0, 2)),
        ("a reversed one", burn.flip(x), (0, 3)),
        ("a reshaped one", burn.reshape(x, (3, 0, 2)), (3, 0, 2)),
        ("an expanded one", burn.broadcast_to(x[None], (2, 0, 3)), (2, 0, 3)),
        ("a comparison", burn.equal(x, x), (0, 3)),
    ):
        expect(tensor.shape == shape, f"{what} has shape {tensor.shape}, not {shape}")
        expect(tensor.numpy().shape == shape, f"{what} was read as {tensor.numpy().shape}")
    joined = burn.concat([x, burn.asarray(typical(dtype, 2, 3), device=device)])
    expect_values("joined with another", joined, typical(dtype, 2, 3))
    if not dtype.is_bool:
        expect_values("the sum", burn.sum(x, axis=0, dtype=dtype), np.zeros(3, dtype.numpy))
        expect_values("the product", burn.prod(x, dtype=dtype), np.ones((), dtype.numpy))
    expect(not burn.any(burn.equal(x, x)).item(), "any() of nothing is true")
    expect(burn.all(burn.equal(x, x)).item(), "all() of nothing is false")


@_sizes.check("products of matrices without elements")
def empty_products(device: Device) -> None:
    """A sum of no products is 0."""
    left, right = burn.zeros((2, 0), device=device), burn.zeros((0, 3), device=device)
    expect_values("(2, 0) @ (0, 3)", left @ right, np.zeros((2, 3), np.float32))
    expect((right @ burn.zeros((3, 4), device=device)).shape == (0, 4), "(0, 3) @ (3, 4)")


@_sizes.check("gradients of tensors without elements")
def empty_gradients(device: Device) -> None:
    """They are empty too."""
    x = burn.zeros((0, 3), device=device.autodiff()).require_grad()
    gradient = x.grad((burn.exp(x) * x).sum().backward())
    expect(gradient is not None and gradient.shape == (0, 3), f"the gradient is {gradient}")


def _need(device: Device, size: int) -> None:
    """Skip unless some tensors of a size fit."""
    needed = 4 * size
    total = device.info.memory
    if total is not None and total < needed:
        raise Skipped(f"the device has {total >> 30} GiB, and {needed >> 30} are needed")
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    if free < needed:
        raise Skipped(f"{free >> 30} GiB of memory are free, and {needed >> 30} are needed")


@_sizes.check("more than 2**31 elements", quick=False, large=True)
def many_elements(device: Device) -> None:
    """Offsets beyond 31 bits: the end of a tensor is written, read, summed and found."""
    if not device.supports_dtype(uint8):
        raise Skipped("the device has no uint8")
    _need(device, _BYTES_BEYOND_INT32)
    x = burn.zeros((_BYTES_BEYOND_INT32,), dtype=uint8, device=device)
    x[_BYTES_BEYOND_INT32 - 3] = 7
    expect_values("the end", x[_BYTES_BEYOND_INT32 - 4 :], np.array([0, 7, 0, 0], np.uint8))
    expect_values("the beginning", x[:4], np.zeros(4, np.uint8))
    start = _BYTES_BEYOND_INT32 - 3 - (1 << 31)
    expect_values("31 bits before the end", x[start : start + 1], np.zeros(1, np.uint8))
    if device.settings.int_dtype is int64:
        expect(int(burn.argmax(x)) == _BYTES_BEYOND_INT32 - 3, f"argmax() is {int(burn.argmax(x))}")
        taken = burn.take(x, burn.asarray([_BYTES_BEYOND_INT32 - 3, 0], device=device), axis=0)
        expect_values("elements by their index", taken, np.array([7, 0], np.uint8))
        expect(int(burn.sum(x, dtype=int64)) == 7, "the sum is wrong")


@_sizes.check("more than 2**31 bytes", quick=False, large=True)
def many_bytes(device: Device) -> None:
    """Offsets in bytes beyond 31 bits, of elements that 31 bits count."""
    rows = _BYTES_BEYOND_INT32 // 4 // 4096 + 1
    _need(device, rows * 4096 * 4)
    x = burn.ones((rows, 4096), dtype=float32, device=device)
    y = x * 2.0
    y[rows - 1, 4095] = 5.0
    last = np.full(4096, 2.0, np.float32)
    last[-1] = 5.0
    expect_values("the last row", y[rows - 1], last)
    expect_values("the largest element", burn.max(y), np.array(5.0, np.float32))
    sums = burn.sum(y, axis=1)
    expect_values("sums of rows", sums[-2:], np.array([8192.0, 8195.0], np.float32))
    del y
    joined = burn.concat([x[-1:], x[:1] * 3.0], axis=0)
    expect_values("joined rows", joined[:, :2], np.array([[1, 1], [3, 3]], np.float32))


@_sizes.check("a large copy from the host and back", quick=False, large=True)
def large_transfer(device: Device) -> None:
    """More than 2**31 bytes up, and down."""
    _need(device, _BYTES_BEYOND_INT32)
    values = np.zeros(_BYTES_BEYOND_INT32 // 4 + 1, np.int32)
    values[-1], values[math.isqrt(values.size)] = 9, -4
    x = burn.asarray(values, device=device)
    expect_values("the end of what was uploaded", x[-2:], np.array([0, 9], np.int32))
    found = x.numpy()
    expect(x.dtype is int32 and np.array_equal(found, values), "what was read is not the same")


SUITES: Final = [_sizes.suite]
