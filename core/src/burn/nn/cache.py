"""Keys and values that attention keeps from one step of a generation to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.devices import running_trace
from burn.errors import AutodiffError, OutOfRangeError, ShapeError, TraceError
from burn.functions.creation import zeros
from burn.functions.normalize import number_dtype

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["CrossAttentionCache", "KeyValueCache"]


class KeyValueCache:
    """Keys and values of the positions so far, for attention of new positions to all of them.

    Memory for all positions is allocated at the first call, in the shape, dtype and device of the
    keys, and written in place.

    Parameters
    ----------
    max_length : int
        Number of positions that it has room for.

    Attributes
    ----------
    length : int
        Number of positions that it holds.

    Examples
    --------
    >>> import burn
    >>> attention = burn.nn.MultiHeadAttention(8, 2, is_causal=True)
    >>> x, cache = burn.ones((1, 5, 8)), burn.nn.KeyValueCache(16)
    >>> first, last = attention(x[:, :4], cache=cache), attention(x[:, 4:], cache=cache)
    >>> cache
    KeyValueCache(16, length=5)
    >>> burn.allclose(attention(x)[:, 4:], last, rtol=1e-5)
    True
    """

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length
        self.length = 0
        self._memory: tuple[Tensor, Tensor] | None = None

    def __repr__(self) -> str:
        return f"KeyValueCache({self.max_length}, length={self.length})"

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values of the next positions.

        Parameters
        ----------
        key, value : Tensor, shape (..., T, D)
            Untracked: generation runs on a device without autodiff, or inside `burn.no_grad`.

        Returns
        -------
        (Tensor, Tensor)
            Keys and values of all positions so far. They are views, which `reset` and what follows
            overwrites.

        Raises
        ------
        OutOfRangeError
            If there is no room for so many.
        AutodiffError
            If one is tracked.
        ShapeError
            If the other axes, the dtype or the device are not those of the positions before.
        TraceError
            In a function that is traced.
        """
        start, stop = self.length, self.length + key.shape[-2]
        if stop > self.max_length:
            raise OutOfRangeError(
                f"{stop} positions in a cache for {self.max_length}",
                hint="Call reset() for another sequence; or make a longer cache",
                operation="KeyValueCache",
            )
        if running_trace() is not None:
            raise TraceError(
                "the number of positions before would be a constant of the program",
                hint="Trace a function of keys and values that are arguments, and a mask of those "
                "that are there",
                operation="KeyValueCache",
            )
        _check_untracked("KeyValueCache", key, value)
        memory = self._memory
        if memory is None or (not start and not _fits(memory[0], key)):
            memory = self._memory = (self._allocated(key), self._allocated(value))
        elif not _fits(memory[0], key):
            raise ShapeError(
                f"{_described(key)} after {_described(memory[0][..., :start, :])}",
                hint="All but the length stays; call reset() for other sequences",
                operation="KeyValueCache",
            )
        memory[0][..., start:stop, :] = key
        memory[1][..., start:stop, :] = value
        self.length = stop
        return memory[0][..., :stop, :], memory[1][..., :stop, :]

    def reset(self) -> None:
        """Begin with another sequence; the memory stays."""
        self.length = 0

    def _allocated(self, x: Tensor) -> Tensor:
        return zeros(self._shape(x, self.max_length), dtype=number_dtype(x), device=x.device)

    @staticmethod
    def _shape(x: Tensor, length: int) -> Shape:
        return (*x.shape[:-2], length, x.shape[-1])


class CrossAttentionCache:
    """Keys and values of a memory, such as the output of an encoder, which are computed once.

    Examples
    --------
    >>> import burn
    >>> attention = burn.nn.MultiHeadAttention(8, 2)
    >>> memory, cache = burn.ones((1, 5, 8)), burn.nn.CrossAttentionCache()
    >>> attention(burn.ones((1, 1, 8)), memory, cache=cache).shape
    (1, 1, 8)
    >>> cache
    CrossAttentionCache(length=5)
    """

    def __init__(self) -> None:
        self.contents: tuple[Tensor, Tensor] | None = None

    def __repr__(self) -> str:
        return f"CrossAttentionCache(length={self.length})"

    @property
    def length(self) -> int:
        """Number of positions of the memory; 0 before the first call."""
        return 0 if self.contents is None else self.contents[0].shape[-2]

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keep keys and values.

        Parameters
        ----------
        key, value : Tensor, shape (..., S, D)
            Untracked.

        Returns
        -------
        (Tensor, Tensor)
            Both.

        Raises
        ------
        AutodiffError
            If one is tracked.
        """
        _check_untracked("CrossAttentionCache", key, value)
        self.contents = (key, value)
        return self.contents

    def reset(self) -> None:
        """Forget the memory: the next call computes keys and values of its own."""
        self.contents = None


def _check_untracked(operation: str, *tensors: Tensor) -> None:
    if any(tensor.is_tracked for tensor in tensors):
        raise AutodiffError(
            "keys and values to keep are tracked, so the graph of all steps would be kept too",
            hint="Generate inside burn.no_grad(), or move the model to a device without autodiff; "
            "for gradients call it on the whole sequence",
            operation=operation,
        )


def _described(x: Tensor) -> str:
    return f"{x.dtype} keys of shape {x.shape} on {x.device.name}"


def _fits(memory: Tensor, x: Tensor) -> bool:
    """Whether an input has the shape of a cache's memory but for the length."""
    return (
        memory.shape[:-2] == x.shape[:-2]
        and memory.shape[-1] == x.shape[-1]
        and memory.dtype is x.dtype
        and memory.device is x.device
    )
