"""Worker processes, as their parent sees them."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Final, cast

from burn.data._failures import Failure
from burn.data._fetching import Fetcher, Job
from burn.data._process_worker import END, READY, Reply, run
from burn.data._shared_memory import Memory, Reader, Sent, available, shared
from burn.errors import OperandTypeError, WorkerError

__all__ = ["ProcessWorker", "start_processes"]

_SECONDS_TO_END: Final = 1.5
"""How long a process that was told to end may take: more than a batch that it loads gets for it."""

_NO_PICKLE: Final = (
    "Define the dataset, transform and collate in a module or at the top of a script, without "
    "lambdas and open files (functools.partial gives functions their arguments), or load by "
    "threads=True or workers=0"
)


def start_processes(fetch: Fetcher, count: int) -> list[ProcessWorker]:
    """Start worker processes; what they start with is pickled once for all of them.

    Parameters
    ----------
    fetch : Fetcher
        What loads batches.
    count : int
        Number of processes.

    Returns
    -------
    list of ProcessWorker
        The workers. They get the dataset while the caller goes on.
    """
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
            "worker processes get the dataset, transform and collate by pickle, which fails with "
            f"{type(error).__name__}: {error}",
            operation="DataLoader",
            hint=_NO_PICKLE,
        ) from error
    workers: list[ProcessWorker] = []
    try:
        for index in range(count):
            workers.append(ProcessWorker(index, sent, memory))  # noqa: PERF401 — those before an error are ended
    except BaseException:
        for worker in workers:
            worker.kill()
        raise
    return workers


class ProcessWorker:
    """Loads batches in a process of its own.

    Parameters
    ----------
    index : int
        Its number.
    fetch : Sent
        What loads them, pickled.
    dataset : Memory or None
        The file of its arrays.
    """

    depth = 2  # while one is loaded the next one waits there

    def __init__(self, index: int, fetch: Sent, dataset: Memory | None) -> None:
        self.broken: BaseException | None = None
        self._fetch: Sent | None = fetch
        self._is_ready = False
        self._memory = Memory() if available() else None
        self._reader = Reader(self._memory)
        context = multiprocessing.get_context("spawn")
        theirs: list[Connection] = []

        def pipe(*, sends: bool) -> Connection:
            receiver, sender = context.Pipe(duplex=False)
            theirs.append(receiver if sends else sender)
            return sender if sends else receiver

        self._orders, self._replies = pipe(sends=True), pipe(sends=False)
        self._lifeline = pipe(sends=True)
        self._process = context.Process(
            target=run,
            args=(*theirs, self._memory, dataset),
            name=f"burn.data worker {index}",
            daemon=True,
        )
        with _without_interrupts():
            self._process.start()
        for connection in theirs:
            connection.close()
        self._name = f"worker {index} (process {self._process.pid})"

    def ask(self, job: Job) -> None:
        """Ask for a batch."""
        released = self._reader.released
        slots = [released.popleft() for _ in range(len(released))]
        order = pickle.dumps((job, slots), protocol=5)
        try:
            if self._fetch is not None:
                self._orders.send_bytes(pickle.dumps(self._fetch, protocol=5))
                self._fetch = None
            self._orders.send_bytes(order)
        except OSError:
            self.broken = self._ended(job)
            raise self.broken from None

    def answer(self, job: Job) -> Any:
        """Wait for the oldest batch that was asked for."""
        if self.broken is not None:
            raise self.broken
        try:
            if not self._is_ready:
                self._begin()
            reply: Reply = self._replies.recv()
        except (EOFError, OSError):
            self.broken = self._ended(job)
            raise self.broken from None
        if isinstance(reply, Failure):
            raise reply.error(f"{self._name} of a DataLoader", f"as it loaded {_named(job)}")
        return self._reader.read(cast("Sent", reply))

    def stop(self) -> None:
        """Tell it to end within a second."""
        self._lifeline.close()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def finish(self) -> None:
        """Wait for its end."""
        with contextlib.suppress(OSError):  # it has ended already
            self._orders.send_bytes(END)  # a fork of this process may keep the lifeline open
        self._process.join(_SECONDS_TO_END)
        self._process.kill()
        self._process.join()
        for connection in (self._orders, self._replies):
            connection.close()
        if self._memory is not None:
            self._memory.close()

    def _begin(self) -> None:
        """Wait until it has the dataset."""
        reply = self._replies.recv()
        if isinstance(reply, Failure):
            self.broken = reply.error(f"{self._name} of a DataLoader", "as it got the dataset")
            self.broken.add_note(_NO_PICKLE)
            raise self.broken
        self._is_ready = reply == READY

    def _ended(self, job: Job) -> WorkerError:
        """Say how the process ended."""
        self._process.join(_SECONDS_TO_END)
        code = self._process.exitcode
        if not self._is_ready:
            while_ = "before it had the dataset"
            hint = (
                'A program that starts processes begins with `if __name__ == "__main__":`, since '
                "each of them imports it; what the worker printed says more"
            )
        else:
            while_ = f"as it loaded {_named(job)}"
            hint = (
                "The system ends processes when memory is short: try fewer workers or a smaller "
                "batch_size"
                if code == -getattr(signal, "SIGKILL", 9)
                else "The dataset, transform or collate ended it; workers=0 shows where"
            )
        return WorkerError(
            f"{self._name} ended with {_status(code)} {while_}",
            operation="DataLoader",
            hint=hint,
        )


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
