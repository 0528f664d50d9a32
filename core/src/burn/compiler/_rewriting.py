"""What passes share: tensors that are replaced, and values that are compared exactly."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from burn.ir import GraphIr, Input, OperationIr, Status, TensorIr

__all__ = [
    "RULES",
    "Builder",
    "Rule",
    "exact",
    "made_by",
    "new_tuple",
    "next_id",
    "rewrites",
    "rewritten",
]

new_tuple: Any = tuple.__new__
"""Makes a NamedTuple in half of the time that its class takes."""


def exact(value: Any) -> Any:
    """A key of an attribute or a number: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    kind = value.__class__
    if kind is tuple or kind is list:
        return (kind, *map(exact, value))
    if isinstance(value, (float, complex, np.generic)):
        return kind, repr(value)
    if isinstance(value, GraphIr):
        return kind, id(value)
    return kind, value


def next_id(graph: GraphIr) -> int:
    """A number from which on no tensor of a program has one."""
    numbers = [source.id for source in graph.inputs if source.__class__ is TensorIr]
    numbers += [constant.tensor.id for constant in graph.constants]
    for operation in graph.operations:
        if isinstance(operation, OperationIr):
            numbers += [output.id for output in operation.outputs]
    return max(numbers, default=-1) + 1


def rewritten(
    graph: GraphIr,
    function: Callable[[OperationIr, dict[int, TensorIr]], Iterable[OperationIr]],
    replacement: Mapping[int, TensorIr] = {},
) -> GraphIr:
    """The program with each operation replaced by those that a function gives.

    Parameters
    ----------
    graph : GraphIr
        A program.
    function : callable
        Called with each operation in order, whose operands are replaced already, and with the
        tensors that replace others, by the numbers of these, to which it may add some for the
        outputs of the operation. It returns operations.
    replacement : dict
        Tensors that are replaced from the beginning.

    Returns
    -------
    GraphIr
        The program, without marks of last uses.
    """
    found = dict(replacement)
    operations: list[OperationIr] = []
    for operation in graph.operations:
        if isinstance(operation, OperationIr):
            operations += function(_with_replaced(operation, found), found)
    outputs = tuple([_replaced(output, found) for output in graph.outputs])
    return replace(graph, operations=tuple(operations), outputs=outputs)


def _with_replaced(operation: OperationIr, replacement: Mapping[int, TensorIr]) -> OperationIr:
    name, inputs, attributes, outputs, source = operation
    changed = tuple([_replaced(source, replacement) for source in inputs])
    if not any(map(operator.is_not, changed, inputs)):
        return operation
    return new_tuple(OperationIr, (name, changed, attributes, outputs, source))  # type: ignore[no-any-return]  # see there


def _replaced(operand: Any, replacement: Mapping[int, TensorIr]) -> Any:
    """An operand with the tensors that replace others, and without marks of last uses."""
    if operand.__class__ is TensorIr:
        found = replacement.get(operand.id, operand)
        if found.status is Status.READ_ONLY:
            return found
        return found._replace(status=Status.READ_ONLY)
    if operand.__class__ is tuple:
        changed = tuple([_replaced(part, replacement) for part in operand])
        return changed if any(map(operator.is_not, changed, operand)) else operand
    return operand


class Builder(Protocol):
    """What a rule makes operations with."""

    def maker(self, tensor: TensorIr) -> OperationIr | None:
        """The operation that makes a tensor; None of an input or a constant."""

    def call(self, name: str, *inputs: Input, **attributes: Any) -> TensorIr:
        """The output of a call of an op, which is simplified in turn."""


Rule: TypeAlias = Callable[[Builder, OperationIr], TensorIr | None]
"""From an operation to a tensor that is what it makes; None if it stays."""

RULES: Final[dict[str, list[Rule]]] = {}
"""By the name of the op, in the order in which they are tried."""


def rewrites(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: a rule for the operations of some ops."""

    def attach(rule: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name, []).append(rule)
        return rule

    return attach


def made_by(program: Builder, tensor: Input, name: str) -> OperationIr | None:
    """The operation of an op that makes an operand; None if something else does."""
    found = program.maker(tensor) if isinstance(tensor, TensorIr) else None
    return found if found is not None and found.name == name else None
