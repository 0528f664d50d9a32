"""Datasets in parts by chance: `split`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.data._rows import as_list
from burn.data.datasets import Subset, checked_dataset
from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["split"]

_MAX_ERROR_OF_SHARES = 1e-6
"""Shares that are rounded, such as thirds, add up to 1 with at most this error."""


def split(
    dataset: Any, shares: Sequence[float], *, seed: int = 0, stratify: Any = None
) -> list[Subset]:
    """Random parts of a dataset, which have no example in common.

    Parameters
    ----------
    dataset : dataset
        Any object with ``__len__`` and ``__getitem__``.
    shares : sequence of float or of int
        The size of each part: shares that add up to 1, or numbers of examples that add up to all.
    seed : int
        The same seed makes the same parts, on every machine.
    stratify : sequence, optional
        A label of each example. Then each part has its share of every label, to an example or two.

    Returns
    -------
    list of Subset
        A part for each share, its examples in random order. The sizes are exact: a part of a share
        has the nearest number of examples with which all of them add up.

    Raises
    ------
    ArgumentError
        If the shares do not add up, one is negative, or there is none.
    OperandTypeError
        If a share is no number, or the dataset has no length or no examples by index.
    ShapeError
        If there is not one label for each example.

    Examples
    --------
    >>> from burn.data import split
    >>> training, held_out = split(range(10), [0.8, 0.2])
    >>> len(training), len(held_out), sorted([*training, *held_out]) == list(range(10))
    (8, 2, True)
    >>> labels = ["cat"] * 5 + ["dog"] * 5
    >>> sorted(split(labels, [0.6, 0.4], stratify=labels)[1])
    ['cat', 'cat', 'dog', 'dog']
    """
    length = len(checked_dataset(dataset, "split"))
    counts = _counts(shares, length)
    generator = np.random.Generator(np.random.Philox(as_integer(seed, "seed", "split", least=0)))
    order = generator.permutation(length)
    if stratify is None:
        parts = np.split(order, np.cumsum(counts)[:-1])
        return [Subset(dataset, part) for part in parts]
    labels = _codes(stratify, length)
    order = order[np.argsort(labels[order], kind="stable")]
    number = _interleaved(counts)
    parts = [generator.permutation(order[number == index]) for index in range(len(counts))]
    return [Subset(dataset, part) for part in parts]


def _counts(shares: Any, length: int) -> list[int]:
    """Numbers of examples of the parts, by their shares."""
    wanted = as_list(shares, "[0.8, 0.2] makes two parts", "split")
    if not wanted:
        raise ArgumentError("there is no share", operation="split")
    for share in wanted:
        if isinstance(share, bool) or not isinstance(share, (int, float, np.integer, np.floating)):
            raise OperandTypeError(f"{share!r} is no number", operation="split")
        if not share >= 0:
            raise ArgumentError(f"a share is {share}", hint="Use 0 or more", operation="split")
    if all(isinstance(share, (int, np.integer)) for share in wanted) and sum(wanted) == length:
        return [int(share) for share in wanted]
    total = math.fsum(wanted)
    if abs(total - 1) > _MAX_ERROR_OF_SHARES:
        raise ArgumentError(
            f"{wanted} add up to {total:g}",
            hint=f"Shares add up to 1, numbers of examples to {length}",
            operation="split",
        )
    exact = [share / total * length for share in wanted]
    counts = [math.floor(item + _MAX_ERROR_OF_SHARES) for item in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: counts[index] - exact[index])
    for index in by_remainder[: length - sum(counts)]:
        counts[index] += 1
    return counts


def _codes(labels: Any, length: int) -> npt.NDArray[np.intp]:
    """Labels as numbers of distinct ones."""
    found = labels.numpy() if hasattr(labels, "numpy") else labels
    try:
        values = np.asarray(found)
    except ValueError:  # nested lists of different lengths
        values = np.asarray(found, dtype=object)
    hint = "stratify= has a number or a string for each example"
    if values.shape != (length,):
        raise ShapeError(
            f"labels of shape {values.shape} for {length} examples", hint=hint, operation="split"
        )
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError as error:
        raise OperandTypeError(
            f"labels cannot be compared: {error}", hint=hint, operation="split"
        ) from None


def _interleaved(counts: list[int]) -> npt.NDArray[np.intp]:
    """Numbers of parts in an order in which any stretch has nearly its share of each."""
    # Example j of a part of n is due at (j + 1/2) / n of the way.
    due = np.concatenate([(np.arange(count) + 0.5) / max(count, 1) for count in counts])
    return np.repeat(np.arange(len(counts)), counts)[np.argsort(due, kind="stable")]
