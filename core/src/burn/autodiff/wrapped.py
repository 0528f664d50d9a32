"""Primitives under the wrappers of any stack of decorators: tracked, batched, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.autodiff.graph import AutodiffTensor
from burn.batching import BatchedTensor
from burn.errors import AutodiffError
from burn.ops.quantized_primitive import is_quantized

if TYPE_CHECKING:
    from burn.ops.signature import Primitive

__all__ = [
    "examples_of",
    "is_tracked",
    "is_wrapped",
    "tracking_level",
    "untracked",
    "value_of",
]


def is_wrapped(primitive: Primitive) -> bool:
    """Whether a primitive is one of a decorator, not of a backend's library."""
    return isinstance(primitive, (AutodiffTensor, BatchedTensor))


def is_tracked(primitive: Primitive) -> bool:
    """Whether a primitive is tracked by one of the decorators."""
    while isinstance(primitive, BatchedTensor):
        primitive = primitive.primitive
    return isinstance(primitive, AutodiffTensor)


def tracking_level(primitive: Primitive) -> int | None:
    """The level of the innermost decorator that tracks a primitive; None if it is untracked.

    It is 0 for what was computed from leaves of ``Device.autodiff()``.
    """
    level = None
    while isinstance(primitive, (AutodiffTensor, BatchedTensor)):
        if isinstance(primitive, AutodiffTensor):
            level = primitive.level
        primitive = primitive.primitive
    return level


def examples_of(primitive: Primitive) -> tuple[Primitive, tuple[int, ...]]:
    """The primitive of the backend below all decorators, and the lengths of its batch axes.

    The batch axes, which come first, are hidden everywhere else.
    """
    sizes: tuple[int, ...] = ()
    while isinstance(primitive, (AutodiffTensor, BatchedTensor)):
        if isinstance(primitive, BatchedTensor):
            sizes = (primitive.frame.size, *sizes)
        primitive = primitive.primitive
    return primitive, sizes


def untracked(primitive: Primitive) -> Primitive:
    """The same value, which no decorator tracks."""
    if isinstance(primitive, AutodiffTensor):
        return untracked(primitive.primitive)
    if isinstance(primitive, BatchedTensor):
        batched = type(primitive)()
        batched.primitive = untracked(primitive.primitive)
        batched.frame = primitive.frame
        return batched
    return primitive


def value_of(primitive: Primitive) -> Primitive:
    """The primitive of the backend below all decorators.

    Raises
    ------
    AutodiffError
        If there is one for each example of a batch.
    """
    while isinstance(primitive, AutodiffTensor):
        primitive = primitive.primitive
    if isinstance(primitive, BatchedTensor):
        raise AutodiffError(
            "a tensor inside of burn.vmap has a value for each example, which is not one value",
            hint="Compute with tensors (burn.where instead of if), and read the values after vmap",
        )
    if is_quantized(primitive):
        for part in primitive.parts:  # of which none is tracked
            value_of(part)
    return primitive
