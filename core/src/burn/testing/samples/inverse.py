"""Samples of systems of equations, inverses and determinants."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from burn.errors import ArgumentError, ExecutionError, ShapeError
from burn.testing.arrays import expanded, floats, matrix_transposed, reversed_view, strided
from burn.testing.sample import Array, ErrorSample, Sample, error, reference, sample
from burn.testing.samples._matrices import regular

_SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


def _square(*more: Sample) -> list[Sample]:
    """Calls of an op of one square matrix."""
    return [
        sample("one element", np.array([[-2.5]])),
        sample("2 x 2", regular(2, 2)),
        sample("4 x 4", regular(4, 4)),
        sample("rows in disorder", regular(3, 3)[[2, 0, 1]]),
        sample("batch", regular(2, 3, 3)),
        sample("batches", regular(2, 2, 2, 2)),
        sample("empty batch", floats(0, 3, 3)),
        sample("no rows", floats(2, 0, 0)),
        sample("transposed", matrix_transposed(regular(2, 3, 3))),
        sample("strided", strided(regular(3, 3))),
        sample("reversed", reversed_view(regular(3, 3))),
        sample("expanded", expanded(regular(2, 2), 3, 2, 2)),
        *more,
    ]


_NOT_SQUARE: list[ErrorSample] = [
    error("a vector", ShapeError, floats(3)),
    error("not square", ShapeError, floats(2, 3)),
]


def _solve(x1: Array, x2: Array) -> Array:
    """Gauss and Jordan, a column at a time, with the largest element as pivot."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1 = np.broadcast_to(x1, (*batch, *x1.shape[-2:]))
    x2 = np.broadcast_to(x2, (*batch, *x2.shape[-2:]))
    result = np.empty(x2.shape)
    for place in np.ndindex(batch):
        table = np.concatenate([x1[place], x2[place]], axis=1)
        for column in range(x1.shape[-1]):
            pivot = column + int(np.argmax(abs(table[column:, column])))
            table[[column, pivot]] = table[[pivot, column]]
            table[column] /= table[column, column]
            for row in range(x1.shape[-1]):
                if row != column:
                    table[row] -= table[row, column] * table[column]
        result[place] = table[:, x1.shape[-1] :]
    return result


reference(
    "solve",
    samples=[
        sample("one equation", np.array([[-2.0]]), floats(1, 1)),
        sample("one right side", regular(3, 3), floats(3, 1)),
        sample("several right sides", regular(4, 4), floats(4, 3)),
        sample("batch", regular(2, 3, 3), floats(2, 3, 2)),
        sample("one matrix for a batch", regular(3, 3), floats(2, 3, 2)),
        sample("one right side for a batch", regular(2, 3, 3), floats(3, 2)),
        sample("broadcast batches", regular(2, 1, 2, 2), floats(3, 2, 2)),
        sample("no right side", regular(3, 3), floats(3, 0)),
        sample("no equations", floats(0, 0), floats(0, 2)),
        sample("empty batch", floats(0, 2, 2), floats(2, 2)),
        sample("transposed", matrix_transposed(regular(3, 3)), matrix_transposed(floats(3, 2))),
        sample("strided", strided(regular(3, 3)), reversed_view(floats(3, 2))),
        sample("expanded", expanded(regular(2, 2), 2, 2, 2), expanded(floats(2, 1), 2, 3)),
    ],
    errors=[
        error("first a vector", ShapeError, floats(3), floats(3, 1)),
        error("second a vector", ShapeError, regular(3, 3), floats(3)),
        error("not square", ShapeError, floats(2, 3), floats(2, 1)),
        error("rows differ", ShapeError, regular(3, 3), floats(2, 1)),
        error("batches differ", ShapeError, regular(2, 2, 2), floats(3, 2, 2)),
        error("singular", ExecutionError, _SINGULAR, floats(2, 1), in_data=True),
        error(
            "one of a batch singular",
            ExecutionError,
            np.stack([regular(2, 2), _SINGULAR]),
            floats(2, 1),
            in_data=True,
        ),
    ],
)(_solve)


def _inv(x: Array) -> Array:
    return _solve(x, np.eye(x.shape[-1]))


reference(
    "inv",
    samples=_square(),
    errors=[*_NOT_SQUARE, error("singular", ExecutionError, _SINGULAR, in_data=True)],
)(_inv)


