"""Ops on quantized tensors: the cases in which the Rust framework burn tries its own."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import burn
from burn.errors import BurnError
from burn.quant_scheme import QuantScheme, QuantStore, QuantValue, ScaleDType

INT8 = QuantScheme(QuantValue.Q8S, QuantStore.NATIVE)
INT8_BLOCK = INT8.per_block((16,), ScaleDType.F32)

COUNT = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
FROM_ONE = [[1.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
SIX = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
CUBES = [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]]
PAIRS = [[0.0, 1.0], [2.0, 3.0]]
OTHER_PAIRS = [[4.0, 5.0], [6.0, 7.0]]
MIXED = [0.5, 1.2, -0.21, 0.0, 2.1, 0.94, -0.3, 2.3, 5.2, 4.0, 0.99, 3.0, -8.1]
MIXED_3D = [[[-0.5, 1.2, -0.21], [0.0, 2.1, 0.94]], [[-0.3, 2.3, 4.0], [0.99, 3.0, -8.1]]]
SIGNED_3D = [[[2.0, 4.0, 1.0], [7.0, -5.0, 3.0]], [[3.0, 1.0, 2.0], [4.0, 2.0, 3.0]]]
TOP = [[[1.0, 4.0, 7.0], [2.0, 5.0, 6.0]], [[3.0, 0.0, 9.0], [8.0, 2.0, 7.0]]]
LARGE = [[24.0423, 87.9478, 76.1838], [59.6929, 43.8169, 94.8826]]
MASK = [[True, False], [False, True]]


class Case(NamedTuple):
    """A call with quantized tensors, and what NumPy gives for the numbers that they came from."""

    name: str
    inputs: tuple[Any, ...]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    is_quantized: bool | None = None
    rtol: float = 0.0
    atol: float = 0.1


def case(name, *inputs, ours, theirs=None, rtol=0.0, atol=0.1):
    return Case(name, inputs, ours, ours if theirs is None else theirs, None, rtol, atol)


def arithmetic(name, *inputs, ours, theirs=None, rtol=0.0, atol=0.1):
    """A case whose result is floats."""
    return case(name, *inputs, ours=ours, theirs=theirs, rtol=rtol, atol=atol)._replace(
        is_quantized=False
    )


def selection(name, *inputs, ours, theirs=None, rtol=0.0, atol=0.1):
    """A case whose result is quantized."""
    return case(name, *inputs, ours=ours, theirs=theirs, rtol=rtol, atol=atol)._replace(
        is_quantized=True
    )


def index(x, *values):
    """Integers on the device of a tensor."""
    return burn.asarray(np.array(values[0] if len(values) == 1 else values), device=x.device)


def scattered(axis, indices):
    def theirs(x, values):
        result = x.copy()
        for position in np.ndindex(values.shape):
            target = list(position)
            target[axis] = indices[position]
            result[tuple(target)] += values[position]
        return result

    return theirs


def scatter_case(name, x, values, axis, indices, atol=0.1):
    return case(
        f"scatter, {name}",
        x,
        values,
        ours=lambda x, y: burn.scatter_add(x, index(x, indices), y, axis=axis),
        theirs=scattered(axis, np.array(indices)),
        atol=atol,
    )


def select_add_case(name, x, values, axis, indices):
    def theirs(x, values):
        result = x.copy()
        np.add.at(result, (slice(None),) * axis + (np.array(indices),), values)
        return result

    return case(
        f"select_add, {name}",
        x,
        values,
        ours=lambda x, y: burn.select_add(x, index(x, indices), y, axis=axis),
        theirs=theirs,
    )


def assigned(key):
    def ours(x, y):
        x = x[...] if False else x
        x[key] = y
        return x

    def theirs(x, y):
        x = x.copy()
        x[key] = y
        return x

    return ours, theirs


def assign_case(name, x, values, key):
    ours, theirs = assigned(key)
    return case(f"slice assignment, {name}", x, values, ours=ours, theirs=theirs)


def function(name, x=COUNT, numpy=None, **tolerance):
    theirs = getattr(np, numpy or name)
    return arithmetic(name, x, ours=lambda x: getattr(burn, name)(x), theirs=theirs, **tolerance)


def erf(x):
    from math import erf

    return np.vectorize(erf)(x)


FUNCTIONS = [
    function("ceil", LARGE, rtol=0.1),
    function("floor", LARGE, rtol=0.1),
    function("round", LARGE),
    arithmetic("round, a tie", [5.5], ours=burn.round, theirs=np.round),
    function("cos"),
    function("cosh", rtol=0.02),
    function("sin"),
    function("sinh", rtol=0.02, atol=0.2),
    function("tan"),
    function("tanh"),
    function("exp", rtol=0.02, atol=1.0),
    function("log"),
    function("log1p"),
    function("sqrt"),
    function("negative"),
    function("reciprocal", [[0.5, 1.0, 2.0], [3.0, -4.0, -5.0]]),
    arithmetic("erf", COUNT, ours=burn.erf, theirs=erf),
    arithmetic(
        "clip from",
        COUNT,
        ours=lambda x: burn.clip(x, min=2.0),
        theirs=lambda x: np.maximum(x, 2.0),
    ),
    arithmetic(
        "clip to", COUNT, ours=lambda x: burn.clip(x, max=2.0), theirs=lambda x: np.minimum(x, 2.0)
    ),
    arithmetic(
        "clip", COUNT, ours=lambda x: burn.clip(x, 1.0, 4.0), theirs=lambda x: np.clip(x, 1.0, 4.0)
    ),
    selection("abs", [[0.0, -1.0, 2.0], [3.0, 4.0, -5.0]], ours=abs),
]

ARITHMETIC = [
    arithmetic("add", COUNT, [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]], ours=lambda x, y: x + y),
    arithmetic(
        "add, broadcast", [COUNT[0]], [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]], ours=lambda x, y: x + y
    ),
    arithmetic("add, transposed right", PAIRS, OTHER_PAIRS, ours=lambda x, y: x * 1 + (y * 1).T),
    arithmetic("add, transposed left", PAIRS, OTHER_PAIRS, ours=lambda x, y: (x * 1).T + y * 1),
    arithmetic("add, quantized and transposed", PAIRS, OTHER_PAIRS, ours=lambda x, y: x.T + y),
    arithmetic(
        "add, transposed and broadcast", PAIRS, [[4.0, 5.0]], ours=lambda x, y: (x * 1).T + y * 1
    ),
    arithmetic("add a number", COUNT, ours=lambda x: x + 2.0),
    arithmetic("subtract", COUNT, [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]], ours=lambda x, y: x - y),
    arithmetic(
        "subtract, broadcast",
        [COUNT[0]],
        [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]],
        ours=lambda x, y: x - y,
    ),
    arithmetic("subtract a number", COUNT, ours=lambda x: x - 2.0, rtol=0.02),
    arithmetic("multiply", COUNT, COUNT, ours=lambda x, y: x * y, rtol=0.05),
    arithmetic(
        "multiply, broadcast",
        [COUNT[0]],
        [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]],
        ours=lambda x, y: x * y,
    ),
    arithmetic(
        "multiply, both broadcast",
        [[0.0], [1.0], [2.0]],
        [[3.0, 4.0, 5.0]],
        ours=lambda x, y: x * y,
    ),
    arithmetic("multiply by a number", COUNT, ours=lambda x: x * 2.0, rtol=0.02, atol=0.01),
    arithmetic("divide", COUNT, FROM_ONE, ours=lambda x, y: x / y),
    arithmetic("divide, broadcast", [COUNT[0]], FROM_ONE, ours=lambda x, y: x / y),
    arithmetic("divide by a number", COUNT, ours=lambda x: x / 2.0),
    arithmetic(
        "pow",
        FROM_ONE,
        [[1.0, 1.0, 2.0], [3.0, 4.0, 2.0]],
        ours=lambda x, y: x**y,
        rtol=0.04,
        atol=0.01,
    ),
    arithmetic(
        "pow, negative",
        FROM_ONE,
        [[-0.95, -0.67, -0.45], [-0.24, -0.5, -0.6]],
        ours=lambda x, y: x**y,
        rtol=0.04,
        atol=0.01,
    ),
    arithmetic(
        "pow, even",
        [[0.0, -1.0, -2.0], [-3.0, -4.0, -5.0]],
        [[2.0] * 3] * 2,
        ours=lambda x, y: x**y,
        rtol=0.04,
        atol=0.01,
    ),
    arithmetic(
        "pow, odd",
        [[0.0, -1.0, -2.0], [-3.0, -4.0, -4.0]],
        [[3.0] * 3] * 2,
        ours=lambda x, y: x**y,
        rtol=0.04,
        atol=0.01,
    ),
    arithmetic("pow of a number", COUNT, ours=lambda x: x**0.71, rtol=0.04, atol=0.01),
    arithmetic("pow of a negative number", FROM_ONE, ours=lambda x: x**-0.33, rtol=0.04, atol=0.01),
    arithmetic(
        "pow of 2",
        [[0.0, -1.0, -2.0], [-3.0, -4.0, -5.0]],
        ours=lambda x: x**2.0,
        rtol=0.04,
        atol=0.01,
    ),
    arithmetic(
        "pow of 3",
        [[0.0, -1.0, -2.0], [-3.0, -4.0, -4.0]],
        ours=lambda x: x**3.0,
        rtol=0.04,
        atol=0.01,
    ),
    arithmetic(
        "remainder",
        [-3.0, -2.0, -1.0, 1.0, 2.0, 2.0],
        [2.0, 3.0, 1.0, 2.0, 1.0, 2.0],
        ours=lambda x, y: x % y,
    ),
    arithmetic(
        "remainder of floats",
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [1.4233, 2.7313, 0.2641, 1.9651, 0.5897],
        ours=lambda x, y: x % y,
    ),
    arithmetic("remainder, negative number", [1.0, 2.0, 3.0, 4.0, 5.0], ours=lambda x: x % -1.5),
    arithmetic("remainder of zeros", [0.0, 0.0, 0.0], [3.5, -2.1, 1.5], ours=lambda x, y: x % y),
    arithmetic("remainder of zeros by a number", [0.0, 0.0, 0.0], ours=lambda x: x % 3.5),
    arithmetic(
        "remainder by itself",
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [1.0, 2.0, 3.0, 4.0, 5.0],
        ours=lambda x, y: x % y,
    ),
    arithmetic("remainder by the same number", [4.0, 4.0], ours=lambda x: x % 4.0),
    arithmetic(
        "remainder, negative",
        [-7.0, -3.0, 2.0, 6.0],
        [-2.5, -2.1, -1.5, -3.25],
        ours=lambda x, y: x % y,
    ),
    arithmetic("remainder by a negative number", [-7.0, -3.0, 2.0, 6.0], ours=lambda x: x % -2.5),
    arithmetic("remainder of halves", [-7.5, -2.5, 2.5, 7.5], ours=lambda x: x % 3.0),
    arithmetic(
        "remainder, large divisor",
        [-1.0, 1.0, -1.5, 1.5] * 2,
        [10.0] * 4 + [-10.0] * 4,
        ours=lambda x, y: x % y,
    ),
    arithmetic("remainder by a large number", [-1.0, 1.0], ours=lambda x: x % 10.0),
]

REDUCTIONS = [
    arithmetic("mean", COUNT, ours=burn.mean, theirs=np.mean),
    arithmetic("sum", COUNT, ours=burn.sum, theirs=np.sum),
    arithmetic("mean over the last axis", COUNT, ours=lambda x: x.mean(axis=1)),
    arithmetic("sum over the last axis", COUNT, ours=lambda x: x.sum(axis=1)),
    arithmetic(
        "sum over the first axis", [[3.0, 1.0, 2.0], [4.0, 2.0, 3.0]], ours=lambda x: x.sum(axis=0)
    ),
    arithmetic(
        "mean over the first axis",
        [[3.0, 1.0, 2.0], [4.0, 2.0, 3.0]],
        ours=lambda x: x.mean(axis=0),
    ),
    arithmetic(
        "sum of a view",
        SIGNED_3D,
        ours=lambda x: burn.swapaxes(x, 0, 2).sum(axis=1),
        theirs=lambda x: x.swapaxes(0, 2).sum(axis=1),
    ),
    arithmetic(
        "sum of another view",
        SIGNED_3D,
        ours=lambda x: burn.swapaxes(x, 0, 1).sum(axis=1),
        theirs=lambda x: x.swapaxes(0, 1).sum(axis=1),
    ),
    arithmetic(
        "prod", [[2.0, 1.0, 2.0], [3.0, 4.0, 5.0]], ours=burn.prod, theirs=np.prod, rtol=0.1
    ),
    arithmetic(
        "prod with a zero",
        [[2.0, 0.0, 2.0], [3.0, 4.0, 5.0]],
        ours=burn.prod,
        theirs=np.prod,
        rtol=0.1,
    ),
    arithmetic(
        "prod over an axis", [[2.0, 1.0, 2.0], [3.0, 4.0, 5.0]], ours=lambda x: x.prod(axis=1)
    ),
    arithmetic(
        "prod over an axis with a zero",
        [[2.0, 0.0, 2.0], [3.0, 4.0, 5.0]],
        ours=lambda x: x.prod(axis=1),
    ),
    selection(
        "max over an axis",
        COUNT,
        ours=lambda x: burn.max(x, axis=1),
        theirs=lambda x: x.max(1),
        rtol=0.02,
    ),
    selection(
        "max over the first axis",
        COUNT,
        ours=lambda x: burn.max(x, axis=0),
        theirs=lambda x: x.max(0),
        rtol=0.02,
    ),
    selection(
        "min over an axis",
        COUNT,
        ours=lambda x: burn.min(x, axis=1),
        theirs=lambda x: x.min(1),
        rtol=0.02,
    ),
    selection(
        "min over the first axis",
        COUNT,
        ours=lambda x: burn.min(x, axis=0),
        theirs=lambda x: x.min(0),
        rtol=0.02,
    ),
    selection(
        "max, keeping the axis",
        COUNT,
        ours=lambda x: burn.max(x, axis=1, keepdims=True),
        theirs=lambda x: x.max(1, keepdims=True),
    ),
    selection("max", COUNT, ours=burn.max, theirs=np.max, rtol=0.02),
    selection("min", COUNT, ours=burn.min, theirs=np.min, rtol=0.02),
    selection("max_abs", COUNT, ours=burn.max_abs, theirs=lambda x: np.abs(x).max(), rtol=0.02),
    case(
        "maximum",
        [1.0, 5.0, 3.0, 4.0],
        [2.0, 1.0, 4.0, 5.0],
        ours=burn.maximum,
        theirs=np.maximum,
        rtol=0.02,
    ),
    case(
        "minimum",
        [1.0, 5.0, 3.0, 4.0],
        [2.0, 1.0, 4.0, 5.0],
        ours=burn.minimum,
        theirs=np.minimum,
        rtol=0.02,
    ),
]

SELECTIONS = [
    selection(
        "gather, one axis",
        [0.0, 1.0, 2.0],
        ours=lambda x: burn.take_along_axis(x, index(x, 1, 1, 0, 1, 2), axis=0),
        theirs=lambda x: x[[1, 1, 0, 1, 2]],
    ),
    selection(
        "gather, first axis",
        COUNT,
        ours=lambda x: burn.take_along_axis(x, index(x, [0, 1, 0], [1, 0, 1]), axis=0),
        theirs=lambda x: np.take_along_axis(x, np.array([[0, 1, 0], [1, 0, 1]]), 0),
    ),
    selection(
        "gather, last axis",
        COUNT,
        ours=lambda x: burn.take_along_axis(x, index(x, [2, 1, 0, 0], [2, 0, 1, 2]), axis=1),
        theirs=lambda x: np.take_along_axis(x, np.array([[2, 1, 0, 0], [2, 0, 1, 2]]), 1),
    ),
    selection(
        "gather, middle axis",
        CUBES,
        ours=lambda x: burn.take_along_axis(
            x, index(x, [[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 1]]), axis=1
        ),
        theirs=lambda x: np.take_along_axis(
            x, np.array([[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 1]]]), 1
        ),
    ),
    selection(
        "gather, one of a row",
        COUNT,
        ours=lambda x: burn.take_along_axis(x, index(x, [1], [2]), axis=1),
        theirs=lambda x: np.take_along_axis(x, np.array([[1], [2]]), 1),
    ),
    selection(
        "select, one axis",
        [0.0, 1.0, 2.0, 3.0],
        ours=lambda x: burn.take(x, index(x, 1, 1, 0, 1, 2), axis=0),
        theirs=lambda x: x[[1, 1, 0, 1, 2]],
        rtol=0.02,
    ),
    selection(
        "select, rows",
        COUNT,
        ours=lambda x: burn.take(x, index(x, 1, 0), axis=0),
        theirs=lambda x: x[[1, 0]],
        rtol=0.02,
    ),
    selection(
        "select, more rows",
        COUNT,
        ours=lambda x: burn.take(x, index(x, 1, 0, 1, 1), axis=0),
        theirs=lambda x: x[[1, 0, 1, 1]],
        rtol=0.02,
    ),
    selection(
        "select, columns",
        COUNT,
        ours=lambda x: burn.take(x, index(x, 1, 1, 0, 1, 2), axis=1),
        theirs=lambda x: x[:, [1, 1, 0, 1, 2]],
        rtol=0.02,
    ),
    selection("slice, all of a vector", [0.0, 1.0, 2.0, 3.0], ours=lambda x: x[0:4]),
    selection("slice, part of a vector", [0.0, 1.0, 2.0, 3.0], ours=lambda x: x[1:3], rtol=0.02),
    selection("slice, beyond the end", [0.0, 1.0, 2.0], ours=lambda x: x[0:4]),
    selection("slice, all rows", COUNT, ours=lambda x: x[0:2]),
    selection("slice, all", COUNT, ours=lambda x: x[0:2, 0:3]),
    selection("slice, columns", COUNT, ours=lambda x: x[0:2, 0:2], rtol=0.02),
    selection("slice, from the end", COUNT, ours=lambda x: x[0:-1, 0:-2], rtol=0.02),
    selection("slice, rows alone", COUNT, ours=lambda x: x[0:1, :], rtol=0.02),
    selection("slice, columns alone", COUNT, ours=lambda x: x[:, 0:2], rtol=0.02),
    selection("slice, no columns", COUNT, ours=lambda x: x[0:2, 1:1]),
    selection(
        "slice, three axes",
        np.arange(16.0).reshape(2, 2, 4),
        ours=lambda x: x[1:2, 1:2, 0:2],
        rtol=0.02,
    ),
    selection(
        "slice of a view",
        np.arange(16.0).reshape(2, 2, 4),
        ours=lambda x: x.mT[1:2, 1:2, 0:2],
        rtol=0.02,
    ),
    arithmetic("sum of slices", [1.0, 2.0, 3.0, 4.0, 5.0], ours=lambda x: x[0:3] + x[2:5]),
    selection(
        "narrow",
        [[1.0, 2.0, 3.0], [7.0, 8.0, 9.0], [13.0, 14.0, 15.0]],
        ours=lambda x: burn.narrow(x, 0, 2, axis=0),
        theirs=lambda x: x[:2],
    ),
    selection(
        "narrow columns",
        [[1.0, 2.0, 3.0], [7.0, 8.0, 9.0], [13.0, 14.0, 15.0]],
        ours=lambda x: burn.narrow(x, 1, 2, axis=1),
        theirs=lambda x: x[:, 1:],
    ),
    selection(
        "expand a vector",
        [1.0, 2.0, 3.0],
        ours=lambda x: burn.broadcast_to(x, (3, 3)),
        theirs=lambda x: np.broadcast_to(x, (3, 3)),
    ),
    selection(
        "expand another",
        [4.0, 7.0, 2.0, 3.0],
        ours=lambda x: burn.broadcast_to(x, (2, 4)),
        theirs=lambda x: np.broadcast_to(x, (2, 4)),
    ),
    selection(
        "expand a matrix",
        [[1.0, 2.0], [3.0, 4.0]],
        ours=lambda x: burn.broadcast_to(x, (3, 2, 2)),
        theirs=lambda x: np.broadcast_to(x, (3, 2, 2)),
    ),
    selection(
        "expand a row",
        [[1.0, 2.0, 3.0, 4.0]],
        ours=lambda x: burn.broadcast_to(x, (2, 3, 4)),
        theirs=lambda x: np.broadcast_to(x, (2, 3, 4)),
    ),
    selection(
        "expand one element",
        [1.0],
        ours=lambda x: burn.broadcast_to(x, (2, 3)),
        theirs=lambda x: np.broadcast_to(x, (2, 3)),
        atol=0.0,
    ),
    selection(
        "repeat rows",
        [[0.0, 1.0, 2.0, 3.0]],
        ours=lambda x: burn.tile(x, (4, 1)),
        theirs=lambda x: np.tile(x, (4, 1)),
    ),
    selection(
        "repeat matrices",
        np.arange(16.0),
        ours=lambda x: burn.tile(burn.reshape(x, (4, 2, 2)), (1, 1, 2)),
        theirs=lambda x: np.tile(x.reshape(4, 2, 2), (1, 1, 2)),
        rtol=0.1,
    ),
    selection(
        "repeat 0 times",
        COUNT,
        ours=lambda x: burn.tile(x, (1, 0)),
        theirs=lambda x: np.tile(x, (1, 0)),
    ),
    selection(
        "concat rows",
        [[1.0, 2.0, 3.0]],
        [[4.0, 5.0, 6.0]],
        ours=lambda x, y: burn.concat([x, y], axis=0),
        theirs=lambda x, y: np.concatenate([x, y], 0),
    ),
    selection(
        "concat columns",
        [[1.0, 2.0, 3.0]],
        [[4.0, 5.0, 6.0]],
        ours=lambda x, y: burn.concat([x, y], axis=1),
        theirs=lambda x, y: np.concatenate([x, y], 1),
    ),
    selection(
        "concat three axes",
        [[[1.0, 2.0, 3.0]], [[1.1, 2.1, 3.1]]],
        [[[4.0, 5.0, 6.0]]],
        ours=lambda x, y: burn.concat([x, y], axis=0),
        theirs=lambda x, y: np.concatenate([x, y], 0),
    ),
    selection(
        "stack",
        [[1.0, 2.0, 3.0]],
        [[4.0, 5.0, 6.0]],
        ours=lambda x, y: burn.stack([x, y], axis=0),
        theirs=lambda x, y: np.stack([x, y], 0),
    ),
    selection(
        "stack along the second axis",
        [[1.0, 2.0, 3.0]],
        [[4.0, 5.0, 6.0]],
        ours=lambda x, y: burn.stack([x, y], axis=1),
        theirs=lambda x, y: np.stack([x, y], 1),
    ),
    selection(
        "stack three axes",
        [[[1.0, 2.0, 3.0]], [[3.0, 2.0, 1.0]]],
        [[[4.0, 5.0, 6.0]], [[6.0, 5.0, 4.0]]],
        ours=lambda x, y: burn.stack([x, y], axis=0),
        theirs=lambda x, y: np.stack([x, y], 0),
    ),
    selection("sort", MIXED, ours=lambda x: burn.sort(x, axis=0), theirs=lambda x: np.sort(x, 0)),
    selection(
        "sort, descending",
        [1.0, 2.0, 3.0, 4.0, 5.0],
        ours=lambda x: burn.sort(x, axis=0, descending=True),
        theirs=lambda x: np.sort(x)[::-1],
    ),
    *[
        selection(
            f"sort, axis {axis}",
            MIXED_3D,
            ours=lambda x, axis=axis: burn.sort(x, axis=axis),
            theirs=lambda x, axis=axis: np.sort(x, axis),
        )
        for axis in range(3)
    ],
    selection(
        "topk of a vector",
        [1.0, 2.0, 3.0, 4.0, 5.0],
        ours=lambda x: burn.topk(x, 3, axis=0).values,
        theirs=lambda x: x[:1:-1],
    ),
    selection(
        "topk",
        TOP,
        ours=lambda x: burn.topk(x, 2, axis=2).values,
        theirs=lambda x: np.sort(x, 2)[..., :0:-1],
    ),
]

VIEWS = [
    selection("reshape a row", [[0.0, 1.0, 2.0, 3.0]], ours=lambda x: x.reshape((1, 4)), rtol=0.02),
    selection("reshape to a vector", COUNT, ours=lambda x: x.reshape((6,)), rtol=0.02),
    selection(
        "reshape, one length left out",
        np.arange(12.0),
        ours=lambda x: x.reshape((4, 3)).reshape((2, -1)),
    ),
    selection("reshape, flatten", np.arange(12.0), ours=lambda x: x.reshape((4, 3)).reshape((-1,))),
    selection("transpose", np.arange(12.0), ours=lambda x: x.reshape((2, 2, 3)).mT),
    selection(
        "swapaxes",
        np.arange(12.0),
        ours=lambda x: burn.swapaxes(x.reshape((2, 2, 3)), 0, 2),
        theirs=lambda x: x.reshape(2, 2, 3).swapaxes(0, 2),
    ),
    selection(
        "permute",
        np.arange(16.0),
        ours=lambda x: burn.permute_dims(x.reshape((2, 2, 4)), (2, 1, 0)),
        theirs=lambda x: x.reshape(2, 2, 4).transpose(2, 1, 0),
    ),
    selection(
        "permute, from the end",
        np.arange(16.0),
        ours=lambda x: burn.permute_dims(x.reshape((2, 2, 4)), (-1, 1, 0)),
        theirs=lambda x: x.reshape(2, 2, 4).transpose(-1, 1, 0),
    ),
    selection(
        "permute nothing",
        np.arange(16.0),
        ours=lambda x: burn.permute_dims(x.reshape((2, 2, 4)), (0, 1, 2)),
        theirs=lambda x: x.reshape(2, 2, 4),
    ),
    selection(
        "flip",
        [[COUNT[0]], [COUNT[1]]],
        ours=lambda x: burn.flip(x, axis=(0, 2)),
        theirs=lambda x: np.flip(x, (0, 2)),
    ),
    selection("squeeze", [COUNT[0]], ours=lambda x: burn.squeeze(x, axis=0), theirs=lambda x: x[0]),
    selection(
        "expand_dims",
        COUNT,
        ours=lambda x: burn.expand_dims(x, axis=1),
        theirs=lambda x: x[:, None],
    ),
]

ASSIGNMENTS = [
    scatter_case("one axis", [0.0, 0.0, 0.0], [5.0, 4.0, 3.0], 0, [1, 0, 2]),
    scatter_case(
        "rows", [[0.0] * 3] * 2, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 0, [[1, 0, 1], [1, 1, 0]]
    ),
    scatter_case(
        "columns", [[0.0] * 3] * 2, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 1, [[1, 0, 2], [1, 2, 0]]
    ),
    scatter_case(
        "three axes",
        CUBES,
        np.arange(12.0, 24.0).reshape(2, 2, 3),
        1,
        [[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 1]]],
        atol=0.2,
    ),
    scatter_case("fewer values", [[0.0] * 3] * 2, [[1.0], [4.0]], 1, [[1], [2]]),
    select_add_case("one axis", [0.0, 1.0, 2.0], [5.0, 4.0, 3.0, 2.0, 1.0], 0, [1, 1, 0, 1, 2]),
    select_add_case("rows", COUNT, COUNT, 0, [1, 0]),
    select_add_case("columns", COUNT, COUNT, 1, [1, 0, 2]),
    assign_case("one axis", [0.0, 1.0, 2.0], [10.0, 5.0], slice(0, 2)),
    assign_case("two axes", COUNT, [[10.0, 5.0]], (slice(1, 2), slice(0, 2))),
    assign_case("beside a sum", [1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 20.0, 30.0], slice(0, 3)),
    case(
        "where",
        [[1.0, 7.0], [2.0, 3.0]],
        [[1.8, 2.8], [3.8, 4.8]],
        ours=lambda x, y: burn.where(index(x, MASK), y, x),
        theirs=lambda x, y: np.where(MASK, y, x),
    ),
    case(
        "mask_fill",
        [[1.0, 7.0], [2.0, 3.0]],
        ours=lambda x: burn.mask_fill(x, index(x, MASK), 2.0),
        theirs=lambda x: np.where(MASK, 2.0, x),
    ),
]

PRODUCTS = [
    arithmetic(
        "matmul, vectors",
        [[1.0, 2.0, 3.0, 6.35]],
        [[12.7], [4.0], [5.0], [1.0]],
        ours=lambda x, y: x @ y,
        rtol=0.02,
        atol=0.0,
    ),
    arithmetic(
        "matmul, matrices",
        [[1.0, 6.35], [2.0, 3.0], [1.0, 3.0]],
        [[4.0, 8.0, 12.7], [2.0, 3.0, 6.0]],
        ours=lambda x, y: x @ y,
        rtol=0.02,
        atol=0.0,
    ),
    arithmetic(
        "matmul, aligned",
        np.arange(1.0, 13.0).reshape(3, 4),
        [[2.0, 0.0, 1.0, 0.0], [1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0], [1.0, 0.0, 0.0, 1.0]],
        ours=lambda x, y: x @ y,
        rtol=0.02,
        atol=0.0,
    ),
    arithmetic(
        "matmul, divided",
        np.arange(1.0, 13.0).reshape(3, 4),
        [[2.0, 0.0, 1.0, 0.0], [1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0], [1.0, 0.0, 0.0, 1.0]],
        ours=lambda x, y: x @ y / 2.0,
        rtol=0.02,
        atol=0.0,
    ),
    arithmetic(
        "matmul, a batch",
        [[[1.0, 6.35], [2.0, 3.0]]],
        [[[12.7, 4.0], [2.0, 3.0]]],
        ours=lambda x, y: x @ y,
        rtol=0.02,
        atol=0.0,
    ),
    arithmetic(
        "matmul, two batch axes",
        [[[[1.0, 7.0], [2.0, 3.0]]], [[[2.0, 5.0], [6.0, 3.0]]]],
        [[[[9.0, 8.0], [1.0, 4.0]], [[2.0, 7.0], [3.0, 5.0]]]],
        ours=lambda x, y: x @ y,
        rtol=0.02,
        atol=0.0,
    ),
    arithmetic(
        "matmul, broadcast",
        [[[1.0, 7.0], [2.0, 3.0]]],
        [[[4.0, 7.0], [2.0, 3.0]], [[2.0, 5.0], [6.0, 3.0]]],
        ours=lambda x, y: x @ y,
        rtol=0.02,
        atol=0.0,
    ),
]

CASES = [*FUNCTIONS, *ARITHMETIC, *REDUCTIONS, *SELECTIONS, *VIEWS, *ASSIGNMENTS, *PRODUCTS]


class Exact(NamedTuple):
    """A call whose result is indices or bools, which are those of the numbers."""

    name: str
    inputs: tuple[Any, ...]
    ours: Callable[..., Any]
    expected: Any


CHANGED = [[0.0, 1.0, 1.0], [3.0, 5.0, 4.0]]

EXACT = [
    Exact(
        "argmax, first axis",
        ([[10.0, 11.0, 2.0], [3.0, 4.0, 5.0]],),
        lambda x: burn.argmax(x, axis=0),
        [0, 0, 1],
    ),
    Exact(
        "argmin, first axis",
        ([[10.0, 11.0, 2.0], [30.0, 4.0, 5.0]],),
        lambda x: burn.argmin(x, axis=0),
        [0, 1, 0],
    ),
    Exact(
        "argmax", ([[10.0, 11.0, 2.0], [3.0, 4.0, 5.0]],), lambda x: burn.argmax(x, axis=1), [1, 2]
    ),
    Exact(
        "argmin", ([[10.0, 11.0, 2.0], [30.0, 4.0, 5.0]],), lambda x: burn.argmin(x, axis=1), [2, 1]
    ),
    Exact(
        "argsort",
        (MIXED,),
        lambda x: burn.argsort(x, axis=0),
        [12, 6, 2, 3, 0, 5, 10, 1, 4, 7, 11, 9, 8],
    ),
    Exact(
        "argsort, descending",
        (MIXED,),
        lambda x: burn.sort_with_indices(x, axis=0, descending=True)[1],
        [8, 9, 11, 7, 4, 1, 10, 5, 0, 3, 2, 6, 12],
    ),
    Exact(
        "argsort, axis 0",
        (MIXED_3D,),
        lambda x: burn.argsort(x, axis=0),
        [[[0, 0, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 0]]],
    ),
    Exact(
        "argsort, axis 1",
        (MIXED_3D,),
        lambda x: burn.argsort(x, axis=1),
        [[[0, 0, 0], [1, 1, 1]], [[0, 0, 1], [1, 1, 0]]],
    ),
    Exact(
        "argsort, axis 2",
        (MIXED_3D,),
        lambda x: burn.argsort(x, axis=2),
        [[[0, 2, 1], [0, 2, 1]], [[0, 1, 2], [2, 0, 1]]],
    ),
    Exact(
        "sort_with_indices",
        (MIXED_3D,),
        lambda x: burn.sort_with_indices(x, axis=1, descending=True)[1],
        [[[1, 1, 1], [0, 0, 0]], [[1, 1, 0], [0, 0, 1]]],
    ),
    Exact("max_with_indices", (COUNT,), lambda x: burn.max_with_indices(x, axis=1)[1], [2, 2]),
    Exact(
        "max_with_indices, first axis",
        (COUNT,),
        lambda x: burn.max_with_indices(x, axis=0)[1],
        [1, 1, 1],
    ),
    Exact("min_with_indices", (COUNT,), lambda x: burn.min_with_indices(x, axis=1)[1], [0, 0]),
    Exact(
        "min_with_indices, first axis",
        (COUNT,),
        lambda x: burn.min_with_indices(x, axis=0)[1],
        [0, 0, 0],
    ),
    Exact("argtopk", ([1.0, 2.0, 3.0, 4.0, 5.0],), lambda x: burn.argtopk(x, 3, axis=0), [4, 3, 2]),
    Exact(
        "topk", (TOP,), lambda x: burn.topk(x, 2, axis=2)[1], [[[2, 1], [2, 1]], [[2, 0], [0, 2]]]
    ),
    Exact("any", ([[0.0, 0.0, 0.0], [1.0, -1.0, 0.0]],), burn.any, True),
    Exact("any of zeros", ([[0.0] * 3] * 2,), burn.any, False),
    Exact(
        "any over an axis",
        ([[0.0, 0.0, 0.0], [1.0, -1.0, 0.0]],),
        lambda x: burn.any(x, axis=1),
        [False, True],
    ),
    Exact("all", ([[0.0, 1.0, 0.0], [1.0, -1.0, 1.0]],), burn.all, False),
    Exact("all of ones", ([[1.0] * 3] * 2,), burn.all, True),
    Exact(
        "all over an axis",
        ([[0.0, 1.0, 0.0], [1.0, -1.0, 1.0]],),
        lambda x: burn.all(x, axis=1),
        [False, True],
    ),
    Exact(
        "equal", (COUNT, CHANGED), lambda x, y: x == y, [[True, True, False], [True, False, False]]
    ),
    Exact(
        "not equal",
        (COUNT, CHANGED),
        lambda x, y: x != y,
        [[False, False, True], [False, True, True]],
    ),
    Exact(
        "greater",
        (COUNT, CHANGED),
        lambda x, y: x > y,
        [[False, False, True], [False, False, True]],
    ),
    Exact(
        "greater or equal",
        ([[0.0, 1.0, 1.0], COUNT[1]], [[0.0, 1.0, 2.0], CHANGED[1]]),
        lambda x, y: x >= y,
        [[True, True, False], [True, False, True]],
    ),
    Exact(
        "less",
        ([[0.0, 1.0, 1.0], COUNT[1]], [[0.0, 1.0, 2.0], CHANGED[1]]),
        lambda x, y: x < y,
        [[False, False, True], [False, True, False]],
    ),
    Exact(
        "less or equal",
        (COUNT, CHANGED),
        lambda x, y: x <= y,
        [[True, True, False], [True, True, False]],
    ),
    Exact(
        "greater or equal to a number",
        (COUNT,),
        lambda x: x >= 4.0,
        [[False] * 3, [False, True, True]],
    ),
    Exact("less than a number", (COUNT,), lambda x: x < 4.0, [[True] * 3, [True, False, False]]),
]

LISTS = [
    ("split evenly", SIX, lambda x: burn.split(x, 3), [SIX[0:2], SIX[2:4], SIX[4:6]]),
    (
        "split at indices",
        [*SIX, 6.0],
        lambda x: burn.split(x, [2, 4, 6]),
        [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0]],
    ),
    (
        "split columns",
        COUNT,
        lambda x: burn.split(x, [2], axis=1),
        [[[0.0, 1.0], [3.0, 4.0]], [[2.0], [5.0]]],
    ),
    ("split into one", SIX, lambda x: burn.split(x, 1), [SIX]),
    (
        "split with sizes",
        SIX,
        lambda x: burn.split_with_sizes(x, [2, 3, 1]),
        [SIX[0:2], SIX[2:5], SIX[5:]],
    ),
    ("chunk evenly", SIX, lambda x: burn.chunk(x, 3), [SIX[0:2], SIX[2:4], SIX[4:6]]),
    (
        "chunk unevenly",
        [*SIX, 6.0],
        lambda x: burn.chunk(x, 4),
        [SIX[0:2], SIX[2:4], SIX[4:6], [6.0]],
    ),
    ("chunk into one each", SIX, lambda x: burn.chunk(x, 7), [[item] for item in SIX]),
    ("chunk columns", [SIX], lambda x: burn.chunk(x, 2, axis=1), [[SIX[:3]], [SIX[3:]]]),
    ("unstack", COUNT, burn.unstack, COUNT),
]

REFUSED = [
    ("concat of other lengths", (COUNT, [[4.0, 5.0]]), lambda x, y: burn.concat([x, y], axis=0)),
    (
        "concat along an axis that is not there",
        (COUNT, COUNT),
        lambda x, y: burn.concat([x, y], axis=3),
    ),
    ("stack of other lengths", ([COUNT[0]], [[4.0, 5.0]]), lambda x, y: burn.stack([x, y], axis=0)),
    ("stack of other shapes", (CUBES, [CUBES[0]]), lambda x, y: burn.stack([x, y], axis=3)),
    ("chunk along an axis that is not there", (SIX,), lambda x: burn.chunk(x, 6, axis=1)),
    ("split along an axis that is not there", (SIX,), lambda x: burn.split(x, 1, axis=2)),
    ("split into none", (SIX,), lambda x: burn.split(x, 0)),
    ("split with other sizes", (SIX,), lambda x: burn.split_with_sizes(x, [2, 2, 1])),
    ("expand to another length", ([1.0, 2.0, 3.0],), lambda x: burn.broadcast_to(x, (2, 2))),
    ("flip an axis twice", (CUBES,), lambda x: burn.flip(x, axis=(0, 0, 1))),
    ("flip an axis that is not there", (CUBES,), lambda x: burn.flip(x, axis=(3, 0, 1))),
    ("narrow an axis that is not there", (COUNT,), lambda x: burn.narrow(x, 0, 2, axis=2)),
    ("narrow from beyond the end", (COUNT,), lambda x: burn.narrow(x, 3, 2, axis=0)),
    ("narrow to beyond the end", (COUNT,), lambda x: burn.narrow(x, 0, 4, axis=0)),
    ("permute with an axis twice", (CUBES,), lambda x: burn.permute_dims(x, (0, 0, 1))),
    ("permute with an axis that is not there", (CUBES,), lambda x: burn.permute_dims(x, (3, 0, 1))),
    ("reshape with two lengths left out", ([0.0, 1.0, 2.0],), lambda x: x.reshape((-1, -1))),
    ("reshape to a negative length", ([0.0, 1.0, 2.0],), lambda x: x.reshape((-2, -1))),
    ("slice of too many axes", ([0.0, 1.0, 2.0],), lambda x: x[0:1, 0:1]),
    (
        "select along an axis that is not there",
        (COUNT,),
        lambda x: burn.take(x, index(x, 1, 0), axis=10),
    ),
    (
        "scatter of another shape",
        ([0.0, 0.0, 0.0], [1.0, 4.0]),
        lambda x, y: burn.scatter_add(x, index(x, 1, 0, 2), y, axis=0),
    ),
    ("matmul of other lengths", (np.ones((4, 2)), np.ones((3, 4))), lambda x, y: x @ y),
    ("empty_like", (SIX,), burn.empty_like),
    ("zeros_like", (SIX,), burn.zeros_like),
    ("ones_like", (SIX,), burn.ones_like),
    ("full_like", (SIX,), lambda x: burn.full_like(x, 5.0)),
    ("one_hot", ([0.0, 1.0, 2.0, 3.0],), lambda x: burn.one_hot(x, 4)),
    ("one_hot_fill", ([0.0, 1.0, 2.0, 3.0],), lambda x: burn.one_hot_fill(x, 4, 1.0, 0.0)),
]


def devices():
    for device in burn.Device.enumerate():
        yield pytest.param(
            device, id=device.name, marks=() if device.name == "cpu:0" else pytest.mark.exhaustive
        )


on_devices = pytest.mark.parametrize("device", list(devices()))


def named(rows):
    return pytest.mark.parametrize("one", rows, ids=[row[0] for row in rows])


def quantized(values, device, scheme=INT8):
    x = burn.asarray(np.array(values, np.float32), device=device)
    return x.quantize_dynamic(scheme)


def is_quantized(x):
    return x.dtype.kind == "q"


def numbers(x):
    return x.dequantize().numpy().astype(np.float64)


@on_devices
@named(CASES)
def test_an_op_gives_what_it_gives_for_the_numbers(one, device):
    found = one.ours(*[quantized(values, device) for values in one.inputs])
    if one.is_quantized is not None:
        assert is_quantized(found) == one.is_quantized
    with np.errstate(divide="ignore"):
        expected = np.asarray(one.theirs(*[np.array(values) for values in one.inputs]))
    assert found.shape == expected.shape
    np.testing.assert_allclose(numbers(found), expected, rtol=one.rtol, atol=one.atol)


@on_devices
@named(EXACT)
def test_indices_and_bools_are_those_of_the_numbers(one, device):
    found = one.ours(*[quantized(values, device) for values in one.inputs])
    np.testing.assert_array_equal(found.numpy(), np.array(one.expected))


@on_devices
@named(LISTS)
def test_parts_are_quantized(one, device):
    _, values, ours, expected = one
    parts = ours(quantized(values, device))
    assert len(parts) == len(expected)
    for part, numbers_of_part in zip(parts, expected, strict=True):
        assert is_quantized(part)
        np.testing.assert_allclose(numbers(part), numbers_of_part, atol=0.1)


@named(REFUSED)
def test_a_wrong_call_is_refused(one):
    _, inputs, ours = one
    with pytest.raises((BurnError, IndexError)):
        ours(*[quantized(values, burn.Device("cpu")) for values in inputs])
