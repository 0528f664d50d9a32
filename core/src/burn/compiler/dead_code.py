"""Dead code: operations and constants whose results nothing uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from burn.compiler._rewriting import exact
from burn.ir import Drop, GraphIr, OperationIr, may_raise, tensors_among
from burn.ops import REGISTRY, Tag

__all__ = ["dead_code"]


def dead_code(graph: GraphIr) -> GraphIr:
    """The program without operations and constants that no output depends on.

    An operation that may raise an error for some values stays, such as one that reads at an index
    that may be out of range, unless another one that stays checks the same. The random numbers of
    an operation that goes are reserved all the same, so that all others stay what they are.

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
    used = {output.id for output in graph.outputs}
    operations: list[OperationIr] = []
    for operation in reversed(graph.operations):
        if isinstance(operation, Drop):
            continue
        is_used = any(output.id in used for output in operation.outputs)
        if not is_used and not (may_raise(operation) and not _is_repeated(operation, operations)):
            continue
        used.update([tensor.id for tensor in tensors_among(operation.inputs)])
        operations.append(operation)
    constants = tuple([constant for constant in graph.constants if constant.tensor.id in used])
    return replace(graph, constants=constants, operations=tuple(operations[::-1]))


def _is_repeated(operation: OperationIr, later: Sequence[OperationIr]) -> bool:
    """Whether a later operation checks the indices of one, as that of its gradient may do."""
    if Tag.RAISES in REGISTRY[operation.name].tags:
        return False
    operands = {tensor.id for tensor in tensors_among(operation.inputs)}
    attributes = {(name, exact(value)) for name, value in operation.attributes.items()}
    return any(
        Tag.CHECKS_INDICES in REGISTRY[check.name].tags
        and operands <= {tensor.id for tensor in tensors_among(check.inputs)}
        and attributes <= {(name, exact(value)) for name, value in check.attributes.items()}
        for check in later
    )
