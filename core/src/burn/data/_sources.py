"""Batches as they come from a dataset or its workers, in order, before they go to a device."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

from burn.data._fetching import Fetcher, Job
from burn.data._threads import Pool
from burn.data.randomness import Drawing, Purpose

__all__ = ["Ahead", "Direct", "Stream", "StreamedAhead"]


class Stream:
    """The jobs of one epoch of an iterable, whose examples they hold.

    Parameters
    ----------
    dataset : iterable
        What gives the examples.
    batch_size : int
        Examples of a batch.
    drop_last : bool
        Whether a last batch of fewer is left out.
    seed, epoch : int
        What random numbers depend on.
    start : int
        Index of the first batch.
    skip : bool
        Whether the examples before that are to be skipped, since the dataset begins anew.

    Attributes
    ----------
    states : dict of int to object
        What ``dataset.state_dict()`` gave after each batch that was taken, by its index, if the
        dataset has that.
    exhausted : bool
        Whether the iterable has ended.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        *,
        drop_last: bool,
        seed: int,
        epoch: int,
        start: int,
        skip: bool,
    ) -> None:
        self.states: dict[int, Any] = {}
        self.exhausted = False
        self._dataset = dataset
        self._iterator = iter(dataset)
        self._batch_size = batch_size
        self._drop_last = drop_last
        self._key = (seed, epoch)
        self._batch = 0 if skip else start
        self._start = start

    def __iter__(self) -> Iterator[Job]:
        return self

    def __next__(self) -> Job:
        while True:
            batch = self._batch
            if self.exhausted:
                raise StopIteration
            self._batch += 1
            with Drawing(*self._key, batch, Purpose.SOURCE):
                examples = list(islice(self._iterator, self._batch_size))
            self.exhausted = len(examples) < self._batch_size
            if not examples or (self.exhausted and self._drop_last):
                raise StopIteration
            if batch < self._start:
                continue
            if hasattr(self._dataset, "state_dict"):
                self.states[batch] = copy.deepcopy(self._dataset.state_dict())
            first = batch * self._batch_size
            return Job(*self._key, batch, range(first, first + len(examples)), examples)


class Direct:
    """Batches that are loaded when they are asked for, in the thread that asks.

    Parameters
    ----------
    fetch : Fetcher
        What loads them.
    jobs : iterator of Job
        Which.
    """

    def __init__(self, fetch: Fetcher, jobs: Iterator[Job]) -> None:
        self._fetch = fetch
        self._jobs = jobs

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._fetch(next(self._jobs), seeds="back")

    def close(self) -> None:
        """Nothing is loaded ahead."""


class Ahead:
    """Batches of workers, some ahead of those that were asked for.

    Parameters
    ----------
    pool : Pool
        The workers.
    jobs : iterator of Job
        The batches. It is read by the thread that asks, so it does not take long.
    ahead : int
        How many batches are loaded ahead.
    """

    def __init__(self, pool: Pool, jobs: Iterator[Job], ahead: int) -> None:
        self._pool = pool
        self._jobs = jobs
        self._ahead = ahead
        self._has_more = True
        self._pending: deque[Future[Any]] = deque()
        self._current: Future[Any] | None = None
        self._fill()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._pending:
            raise StopIteration
        self._current = future = self._pending.popleft()
        try:
            if not self._pool.is_ready(future):
                self._fill()  # before the wait
            return _result(self._pool, future)
        finally:
            self._current = None
            self._fill()

    def close(self) -> None:
        """Cancel what is not loaded yet, which also ends the wait for it in another thread."""
        self._has_more = False
        for future in (*self._pending, self._current):
            if future is not None:
                future.cancel()
        if self._current is not None:
            self._pool.wake()

    def _fill(self) -> None:
        while self._has_more and len(self._pending) < self._ahead:
            job = next(self._jobs, None)
            if job is None:
                self._has_more = False
            else:
                self._pending.append(self._pool.submit(job))


class StreamedAhead:
    """Batches of workers whose examples come from an iterable, which a thread reads ahead.

    Parameters
    ----------
    pool : Pool
        The workers.
    stream : Stream
        The examples.
    ahead : int
        How many batches are read ahead.
    """

    def __init__(self, pool: Pool, stream: Stream, ahead: int) -> None:
        self._pool = pool
        self._channel = channel = _Channel(ahead)
        self._current: Future[Any] | None = None
        threading.Thread(
            target=_read, args=(stream, pool, channel), name="burn.data source", daemon=True
        ).start()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._current = future = self._channel.futures.get()
        if future is None:
            self._channel.futures.put(None)  # for further calls
            raise StopIteration
        self._channel.allowances.put(None)
        try:
            return _result(self._pool, future)
        finally:
            self._current = None

    def close(self) -> None:
        """Cancel what is not loaded yet; the thread ends when the iterable gives what it waits for.

        The wait for a batch in another thread ends as well.
        """
        self._channel.is_closed = True
        self._channel.allowances.put(None)
        if (current := self._current) is not None:
            current.cancel()
            self._pool.wake()
        self._channel.cancel()
        self._channel.futures.put(None)


class _Channel:
    """What the thread that reads shares with those that ask.

    Parameters
    ----------
    ahead : int
        How many batches may be read that were not asked for.
    """

    def __init__(self, ahead: int) -> None:
        self.futures: SimpleQueue[Future[Any] | None] = SimpleQueue()
        self.allowances: SimpleQueue[None] = SimpleQueue()
        for _ in range(ahead):
            self.allowances.put(None)
        self.is_closed = False

    def cancel(self) -> None:
        """Take what was read out of the queue."""
        with contextlib.suppress(Empty):
            while True:
                future = self.futures.get_nowait()
                if future is not None:
                    future.cancel()


def _read(stream: Stream, pool: Pool, channel: _Channel) -> None:
    """Read examples until they or the iteration ends."""
    while True:
        channel.allowances.get()
        if channel.is_closed:
            break
        try:
            job = next(stream)
        except StopIteration:
            break
        except BaseException as error:  # noqa: BLE001 — raised where the batch is asked for
            future: Future[Any] = Future()
            future.set_exception(error)
        else:
            future = pool.submit(job)
            del job
        channel.futures.put(future)
        del future
    if channel.is_closed:
        channel.cancel()  # what was read as the iteration was closed
    channel.futures.put(None)


def _result(pool: Pool, future: Future[Any]) -> Any:
    """The batch, or what was raised as it was loaded; the end if the iteration was closed."""
    try:
        return pool.result(future)
    except CancelledError:
        raise StopIteration from None
    finally:
        del future  # the traceback of an exception refers to this frame
