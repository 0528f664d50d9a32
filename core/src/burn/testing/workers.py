"""Workers: processes that make checks, so that one which ends its process ends no run."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import burn.errors
from burn.errors import BurnError, ExecutionError
from burn.testing._worker_process import Shard, WorkerProcess

__all__ = ["Ended", "Workers"]

_TICK_SECONDS: Final = 0.25
"""Time between two looks at the clock."""

_START_SECONDS: Final = 180.0
"""Time for a worker to import the library, open the device and list the checks."""

_LARGE_FACTOR: Final = 10.0
"""How many times longer a check of gigabytes may take, and the first calls of a check."""

_MAX_STARTS: Final = 3
"""Workers that may end in a row before they have made a check."""

_MAX_ENDS_IN_SHARD: Final = 3
"""Checks of one shard that may end their process; the others of it are not tried."""

_MAX_ENDS_IN_A_ROW: Final = 10
"""Checks, one after the other, that may end their process; then the run ends."""


@dataclass(frozen=True)
class Ended:
    """A check that has no result of its own.

    Attributes
    ----------
    name : str
        Its name.
    reason : str
        What became of it.
    seconds : float
        How long it took.
    is_tried : bool
        Whether it ended its process; else it was not begun, after others that did.
    """

    name: str
    reason: str
    seconds: float = 0.0
    is_tried: bool = True


class Workers:
    """Some worker processes.

    Parameters
    ----------
    job : dict
        What they try, as `burn.testing._worker` reads it.
    count : int
        How many of them run at a time.
    time_limit : float
        Seconds that a check may take.
    """

    def __init__(self, job: Mapping[str, Any], count: int, time_limit: float) -> None:
        self._job = job
        self._count = count
        self._time_limit = time_limit
        self._large: Collection[str] = ()
        self._events: queue.SimpleQueue[tuple[WorkerProcess, Any]] = queue.SimpleQueue()
        self._processes: list[WorkerProcess] = []
        self._waiting: deque[Shard] = deque()
        self._last_look = time.monotonic()
        self._failed_starts = 0
        self._ends_in_a_row = 0

    def describe(self) -> dict[str, Any]:
        """What the first worker found: the device, its checks, and which are expected to fail.

        Raises
        ------
        BurnError
            What it raised; `ExecutionError` if it ends, and so do those that replace it.
        """
        while True:
            if not self._processes:
                self._start(describes=True)
            process, reply = self._next()
            if process is not None and reply is None:
                list(self._after(process))
            elif reply is not None and "ready" in reply:
                found: dict[str, Any] = reply["ready"]
                return found

    def run(self, shards: Iterable[Shard], large: Collection[str]) -> Iterator[Any]:
        """Make checks.

        Parameters
        ----------
        shards : iterable of Shard
            The checks.
        large : collection of str
            Names of those that may take longer.

        Yields
        ------
        dict, Ended or None
            How a check ended; None where none has ended for a moment.

        Raises
        ------
        ExecutionError
            If each worker ends before it has made a check, or too many checks in a row end theirs.
        """
        self._waiting.extend(shards)
        self._large = large
        while self._waiting or any(process.shard for process in self._processes):
            self._share_out()
            process, reply = self._next()
            if process is None:
                yield None
            elif reply is None:
                yield from self._after(process)
            elif "check" in reply:
                yield self._made(process, reply)

    def close(self) -> None:
        """End them all."""
        for process in self._processes:
            process.close()
        self._processes.clear()

    def _start(self, *, describes: bool = False) -> None:
        # What a shape costs is measured by two ops, which may be what ended the first worker.
        stage = {"describes": describes, "measures": not self._failed_starts}
        self._processes.append(WorkerProcess({**self._job, **stage}, self._events))

    def _share_out(self) -> None:
        """A shard for each worker that has none, and more workers for shards that wait."""
        if not self._waiting:
            return
        for process in self._processes:
            if self._waiting and process.is_idle:
                process.order(self._waiting.popleft())
        starting = sum(not process.is_ready for process in self._processes)
        for _ in range(min(self._count - len(self._processes), len(self._waiting) - starting)):
            self._start()

    def _next(self) -> tuple[WorkerProcess | None, Any]:
        """A reply, or that a worker has ended (None); no worker where there is none for a moment.

        Raises
        ------
        BurnError
            What a worker raised as it began.
        """
        self._look_at_clock()
        try:
            process, reply = self._events.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            return None, None
        if reply is not None and "first_call" in reply:
            process.is_compiling = reply["first_call"]
            return None, None
        if reply is not None:
            process.restart_clock()
            if "error" in reply:
                raise _rebuilt(*reply["error"])
            if "ready" in reply:
                process.is_ready = True
                self._failed_starts = 0
            process.retired = reply.get("retired", "")
        return process, reply

    def _made(self, process: WorkerProcess, reply: Any) -> Any:
        self._ends_in_a_row = 0
        if process.shard is not None:
            process.last = process.shard.names.popleft()
            if not process.shard.names:
                process.shard = None
        return reply

    def _after(self, process: WorkerProcess) -> Iterator[Ended]:
        """What becomes of the checks of a worker that has ended."""
        self._processes.remove(process)
        how = process.ending()
        process.close()
        if not process.is_ready:
            self._failed_starts += 1
            if process.overdue is not None:
                how = f"it took more than {_START_SECONDS:g} s; {how}"
            is_overdue_again = process.overdue is not None and self._failed_starts > 1
            if is_overdue_again or self._failed_starts >= _MAX_STARTS:
                raise ExecutionError(
                    f"a worker process does not come to the first check on {self._job['device']}: "
                    f"{how}",
                    hint="`--workers 0` makes the checks in the process of the command",
                )
            return
        shard = process.shard
        if shard is None:
            if not process.retired and process.last:
                self._ends_in_a_row += 1
                yield Ended(process.last, f"after the check {how}")
        elif not process.retired and process.overdue in (None, shard.names[0]):
            yield from self._ended(process, shard, how)
        if shard is not None and shard.names:
            self._waiting.appendleft(shard)
        if self._ends_in_a_row >= _MAX_ENDS_IN_A_ROW:
            raise ExecutionError(
                f"{self._ends_in_a_row} checks, one after the other, ended their worker process on "
                f"{self._job['device']}; the last one: {how}",
                hint="Try single checks with --op and --suite",
            )

    def _ended(self, process: WorkerProcess, shard: Shard, how: str) -> Iterator[Ended]:
        """Say so of the check that a worker made as it ended."""
        name = shard.names.popleft()
        shard.ends += 1
        self._ends_in_a_row += 1
        if process.overdue is not None:
            how = f"{self._overdue_text(process, name)}; {how}"
        yield Ended(name, how, process.waited + process.compiled)
        if shard.ends == _MAX_ENDS_IN_SHARD:
            for left in shard.names:
                reason = f"not tried: {shard.ends} checks like it ended their process"
                yield Ended(left, reason, is_tried=False)
            shard.names.clear()

    def _look_at_clock(self) -> None:
        """Kill workers whose check takes too long."""
        now = time.monotonic()
        passed = now - self._last_look
        if passed < _TICK_SECONDS:
            return
        self._last_look = now
        for process in self._processes:
            # Not more than that for a moment in which this process itself was stopped.
            passed = min(passed, 4.0 * _TICK_SECONDS)
            if process.is_compiling:
                process.compiled += passed
            else:
                process.waited += passed
            limit = self._limit_of(process.shard.names[0]) if process.shard else _START_SECONDS
            is_late = process.waited > limit or process.compiled > self._first_calls_limit
            if is_late and process.overdue is None and not process.is_idle:
                process.kill_overdue()

    @property
    def _first_calls_limit(self) -> float:
        return self._time_limit * _LARGE_FACTOR

    def _overdue_text(self, process: WorkerProcess, name: str) -> str:
        if process.compiled > self._first_calls_limit:
            return f"its first calls took more than {self._first_calls_limit:g} s"
        return f"it took more than {self._limit_of(name):g} s"

    def _limit_of(self, name: str) -> float:
        return self._time_limit * (_LARGE_FACTOR if name in self._large else 1.0)


def _rebuilt(name: str, rule: str, hint: str, operation: str) -> BurnError:
    """The error of a worker."""
    kind: type[BurnError] = getattr(burn.errors, name, BurnError)
    error = kind(rule, hint=hint)
    error.operation = operation
    return error
