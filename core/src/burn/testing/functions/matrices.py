"""Samples of products, distances and equations of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from burn.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    ExecutionError,
    OperandTypeError,
    ShapeError,
)
from burn.testing.arrays import complexes, floats, integers
from burn.testing.function_samples import call, function_calls, function_reference, wrong
from burn.testing.op_samples import Array


def _regular(*shape: int) -> Array:
    """Square matrices that are far from singular: the diagonal outweighs the rest."""
    return floats(*shape) * 0.25 + np.diag(1.5 + 0.5 * np.arange(shape[-1]))


def _complex_regular(*shape: int) -> Array:
    """Complex square matrices that are far from singular."""
    return complexes(*shape) * 0.25 + np.diag((1.5 + 0.5j) * (1.0 + np.arange(shape[-1])))


def _largest_product(x1: Array, x2: Array, **_: Any) -> Any:
    return np.max(np.abs(x1), initial=0.0) * np.max(np.abs(x2), initial=0.0) * 8.0


@function_reference(
    "kron",
    samples=[
        call("vectors", floats(2), floats(3)),
        call("matrices", floats(2, 3), floats(3, 2)),
        call("other ranks", floats(2, 1, 2), floats(3)),
        call("a number", floats(), floats(2, 2)),
        call("integers", integers(2, 2), integers(1, 3)),
        call("complex", complexes(2), complexes(2, 2)),
        call("empty", floats(2, 0), floats(2, 2)),
    ],
    magnitude=_largest_product,
)
def _(x1: Array, x2: Array) -> Array:
    return np.kron(x1, x2)


@function_reference(
    "linalg.multi_dot",
    samples=[
        call("two", [floats(2, 3), floats(3, 4)]),
        call("three", [floats(4, 2), floats(2, 5), floats(5, 1)]),
        call("four", [floats(2, 4), floats(4, 1), floats(1, 3), floats(3, 2)]),
        call("vectors at the ends", [floats(3), floats(3, 2), floats(2)]),
    ],
    errors=[
        wrong("one", ShapeError, [floats(2, 2)]),
        wrong("a vector in between", ShapeError, [floats(2, 2), floats(2), floats(2, 2)]),
        wrong("other lengths", ShapeError, [floats(2, 3), floats(2, 3)]),
        wrong("no list", OperandTypeError, floats(2, 2)),
    ],
    magnitude=lambda tensors: 8.0 * np.prod([np.abs(tensor).max() * 3.0 for tensor in tensors]),
)
def _(tensors: Sequence[Array]) -> Any:
    return np.linalg.multi_dot(tensors)


function_calls(
    "linalg.matrix_exp", call("square", _regular(2, 2)), call("a batch", floats(2, 3, 3))
)

_POINTS: Final = floats(3, 2)
_OTHERS: Final = floats(4, 2, phase=0.7)
_UNEQUAL: Final = np.array([1.0, 0.37])
"""Factors with which no two differences of a pair of points are equally large."""


@function_reference(
    "cdist",
    samples=[
        call("of Euclid", _POINTS, _OTHERS),
        call("of city blocks", _POINTS, _OTHERS, 1.0),
        call("cubes", _POINTS, _OTHERS, 3.0),
        call("the largest", _POINTS * _UNEQUAL, _OTHERS * _UNEQUAL, math.inf),
        call("different numbers", _POINTS, _POINTS, 0.0, differentiable=False),
        call("to themselves", _POINTS, _POINTS, differentiable=False),
        call("far from zero", _POINTS + 100.0, _OTHERS + 100.0),
        call("batches", floats(2, 1, 3, 2), floats(3, 1, 2, phase=0.7)),
        call("no points", floats(0, 2), _OTHERS),
        call("no numbers", floats(3, 0), floats(2, 0)),
        call("integers", integers(2, 3), integers(2, 3, phase=0.7)),
    ],
    errors=[
        wrong("vectors", ShapeError, floats(3), floats(3)),
        wrong("other lengths", ShapeError, floats(3, 2), floats(3, 3)),
        wrong("a negative order", ArgumentError, _POINTS, _OTHERS, -1.0),
    ],
    magnitude=lambda x1, x2, *_: 4.0 * max(np.abs(x1).max(initial=0), np.abs(x2).max(initial=0)),
)
def _(x1: Array, x2: Array, p: float = 2.0) -> Any:
    difference = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    if p == 0.0:
        return np.sum(difference != 0.0, -1, dtype=np.float64)
    if p == math.inf:
        return np.max(difference, -1, initial=0.0)
    return np.sum(difference**p, -1) ** (1.0 / p)


function_calls(
    "linalg.solve_triangular",
    call("a vector", _regular(3, 3), floats(3), upper=True),
    call("a row vector", _regular(3, 3), floats(3), upper=True, left=False),
    call("columns", _regular(2, 3, 3), floats(3, 2), upper=False),
    call("rows", _regular(3, 3), floats(2, 2, 3), upper=False, left=False),
    call("ones", _regular(3, 3), floats(3, 2), upper=True, unitriangular=True),
    call("complex", _complex_regular(3, 3), complexes(3, 2), upper=False),
    errors=[
        wrong("not square", ShapeError, floats(2, 3), floats(2), upper=True),
        wrong("other lengths", ShapeError, _regular(3, 3), floats(2, 2), upper=True),
        wrong("singular", ExecutionError, floats(2, 2) * 0.0, floats(2), upper=True, in_data=True),
    ],
)

_FACTOR: Final = np.tril(_regular(3, 3))


@function_reference(
    "linalg.cholesky_solve",
    samples=[
        call("a vector", floats(3), _FACTOR),
        call("columns", floats(2, 3, 2), _FACTOR),
        call("upper", floats(3, 2), _FACTOR.T, upper=True),
        call("complex", complexes(3, 2), np.tril(_complex_regular(3, 3))),
    ],
    errors=[
        wrong("not square", ShapeError, floats(2), floats(2, 3)),
        wrong("other lengths", ShapeError, floats(2, 2), _FACTOR),
    ],
    magnitude=lambda x, factor, **_: 64.0 * np.abs(x).max() * (1.0 + np.abs(factor).max()) ** 2,
)
def _(x: Array, factor: Array, *, upper: bool = False) -> Array:
    lower = np.triu(factor).conj().T if upper else np.tril(factor)
    return np.linalg.solve(lower @ lower.conj().T, x)


_ORDER: Final = np.array([2, 0, 1])
_LARGE: Final = 4096.0


@function_reference(
    "linalg.lu_solve",
    samples=[
        call("a vector", _regular(3, 3), _ORDER, floats(3)),
        call("columns", _regular(3, 3), _ORDER, floats(2, 3, 2)),
        call(
            "adjoint", _regular(2, 3, 3), np.array([[1, 0, 2], _ORDER]), floats(3, 2), adjoint=True
        ),
        call("rows", _regular(3, 3), _ORDER, floats(2, 3), left=False),
        call("a row", _regular(3, 3), _ORDER, floats(3), left=False, adjoint=True),
        call("complex", _complex_regular(3, 3), _ORDER, complexes(3, 2), adjoint=True),
        call("complex rows", _complex_regular(3, 3), _ORDER, complexes(2, 3), left=False),
    ],
    errors=[
        wrong("not square", ShapeError, floats(2, 3), np.array([0, 1]), floats(2)),
        wrong("other lengths", ShapeError, _regular(3, 3), _ORDER, floats(2, 2)),
        wrong("a short permutation", ShapeError, _regular(3, 3), _ORDER[:2], floats(3)),
        wrong("a permutation of floats", DTypeError, _regular(3, 3), floats(3), floats(3)),
    ],
    magnitude=lambda *operands, **_: _LARGE * np.abs(operands[2]).max(),
)
def _(
    packed: Array, permutation: Array, x: Array, *, left: bool = True, adjoint: bool = False
) -> Array:
    eye = np.eye(packed.shape[-1])
    permuted = (np.tril(packed, -1) + eye) @ np.triu(packed)
    matrix = np.take_along_axis(permuted, np.argsort(permutation, -1)[..., None], -2)
    matrix = np.swapaxes(matrix, -1, -2).conj() if adjoint else matrix
    if left:
        return np.linalg.solve(matrix, x)
    sides = x if x.ndim == 1 else np.swapaxes(x, -1, -2)
    found = np.linalg.solve(np.swapaxes(matrix, -1, -2), sides)
    return found if x.ndim == 1 else np.swapaxes(found, -1, -2)


@function_reference(
    "linalg.norm",
    samples=[
        call("all elements", floats(2, 3, 2)),
        call("a vector", floats(4), 3),
        call("a matrix", floats(3, 4), "fro"),
        call("sums of columns", floats(3, 4), 1),
        call("of rows", floats(3, 4), np.inf, 1, keepdims=True),
        call("of matrices", floats(2, 3, 4), 1, (2, 0), keepdims=True),
        call("the spectrum", floats(2, 3, 4), "nuc", (0, -1)),
        call("integers", integers(3, 2), axis=0),
        call("complex", complexes(3, 2), axis=(0, 1)),
    ],
    errors=[
        wrong("too many axes", ShapeError, floats(2, 3, 2), 1),
        wrong("three axes", AxisError, floats(2, 3, 2), axis=(0, 1, 2)),
        wrong("a vector with a norm of matrices", ArgumentError, floats(3), "nuc"),
        wrong("an unknown norm", ArgumentError, floats(3, 2), "fox"),
    ],
    magnitude=lambda x, *_, **__: 16.0 * np.abs(x).max(),
)
def _(x: Array, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.linalg.norm(x, ord, axis, keepdims)


_TALL: Final = _regular(4, 4)[:, :2]
_WIDE: Final = _regular(4, 4)[:2]


@function_reference(
    "linalg.lstsq",
    samples=[
        call("a vector", _TALL, floats(4)),
        call("columns", _TALL, floats(4, 2)),
        call("more unknowns", _WIDE, floats(2, 2)),
        call("square", _regular(3, 3), floats(3)),
        call("a batch", np.stack([_TALL, _TALL[::-1] + 0.25]), floats(4, 2)),
        call("a rank less", _TALL[:, [0, 0]], floats(4), rcond=0.01, differentiable=False),
        call("complex", _complex_regular(4, 4)[:, :2], complexes(4, 2)),
    ],
    errors=[
        wrong("a vector first", ShapeError, floats(3), floats(3)),
        wrong("other lengths", ShapeError, _TALL, floats(3)),
        wrong("a negative tolerance", ArgumentError, _TALL, floats(4), rcond=-1.0),
    ],
    magnitude=lambda x1, x2, **_: 64.0 * (1.0 + np.abs(x1).max()) * (1.0 + np.abs(x2).max() ** 2),
)
def _(x1: Array, x2: Array, *, rcond: float | None = None) -> tuple[Array, Array, Array, Array]:
    rows, columns = x1.shape[-2:]
    right = x2[:, None] if x2.ndim == 1 else x2
    inverse = np.linalg.pinv(x1, rcond=1e-12 if rcond is None else rcond)
    solution = inverse @ right
    residuals = np.zeros(0)
    if rows > columns:
        residuals = np.sum(np.abs(x1 @ solution - right) ** 2, -2)
    values = np.linalg.svd(x1, compute_uv=False)
    counts = values > values.max(-1, keepdims=True) * (1e-3 if rcond is None else rcond)
    x = solution[..., 0] if x2.ndim == 1 else solution
    return x, residuals, np.sum(counts, -1), values
