"""CheckedOps: the names of ops whose kernels find an index out of range after the call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from burn.backend.refusal import index_error
from burn.errors import OutOfRangeError

__all__ = ["CheckedOps"]


class CheckedOps:
    """What a kernel leaves for an index that is out of range, and the error that comes of it.

    A kernel cannot raise. It leaves the number of its op, the index and the length of the axis in
    memory, and whoever reads that raises `error`. Where an op is made of others, `called` has the
    kernels of these leave the number of the one that the user called.

    Parameters
    ----------
    *names : str
        The ops.

    Examples
    --------
    >>> checked = CheckedOps("gather", "embedding")
    >>> checked.number("gather")
    1
    >>> with checked.called("embedding"):
    ...     number = checked.number("gather")
    >>> error = checked.error(number, 7, 5)
    >>> error.operation, error.rule
    ('embedding(...)', 'index 7 is out of range for an axis of length 5')
    """

    def __init__(self, *names: str) -> None:
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._thread = threading.local()

    def number(self, op: str) -> int:
        """The number that a kernel of an op leaves: from 1 on, that of the op called outermost."""
        return self._numbers[getattr(self._thread, "op", op)]

    @contextlib.contextmanager
    def called(self, op: str) -> Iterator[None]:
        """Context of the work of an op, in this thread; within another it changes nothing."""
        if hasattr(self._thread, "op"):
            yield
            return
        self._thread.op = op
        try:
            yield
        finally:
            del self._thread.op

    def error(self, number: int, index: int, length: int) -> OutOfRangeError:
        """What is raised for the number of an op, an index and the length of the axis."""
        error = index_error(index, length)
        operation = error.operation or f"{self._names[number - 1]}(...)"
        return OutOfRangeError(error.rule, hint=error.hint, operation=operation)
