"""Generated kernels: loop nests as data, their expressions, and languages to write them in."""

from __future__ import annotations

from burn.kernels.kernel import (
    Apply,
    Index,
    Kernel,
    Length,
    Literal,
    Load,
    Node,
    Reduce,
    Scalar,
    Store,
)

__all__ = [
    "Apply",
    "Index",
    "Kernel",
    "Length",
    "Literal",
    "Load",
    "Node",
    "Reduce",
    "Scalar",
    "Store",
]
