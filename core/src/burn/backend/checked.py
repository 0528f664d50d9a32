"""CheckedOps: the call that an error about an index names, which a device reports late."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from burn.backend.invalid_values import index_error, is_about_values
from burn.errors import OutOfRangeError
from burn.locks import new_lock
from burn.public_calls import public_name

__all__ = ["CheckedOps"]

_RECENT: Final = 4096
"""Calls that are kept: an error that is reported after as many further ones names the op alone."""

_FIRST_CALL: Final = 2**20
"""The smallest number of a call; smaller numbers stand for names."""

_CALLS: Final = 2**30
"""Numbers of calls, after which they begin anew: they fit into 32 bits."""


class _Call(NamedTuple):
    """A call of an op, without its tensors, whose memory it must not keep."""

    number: int
    name: str
    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]

    def describe(self) -> str:
        parts = [_shown(operand) for operand in self.operands]
        parts += [f"{name}={value!r}" for name, value in self.attributes.items()]
        return f"{self.name}({', '.join(parts)})"


class CheckedOps:
    """Numbers of the calls whose kernels check indices, and the errors that these report.

    A kernel cannot raise. It writes the number of its call, the index and the length of the axis to
    memory of the device, and the next read raises `error`. A backend takes `named` as its
    `Backend.named`: then the kernels of a decomposition write the number of the call of the user.
    Numbers fit into 32 bits, and 0 is none.

    Examples
    --------
    >>> checked = CheckedOps()
    >>> embedding = checked.named("embedding", lambda: checked.number("gather"))
    >>> number = embedding()
    >>> error = checked.error(number, 7, 5)
    >>> error.operation, error.rule
    ('embedding()', 'index 7 is out of range for an axis of length 5')
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lock = new_lock()
        self._thread = threading.local()
        self._counter = itertools.count()
        self._recent: list[_Call | None] = [None] * _RECENT

    def number(self, op: str) -> int:
        """The number, from 1 on, of the call that runs in this thread, or of `op` if none does."""
        running = getattr(self._thread, "running", None)
        name = op if running is None else running[0]
        if running is None or "(" in name:
            return self._number_of_name(name)
        slot = next(self._counter)
        number = _FIRST_CALL + slot % _CALLS
        _, operands, attributes, frame = running
        described = tuple([_described(operand) for operand in operands])
        self._recent[slot % _RECENT] = _Call(
            number, public_name(name, frame), described, attributes
        )
        return number

    def _number_of_name(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            with self._lock:
                number = self._numbers.setdefault(name, len(self._numbers) + 1)
        return number

    def named(self, op: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that runs an op while `number` returns the number of its call in its thread.

        An op that runs inside of another one has the number of the outer call. `op` is its name, or
        a whole call as in a message, such as ``gather(float32[5], ...) at train.py:12``.
        """
        thread = self._thread

        @functools.wraps(function)
        def call(*operands: Any, **attributes: Any) -> Any:
            if hasattr(thread, "running"):
                return function(*operands, **attributes)
            thread.running = op, operands, attributes, sys._getframe()
            try:
                return function(*operands, **attributes)
            finally:
                del thread.running

        return call

    def error(self, number: int, index: int, length: int) -> OutOfRangeError:
        """The error for the number of a call, an index and the length of the axis."""
        error = index_error(index, length)
        name = self._described(number)
        if is_about_values(error):
            function, _, rest = name.partition("(")
            error.operation = f"{function}{rest.rpartition(')')[2]}"
        elif not error.operation:
            error.operation = name
        elif ") at " in name:
            error.operation += f" at {name.rpartition(') at ')[2]}"
        return error

    def _described(self, number: int) -> str:
        if number >= _FIRST_CALL:
            call = self._recent[(number - _FIRST_CALL) % _RECENT]
            return call.describe() if call and call.number == number else "an earlier call"
        name = next(name for name, known in self._numbers.items() if known == number)
        return name if "(" in name else f"{name}(...)"


def _described(operand: Any) -> Any:
    """What a message says of an operand: a number itself, of a tensor its dtype and shape."""
    if operand is None or operand.__class__ in (bool, int, float, complex):
        return operand
    if isinstance(operand, list):
        return [_described(part) for part in operand]
    return operand.dtype, operand.shape


def _shown(described: Any) -> str:
    if isinstance(described, list):
        return f"[{', '.join(map(_shown, described))}]"
    if not isinstance(described, tuple):
        return str(described)
    dtype, shape = described  # a library's dtype may have its name before: torch.float32
    return f"{str(dtype).rpartition('.')[2]}[{', '.join(map(str, shape))}]"
