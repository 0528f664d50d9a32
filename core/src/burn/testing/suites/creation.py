"""Suite ``creation``: new tensors have the requested device, dtype, shape and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, Kind, float32
from burn.tensor_data import TensorData
from burn.testing.suites.expectations import expect, expect_values, gradient_of, typical
from burn.testing.suites.suite import DeviceSuite, for_each_dtype

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["SUITES"]

_creation: Final = DeviceSuite("creation", "tensors are made where and as they were asked for")

_SHAPES: Final = ((), (0,), (1,), (5,), (2, 3), (2, 0, 3), (2, 1, 3, 2))


@_creation.check("zeros, ones, full and empty", dtypes=for_each_dtype())
def filled(device: Device, dtype: DType) -> None:
    """Filled tensors, of every rank, on the device that was named."""
    three = 1 if dtype.is_bool else 3
    for shape in _SHAPES:
        for what, made, expected in (
            ("zeros", burn.zeros(shape, dtype=dtype, device=device), np.zeros(shape)),
            ("ones", burn.ones(shape, dtype=dtype, device=device), np.ones(shape)),
            ("full", burn.full(shape, three, dtype=dtype, device=device), np.full(shape, three)),
            ("zeros_like", burn.zeros_like(made_of(device, dtype, shape)), np.zeros(shape)),
            ("ones_like", burn.ones_like(made_of(device, dtype, shape)), np.ones(shape)),
        ):
            expect(made.device is device, f"{what} is on {made.device}, not on {device}")
            expect(made.shape == shape, f"{what} of shape {shape} has shape {made.shape}")
            expect_values(what, made, expected.astype(dtype.numpy))
        empty = burn.empty(shape, dtype=dtype, device=device)
        found = (empty.shape, empty.dtype, empty.device)
        expect(found == (shape, dtype, device), f"empty is {found}")


def made_of(device: Device, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """A tensor of typical values."""
    return burn.asarray(typical(dtype, *shape), device=device)


@_creation.check("arange", dtypes=for_each_dtype(lambda dtype: dtype.kind in Kind.NUMERIC))
def counted(device: Device, dtype: DType) -> None:
    """Ranges, forwards and, for signed dtypes, backwards."""
    ranges: list[tuple[int, int, int]] = [(0, 7, 1), (3, 50, 4), (5, 5, 1)]
    if dtype.kind is not Kind.UINT:
        ranges += [(-3, 4, 2), (10, -10, -3)]
    for arguments in ranges:
        made = burn.arange(*arguments, dtype=dtype, device=device)
        expect(made.device is device, f"arange is on {made.device}, not on {device}")
        expect_values(f"arange{arguments}", made, np.arange(*arguments).astype(dtype.numpy))


@_creation.check("eye, tril and linspace", dtypes=for_each_dtype(lambda dtype: dtype.is_float))
def patterns(device: Device, dtype: DType) -> None:
    """Tensors with a pattern."""
    for made, expected in (
        (burn.eye(3, 4, k=1, dtype=dtype, device=device), np.eye(3, 4, k=1)),
        (burn.eye(3, 4, k=2**40, dtype=dtype, device=device), np.zeros((3, 4))),
        (burn.eye(3, k=-(2**32), dtype=dtype, device=device), np.zeros((3, 3))),
        (burn.tril(burn.ones((3, 3), dtype=dtype, device=device)), np.tril(np.ones((3, 3)))),
        (burn.linspace(-2.0, 2.0, 5, dtype=dtype, device=device), np.linspace(-2, 2, 5)),
    ):
        expect(made.device is device, f"made on {made.device}, not on {device}")
        expect_values("a pattern", made, expected.astype(dtype.numpy), exact=False)


@_creation.check("ranges between tensors", dtypes=for_each_dtype(lambda dtype: dtype.is_float))
def between_tensors(device: Device, dtype: DType) -> None:
    """Numbers that are given as tensors without axes: with their dtype, on their device."""
    two, eight, three = burn.asarray([2.0, 8.0, 3.0], dtype=dtype, device=device)
    for what, made, expected in (
        ("arange", burn.arange(two, eight, three), [2.0, 5.0]),
        ("arange to a tensor", burn.arange(three), [0.0, 1.0, 2.0]),
        ("linspace", burn.linspace(two, 8.0, 3), [2.0, 5.0, 8.0]),
        ("logspace", burn.logspace(two, three, 2, base=two), [4.0, 8.0]),
        ("geomspace", burn.geomspace(2.0, eight, 3), [2.0, 4.0, 8.0]),
        ("full", burn.full(2, eight), [8.0, 8.0]),
    ):
        expect(made.device is device, f"{what} is on {made.device}, not on {device}")
        expect(made.dtype is dtype, f"{what} is of {made.dtype}, not of {dtype}")
        expect_values(what, made, np.asarray(expected, dtype.numpy), exact=False)


@_creation.check("asarray of numbers, lists and arrays", dtypes=for_each_dtype())
def converted(device: Device, dtype: DType) -> None:
    """What there is on the host, in any form and layout."""
    values = typical(dtype, 4, 6)
    transposed = np.asfortranarray(values)
    sources = {
        "an array": (values, values),
        "a transposed array": (transposed, values),
        "every second element": (values[::2, ::2], values[::2, ::2]),
        "an array backwards": (values[::-1, ::-1], values[::-1, ::-1]),
        "an expanded array": (np.broadcast_to(values[0], (3, 6)), np.tile(values[0], (3, 1))),
        "no elements": (values[:0], values[:0]),
        "no axes": (values[1, 2], values[1, 2]),
        "a list": (values.tolist(), values),
    }
    for what, (source, expected) in sources.items():
        made = burn.asarray(source, dtype=dtype, device=device)
        expect(made.device is device, f"asarray of {what} is on {made.device}, not on {device}")
        expect_values(f"asarray of {what}", made, expected)


@_creation.check("asarray of lists of tensors and arrays", dtypes=for_each_dtype())
def joined(device: Device, dtype: DType) -> None:
    """Tensors and arrays in a list keep their dtype, device and graph."""
    values = typical(dtype, 4, 3)
    x = burn.asarray(values, device=device)
    made = burn.asarray([x[0], values[1], list(values[2]), tuple(x[3])])
    expect(made.device is device, f"asarray of a list is on {made.device}, not on {device}")
    expect_values("asarray of a list", made, values)
    if dtype is float32:
        leaf = x.to_device(device.autodiff()).require_grad()
        loss = burn.asarray([leaf[0], 2.0 * leaf[1]]).sum()
        expected = np.repeat(np.array([[1.0], [2.0], [0.0], [0.0]], np.float32), 3, axis=1)
        expect_values("the gradient through a list", gradient_of(leaf, loss), expected)


@_creation.check("the memory of others is theirs again", dtypes=for_each_dtype())
def copied(device: Device, dtype: DType) -> None:
    """What becomes of an array afterwards does not change the tensor that was made of it."""
    values = typical(dtype, 64)
    source = values.copy()
    made = burn.asarray(source, device=device)
    source[...] = np.roll(values, 1)
    expect_values("a tensor whose source was changed", made, values)


_UPLOADS: Final = ((200, 9), (60, 5000), (12, 300_000))
"""How many arrays are uploaded one after the other, and of how many elements."""


@_creation.check("the memory of others is theirs as soon as an upload returns")
def copied_at_once(device: Device) -> None:
    """An array that is written to at once: a library that reads it later has what comes then.

    Some libraries share arrays whose memory begins at a multiple of 64 bytes, and copy others.
    """
    for count, size in _UPLOADS:
        made, wanted = [], []
        for number in range(count):
            memory = np.zeros(4 * size + 64, np.uint8)
            shift = -memory.__array_interface__["data"][0] % 64 if number % 2 else 4
            source = memory[shift : shift + 4 * size].view(np.float32)
            source[...] = number
            made.append(burn.asarray(source, device=device))
            source[...] = -1.0
            wanted.append(np.float32(number))
        wrong = sum(
            not np.array_equal(tensor.numpy(), np.full(size, number))
            for tensor, number in zip(made, wanted, strict=True)
        )
        expect(
            not wrong,
            f"{wrong} of {count} tensors of {size} elements changed when the arrays that they were "
            "made of were written to after asarray: from_data has to copy before it returns",
        )


@_creation.check("asarray of memory at any address", dtypes=for_each_dtype())
def unaligned(device: Device, dtype: DType) -> None:
    """Numbers in the middle of other bytes, as files have them, and in read-only memory."""
    values = typical(dtype, 3, 7)
    for shift in (1, 2, 4, 8, 16):
        memory = bytes(shift) + values.tobytes()
        source = np.frombuffer(memory, dtype.numpy, offset=shift).reshape(3, 7)
        made = burn.asarray(source, device=device)
        expect_values(f"asarray of numbers {shift} bytes from the beginning", made, values)
        data = device.ops.backend.from_data(TensorData(source), device.id)
        found = device.ops.backend.to_data(data).array
        expect_values(f"an upload of numbers {shift} bytes from the beginning", found, values)
        expect_values("a part of them", burn.flip(made[1:, ::2]), np.flip(values[1:, ::2]))


_MAKERS: Final[dict[str, Callable[[Device], Tensor]]] = {
    "zeros": lambda device: burn.zeros(4, device=device),
    "full": lambda device: burn.full(4, 2.0, device=device),
    "arange": lambda device: burn.arange(4, dtype=float32, device=device),
    "eye": lambda device: burn.eye(1, 4, device=device)[0],
    "asarray": lambda device: burn.asarray([1.0, 2.0, 3.0, 4.0], device=device),
    "uniform": lambda device: burn.random.uniform(4, device=device),
    "normal": lambda device: burn.random.normal(4, device=device),
    "integers": lambda device: burn.random.integers(4, 0, 9, device=device).astype(float32),
    "linspace": lambda device: burn.linspace(0.0, 1.0, 4, device=device),
}


@_creation.check("all of them are on one device")
def they_meet(device: Device) -> None:
    """However a tensor was made, it can be computed with beside any other of its device."""
    tensors = {name: make(device) for name, make in _MAKERS.items()}
    total = np.zeros(4, np.float32)
    together = burn.zeros(4, dtype=float32, device=device)
    for name, x in tensors.items():
        expect(x.device is device, f"{name} is on {x.device}, not on {device}")
        together = together + x
        total = total + x.numpy()
    expect_values("the sum of all of them", together, total, exact=False)
    joined = burn.concat(list(tensors.values()))
    expect(joined.shape == (4 * len(tensors),), f"all of them joined have shape {joined.shape}")


@_creation.check("on the autodiff device too")
def on_autodiff(device: Device) -> None:
    """Creation on ``device.autodiff()`` gives untracked tensors there."""
    tracking = device.autodiff()
    for name, make in _MAKERS.items():
        x = make(tracking)
        expect(x.device is tracking, f"{name} is on {x.device}, not on {tracking}")
        expect(not x.is_tracked, f"{name} is tracked")
        expect(x.inner().device is device, f"{name} is above {x.inner().device}, not {device}")


SUITES: Final = [_creation.suite]
