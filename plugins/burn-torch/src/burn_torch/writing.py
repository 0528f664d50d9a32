"""Writes in place, allowed where reference counts show that nothing else uses the memory."""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

import torch

from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor

__all__ = ["WritingOps", "is_unused"]

_storage_uses: Final[Any] = getattr(torch._C, "_storage_Use_Count", None)
_tensor_uses: Final[Any] = getattr(Tensor, "_use_count", None)  # from torch 2.13 on


def _references(x: Tensor) -> tuple[int, ...]:
    """References to a tensor of Python, to that of C++, and to its memory, which views share.

    Empty for memory that others may refer to, since torch did not allocate it or has shared it, and
    for tensors made in the inference mode, which may be written to in it alone.
    """
    storage = x.untyped_storage()
    if x.is_inference() or not storage.resizable():
        return ()
    return (
        sys.getrefcount(x),
        0 if _tensor_uses is None else int(_tensor_uses(x)),
        int(_storage_uses(storage._cdata)),
    )


class WritingOps(TorchOps):
    """Writes to tensors whose memory torch allocated, and to which nothing else refers."""

    def can_write(self, x: Tensor, views: list[Tensor]) -> bool:
        """Whether only a tensor of burn refers to the memory of `x`, which has no views."""
        return not views and _references(x) == _exclusive()


def is_unused(tensors: list[Tensor], index: int, references: int = 0) -> bool:
    """Whether only an item of a list refers to the memory of a tensor, and some other objects."""
    return _references(tensors[index]) == _of_item(references)


class _Holder:
    """Refers to a tensor of torch as one of burn does."""

    __slots__ = ("tensor",)

    def __init__(self) -> None:
        self.tensor = torch.empty(2)


class _Counting:
    """Counts by the same calls as `WritingOps.can_write`.

    The calls themselves add references; their number depends on the version of Python.
    """

    def can_write(self, x: Tensor, views: list[Tensor]) -> tuple[int, ...]:
        return () if views else _references(x)


@functools.cache
def _exclusive() -> tuple[int, ...]:
    """The references to a tensor that only one of burn refers to."""
    holder = _Holder()
    counts = _Counting().can_write(holder.tensor, [])
    capsule = holder.tensor.__dlpack__()
    is_seen = _Counting().can_write(holder.tensor, []) != counts
    del capsule
    return counts if is_seen else _NEVER


@functools.cache
def _of_item(references: int) -> tuple[int, ...]:
    """The references to a tensor to which only an item of a list and other objects refer."""
    tensors = [torch.empty(2)]
    count, *others = _references(tensors[0])
    return _NEVER if _exclusive() is _NEVER else (count + references, *others)


_NEVER: Final = (0,)
"""The references of no tensor, where there are no counts, or exports do not count."""
