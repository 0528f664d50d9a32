"""Workers that load batches, and the threads that talk to them."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, TypeAlias

from burn.data._fetching import Fetcher, Job
from burn.errors import WorkerError

__all__ = ["Pool", "ThreadWorker", "Worker", "closed"]

Task: TypeAlias = tuple[Job, "Future[Any]"]


_SECONDS_TO_END: Final = 2.0
"""How long `Pool.close` waits until it kills, and then for what cannot be killed: threads."""


class Worker(Protocol):
    """Loads batches one after the other."""

    depth: int
    """Number of batches that it may be asked for ahead of what it has given."""

    broken: BaseException | None
    """Why it loads nothing any more."""

    def ask(self, job: Job) -> None:
        """Ask for a batch."""

    def answer(self, job: Job) -> Any:
        """Wait for the oldest batch that was asked for; raise what was raised as it was loaded."""

    def stop(self) -> None:
        """Tell it to end soon; from any thread, without waiting."""

    def kill(self) -> None:
        """End it at once."""

    def finish(self) -> None:
        """Wait for its end."""


class ThreadWorker:
    """Loads batches in the thread that asks for them.

    Parameters
    ----------
    fetch : Fetcher
        What loads them.
    """

    depth = 1

    def __init__(self, fetch: Fetcher) -> None:
        self.broken: BaseException | None = None
        self._fetch = fetch

    def ask(self, job: Job) -> None:
        """Do nothing: `answer` loads."""

    def answer(self, job: Job) -> Any:
        """Load the batch."""
        return self._fetch(job)

    def stop(self) -> None:
        """Do nothing: the thread ends after the batch that it loads."""

    def kill(self) -> None:
        """Do nothing: nothing ends a thread."""

    def finish(self) -> None:
        """Do nothing: the thread has ended."""


class Pool:
    """Workers; each takes the next batch when it is free.

    Parameters
    ----------
    workers : sequence of Worker
        The workers. Each has a thread of this process that asks and waits.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self.process = os.getpid()
        stopped = threading.Event()
        self._threads = [
            threading.Thread(
                target=_serve,
                args=(worker, self._tasks, stopped),
                name=f"burn.data worker {index}",
                daemon=True,
            )
            for index, worker in enumerate(workers)
        ]
        self._stopped = stopped
        self._workers = workers
        self._stop = weakref.finalize(self, _stop, self._tasks, stopped, workers, self.process)
        for thread in self._threads:
            thread.start()

    @property
    def is_usable(self) -> bool:
        """Whether it loads batches: all workers live, and this is the process that has them."""
        alive = self._stop.alive and self.process == os.getpid()
        return alive and all(worker.broken is None for worker in self._workers)

    def submit(self, job: Job) -> Future[Any]:
        """Have a batch loaded.

        Parameters
        ----------
        job : Job
            Which.

        Returns
        -------
        Future
            Has it, or what was raised; it can be cancelled until then.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self._stop.alive:
                self._tasks.put((job, future))
            else:
                future.set_exception(closed())
        return future

    def close(self) -> None:
        """End the workers, and wait for it."""
        if self.process != os.getpid():
            return
        with self._lock:
            self._stop()
        for thread, worker in zip(self._threads, self._workers, strict=True):
            thread.join(_SECONDS_TO_END)
            if thread.is_alive():
                worker.kill()
                thread.join(_SECONDS_TO_END)


def closed() -> WorkerError:
    """The error of what can come no more, since the workers were closed."""
    return WorkerError(
        "its workers were closed before the batch was loaded",
        operation="DataLoader",
        hint="Begin a new loop over the loader: it starts workers again",
    )


def _stop(
    tasks: SimpleQueue[Task | None],
    stopped: threading.Event,
    workers: Sequence[Worker],
    process: int,
) -> None:
    """Take no lock: the collector of garbage calls it in any thread at any time."""
    if process != os.getpid():
        return  # a fork: the workers are those of its parent
    stopped.set()
    for worker in workers:
        worker.stop()
        tasks.put(None)


def _serve(worker: Worker, tasks: SimpleQueue[Task | None], stopped: threading.Event) -> None:
    """Give a worker tasks, and futures its answers, until None comes."""
    asked: deque[Task] = deque()
    is_open = True
    while is_open or asked:
        if is_open and len(asked) < worker.depth and not (asked and tasks.empty()):
            with contextlib.suppress(Empty):  # another thread was faster
                is_open = _ask(worker, tasks.get(block=not asked), asked, stopped)
        else:
            _answer(worker, *asked.popleft())
    worker.finish()


def _ask(worker: Worker, task: Task | None, asked: deque[Task], stopped: threading.Event) -> bool:
    """Whether more tasks may come."""
    if task is None:
        return False
    job, future = task
    if future.cancelled():
        return True
    try:
        if stopped.is_set():
            raise closed()
        if worker.broken is not None:
            raise worker.broken
        worker.ask(job)
    except BaseException as error:  # noqa: BLE001 — for the thread that wants the batch
        _resolve(future, error=error)
    else:
        asked.append(task)
    return True


def _answer(worker: Worker, job: Job, future: Future[Any]) -> None:
    try:
        value = worker.answer(job)
    except BaseException as error:  # noqa: BLE001 — as above
        _resolve(future, error=error)
    else:
        _resolve(future, value)


def _resolve(future: Future[Any], value: Any = None, error: BaseException | None = None) -> None:
    """Give a future its result, unless the loop that wanted it is gone."""
    if future.set_running_or_notify_cancel():
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
