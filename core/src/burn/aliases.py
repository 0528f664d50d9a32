"""Names of types that every part of burn uses."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Primitive", "RealScalar", "Scalar", "Shape", "Slices"]

Shape: TypeAlias = tuple[int, ...]
"""Length of each axis."""

Scalar: TypeAlias = bool | int | float | complex
"""A Python number. It takes the dtype of the tensor that it is combined with."""

RealScalar: TypeAlias = bool | int | float
"""A real Python number."""

Slices: TypeAlias = tuple[tuple[int, int, int], ...]
"""Per axis (start, length, step): output element i is input element ``start + i * step``."""

Primitive: TypeAlias = Any
"""The tensor of a backend: an array or a buffer, or a Python number where an op accepts one."""
