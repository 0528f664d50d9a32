"""Objects with large arrays, from one process to another through memory that both have.

Pickle's protocol 5 gives the memory of arrays apart. It is copied once, to a file without a name
(``memfd_create``): nothing of it is left when the last process that has it ends, however that ends,
and no limit of ``/dev/shm`` applies. Where the system has no such files, all goes through the pipe.
"""

from __future__ import annotations

import contextlib
import copyreg
import io
import mmap
import os
import pickle
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.reduction import DupFd
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from burn.data._forks import Copies, follow, make_private
from burn.data.mapped_files import reduced_map

__all__ = ["Memory", "Reader", "Sent", "Slot", "Writer", "available", "own_copy", "shared"]

_LEAST: Final = 32 * 1024
"""Bytes from which on an array does not go through the pipe."""

_ALIGNMENT: Final = 64
"""Bytes: that of a line of a cache, which is more than any instruction asks for."""

_SMALLEST_SLOT: Final = 64 * 1024
"""Bytes: a multiple of the pages of every system, as offsets of maps have to be."""

_MOST_SLOTS: Final = 32
"""Each map has a file descriptor, of which a process often has 1024; more goes through the pipe."""

Slot: TypeAlias = tuple[int, int]
"""Offset and capacity in bytes: capacities are powers of two, so that slots fit again and again."""


class Sent(NamedTuple):
    """What goes through the pipe.

    Attributes
    ----------
    data : bytes
        The pickle, without its large buffers.
    slot : tuple of int or None
        Where these are; None if there are none.
    sizes : tuple of int
        Their bytes.
    """

    data: bytes
    slot: Slot | None = None
    sizes: tuple[int, ...] = ()


def available() -> bool:
    """Whether this system has files without a name, which other processes can be given."""
    return sys.platform == "linux" and hasattr(os, "memfd_create")


