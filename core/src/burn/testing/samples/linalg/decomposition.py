"""Samples of decompositions of matrices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.dtype import DType
from burn.errors import ExecutionError, ShapeError
from burn.testing.arrays import (
    complexes,
    expanded,
    floats,
    matrix_transposed,
    reversed_view,
    strided,
)
from burn.testing.op_samples import (
    INDEX_DTYPE,
    Array,
    Sample,
    also_for_complex,
    error,
    reference,
    sample,
)
from burn.testing.samples.linalg._matrices import (
    NOT_SQUARE,
    adjoint,
    complex_regular,
    definite,
    hermitian_samples,
    largest,
    regular,
    symmetric_samples,
)

_NAN = np.array([[1.0, np.nan], [np.nan, 1.0]])


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


def _complex_of_any_shape(**attributes: Any) -> list[Sample]:
    """Calls of an op of complex matrices of any shape."""
    return [
        sample("complex, one element", np.array([[-2.5 + 1j]]), **attributes),
        sample("complex, square", complex_regular(3, 3), **attributes),
        sample("complex, tall", complex_regular(4, 4)[:, :2], **attributes),
        sample("complex, wide", complex_regular(4, 4)[:2], **attributes),
        sample("complex batch", complex_regular(2, 3, 3)[..., :2], **attributes),
        sample("complex, empty batch", complexes(0, 3, 2), **attributes),
        sample("complex, no columns", complexes(2, 3, 0), **attributes),
        sample("complex, transposed", matrix_transposed(complex_regular(3, 3)), **attributes),
        sample("complex, strided", strided(complex_regular(3, 3)[:, :2]), **attributes),
    ]


def _cholesky(x: Array) -> Array:
    """Element by element (Cholesky and Banachiewicz)."""
    x = (x + adjoint(x)) / 2.0
    result = np.zeros(x.shape, x.dtype)
    for row in range(x.shape[-1]):
        for column in range(row + 1):
            above = np.conj(result[..., column, :column])
            done = np.sum(result[..., row, :column] * above, axis=-1)
            rest = x[..., row, column] - done
            if row == column:
                result[..., row, row] = np.sqrt(rest)
            else:
                result[..., row, column] = rest / result[..., column, column]
    return result


reference(
    "cholesky",
    samples=symmetric_samples(),
    errors=[
        *NOT_SQUARE,
        error("not definite", ExecutionError, -definite(2, 2), in_data=True),
        error(
            "one of a batch not definite",
            ExecutionError,
            np.stack([definite(2, 2), -definite(2, 2)]),
            in_data=True,
        ),
    ],
    signed_zeros=True,
)(_cholesky)
also_for_complex("cholesky", samples=hermitian_samples())


def _qr(x: Array, *, complete: bool = False) -> tuple[Array, Array]:
    q, r = np.linalg.qr(x, "complete" if complete else "reduced")
    count = min(x.shape[-2:])
    phases = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    q[..., :count] *= phases[..., None, :]
    r[..., :count, :] *= np.conj(phases)[..., None]
    return q, np.triu(r)  # the zeros below the diagonal are positive


reference(
    "qr",
    samples=[
        *_any_shape(),
        sample("complete, square", regular(3, 3), complete=True),
        sample("complete, wide", regular(3, 3)[:2], complete=True),
        sample("complete, tall", regular(3, 3)[:, :2], complete=True, differentiable=False),
    ],
    errors=[error("a vector", ShapeError, floats(3))],
    signed_zeros=True,
)(_qr)
also_for_complex(
    "qr",
    samples=[
        *_complex_of_any_shape(),
        sample("complete, complex, square", complex_regular(3, 3), complete=True),
        sample("complete, complex, wide", complex_regular(3, 3)[:2], complete=True),
    ],
)


def _svd(x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    phases, count = np.sign(largest(u)), s.shape[-1]
    vh[..., :count, :] *= phases[..., :count, None]
    return u * np.conj(phases)[..., None, :], s, vh


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
also_for_complex(
    "svd",
    samples=[
        *_complex_of_any_shape(full_matrices=False),
        sample("full, complex, square", complex_regular(3, 3), full_matrices=True),
    ],
)


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


also_for_complex("svdvals", samples=_complex_of_any_shape())


def _lu(x: Array, *, index_dtype: DType) -> tuple[Array, Array]:
    """Row by row, as a matrix is eliminated by hand."""
    del index_dtype
    result = np.array(x)
    order = np.array(np.broadcast_to(np.arange(x.shape[-2]), x.shape[:-1]))
    for index in np.ndindex(x.shape[:-2]):
        table, rows = result[index], order[index]
        for step in range(min(table.shape)):
            pivot = step + int(np.argmax(abs(table[step:, step])))
            table[[step, pivot]] = table[[pivot, step]]
            rows[[step, pivot]] = rows[[pivot, step]]
            for row in range(step + 1, table.shape[0]):
                if table[step, step]:
                    table[row, step] /= table[step, step]
                table[row, step + 1 :] -= table[row, step] * table[step, step + 1 :]
    return result, order


_INDEX_DTYPE: Final[dict[str, Any]] = {"index_dtype": INDEX_DTYPE}

reference(
    "lu_decomposition",
    samples=[
        *_any_shape(**_INDEX_DTYPE),
        sample("rows in disorder", regular(4, 4)[[2, 0, 3, 1]], **_INDEX_DTYPE),
        sample("rows in disorder, batch", regular(2, 3, 3)[:, [2, 0, 1]], **_INDEX_DTYPE),
        sample("singular", np.ones((3, 3)), differentiable=False, **_INDEX_DTYPE),
        sample("zeros", np.zeros((2, 3)), differentiable=False, **_INDEX_DTYPE),
    ],
    errors=[
        error("a vector", ShapeError, floats(3), **_INDEX_DTYPE),
    ],
)(_lu)
also_for_complex("lu_decomposition", samples=_complex_of_any_shape(**_INDEX_DTYPE))
