"""What a new shape, or a new program, costs on a device."""

from __future__ import annotations

import functools
import secrets
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from burn.compiler import compiled
from burn.dtype import DType, float32, int32
from burn.ir import GraphIr, OperationIr, Status, TensorIr
from burn.testing._check import Result
from burn.testing.op_samples import SAMPLES, Sample
from burn.testing.subject import Subject

__all__ = ["ShapeCost", "distinct_calls"]

_LENGTHS: Final = (37, 41, 43, 47, 53)
"""Lengths of vectors, each computed with once and then again."""

_OPS: Final = ("add", "maximum", "minimum", "subtract", "multiply")
"""Ops of two operands, of which programs are made."""

_OPERATIONS: Final = 8
"""Operations of a program, drawn of those: it is new to caches on disk too."""

_SLOW_SECONDS: Final = 0.004
"""What a new shape costs, at least, with a library that compiles for it."""

_SLOW_PROGRAM_SECONDS: Final = 0.02
"""What a new program costs, at least, where few are to be compiled."""

_RATIO: Final = 8.0
"""How much more than a call of a known shape that is, at least."""

_LONG_SECONDS: Final = 300.0
"""How long a run compiles, at least, if few programs are to be compiled: one for each check.

Many checks have several programs, so such a run takes longer.
"""


@dataclass(frozen=True)
class ShapeCost:
    """What a call takes whose shapes are new to the library, and the same call again.

    Attributes
    ----------
    new, known : float
        Medians, in seconds.
    of_programs : bool
        Whether the calls are small programs, whose operations are new as well.
    """

    new: float
    known: float
    of_programs: bool = False

    @classmethod
    def of(cls, subject: Subject) -> Self:
        """Calls of ops, or programs of a compiled subject; zeros where the device cannot."""
        dtype = float32 if subject.supports(float32) else int32
        times: list[tuple[float, float]] = []
        try:
            for length in _LENGTHS:
                x = subject.upload(np.ones(length, dtype.numpy))
                run = _program(subject, length, dtype) if subject.compiles else _calls(subject)
                times.append((_seconds(subject, run, x), _seconds(subject, run, x)))
        except Exception:  # noqa: BLE001 — checks will say what does not work
            return cls(0.0, 0.0)
        new, known = map(statistics.median, zip(*times, strict=True))
        return cls(new, known, subject.compiles)

    @property
    def is_high(self) -> bool:
        """Whether the library seems to compile a program for each shape, or for each program."""
        slow = _SLOW_PROGRAM_SECONDS if self.of_programs else _SLOW_SECONDS
        return self.new > slow and self.new > _RATIO * self.known

    def is_high_for(self, checks: int) -> bool:
        """Whether a run of so many checks is to have few shapes.

        A call of a new shape is slow or fast. How slow a program is depends on what compiles it,
        so programs count by the time that a run takes for them.
        """
        return self.is_high and not (self.of_programs and self.new * checks < _LONG_SECONDS)

    def as_json(self) -> dict[str, float]:
        """The same for programs."""
        costs = {"new_seconds": self.new, "known_seconds": self.known}
        return {**costs, "of_programs": self.of_programs}

    @classmethod
    def of_json(cls, record: Mapping[str, float]) -> Self:
        """The costs that `as_json` wrote."""
        return cls(record["new_seconds"], record["known_seconds"], bool(record["of_programs"]))

    def __str__(self) -> str:
        what = "a new program" if self.of_programs else "a call with new shapes"
        again = "program" if self.of_programs else "call"
        return (
            f"{what} takes {self.new * 1000:.3g} ms, and the same {again} again "
            f"{self.known * 1000:.3g} ms"
        )


def _calls(subject: Subject) -> Callable[[Any], Any]:
    """Add and multiply, as calls of ops."""
    table = subject.table
    return lambda x: table.multiply(table.add(x, x), x)


def _program(subject: Subject, length: int, dtype: DType) -> Callable[[Any], Any]:
    """Several ops as one program: a library may compile only what it can fuse."""
    x = TensorIr(0, (length,), dtype)
    made = [x]
    operations = []
    for number in range(_OPERATIONS):
        made.append(TensorIr(number + 1, (length,), dtype, Status.NOT_INIT))
        name = secrets.choice(_OPS)
        operations.append(OperationIr(name, (made[number], x), {}, (made[-1],)))
    outputs = (made[-1]._replace(status=Status.READ_ONLY),)
    graph = GraphIr((x,), (), tuple(operations), outputs)
    table: Any = subject.table  # that of `Compiled`
    program = functools.cache(lambda: compiled(graph, table.table))
    return lambda x: program().run([x])[0]


def _seconds(subject: Subject, run: Callable[[Any], Any], x: Any) -> float:
    """How long a call takes whose result is read."""
    start = time.perf_counter()
    subject.read(run(x))
    return time.perf_counter() - start


def distinct_calls(op: str, results: Iterable[Result]) -> int:
    """How many of the calls of an op differ in shapes, dtype or attributes."""
    samples = {sample.note: sample for sample in SAMPLES[op].samples}
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
