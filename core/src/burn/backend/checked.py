"""CheckedOps: which op a late error about an index is about."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from burn.backend.invalid_values import index_error
from burn.errors import OutOfRangeError

__all__ = ["CheckedOps"]


class CheckedOps:
    """Numbers for the ops whose kernels check indices, and the errors that follow.

    A kernel cannot raise. It writes the number of its op, the index and the length of the axis to
    memory of the device, and the next read raises `error`. A backend's `Backend.called` is
    `called`: the kernels of an op that is made of others then write the number of the op that was
    called.

    Examples
    --------
    >>> checked = CheckedOps()
    >>> with checked.called("embedding"):
    ...     number = checked.number("gather")
    >>> error = checked.error(number, 7, 5)
    >>> error.operation, error.rule
    ('embedding(...)', 'index 7 is out of range for an axis of length 5')
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()
        self._thread = threading.local()

    def number(self, op: str) -> int:
        """The number, from 1 on, of the op called in this thread, or of `op` if none was."""
        name = getattr(self._thread, "op", op)
        number = self._numbers.get(name)
        if number is None:
            with self._lock:
                number = self._numbers.setdefault(name, len(self._numbers) + 1)
        return number

    @contextlib.contextmanager
    def called(self, op: str) -> Iterator[None]:
        """Context in which an op runs in this thread; an inner one changes nothing."""
        if hasattr(self._thread, "op"):
            yield
            return
        self._thread.op = op
        try:
            yield
        finally:
            del self._thread.op

    def error(self, number: int, index: int, length: int) -> OutOfRangeError:
        """The error for the number of an op, an index and the length of the axis."""
        error = index_error(index, length)
        if not error.operation:
            name = next(name for name, known in self._numbers.items() if known == number)
            error.operation = f"{name}(...)"
        return error
