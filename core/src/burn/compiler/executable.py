"""Executable: a program made ready to run on a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burn.compiler.passes import simplified
from burn.errors import BurnError
from burn.ir import GraphIr
from burn.ir.check import with_last_uses
from burn.ir.execution import Execution
from burn.ops import OpTable, observing

if TYPE_CHECKING:
    from burn.aliases import Primitive

__all__ = ["Executable", "compiled"]


class Executable:
    """A program made ready to run on a device.

    Parameters
    ----------
    graph : GraphIr
        The program, after the passes.
    runner : Execution or callable
        What runs it: a straight list, or what `Backend.compile` gave.

    Attributes
    ----------
    graph : GraphIr
        The program, after the passes.
    """

    def __init__(self, graph: GraphIr, runner: Any) -> None:
        self.graph = graph
        self._runner = runner
        self._lock = threading.Lock()
        self.run: Callable[..., tuple[Primitive, ...]] = getattr(runner, "run", self._call)
        """From primitives, and numbers for scalars, to the primitives of the outputs; see
        `Execution.run`.
        """

    def _call(
        self, inputs: Sequence[Primitive], draw: tuple[int, ...] = ()
    ) -> tuple[Primitive, ...]:
        """Call what `Backend.compile` gave, by one thread at a time."""
        try:
            with self._lock:
                return self._runner(*inputs, *draw)  # type: ignore[no-any-return]  # of primitives
        except BurnError as error:
            error.operation = self.describe(error)
            raise

    def describe(self, error: BaseException) -> str:
        """The operation that raised an exception, as in a message."""
        describe = getattr(self._runner, "describe", None)
        found = "" if describe is None else describe(error)
        return found or getattr(error, "operation", "") or "a program"

    def explain(self) -> str:
        """What runs as one kernel, and what does not and why."""
        explain = getattr(self._runner, "explain", None)
        if explain is not None:
            return str(explain())
        return f"{len(self.graph.operations)} calls of ops of the device, one after the other"

    @property
    def kernels(self) -> Mapping[str, str]:
        """The source texts of generated kernels, by their names."""
        return getattr(self._runner, "kernels", {})


def compiled(graph: GraphIr, table: OpTable) -> Executable:
    """Make a program ready to run on a device.

    Parameters
    ----------
    graph : GraphIr
        A correct program; see `burn.ir.check`.
    table : OpTable
        The ops of the device.

    Returns
    -------
    Executable
        What runs it.
    """
    graph = simplified(graph, table)
    runner = _by_backend(graph, table)
    if runner is None:
        graph = with_last_uses(graph)
        runner = Execution(graph, table)
    return Executable(graph, runner)


def _by_backend(graph: GraphIr, table: OpTable) -> Any:
    """What the backend itself compiles a program to; None if it leaves that to core."""
    if type(table) is not OpTable:  # another table runs the ops in a way of its own
        return None
    compile = getattr(observing.plain(table.backend), "compile", None)
    return None if compile is None else compile(graph, table.device)
