"""Suite ``memory``: memory without references is freed, and memory in use is kept."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, float32
from burn.testing._check import Check, Failure, Skipped
from burn.testing.op_samples import OpSamples
from burn.testing.subject import Call, Subject, map_arrays
from burn.testing.suites.expectations import expect, expect_values, gradient_of
from burn.testing.suites.suite import DeviceSuite, Suite, named_check
from burn.testing.tolerance import compare

__all__ = ["SUITES"]

_memory: Final = DeviceSuite("memory", "memory is freed with its last reference, not before")

_MIB: Final = 1 << 20


# Kept: results stay what they are.


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        dtypes = [dtype for sample in samples.samples for dtype in subject.dtypes(samples, sample)]
        if dtypes:
            dtype = float32 if float32 in dtypes else dtypes[-1]
            note = "results outlive operands and later calls"
            yield named_check(
                subject, "memory", samples.op.name, dtype, note, _results_stay, samples, dtype
            )
    if not subject.hides:
        yield from _memory.checks(subject, table)


def _results_stay(subject: Subject, samples: OpSamples, dtype: DType) -> None:
    """Keep the results of all samples while operands are dropped and their memory used again."""
    kept = []
    for sample in samples.samples:
        if dtype not in subject.dtypes(samples, sample):
            continue
        call = Call.of(samples, sample, dtype, subject.index_dtype)
        operands = call.upload(subject)
        with subject.quiet():
            result = getattr(subject.table, call.op.name)(*operands, **call.attributes)
            outputs = call.outputs(result)
            values = [np.array(subject.read(output)) for output in outputs]
        shapes = [tuple(operand.shape) for operand in _tensors(operands)]
        del operands, result
        # What was freed may be given out again, and is filled with something else.
        others = [subject.table.full(shape=shape, fill_value=77, dtype=dtype) for shape in shapes]
        kept.append((call, outputs, values))
        del others
    for call, outputs, values in kept:
        for output, value in zip(outputs, values, strict=True):
            wrong = compare(subject.read(output), value, DType.of(value.dtype), exact=True).text
            if wrong:
                described = call.op.describe(call.metas, call.attributes)
                raise Failure(f"{described}: the result changed after later calls: {wrong}")


def _tensors(operands: list[Any]) -> list[Any]:
    found: list[Any] = []
    map_arrays(found.append, operands)
    return found


# Given back.


@_memory.check("tensors are freed with their last name")
def tensors_are_freed(device: Device) -> None:
    """Without the garbage collector: a primitive dies with the tensors that hold it."""
    _watch(lambda: burn.ones((16, 16), device=device) * 2.0)


@_memory.check("operands are freed with their last name")
def operands_are_freed(device: Device) -> None:
    """No operation keeps what it was given, or gave: products, windows, sums, sorts."""
    functional = burn.nn.functional
    works: dict[str, Callable[[Any, Any], Any]] = {
        "matmul": lambda x, y: x @ y,
        "linear": functional.linear,
        "conv": lambda x, y: functional.conv2d(x[None, None], y[None, None, :3, :3]),
        "sum": lambda x, y: burn.sum(x * y, axis=0),
        "softmax": lambda x, y: functional.softmax(x + y, axis=1),
        "sort": lambda x, y: burn.sort(burn.concat([x, y])),
        "take": lambda x, y: burn.take(x, burn.argmax(y, axis=0), axis=0),
        "scatter_add": lambda x, y: burn.scatter_add(x, burn.argsort(y, axis=0), y, axis=0),
    }
    with _collector_off():
        for what, work in works.items():
            work(burn.ones((16, 16), device=device), burn.ones((16, 16), device=device)).numpy()
            watched = []
            for _ in range(2):  # what keeps the operands of one call keeps them until the next
                x = burn.ones((16, 16), device=device) * 2.0
                y = burn.ones((16, 16), device=device) * 0.5
                result = work(x, y)
                result.numpy()
                watched += [_reference_to(_primitive_of(item)) for item in (x, y, result)]
                del x, y, result
            names = ("x", "y", "the result")
            alive = [
                names[k % 3]
                for k, reference_type in enumerate(watched)
                if reference_type() is not None
            ]
            expect(
                not alive, f"{what}: {' and '.join(alive)} are still there after their last name"
            )


@_memory.check("a graph is freed with its tensors")
def unused_graphs_are_freed(device: Device) -> None:
    """Without the garbage collector, and without a backward pass."""

    def make() -> Any:
        x = burn.ones((16, 16), device=device.autodiff()).require_grad()
        return burn.tanh(x @ x) * burn.exp(x)

    _watch(make)


@_memory.check("backward frees the graph")
def backward_frees(device: Device) -> None:
    """Values saved for the backward pass are freed while the result is still referenced."""
    x = burn.ones((16, 16), device=device.autodiff()).require_grad()
    y = burn.exp(x) * x
    watched = _reference_to(_primitive_of(y))
    loss = (y * y).sum()
    del y
    with _collector_off():
        gradients = loss.backward()
        expect(watched() is None, "a saved tensor is still there after backward")
    expect(x.grad(gradients) is not None, "there is no gradient")


def _watch(make: Callable[[], Any]) -> None:
    with _collector_off():
        tensor = make()
        watched = _reference_to(_primitive_of(tensor))
        tensor.detach().numpy()
        del tensor
        expect(watched() is None, "the primitive is still there after its last tensor")


def _primitive_of(tensor: Any) -> Any:
    """What the backend computes with, below autodiff."""
    return tensor.inner().primitive if tensor.is_tracked else tensor.primitive


def _reference_to(primitive: Any) -> weakref.ref[Any]:
    try:
        return weakref.ref(primitive)
    except TypeError:
        kind = type(primitive).__name__
        raise Skipped(f"a primitive of type {kind} cannot be watched by weakref") from None


@contextmanager
def _collector_off() -> Iterator[None]:
    """Context without garbage collection."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_memory.check("computing again and again needs no more memory")
