"""The program of a worker process: it loads batches until its parent closes a pipe or ends.

It imports NumPy, the dataset and what that needs, and nothing else of burn.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from typing import Final, TypeAlias

from burn.data._failures import Failure
from burn.data._fetching import Fetcher, Job
from burn.data.shared_memory import Memory, Sent, Slot, Writer, own_copy
from burn.errors import OperandTypeError
from burn.parent_process import end_with_parent

__all__ = ["END", "READY", "Order", "Reply", "run"]

READY: Final = "ready"
"""The first reply, when the dataset is there."""

END: Final = b""
"""The last order."""

_SECONDS_TO_FINISH: Final = 1.0
"""How long a batch may go on loading after the parent has closed the pipe."""

_SECONDS_BETWEEN_LOOKS: Final = 2.0
"""How often a worker looks whether its parent lives: a process that the parent forked may keep the
pipe open."""

_MOST_AT_ONCE: Final = 16 * 1024
"""Bytes: of a reply that surely fits into a pipe with others."""

Order: TypeAlias = tuple[Job, list[Slot]]
"""A batch to load, and slots that may be used again."""

Reply: TypeAlias = Sent | Failure | str
"""A batch, an exception, or `READY`."""


def run(
    orders: Connection,
    replies: Connection,
    lifeline: Connection,
    results: Memory | None,
    dataset: Memory | None,
    parent: int,
) -> None:
    """Load batches.

    Parameters
    ----------
    orders, replies : Connection
        Where batches are asked for, and where they go.
    lifeline : Connection
        At its end the process ends.
    results, dataset : Memory or None
        Files for large arrays of batches, and of the pickled `Fetcher`, which comes first.
    parent : int
        The process that started this one, in a thread that ends with it.
    """
    end_with_parent(parent)  # a batch may keep the interpreter from seeing the lifeline
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # blocked as it started
    received: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    receive = threading.Thread(
        target=_receive, args=(orders, lifeline, received), name="burn.data", daemon=True
    )
    receive.start()
    writer, send = Writer(results), _Sender(replies)
    first = received.get()
    if first is None:
        return
    try:
        fetch: Fetcher = own_copy(pickle.loads(first), dataset)  # noqa: S301 — as below
    except BaseException as error:  # noqa: BLE001 — the parent raises it
        send(Failure.of(error))
        received.get()  # the parent has read it when it ends this
        return
    send(READY)
    while (order := received.get()) is not None:
        send(_reply(fetch, writer, order))
        del order


class _Sender:
    """Sends replies; large ones by a thread, as the parent reads a reply when it wants it.

    Parameters
    ----------
    replies : Connection
        Where they go.
    """

    def __init__(self, replies: Connection) -> None:
        self._replies = replies
        self._waiting: queue.SimpleQueue[bytes] | None = None

    def __call__(self, reply: Reply) -> None:
        data = pickle.dumps(reply, protocol=5)
        if self._waiting is None and len(data) > _MOST_AT_ONCE:
            self._waiting = queue.SimpleQueue()
            threading.Thread(target=self._send, name="burn.data replies", daemon=True).start()
        if self._waiting is not None:  # also small ones, which come after large ones
            self._waiting.put(data)
        else:
            self._send_one(data)

    def _send(self) -> None:
        while self._waiting is not None:
            self._send_one(self._waiting.get())

    def _send_one(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the parent has ended
            self._replies.send_bytes(data)


def _reply(fetch: Fetcher, writer: Writer, order: bytes) -> Reply:
    try:
        job, released = pickle.loads(order)  # noqa: S301 — from the process that started this one
        writer.release(released)
        batch = fetch(job, seeds="once")
        try:
            return writer.write(batch)
        except Exception as error:
            raise OperandTypeError(
                f"a batch cannot be sent by a worker process: {error}",
                operation="DataLoader",
                hint="Let transform and collate return arrays, numbers, strings and containers of "
                "them, or load by threads=True or workers=0",
            ) from error
    except BaseException as error:  # noqa: BLE001 — the parent raises it
        return Failure.of(error)


def _receive(
    orders: Connection, lifeline: Connection, received: queue.SimpleQueue[bytes | None]
) -> None:
    """Take what the parent sends at once, so that neither waits for the other; end with it."""
    parent = os.getppid()
    while os.getppid() == parent:
        ready = wait([orders, lifeline], _SECONDS_BETWEEN_LOOKS)
        if lifeline in ready:
            break
        if orders in ready:
            try:
                order = orders.recv_bytes()
            except (EOFError, OSError):
                break
            if order == END:
                break
            received.put(order)
            del order
    with contextlib.suppress(queue.Empty):
        while True:  # nothing wants these any more
            received.get_nowait()
    received.put(None)
    time.sleep(_SECONDS_TO_FINISH)
    os._exit(0)
