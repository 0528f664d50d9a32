"""Errors that only the values in a tensor show: indices out of range, and what becomes one.

Every backend finds indices that are out of range, no later than the next read of a result. So what
else a value must not be is found in the same way: it is replaced by an index that no axis has, and
`index_error` knows from that index what was wrong.
"""

from __future__ import annotations

import enum
from typing import Final

from burn.dtype import DType, int32, int64
from burn.errors import OutOfRangeError

__all__ = ["Refusal", "index_error", "refused_index"]


class Refusal(enum.IntEnum):
    """What is wrong with a value."""

    LABEL = 0
    BLANK = 1
    WEIGHT = 2
    PROBABILITY = 3


def refused_index(dtype: DType, refusal: Refusal) -> int:
    """The index, of int32 or int64, that stands for a value that is refused."""
    return dtype.integer_range[0] + refusal


def index_error(index: int, length: int) -> OutOfRangeError:
    """The error for an index that a tensor held, in [-length, length) or for labels [0, length)."""
    refusal = _REFUSALS.get(index)
    if refusal is Refusal.WEIGHT:
        return OutOfRangeError(
            "a weight is negative or not finite, or all weights of a row are 0",
            hint="Each row needs a positive, finite sum",
            operation="random.categorical",
        )
    if refusal is Refusal.PROBABILITY:
        return OutOfRangeError(
            "a target is not in [0, 1]",
            hint="The targets are probabilities",
            operation="binary_cross_entropy_with_logits",
        )
    what = f"index {index}" if refusal is None else _LABELS[refusal]
    return OutOfRangeError(
        f"{what} is out of range for an axis of length {length}",
        hint=f"The first is 0, the last {length - 1}" if length else "The axis is empty",
    )


_LABELS: Final = {
    Refusal.LABEL: "a negative label, row or length",
    Refusal.BLANK: "the blank as a label",
}
_REFUSALS: Final = {
    refused_index(dtype, refusal): refusal for dtype in (int32, int64) for refusal in Refusal
}
