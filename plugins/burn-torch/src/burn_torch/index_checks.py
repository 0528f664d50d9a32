"""Indices out of range on an asynchronous device: recorded there, raised at the next read.

A kernel of torch that gets an index out of range ends all work of the process on the device. So
kernels get the index modulo the length, which is in range, and the smallest and the largest index
of each call stay in device memory until values are read or the device is synchronized.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final, NamedTuple

import torch

from burn.plugin_api import CheckedOps, index_error, new_lock

__all__ = ["CapturedChecks", "IndexChecks", "as_int64", "checked"]

Tensor = torch.Tensor

_CALLS_PER_STACK: Final = 256
"""Calls whose bounds are stacked into one tensor, so that reading them takes few copies."""


class _Call(NamedTuple):
    """A call to check: the smallest valid index, the length of the axis, and the op's number."""

    least: int
    length: int
    op: int


class IndexChecks:
    """The indices that kernels of one device were given since the last check."""

    def __init__(self) -> None:
        self._checked = CheckedOps()
        self.named = self._checked.named
        """`Backend.named`: runs an op under its name."""
        self._lock = new_lock()
        self._bounds: list[Tensor] = []
        """The smallest and the largest index of each recent call."""
        self._stacked_bounds: list[Tensor] = []
        """The same of older calls, `_CALLS_PER_STACK` in each tensor."""
        self._calls: list[_Call] = []
        self._captured: set[CapturedChecks] = set()
        """The calls in CUDA graphs that ran since the last check."""
        self._thread = threading.local()

    def recorded(self, indices: Tensor, length: int, *, least: int | None = None) -> Tensor:
        """Record indices in [-length, length), or [least, length), as indices in [0, length).

        `least` is 0 for labels, which do not count from the end. An index out of range becomes one
        in range.

        Raises
        ------
        OutOfRangeError
            At once, if the axis is empty: then every index is out of range.
        """
        if not indices.numel():
            return indices
        if not length:
            raise index_error(int(indices.reshape(-1)[0]), length)
        low, high = torch.aminmax(indices)
        op = self._checked.number("an op")
        call = _Call(-length if least is None else least, length, op)
        captured = getattr(self._thread, "captured", None)
        if captured is not None:
            captured.add(low, high, call)
            return torch.remainder(indices, length)
        with self._lock:
            self._bounds += [low, high]
            self._calls.append(call)
            if len(self._bounds) >= 2 * _CALLS_PER_STACK:
                self._stacked_bounds.append(torch.stack(self._bounds))
                self._bounds = []
        return torch.remainder(indices, length)

    def raise_errors(self) -> None:
        """Check the recorded indices, which waits for the device, and forget them.

        Raises
        ------
        OutOfRangeError
            If an index was out of range since the last check.
        """
        if not self._calls and not self._captured:
            return
        with self._lock:
            recorded, calls = [*self._stacked_bounds, *self._bounds], self._calls
            self._stacked_bounds, self._bounds, self._calls = [], [], []
            captured = list(self._captured)
            self._captured.clear()
        for tensor in captured:
            recorded.append(tensor.bounds[: len(tensor.calls)].clone())
            calls = calls + tensor.calls
            tensor.clear()
        bounds = torch.cat([tensor.reshape(-1) for tensor in recorded]).reshape(-1, 2).tolist()
        for (low, high), call in zip(bounds, calls, strict=True):
            if low < call.least or high >= call.length:
                index = high if high >= call.length else low
                raise self._checked.error(call.op, index, call.length)


class CapturedChecks:
    """The indices that the kernels of one CUDA graph are given, by all launches since a check.

    Parameters
    ----------
    checks : IndexChecks
        Those of the device.
    device : torch.device
        The device.

    Attributes
    ----------
    calls : list
        The calls in the graph.
    bounds : torch.Tensor
        The smallest and the largest index of each, and of calls that are not there.
    """

    def __init__(self, checks: IndexChecks, device: torch.device) -> None:
        self._checks = checks
        self._device = device
        self._found: list[Tensor] = []
        self.calls: list[_Call] = []
        self.bounds = torch.zeros(_CALLS_PER_STACK, 2, dtype=torch.int64, device=device)
        """Together with 0, which is in range: axes of length 0 are refused."""

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Context in which a function is captured, and which captures the checks after it."""
        self._checks._thread.captured = self
        try:
            yield
            if self.calls:
                found = torch.stack([tensor.to(torch.int64) for tensor in self._found]).reshape(
                    -1, 2
                )
                low, high = self.bounds[: len(self.calls)].unbind(1)
                low.copy_(torch.minimum(low, found[:, 0]))
                high.copy_(torch.maximum(high, found[:, 1]))
        finally:
            self._found = []
            del self._checks._thread.captured

    def add(self, low: Tensor, high: Tensor, call: _Call) -> None:
        """Take the bounds of a call.

        Raises
        ------
        RuntimeError
            If there are too many calls for one graph.
        """
        if len(self.calls) == _CALLS_PER_STACK:
            raise RuntimeError(f"more than {_CALLS_PER_STACK} calls check indices")
        self._found += [low, high]
        self.calls.append(call)

    def launched(self) -> None:
        """Have the next check read the bounds."""
        if self.calls:
            self._checks._captured.add(self)

    def clear(self) -> None:
        """Forget the indices of all launches."""
        self.bounds.zero_()


def as_int64(indices: Tensor) -> Tensor:
    """Indices as int64; those beyond it as its largest number."""
    if indices.dtype is torch.uint64:  # an index beyond int64 is out of range for every axis
        signed = indices.view(torch.int64)
        return torch.where(signed < 0, (1 << 63) - 1, signed)
    return indices.to(torch.int64)


def checked(indices: Tensor, length: int, *, least: int | None) -> Tensor:
    """Indices in [0, length).

    Raises
    ------
    OutOfRangeError
        If one is not in [-length, length), or in [least, length).
    """
    if not indices.numel():
        return indices
    low, high = (int(bound) for bound in torch.aminmax(indices))
    if low < (-length if least is None else least) or high >= length:
        raise index_error(high if high >= length else low, length)
    return indices if low >= 0 else torch.where(indices < 0, indices + length, indices)
