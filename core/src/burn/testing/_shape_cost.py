"""What a new shape costs on a device, and which checks are left where that is much."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from burn.dtype import float16, float32, int32
from burn.ops import REGISTRY, resolve
from burn.testing._check import Check, Result
from burn.testing._check_selection import Selection
from burn.testing.op_samples import SAMPLES, Sample
from burn.testing.subject import Subject
from burn.testing.suites import SUITES, checks_of

__all__ = ["ShapeCost", "distinct_calls", "listed", "needs_few_shapes"]

_LENGTHS: Final = (37, 41, 43, 47, 53)
"""Lengths of vectors that are added, each first once and then again."""

_SLOW_SECONDS: Final = 0.004
"""What a new shape costs, at least, with a library that compiles for it."""

_RATIO: Final = 8.0
"""How much more than a call of a known shape that is, at least."""


_COMMON_SHAPE: Final = (3, 4)
"""The shape that most samples have."""


_OF_DERIVED_OPS: Final = ("values", "settings", "gradients")
"""Suites in which few shapes are tried of ops that are made of others."""


_DRAWS: Final = ("rank 0", "long 1", "part 2")
"""Draws that are made all the same: many bugs show in them alone, and ops share their shapes."""

_NARROW: Final = ("16-bit", "float16")
"""What names of samples have that go wrong in 16-bit floats alone."""

_LEFT_OUT: Final = (
    *("functions", "function_transforms", "silence"),
    *("quantization", "quantized_tensors"),
)
"""Suites of what core makes of ops, and of all samples."""


@dataclass(frozen=True)
class ShapeCost:
    """What a call takes whose shapes are new to the library, and the same call again.

    Attributes
    ----------
    new, known : float
        Medians, in seconds.
    """

    new: float
    known: float

    @classmethod
    def of(cls, subject: Subject) -> Self:
        """Add and multiply vectors of some lengths; zeros where the device cannot."""
        dtype = float32 if subject.supports(float32) else int32
        backend = subject.backend.wrapped if subject.compiles else subject.backend
        table = resolve(backend, subject.device)
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
        return cls(statistics.median(new), statistics.median(known))

    @property
    def is_high(self) -> bool:
        """Whether the library seems to compile a program for each shape."""
        return self.new > _SLOW_SECONDS and self.new > _RATIO * self.known

    def as_json(self) -> dict[str, float]:
        """The same for programs."""
        return {"new_seconds": self.new, "known_seconds": self.known}

    @classmethod
    def of_json(cls, record: Mapping[str, float]) -> Self:
        """The costs that `as_json` wrote."""
        return cls(record["new_seconds"], record["known_seconds"])

    def __str__(self) -> str:
        return (
            f"a call with new shapes takes {self.new * 1000:.3g} ms, and the same call again "
            f"{self.known * 1000:.3g} ms"
        )


def needs_few_shapes(wanted: bool | None, selection: Selection, cost: ShapeCost) -> bool:
    """Whether to try few shapes: as it is wanted, or where a quick run would take long."""
    return selection.quick and cost.is_high if wanted is None else wanted


def listed(subject: Subject, selection: Selection, *, few_shapes: bool) -> Iterator[Check]:
    """The checks of a subject."""
    checks = checks_of(subject, selection)
    return _with_few_shapes(subject, checks) if few_shapes else checks


def _with_few_shapes(subject: Subject, checks: Iterable[Check]) -> Iterator[Check]:
    """Of checks, those for which a library has to compile little.

    Each suite tries one sample of each op, ``values`` one with each dtype and those that go wrong
    in 16-bit floats alone, and ``draws`` one of each sort. It is one whose shape other ops have
    too, if there is one: then they share the parts that they are made of. Ops that are made of
    others are tried by the suites about results and gradients alone, with one dtype.
    """
    chosen: dict[Any, tuple[int, Check]] = {}
    for check in checks:
        is_native = _is_native(subject, check)
        if check.suite in _LEFT_OUT or not (is_native or check.suite in _OF_DERIVED_OPS):
            continue
        part: Any = check.dtype if is_native and check.suite == "values" else None
        if check.suite == "draws" and check.note in _DRAWS:
            part = check.note
        if check.dtype is float16 and any(one in check.note for one in _NARROW):
            part = part, check.note
        key = (check.suite, check.op, part) if check.op else check.name
        preference = _preference(check)
        if key not in chosen or preference > chosen[key][0]:
            chosen[key] = preference, check
    yield from [check for _, check in chosen.values()]


def _is_native(subject: Subject, check: Check) -> bool:
    """Whether a check is about no op, or one of the backend, or a public function."""
    if check.op not in REGISTRY or SUITES[check.suite].of_functions:
        return True
    return subject.table.origin(REGISTRY[check.op]) == "native"


def _preference(check: Check) -> int:
    """How much the sample of a check is like those of other ops."""
    samples = SAMPLES[check.op].samples if check.op in SAMPLES else ()
    notes = (check.note, check.note.rpartition(", ")[0])
    preference = 0
    for one in samples:
        if one.note in notes:
            shapes = [operand.shape for operand in one.operands if isinstance(operand, np.ndarray)]
            if shapes and len(shapes[0]) > 1 and 0 not in shapes[0]:
                preference = 4 if shapes[0] == _COMMON_SHAPE else 2
            break
    return preference + int(check.dtype is float32)


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
