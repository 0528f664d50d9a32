"""Primitives under the wrappers of any stack of decorators: tracked, batched, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.autodiff.graph import AutodiffTensor

if TYPE_CHECKING:
    from burn.ops.signature import Primitive

__all__ = ["is_tracked", "untracked", "value_of"]


def is_tracked(primitive: Primitive) -> bool:
    """Whether a primitive is tracked by one of the decorators."""
    return isinstance(primitive, AutodiffTensor)


def untracked(primitive: Primitive) -> Primitive:
    """The same value, which no decorator tracks."""
    while isinstance(primitive, AutodiffTensor):
        primitive = primitive.primitive
    return primitive


def value_of(primitive: Primitive) -> Primitive:
    """The primitive of the backend below all decorators."""
    return untracked(primitive)
