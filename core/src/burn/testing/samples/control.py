"""Samples of ops that run programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, DTypeError, OperandTypeError, ShapeError
from burn.ir import GraphIr, OperationIr, TensorIr
from burn.testing.arrays import booleans, complexes, floats, integers, strided, transposed
from burn.testing.op_samples import Array, TestedGraph, error, reference, sample


@reference(
    "detach",
    samples=[
        sample("floats", floats(3)),
        sample("0-d", floats()),
        sample("empty", floats(0, 2)),
        sample("a view", transposed(floats(2, 3))),
        sample("integers", integers(3)),
        sample("booleans", booleans(2, 3)),
        sample("complex numbers", complexes(3)),
    ],
    exact=True,
)
def _(x: Array) -> Array:
    return x


_TRUE: Final = np.array(True)  # noqa: FBT003 — a value
_FALSE: Final = np.array(False)  # noqa: FBT003 — a value

_PRODUCT: Final = """
input %0: DTYPE[SHAPE]
input %1: DTYPE[SHAPE]
%2: DTYPE[SHAPE] = multiply(%0, %1)
output %2
output %0
"""

_NEGATIVE: Final = """
input %0: DTYPE[SHAPE]
input %1: DTYPE[SHAPE]
%2: DTYPE[SHAPE] = negative(%1)
output %2
output %1
"""

_IS_SMALL: Final = """
input %0: DTYPE[]
input %1: DTYPE[SHAPE]
input %2: DTYPE[SHAPE]
%3: bool[] = less(%0, 4.0)
output %3
"""

_DOUBLED: Final = """
input %0: DTYPE[]
input %1: DTYPE[SHAPE]
input %2: DTYPE[SHAPE]
%3: DTYPE[] = multiply(%0, 2.0)
%4: DTYPE[SHAPE] = multiply(%1, %2)
output %3
output %4
"""

_RECURRENCE: Final = """
input %0: DTYPE[SHAPE]
input %1: DTYPE[SHAPE]
input %2: DTYPE[SHAPE]
%3: DTYPE[SHAPE] = multiply(%0, %2)
%4: DTYPE[SHAPE] = add(%3, %1)
%5: DTYPE[SHAPE] = multiply(%4, %1)
output %4
output %5
"""


def _floats32(*shape: int) -> Array:
    return floats(*shape).astype(np.float32)


def _positive(*shape: int, phase: float = 0.0) -> Array:
    """Floats that do not cancel out."""
    return floats(*shape, low=0.5, high=1.5, phase=phase)


_FUNCTIONS: Final[dict[str, Any]] = {
    "add": np.add,
    "less": np.less,
    "multiply": np.multiply,
    "negative": np.negative,
}


def _run(graph: GraphIr, arrays: Sequence[Any]) -> list[Array]:
    """The outputs of a program of the functions above."""
    values = {source.id: array for source, array in zip(graph.inputs, arrays, strict=True)}
    for operation in graph.operations:
        if isinstance(operation, OperationIr):
            operands = [values[x.id] if isinstance(x, TensorIr) else x for x in operation.inputs]
            values[operation.outputs[0].id] = _FUNCTIONS[operation.name](*operands)
    return [values[output.id] for output in graph.outputs]


def _branches(*shape: int) -> dict[str, Any]:
    return {
        "true_function": TestedGraph(_PRODUCT, *shape),
        "false_function": TestedGraph(_NEGATIVE, *shape),
    }


@reference(
    "cond",
    samples=[
        sample("true", _TRUE, [floats(3), floats(3, phase=1.0)], **_branches(3)),
        sample("false", _FALSE, [floats(3), floats(3, phase=1.0)], **_branches(3)),
        sample("0-d", _TRUE, [floats(), floats()], **_branches()),
        sample("empty", _FALSE, [floats(0, 2), floats(0, 2)], **_branches(0, 2)),
        sample(
            "views", _TRUE, [transposed(floats(2, 3)), strided(floats(2, 3))], **_branches(2, 3)
        ),
    ],
    errors=[
        error("a predicate with axes", ShapeError, booleans(2), [_floats32(3)] * 2, **_branches(3)),
        error("a number", DTypeError, floats(), [_floats32(3)] * 2, **_branches(3)),
        error("one operand", OperandTypeError, _TRUE, [_floats32(3)], **_branches(3)),
        error("another shape", ShapeError, _TRUE, [_floats32(4)] * 2, **_branches(3)),
    ],
)
def _(predicate: Array, operands: list[Array], **attributes: Any) -> tuple[Array, ...]:
    name = "true_function" if predicate else "false_function"
    return tuple(_run(attributes[name], operands))


def _loop(*shape: int) -> dict[str, Any]:
    return {
        "condition": TestedGraph(_IS_SMALL, *shape),
        "body": TestedGraph(_DOUBLED, *shape),
    }


_START: Final = np.array(1.25)
_ONE32: Final = np.array(1.0, np.float32)


@reference(
    "while_loop",
    samples=[
        sample("two iterations", [_START, _positive(3)], [_positive(3, phase=1.0)], **_loop(3)),
        sample(
            "none, at the edge of one",
            [np.array(4.0), _positive(3)],
            [_positive(3)],
            differentiable=False,
            **_loop(3),
        ),
        sample("empty", [_START, _positive(0, 2)], [_positive(0, 2)], **_loop(0, 2)),
        sample(
            "views",
            [_START, transposed(_positive(2, 3))],
            [strided(_positive(2, 3))],
            **_loop(2, 3),
        ),
    ],
    errors=[
        error("no captured tensor", OperandTypeError, [_ONE32, _floats32(3)], [], **_loop(3)),
        error("another shape", ShapeError, [_ONE32, _floats32(4)], [_floats32(4)], **_loop(3)),
    ],
)
def _(
    carry: list[Array], captured: list[Array], *, condition: GraphIr, body: GraphIr
) -> tuple[Array, ...]:
    while _run(condition, [*carry, *captured])[0]:
        carry = _run(body, [*carry, *captured])
    return tuple(carry)


def _scan(length: int, *shape: int, **attributes: Any) -> dict[str, Any]:
    return {"body": TestedGraph(_RECURRENCE, *shape), "length": length, **attributes}


@reference(
    "scan",
    samples=[
        sample(
            "forwards", [_positive(2)], [_positive(3, 2)], [_positive(2, phase=1.0)], **_scan(3, 2)
        ),
        sample(
            "backwards",
            [_positive(2)],
            [_positive(3, 2)],
            [_positive(2)],
            **_scan(3, 2, reverse=True),
        ),
        sample("one iteration", [_positive()], [_positive(1)], [_positive()], **_scan(1)),
        sample("no iteration", [_positive(2)], [_positive(0, 2)], [_positive(2)], **_scan(0, 2)),
        sample("empty", [_positive(0)], [_positive(2, 0)], [_positive(0)], **_scan(2, 0)),
        sample(
            "views",
            [strided(_positive(2))],
            [transposed(_positive(3, 2))],
            [strided(_positive(2, phase=1.0))],
            **_scan(3, 2),
        ),
    ],
    errors=[
        error(
            "another length",
            ShapeError,
            [_floats32(2)],
            [_floats32(3, 2)],
            [_floats32(2)],
            **_scan(2, 2),
        ),
        error(
            "a negative length", ArgumentError, [_floats32(2)], [], [_floats32(2)], **_scan(-1, 2)
        ),
        error("no xs", OperandTypeError, [_floats32(2)], [], [_floats32(2)], **_scan(3, 2)),
        error(
            "another shape",
            ShapeError,
            [_floats32(3)],
            [_floats32(3, 2)],
            [_floats32(2)],
            **_scan(3, 2),
        ),
    ],
)
def _(
    carry: list[Array],
    xs: list[Array],
    captured: list[Array],
    *,
    body: GraphIr,
    length: int,
    reverse: bool = False,
) -> tuple[Array, ...]:
    (state,), (elements,) = carry, xs
    stacked = np.zeros_like(elements)
    for step in range(length):
        position = length - 1 - step if reverse else step
        state, stacked[position] = _run(body, [state, elements[position], *captured])
    return state, stacked
