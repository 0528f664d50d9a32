"""Errors about the values in a tensor: indices out of range, and other invalid values.

Every backend reports an index out of range, at the latest when a result is read. Other invalid
values are reported the same way: a decomposition replaces them by an index that no axis has, and
`index_error` tells from that index what was wrong.
"""

from __future__ import annotations

import enum
from typing import Final

from burn.dtype import DType, int32, int64
from burn.errors import OutOfRangeError

__all__ = ["InvalidValue", "index_error", "invalid_value_index", "is_about_values"]


class InvalidValue(enum.IntEnum):
    """What is invalid: a label, the blank as a label, a weight, a probability, and so on."""

    LABEL = 0
    BLANK = 1
    WEIGHT = 2
    PROBABILITY = 3
    QUANTILE = 4
    RANGE = 5
    EDGES = 6
    ALL_NAN = 7
    FEW_WEIGHTS = 8


def invalid_value_index(dtype: DType, value: InvalidValue) -> int:
    """The index, in int32 or int64, that marks an invalid value."""
    return dtype.integer_range[0] + value


def index_error(index: int, length: int) -> OutOfRangeError:
    """The error for an index out of range, or for an index that marks an invalid value."""
    invalid = _BY_INDEX.get(index)
    if invalid is InvalidValue.WEIGHT:
        return OutOfRangeError(
            "a weight is negative or not finite, or all weights of a row are 0",
            hint="Each row needs a positive, finite sum",
            operation="random.categorical",
        )
    if invalid is InvalidValue.PROBABILITY:
        return OutOfRangeError(
            "a target is not in [0, 1]",
            hint="The targets are probabilities",
            operation="binary_cross_entropy_with_logits",
        )
    if invalid is not None and invalid in _RULES:
        rule, hint = _RULES[invalid]
        return OutOfRangeError(rule, hint=hint)
    what = f"index {index}" if invalid is None else _LABELS[invalid]
    return OutOfRangeError(
        f"{what} is out of range for an axis of length {length}",
        hint=f"The first is 0, the last {length - 1}" if length else "The axis is empty",
    )


def is_about_values(error: OutOfRangeError) -> bool:
    """Whether an error is about other values than an index: its operands are those of a check."""
    return error.rule in {rule for rule, _ in _RULES.values()}


_LABELS: Final = {
    InvalidValue.LABEL: "a negative label, row or length",
    InvalidValue.BLANK: "the blank as a label",
}
_RULES: Final = {
    InvalidValue.QUANTILE: ("q is not in [0, 1]", "The median is q = 0.5"),
    InvalidValue.RANGE: (
        "the elements have no finite range",
        "Give range=(low, high), which leaves out NaN and infinities",
    ),
    InvalidValue.EDGES: ("the edges of bins are not in ascending order", "Sort them"),
    InvalidValue.ALL_NAN: ("all elements of a slice are NaN", "Replace NaN before"),
    InvalidValue.FEW_WEIGHTS: (
        "a weight is negative or not finite, or fewer weights are positive than are drawn",
        "Draw fewer elements; with replacement, one positive weight is enough",
    ),
}
_BY_INDEX: Final = {
    invalid_value_index(dtype, value): value for dtype in (int32, int64) for value in InvalidValue
}
