"""Observers of op tables: they get an `Event` for each op, with its operands and its duration.

While there is an observer, op tables resolve ops to callables that report to it, and their backends
report uploads and reads. When the first one comes and when the last one goes, all tables forget
what they resolved: so without an observer nothing is wrapped, and no op makes a check. Who keeps
plans of calls (`burn.devices.forget_plans`) forgets them after `start` and after `stop`.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Protocol

from burn.locks import new_rlock
from burn.ops.op import REGISTRY
from burn.ops.signature import Meta
from burn.ops.source import source_line
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.ops.table import OpTable

__all__ = [
    "Event",
    "Observer",
    "changes",
    "generation",
    "is_observing",
    "observed",
    "plain",
    "reporting",
    "start",
    "stop",
    "watch",
]


@dataclass(slots=True, eq=False)
class Event:
    """A call of an op, a transfer or a wait, that has ended without an error.

    Attributes
    ----------
    name : str
        The op; ``from_data``, ``to_data`` or ``read_all`` for an upload or a read of values;
        ``to_device`` for a copy between devices of a backend; ``write_slice`` for a write in place;
        for a wait, the op whose shape it is for.
    kind : str
        ``op``, ``upload``, ``read``, ``copy``; or ``wait``: the program waits for a shape that
        depends on values.
    device : str
        Name of the device.
    line : str
        The line of the user's program, as ``train.py:12``; empty if there is none.
    thread : tuple of int and str
        Number and name of the thread.
    start, end : int
        When it starts and ends, in nanoseconds of `time.perf_counter_ns`.
    operands : list
        A Meta (shape and dtype) for each tensor; numbers as they are; a list for a list.
    attributes : dict
        The attributes of the op.
    outputs : list of Meta
        Shapes and dtypes of the outputs.
    parts : sequence of Event
        What the op runs in turn: the ops that it is made of, and its transfers.
    overhead : int
        Nanoseconds that observers take, before and after the call and within it.
    cost : burn.ir.cost.Cost, optional
        Its floating-point operations and bytes, which a profile counts when it is asked for them.
    """

    name: str
    kind: str
    device: str
    line: str
    thread: tuple[int, str]
    start: int
    end: int
    operands: list[Any]
    attributes: Mapping[str, Any]
    outputs: list[Any]
    parts: Sequence[Event]
    overhead: int = 0
    cost: Any = None

    @property
    def duration(self) -> int:
        """Nanoseconds that the call takes, without what observers take of them."""
        time = self.end - self.start
        return time - sum([part.overhead for part in self.parts]) if self.parts else time

    def walk(self) -> Iterator[Event]:
        """The event and all its parts."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def describe(self) -> str:
        """The call as in a message: ``sum(float32[2, 3], axis=(1,))``."""
        definition = REGISTRY.get(self.name)
        if definition is not None and self.kind == "op":
            return definition.describe(self.operands, self.attributes)
        return f"{self.name}({', '.join(map(str, flat(self.operands)))})"


class Observer(Protocol):
    """What gets events, in the thread of the call.

    Attributes
    ----------
    synchronize : bool
        Whether a call that is no part of another one ends when the device has done its work.
    """

    synchronize: bool

    def record(self, event: Event) -> None:
        """Take an event that is no part of another one."""


class _Thread(threading.local):
    """What runs in a thread: the parts of the call that runs, and its line; None outside of one."""

    def __init__(self) -> None:
        self.parts: list[Event] | None = None
        self.line = ""
        self.key = threading.get_ident(), threading.current_thread().name


_thread: Final = _Thread()
_lock: Final = new_rlock()
_tables: Final[list[weakref.ref[OpTable]]] = []
_observers: tuple[Observer, ...] = ()
_synchronizes = False

changes: Final = [0]
"""Twice the number of times that the first observer came or the last one went: see `generation`."""


def start(observer: Observer) -> None:
    """Let an observer see every op of the process, in all threads, until `stop`."""
    with _lock:
        _change((*_observers, observer))


def stop(observer: Observer) -> None:
    """Let an observer see no more ops."""
    with _lock:
        _change(tuple([item for item in _observers if item is not observer]))


