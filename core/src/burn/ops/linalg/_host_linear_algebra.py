"""Matrix decompositions on the host: read, compute with NumPy, upload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burn.dtype import float32
from burn.errors import ExecutionError, ShapeError
from burn.ops.shapes import size
from burn.ops.signature import Meta, Primitive
from burn.ops.table import OpTable
from burn.tensor_data import TensorData

__all__ = [
    "NOT_DECOMPOSED",
    "Array",
    "check_matrix",
    "check_square",
    "column_factors",
    "compute",
    "hermitian",
    "positive_factors",
    "read",
    "stack_of",
    "upload",
]

Array = npt.NDArray[Any]

NOT_DECOMPOSED = (
    "has no such decomposition: it holds NaN or infinity, or the iteration did not converge"
)
"""The reason of a failure that NumPy reports without one."""


def read(ops: OpTable, x: Primitive) -> Array:
    """Values of a tensor; float16 and bfloat16 as float32, since LAPACK knows neither."""
    array: Array = ops.backend.to_data(x).array
    return array.astype(np.float32) if array.dtype.itemsize < float32.itemsize else array


def upload(ops: OpTable, array: Array, like: Primitive) -> Primitive:
    """A tensor of the dtype of another one, or of its parts where only the other is complex."""
    array, dtype = np.asarray(array), ops.dtype(like)
    native = (dtype if array.dtype.kind == "c" else dtype.component).numpy
    return ops.backend.from_data(TensorData(array.astype(native)), ops.device)


def compute(
    function: Callable[..., Any],
    failure: str | Callable[[Array], str],
    *stacks: Array,
    hint: str = "",
) -> Any:
    """Run a function of `numpy.linalg` on stacks of matrices.

    Raises
    ------
    ExecutionError
        If it fails; it says for which matrix of the stack, and `failure`, which may be a function
        of that matrix.
    """
    with np.errstate(all="ignore"):
        try:
            return function(*stacks)
        except np.linalg.LinAlgError:
            name, matrix = _failing_matrix(function, stacks)
            rule = failure if isinstance(failure, str) else failure(matrix)
            raise ExecutionError(f"{name} {rule}", hint=hint) from None


def _failing_matrix(function: Callable[..., Any], stacks: Sequence[Array]) -> tuple[str, Array]:
    """Name the first matrix of a stack for which a function fails, and the matrix."""
    batch = np.broadcast_shapes(*[stack.shape[:-2] for stack in stacks])
    if not batch:
        return "the matrix", stacks[0]
    stacks = [np.broadcast_to(stack, (*batch, *stack.shape[-2:])) for stack in stacks]
    for index in np.ndindex(batch):
        try:
            function(*[stack[index] for stack in stacks])
        except np.linalg.LinAlgError:
            return f"matrix [{', '.join(map(str, index))}] of the batch", stacks[0][index]
    return "a matrix", stacks[0]


def hermitian(x: Array) -> Array:
    """The mean of matrices and their transposes, which are conjugated if they are complex."""
    if x.shape[-1] != x.shape[-2]:  # a column would broadcast
        raise ValueError("the matrices are not square")
    half: Array = x * x.dtype.type(0.5)
    return half + half.swapaxes(-1, -2).conj()


def positive_factors(values: Array) -> Array:
    """Numbers of magnitude 1 by which the values become their magnitudes: 1 and -1 for reals."""
    if values.dtype.kind != "c":
        return np.where(values < 0.0, -1.0, 1.0).astype(values.dtype)
    zero = values == 0.0
    factors = values.conj() / np.where(zero, 1.0, np.abs(values))
    return np.where(zero, 1.0, factors).astype(values.dtype)


def column_factors(vectors: Array) -> Array:
    """`positive_factors` of the element of the largest magnitude of each column."""
    if 0 in vectors.shape:
        return np.ones((*vectors.shape[:-2], vectors.shape[-1]), vectors.dtype)
    largest = np.argmax(np.abs(vectors), axis=-2, keepdims=True)
    return positive_factors(np.take_along_axis(vectors, largest, axis=-2)[..., 0, :])


def check_matrix(x: Meta) -> None:
    """Raise ShapeError unless there are two axes or more."""
    if len(x.shape) < 2:
        raise ShapeError(f"matrices have two axes or more, got {x.shape}")


def stack_of(x: Meta) -> tuple[int, int, int]:
    """Number of matrices of a stack, of their rows and of their columns."""
    return size(x.shape[:-2]), x.shape[-2], x.shape[-1]


def check_square(x: Meta) -> int:
    """Size of the square matrices of a stack; raises ShapeError if they are not square."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"the last two axes must have equal lengths, got {x.shape}",
            hint="It is defined for square matrices",
        )
    return x.shape[-1]
