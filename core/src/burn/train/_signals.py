"""Interruptions that wait for the end of a step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, NoReturn, Self

__all__ = ["Interruption"]

DEFAULTS: Final = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""The handlers that a run stands in for; those of a program of its own stay."""


class Interruption:
    """Notes SIGINT and SIGTERM in place of their usual effect; a second one has it at once.

    A context manager; in the main thread only, as Python calls handlers there.

    Parameters
    ----------
    is_wanted : bool
        Whether to do anything.
    announce : callable
        Takes the name of the first signal.
    """

    def __init__(self, *, is_wanted: bool, announce: Callable[[str], object]) -> None:
        self._is_wanted = is_wanted and threading.current_thread() is threading.main_thread()
        self._announce = announce
        self._replaced: dict[signal.Signals, Any] = {}
        self.signal: signal.Signals | None = None

    def __enter__(self) -> Self:
        if self._is_wanted:
            for number, default in DEFAULTS.items():
                if signal.getsignal(number) == default:
                    self._replaced[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        is_second, self.signal = self.signal is not None, signal.Signals(number)
        if is_second:
            self.raise_()
        self._announce(self.signal.name)

    def raise_(self, message: str = "") -> NoReturn:
        """Raise what the signal raises otherwise: KeyboardInterrupt, or an end of the process."""
        if self.signal is signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)  # the status that shells give such an end
        raise KeyboardInterrupt(message)
