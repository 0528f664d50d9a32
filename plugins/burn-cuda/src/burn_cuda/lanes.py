"""Lanes: steps of a captured program on several streams, so that a GPU may run them at once.

A step waits for those that make what it reads, and for those that read what it overwrites. All else
is independent, such as the gradients of a layer's weight and of its input. While a program is
captured nothing runs: the waits become the edges of its graph. The memory of what steps make is
not used again within a captured program, since lanes do not wait for the lane that is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import REGISTRY, KernelCall, OperationIr, Plan, Tag, tensors_among

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["Lanes", "dependencies", "made_bytes"]

_COUNT: Final = 4


def made_bytes(plan: Plan) -> int:
    """Bytes of all that the steps of a plan make."""
    total = 0
    for step in plan.steps:
        if isinstance(step, KernelCall) or not REGISTRY[step.name].tags & Tag.VIEW:
            for output in step.outputs:
                size = output.dtype.itemsize
                for length in output.shape:
                    size *= length or 0
                total += size
    return total


def dependencies(plan: Plan) -> list[tuple[int, ...]]:
    """For each step the indices of those that it waits for.

    A view is a step as well: one that has no strides for its elements copies them.

    Parameters
    ----------
    plan : Plan
        The plan.
    """
    memory: dict[int, int] = {}
    """For each tensor the first one that has its memory."""
    written: dict[int, int] = {}
    viewed: dict[int, int] = {}
    """For each view the step that makes it."""
    readers: dict[int, set[int]] = {}
    found: list[tuple[int, ...]] = []
    for index, step in enumerate(plan.steps):
        waits: set[int] = set()
        for tensor in tensors_among(step.inputs):
            root = memory.get(tensor.id, tensor.id)
            waits |= {written[root]} if root in written else set()
            waits |= {viewed[tensor.id]} if tensor.id in viewed else set()
            readers.setdefault(root, set()).add(index)
        if isinstance(step, OperationIr) and REGISTRY[step.name].tags & Tag.VIEW:
            (made,) = step.outputs
            memory[made.id] = root
            viewed[made.id] = index
            found.append(tuple(sorted(waits)))
            continue
        over = step.over if isinstance(step, KernelCall) else ()
        for number, output in enumerate(step.outputs):
            source = over[number] if over else None
            if source is None:
                written[output.id] = index
                continue
            below = step.inputs[source].id  # type: ignore[union-attr]  # of a kernel
            root = memory[output.id] = memory.get(below, below)
            waits |= readers.pop(root, set())
            written[root] = index
        found.append(tuple(sorted(waits - {index})))
    return found


class Lanes:
    """Streams for one capture.

    Parameters
    ----------
    runtime : Runtime
        The device, whose current stream captures.
    waits : sequence
        What `dependencies` gives.
    """

    def __init__(self, runtime: Runtime, waits: Sequence[tuple[int, ...]]) -> None:
        self._runtime = runtime
        self._waits = waits
        self._streams = [runtime.stream(), *runtime.other_streams(_COUNT - 1)]
        self._start = runtime.record()
        self._lane_of: dict[int, int] = {}
        self._events: dict[int, Any] = {}
        self._last: list[int | None] = [None] * _COUNT
        self._made: list[Any] = []

    def run(self, index: int, function: Callable[..., Any], *operands: Any, **named: Any) -> Any:
        """Run a step on a lane, after what it waits for."""
        waits = self._waits[index]
        lane = self._chosen(waits)
        with self._streams[lane]:
            if self._last[lane] is None and lane:
                self._streams[lane].wait_event(self._start)
            for wait in waits:
                if self._lane_of[wait] != lane:
                    self._streams[lane].wait_event(self._events[wait])
            made = function(*operands, **named)
            self._events[index] = self._runtime.record()
        self._lane_of[index], self._last[lane] = lane, index
        self._made.append(made)
        return made

    def _chosen(self, waits: tuple[int, ...]) -> int:
        """The lane of the latest step that is waited for, if that is the last one there."""
        for wait in reversed(waits):
            if self._last[self._lane_of[wait]] == wait:
                return self._lane_of[wait]
        ends = [-1 if number is None else number for number in self._last]
        return ends.index(min(ends))

    def join(self) -> None:
        """Let the first lane wait for the others."""
        for number in self._last[1:]:
            if number is not None:
                self._streams[0].wait_event(self._events[number])
