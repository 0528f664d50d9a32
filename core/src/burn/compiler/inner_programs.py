"""Inner programs: those that operations run, such as the body of a loop, are compiled too."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from burn.compiler._rewriting import rewritten
from burn.ir import GraphIr, OperationIr
from burn.ops import OpTable

__all__ = ["InnerProgram", "inner_programs"]


class InnerProgram(GraphIr):
    """A program that an operation runs, which is compiled when it first runs on a device."""

    def prepared(self, table: OpTable) -> Any:
        """The program compiled for an op table; see `GraphIr.prepared`."""
        if type(table) is not OpTable:  # of a transform, which runs the ops in a way of its own
            return super().prepared(table)
        kept: dict[OpTable, Any] = vars(self).setdefault("_compiled_for", {})
        if table not in kept:
            from burn.compiler.executable import compiled

            kept[table] = compiled(self, table)
        return kept[table]


def inner_programs(graph: GraphIr) -> GraphIr:
    """The program with attributes that are programs in a form that is compiled when it runs.

    Parameters
    ----------
    graph : GraphIr
        A program.

    Returns
    -------
    GraphIr
        The program. Attributes that were one object are one object.
    """
    made: dict[int, GraphIr] = {}

    def compiling(operation: OperationIr, _: object) -> list[OperationIr]:
        attributes = dict(operation.attributes)
        for name, value in attributes.items():
            if isinstance(value, GraphIr):
                if id(value) not in made:
                    parts = {field.name: getattr(value, field.name) for field in fields(value)}
                    parts["relaxed"] = graph.relaxed or value.relaxed
                    made[id(value)] = InnerProgram(**parts)
                attributes[name] = made[id(value)]
        return [operation._replace(attributes=attributes)]

    return rewritten(graph, compiling)
