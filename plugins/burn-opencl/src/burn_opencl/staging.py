"""Uploads, and pinned host memory, which a device reads directly."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn_opencl.buffers import piece_size
from burn_opencl.leases import Lease, Leases

if TYPE_CHECKING:
    from burn_opencl.runtime import Runtime

__all__ = ["Pinned", "Uploads"]

Array = np.ndarray[Any, Any]

_MAX_BYTES_TO_COPY_FIRST: Final = 1 << 20
"""Up to so many bytes are copied on the host, so that the caller need not wait for the upload."""

_MAX_PENDING_BYTES: Final = 1 << 26
"""Bytes of uploads in the queue; a further one waits for those before it."""

_MIN_COUNTED_BYTES: Final = 1 << 16
"""A smaller upload counts as so many bytes, which limits the number of pending uploads."""


class Pinned(np.ndarray[Any, Any]):
    """An array in pinned memory, which is not written to again."""


class _Piece:
    """Pinned memory, which becomes free with the last array in it."""

    def __init__(self, values: Array) -> None:
        self.__array_interface__ = values.__array_interface__


class Uploads:
    """Uploads of host memory to one device.

    An upload precedes the work that needs it in the queue, so the host does not wait for it. Small
    arrays of the caller are copied first; large ones are read before `write` returns.

    Parameters
    ----------
    runtime : Runtime
        The device.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._free: dict[int, deque[Lease[tuple[Any, Array]]]] = {}
        self._leases: Leases[tuple[Any, Array]] = Leases()
        self._pending: deque[tuple[Any, int]] = deque()
        self._bytes = 0

    def pinned(self, values: Array) -> Array:
        """A read-only copy in pinned memory; the values themselves where that has no advantage."""
        if self._runtime.is_cpu or not values.size or isinstance(values, Pinned):
            return values
        size = piece_size(values.nbytes)
        free = self._free.setdefault(size, deque())
        found = self._leases.taken(free) or self._runtime.pinned(size)
        if found is None:
            return values
        piece = _Piece(found[1])
        self._leases.lend(piece, found, free)
        flat = np.asarray(piece)[: values.nbytes]
        result = flat.view(values.dtype).reshape(values.shape).view(Pinned)
        result[...] = values
        result.flags.writeable = False
        return result

    def write(self, memory: Any, values: Array) -> None:
        """Upload values to the start of device memory; the caller may change them afterwards."""
        runtime = self._runtime
        values = np.ascontiguousarray(values) if not isinstance(values, Pinned) else values
        flat = values.reshape(-1).view(np.uint8)
        if not isinstance(values, Pinned):
            if flat.nbytes > _MAX_BYTES_TO_COPY_FIRST:
                runtime.write(memory, flat)
                return
            flat = flat.copy()
        with self._lock:
            size = max(_MIN_COUNTED_BYTES, flat.nbytes)
            self._settle(_MAX_PENDING_BYTES - size)
            self._pending.append((runtime.write_soon(memory, flat), size))
            self._bytes += size

    def _settle(self, allowed: int) -> None:
        """Drop finished uploads; wait for the oldest until at most so many bytes are pending."""
        runtime, pending = self._runtime, self._pending
        while pending:
            work, size = pending[0]
            if self._bytes <= allowed and not runtime.is_done(work):
                return
            pending.popleft()
            self._bytes -= size
            runtime.wait_for(work)  # raises if the upload failed

    def settle(self) -> None:
        """Drop finished uploads."""
        with self._lock:
            self._settle(_MAX_PENDING_BYTES)

    def release(self) -> None:
        """Free pinned memory that is not in use."""
        with self._lock:
            self._settle(0)
        for free in list(self._free.values()):
            while self._leases.taken(free) is not None:
                pass
