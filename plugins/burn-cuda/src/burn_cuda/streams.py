"""Streams of a device: what is captured on them, and how long what is launched takes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import cupy
from cupy.cuda import memory, runtime

from burn_cuda.kernels import source

__all__ = ["Streams"]

_Result = TypeVar("_Result")

_TIMED_LAUNCHES: Final = 4
_QUEUEING_NANOSECONDS: Final = 150_000
"""In this time the host queues launches that are timed, so that the device does not wait for it."""


class _Graph:
    """A captured graph, and the pool of the memory that its kernels use."""

    def __init__(self, graph: Any, pool: Any) -> None:
        self._graph = graph
        self._pool = pool

    def launch(self) -> None:
        """Launch it on the current stream."""
        self._graph.launch()


class Streams:
    """The streams of one device.

    Attributes
    ----------
    device : cupy.cuda.Device
        The device.
    compile : callable
        From a source and a name to a kernel.
    """

    device: Any
    compile: Callable[[str, str], Any]

    def __init__(self) -> None:
        self._thread = threading.local()

    def elapsed(self, run: Callable[[], None]) -> float:
        """Milliseconds that the device takes for what a function launches, on average of a few."""
        wait = self.compile(source("wait.cu"), "wait")
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        wait((1,), (1,), (_QUEUEING_NANOSECONDS,))
        start.record()
        for _ in range(_TIMED_LAUNCHES):
            run()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / _TIMED_LAUNCHES

    def stream(self) -> Any:
        """The current stream."""
        return cupy.cuda.get_current_stream()

    @property
    def is_capturing(self) -> bool:
        """Whether this thread captures what it launches."""
        return getattr(self._thread, "captures", False)

    def other_streams(self, count: int) -> list[Any]:
        """Streams that wait for no other one."""
        return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]

    def record(self) -> Any:
        """An event after all that the current stream has been given."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self.stream())
        return event

    def capture(self, run: Callable[[], _Result]) -> tuple[Callable[[], None], _Result]:
        """Capture what a function launches on the current stream, and does not run.

        What it allocates has a pool of its own, which lives as long as the launch that is returned.
        """
        with self.device:
            # The work before it has left memory there that this pool needs.
            cupy.get_default_memory_pool().free_all_blocks()
            pool, stream = memory.MemoryPool(), cupy.cuda.Stream(non_blocking=True)
            with cupy.cuda.using_allocator(pool.malloc), stream:
                stream.begin_capture()
                self._thread.captures = True
                try:
                    result = run()
                except BaseException:
                    with contextlib.suppress(runtime.CUDARuntimeError):
                        stream.end_capture()  # the error may have ended it
                    raise
                finally:
                    self._thread.captures = False
                graph = stream.end_capture()
        return _Graph(graph, pool).launch, result