def no_growth(device: Device) -> None:
    """The memory of the process stays where it is while tensors come and go."""
    rows = _rows(device)
    host = np.ones((rows, 1024), np.float32)
    x = burn.asarray(host, device=device)

    def work() -> None:
        y = (x * 1.5 + 2.0) - x
        y[:1].numpy()
        burn.asarray(host, device=device)

    _expect_no_growth(device, work, rounds=160, kept=4 * host.nbytes)


@_memory.check("products again and again need no more memory")
def no_growth_of_products(device: Device) -> None:
    """What a product needs beside its operands is used again, or freed."""
    rows = _rows(device)
    x = burn.ones((rows, 1024), dtype=float32, device=device)
    column = burn.ones((1024, 4), dtype=float32, device=device)

    def work() -> None:
        (x @ column)[:1].numpy()
        (column.T @ x.T)[:1].numpy()

    _expect_no_growth(device, work, rounds=40, kept=4 * x.size)


@_memory.check("training again and again needs no more memory")
def no_growth_in_training(device: Device) -> None:
    """Graphs come and go."""
    shape = (_rows(device), 512)
    x = burn.ones(shape, dtype=float32, device=device.autodiff())

    def work() -> None:
        weight = burn.ones(shape, dtype=float32, device=device.autodiff()).require_grad()
        gradient_of(weight, burn.tanh(x * weight + 1.0).mean())[:1].numpy()

    _expect_no_growth(device, work, rounds=120, kept=5 * x.size * 4)


def _rows(device: Device) -> int:
    """How many rows of 1,024 numbers come and go: a mebibyte, or less where that takes long.

    Of so few rows the free memory of a process may hide what is kept, so slowness is of the device,
    in seconds of the processor: a busy machine is none.
    """
    seconds = []
    for _ in range(3):  # the first time may be that of a compiler
        start = time.process_time()
        (burn.ones((256, 1024), dtype=float32, device=device) * 1.5)[:1].numpy()
        seconds.append(time.process_time() - start)
    return 256 if min(seconds) < 0.05 else 16


def _expect_no_growth(
    device: Device, work: Callable[[], object], *, rounds: int, kept: int
) -> None:
    """Fail if the process grows by an eighth of what it would if each round kept its bytes."""
    resident_bytes()  # skips where this is not known
    gc.collect()  # what it frees between the two looks would count against what is kept
    _return_free_memory()
    for _ in range(rounds // 4):
        work()
    device.sync()
    before = resident_bytes()
    for _ in range(rounds):
        work()
    device.sync()
    growth = resident_bytes() - before
    said = f"the process grew by {growth / _MIB:.1f} MiB in {rounds} rounds"
    expect(growth < rounds * kept / 8, said)


def _return_free_memory() -> None:
    """Give the free memory of the process back to the system, in which what is kept would fit.

    ``malloc_trim`` is a function of glibc; others return large blocks when they are freed.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, TypeError):  # another C library; Windows
        return
    trim(0)


@_memory.check("twice the memory of the device, one after the other", quick=False, large=True)
def twice_the_memory(device: Device) -> None:
    """A device that kept unreferenced memory would run out."""
    total = device.info.memory
    if total is None:
        raise Skipped("the device does not say how much memory it has")
    part = max(total // 16, 1)
    for number in range(32):
        x = burn.full((part // 4,), float(number), dtype=float32, device=device)
        expect_values("an element", x[-1:], np.full(1, number, np.float32))
        del x


def resident_bytes() -> int:
    """How much of the memory of the computer this process holds."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return _largest_resident_bytes()
    return pages * int(os.sysconf("SC_PAGE_SIZE"))


def _largest_resident_bytes() -> int:
    """The most that the process ever held: it grows where the process does."""
    try:
        import resource
    except ImportError:
        raise Skipped("this system does not say how much memory a process holds") from None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


SUITES: Final = [Suite(_memory.name, _memory.summary, _checks)]
