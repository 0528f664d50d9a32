"""Suite ``transfers``: values leave a device, come back, and go to others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, bfloat16, float32
from burn.errors import AutodiffError, BurnError
from burn.plugins import describe
from burn.testing._check import Skipped
from burn.testing.suites.expectations import (
    expect,
    expect_error,
    expect_values,
    gradient_of,
    typical,
)
from burn.testing.suites.suite import DeviceSuite, for_each_dtype

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor
    from burn.testing.op_samples import Array

__all__ = ["SUITES", "layouts", "works_with"]

_transfers: Final = DeviceSuite("transfers", "values leave a device, come back, and go to others")


@_transfers.check("tensors of every layout are read", dtypes=for_each_dtype())
def every_layout_is_read(device: Device, dtype: DType) -> None:
    """Results of layout ops, which may be views with any strides."""
    values = typical(dtype, 4, 6)
    x = burn.asarray(values, device=device)
    for what, tensor, expected in (
        ("a tensor", x, values),
        ("a transposed tensor", x.T, values.T),
        ("a slice", x[1:3, 2:], values[1:3, 2:]),
        ("every second element", x[::2, ::3], values[::2, ::3]),
        ("a reversed tensor", x[::-1, ::-2], values[::-1, ::-2]),
        ("an element", x[2, 3], values[2, 3]),
        ("an expanded tensor", burn.broadcast_to(x[:1], (3, 6)), np.tile(values[:1], (3, 1))),
        ("no elements", x[2:2], values[2:2]),
        ("a reshaped transposed tensor", burn.reshape(x.T, (24,)), values.T.reshape(24)),
    ):
        expect_values(what, tensor, expected)
        expect(tensor.tolist() == expected.tolist() or dtype is bfloat16, f"tolist() of {what}")


@_transfers.check("tensors in one memory are read apart", dtypes=for_each_dtype())
def parts_are_read(device: Device, dtype: DType) -> None:
    """Parts of one tensor, of one shape and with other offsets, and what they are after a write."""
    values = typical(dtype, 4, 6)
    x = burn.asarray(values, device=device)
    parts = [
        (x[0], values[0]),
        (x[2], values[2]),
        (x[3, ::-1], values[3, ::-1]),
        (x[:, 1], values[:, 1]),
        (x[:, 4], values[:, 4]),
        (x[1:3, 2:4], values[1:3, 2:4]),
        (x[2:, 4:].T, values[2:, 4:].T),
    ]
    for _ in range(2):
        arrays = [part.numpy() for part, _ in parts]
        for number, (array, (_, expected)) in enumerate(zip(arrays, parts, strict=True)):
            expect_values(f"part {number} of a tensor", array, expected)
    x[2] = x[0]
    changed = values.copy()
    changed[2] = values[0]
    expect_values("a part that was written to", x[2], changed[2])
    expect_values("a tensor of which a part was written to", x, changed)
    expect_values("a column of it", x[:, 4], changed[:, 4])


@_transfers.check("what was read cannot be written to", dtypes=for_each_dtype())
def reads_are_read_only(device: Device, dtype: DType) -> None:
    """`numpy()` gives a read-only array, and what it holds stays as it is."""
    values = typical(dtype, 8)
    x = burn.asarray(values, device=device)
    array = x.numpy()
    expect(not array.flags.writeable, "numpy() gave an array that can be written to")
    x[0:4] = x[4:8]
    expect_values("an array that was read before an assignment", array, values)


@_transfers.check("several tensors are read together")
def read_together(device: Device) -> None:
    """A `Transaction` gives what each tensor gives alone."""
    values = [typical(float32, *shape) for shape in ((3,), (0,), (2, 5), ())]
    transaction = burn.Transaction()
    for value in values:
        transaction.register(burn.asarray(value, device=device) * 1)
    for data, expected in zip(transaction.execute(), values, strict=True):
        expect_values("a tensor of a transaction", data.array, expected)


@_transfers.check("to every other device and back", dtypes=for_each_dtype())
def to_other_devices(device: Device, dtype: DType) -> None:
    """Moved to each device that has the dtype, and back again: views, and what is empty, too."""
    for other in _others(device, dtype):
        for what, x, values in layouts(device, dtype):
            there = x.to_device(other)
            expect(there.device is other, f"to_device({other}) of {what} is on {there.device}")
            expect_values(f"{what} on {other}", there, values)
            back = there.to_device(device)
            expect(back.device is device, f"to_device({device}) of {what} is on {back.device}")
            expect_values(f"{what} that was on {other}", back, values)
            expect_values(f"a copy of {what} that was on {other}", burn.flip(back), np.flip(values))


@_transfers.check("a moved tensor shares no memory", dtypes=for_each_dtype())
def moved_is_left_alone(device: Device, dtype: DType) -> None:
    """Neither side sees what becomes of the other, also where they share memory."""
    # Some memory is so large that a backend may keep it for the next tensor.
    values = typical(dtype, 64, 300) if dtype is float32 else typical(dtype, 12, 5)
    for other in _others(device, dtype):
        x = burn.asarray(values, device=device)
        there = x.to_device(other)
        back = there.to_device(device)
        for one in (x, there, back):
            for tensor in (x, there, back):
                expect_values("a tensor that was moved", tensor, values)
            one[1:4] = one[4:7]
            burn.flip(burn.concat([one, one])).numpy()
            one[0] = one[9]
            one[...] = burn.asarray(values, device=one.device)
        del x, one, tensor
        for _ in range(4):  # what was freed may be given out again, and is filled anew
            burn.flip(burn.asarray(values[::-1], device=device)).numpy()
            burn.flip(burn.asarray(values[::-1], device=other)).numpy()
        expect_values("a tensor whose source is gone", there, values)
        del there
        expect_values("a tensor whose sources are gone", back, values)


@_transfers.check("gradients come back from every other device")
def gradients_come_back(device: Device) -> None:
    """A part of a computation on another device changes nothing about the gradient."""
    values = typical(float32, 4, 3)

    def slope(home: Device, away: Device) -> Tensor:
        x = burn.asarray(values, device=home.autodiff()).require_grad()
        near = burn.tanh(x)
        far = burn.exp(near.to_device(away.autodiff())) * x.to_device(away.autodiff())
        loss = (far.to_device(home.autodiff()) * near).sum()
        gradient = gradient_of(x, loss)
        expect(gradient.device is home, f"the gradient is on {gradient.device}, not on {home}")
        return gradient

    for other in _others(device, float32):
        for home, away in ((device, other), (other, device)):
            expected = slope(home, home).numpy()
            expect_values(f"the gradient from {away}", slope(home, away), expected, exact=False)
        x = burn.ones(2, device=device.autodiff()).require_grad()
        leave = partial(x.to_device, other)
        expect_error(AutodiffError, "leaving autodiff for other hardware", leave)
        with burn.no_grad():
            moved = (x * 2).to_device(other.autodiff())
        expect(not moved.is_tracked, "a tensor that moved under no_grad() is tracked")


@_transfers.check("threads move tensors at the same time")
def moved_in_threads(device: Device) -> None:
    """To another device and back, each thread its own numbers."""
    others = list(_others(device, float32))
    wrong: list[str] = []

    def move(number: int) -> None:
        values = typical(float32, 50, 20) + np.float32(number)
        x = burn.asarray(values, device=device)
        for other in others * 3:
            x = (x.to_device(other) * 2).to_device(device) * 0.5
        if not np.array_equal(x.numpy(), values):
            wrong.append(f"thread {number} has other values")

    threads = [threading.Thread(target=move, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not wrong, "; ".join(wrong))


@_transfers.check("every other device works")
def every_other_device_works(device: Device) -> None:
    """Those that do not are left out of the other checks; this one says which, and why."""
    reasons = []
    for other in Device.enumerate():
        try:
            if other.hardware is not device.hardware and other.supports_dtype(float32):
                burn.ones(1, dtype=float32, device=other).numpy()
        except BurnError as error:
            reasons.append(f"{other.name} is left out: {describe(error)}")
    if reasons:
        raise Skipped("; ".join(reasons))


def _others(device: Device, dtype: DType) -> list[Device]:
    """Devices of other hardware that work and have a dtype, one of each backend and type."""
    found = {
        (item.backend_name, item.type): item
        for item in reversed(Device.enumerate())
        if item.hardware is not device.hardware and works_with(item, dtype)
    }
    if not found:
        raise Skipped(f"no other device has {dtype}")
    return list(found.values())


def layouts(device: Device, dtype: DType) -> Iterator[tuple[str, Tensor, Array]]:
    """Tensors that lie in memory in all sorts of ways, and their values."""
    values = typical(dtype, 4, 6)
    x = burn.asarray(values, device=device)
    yield "a tensor", x, values
    yield "a transposed tensor", x.T, values.T
    yield "a part", x[1:3, 2:], values[1:3, 2:]
    yield "every second element", x[::2, ::3], values[::2, ::3]
    yield "a reversed tensor", x[::-1, ::-2], values[::-1, ::-2]
    yield "an element", x[2, 3], values[2, 3]
    yield "an expanded tensor", burn.broadcast_to(x[:1], (3, 6)), np.tile(values[:1], (3, 1))
    yield "one number many times", burn.broadcast_to(x[0, 0], (2, 3)), np.full((2, 3), values[0, 0])
    yield "a tensor without elements", x[2:2], values[2:2]
    yield (
        "one without rows or columns",
        burn.reshape(x[:0], (0, 0, 3)),
        np.zeros((0, 0, 3), values.dtype),
    )


def works_with(device: Device, dtype: DType) -> bool:
    """Whether a device loads, opens, and does not fail at what is asked of it."""
    try:
        if not device.supports_dtype(dtype):
            return False
        burn.ones(1, dtype=dtype, device=device).numpy()
    except BurnError:
        return False
    return True


@_transfers.check("to the autodiff device and back")
def to_autodiff(device: Device) -> None:
    """The same hardware: nothing is copied, and the values are the same."""
    x = burn.asarray(typical(float32, 5), device=device)
    there = x.to_device(device.autodiff())
    expect(there.device is device.autodiff(), f"it is on {there.device}")
    expect(there.to_device(device).device is device, "it did not come back")
    expect_values("a tensor that was on the autodiff device", there.to_device(device), x.numpy())


SUITES: Final = [_transfers.suite]
