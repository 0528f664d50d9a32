"""Algebra: operations that others make simpler or superfluous: the transpose of a transpose."""

from __future__ import annotations

import itertools
from typing import Any

from burn.compiler import _layout_rules, _reduction_rules  # noqa: F401 — importing rules registers them
from burn.compiler._arithmetic_rules import with_numbers
from burn.compiler._rewriting import RULES, next_id, rewritten
from burn.ir import GraphIr, Input, OperationIr, Status, TensorIr, infer
from burn.ops import REGISTRY, Tag

__all__ = ["algebra"]


def algebra(graph: GraphIr) -> GraphIr:
    """The program with simpler operations that give the same.

    The results are the same to the bit, NaN, infinities and the signs of zeros included. But sums
    of equal elements become products, a sum over some axes and then others adds up in another
    order, and a sum of one element is this, -0.0 included: there the tolerance of sums holds.

    Parameters
    ----------
    graph : GraphIr
        A program.

    Returns
    -------
    GraphIr
        The program. What is not used any more is still there: see `burn.compiler.dead_code`.

    Examples
    --------
    >>> graph = GraphIr.from_text('''
    ...     input %0: float32[2, 3]
    ...     %1: float32[3, 2] = permute(%0, axes=(1, 0))
    ...     %2: float32[2, 3] = permute(%1, axes=(1, 0))
    ...     %3: float32[2, 3] = multiply(%2, 1.0)
    ...     %4: float32[2, 3] = exp(%3)
    ...     output %4
    ... ''')
    >>> from burn.compiler.dead_code import dead_code
    >>> print(dead_code(algebra(graph)))
    input %0: float32[2, 3]
    %4: float32[2, 3] = exp(%0)
    output %4
    """
    program = _Program(next_id(graph))

    def simplified(operation: OperationIr, replacement: dict[int, TensorIr]) -> list[OperationIr]:
        if REGISTRY[operation.name].returns_tuple:
            return [operation]
        (output,) = operation.outputs
        found = program.added(operation)
        if found.id != output.id:
            replacement[output.id] = found
        return program.taken()

    return rewritten(graph, simplified)


class _Program:
    """The operations so far, to which rules add: a `burn.compiler._rewriting.Builder`."""

    def __init__(self, first: int) -> None:
        self._numbers = itertools.count(first)
        self._makers: dict[int, OperationIr] = {}
        self._new: list[OperationIr] = []
        self._source = ""

    def maker(self, tensor: TensorIr) -> OperationIr | None:
        """The operation that makes a tensor; None of an input or a constant."""
        return self._makers.get(tensor.id)

    def call(self, name: str, *inputs: Input, **attributes: Any) -> TensorIr:
        """The output of a call of an op, which is simplified in turn."""
        ((shape, dtype),) = infer(REGISTRY[name], inputs, attributes)
        output = TensorIr(next(self._numbers), shape, dtype, Status.NOT_INIT)
        return self.added(OperationIr(name, inputs, attributes, (output,), self._source))

    def added(self, operation: OperationIr) -> TensorIr:
        """The output of an operation, or what is the same."""
        self._source = operation.source
        if Tag.ELEMENTWISE in REGISTRY[operation.name].tags:
            operation = with_numbers(self, operation)
        for rule in RULES.get(operation.name, ()):
            found = rule(self, operation)
            if found is not None:
                return found
        (output,) = operation.outputs
        self._new.append(operation)
        self._makers[output.id] = operation
        return output._replace(status=Status.READ_ONLY)

    def taken(self) -> list[OperationIr]:
        """The operations that have been added since the last call."""
        new, self._new = self._new, []
        return new
