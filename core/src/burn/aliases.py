"""Names for types that every part of burn shares."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Primitive", "RealScalar", "Scalar", "Shape", "Slices"]

Shape: TypeAlias = tuple[int, ...]
"""Length of each axis."""

Scalar: TypeAlias = bool | int | float | complex
"""A Python number. It has the dtype of the tensor it meets."""

RealScalar: TypeAlias = bool | int | float
"""A Python number that has a place in an order."""

Slices: TypeAlias = tuple[tuple[int, int, int], ...]
"""Per axis (start, length, step): output element i is input element ``start + i * step``."""

Primitive: TypeAlias = Any
"""What a backend computes with: an array, a buffer, or a Python number where an op takes one."""
