"""CheckedOps: the op that an error about an index names, which a device reports late."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from burn.backend.invalid_values import index_error
from burn.errors import OutOfRangeError

__all__ = ["CheckedOps"]


class CheckedOps:
    """Numbers of the ops whose kernels check indices, and the errors that these report.

    A kernel cannot raise. It writes the number of its op, the index and the length of the axis to
    memory of the device, and the next read raises `error`. A backend takes `named` as its
    `Backend.named`: then the kernels of a decomposition write the number of the op that the user
    called.

    Examples
    --------
    >>> checked = CheckedOps()
    >>> embedding = checked.named("embedding", lambda: checked.number("gather"))
    >>> number = embedding()
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

    def named(self, op: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that runs an op while `number` returns the number of that op in its thread.

        An op that runs inside of another one has the number of the outer op. `op` is its name, or
        a whole call as in a message, such as ``gather(float32[5], ...) at train.py:12``.
        """
        thread = self._thread

        @functools.wraps(function)
        def call(*operands: Any, **attributes: Any) -> Any:
            if hasattr(thread, "op"):
                return function(*operands, **attributes)
            thread.op = op
            try:
                return function(*operands, **attributes)
            finally:
                del thread.op

        return call

    def error(self, number: int, index: int, length: int) -> OutOfRangeError:
        """The error for the number of an op, an index and the length of the axis."""
        error = index_error(index, length)
        name = next(name for name, known in self._numbers.items() if known == number)
        if not error.operation:
            error.operation = name if "(" in name else f"{name}(...)"
        elif ") at " in name:
            error.operation += f" at {name.rpartition(') at ')[2]}"
        return error
