"""Memory that is written late, so that a reduction that follows can compute what it reads.

The last large result of arithmetic on one tensor is not computed at once: if a reduction of it is
asked for next, that goes over memory once. All else that is asked for comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer, Memory

__all__ = ["LateMemory", "Producer"]


class Producer(NamedTuple):
    """How elements of a result are computed.

    Attributes
    ----------
    x : Buffer
        What they are computed from, place by place.
    definitions : mapping
        The macro ``PRODUCED(v)``, and others that it needs.
    text : str
        Source that it needs.
    numbers : tuple of int
        Bits of its numbers, as ``parameters.numbers``.
    """

    x: Buffer
    definitions: Mapping[str, str | int]
    text: str
    numbers: tuple[int, ...]


class LateMemory:
    """A piece of memory, written when somebody asks for its handle.

    Parameters
    ----------
    memory : Memory
        The piece.
    write : callable
        Writes it.
    producer : Producer
        How a kernel computes the elements for itself.
    lock : context manager
        Held while it is written.
    """

    __slots__ = ("_lock", "_memory", "_write", "is_pending", "producer", "size")

    def __init__(
        self,
        memory: Memory | LateMemory,
        write: Callable[[], None],
        producer: Producer,
        lock: AbstractContextManager[Any],
    ) -> None:
        self._memory = memory
        self._write: Callable[[], None] | None = write
        self._lock = lock
        self.producer: Producer | None = producer
        self.size = producer.x.size
        self.is_pending = True

    @property
    def handle(self) -> Any:
        """The driver's object, for a command that is put into the queue now."""
        if self.is_pending:
            self.settle()
        return self._memory.handle

    def settle(self) -> None:
        """Write the memory, if that is not done."""
        with self._lock:
            write, self._write = self._write, None
            if write is None:
                return
            try:
                write()
            except BaseException:
                self._write = write
                raise
            self.producer = None
            self.is_pending = False
