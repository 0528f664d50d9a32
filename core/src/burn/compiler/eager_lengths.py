"""Plans of eager ops with kernels that serve many shapes: lengths are given at each launch."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Final

from burn.compiler.fusion import last_uses
from burn.compiler.plan import KernelCall, Plan, Step, Target
from burn.dtype import int32, int64
from burn.ir import TensorIr
from burn.kernels.kernel import Kernel, Literal, Load, Node, Scalar
from burn.kernels.layout import generalized
from burn.kernels.parts import divided

__all__ = ["with_lengths_of_launches"]

_MOST_NUMBERS: Final = 12
"""Constants of a kernel that become numbers of a launch."""

_CONSTANT: Final = frozenset([0, 1, -1, 2, -2, 0.5, -0.5, math.inf, -math.inf])
"""Numbers that are seldom counts of elements: they stay constants."""


def with_lengths_of_launches(plan: Plan, target: Target) -> Plan:
    """A plan whose kernels are given all lengths, and counts of elements, as numbers.

    Parameters
    ----------
    plan : Plan
        A plan of kernels and views.
    target : Target
        What kernels of the device compute: it says which reductions are divided in parts.
    """
    ids = itertools.count(1 + max(_ids(plan), default=0))
    steps: list[Step] = []
    for step in plan.steps:
        parts = [step]
        if isinstance(step, KernelCall):
            parts = [_generalized(part) for part in _divided(step, target, ids)]
        steps += parts
    return dataclasses.replace(plan, steps=tuple(steps), last_use=last_uses(plan.graph, steps))


def _ids(plan: Plan) -> Iterator[int]:
    for tensor in plan.graph.inputs:
        yield tensor.id
    for step in plan.steps:
        for output in step.outputs:
            yield output.id


def _divided(call: KernelCall, target: Target, ids: Iterator[int]) -> Iterator[KernelCall]:
    """A launch; or one for parts of the columns, and one for the whole, where rows are few."""
    kernel = call.kernel
    loads = [node for node in kernel.body if isinstance(node, Load)]
    is_strided = kernel.rows > 0 and not any(load.strides[-1] == 1 for load in loads)
    rows = target.strided_rows if is_strided else target.rows
    columns = target.long_columns
    found = None
    if kernel.row_count < rows and kernel.column_count >= 2 * columns and not call.checks:
        found = divided(kernel, columns)
    if found is None:
        yield call
        return
    partial, final = found
    outputs = tuple([TensorIr(next(ids), (count,), dtype) for dtype, count in partial.outputs])
    nothing = (None,) * len(outputs)
    yield call._replace(kernel=partial, outputs=outputs, over=nothing)
    yield call._replace(kernel=final, inputs=(*call.inputs, *outputs))


def _generalized(call: KernelCall) -> KernelCall:
    kernel, numbers = _without_counts(call.kernel)
    kernel, lengths = generalized(kernel)
    return call._replace(kernel=kernel, scalars=(*call.scalars, *numbers, *lengths))


def _without_counts(kernel: Kernel) -> tuple[Kernel, list[int | float]]:
    """A kernel of which constants that may be counts of elements are numbers of a launch."""
    numbers: list[int | float] = []
    body: list[Node] = []
    for node in kernel.body:
        if isinstance(node, Literal) and len(numbers) < _MOST_NUMBERS and _may_be_count(node):
            number = len(kernel.scalars) + len(numbers)
            numbers.append(node.value)
            body.append(Scalar(number, node.dtype))
        else:
            body.append(node)
    kinds = [float if isinstance(number, float) else int for number in numbers]
    scalars = (*kernel.scalars, *kinds)
    return dataclasses.replace(kernel, body=tuple(body), scalars=scalars), numbers


def _may_be_count(node: Literal) -> bool:
    if node.value in _CONSTANT or node.value != node.value:
        return False
    if node.dtype.is_float:
        return node.dtype.itemsize >= 4
    return node.dtype in {int32, int64}
