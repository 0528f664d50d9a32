"""Suite ``failures``: an error on a device is raised once, no later than by the next read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn import namespace as burn
from burn.devices import Device
from burn.errors import BurnError, ExecutionError, OutOfMemoryError, OutOfRangeError
from burn.testing._check import Failure
from burn.testing.suites.expectations import expect, expect_values, gradient_of
from burn.testing.suites.suite import DeviceSuite

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["SUITES"]

_failures: Final = DeviceSuite("failures", "what goes wrong is told by the next read, and once")


def _bad_take(device: Device) -> Tensor:
    x = burn.asarray([1.0, 2.0, 3.0], device=device)
    return burn.take(x, burn.asarray([0, 3], device=device), axis=0)


def _bad_scatter(device: Device) -> Tensor:
    x = burn.zeros(3, device=device)
    indices = burn.asarray([0, -4], device=device)
    return burn.scatter_add(x, indices, burn.ones(2, device=device), axis=0)


def _bad_labels(device: Device) -> Tensor:
    logits = burn.zeros((2, 3), device=device)
    return burn.nn.functional.cross_entropy(logits, burn.asarray([0, 7], device=device))


def _padding_labels(device: Device) -> Tensor:
    logits = burn.zeros((2, 3), device=device)
    return burn.nn.functional.nll_loss(logits, burn.asarray([0, -1], device=device))


def _no_probabilities(device: Device) -> Tensor:
    targets = burn.asarray([0.0, 1.5], device=device)
    return burn.nn.functional.binary_cross_entropy_with_logits(
        burn.zeros(2, device=device), targets
    )


def _no_weights(device: Device) -> Tensor:
    return burn.random.categorical(burn.asarray([1.0, -1.0], device=device))


_WRONG: Final[dict[str, Callable[[Device], Any]]] = {
    "take": _bad_take,
    "scatter_add": _bad_scatter,
    "cross_entropy": _bad_labels,
    "nll_loss": _padding_labels,
    "binary_cross_entropy_with_logits": _no_probabilities,
    "categorical": _no_weights,
}
"""Work that fails by its data, so that only the device finds out."""


def _works(device: Device) -> None:
    """The device computes as if nothing had been."""
    x = burn.asarray([1.0, 2.0], device=device)
    expect_values("a sum after a failure", x + x, np.array([2.0, 4.0], x.dtype.numpy))
    device.sync()


@_failures.check("an index out of range raises by the next read")
def raises_by_the_read(device: Device) -> None:
    """As an `OutOfRangeError`, which is an `ExecutionError` and an `IndexError`."""
    for name, work in _WRONG.items():
        try:
            found = work(device).numpy()
        except IndexError as error:
            expect(isinstance(error, OutOfRangeError), f"{name} raised {error!r}")
        else:
            raise Failure(f"{name} of an index that is out of range gave {found}")
        _forget(device)
        _works(device)


@_failures.check("an index out of range raises by the next sync")
def raises_by_the_sync(device: Device) -> None:
    """Also where the result is never read."""
    for name, work in _WRONG.items():
        raised = False
        try:
            work(device)
            device.sync()
        except OutOfRangeError:
            raised = True
        expect(raised, f"neither {name} of an index that is out of range nor sync() raised")
        _works(device)


@_failures.check("each index out of range is told as it is")
def told_as_it_is(device: Device) -> None:
    """The second failure as the first one: with its own index, also after work that succeeds."""
    x = burn.asarray([1.0, 2.0, 3.0], device=device)
    zeros = burn.zeros(3, device=device)
    ones = burn.ones(2, device=device)
    for wrong, told in (
        ([0, 3], "3"),
        ([-7, 1], "-7"),
        ([1, 5], "5"),
        ([9, 9], "9"),
        ([0, 3], "3"),
    ):
        indices = burn.asarray(wrong, device=device)
        works: dict[str, Callable[[], Tensor]] = {
            "take": partial(burn.take, x, indices, axis=0),
            "take_along_axis": partial(burn.take_along_axis, x, indices, axis=0),
            "scatter_add": partial(burn.scatter_add, zeros, indices, ones, axis=0),
        }
        for what, work in works.items():
            try:
                found = work().numpy()
            except OutOfRangeError as error:
                text = f"index {told} "
                expect(text in str(error), f"{what}: the message does not say {text!r}: {error}")
            else:
                raise Failure(f"{what} of the indices {wrong} gave {found}")
            _forget(device)
            right = burn.take(x, burn.asarray([2, -3], device=device), axis=0)
            expect_values("elements after a failure", right, np.array([3.0, 1.0], np.float32))


@_failures.check("of two failures before a read one is told")
def two_failures(device: Device) -> None:
    """The read says one of them, and neither spoils what comes later."""
    try:
        first, second = _bad_take(device), _bad_scatter(device)
        found = first.numpy()
    except OutOfRangeError:
        pass  # at once, or by the read
    else:
        del second
        raise Failure(f"what failed before other work failed was read as {found}")
    _forget(device)
    _works(device)


@_failures.check("what depends on failed work raises too")
def dependents_raise(device: Device) -> None:
    """A result that was computed from it is not read as if nothing had been."""
    try:
        values = (_bad_take(device) * 2 + 1).numpy()
    except OutOfRangeError:
        pass
    else:
        raise Failure(f"what was computed from failed work gave {values}")
    _forget(device)
    _works(device)


@_failures.check("a failure is told once")
def told_once(device: Device) -> None:
    """The program that caught it goes on."""
    _forget(device, _bad_take)
    for _ in range(3):
        device.sync()
        _works(device)


@_failures.check("other tensors are as they were")
def others_unharmed(device: Device) -> None:
    """Tensors from before a failure, and its operands, can be read after it."""
    x = burn.asarray([1.0, 2.0, 3.0], device=device)
    y = x * 2
    indices = burn.asarray([0, 3], device=device)
    try:
        burn.take(y, indices, axis=0).numpy()
    except OutOfRangeError:
        pass
    else:
        raise Failure("take() of an index that is out of range did not raise")
    _forget(device)
    expect_values("an operand of failed work", y, np.array([2, 4, 6], y.dtype.numpy))
    expect_values("the indices of failed work", indices, np.array([0, 3], indices.dtype.numpy))


@_failures.check("a failure under autodiff is the same")
def under_autodiff(device: Device) -> None:
    """Tracking does not hide it, nor backward."""
    x = burn.asarray([1.0, 2.0, 3.0], device=device.autodiff()).require_grad()
    try:
        loss = burn.take(x, burn.asarray([5], device=device), axis=0).sum()
        gradient_of(x, loss).numpy()
    except OutOfRangeError:
        pass
    else:
        raise Failure("neither forward nor backward raised for an index that is out of range")
    _forget(device)
    _works(device)


@_failures.check("too much memory is an error, and no more")
def too_much_memory(device: Device) -> None:
    """A tensor that fits nowhere raises an `OutOfMemoryError`, and the device goes on.

    It may be there all the same, where equal elements share their memory, if it reads right.
    """
    for shape in ((1 << 56,), (1 << 30, 1 << 27)):
        try:
            x = burn.full(shape, 1.0, dtype="float32", device=device)
            device.sync()
            last = x[(slice(-1, None),) * x.ndim].numpy().ravel()
        except (BurnError, MemoryError) as error:
            right = isinstance(error, OutOfMemoryError)
            expect(right, f"{type(error).__name__} is no OutOfMemoryError: {error}")
        else:
            expect_values("the end of what fits nowhere", last, np.ones(1, np.float32))
        _works(device)


def _forget(device: Device, work: Callable[[Device], Any] | None = None) -> None:
    """Let everything that is still to be raised be raised."""
    try:
        if work is not None:
            work(device)
        device.sync()
    except ExecutionError:
        pass


SUITES: Final = [_failures.suite]
