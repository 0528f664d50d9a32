"""Uploads, and host memory that a device reads by itself."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn_opencl.buffers import piece_size

if TYPE_CHECKING:
    from burn_opencl.runtime import Runtime

__all__ = ["Pinned", "Uploads"]

Array = np.ndarray[Any, Any]

_COPIED: Final = 1 << 20
"""Up to so many bytes are copied on the host, so that an upload need not wait for its turn."""

_UNDER_WAY: Final = 1 << 26
"""So many bytes may be under way before an upload waits for those before it."""

_LEAST: Final = 1 << 16
"""A small upload counts as so many: there are not to be too many of them either."""


class Pinned(np.ndarray[Any, Any]):
    """Memory of the host that is pinned, and that nobody writes to."""


class _Piece:
    """Pinned memory, which goes back to those that are free with the last array in it."""

    def __init__(self, holder: Any, values: Array, free: deque[tuple[Any, Array]]) -> None:
        self._holder = holder
        self._values = values
        self._free = free
        self.__array_interface__ = values.__array_interface__

    def __del__(self) -> None:
        self._free.append((self._holder, self._values))


class Uploads:
    """The way of host memory to one device.

    Uploads stand in the queue of the device before the work that needs them, so none is waited for.
    Memory of the caller's is copied first where it is small, and else read before `write` returns.

    Parameters
    ----------
    runtime : Runtime
        The device.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._free: dict[int, deque[tuple[Any, Array]]] = {}
        self._under_way: deque[tuple[Any, int]] = deque()
        self._bytes = 0

    def pinned(self, values: Array) -> Array:
        """A read-only copy in pinned memory; the values themselves where there is no use in it."""
        if self._runtime.is_cpu or not values.size or isinstance(values, Pinned):
            return values
        size = piece_size(values.nbytes)
        free = self._free.setdefault(size, deque())
        try:
            found: tuple[Any, Array] | None = free.pop()
        except IndexError:
            found = self._runtime.pinned(size)
        if found is None:
            return values
        flat = np.asarray(_Piece(*found, free))[: values.nbytes]
        result = flat.view(values.dtype).reshape(values.shape).view(Pinned)
        result[...] = values
        result.flags.writeable = False
        return result

    def write(self, memory: Any, values: Array) -> None:
        """Upload values to the start of a piece of memory; they are the caller's again after it."""
        runtime = self._runtime
        values = np.ascontiguousarray(values) if not isinstance(values, Pinned) else values
        flat = values.reshape(-1).view(np.uint8)
        if not isinstance(values, Pinned):
            if flat.nbytes > _COPIED:
                runtime.write(memory, flat)
                return
            flat = flat.copy()
        with self._lock:
            size = max(_LEAST, flat.nbytes)
            self._settle(_UNDER_WAY - size)
            self._under_way.append((runtime.write_soon(memory, flat), size))
            self._bytes += size

    def _settle(self, allowed: int) -> None:
        """Forget what is done; wait for the first until no more than so many bytes are left."""
        runtime, under_way = self._runtime, self._under_way
        while under_way:
            work, size = under_way[0]
            if self._bytes <= allowed and not runtime.is_done(work):
                return
            under_way.popleft()
            self._bytes -= size
            runtime.wait_for(work)  # an upload that failed is told of here

    def settle(self) -> None:
        """Forget what is done."""
        with self._lock:
            self._settle(_UNDER_WAY)

    def release(self) -> None:
        """Give pinned memory that is not in use to the system."""
        with self._lock:
            self._settle(0)
        for free in list(self._free.values()):
            free.clear()
