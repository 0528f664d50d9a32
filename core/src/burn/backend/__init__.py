"""What an author of a backend implements.

Two places to start from: `ArrayBackend`, over any namespace of the array API standard, and the
bare `Backend` for a compute runtime with no array library.
"""

from burn.backend.array import ArrayBackend
from burn.backend.base import AutodiffBackend, Backend
from burn.backend.tensor_ops import (
    BaseTensorOps,
    BoolTensorOps,
    FloatTensorOps,
    IntTensorOps,
    NumericTensorOps,
    required,
)

__all__ = [
    "ArrayBackend",
    "AutodiffBackend",
    "Backend",
    "BaseTensorOps",
    "BoolTensorOps",
    "FloatTensorOps",
    "IntTensorOps",
    "NumericTensorOps",
    "required",
]
