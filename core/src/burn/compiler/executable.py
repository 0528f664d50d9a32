"""Executable: a program made ready to run on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from burn.ir import GraphIr
from burn.ir.execution import Execution

if TYPE_CHECKING:
    from burn.ops import OpTable

__all__ = ["Executable", "compiled"]


class Executable:
    """A program made ready to run on a device.

    Parameters
    ----------
    graph : GraphIr
        The program, after the passes.
    execution : Execution
        What runs it.

    Attributes
    ----------
    graph : GraphIr
        The program, after the passes.
    run : callable
        `Execution.run`: from primitives, and numbers for scalars, to the primitives of the outputs.
    """

    def __init__(self, graph: GraphIr, execution: Execution) -> None:
        self.graph = graph
        self._execution = execution
        self.run = execution.run

    def describe(self, error: BaseException) -> str:
        """The operation that raised an exception, as in a message."""
        return self._execution.describe(error)

    def explain(self) -> str:
        """What runs as one kernel, and what does not and why."""
        return f"{len(self.graph.operations)} calls of ops of the device, one after the other"

    @property
    def kernels(self) -> Mapping[str, str]:
        """The source texts of generated kernels, by their names."""
        return {}


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
    return Executable(graph, Execution(graph, table))