def _products(x: Array) -> list[Any]:
    """The products of elements whose signed sum is the determinant (Leibniz)."""
    count = x.shape[-1]
    return [
        (_parity(order), np.prod([x[..., row, order[row]] for row in range(count)], axis=0))
        for order in itertools.permutations(range(count))
    ]


def _parity(order: tuple[int, ...]) -> int:
    later = sum(a > b for a, b in itertools.combinations(order, 2))
    return -1 if later % 2 else 1


def _det(x: Array) -> Any:
    return sum((sign * product for sign, product in _products(x)), np.zeros(x.shape[:-2]))


def _det_terms(x: Array) -> tuple[Any, Any]:
    return math.factorial(x.shape[-1]), sum(abs(product) for _, product in _products(x))


_ONE_RANK_LESS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]])

reference(
    "det",
    samples=_square(
        # Central differences of second derivatives would need the inverse.
        sample("singular", _SINGULAR, differentiable=False),
        sample("zeros", np.zeros((3, 3)), differentiable=False),
    ),
    errors=_NOT_SQUARE,
    terms=_det_terms,
)(_det)


def _cofactors(x: Array) -> Array:
    result = np.empty(x.shape)
    for row, column in np.ndindex(x.shape[-2:]):
        minor = np.delete(np.delete(x, row, -2), column, -1)
        result[..., row, column] = (-1) ** (row + column) * _det(minor)
    return result


def _cofactor_terms(x: Array) -> tuple[Any, Any]:
    count = x.shape[-1]
    norm = np.linalg.norm(x, axis=(-2, -1), keepdims=True) if x.size else np.zeros(x.shape)
    return count, count * norm ** max(count - 1, 0)


reference(
    "cofactors",
    samples=_square(
        sample("singular", _SINGULAR, differentiable=False),
        sample("one rank less", _ONE_RANK_LESS, differentiable=False),
        sample("zeros", np.zeros((3, 3)), differentiable=False),
    ),
    errors=_NOT_SQUARE,
    terms=_cofactor_terms,
)(_cofactors)


def _slogdet(x: Array) -> tuple[Array, Array]:
    value = np.asarray(_det(x))
    return np.sign(value), np.log(abs(value))


reference(
    "slogdet",
    samples=_square(
        sample("zeros", np.zeros((3, 3)), differentiable=False),
        sample("negative determinant", regular(3, 3)[[1, 0, 2]]),
    ),
    errors=_NOT_SQUARE,
)(_slogdet)


def _pinv(x: Array, *, rtol: float) -> Any:
    # By the eigenvalues of the smaller of x.T x and x x.T, where the samples have full rank.
    del rtol
    if x.shape[-2] < x.shape[-1]:
        return _pinv(x.swapaxes(-1, -2), rtol=0.0).swapaxes(-1, -2)
    adjoint = x.swapaxes(-1, -2)
    if not x.any():
        return np.zeros(adjoint.shape)
    if x.shape[-2:] == (2, 2) and not np.linalg.det(x).any():
        return adjoint / np.sum(x * x)  # of rank one
    return _solve(adjoint @ x, adjoint)


_RTOL: dict[str, Any] = {"rtol": 1e-2}

reference(
    "pinv",
    samples=[
        sample("square", regular(3, 3), **_RTOL),
        sample("tall", regular(4, 4)[:, :2], **_RTOL),
        sample("wide", regular(4, 4)[:2], **_RTOL),
        sample("one column", floats(3, 1), **_RTOL),
        sample("batch", regular(2, 3, 3)[..., :2], **_RTOL),
        sample("of rank one", _SINGULAR, differentiable=False, **_RTOL),
        sample("zeros", np.zeros((3, 2)), differentiable=False, **_RTOL),
        sample("empty batch", floats(0, 2, 3), **_RTOL),
        sample("no rows", floats(2, 0, 3), **_RTOL),
        sample("transposed", matrix_transposed(regular(3, 3)[:, :2]), **_RTOL),
        sample("strided", strided(regular(3, 3)), **_RTOL),
    ],
    errors=[
        error("a vector", ShapeError, floats(3), **_RTOL),
        error("negative tolerance", ArgumentError, regular(2, 2), rtol=-1.0),
    ],
)(_pinv)
