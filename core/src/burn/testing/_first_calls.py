"""What first calls cost: a library that compiles for each shape takes its time there."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from burn.testing._check import Result
from burn.testing.op_samples import SAMPLES, Sample

__all__ = ["FirstCalls", "distinct_calls"]

_RATIO: Final = 4.0
"""How much longer than a later call a first one takes, at least, where it is worth a line."""

_NOTICEABLE_SECONDS: Final = 0.003
"""Less than this a first call takes anyway: NumPy's reference is computed then too."""


@dataclass(frozen=True)
class FirstCalls:
    """What calls take that are the first with their op, shapes and dtype, and the same calls later.

    The suites ``values`` and ``settings`` make the same call, one after the other.

    Attributes
    ----------
    count : int
        How many calls were made in both suites.
    first, later : float
        Medians, in seconds.
    """

    count: int
    first: float
    later: float

    @classmethod
    def of(cls, results: Iterable[Result]) -> Self | None:
        """What results say of it; None if no call was made twice."""
        seconds: dict[str, dict[Any, float]] = {"values": {}, "settings": {}}
        for result in results:
            check = result.check
            if check.suite in seconds:
                seconds[check.suite][check.op, check.dtype, check.note] = result.seconds
        pairs = [
            (seconds["values"][call], later)
            for call, later in seconds["settings"].items()
            if call in seconds["values"]
        ]
        if not pairs:
            return None
        first, later = [statistics.median(column) for column in zip(*pairs, strict=True)]
        return cls(len(pairs), first, later)

    @property
    def are_slow(self) -> bool:
        """Whether the first call of a shape takes so much longer that it says why a run is slow."""
        return self.first > max(_NOTICEABLE_SECONDS, _RATIO * self.later)

    def __str__(self) -> str:
        return (
            f"the first call of an op with given shapes and dtypes takes "
            f"{self.first * 1000:.3g} ms, the same call later {self.later * 1000:.3g} ms "
            f"(medians of {self.count} calls)"
        )

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {"count": self.count, "first_seconds": self.first, "later_seconds": self.later}


def distinct_calls(op: str, results: Iterable[Result]) -> int:
    """How many of the calls of an op differ in shapes, dtype or attributes."""
    samples = {one.note: one for one in SAMPLES[op].samples}
    return len(
        {
            (result.check.dtype, _form(samples[result.check.note]))
            for result in results
            if result.check.suite in ("values", "settings") and result.check.note in samples
        }
    )


def _form(one: Sample) -> tuple[Any, ...]:
    attributes: Mapping[str, Any] = one.attributes
    return tuple(map(_shape, one.operands)), repr(attributes)


def _shape(operand: Any) -> Any:
    if isinstance(operand, list):
        return tuple(map(_shape, operand))
    return operand.shape if isinstance(operand, np.ndarray) else type(operand)
