"""Indices out of range on a device that works in the background: noted there, raised on a read.

A kernel that met such an index would end all work of the process on the device. So what is passed
on is the remainder by the length, which is in range whatever the index; and the smallest and the
largest index are kept, in the memory of the device. Nobody waits for them until values are read or
the device is waited for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final, NamedTuple

import torch

from burn.backend.array import index_error

__all__ = ["NAMED", "Flags"]

Tensor = torch.Tensor

_AT_ONCE: Final = 256
"""How many calls are put into one tensor, so that reading them does not take long."""

NAMED: Final = (
    *("gather", "scatter_add", "select", "select_add", "embedding", "scatter", "select_assign"),
    *("gather_nd", "scatter_nd", "nll_loss", "cross_entropy", "cross_entropy_grad"),
    *("ctc_loss", "ctc_loss_grad", "max_pool_grad"),
)
"""Ops whose errors about indices come later, and have to say then which op they are of."""


class _Call(NamedTuple):
    """What an op was given: the least index, the length of an axis, and the name of the op."""

    least: int
    length: int
    name: str


class Flags:
    """What one device has to say of indices."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bounds: list[Tensor] = []
        """Of each call the smallest index and the largest one."""
        self._older: list[Tensor] = []
        """The same of earlier calls, many in one tensor."""
        self._calls: list[_Call] = []
        self._running = threading.local()

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        """What is noted meanwhile is of this op, or of that of which it is a part."""
        if getattr(self._running, "name", None) is not None:
            yield
            return
        self._running.name = name
        try:
            yield
        finally:
            self._running.name = None

    def noted(self, indices: Tensor, length: int, *, least: int | None = None) -> Tensor:
        """Indices in [0, length), whatever they were; those in [-length, length) as they are meant.

        `least` is the first index in range: 0 for labels, which do not count from the end.

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
        call = _Call(
            -length if least is None else least,
            length,
            getattr(self._running, "name", None) or "an op",
        )
        with self._lock:
            self._bounds += [low, high]
            self._calls.append(call)
            if len(self._bounds) >= 2 * _AT_ONCE:
                self._older.append(torch.stack(self._bounds))
                self._bounds = []
        return torch.remainder(indices, length)

    def check(self) -> None:
        """Raise what is known by now, once; the caller is about to wait for the device anyway.

        Raises
        ------
        OutOfRangeError
            If an index was out of range since the last check.
        """
        if not self._calls:
            return
        with self._lock:
            noted, calls = [*self._older, *self._bounds], self._calls
            self._older, self._bounds, self._calls = [], [], []
        bounds = torch.cat([one.reshape(-1) for one in noted]).reshape(-1, 2).tolist()
        for (low, high), call in zip(bounds, calls, strict=True):
            if low < call.least or high >= call.length:
                error = index_error(high if high >= call.length else low, call.length)
                error.operation = error.operation or f"{call.name}(...)"
                raise error
