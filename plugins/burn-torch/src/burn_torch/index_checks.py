"""Indices out of range on an asynchronous device: recorded there, raised at the next read.

A kernel of torch that gets an index out of range ends all work of the process on the device. So
kernels get the index modulo the length, which is in range, and the smallest and the largest index
of each call stay in device memory until values are read or the device is synchronized.
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

import torch

from burn.plugin_api import CheckedOps, index_error

__all__ = ["IndexChecks"]

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
        self._lock = threading.Lock()
        self._bounds: list[Tensor] = []
        """The smallest and the largest index of each recent call."""
        self._stacked_bounds: list[Tensor] = []
        """The same of older calls, `_CALLS_PER_STACK` in each tensor."""
        self._calls: list[_Call] = []

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
        if not self._calls:
            return
        with self._lock:
            recorded, calls = [*self._stacked_bounds, *self._bounds], self._calls
            self._stacked_bounds, self._bounds, self._calls = [], [], []
        bounds = torch.cat([one.reshape(-1) for one in recorded]).reshape(-1, 2).tolist()
        for (low, high), call in zip(bounds, calls, strict=True):
            if low < call.least or high >= call.length:
                index = high if high >= call.length else low
                raise self._checked.error(call.op, index, call.length)
