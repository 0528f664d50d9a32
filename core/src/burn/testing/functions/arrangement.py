"""Samples of what joins and moves elements: stacks, rotations, diagonals, triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.dtype import Kind
from burn.errors import ArgumentError, AxisError, OperandTypeError, ShapeError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import call, function_reference, wrong
from burn.testing.op_samples import Array


def _stacked(name: str) -> None:
    function = getattr(np, name)

    @function_reference(
        name,
        samples=[
            call("numbers", [floats(), floats(phase=0.7)]),
            call("vectors", [floats(3), floats(3, phase=0.7)]),
            call("matrices", [floats(2, 3), floats(2, 3, phase=0.7), floats(2, 3)]),
            call("cubes", [floats(2, 3, 2), floats(2, 3, 2, phase=0.7)]),
            call("one", [floats(2, 1)]),
            call("none at all", [floats(0, 2), floats(0, 2)]),
            call("integers", [integers(2, 2), integers(2, 2)], kinds=Kind.INTEGER),
            call("booleans", [booleans(3), booleans(3)]),
        ],
        errors=[
            wrong("no tensor", OperandTypeError, []),
            wrong("other lengths", ShapeError, [floats(2, 3, 2), floats(3, 2, 4)]),
        ],
        exact=True,
    )
    def _(tensors: list[Array]) -> Array:
        result: Array = function(tensors)
        return result


for _name in ("column_stack", "dstack", "hstack", "vstack"):
    _stacked(_name)


def _at_least(name: str) -> None:
    function = getattr(np, name)

    @function_reference(
        name,
        samples=[
            call("a number", floats()),
            call("a vector", integers(3), kinds=Kind.INTEGER),
            call("a matrix", floats(2, 3)),
            call("several", floats(2, 3, 1, 2), booleans(3), floats()),
        ],
        errors=[wrong("no tensor", OperandTypeError, 1.0)],
        exact=True,
    )
    def _(*arrays: Array) -> Any:
        return function(*arrays)


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    _at_least(_name)


@function_reference(
    "vander",
    samples=[
        call("square", floats(3)),
        call("four powers", floats(3), 4, increasing=True),
        call("integers", integers(2), 3),
        call("a column", floats(4), 1),
        call("nothing", floats(3), 0),
        call("of nothing", floats(0)),
    ],
    errors=[
        wrong("a number", ShapeError, floats()),
        wrong("a negative number", ArgumentError, floats(3), -1),
    ],
    magnitude=lambda x, n=None, **_: 1.0 + np.abs(x).max(initial=1.0) ** (n or len(x)),
)
def _(x: Array, n: int | None = None, *, increasing: bool = False) -> Array:
    return np.vander(x, n, increasing)


@function_reference(
    "rot90",
    samples=[
        call("once", floats(2, 3)),
        call("twice", floats(2, 3), 2),
        call("three times", floats(2, 3), 3),
        call("back", floats(2, 3, 4), -1, (2, 0)),
        call("all around", integers(2, 3), 4),
    ],
    errors=[
        wrong("one axis", AxisError, floats(2, 3), 1, (0,)),
        wrong("an axis twice", AxisError, floats(2, 3), 1, (1, 1)),
        wrong("a vector", AxisError, floats(3)),
        wrong("half a turn", OperandTypeError, floats(2, 3), 0.5),
    ],
    exact=True,
)
def _(x: Array, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    return np.rot90(x, k, axes)


@function_reference(
    "flipud",
    samples=[call("a matrix", floats(3, 2)), call("a vector", integers(3))],
    errors=[wrong("a number", AxisError, floats())],
    exact=True,
)
def _(x: Array) -> Array:
    return np.flipud(x)


@function_reference(
    "fliplr",
    samples=[call("a matrix", floats(3, 2)), call("a cube", integers(2, 3, 2))],
    errors=[wrong("a vector", AxisError, floats(3))],
    exact=True,
)
def _(x: Array) -> Array:
    return np.fliplr(x)


@function_reference(
    "linalg.diag_embed",
    samples=[
        call("a vector", floats(3)),
        call("rows", floats(2, 3), offset=1),
        call("below", floats(2, 2), offset=-2, axis1=0, axis2=-1),
        call("columns before rows", integers(2, 2), axis1=1, axis2=0),
        call("no element", floats(2, 0), offset=1),
    ],
    errors=[
        wrong("a number", ShapeError, floats()),
        wrong("one axis", AxisError, floats(3), axis1=1),
        wrong("no such axis", AxisError, floats(3), axis2=2),
    ],
    exact=True,
)
def _(x: Array, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    *batch, length = x.shape
    side = length + abs(offset)
    result = np.zeros((*batch, side, side), x.dtype)
    index = np.arange(length)
    result[..., index + max(-offset, 0), index + max(offset, 0)] = x
    return np.moveaxis(result, (-2, -1), (axis1, axis2))


def _triangle(name: str) -> None:
    function: Any = getattr(np, name)

    @function_reference(
        name,
        samples=[
            call("square", 3),
            call("above", 3, 1),
            call("wide, below", 2, -1, 4),
            call("tall", 4, k=1, m=2),
            call("beyond", 2, 9),
            call("no row", 0, 0, 3),
        ],
        errors=[
            wrong("a negative length", ArgumentError, -1),
            wrong("a float", OperandTypeError, 2.5),
        ],
        exact=True,
    )
    def _(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
        rows, columns = function(n, k, m)
        return rows, columns


for _name in ("tril_indices", "triu_indices"):
    _triangle(_name)