class Memory:
    """A file in memory, without a name; a child that is being spawned can be given it.

    Parameters
    ----------
    descriptor : int, optional
        That of such a file; a new one if left out.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create("burn.data") if sys.platform == "linux" else -1
        self.descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)
        self._close.atexit = False  # a thread may still use it, and the system closes all files

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (DupFd(self.descriptor),)

    def close(self) -> None:
        """Give the file back; what is mapped of it stays until the last array goes."""
        self._close()

    def map(self, slot: Slot, access: int = mmap.ACCESS_WRITE) -> mmap.mmap:
        """The memory of a slot."""
        offset, capacity = slot
        return mmap.mmap(self.descriptor, capacity, access=access, offset=offset)


def _received(duplicate: Any) -> Memory:
    return Memory(duplicate.detach())


class Writer:
    """Puts objects where a `Reader` of another process finds them.

    Parameters
    ----------
    memory : Memory or None
        The file; with None all goes through the pipe.
    """

    def __init__(self, memory: Memory | None) -> None:
        self._memory = memory
        self._maps: dict[Slot, mmap.mmap] = {}
        self._free: list[Slot] = []
        self._end = 0

    def write(self, value: Any) -> Sent:
        """Pickle an object, and copy its large arrays.

        Parameters
        ----------
        value : object
            What another process is to have.

        Returns
        -------
        Sent
            For the pipe.
        """
        data, buffers = _dumps(value, apart=self._memory is not None)
        if not buffers:
            return Sent(data)
        slot = self._take(_size(buffers))
        if slot is None:
            return Sent(_dumps(value, apart=False)[0])
        return Sent(data, slot, _copy(buffers, self._maps[slot]))

    def release(self, slots: Sequence[Slot]) -> None:
        """Use slots again that the reader has no array of any more."""
        self._free += slots

    def _take(self, size: int) -> Slot | None:
        """A slot that nothing uses; None if there is no memory or too many slots."""
        capacity = max(_SMALLEST_SLOT, 1 << (size - 1).bit_length())
        for index, (_, other) in enumerate(self._free):
            if other == capacity:
                return self._free.pop(index)
        if self._memory is None or len(self._maps) == _MOST_SLOTS:
            return None
        slot = (self._end, capacity)
        with contextlib.suppress(OSError, ValueError):  # the pipe can do without
            os.truncate(self._memory.descriptor, self._end + capacity)
            self._maps[slot] = self._memory.map(slot)
            self._end += capacity
            return slot
        return None


class _Use(weakref.ref[Any]):
    """A weak reference to the array of a slot; its callback gets the slot with it.

    Attributes
    ----------
    slot : tuple of int
        The slot.
    size : int
        Bytes of it that are in use.
    copies : list of Copies
        Those that forked processes make; after the first the array is private.
    """

    __slots__ = ("copies", "size", "slot")

    slot: Slot
    size: int
    copies: list[Copies]


class Reader:
    """Gets the objects of a `Writer`; their arrays lie in the memory that both have.

    A forked process has arrays of its own, and so has this one when it has closed the reader.

    Parameters
    ----------
    memory : Memory or None
        The file.
    """

    def __init__(self, memory: Memory | None) -> None:
        self._memory = memory
        self._maps: dict[Slot, mmap.mmap] = {}
        self._uses: dict[int, _Use] = {}
        self._ended: deque[_Use] = deque()
        if memory is not None:
            follow(self)

    def released(self) -> list[Slot]:
        """Take the slots that no array refers to any more, for `Writer.release`."""
        slots = []
        for _ in range(len(self._ended)):
            use = self._ended.popleft()
            if not all(copies.are_made() for copies in use.copies):
                self._ended.append(use)
                continue
            if self._uses.pop(id(use), None) is not None:  # else the reader is closed
                if use.copies:
                    del self._maps[use.slot]
                slots.append(use.slot)
        return slots

    def read(self, sent: Sent) -> Any:
        """The object.

        Parameters
        ----------
        sent : Sent
            What came through the pipe.

        Returns
        -------
        object
            The object. Its slot is released when the last of its arrays goes.
        """
        if sent.slot is None or self._memory is None:
            return pickle.loads(sent.data)  # noqa: S301 — from a process that this one started
        if sent.slot not in self._maps:
            self._maps[sent.slot] = self._memory.map(sent.slot)
        whole = np.frombuffer(self._maps[sent.slot], np.uint8)
        # The callback is no Python code: Ctrl-C in a callback of a weak reference would be lost.
        use = _Use(whole, self._ended.append)
        use.slot, use.size, use.copies = sent.slot, sum(map(_padded, sent.sizes)), []
        self._uses[id(use)] = use
        return pickle.loads(sent.data, buffers=_split(whole.data, sent.sizes))  # noqa: S301 — as above

    def close(self) -> None:
        """Make arrays private that are still in use: nothing comes any more."""
        self._make_private()
        self._uses.clear()

    def keep_for(self, copies: Copies) -> None:
        """Make arrays private, and release their slots when a forked process has copied them."""
        for use in self._make_private():
            use.copies.append(copies)

    def mapped(self) -> Iterator[np.ndarray]:
        """The memory of the arrays that are in use."""
        for use in tuple(self._uses.values()):
            if (whole := use()) is not None:
                yield whole[: use.size]

    def forget(self) -> None:
        """Release nothing: this is a forked process, which has its own."""
        self._uses.clear()

    def _make_private(self) -> list[_Use]:
        """Have what is written into arrays that are in use stay in this process; their uses."""
        found = []
        for use in tuple(self._uses.values()):
            if self._memory is not None and (whole := use()) is not None:
                if not use.copies:  # else it is private since an earlier fork
                    make_private(whole, self._memory.descriptor, use.slot[0])
                found.append(use)
        return found


def shared(value: Any) -> tuple[Sent, Memory | None]:
    """Pickle an object for any number of processes, each of which makes its `own_copy`.

    Parameters
    ----------
    value : object
        What they are to have.

    Returns
    -------
    tuple of Sent, Memory or None
        The pickle, and the file that it is in with its large arrays; None if it is small.
    """
    data, buffers = _dumps(value, {np.memmap: reduced_map}, apart=available())
    if not available() or (not buffers and len(data) < _LEAST):
        return Sent(data), None
    parts = [memoryview(data), *buffers]
    memory, slot = Memory(), (0, _size(parts))
    os.truncate(memory.descriptor, slot[1])
    return Sent(b"", slot, _copy(parts, memory.map(slot))), memory


def own_copy(sent: Sent, memory: Memory | None) -> Any:
    """The object that another process pickled by `shared`.

    Parameters
    ----------
    sent : Sent
        The pickle.
    memory : Memory or None
        Its file.

    Returns
    -------
    object
        The object. Its arrays are read from the memory that all processes have; what this process
        changes of them is its own.
    """
    if sent.slot is None or memory is None:
        return pickle.loads(sent.data)  # noqa: S301 — from the process that started this one
    whole = memoryview(memory.map(sent.slot, mmap.ACCESS_COPY))
    data, *buffers = _split(whole, sent.sizes)
    return pickle.loads(data, buffers=buffers)  # noqa: S301 — as above


def _dumps(
    value: Any, reducers: Mapping[type, Callable[[Any], Any]] | None = None, *, apart: bool = True
) -> tuple[bytes, list[memoryview]]:
    """Pickle an object, by reducers for some types; its large arrays are apart, if they may be."""
    buffers: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        if len(raw := buffer.raw()) < _LEAST:
            return True
        buffers.append(raw)
        return False

    data = io.BytesIO()
    pickler = pickle.Pickler(data, protocol=5, buffer_callback=is_small if apart else None)
    pickler.dispatch_table = {
        **copyreg.dispatch_table,
        np.ndarray: _reduced,
        **(reducers or {}),
    }
    pickler.dump(value)
    return data.getvalue(), buffers


def _reduced(array: np.ndarray) -> Any:
    """NumPy's way; and that of bytes for arrays which it would pickle inside."""
    dtype, flags = array.dtype, array.flags
    has_buffer = flags.forc and dtype.isbuiltin != 2 and dtype.kind not in "mM"
    if has_buffer or dtype.hasobject or array.nbytes < _LEAST:
        return array.__reduce_ex__(5)
    contiguous = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _of_bytes, (contiguous, dtype, array.shape)


def _of_bytes(values: np.ndarray, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    return values.view(dtype).reshape(shape)


def _size(buffers: Sequence[memoryview]) -> int:
    """Bytes that buffers take one behind the other."""
    return sum(_padded(len(buffer)) for buffer in buffers)


def _copy(buffers: Sequence[memoryview], target: mmap.mmap) -> tuple[int, ...]:
    """Copy buffers one behind the other; their sizes."""
    sizes = tuple(map(len, buffers))
    for view, buffer in zip(_split(memoryview(target), sizes), buffers, strict=True):
        view[:] = buffer
    return sizes


def _split(whole: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    """The buffers that lie one behind the other."""
    parts, start = [], 0
    for size in sizes:
        parts.append(whole[start : start + size])
        start += _padded(size)
    return parts


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
