"""Reads that are awaited: a thread of each device waits, and the event loop goes on."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from burn.errors import BurnError, UnsupportedOpError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from burn.devices import Device

__all__ = ["awaited", "running_loop"]

_Value = TypeVar("_Value")

_READS: Final = frozenset({"data", "execute", "item", "read_all", "to_data"})
"""What errors of a read call it; an error of earlier work names another operation."""

_threads: Final[dict[tuple[Any, ...], Executor]] = {}
"""The thread that waits for each device, by the name of its backend and its DeviceId."""

if hasattr(os, "register_at_fork"):  # POSIX: a child has none of its parent's threads
    os.register_at_fork(after_in_child=_threads.clear)


async def awaited(read: Callable[[], _Value], device: Device, operation: str) -> _Value:
    """What a function returns that waits for a device, called in the thread of that device.

    Parameters
    ----------
    read : callable
        The function, which is called in a copy of the context of the task.
    device : Device
        The device that it waits for.
    operation : str
        What an error of the read says in its beginning.

    Raises
    ------
    UnsupportedOpError
        If no event loop of asyncio runs.
    BurnError
        What `read` raises.
    """
    loop = running_loop(operation)
    context = contextvars.copy_context()
    try:
        return await loop.run_in_executor(_thread_of(device), context.run, read)
    except BurnError as error:
        if error.operation.partition("(")[0].rpartition(".")[2] in _READS:
            error.operation = operation
        raise


def running_loop(operation: str) -> asyncio.AbstractEventLoop:
    """The event loop that runs the current task.

    Raises
    ------
    UnsupportedOpError
        If no event loop of asyncio runs.
    """
    import asyncio  # not imported with burn

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UnsupportedOpError(
            "no event loop of asyncio runs here",
            hint="The methods without _async wait in the thread that calls them",
            operation=operation,
        ) from None


def _thread_of(device: Device) -> Executor:
    """One thread: a device does its work in order, so reads of it wait in order."""
    key = (device.backend_name, *device.id)
    found = _threads.get(key)
    if found is None:
        from concurrent.futures import ThreadPoolExecutor

        made = ThreadPoolExecutor(1, thread_name_prefix=f"burn-read-{device.name}")
        found = _threads.setdefault(key, made)
    return found