def _change(observers: tuple[Observer, ...]) -> None:
    global _observers, _synchronizes  # noqa: PLW0603 — changed under the lock only
    was_observing = bool(_observers)
    _observers = observers
    _synchronizes = any(observer.synchronize for observer in observers)
    if was_observing is not bool(observers):
        changes[0] += 1  # a table does not keep what another thread resolves meanwhile
        for reference in _tables.copy():
            table = reference()
            if table is not None:
                table.forget()
        changes[0] += 1  # what another thread took of a table before that is taken anew


def is_observing() -> bool:
    """Whether there is an observer."""
    return bool(_observers)


def generation() -> int:
    """How often ops were forgotten: a table keeps no op that it resolved before the last time."""
    return changes[0]


def watch(table: OpTable) -> None:
    """Have a new table forget its ops when observers come or go."""
    _read_environment()
    _tables.append(weakref.ref(table, _tables.remove))


@functools.cache
def _read_environment() -> None:
    if os.environ.get("BURN_LOG_OPS", "") not in ("", "0"):
        from burn.ops.op_log import OpLog

        start(OpLog())


def observed(table: OpTable, backend: Any) -> Any:
    """The backend of a table, which reports its transfers while there is an observer."""
    backend = plain(backend)
    return _ObservedBackend(table, backend) if _observers else backend


def plain(backend: Any) -> Any:
    """The backend itself."""
    return backend._backend if backend.__class__ is _ObservedBackend else backend


_KINDS: Final = {
    "from_data": "upload",
    "to_data": "read",
    "read_all": "read",
    "to_device": "copy",
    "write_slice": "op",
}
"""The methods of a backend, beside ops, that are observed."""


class _ObservedBackend:
    """A backend whose transfers are observed; all else is that backend's own."""

    def __init__(self, table: OpTable, backend: Any) -> None:
        self._table = table
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._backend, name)
        kind = _KINDS.get(name)
        return member if kind is None else reporting(self._table, name, member, kind)


def reporting(
    table: OpTable, name: str, function: Callable[..., Any], kind: str = "op"
) -> Callable[..., Any]:
    """A callable that reports its calls to all observers; it may outlive them.

    Parameters
    ----------
    table : OpTable
        The table whose device computes.
    name : str
        Name of the op or the transfer.
    function : callable
        What runs it.
    kind : str
        See `Event`.
    """
    device = _device_of(table)
    thread = _thread

    def call(*operands: Any, **attributes: Any) -> Any:
        if not _observers:
            return function(*operands, **attributes)
        begin = perf_counter_ns()
        outer = thread.parts
        if outer is None:
            thread.line = source_line()
        parts: list[Event] = []
        thread.parts = parts
        start = perf_counter_ns()
        try:
            result = function(*operands, **attributes)
            if outer is None and _synchronizes:
                plain(table.backend).sync(table.device)
            end = perf_counter_ns()
        finally:
            thread.parts = outer
        if kind == "copy" and result is None:  # the backend has no way between these devices
            return None
        event = Event(
            name,
            kind,
            device,
            thread.line,
            thread.key,
            start,
            end,
            _metas(table, operands),
            attributes,
            _metas(table, result if result.__class__ in (tuple, list) else (result,)),
            parts or _NO_PARTS,
        )
        if outer is None:
            for observer in _observers:
                observer.record(event)
        else:
            outer.append(event)
        inside = sum([part.overhead for part in parts])
        event.overhead = inside + (start - begin) + (perf_counter_ns() - end)
        return result

    return call


_NO_PARTS: Final[tuple[Event, ...]] = ()
"""Shared by most events, which then take less memory."""


def _device_of(table: OpTable) -> str:
    """Name of the device of a table."""
    handle = table.handle
    if handle is not None:
        return handle.hardware.name  # type: ignore[no-any-return]  # of a Device
    return f"{table.backend.name(table.device)}:{table.device.index_id}"


def _metas(table: OpTable, values: Sequence[Any]) -> list[Any]:
    """Shapes and dtypes of tensors and host data; numbers and None as they are."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, list):
            found.append(_metas(table, value))
        elif value.__class__ is TensorData:
            found.append(Meta(tuple(value.shape), value.dtype))
        elif hasattr(value, "dtype"):
            found.append(Meta(tuple(value.shape), table.dtype(value)))
        elif value is None or isinstance(value, (bool, int, float, complex)):
            found.append(value)
    return found


def flat(values: Sequence[Any]) -> Iterator[Any]:
    """Values, and those in lists among them."""
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield value
