"""The transforms whose functions are running, such as `burn.grad` and `burn.vmap`, and the trace.

A running transform adds a layer to the devices of the tensors that its function gets. The layers
of a device are, from the hardware outwards, ``autodiff`` and then one for each running transform,
the outermost of the calls first. What a function makes while transforms run belongs to all of
them: new tensors join their layers. While `burn.ir.trace` runs, the ops of a device are written
down instead: that is another device of the same hardware, below all layers.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from burn.devices.device import Device

__all__ = [
    "AUTODIFF",
    "GRAD",
    "VMAP",
    "Trace",
    "Transform",
    "before_compilation",
    "count_traces",
    "each_layer",
    "outside_of_traces",
    "recorder",
    "running",
    "running_trace",
    "trace_counts",
    "tracing",
    "transforms",
    "under",
    "under_running",
    "watches",
]

AUTODIFF: Final = "autodiff"
"""The layer of ``Device.autodiff()``, always the innermost one."""

GRAD: Final = "grad"
"""A layer of `burn.grad`, `burn.vjp` and their like."""

VMAP: Final = "vmap"
"""A layer of `burn.vmap`."""


class Transform:
    """One call of a transformed function.

    Attributes
    ----------
    kind : str
        `GRAD` or `VMAP`.
    is_checkpointing : bool
        Whether new tensors are on devices with gradient checkpointing.
    frame : burn.batching.Frame or None
        The examples of a `VMAP`.
    words_per_example : callable or None
        Of a `VMAP`: for the key of a generator, the 32-bit words that one example draws.
    """

    __slots__ = ("frame", "is_checkpointing", "kind", "words_per_example")

    def __init__(self, kind: str, *, is_checkpointing: bool = False) -> None:
        self.kind = kind
        self.is_checkpointing = is_checkpointing
        self.frame: Any = None
        self.words_per_example: Any = None


class Trace(Protocol):
    """A call of a function whose ops are written down.

    Attributes
    ----------
    recorder : burn.router.Recorder
        What writes them down.
    compiles : bool
        Whether the program may read and change Python objects, as that of `burn.compile`.
    watches : bool
        Whether `watch` is possible: in a trace that compiles, and within one.
    body : str
        The control flow of which a body is called, such as ``scan``; empty in other traces.
    outer : Trace or None
        The trace around it.
    stand_ins : burn.transforms._stand_ins.StandIns
        What the tensors from outside are in it.
    """

    recorder: Any
    compiles: bool
    watches: bool
    body: str
    outer: Trace | None
    stand_ins: Any

    def join(self, x: Any) -> bool:
        """Make a tensor from outside an input of the trace; False if it is of the trace already."""

    def owns(self, x: Any) -> bool:
        """Whether a tensor that is traced belongs to this trace, or to one around it."""

    def host_number(self, read: Callable[[], Any], kind: type[int | float]) -> Any:
        """A number that each call of a compiled function reads; TraceError in other traces."""

    def after_call(self, effect: Callable[[], None]) -> None:
        """Call a function after each call of a compiled function; TraceError in other traces."""

    def watch(self, read: Callable[[], object]) -> None:
        """Let a program hold while a function returns what it does now; TraceError in others."""


before_compilation: Final[list[Callable[[], None]]] = []
"""Functions that are called when a function begins to be traced for `burn.compile`."""

watches: Final[list[Callable[[object], Callable[[], object] | None]]] = []
"""Functions that return, for an object which a compiled function uses, what `Trace.watch` takes."""

trace_counts: Final = [0]
"""The number of traces that run now, in all threads: a list, which is read at once."""

_count_lock = threading.Lock()


def _after_fork() -> None:
    global _count_lock  # noqa: PLW0603 — another thread of the parent may have held it
    _count_lock = threading.Lock()
    trace_counts[0] = int(_trace.get() is not None)


if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(after_in_child=_after_fork)

_trace: Final[ContextVar[Trace | None]] = ContextVar("burn_trace", default=None)

_transforms: Final[ContextVar[tuple[Transform, ...]]] = ContextVar("burn_transforms", default=())


transforms: Final[Callable[[], tuple[Transform, ...]]] = _transforms.get
"""The running transforms of this thread or asyncio task, the outermost call first."""

running_trace: Final[Callable[[], Trace | None]] = _trace.get
"""The trace of this thread or asyncio task."""


def recorder() -> Any:
    """What writes down the ops of the running trace; None if none runs."""
    trace = _trace.get()
    return None if trace is None else trace.recorder


def count_traces(change: int) -> None:
    """Count a trace that begins, 1, or ends, -1."""
    with _count_lock:
        trace_counts[0] += change


@contextlib.contextmanager
def outside_of_traces() -> Iterator[None]:
    """Context in which ops are executed and not traced; its tensors have not joined the trace."""
    token = _trace.set(None)
    try:
        yield
    finally:
        _trace.reset(token)


@contextlib.contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Context in which a trace runs, without the transforms around it."""
    token = _trace.set(trace)
    try:
        with running(()):
            yield
    finally:
        _trace.reset(token)


@contextlib.contextmanager
def running(stack: tuple[Transform, ...]) -> Iterator[None]:
    """Context in which these transforms run, and no others."""
    token = _transforms.set(stack)
    try:
        yield
    finally:
        _transforms.reset(token)


def under(device: Device, stack: Sequence[Transform], *, is_checkpointing: bool = False) -> Device:
    """The hardware of a device under autodiff and these transforms."""
    layers = (AUTODIFF, *[transform.kind for transform in stack])
    return device.layered(layers, is_checkpointing=is_checkpointing or device.is_checkpointing)


def under_running(device: Device) -> Device:
    """The device with the layers of all running transforms, in the trace, for a new tensor."""
    if _trace.get() is not None:
        device = device.traced
    stack = _transforms.get()
    if not stack or len(device.layers) > len(stack):
        return device
    return under(device, stack, is_checkpointing=stack[-1].is_checkpointing)


def each_layer(device: Device) -> list[Device]:
    """The device under its first layer alone, under its first two, and so on: itself at last."""
    return [
        device.layered(device.layers[:count], is_checkpointing=device.is_checkpointing)
        for count in range(1, len(device.layers) + 1)
    ]
