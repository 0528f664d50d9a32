"""What an author of a backend implements.

There are two base classes: `ArrayBackend` over a namespace of the array API standard, and `Backend`
for a runtime without an array library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from burn.backend._slicing import check_gather_operands, check_sliced, python_slices
from burn.backend.base import AutodiffBackend, Backend, is_backend
from burn.backend.checked import CheckedOps
from burn.backend.invalid_values import InvalidValue, index_error, invalid_value_index
from burn.backend.tensor_ops import (
    BaseTensorOps,
    BoolTensorOps,
    FloatTensorOps,
    IntTensorOps,
    NumericTensorOps,
    is_implemented,
    required,
    specializing,
)

if TYPE_CHECKING:
    from burn.backend.array import ArrayBackend
    from burn.backend.capsule import (
        CapsuleObject,
        read_capsule,
        relabel_capsule,
        request_capsule,
    )

_LAZY: Final = {
    "ArrayBackend": "burn.backend.array",
    **dict.fromkeys(
        ("CapsuleObject", "read_capsule", "relabel_capsule", "request_capsule"),
        "burn.backend.capsule",
    ),
}
"""Names whose modules import NumPy or ctypes, which the declaration of a plugin does not need."""

__all__ = [
    "ArrayBackend",
    "AutodiffBackend",
    "Backend",
    "BaseTensorOps",
    "BoolTensorOps",
    "CapsuleObject",
    "CheckedOps",
    "FloatTensorOps",
    "IntTensorOps",
    "InvalidValue",
    "NumericTensorOps",
    "check_gather_operands",
    "check_sliced",
    "index_error",
    "invalid_value_index",
    "is_backend",
    "is_implemented",
    "python_slices",
    "read_capsule",
    "relabel_capsule",
    "request_capsule",
    "required",
    "specializing",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
