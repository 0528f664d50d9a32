"""A thread that writes while the program goes on, one file after the other."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

__all__ = ["Background"]

_log = logging.getLogger("burn")


class Background:
    """Runs one function at a time in a thread; its exception is raised by the next call.

    The interpreter waits for the thread before it ends.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._process = os.getpid()
        self._is_left = False

    def start(self, work: Callable[[], None]) -> None:
        """Run a function in a thread, after the last one has ended.

        Raises
        ------
        Exception
            Of the last function; the new one does not run then.
        """
        self.wait()
        self._process = os.getpid()
        if not threading.main_thread().is_alive():  # the interpreter waits for no thread any more
            self._run(work)
            return
        thread = threading.Thread(target=self._run, args=(work,), name="burn checkpoint")
        try:
            thread.start()
        except RuntimeError:  # there are as many threads as the system allows
            self._run(work)
            return
        self._thread = thread

    def wait(self) -> None:
        """Wait for the function that runs, and raise its exception.

        Raises
        ------
        Exception
            The object that it raised, with its traceback.
        """
        if self._process != os.getpid():  # the thread and its errors are those of the parent
            self._thread, self._error = None, None
        thread = self._thread
        if thread is not None:
            thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def leave(self) -> None:
        """Log exceptions from now on, also one that no call has raised: there will be no call."""
        self._is_left = True
        self._report()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 — `wait` raises it
            self._error = error
            if self._is_left:
                self._report()

    def _report(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            _log.error("%s", error)
