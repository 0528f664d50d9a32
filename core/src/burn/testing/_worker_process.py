"""WorkerProcess: one process that makes checks, as the run that started it sees it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from burn.testing._worker import DUMP_SIGNAL

__all__ = ["Shard", "WorkerProcess"]

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from burn.testing._worker import main; main()"
)
"""Looks for modules where this process does, and not in the folder in which it is started."""

_FOLDER: Final = str(Path(__file__).parent)
"""The folder of the kit."""

_DUMP_SECONDS: Final = 0.5
"""Time for a worker that is to be killed to write down where it is."""

_MAX_TRACE_LINES: Final = 30
"""Lines of that which a message shows, at most."""


@dataclass(eq=False)
class Shard:
    """Checks that one worker makes one after the other: they share what a library compiles.

    Attributes
    ----------
    names : deque of str
        Names of the checks that were not made yet.
    ends : int
        How many of its checks ended their process.
    """

    names: deque[str]
    ends: int = 0


class WorkerProcess:
    """A worker process, and the checks that it was sent.

    Parameters
    ----------
    job : dict
        What it is to try, as `burn.testing._worker` reads it.
    events : SimpleQueue
        Gets pairs of this object and each of its replies, and then None as it has ended.

    Attributes
    ----------
    shard : Shard or None
        What it was sent and has not made; it makes the first of these checks.
    last : str
        The check that it made last.
    is_ready : bool
        Whether it has found the device and its checks.
    retired : str
        Why it makes no more checks; "" if it does.
    waited : float
        Seconds since its last reply, without those of first calls.
    compiled : float
        Seconds that first calls, for which a library may compile, took since then.
    is_compiling : bool
        Whether it is in such a call.
    overdue : str or None
        The check for which it was killed, as that took too long; "" for its start.
    """

    def __init__(self, job: Mapping[str, Any], events: queue.SimpleQueue[Any]) -> None:
        self.shard: Shard | None = None
        self.last = ""
        self.is_ready = False
        self.retired = ""
        self.waited = self.compiled = 0.0
        self.is_compiling = False
        self.overdue: str | None = None
        descriptor, self._trace = tempfile.mkstemp(prefix="burn-check-", suffix=".txt")
        os.close(descriptor)
        # In a group of its own: Ctrl-C is for this process, and a kill is for all that it started.
        self._process = subprocess.Popen(  # noqa: S603 — this interpreter, and the program above
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._send({**job, "parent": os.getpid(), "trace": self._trace})
        listener = threading.Thread(
            target=self._listen, args=(events,), name="burn-check-worker", daemon=True
        )
        listener.start()

    def _listen(self, events: queue.SimpleQueue[Any]) -> None:
        for line in self._process.stdout or ():
            with contextlib.suppress(ValueError):  # what was printed before it kept its output
                events.put((self, json.loads(line)))
        events.put((self, None))

    @property
    def is_idle(self) -> bool:
        """Whether it waits for checks to make."""
        return self.is_ready and self.shard is None and not self.retired

    def order(self, shard: Shard) -> None:
        """Have it make checks, one after the other."""
        self.shard = shard
        self.restart_clock()
        self._send(list(shard.names))

    def restart_clock(self) -> None:
        """Count the seconds of its next check from now on."""
        self.waited = self.compiled = 0.0
        self.is_compiling = False

    def _send(self, order: Any) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended, which its last event will say
                self._process.stdin.write(json.dumps(order) + "\n")
                self._process.stdin.flush()

    def kill_overdue(self) -> None:
        """End it, as the check that it makes takes too long, and keep where it is."""
        self.overdue = self.shard.names[0] if self.shard else ""
        if DUMP_SIGNAL is not None:
            with contextlib.suppress(OSError):
                self._process.send_signal(DUMP_SIGNAL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_DUMP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End it, and what it has started."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):  # there is none of them any more
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def close(self) -> None:
        """End it, if it has not ended, and remove what it left."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # an order that was not read
                if stream is not None:
                    stream.close()
        Path(self._trace).unlink(missing_ok=True)

    def ending(self) -> str:
        """How it ended, and where it was, if that is known."""
        status = self._process.wait()
        lines = Path(self._trace).read_text(encoding="utf-8", errors="replace").splitlines()
        # Of the kit one line is of interest.
        ends = [number for number, line in enumerate(lines, 1) if _FOLDER in line]
        shown = lines[: ends[0] if ends else None][:_MAX_TRACE_LINES]
        how = "was killed" if self.overdue is not None else _status(status)
        return "\n".join([f"the process {how}", *shown])


def _status(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = ", perhaps by the system, as memory was short" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"
