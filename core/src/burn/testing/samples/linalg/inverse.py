"""Samples of systems of equations, inverses and determinants."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from burn.errors import ArgumentError, ExecutionError, ShapeError
from burn.testing.arrays import (
    complexes,
    expanded,
    floats,
    matrix_transposed,
    reversed_view,
    strided,
)
from burn.testing.op_samples import (
    Array,
    Sample,
    also_for_complex,
    error,
    reference,
    sample,
)
from burn.testing.samples.linalg._matrices import NOT_SQUARE, adjoint, complex_regular, regular

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


def _complex_square() -> list[Sample]:
    """Calls of an op of one complex square matrix."""
    return [
        sample("complex, one element", np.array([[-2.5 + 1j]])),
        sample("complex, 2 x 2", complex_regular(2, 2)),
        sample("complex, 4 x 4", complex_regular(4, 4)),
        sample("complex, rows in disorder", complex_regular(3, 3)[[2, 0, 1]]),
        sample("complex batch", complex_regular(2, 3, 3)),
        sample("complex, empty batch", complexes(0, 3, 3)),
        sample("complex, no rows", complexes(2, 0, 0)),
        sample("complex, transposed", matrix_transposed(complex_regular(2, 3, 3))),
        sample("complex, strided", strided(complex_regular(3, 3))),
    ]


def gauss_jordan(x1: Array, x2: Array) -> Array:
    """Gauss and Jordan, a column at a time, with the largest element as pivot."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1 = np.broadcast_to(x1, (*batch, *x1.shape[-2:]))
    x2 = np.broadcast_to(x2, (*batch, *x2.shape[-2:]))
    result = np.empty(x2.shape, x2.dtype)
    for index in np.ndindex(batch):
        table = np.concatenate([x1[index], x2[index]], axis=1)
        for column in range(x1.shape[-1]):
            pivot = column + int(np.argmax(abs(table[column:, column])))
            table[[column, pivot]] = table[[pivot, column]]
            table[column] /= table[column, column]
            for row in range(x1.shape[-1]):
                if row != column:
                    table[row] -= table[row, column] * table[column]
        result[index] = table[:, x1.shape[-1] :]
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
)(gauss_jordan)
also_for_complex(
    "solve",
    samples=[
        sample("one complex right side", complex_regular(3, 3), complexes(3, 1)),
        sample("complex batch", complex_regular(2, 3, 3), complexes(2, 3, 2)),
        sample("complex, one matrix for a batch", complex_regular(3, 3), complexes(2, 3, 2)),
        sample("no complex equations", complexes(0, 0), complexes(0, 2)),
        sample(
            "complex views",
            matrix_transposed(complex_regular(3, 3)),
            reversed_view(complexes(3, 2)),
        ),
    ],
)


def _inv(x: Array) -> Array:
    return gauss_jordan(x, np.eye(x.shape[-1], dtype=x.dtype))


reference(
    "inv",
    samples=_square(),
    errors=[*NOT_SQUARE, error("singular", ExecutionError, _SINGULAR, in_data=True)],
)(_inv)
also_for_complex("inv", samples=_complex_square())


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
    return sum((sign * product for sign, product in _products(x)), np.zeros(x.shape[:-2], x.dtype))


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
    errors=NOT_SQUARE,
    terms=_det_terms,
)(_det)
also_for_complex("det", samples=_complex_square())


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
    errors=NOT_SQUARE,
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
    errors=NOT_SQUARE,
)(_slogdet)
also_for_complex(
    "slogdet",
    samples=[*_complex_square(), sample("complex, zeros", np.zeros((2, 2), complex))],
)


def _pinv(x: Array, *, rtol: float) -> Any:
    # By the smaller of the two products with the adjoint, where the samples have full rank.
    del rtol
    if x.shape[-2] < x.shape[-1]:
        return adjoint(_pinv(adjoint(x), rtol=0.0))
    other = adjoint(x)
    if not x.any():
        return np.zeros(other.shape, x.dtype)
    if x.shape[-2:] == (2, 2) and not np.linalg.det(x).any():
        return other / np.sum(abs(x) ** 2)  # of rank one
    return gauss_jordan(other @ x, other)


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
also_for_complex(
    "pinv",
    samples=[
        sample("complex, square", complex_regular(3, 3), **_RTOL),
        sample("complex, tall", complex_regular(4, 4)[:, :2], **_RTOL),
        sample("complex, wide", complex_regular(4, 4)[:2], **_RTOL),
        sample("complex batch", complex_regular(2, 3, 3)[..., :2], **_RTOL),
        sample("complex, of rank one", _SINGULAR * (1.0 - 0.5j), **_RTOL),
        sample("complex, no rows", complexes(2, 0, 3), **_RTOL),
        sample("complex, empty batch", complexes(0, 2, 3), **_RTOL),
    ],
)
