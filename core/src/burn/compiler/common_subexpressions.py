"""Common subexpressions: equal operations on equal operands run once."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, Final

from burn.compiler._rewriting import exact, rewritten
from burn.ir import GraphIr, OperationIr, TensorIr
from burn.ops import REGISTRY, Tag

__all__ = ["common_subexpressions"]

_MAX_CREATED: Final = 1024
"""Elements of the largest tensor that is made once and kept, where it could be made twice."""

_MAX_BYTES: Final = 1 << 16
"""Size of the largest constants that are compared."""


def common_subexpressions(graph: GraphIr) -> GraphIr:
    """The program with each operation done once.

    Operations are equal if the op, the operands and all attributes are. Numbers are compared with
    their types, and 0.0 is not -0.0. Random ops are functions of their seeds and offsets, so equal
    ones are equal numbers. Large tensors of one value, which cost less to make than to keep, are
    made where they are used.

    Parameters
    ----------
    graph : GraphIr
        A program.

    Returns
    -------
    GraphIr
        The program; the first of equal operations stays.

    Examples
    --------
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[2]
    ...     %1: float32[2] = exp(%0)
    ...     %2: float32[2] = exp(%0)
    ...     %3: float32[2] = add(%1, %2)
    ...     output %3
    ... ''')
    >>> print(common_subexpressions(graph))
    input %0: float32[2]
    %1: float32[2] = exp(%0)
    %3: float32[2] = add(%1, %1)
    output %3
    """
    first: dict[int, TensorIr] = {}
    values: dict[Any, TensorIr] = {}
    constants = []
    for constant in graph.constants:
        tensor, data = constant
        if data.array.nbytes <= _MAX_BYTES:
            same = values.setdefault((*data.shape, data.dtype, data.array.tobytes()), tensor)
            if same is not tensor:
                first[tensor.id] = same
                continue
        constants.append(constant)
    known: dict[Any, tuple[TensorIr, ...]] = {}

    def once(operation: OperationIr, replacement: dict[int, TensorIr]) -> list[OperationIr]:
        name, inputs, attributes, outputs, _ = operation
        if not inputs and _is_cheap(operation):
            return [operation]
        key = (
            name,
            tuple(map(_operand, inputs)),
            tuple([(name, exact(value)) for name, value in attributes.items()]),
        )
        same = known.setdefault(key, outputs)
        if same is outputs:
            return [operation]
        replacement.update(zip([output.id for output in outputs], same, strict=True))
        return []

    return replace(rewritten(graph, once, first), constants=tuple(constants))


def _is_cheap(operation: OperationIr) -> bool:
    """Whether an operation without operands makes a large tensor of numbers that are known."""
    shape: Any = operation.outputs[0].shape
    return prod(shape) > _MAX_CREATED and Tag.RANDOM not in REGISTRY[operation.name].tags


def _operand(operand: Any) -> Any:
    if operand.__class__ is TensorIr:
        return operand.id
    if operand.__class__ is tuple:
        return tuple([part.id for part in operand])
    return exact(operand)
