"""Pacing: a limit on the work in the queue of a device.

OpenCL queues without bound, and a program that is interrupted has to wait for the work in the
queue. So a launch waits while the queue holds more than a fraction of a second of work. The time of
a launch is estimated from the time of earlier launches of its kind.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final

__all__ = ["Pacing"]

MAX_QUEUED_SECONDS: Final = 0.2
"""Estimated seconds of work that the queue may hold besides the newest batch."""

_FIRST_ESTIMATE_SECONDS: Final = 0.25
"""Estimate for the first launch of a kind, so that the next one waits for it."""

_MAX_BATCH_SECONDS: Final = 0.05
_MAX_BATCH_LAUNCHES: Final = 64
_MAX_BATCHES: Final = 4
"""Batches that the queue may hold besides the newest."""

_MAX_CHANGE: Final = 10.0
"""Largest factor by which a batch with several kinds of launches changes their estimates."""

_MIN_ESTIMATE_SECONDS: Final = 1e-6


class _Batch:
    """Consecutive launches, and the event of the last one."""

    __slots__ = ("began", "costs", "event", "launches", "seconds")

    def __init__(self) -> None:
        self.began = 0.0
        self.costs: dict[Hashable, float] = {}
        self.event: Any = None
        self.launches = 0
        self.seconds = 0.0


class Pacing:
    """The work in the queue of a device. Calls must be serialized.

    Parameters
    ----------
    is_done : callable
        Returns whether the command of an event is done.
    wait : callable
        Waits for the command of an event.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self,
        is_done: Callable[[Any], bool],
        wait: Callable[[Any], object],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._is_done = is_done
        self._wait = wait
        self._clock = clock
        self._costs: dict[Hashable, float] = {}
        self._batches: deque[_Batch] = deque()
        self._newest = _Batch()
        self._most_launches = 1
        self._done_at = 0.0

    def add(self, key: Hashable, event: Any) -> None:
        """Note a launch that was queued, and wait if the queue holds too much work.

        Parameters
        ----------
        key : hashable
            Equal for launches that take about the same time.
        event : object
            The event of the launch.
        """
        batch = self._newest
        if not batch.launches:
            batch.began = self._clock()
        cost = batch.costs[key] = self._costs.get(key, _FIRST_ESTIMATE_SECONDS)
        batch.launches += 1
        batch.seconds += cost
        if batch.seconds >= _MAX_BATCH_SECONDS or batch.launches >= self._most_launches:
            # Batches grow from one launch on: few are in the queue when an estimate proves too low.
            self._most_launches = min(2 * self._most_launches, _MAX_BATCH_LAUNCHES)
            batch.event = event
            self._newest = _Batch()
            self._batches.append(batch)
            while self._has_too_many(batch):
                self._finish(self._batches.popleft())

    def clear(self) -> None:
        """Note that the queue is empty."""
        self._batches.clear()
        self._newest = _Batch()
        self._most_launches = 1
        self._done_at = self._clock()

    def _has_too_many(self, newest: _Batch) -> bool:
        batches = self._batches
        seconds = sum([batch.seconds for batch in batches]) - newest.seconds
        return len(batches) > 1 and (
            seconds > MAX_QUEUED_SECONDS or len(batches) > 1 + _MAX_BATCHES
        )

    def _finish(self, batch: _Batch) -> None:
        """Wait for a batch, and correct the estimates by the time that it took."""
        was_done = self._is_done(batch.event)
        if not was_done:
            self._wait(batch.event)
        now = self._clock()
        ratio = (now - max(batch.began, self._done_at)) / batch.seconds
        self._done_at = now
        if was_done:  # it took this long at most
            ratio = min(ratio, 1.0)
        if len(batch.costs) > 1:  # which of them took long is unknown
            ratio = min(max(ratio, 1 / _MAX_CHANGE), _MAX_CHANGE)
        for key, cost in batch.costs.items():
            self._costs[key] = max(cost * ratio, _MIN_ESTIMATE_SECONDS)
