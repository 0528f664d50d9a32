"""What an author of a backend implements.

Two places to start from: `ArrayBackend`, over any namespace of the array API standard, and the
bare `Backend` for a compute runtime with no array library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.backend.base import AutodiffBackend, Backend
from burn.backend.tensor_ops import (
    BaseTensorOps,
    BoolTensorOps,
    FloatTensorOps,
    IntTensorOps,
    NumericTensorOps,
    is_implemented,
    required,
)

if TYPE_CHECKING:
    from burn.backend.array import ArrayBackend

__all__ = [
    "ArrayBackend",
    "AutodiffBackend",
    "Backend",
    "BaseTensorOps",
    "BoolTensorOps",
    "FloatTensorOps",
    "IntTensorOps",
    "NumericTensorOps",
    "is_implemented",
    "required",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "ArrayBackend":  # imports NumPy, which what a plugin declares does not need
        from burn.backend.array import ArrayBackend

        return ArrayBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
