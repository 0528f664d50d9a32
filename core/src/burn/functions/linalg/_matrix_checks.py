"""Checks of the shapes of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions.normalize import rank_of

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["check_matrices", "check_square", "check_vectors"]


def check_matrices(x: Tensor, operation: str) -> None:
    """Raise ShapeError for a tensor of fewer than two axes."""
    if rank_of(x, operation) < 2:
        raise ShapeError(f"matrices have two axes or more, got {x.shape}", operation=operation)


def check_square(x: Tensor, operation: str) -> None:
    """Raise ShapeError for a tensor whose last two axes differ in length."""
    check_matrices(x, operation)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"the last two axes must have equal lengths, got {x.shape}", operation=operation
        )


def check_vectors(x1: Tensor, x2: Tensor, operation: str) -> None:
    """Raise ShapeError unless two tensors have one axis each."""
    ranks = rank_of(x1, operation, "x1"), rank_of(x2, operation, "x2")
    if ranks != (1, 1):
        raise ShapeError(
            f"takes two vectors, got tensors of shapes {x1.shape} and {x2.shape}",
            operation=operation,
        )
