"""Suite ``threads``: several threads compute, draw and differentiate on one device."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, float32
from burn.testing._check import Check, Failure
from burn.testing.op_samples import Array, OpSamples, Sample
from burn.testing.subject import Call, Subject
from burn.testing.suites.expectations import expect, expect_values, gradient_of
from burn.testing.suites.suite import DeviceSuite, Suite, named_check

__all__ = ["SUITES"]

_THREADS: Final = 4
_ROUNDS: Final = 4

_users: Final = DeviceSuite("threads", "several threads work on one device")


@_users.check("programs in threads give what they give alone")
def programs(device: Device) -> None:
    """Each thread runs a small network on numbers of its own."""

    def program(number: int) -> Array:
        x = burn.reshape(burn.arange(24, dtype=float32, device=device), (4, 6)) * 0.1 + number
        for _ in range(10):
            x = (
                burn.nn.functional.softmax(x @ burn.permute_dims(x, (1, 0)) @ x + number, axis=1)
                + x * 0.5
            )
        return x.numpy()

    alone = [program(number) for number in range(_THREADS)]
    found = _in_threads([partial(program, number) for number in range(_THREADS)])
    for number, results in enumerate(found):
        for result in results:
            expect_values(f"the program of thread {number}", result, alone[number])


@_users.check("gradients in threads are those of each thread")
def gradients(device: Device) -> None:
    """Forward in one thread each, backward too."""

    def slope(number: int) -> Array:
        x = burn.asarray([1.0, 2.0], device=device.autodiff()).require_grad()
        return gradient_of(x, (x * x * number).sum()).numpy()

    found = _in_threads([partial(slope, number) for number in range(_THREADS)])
    for number, results in enumerate(found):
        for result in results:
            expected = np.array([2.0, 4.0], result.dtype) * number
            expect_values(f"a gradient of thread {number}", result, expected)


@_users.check("backward runs in another thread than forward")
def backward_elsewhere(device: Device) -> None:
    """A graph belongs to no thread."""
    x = burn.asarray([3.0], device=device.autodiff()).require_grad()
    loss = (x * x).sum()
    ((gradient,),) = _in_threads([lambda: gradient_of(x, loss).numpy()], rounds=1)
    expect_values("the gradient", gradient, np.array([6.0], gradient.dtype))


@_users.check("threads never draw the same numbers")
def numbers(device: Device) -> None:
    """All draws of all threads together are those of one thread."""
    count, rounds = 8, 25
    device.seed(11)
    whole = burn.random.integers(
        _THREADS * rounds * count, 0, 1 << 30, dtype="int32", device=device
    )
    device.seed(11)

    def draw() -> Array:
        return burn.random.integers(count, 0, 1 << 30, dtype="int32", device=device).numpy()

    drawn = [result for results in _in_threads([draw] * _THREADS, rounds) for result in results]
    expected = {tuple(row) for row in whole.numpy().reshape(-1, count).tolist()}
    found = {tuple(tensor.tolist()) for tensor in drawn}
    expect(found == expected, f"{len(expected - found)} of {len(expected)} draws never came")


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        dtype, chosen = _distinct(subject, samples)
        if dtype is not None and len(chosen) > 1:
            note = "in threads as alone"
            yield named_check(
                subject, "threads", samples.op.name, dtype, note, _check_op, samples, chosen, dtype
            )
    yield from _users.checks(subject, table)


def _distinct(subject: Subject, samples: OpSamples) -> tuple[DType | None, list[Sample]]:
    """A dtype, and some samples of different values for it."""
    for wanted in (float32, None):
        chosen: list[Sample] = []
        found = wanted
        for sample in samples.samples:
            dtypes = subject.dtypes(samples, sample)
            found = found or (dtypes[-1] if dtypes else None)
            if found in dtypes and len(chosen) < _THREADS:
                chosen.append(sample)
        if len(chosen) > 1:
            return found, chosen
    return None, []


def _check_op(subject: Subject, samples: OpSamples, chosen: Sequence[Sample], dtype: DType) -> None:
    """Run one sample per thread, again and again; each has to give what it gives alone."""
    calls = [Call.of(samples, sample, dtype, subject.index_dtype) for sample in chosen]
    operands = [call.upload(subject) for call in calls]

    def run(number: int) -> list[Array]:
        call = calls[number]
        with subject.quiet():
            result = getattr(subject.table, call.op.name)(*operands[number], **call.attributes)
            return [np.array(subject.read(output)) for output in call.outputs(result)]

    alone = [run(number) for number in range(len(calls))]
    found = _in_threads([partial(run, number) for number in range(len(calls))])
    for number, results in enumerate(found):
        for result in results:
            for tensor, other in zip(result, alone[number], strict=True):
                if tensor.shape != other.shape or not np.array_equal(
                    tensor, other, equal_nan=tensor.dtype.kind in "fcV"
                ):
                    call = calls[number]
                    raise Failure(
                        f"{call.op.describe(call.metas, call.attributes)} gave {tensor} in a "
                        f"thread beside others, and {other} alone",
                    )


def _in_threads(functions: Sequence[Callable[[], Any]], rounds: int = _ROUNDS) -> list[list[Any]]:
    """What functions return, each called in a thread of its own, all at the same time."""
    results: list[list[Any]] = [[] for _ in functions]
    errors: list[BaseException] = []
    start = threading.Barrier(len(functions))

    def work(number: int) -> None:
        try:
            start.wait(60)
            for _ in range(rounds):
                results[number].append(functions[number]())
        except BaseException as error:  # noqa: BLE001 — raised again below
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=(number,), daemon=True)
        for number in range(len(functions))
    ]
    with _often_switching():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    if errors:
        raise errors[0]
    expect(not any(thread.is_alive() for thread in threads), "threads wait for each other")
    return results


@contextmanager
def _often_switching() -> Iterator[None]:
    """Let threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


SUITES: Final = [Suite(_users.name, _users.summary, _checks, of_devices=True)]
