"""What a new shape costs on a device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from burn.dtype import float32, int32
from burn.testing._check import Result
from burn.testing.op_samples import SAMPLES, Sample
from burn.testing.subject import Subject

__all__ = ["ShapeCost", "distinct_calls"]

_LENGTHS: Final = (37, 41, 43, 47, 53)
"""Lengths of vectors that are added, each first once and then again."""

_SLOW_SECONDS: Final = 0.004
"""What a new shape costs, at least, with a library that compiles for it."""

_SLOW_PROGRAM_SECONDS: Final = 0.5
"""The same where each call is compiled as a program, which is slow in any case."""

_RATIO: Final = 8.0
"""How much more than a call of a known shape that is, at least."""


@dataclass(frozen=True)
class ShapeCost:
    """What a call takes whose shapes are new to the library, and the same call again.

    Attributes
    ----------
    new, known : float
        Medians, in seconds.
    of_programs : bool
        Whether the calls are compiled as programs.
    """

    new: float
    known: float
    of_programs: bool = False

    @classmethod
    def of(cls, subject: Subject) -> Self:
        """Add and multiply vectors of some lengths; zeros where the device cannot."""
        dtype = float32 if subject.supports(float32) else int32
        table = subject.table
        times: list[list[float]] = [[], []]
        try:
            for length in _LENGTHS:
                x = subject.upload(np.ones(length, dtype.numpy))
                for seconds in times:
                    start = time.perf_counter()
                    subject.read(table.multiply(table.add(x, x), x))
                    seconds.append(time.perf_counter() - start)
        except Exception:  # noqa: BLE001 — checks will say what does not work
            return cls(0.0, 0.0)
        new, known = times
        return cls(statistics.median(new), statistics.median(known), subject.compiles)

    @property
    def is_high(self) -> bool:
        """Whether the library seems to compile a program for each shape."""
        slow = _SLOW_PROGRAM_SECONDS if self.of_programs else _SLOW_SECONDS
        return self.new > slow and self.new > _RATIO * self.known

    def as_json(self) -> dict[str, float]:
        """The same for programs."""
        costs = {"new_seconds": self.new, "known_seconds": self.known}
        return {**costs, "of_programs": self.of_programs}

    @classmethod
    def of_json(cls, record: Mapping[str, float]) -> Self:
        """The costs that `as_json` wrote."""
        return cls(record["new_seconds"], record["known_seconds"], bool(record["of_programs"]))

    def __str__(self) -> str:
        return (
            f"a call with new shapes takes {self.new * 1000:.3g} ms, and the same call again "
            f"{self.known * 1000:.3g} ms"
        )


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
    return tuple(map(_shape, one.operands)), repr(one.attributes)


def _shape(operand: Any) -> Any:
    if isinstance(operand, list):
        return tuple(map(_shape, operand))
    return operand.shape if isinstance(operand, np.ndarray) else type(operand)
