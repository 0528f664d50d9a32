"""Which examples a batch has: a function of the seed and the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from burn.data.randomness import Drawing, Purpose

__all__ = ["batch_count", "batches_of_indices"]


def batch_count(length: int, batch_size: int, *, drop_last: bool) -> int:
    """Number of batches of an epoch.

    Parameters
    ----------
    length : int
        Number of examples.
    batch_size : int
        Number of examples of a batch.
    drop_last : bool
        Whether a last batch of fewer examples is left out.

    Returns
    -------
    int
        The number.
    """
    return length // batch_size if drop_last else -(-length // batch_size)


def batches_of_indices(
    length: int, batch_size: int, *, drop_last: bool, order: tuple[int, int] | None, start: int
) -> Iterator[Sequence[int]]:
    """The indices of the examples of each batch of an epoch.

    Parameters
    ----------
    length, batch_size, drop_last
        As for `batch_count`.
    order : tuple of int or None
        Seed and epoch of a random order; None for that of the dataset.
    start : int
        Index of the first batch.

    Yields
    ------
    sequence of int
        Indices.
    """
    indices: range | np.ndarray = range(length)
    if order is not None:
        indices = Drawing(*order, 0, Purpose.ORDER).generator().permutation(length)
    for batch in range(start, batch_count(length, batch_size, drop_last=drop_last)):
        chosen = indices[batch * batch_size : (batch + 1) * batch_size]
        yield list(chosen) if isinstance(chosen, range) else chosen.tolist()
