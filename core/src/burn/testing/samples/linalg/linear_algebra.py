"""Samples of products of two tensors, and of norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn.errors import ArgumentError, AxisError, DTypeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    booleans,
    complexes,
    expanded,
    floats,
    integers,
    matrix_transposed,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, also_for_complex, error, reference, sample


def _matmul(x1: Array, x2: Array) -> Array:
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1 = np.broadcast_to(x1, (*batch, *x1.shape[-2:]))
    x2 = np.broadcast_to(x2, (*batch, *x2.shape[-2:]))
    result = np.zeros((*batch, x1.shape[-2], x2.shape[-1]), x1.dtype)
    for index in np.ndindex(result.shape):
        products = x1[index[:-1]] * x2[(*index[:-2], slice(None), index[-1])]
        result[index] = math.fsum(products) if products.dtype.kind == "f" else products.sum()
    return result


def _terms(x1: Array, x2: Array) -> tuple[Any, Any]:
    return x1.shape[-1], _matmul(abs(x1), abs(x2))


reference(
    "matmul",
    samples=[
        sample("square", floats(3, 3), floats(3, 3, phase=0.1)),
        sample("rectangular", floats(2, 3), floats(3, 4, phase=0.1)),
        sample("one element", floats(1, 1), floats(1, 1, phase=0.1)),
        sample("row by column", floats(1, 5), floats(5, 1, phase=0.1)),
        sample("column by row", floats(5, 1), floats(1, 4, phase=0.1)),
        sample("batch", floats(2, 3, 4), floats(2, 4, 2, phase=0.1)),
        sample("batch by one matrix", floats(2, 2, 3, 4), floats(4, 2, phase=0.1)),
        sample("one matrix by batch", floats(3, 4), floats(2, 4, 2, phase=0.1)),
        sample("broadcast batches", floats(2, 1, 3, 2), floats(3, 2, 2, phase=0.1)),
        sample("batch of length 1", floats(1, 3, 2), floats(2, 2, 2, phase=0.1)),
        sample("no inner length", floats(2, 0), floats(0, 3)),
        sample("no rows", floats(0, 3), floats(3, 2)),
        sample("empty batch", floats(0, 2, 3), floats(3, 2)),
        sample("no columns, batch", floats(2, 2, 3), floats(3, 0)),
        sample("first transposed", matrix_transposed(floats(3, 4)), floats(4, 2, phase=0.1)),
        sample("second transposed", floats(3, 4), matrix_transposed(floats(4, 2, phase=0.1))),
        sample(
            "batches transposed",
            matrix_transposed(floats(2, 3, 4)),
            matrix_transposed(floats(2, 4, 3, phase=0.1)),
        ),
        sample("strided", strided(floats(3, 4)), reversed_view(floats(4, 2, phase=0.1))),
        sample("expanded", expanded(floats(4), 3, 4), expanded(floats(4, 1), 4, 3)),
        sample("expanded batch", expanded(floats(3, 4), 2, 3, 4), floats(4, 2)),
        sample("long", floats(2, 400), floats(400, 2, phase=0.1)),
        sample("ones that 16-bit addition would lose", np.ones((1, 500)), np.ones((500, 1))),
        sample("NaN and infinity", np.array([[np.nan, 1.0], [np.inf, 0.0]]), np.ones((2, 2))),
        sample("integers", integers(3, 4), integers(4, 2, phase=0.1)),
        sample("integers, batch", integers(2, 3, 4), integers(4, 2, phase=0.1)),
        sample("integers wrap around", np.outer(LIMITS, [1, 2, 3]), np.outer([1, 5, 9], LIMITS)),
        sample("integers, no inner length", integers(2, 0), integers(0, 3)),
    ],
    errors=[
        error("vector", ShapeError, floats(3), floats(3, 2)),
        error("by a vector", ShapeError, floats(2, 3), floats(3)),
        error("inner lengths differ", ShapeError, floats(2, 3), floats(2, 3)),
        error("batches do not broadcast", ShapeError, floats(2, 2, 3), floats(3, 3, 2)),
        error("booleans", DTypeError, booleans(2, 2), booleans(2, 2)),
    ],
    terms=_terms,
)(_matmul)
also_for_complex(
    "matmul",
    samples=[
        sample("complex", complexes(3, 4), complexes(4, 2)),
        sample("complex, batch", complexes(2, 3, 4), complexes(4, 2)),
        sample("complex, transposed", transposed(complexes(3, 4)), complexes(4, 2)),
        sample("complex, nothing between", complexes(3, 0), complexes(0, 2)),
    ],
)


def _vecdot(x1: Array, x2: Array, *, axis: int) -> Array:
    products = np.moveaxis(np.conj(x1) * x2, axis, -1)
    result = np.zeros(products.shape[:-1], products.dtype)
    for index in np.ndindex(result.shape):
        row = products[index]
        result[index] = math.fsum(row) if row.dtype.kind == "f" else row.sum()
    return result


def _vecdot_terms(x1: Array, x2: Array, *, axis: int) -> tuple[Any, Any]:
    return max(x1.shape[axis - max(x1.ndim, x2.ndim)], 1), _vecdot(abs(x1), abs(x2), axis=axis)


reference(
    "vecdot",
    samples=[
        sample("vectors", floats(5), floats(5, phase=0.1), axis=0),
        sample("last axis", floats(2, 3), floats(2, 3, phase=0.1), axis=1),
        sample("first axis", floats(4, 3), floats(4, 3, phase=0.1), axis=0),
        sample("first broadcast", floats(3), floats(2, 3, phase=0.1), axis=1),
        sample("both broadcast", floats(2, 1, 3), floats(4, 3, phase=0.1), axis=2),
        sample("middle axis", floats(2, 3, 1), floats(3, 4, phase=0.1), axis=1),
        sample("no elements to add", floats(2, 0), floats(2, 0), axis=1),
        sample("empty batch", floats(0, 3), floats(3), axis=1),
        sample("transposed", transposed(floats(3, 4)), strided(floats(3, 4, phase=0.1)), axis=0),
        sample("expanded", expanded(floats(4), 3, 4), reversed_view(floats(3, 4)), axis=1),
        sample("long", floats(2, 400), floats(2, 400, phase=0.1), axis=1),
        sample("ones that 16-bit addition would lose", np.ones(500), np.ones(500), axis=0),
        sample("integers", integers(2, 4), integers(2, 4, phase=0.1), axis=1),
        sample("integers wrap around", LIMITS, LIMITS[::-1].copy(), axis=0),
    ],
    errors=[
        error("lengths differ", ShapeError, floats(3), floats(4), axis=0),
        error("length 1 is not repeated", ShapeError, floats(3), floats(1), axis=0),
        error("an axis that one has not", ShapeError, floats(3), floats(2, 3), axis=0),
        error("others do not broadcast", ShapeError, floats(2, 3), floats(4, 3), axis=1),
        error("axis out of range", AxisError, floats(3), floats(3), axis=1),
        error("0-d", AxisError, floats(), floats(), axis=0),
    ],
    terms=_vecdot_terms,
)(_vecdot)
also_for_complex(
    "vecdot",
    samples=[
        sample("complex vectors", complexes(5), complexes(5, phase=0.1), axis=0),
        sample("complex, broadcast", complexes(2, 1, 3), complexes(4, 3, phase=0.1), axis=2),
        sample("complex, first axis", complexes(4, 3), complexes(4, 3, phase=0.1), axis=0),
        sample("complex, no elements to add", complexes(2, 0), complexes(2, 0), axis=1),
        sample("complex views", transposed(complexes(3, 4)), strided(complexes(3, 4)), axis=0),
        sample("of itself, complex", complexes(4), complexes(4), axis=0),
    ],
)


def _cross(x1: Array, x2: Array, *, axis: int) -> Array:
    x1, x2 = (np.moveaxis(x, axis, 0) for x in np.broadcast_arrays(x1, x2))
    parts = [x1[1] * x2[2] - x1[2] * x2[1], x1[2] * x2[0] - x1[0] * x2[2]]
    return np.moveaxis(np.stack([*parts, x1[0] * x2[1] - x1[1] * x2[0]]), 0, axis)


def _cross_terms(x1: Array, x2: Array, *, axis: int) -> tuple[Any, Any]:
    x1, x2 = (np.moveaxis(abs(x), axis, 0) for x in np.broadcast_arrays(x1, x2))
    parts = [x1[1] * x2[2] + x1[2] * x2[1], x1[2] * x2[0] + x1[0] * x2[2]]
    return 2, np.moveaxis(np.stack([*parts, x1[0] * x2[1] + x1[1] * x2[0]]), 0, axis)


reference(
    "cross",
    samples=[
        sample("vectors", floats(3), floats(3, phase=0.1), axis=0),
        sample("last axis", floats(2, 3), floats(2, 3, phase=0.1), axis=1),
        sample("first axis", floats(3, 4), floats(3, 4, phase=0.1), axis=0),
        sample("first broadcast", floats(3), floats(2, 3, phase=0.1), axis=1),
        sample("both broadcast", floats(2, 1, 3), floats(4, 3, phase=0.1), axis=2),
        sample("empty batch", floats(0, 3), floats(3), axis=1),
        sample("transposed", transposed(floats(4, 3)), strided(floats(4, 3, phase=0.1)), axis=1),
        sample("integers", integers(2, 3), integers(2, 3, low=0, phase=0.1), axis=1),
    ],
    errors=[
        error("four elements", ShapeError, floats(4), floats(4), axis=0),
        error("lengths differ", ShapeError, floats(3), floats(1), axis=0),
        error("an axis that one has not", ShapeError, floats(4), floats(3, 4), axis=0),
        error("others do not broadcast", ShapeError, floats(2, 3), floats(4, 3), axis=1),
        error("axis out of range", AxisError, floats(3), floats(3), axis=1),
    ],
    terms=_cross_terms,
)(_cross)
also_for_complex(
    "cross",
    samples=[
        sample("complex vectors", complexes(3), complexes(3, phase=0.1), axis=0),
        sample("complex, broadcast", complexes(2, 1, 3), complexes(4, 3, phase=0.1), axis=2),
        sample("complex, first axis", complexes(3, 2), complexes(3, 2, phase=0.1), axis=0),
        sample("complex, empty batch", complexes(0, 3), complexes(3), axis=1),
        sample("complex views", transposed(complexes(2, 3)), strided(complexes(2, 3)), axis=1),
    ],
)


@reference(
    "lp_norm",
    samples=[
        sample("length of a vector", floats(5), axis=(0,), ord=2.0),
        sample("order 1", floats(3, 4), axis=(1,), ord=1.0),
        sample("order 3", floats(3, 4), axis=(0,), ord=3.0),
        sample("order 1.5", floats(3, 4), axis=(0,), ord=1.5),
        sample("order 0.5", floats(2, 3, low=0.5), axis=(1,), ord=0.5),
        sample("order -1", floats(2, 3, low=0.5), axis=(1,), ord=-1.0),
        sample("all axes", floats(2, 3, 2), axis=(0, 1, 2), ord=2.0),
        sample("keepdims", floats(2, 3, 2), axis=(0, 2), ord=2.0, keepdims=True),
        sample("no axes", floats(2, 3), axis=(), ord=2.0),
        sample("0-d", floats(), axis=(), ord=3.0),
        sample("over no elements", floats(2, 0), axis=(1,), ord=2.0),
        sample("empty other axis", floats(0, 3), axis=(1,), ord=3.0),
        sample("ones that 16-bit addition would lose", np.ones(900), axis=(0,), ord=2.0),
        sample("squares beyond float16", floats(5, low=300.0, high=900.0), axis=(0,), ord=2.0),
        sample("transposed", transposed(floats(3, 4)), axis=(1,), ord=2.0),
        sample("strided", strided(floats(3, 4)), axis=(0,), ord=2.0),
        sample(
            "zeros", np.zeros(3), axis=(0,), ord=2.0, gradients=(np.zeros(3),), differentiable=False
        ),
        sample(
            "zeros, order 3",
            np.zeros(3),
            axis=(0,),
            ord=3.0,
            gradients=(np.zeros(3),),
            differentiable=False,
        ),
        sample("NaN", np.array([1.0, np.nan]), axis=(0,), ord=2.0),
    ],
    errors=[
        error("order 0", ArgumentError, floats(3), axis=(0,), ord=0.0),
        error("infinite order", ArgumentError, floats(3), axis=(0,), ord=math.inf),
        error("axis out of range", AxisError, floats(3), axis=(1,), ord=2.0),
    ],
)
def _(x: Array, *, axis: tuple[int, ...], ord: float, keepdims: bool = False) -> Any:
    total = np.sum(abs(x) ** ord, axis=axis, keepdims=keepdims)
    return total ** (1.0 / ord)


also_for_complex(
    "lp_norm",
    samples=[
        sample("length of a complex vector", complexes(5), axis=(0,), ord=2.0),
        sample("complex, order 1", complexes(3, 4), axis=(1,), ord=1.0),
        sample("complex, order 3", complexes(3, 4), axis=(0,), ord=3.0),
        sample("complex, order -1", complexes(2, 3), axis=(1,), ord=-1.0),
        sample("complex, all axes", complexes(2, 3), axis=(0, 1), ord=2.0, keepdims=True),
        sample("complex 0-d", complexes(), axis=(), ord=2.0),
        sample("complex, over no elements", complexes(2, 0), axis=(1,), ord=2.0),
        sample("complex, strided", strided(complexes(3, 4)), axis=(0,), ord=2.0),
        sample("complex zeros", np.zeros(3, complex), axis=(0,), ord=2.0),
    ],
)
