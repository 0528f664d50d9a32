"""Matrix decompositions on the host: read, compute with NumPy, upload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burn.data import TensorData
from burn.dtype import float32
from burn.errors import ExecutionError, ShapeError
from burn.ops.signature import Meta, Primitive
from burn.ops.table import OpTable

__all__ = ["Array", "check_matrix", "check_square", "compute", "read", "symmetric", "upload"]

Array = npt.NDArray[Any]


def read(ops: OpTable, x: Primitive) -> Array:
    """Values of a float tensor; float16 and bfloat16 as float32, since LAPACK knows neither."""
    array: Array = ops.backend.to_data(x).array
    return array.astype(np.float32) if array.dtype.itemsize < float32.itemsize else array


def upload(ops: OpTable, array: Array, like: Primitive) -> Primitive:
    """A tensor of the dtype of another one."""
    native = ops.dtype(like).numpy
    return ops.backend.from_data(TensorData(np.asarray(array).astype(native)), ops.device)


def compute(function: Callable[..., Any], failure: str, *stacks: Array) -> Any:
    """Run a function of `numpy.linalg` on stacks of matrices.

    Raises
    ------
    ExecutionError
        If it fails; it says for which matrix of the stack, and `failure`.
    """
    with np.errstate(all="ignore"):
        try:
            return function(*stacks)
        except np.linalg.LinAlgError as error:
            raise ExecutionError(f"{_place(function, stacks)} {failure}") from error


def _place(function: Callable[..., Any], stacks: Sequence[Array]) -> str:
    """Name the first matrix of a stack for which a function fails."""
    batch = np.broadcast_shapes(*[stack.shape[:-2] for stack in stacks])
    if not batch:
        return "the matrix"
    stacks = [np.broadcast_to(stack, (*batch, *stack.shape[-2:])) for stack in stacks]
    for place in np.ndindex(batch):
        try:
            function(*[stack[place] for stack in stacks])
        except np.linalg.LinAlgError:
            return f"matrix [{', '.join(map(str, place))}] of the batch"
    return "a matrix"


def symmetric(x: Array) -> Array:
    """The mean of matrices and their transposes."""
    half: Array = x * x.dtype.type(0.5)
    return half + half.swapaxes(-1, -2)


def check_matrix(x: Meta) -> None:
    """Refuse what has fewer than two axes."""
    if len(x.shape) < 2:
        raise ShapeError(f"matrices have two axes or more, got {x.shape}")


def check_square(x: Meta) -> int:
    """Refuse what is no stack of square matrices; returns their size."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"the last two axes must have equal lengths, got {x.shape}",
            hint="It is defined for square matrices",
        )
    return x.shape[-1]
