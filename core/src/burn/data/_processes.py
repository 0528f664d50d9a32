"""Worker processes, as their parent sees them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, cast

from burn.data._failures import Failure
from burn.data._fetching import Fetcher, Job
from burn.data._process_worker import END, READY, Reply, run
from burn.data._starting import in_lasting_thread
from burn.data._threads import closed, resolve
from burn.data.shared_memory import Memory, Reader, Sent, Slot, available, shared
from burn.errors import OperandTypeError, WorkerError
from burn.locks import new_lock, new_rlock

__all__ = ["ProcessPool"]

_SECONDS_TO_END: Final = 1.5
"""How long a process that was told to end may take: more than a batch that it loads gets for it."""

_NO_PICKLE: Final = (
    "Define the dataset, transform and collate in a module or at the top of a script, without "
    "lambdas and open files (functools.partial gives functions their arguments), or load by "
    "threads=True or workers=0"
)


_Task: TypeAlias = "tuple[Job, Future[Any]]"


class ProcessPool:
    """Processes that load batches.

    A thread sends the orders, so that a loop does not wait for that. Who wants a batch reads what
    the processes have sent: a thread that did it would wait for the interpreter's lock, of which a
    loop that computes in Python lets go every few milliseconds.

    Parameters
    ----------
    fetch : Fetcher
        What loads batches. It is pickled once.
    count : int
        Number of processes. They get the dataset while the caller goes on.
    """

    def __init__(self, fetch: Fetcher, count: int) -> None:
        if multiprocessing.current_process().daemon:
            raise WorkerError(
                "this process is a worker itself, which may have no processes of its own",
                operation="DataLoader",
                hint="Load by threads=True or workers=0 here",
            )
        try:
            sent, memory = shared(fetch)
        except Exception as error:
            raise OperandTypeError(
                "worker processes get the dataset, transform and collate by pickle, which fails "
                f"with {type(error).__name__}: {error}",
                operation="DataLoader",
                hint=_NO_PICKLE,
            ) from error
        self._process = os.getpid()
        self._submitting, self._reading = new_lock(), new_rlock()
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._woken, self._waker = multiprocessing.Pipe(duplex=False)
        self._workers: list[_Worker] = []
        self._stop = weakref.finalize(self, _stop, self._workers, self._tasks, self._process)
        self._sender = threading.Thread(
            target=_send,
            args=(self._workers, self._tasks, sent, self._waker),
            name="burn.data orders",
            daemon=True,
        )
        try:
            for index in range(count):
                self._workers.append(_Worker(index, memory))
        except BaseException:
            self._stop()
            raise
        self._sender.start()

    @property
    def is_usable(self) -> bool:
        """Whether all processes live, and this is the one that started them."""
        alive = self._stop.alive and self._process == os.getpid()
        return alive and all(worker.failure is None for worker in self._workers)

    def submit(self, job: Job) -> Future[Any]:
        """Have a batch loaded by the process that has the fewest to load."""
        future: Future[Any] = Future()
        with self._submitting:
            if self._stop.alive:
                self._tasks.put((job, future))
            else:
                future.set_exception(closed())
        return future

    def result(self, future: Future[Any]) -> Any:
        """Wait for a batch; one of the threads that wait reads for all of them."""
        while not future.done():
            with self._reading:
                if not future.done():
                    self._read()
        return future.result()

    def is_ready(self, future: Future[Any]) -> bool:
        """Whether `result` has nothing to wait for."""
        if not future.done():
            try:  # around the lock as well: Ctrl-C may come as soon as it is taken
                if self._reading.acquire(blocking=False):
                    self._read(seconds=0.0)
            finally:
                with contextlib.suppress(RuntimeError):  # another thread has it
                    self._reading.release()
        return future.done()

    def wake(self) -> None:
        """Let the thread that reads see that what it waits for was cancelled."""
        if self._process == os.getpid():
            _wake(self._waker)

    def close(self) -> None:
        """End the processes, and wait for it."""
        if self._process != os.getpid():
            return
        with self._submitting:
            if self._stop.detach():
                self._tasks.put(None)
        for worker in self._workers:
            worker.stop()
        self._sender.join(_SECONDS_TO_END)
        for worker in self._workers:
            worker.join()
        with self._reading, self._submitting:
            for worker in self._workers:
                worker.close()
            self._woken.close()
            self._waker.close()

    def _read(self, seconds: float | None = None) -> None:
        """Read what has been sent, after a wait for it."""
        sources: dict[Connection, _Worker] = {
            worker.replies: worker for worker in self._workers if not worker.has_ended
        }
        if not sources:
            raise self._workers[0].failure or closed()
        for connection in wait([*sources, self._woken], seconds):
            if connection is self._woken:
                self._woken.recv_bytes()
            else:
                sources[cast("Connection", connection)].read()


class _Worker:
    """A process, as its parent sees it.

    Parameters
    ----------
    index : int
        Its number.
    dataset : Memory or None
        The file of the arrays of what loads batches.

    Attributes
    ----------
    asked : collections.deque
        The batches that it loads and is to load, and their futures.
    failure : BaseException or None
        Why it loads nothing any more.
    has_ended : bool
        Whether all that it sent was read.
    replies : Connection
        What it sends.
    """

    def __init__(self, index: int, dataset: Memory | None) -> None:
        self.asked: deque[tuple[Job, Future[Any]]] = deque()
        self.failure: BaseException | None = None
        self.has_ended = False
        self._is_ready = False
        self._memory = Memory() if available() else None
        self._reader = Reader(self._memory)
        self._free: list[Slot] = []
        context = multiprocessing.get_context("spawn")
        orders, self._orders = context.Pipe(duplex=False)
        self.replies, replies = context.Pipe(duplex=False)
        lifeline, self._lifeline = context.Pipe(duplex=False)
        self._process = context.Process(
            target=run,
            args=(orders, replies, lifeline, self._memory, dataset, os.getpid()),
            name=f"burn.data worker {index}",
            daemon=True,
        )
        in_lasting_thread(self._start)
        for connection in (orders, replies, lifeline):
            connection.close()
        self._name = f"worker {index} (process {self._process.pid})"

    def _start(self) -> None:
        with _without_interrupts():
            self._process.start()

    def begin(self, fetch: Sent) -> None:
        """Send what loads batches."""
        with contextlib.suppress(OSError):  # it has ended, which `read` finds
            self._orders.send_bytes(pickle.dumps(fetch, protocol=5))

    def ask(self, job: Job, future: Future[Any]) -> None:
        """Ask for a batch."""
        if self.failure is not None:
            future.set_exception(self.failure)
            return
        self._free += self._reader.released()
        try:
            order = pickle.dumps((job, self._free), protocol=5)
        except Exception as error:  # noqa: BLE001 — of examples of an iterable
            future.set_exception(error)
            return
        self._free = []
        self.asked.append((job, future))
        with contextlib.suppress(OSError):  # it has ended, which `read` finds
            self._orders.send_bytes(order)
        if self.failure is not None:  # since `read` has found that, in another thread
            self._fail(self.failure)

    def read(self) -> None:
        """Read a reply, and give it to its future."""
        try:
            reply: Reply = self.replies.recv()
        except (EOFError, OSError):
            self.has_ended = True
            self._fail(self.failure or self._ended())
            return
        except BaseException:  # Ctrl-C, which may have left a part of it in the pipe
            self._process.kill()
            self.has_ended = True
            self._fail(closed())
            raise
        if isinstance(reply, str):
            self._is_ready = reply == READY
        elif not self._is_ready:
            error = cast("Failure", reply).error(
                f"{self._name} of a DataLoader", "as it got the dataset"
            )
            error.add_note(_NO_PICKLE)
            self._fail(error)
        else:
            job, future = self.asked.popleft()
            if isinstance(reply, Failure):
                work = f"as it loaded {_named(job)}"
                resolve(future, error=reply.error(f"{self._name} of a DataLoader", work))
                return
            try:
                value = self._reader.read(reply)
            except Exception as error:  # noqa: BLE001 — an object that cannot be rebuilt here
                resolve(future, error=error)
            else:
                resolve(future, value)

    def stop(self) -> None:
        """Tell it to end within a second."""
        self.failure = self.failure or closed()
        self._lifeline.close()

    def join(self) -> None:
        """Wait for its end."""
        with contextlib.suppress(OSError):  # it has ended already
            self._orders.send_bytes(END)  # a fork of this process may keep the lifeline open
        self._process.join(_SECONDS_TO_END)
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        """Give back what it had."""
        self.has_ended = True
        self._fail(closed())
        for connection in (self._orders, self.replies, self._lifeline):
            connection.close()
        self._reader.close()
        if self._memory is not None:
            self._memory.close()

    def _fail(self, error: BaseException) -> None:
        """Nothing comes any more."""
        self.failure = self.failure or error
        with contextlib.suppress(IndexError):  # two threads may do this
            while True:
                resolve(self.asked.popleft()[1], error=self.failure)

    def _ended(self) -> WorkerError:
        """Say how the process ended."""
        self._process.join(_SECONDS_TO_END)
        code = self._process.exitcode
        if not self._is_ready:
            work = "before it had the dataset"
            hint = (
                "Each worker imports the program: it is a file, and its main part stands below "
                '`if __name__ == "__main__":`. What the worker printed says more'
            )
        else:
            work = f"as it loaded {_named(self.asked[0][0])}" if self.asked else "between batches"
            hint = (
                "The system ends processes when memory is short: try fewer workers or a smaller "
                "batch_size"
                if code == -getattr(signal, "SIGKILL", 9)
                else "The dataset, transform or collate ended it; workers=0 shows where"
            )
        return WorkerError(
            f"{self._name} ended with {_status(code)} {work}",
            operation="DataLoader",
            hint=hint,
        )


def _send(
    workers: list[_Worker], tasks: SimpleQueue[_Task | None], fetch: Sent, waker: Connection
) -> None:
    """Send orders until None comes: each to the process that has the fewest."""
    for worker in workers:
        worker.begin(fetch)
    while (task := tasks.get()) is not None:
        job, future = task
        if not future.done():
            min(workers, key=_load).ask(job, future)
            if future.done():  # it failed at once, which the thread that reads does not see
                _wake(waker)
        del task, job, future


def _load(worker: _Worker) -> int:
    """How many batches a process is asked for."""
    return len(worker.asked)


def _wake(waker: Connection) -> None:
    with contextlib.suppress(OSError):  # closed already
        waker.send_bytes(b"x")


def _stop(workers: list[_Worker], tasks: SimpleQueue[_Task | None], process: int) -> None:
    """Take no lock: the collector of garbage calls it in any thread at any time."""
    if process != os.getpid():
        return  # a fork: the workers are those of its parent
    tasks.put(None)
    for worker in workers:
        worker.stop()
    with contextlib.suppress(RuntimeError):  # at the end of the program there are no new threads
        threading.Thread(target=_reap, args=(workers,), name="burn.data end", daemon=True).start()


def _reap(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.join()
        worker.close()


def _named(job: Job) -> str:
    shown = ", ".join(map(str, job.indices[:8])) + (", …" if len(job.indices) > 8 else "")
    return f"batch {job.batch} of epoch {job.epoch}, examples [{shown}]"


def _status(code: int | None) -> str:
    if code is None:
        return "an unknown status"
    if code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """A context in which processes start so that Ctrl-C does not reach them: they inherit that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else the first process starts it, which changes the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
