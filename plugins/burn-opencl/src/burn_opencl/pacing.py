"""Pacing: how much work may be in the queue of a device.

OpenCL queues without bound. A program that is interrupted has to wait for what is in the queue, so
whoever adds to it waits where that would take more than a fraction of a second. Nobody tells how
long a kernel takes: that is learnt from how long the device took for such launches before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final

__all__ = ["Pacing"]

SECONDS: Final = 0.2
"""How long the device may have to do beside the newest batch."""

_UNKNOWN: Final = 0.25
"""Seconds that are assumed of a launch like none before: the next one waits for it."""

_BATCH_SECONDS: Final = 0.05
_BATCH_LAUNCHES: Final = 64
_BATCHES: Final = 4
"""A batch ends after so many seconds or launches; so many may be in the queue beside the newest."""

_MOST_CHANGE: Final = 10.0
"""By how much one batch of different launches changes what is assumed of each."""

_LEAST: Final = 1e-6
"""Seconds that a launch takes in any case."""


class _Batch:
    """Launches that follow each other, and the event of the last one."""

    __slots__ = ("began", "costs", "event", "launches", "seconds")

    def __init__(self) -> None:
        self.began = 0.0
        self.costs: dict[Hashable, float] = {}
        self.event: Any = None
        self.launches = 0
        self.seconds = 0.0


class Pacing:
    """What is in the queue of a device. One thread at a time calls it.

    Parameters
    ----------
    is_done : callable
        Whether the command of an event is done.
    wait : callable
        Waits for the command of an event.
    clock : callable
        The time in seconds.
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
        self._done_at = 0.0

    def add(self, key: Hashable, event: Any) -> None:
        """Note a launch that was put into the queue, and wait if there is too much in it.

        Parameters
        ----------
        key : hashable
            The same for launches that take about as long.
        event : object
            Its event.
        """
        batch = self._newest
        if not batch.launches:
            batch.began = self._clock()
        cost = batch.costs[key] = self._costs.get(key, _UNKNOWN)
        batch.launches += 1
        batch.seconds += cost
        if batch.seconds >= _BATCH_SECONDS or batch.launches >= _BATCH_LAUNCHES:
            batch.event = event
            self._newest = _Batch()
            self._batches.append(batch)
            while self._has_too_many(batch):
                self._finish(self._batches.popleft())

    def clear(self) -> None:
        """Note that what was put into the queue is done."""
        self._batches.clear()
        self._newest = _Batch()
        self._done_at = self._clock()

    def _has_too_many(self, newest: _Batch) -> bool:
        batches = self._batches
        seconds = sum([one.seconds for one in batches]) - newest.seconds
        return len(batches) > 1 and (seconds > SECONDS or len(batches) > 1 + _BATCHES)

    def _finish(self, batch: _Batch) -> None:
        """Wait for a batch, and learn from how long it took."""
        was_done = self._is_done(batch.event)
        if not was_done:
            self._wait(batch.event)
        now = self._clock()
        ratio = (now - max(batch.began, self._done_at)) / batch.seconds
        self._done_at = now
        if was_done:  # it took at most so long
            ratio = min(ratio, 1.0)
        if len(batch.costs) > 1:  # nobody tells which of them took long
            ratio = min(max(ratio, 1 / _MOST_CHANGE), _MOST_CHANGE)
        for key, cost in batch.costs.items():
            self._costs[key] = max(cost * ratio, _LEAST)
