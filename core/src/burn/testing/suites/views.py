"""Suite ``views``: a write to a tensor is seen in its views, and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, float32
from burn.functions.common import dispatch
from burn.ops import Tag
from burn.testing._check import Check
from burn.testing.op_samples import OpSamples, Sample
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.suites.expectations import expect, expect_values, gradient_of, typical
from burn.testing.suites.suite import DeviceSuite, Suite, for_each_dtype, named_check

__all__ = ["SUITES"]

_views: Final = DeviceSuite("views", "a write to a tensor is seen in its views and nowhere else")

_SHAPE: Final = (3, 4)

_MAKERS: Final[dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "x[1]": (lambda x: x[1], lambda x: x[1]),
    "x[:, 1:3]": (lambda x: x[:, 1:3], lambda x: x[:, 1:3]),
    "x[::-2, None, ::3]": (lambda x: x[::-2, None, ::3], lambda x: x[::-2, None, ::3]),
    "x[2, 3]": (lambda x: x[2, 3], lambda x: x[2, 3, ...]),
    "x[...]": (lambda x: x[...], lambda x: x[...]),
    "reshape(x, (2, 6))": (lambda x: burn.reshape(x, (2, 6)), lambda x: x.reshape(2, 6)),
    "x.T": (lambda x: x.T, lambda x: x.T),
    "flip(x, axis=1)": (lambda x: burn.flip(x, axis=1), lambda x: x[:, ::-1]),
    "split(x, 2, axis=1)[1]": (lambda x: burn.split(x, 2, axis=1)[1], lambda x: x[:, 2:]),
    "unstack(x)[2]": (lambda x: burn.unstack(x)[2], lambda x: x[2]),
    "expand_dims(x, 1)": (lambda x: burn.expand_dims(x, axis=1), lambda x: x[:, None]),
    "reshape(x.T, (6, 2))": (lambda x: burn.reshape(x.T, (6, 2)), lambda x: x.T.reshape(6, 2)),
    "x.T[1:3][:, ::2]": (lambda x: x.T[1:3][:, ::2], lambda x: x.T[1:3][:, ::2]),
}
"""Ways to make a view of a tensor, and to take the same elements of an array."""

_COPIES: Final[dict[str, Callable[[Any], Any]]] = {
    "astype": lambda x: x.astype(x.dtype),
    "detach": lambda x: x.detach(),
    "flatten": lambda x: x.flatten(),
    "reshape(copy=True)": lambda x: burn.reshape(x, (4, 3), copy=True),
    "asarray(copy=True)": lambda x: burn.asarray(x, copy=True),
    "x[[0, 2]]": lambda x: x[burn.asarray([0, 2], device=x.device)],
    "a copy of a view": lambda x: x[1:].detach(),
    "numpy": lambda x: x.numpy(),
    "numpy of a view": lambda x: x.T[1].numpy(),
    "from_dlpack": lambda x: burn.from_dlpack(x, copy=None),
}
"""Ways to make what no write changes. Each keeps what it makes alive while `x` is written to."""


@_views.check("writes to a view and to its tensor are seen in both", dtypes=for_each_dtype())
def writes_go_through(device: Device, dtype: DType) -> None:
    """Every way to make a view, written to and written around, against NumPy."""
    start, values = typical(dtype, *_SHAPE), typical(dtype, 5, *_SHAPE)[2:]
    for name, (ours, theirs) in _MAKERS.items():
        x = burn.asarray(start, device=device)
        row, view, other = x[1], ours(x), x.T
        array = start.copy()
        positions = theirs(np.arange(start.size).reshape(_SHAPE))
        new = values[0].reshape(-1)[: positions.size].reshape(positions.shape)
        for step in range(3):
            if step == 0:
                x[...], array[...] = burn.asarray(values[1], device=device), values[1]
            elif step == 1:
                view[...] = burn.asarray(new, device=device)
                array.reshape(-1)[positions] = new
            else:
                other[0], array.T[0] = row[:3], array[1][:3].copy()
            expect_values(f"x after write {step} ({name})", x, array)
            expect_values(f"{name} after write {step}", view, array.reshape(-1)[positions])
            expect_values(f"x[1] after write {step} ({name})", row, array[1])
            expect_values(f"x.T after write {step} ({name})", other, array.T)


@_views.check("x += y is seen in views", dtypes=for_each_dtype(lambda dtype: not dtype.is_bool))
def operators_go_through(device: Device, dtype: DType) -> None:
    """In-place operators, on a tensor, on a view and on an element of it."""
    start = np.ones(_SHAPE, dtype.numpy)
    x = burn.asarray(start, device=device)
    view, array = x[:, 1:3], start.copy()
    x *= 2
    array *= array.dtype.type(2)
    view += 1
    array[:, 1:3] += array.dtype.type(1)
    view[0] += 3
    array[0, 1:3] += array.dtype.type(3)
    expect_values("x", x, array)
    expect_values("the view", view, array[:, 1:3])


@_views.check("a write changes nothing that is no view")
def copies_stay(device: Device) -> None:
    """What was made of a tensor, or of its memory, stays what it is when elements are assigned."""
    start = typical(float32, *_SHAPE)
    for name, make in _COPIES.items():
        x = burn.asarray(start, device=device)
        x[0, 0] = start[0, 0]  # from here on the memory is the tensor's own
        made = make(x)
        before = np.array(made if isinstance(made, np.ndarray) else made.numpy())
        x[1] = 77.0
        x[:, 1] = 78.0
        expect_values(f"{name} after a write", made, before)


@_views.check("a write changes no value that a gradient needs")
def saved_values_stay(device: Device) -> None:
    """A gradient rule saves an operand, which is then written to."""
    tracked = device.autodiff()
    w = burn.asarray([2.0, 3.0], device=tracked).require_grad()
    x = burn.asarray([5.0, 7.0], device=tracked)
    x[0] = 5.0
    loss = burn.sum(w * x)
    x[0] = 100.0
    expect_values("the gradient", gradient_of(w, loss), np.array([5.0, 7.0], np.float32))


@_views.check("writes to a tracked tensor have gradients")
def tracked_writes(device: Device) -> None:
    """The gradient of what is overwritten is 0, in the tensor and in its views."""
    x = burn.asarray([1.0, 2.0, 3.0], device=device.autodiff()).require_grad()
    y = x * 2.0
    view = y[:2]
    view[0] = 10.0
    y[2] *= 5.0
    loss = burn.sum(y) + burn.sum(view)
    expect_values("y", y.inner(), np.array([10.0, 4.0, 30.0], np.float32))
    expect_values("the gradient", gradient_of(x, loss), np.array([0.0, 4.0, 10.0], np.float32))


@_views.check("writes of several threads are not lost")
def writes_of_threads(device: Device) -> None:
    """Each thread writes to positions of its own, directly and through a view."""
    count, rounds = 4, 6
    x = burn.zeros((count, rounds), device=device, dtype=float32)
    barrier = threading.Barrier(count)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            barrier.wait()
            row = x[number]
            for position in range(rounds):
                target, key = (row, position) if position % 2 else (x, (number, position))
                target[key] = number * 10.0 + position
        except BaseException as error:  # noqa: BLE001 — told by the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, f"a thread raised {failures[:1]}")
    expected = np.arange(count)[:, None] * 10.0 + np.arange(rounds)
    expect_values("x", x, expected.astype(np.float32))


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    if subject.handle is None:
        return
    for samples in table:
        chosen = [
            sample for sample in samples.samples if float32 in subject.dtypes(samples, sample)
        ]
        chosen = [sample for sample in chosen if _is_whole(sample)]
        if chosen and Tag.RANDOM not in samples.op.tags:
            note = "results have their own memory"
            yield named_check(
                subject, "views", samples.op.name, float32, note, _has_own_memory, samples, chosen
            )
    yield from _views.checks(subject, table)


def _is_whole(one: Sample) -> bool:
    """Whether its first operand is a tensor that can be written to."""
    first = one.operands[0] if one.operands else None
    return isinstance(first, np.ndarray) and first.size > 0


_KEPT: Final = 4
"""Samples of an op whose results are looked at while their operands are written to."""


def _has_own_memory(subject: Subject, samples: OpSamples, chosen: Sequence[Sample]) -> None:
    """An op that gives its operand back, or a part of its memory, must not be seen to do so."""
    device: Any = subject.handle
    for sample in [*chosen[: _KEPT - 1], chosen[-1]]:
        call = Call.of(samples, sample, float32, subject.index_dtype)
        with subject.quiet():
            operands = map_arrays(lambda array: burn.asarray(array, device=device), call.operands)
            first = operands[0]
            first[...] = burn.asarray(call.operands[0], device=device)  # its memory is its own now
            outputs = call.outputs(dispatch.execute(call.op.name, *operands, **call.attributes))
            before = [np.array(dispatch.to_data(output).array) for output in outputs]
            first[...] = burn.flip(first) if first.ndim else first * 0
            first[...] = burn.ones_like(first)
            for output, values in zip(outputs, before, strict=True):
                what = f"{call.op.describe(call.metas, call.attributes)}, after a write to x,"
                expect_values(what, dispatch.to_data(output).array, values)


SUITES: Final = [Suite(_views.name, _views.summary, _checks, of_devices=True)]
