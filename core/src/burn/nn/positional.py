"""Encodings of positions. Positions that are learned are an `Embedding`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.devices import outside_of_traces
from burn.errors import ArgumentError, OutOfRangeError, ShapeError
from burn.functions.creation import asarray
from burn.functions.manipulation import expand_dims
from burn.functions.normalize import number_dtype
from burn.nn import functional as F
from burn.nn.module import Module
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.dtype import DType
    from burn.tensor.tensor import Tensor

__all__ = ["RotaryEncoding", "SinusoidalEncoding"]


class RotaryEncoding(Module):
    """Rotation of queries and keys by angles that grow with the position.

    Parameters
    ----------
    head_dim : int
        Number of features of a head.
    max_length : int
        Number of positions.
    base : float
        Feature pair i turns by ``base ** (-2 * i / R)`` from a position to the next, where R is
        the number of features that are rotated.
    fraction : float
        Which part of the features is rotated: 1.0 for all, 0.25 in GPT-NeoX and Pythia.
    scaling : float
        Positions are divided by it, for sequences longer than those of the training (Chen et al.,
        2023, arXiv:2306.15595).
    interleaved : bool
        Whether neighbours are a pair, as in the paper and GPT-J; without it a feature of the first
        half and one of the second, as in GPT-NeoX and Llama.

    Raises
    ------
    ArgumentError
        If the number of rotated features is odd.

    Notes
    -----
    Su et al., 2021, arXiv:2104.09864. Angles are computed in float64, once for a device and dtype.

    Examples
    --------
    >>> import burn
    >>> rotary = burn.nn.RotaryEncoding(2, 128)
    >>> rotary(burn.asarray([[1.0, 0.0]], device="cpu"), offset=0).tolist()
    [[1.0, 0.0]]
    >>> attention = burn.nn.MultiHeadAttention(8, 4, rotary=rotary)
    """

    def __init__(
        self,
        head_dim: int,
        max_length: int,
        *,
        base: float = 10000.0,
        fraction: float = 1.0,
        scaling: float = 1.0,
        interleaved: bool = False,
    ) -> None:
        self.head_dim, self.max_length = head_dim, max_length
        self.base, self.fraction, self.scaling = base, fraction, scaling
        self.interleaved = interleaved
        as_integer(head_dim, "head_dim", "nn.RotaryEncoding")
        as_integer(max_length, "max_length", "nn.RotaryEncoding")
        real_number(fraction, "fraction", "nn.RotaryEncoding")
        if round(head_dim * fraction) % 2:
            raise ArgumentError(
                f"{fraction} of {head_dim} features are an odd number",
                hint="Features are rotated in pairs",
                operation="nn.RotaryEncoding",
            )
        self._tables = _Tables()

    def forward(self, x: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """Queries or keys of shape (..., T, D), rotated.

        Parameters
        ----------
        x : Tensor, shape (..., T, D)
            The heads stand before the positions: (N, H, T, D).
        offset : int
            Position of the first: the length of a cache.
        positions : Tensor of int, shape (T,) or (N, T), optional
            The positions, of each example its own; in lieu of `offset`.
        """
        if x.shape[-1:] != (self.head_dim,):
            raise ShapeError(
                f"an input of shape {x.shape} for heads of {self.head_dim} features",
                hint="(..., length, head_dim)",
                operation="nn.RotaryEncoding",
            )
        tables = self._tables.of(x, self._make)
        cosine, sine = (_rows(table, x, offset, positions, has_heads=True) for table in tables)
        return F.rotary_embedding(x, cosine, sine, interleaved=self.interleaved)

    def _make(self) -> tuple[np.ndarray[Any, Any], ...]:
        rotated = round(self.head_dim * self.fraction)
        angles = _angles(np.arange(self.max_length) / self.scaling, rotated, self.base)
        return np.cos(angles), np.sin(angles)


class SinusoidalEncoding(Module):
    """Sines and cosines of the position, added to the features.

    Parameters
    ----------
    embed_dim : int
        Number of features.
    max_length : int
        Number of positions.
    base : float
        Features ``2 * i`` and ``2 * i + 1`` are the sine and the cosine of
        ``position * base ** (-2 * i / embed_dim)``.

    Notes
    -----
    Vaswani et al., 2017, arXiv:1706.03762, section 3.5. The table is computed in float64, once for
    a device and dtype.

    Examples
    --------
    >>> import burn
    >>> encoding = burn.nn.SinusoidalEncoding(4, 128)
    >>> encoding(burn.zeros((1, 4), device="cpu")).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """

    def __init__(self, embed_dim: int, max_length: int, *, base: float = 10000.0) -> None:
        self.embed_dim, self.max_length, self.base = embed_dim, max_length, base
        self._tables = _Tables()

    def forward(self, x: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """The features with their encoding added.

        Parameters
        ----------
        x : Tensor, shape (..., T, embed_dim)
            The features.
        offset : int
            Position of the first.
        positions : Tensor of int, shape (T,) or (N, T), optional
            The positions, of each example its own; in lieu of `offset`.
        """
        (table,) = self._tables.of(x, self._make)
        return x + _rows(table, x, offset, positions)

    def _make(self) -> tuple[np.ndarray[Any, Any], ...]:
        angles = _angles(np.arange(self.max_length), self.embed_dim, self.base)
        table = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
        return (table.reshape(self.max_length, -1)[:, : self.embed_dim],)


class _Tables:
    """Constants of a module by device and dtype. Pickles and copies start without them."""

    def __init__(self) -> None:
        self._found: dict[tuple[Device, DType], tuple[Tensor, ...]] = {}

    def of(
        self, x: Tensor, make: Callable[[], tuple[np.ndarray[Any, Any], ...]]
    ) -> tuple[Tensor, ...]:
        """The tensors to compute with an input, made of arrays at first."""
        device = x.device.untraced.hardware
        dtype = number_dtype(x)
        found = self._found.get((device, dtype))
        if found is None:
            with outside_of_traces():  # they outlive a trace
                found = tuple([asarray(array, dtype=dtype, device=device) for array in make()])
            self._found[device, dtype] = found
        return found

    def __reduce__(self) -> tuple[type[_Tables], tuple[()]]:
        return _Tables, ()


def _angles(positions: np.ndarray[Any, Any], count: int, base: float) -> np.ndarray[Any, Any]:
    """The angle of each position and pair of features."""
    frequencies = base ** -(np.arange(0, count, 2) / max(count, 1))
    return np.outer(positions, frequencies)


def _rows(
    table: Tensor, x: Tensor, offset: int, positions: Tensor | None, *, has_heads: bool = False
) -> Tensor:
    """The rows of a table for the positions of an input; they broadcast with it."""
    if positions is not None:
        rows = F.embedding(table, positions)
        return expand_dims(rows, axis=-3) if has_heads and positions.shape[:-1] else rows
    if len(x.shape) < 2:
        raise ShapeError(
            f"an input of shape {x.shape} has no positions",
            hint="(..., length, features)",
            operation="positional encoding",
        )
    stop = offset + x.shape[-2]
    if offset < 0 or stop > table.shape[0]:
        raise OutOfRangeError(
            f"positions from {offset} to {stop - 1} of {table.shape[0]}",
            hint="Increase max_length",
            operation="positional encoding",
        )
    return table[offset:stop]
