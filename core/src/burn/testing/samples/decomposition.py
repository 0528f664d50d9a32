"""Samples of decompositions of matrices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.dtype import DType
from burn.errors import ExecutionError, ShapeError
from burn.testing.arrays import expanded, floats, matrix_transposed, reversed_view, strided
from burn.testing.sample import INDEX_DTYPE, Array, ErrorSample, Sample, error, reference, sample
from burn.testing.samples._matrices import definite, regular

_NAN = np.array([[1.0, np.nan], [np.nan, 1.0]])


def _symmetric(**attributes: Any) -> list[Sample]:
    """Calls of an op of positive definite matrices."""
    return [
        sample("one element", np.array([[2.5]]), **attributes),
        sample("2 x 2", definite(2, 2), **attributes),
        sample("4 x 4", definite(4, 4), **attributes),
        sample("not symmetric", definite(3, 3) + np.tril(floats(3, 3) * 0.1), **attributes),
        sample("batch", definite(2, 3, 3), **attributes),
        sample("empty batch", floats(0, 3, 3), **attributes),
        sample("no rows", floats(2, 0, 0), **attributes),
        sample("transposed", matrix_transposed(definite(2, 3, 3)), **attributes),
        sample("strided", strided(definite(3, 3)), **attributes),
        sample("reversed", reversed_view(definite(3, 3)), **attributes),
        sample("expanded", expanded(definite(2, 2), 3, 2, 2), **attributes),
    ]


_SYMMETRIC_ERRORS: Final[list[ErrorSample]] = [
    error("a vector", ShapeError, floats(3)),
    error("not square", ShapeError, floats(2, 3)),
]


def _any_shape(**attributes: Any) -> list[Sample]:
    """Calls of an op of matrices of any shape."""
    return [
        sample("one element", np.array([[-2.5]]), **attributes),
        sample("square", regular(3, 3), **attributes),
        sample("negative diagonal", -regular(3, 3), **attributes),
        sample("tall", regular(4, 4)[:, :2], **attributes),
        sample("wide", regular(4, 4)[:2], **attributes),
        sample("batch, tall", regular(2, 3, 3)[..., :2], **attributes),
        sample("batch, wide", regular(2, 3, 3)[:, :2], **attributes),
        sample("empty batch", floats(0, 3, 2), **attributes),
        sample("no rows", floats(0, 3), **attributes),
        sample("no columns", floats(2, 3, 0), **attributes),
        sample("transposed", matrix_transposed(regular(3, 3)), **attributes),
        sample("strided", strided(regular(3, 3)[:, :2]), **attributes),
        sample("reversed", reversed_view(regular(3, 3)), **attributes),
        sample("expanded", expanded(regular(2, 2), 3, 2, 2), **attributes),
    ]


def _cholesky(x: Array) -> Array:
    """Element by element (Cholesky and Banachiewicz)."""
    x = (x + x.swapaxes(-1, -2)) / 2.0
    result = np.zeros(x.shape)
    for row in range(x.shape[-1]):
        for column in range(row + 1):
            done = np.sum(result[..., row, :column] * result[..., column, :column], axis=-1)
            rest = x[..., row, column] - done
            if row == column:
                result[..., row, row] = np.sqrt(rest)
            else:
                result[..., row, column] = rest / result[..., column, column]
    return result


reference(
    "cholesky",
    samples=_symmetric(),
    errors=[
        *_SYMMETRIC_ERRORS,
        error("not definite", ExecutionError, -definite(2, 2), in_data=True),
        error(
            "one of a batch not definite",
            ExecutionError,
            np.stack([definite(2, 2), -definite(2, 2)]),
            in_data=True,
        ),
    ],
)(_cholesky)


def _qr(x: Array, *, complete: bool = False) -> tuple[Array, Array]:
    q, r = np.linalg.qr(x, "complete" if complete else "reduced")
    count = min(x.shape[-2:])
    signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)
    q[..., :count] *= signs[..., None, :]
    r[..., :count, :] *= signs[..., None]
    return q, r


reference(
    "qr",
    samples=[
        *_any_shape(),
        sample("complete, square", regular(3, 3), complete=True),
        sample("complete, wide", regular(3, 3)[:2], complete=True),
        sample("complete, tall", regular(3, 3)[:, :2], complete=True, differentiable=False),
    ],
    errors=[error("a vector", ShapeError, floats(3))],
)(_qr)


def _signs(vectors: Array) -> Any:
    if 0 in vectors.shape:
        return np.ones((*vectors.shape[:-2], vectors.shape[-1]))
    place = np.argmax(abs(vectors), axis=-2, keepdims=True)
    return np.sign(np.take_along_axis(vectors, place, -2))[..., 0, :]


def _svd(x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    signs, count = _signs(u), s.shape[-1]
    vh[..., :count, :] *= signs[..., :count, None]
    return u * signs[..., None, :], s, vh


reference(
    "svd",
    samples=[
        *_any_shape(full_matrices=False),
        sample("full, square", regular(3, 3), full_matrices=True),
        sample("full, tall", regular(3, 3)[:, :2], full_matrices=True, differentiable=False),
        sample("full, wide", regular(3, 3)[:2], full_matrices=True, differentiable=False),
    ],
    errors=[
        error("a vector", ShapeError, floats(3), full_matrices=False),
        error("NaN", ExecutionError, _NAN, full_matrices=False, in_data=True),
    ],
)(_svd)


@reference(
    "svdvals",
    samples=_any_shape(),
    errors=[
        error("a vector", ShapeError, floats(3)),
        error("NaN", ExecutionError, _NAN, in_data=True),
    ],
)
def _(x: Array) -> Array:
    return np.linalg.svd(x)[1]


def _eigh(x: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh((x + x.swapaxes(-1, -2)) / 2.0)
    return values, vectors * _signs(vectors)[..., None, :]


reference("eigh", samples=_symmetric(), errors=_SYMMETRIC_ERRORS)(_eigh)


@reference("eigvalsh", samples=_symmetric(), errors=_SYMMETRIC_ERRORS)
def _(x: Array) -> Array:
    return _eigh(x)[0]


def _lu(x: Array, *, index_dtype: DType) -> tuple[Array, Array]:
    """Row by row, as a matrix is eliminated by hand."""
    del index_dtype
    result = np.array(x)
    order = np.array(np.broadcast_to(np.arange(x.shape[-2]), x.shape[:-1]))
    for place in np.ndindex(x.shape[:-2]):
        table, rows = result[place], order[place]
        for step in range(min(table.shape)):
            pivot = step + int(np.argmax(abs(table[step:, step])))
            table[[step, pivot]] = table[[pivot, step]]
            rows[[step, pivot]] = rows[[pivot, step]]
            for row in range(step + 1, table.shape[0]):
                if table[step, step]:
                    table[row, step] /= table[step, step]
                table[row, step + 1 :] -= table[row, step] * table[step, step + 1 :]
    return result, order


_PLACES: Final[dict[str, Any]] = {"index_dtype": INDEX_DTYPE}

reference(
    "lu_decomposition",
    samples=[
        *_any_shape(**_PLACES),
        sample("rows in disorder", regular(4, 4)[[2, 0, 3, 1]], **_PLACES),
        sample("rows in disorder, batch", regular(2, 3, 3)[:, [2, 0, 1]], **_PLACES),
        sample("singular", np.ones((3, 3)), differentiable=False, **_PLACES),
        sample("zeros", np.zeros((2, 3)), differentiable=False, **_PLACES),
    ],
    errors=[
        error("a vector", ShapeError, floats(3), **_PLACES),
    ],
)(_lu)
