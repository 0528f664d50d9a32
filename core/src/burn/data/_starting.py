"""The thread in which processes are started: one that ends with this process.

Linux takes the thread that starts a process for its parent, whose end `burn.parent_process` waits
for. A thread of the program may end long before the program does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, TypeAlias

from burn.locks import new_lock

__all__ = ["in_lasting_thread"]

_Order: TypeAlias = "tuple[Callable[[], None], SimpleQueue[BaseException | None]]"


class _Starter:
    """Calls functions in a thread of its own, one after the other."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._orders: SimpleQueue[_Order] | None = None
        self._process = 0

    def call(self, function: Callable[[], None]) -> None:
        """Call a function, and raise what it raises."""
        answers: SimpleQueue[BaseException | None] = SimpleQueue()
        self._running().put((function, answers))
        error = answers.get()
        if error is not None:
            raise error

    def _running(self) -> SimpleQueue[_Order]:
        """The orders of the thread, which a fork does not have."""
        with self._lock:
            if self._orders is None or self._process != os.getpid():
                orders: SimpleQueue[_Order] = SimpleQueue()
                threading.Thread(
                    target=_follow, args=(orders,), name="burn.data starts", daemon=True
                ).start()
                self._orders, self._process = orders, os.getpid()
            return self._orders


def _follow(orders: SimpleQueue[_Order]) -> None:
    while True:
        function, answers = orders.get()
        try:
            function()
        except BaseException as error:  # noqa: BLE001 — raised again in the thread that asks
            answers.put(error)
        else:
            answers.put(None)
        del function, answers


_starter: Final = _Starter()


def in_lasting_thread(function: Callable[[], None]) -> None:
    """Call a function in a thread that ends with this process, and raise what it raises.

    Parameters
    ----------
    function : callable
        It is called here if this is the main thread, and else in one that is kept for this.
    """
    if threading.current_thread() is threading.main_thread():
        function()
    else:
        _starter.call(function)
