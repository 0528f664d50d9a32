"""Dead code: operations and constants whose results nothing uses."""

from __future__ import annotations

from dataclasses import replace

from burn.ir import Drop, GraphIr, OperationIr, tensors_among

__all__ = ["dead_code"]


def dead_code(graph: GraphIr) -> GraphIr:
    """The program without operations and constants that no output depends on.

    An operation may go that would raise an error for some values, such as an index that is out of
    range. The random numbers of an operation that goes are reserved all the same, so that all
    others stay what they are.

    Parameters
    ----------
    graph : GraphIr
        A program.

    Returns
    -------
    GraphIr
        The program, with the same inputs.

    Examples
    --------
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[2]
    ...     %1: float32[2] = exp(%0)
    ...     %2: float32[2] = log(%0)
    ...     output %1
    ... ''')
    >>> print(dead_code(graph))
    input %0: float32[2]
    %1: float32[2] = exp(%0)
    output %1
    """
    used = {one.id for one in graph.outputs}
    operations: list[OperationIr] = []
    for operation in reversed(graph.operations):
        if isinstance(operation, Drop) or all(one.id not in used for one in operation.outputs):
            continue
        used.update([one.id for one in tensors_among(operation.inputs)])
        operations.append(operation)
    constants = tuple([one for one in graph.constants if one.tensor.id in used])
    return replace(graph, constants=constants, operations=tuple(operations[::-1]))
