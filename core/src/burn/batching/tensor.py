"""Tensors with a hidden batch axis, and the call that they belong to."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from burn.locks import new_lock
from burn.ops.signature import Primitive, Shape

__all__ = ["BatchedTensor", "Frame"]


_lock: Final = new_lock()
"""Held while `Frame.runs` changes: threads may run one call again at the same time."""


class Frame:
    """One call that maps a function over a batch.

    Parameters
    ----------
    size : int
        Number of examples.
    allows_fallback : bool
        Whether an op without a batching rule may run in a loop over the examples.

    Attributes
    ----------
    size : int
        Number of examples: the length of the batch axis.
    allows_fallback : bool
        Whether an op may run in a loop over the examples; if not, it is an error.
    runs : int
        How often the call runs now: once until it returns, and once for each backward pass that
        runs it again. Its tensors are an error where it does not.
    fallbacks : Counter of str
        How often each op ran in a loop over the examples, by its name.
    """

    __slots__ = ("allows_fallback", "fallbacks", "runs", "size")

    def __init__(self, size: int, *, allows_fallback: bool = True) -> None:
        self.size = size
        self.allows_fallback = allows_fallback
        self.runs = 1
        self.fallbacks: Counter[str] = Counter()

    def enter(self) -> None:
        """Count one more run."""
        with _lock:
            self.runs += 1

    def leave(self) -> None:
        """Count one run less."""
        with _lock:
            self.runs -= 1


class BatchedTensor:
    """A primitive of the level below whose axis 0 is the batch axis, which is hidden.

    Each Batch backend has its own subclass, which tells its tensors from those of another level:
    these are the same for all examples.
    """

    __slots__ = ("frame", "primitive")

    primitive: Primitive
    frame: Frame

    @property
    def shape(self) -> Shape:
        """Length of each axis of one example."""
        return tuple(self.primitive.shape[1:])

    @property
    def dtype(self) -> Any:
        """The dtype object of the primitive."""
        return self.primitive.dtype

    def __repr__(self) -> str:
        return f"BatchedTensor({self.primitive!r})"
