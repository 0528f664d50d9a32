"""A metric of how well scores rank the examples of one class above those of the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.functions.elementwise import abs as abs_of, clip, floor, isnan
from burn.functions.searching import where
from burn.ops.arguments import as_integer
from burn.train._labels import as_classes, check_targets, counts_of, in_range, optional_integer
from burn.train._sums import precise
from burn.train.metrics import Layouts, Metric

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["AUROC"]

_LARGEST: Final = 1e30
"""Scores are clipped to it: the next step divides, and infinity by infinity is NaN."""


class AUROC(Metric):
    """Area under the receiver operating characteristic of two classes.

    It is the probability that a random example of class 1 has a higher score than one of class 0,
    where equal scores count half (Hanley and McNeil, 1982). Scores are logits or probabilities.

    Parameters
    ----------
    bins : int
        Scores ``x`` are counted in so many equal parts of the range of ``x / (1 + abs(x))``, and
        those in one part count as equal: scores that are nearer to each other than about
        ``2 * (1 + abs(x)) ** 2 / bins``.
    ignore_index : int, optional
        A target that does not count.

    Notes
    -----
    The counts add up on the device, which sorted scores would not. The error is at most half the
    share of the pairs of examples of both classes that have scores in one part. Divide scores far
    above 100 by a number: their order alone counts.

    Examples
    --------
    >>> import burn
    >>> from burn.train import AUROC
    >>> auroc = AUROC()
    >>> scores = burn.asarray([-1.0, 0.3, 0.2, 2.0], device="cpu")
    >>> auroc.update(scores, burn.asarray([0, 0, 1, 1], device="cpu"))
    >>> auroc.compute()
    0.75
    """

    def __init__(self, bins: int = 8192, *, ignore_index: int | None = None) -> None:
        self.bins = as_integer(bins, "bins", "AUROC", least=2)
        self.ignore_index = optional_integer(ignore_index, "ignore_index", "AUROC")

    def update(self, scores: Tensor, targets: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        scores : Tensor
            Of class 1.
        targets : Tensor
            0 or 1, in the shape of `scores`. Another one is an error of `compute`, as it is known
            then.

        Raises
        ------
        ShapeError
            If the shapes differ.
        OperandTypeError
            If an argument is neither a tensor nor an array.
        """
        scores, targets = self._inputs(scores=scores, targets=targets)
        if scores.shape != targets.shape:
            raise ShapeError(
                f"scores have shape {scores.shape}, and targets {targets.shape}",
                hint="Pass the score of class 1 for each target, such as logits[:, 1] - "
                "logits[:, 0]",
                operation="AUROC.update",
            )
        x = precise(scores)
        finite = clip(where(isnan(x), 0.0, x), min=-_LARGEST, max=_LARGEST)
        share = 0.5 + 0.5 * finite / (1.0 + abs_of(finite))
        index = as_classes(clip(floor(share * self.bins), max=self.bins - 1))
        index = where(isnan(x), self.bins, index)
        wanted = as_classes(targets)
        index = where(in_range(targets, 2), index + wanted * (self.bins + 2), self.bins + 1)
        if self.ignore_index is not None:
            index = where(wanted == self.ignore_index, 2 * self.bins + 3, index)
        self.add(counts=counts_of(index.reshape(-1), 2 * self.bins + 4))

    def _expected(self) -> Layouts:
        return {"counts": ((2 * self.bins + 4,), False)}

    def compute(self) -> float:
        """The area for all updates so far.

        Returns
        -------
        float
            In [0, 1], 0.5 for scores at random; NaN if a score is. Reading it waits for the device.

        Raises
        ------
        ArgumentError
            If there was no update, or if there are not targets of both classes.
        OutOfRangeError
            If a target was neither 0 nor 1.
        """
        counts = self.sums()["counts"].reshape(2, -1)
        check_targets(int(counts[0, -1]), "AUROC.compute")
        below, above = counts[:, : self.bins].astype(np.float64)
        pairs = below.sum() * above.sum()
        if counts[:, self.bins].any():
            return math.nan
        if not pairs:
            raise ArgumentError(
                f"there are {below.sum():g} targets of class 0, and {above.sum():g} of class 1",
                hint="There must be some of both",
                operation="AUROC.compute",
            )
        lower = np.cumsum(below) - below / 2
        return float(above @ lower / pairs)
