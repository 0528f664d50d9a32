"""Worker threads."""

from __future__ import annotations

import os
import threading
import weakref
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, Protocol, TypeAlias

from burn.data._fetching import Fetcher, Job
from burn.errors import WorkerError
from burn.locks import new_lock

__all__ = ["Pool", "ThreadPool", "closed", "resolve"]

_SECONDS_TO_END: Final = 2.0
"""How long `ThreadPool.close` waits for batches that are being loaded: nothing ends a thread."""

_Task: TypeAlias = "tuple[Job, Future[Any]]"


class Pool(Protocol):
    """Workers that load batches."""

    @property
    def is_usable(self) -> bool:
        """Whether all workers live, and this is the process that started them."""

    def submit(self, job: Job) -> Future[Any]:
        """Have a batch loaded; the future can be cancelled until it is there."""

    def result(self, future: Future[Any]) -> Any:
        """Wait for a batch; raise what was raised as it was loaded."""

    def is_ready(self, future: Future[Any]) -> bool:
        """Whether `result` has nothing to wait for."""

    def wake(self) -> None:
        """Let threads that wait see that what they wait for was cancelled."""

    def close(self) -> None:
        """End the workers, and wait for it."""


class ThreadPool:
    """Threads that load batches; each takes the next one when it is free.

    Parameters
    ----------
    fetch : Fetcher
        What loads batches.
    count : int
        Number of threads.
    """

    def __init__(self, fetch: Fetcher, count: int) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._process = os.getpid()
        self._lock = new_lock()
        stopped = threading.Event()
        self._threads = [
            threading.Thread(
                target=_load,
                args=(fetch, self._tasks, stopped),
                name=f"burn.data worker {index}",
                daemon=True,
            )
            for index in range(count)
        ]
        self._stop = weakref.finalize(self, _stop, self._tasks, stopped, count)
        for thread in self._threads:
            thread.start()

    @property
    def is_usable(self) -> bool:
        """Whether the threads live: a fork has none of them."""
        return self._stop.alive and self._process == os.getpid()

    def submit(self, job: Job) -> Future[Any]:
        """Have a batch loaded."""
        future: Future[Any] = Future()
        with self._lock:
            if self._stop.alive:
                self._tasks.put((job, future))
            else:
                future.set_exception(closed())
        return future

    def result(self, future: Future[Any]) -> Any:
        """Wait for a batch."""
        return future.result()

    def is_ready(self, future: Future[Any]) -> bool:
        """Whether `result` has nothing to wait for."""
        return future.done()

    def wake(self) -> None:
        """Futures that are cancelled do it."""

    def close(self) -> None:
        """End the threads, after the batches that they load."""
        if self._process != os.getpid():
            return
        with self._lock:
            self._stop()
        for thread in self._threads:
            thread.join(_SECONDS_TO_END)


def closed() -> WorkerError:
    """The error of what can come no more."""
    return WorkerError(
        "the loop was closed, or interrupted by Ctrl-C, before the batch was loaded",
        operation="DataLoader",
        hint="Begin a new loop over the loader",
    )


def resolve(future: Future[Any], value: Any = None, error: BaseException | None = None) -> None:
    """Give a future its result, unless the loop that wanted it is gone."""
    if future.set_running_or_notify_cancel():
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def _stop(tasks: SimpleQueue[_Task | None], stopped: threading.Event, count: int) -> None:
    """Take no lock: the collector of garbage calls it in any thread at any time."""
    stopped.set()
    for _ in range(count):
        tasks.put(None)


def _load(fetch: Fetcher, tasks: SimpleQueue[_Task | None], stopped: threading.Event) -> None:
    while (task := tasks.get()) is not None:
        _load_one(fetch, *task, stopped)
        del task  # while the thread waits, nothing refers to the batch


def _load_one(fetch: Fetcher, job: Job, future: Future[Any], stopped: threading.Event) -> None:
    if future.cancelled():
        return
    try:
        if stopped.is_set():
            raise closed()
        value = fetch(job)
    except BaseException as error:  # noqa: BLE001 — for the thread that wants the batch
        resolve(future, error=error)
    else:
        resolve(future, value)
