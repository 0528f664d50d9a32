"""Chosen: the checks of a run, and what it leaves out where a new shape costs much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np

from burn.dtype import bool_, complex64, float16, float32, float64, int64
from burn.ops import REGISTRY
from burn.testing._check import Check
from burn.testing._check_selection import Selection
from burn.testing.op_samples import SAMPLES
from burn.testing.sample_sorts import sorts_of
from burn.testing.shape_cost import ShapeCost
from burn.testing.subject import Subject
from burn.testing.suites import SUITES, checks_of, is_left_out

__all__ = ["Chosen"]

_COMMON_SHAPE: Final = (3, 4)
"""The shape that most samples have."""

_OF_DERIVED_OPS: Final = ("values", "settings", "gradients")
"""Suites in which few shapes are tried of ops that are made of others."""

_DRAWS: Final = ("rank 0", "long 1", "part 2")
"""Draws that are made all the same: many bugs show in them alone, and ops share their shapes."""

_NARROW: Final = ("16-bit", "float16")
"""What names of samples have that go wrong in 16-bit floats alone."""

_MOVING: Final = ("views", "interchange", "transfers")
"""Suites that move elements, of which a dtype of each size is tried."""

_OF_EACH_SIZE: Final = (None, bool_, float16, float32, int64, float64, complex64)
"""These dtypes; None: a check without a dtype."""

_FAR: Final = "index "
"""What names of error samples begin with that differ in one number: none is compiled anew."""

_LEFT_OUT: Final = (
    *("functions", "function_transforms", "silence", "wrong_calls"),
    *("quantization", "quantized_tensors"),
)
"""Suites of what core makes of ops: their calls have shapes of their own."""


@dataclass(frozen=True)
class Chosen:
    """The checks of a run.

    Attributes
    ----------
    checks : list of Check
        Those that are to be made.
    few_shapes : bool
        Whether each suite tries one sample of each op, since each new shape costs much.
    left_out : dict of str to int
        By suite, how many checks are left out for that reason.
    problem : str
        Why there is nothing to try; "" if there is.
    """

    checks: list[Check]
    few_shapes: bool
    left_out: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of(
        cls, subject: Subject, selection: Selection, cost: ShapeCost, *, few_shapes: bool | None
    ) -> Self:
        """The checks of a subject, of few shapes if that is wanted, or a quick run takes long."""
        every = list(checks_of(subject, selection))
        if few_shapes is None:
            few_shapes = selection.quick and cost.is_high_for(len(every))
        checks = list(_with_few_shapes(subject, every)) if few_shapes else every
        left_out = Counter(check.suite for check in every)
        left_out.subtract(check.suite for check in checks)
        problem = "" if checks else _why_nothing(subject, selection, few_shapes=few_shapes)
        found = {name: count for name, count in left_out.items() if count}
        return cls(checks, few_shapes, found, problem)


def _why_nothing(subject: Subject, selection: Selection, *, few_shapes: bool) -> str:
    """Which option leaves nothing to try."""
    if few_shapes and next(checks_of(subject, selection), None):
        return _nothing("a run of few shapes has none of them; try --all-shapes")
    left_out = [name for name in selection.suites if is_left_out(subject, SUITES[name])]
    if left_out and len(left_out) == len(selection.suites):
        names = " and ".join(left_out)
        option = "--minimal" if subject.hides else "--compiled"
        return _nothing(f"{option} has no checks of the suite {names}")
    for option, wider in (
        ("--quick", {"quick": False}),
        ("the lack of --large", {"large": True}),
        ("--dtype", {"dtypes": ()}),
        ("--suite", {"suites": ()}),
        ("--op", {"ops": ()}),
    ):
        if next(checks_of(subject, replace(selection, **wider)), None):
            return _nothing(f"{option} leaves none of those that the other options choose")
    return _nothing("no suite has checks of --suite, --op and --dtype together")


def _nothing(reason: str) -> str:
    return f"no check is selected: {reason}"


def _with_few_shapes(subject: Subject, checks: Iterable[Check]) -> Iterator[Check]:
    """Of checks, those for which a library has to compile little.

    Each suite tries one sample of each op, and ``draws`` one of each sort. It is one whose shape
    other ops have too, if there is one: then they share the parts that they are made of. ``values``
    tries one with each dtype, those that go wrong in 16-bit floats alone, and of each op that the
    backend has itself one of each sort of samples. Ops that are made of others are tried by the
    suites about results and gradients alone, with one dtype.
    """
    chosen: dict[Any, tuple[int, Check]] = {}
    others: dict[str, list[Check]] = {}
    for check in checks:
        is_native = _is_native(subject, check)
        if check.suite in _LEFT_OUT or not (is_native or check.suite in _OF_DERIVED_OPS):
            continue
        if check.suite in _MOVING and check.dtype not in _OF_EACH_SIZE:
            continue
        if check.suite == "values" and is_native:
            others.setdefault(check.op, []).append(check)
        part: Any = check.dtype if is_native and check.suite == "values" else None
        if check.suite == "draws" and check.note in _DRAWS:
            part = check.note
        if check.dtype is float16 and any(item in check.note for item in _NARROW):
            part = part, check.note
        if check.suite == "errors" and check.note.startswith(_FAR):
            part = check.note
        key = (check.suite, check.op, part) if check.op else check.name
        preference = _preference(check)
        if key not in chosen or preference > chosen[key][0]:
            chosen[key] = preference, check
    yield from (found := [check for _, check in chosen.values()])
    for op, candidates in others.items():
        yield from _of_each_sort(op, candidates, found)


def _of_each_sort(op: str, candidates: list[Check], found: Iterable[Check]) -> Iterator[Check]:
    """Checks of an op, so that with those that were found there is one of each sort of samples."""
    sorts = {sample.note: sorts_of(sample) for sample in SAMPLES[op].samples}
    there = {
        sort
        for check in found
        if (check.suite, check.op) == ("values", op)
        for sort in sorts[check.note]
    }
    # Wide types first: what is far from 0 is so in them alone.
    left = sorted(
        candidates, key=lambda candidate: (-_width(candidate), candidate.dtype is not float32)
    )
    while left:
        best = max(left, key=lambda check: len(sorts[check.note] - there))
        if not sorts[best.note] - there:
            return
        there |= sorts[best.note]
        left.remove(best)
        yield best


def _width(check: Check) -> int:
    """The size of integers; floats are tried in float32, if they can be."""
    dtype = check.dtype
    return 0 if dtype is None or not dtype.is_integer else dtype.itemsize


def _is_native(subject: Subject, check: Check) -> bool:
    """Whether a check is about no op, or one of the backend, or a public function."""
    if check.op not in REGISTRY or SUITES[check.suite].of_functions:
        return True
    return subject.table.origin(REGISTRY[check.op]) in {"native", "generated"}


def _preference(check: Check) -> int:
    """How much the sample of a check is like those of other ops."""
    samples = SAMPLES[check.op].samples if check.op in SAMPLES else ()
    notes = (check.note, check.note.rpartition(", ")[0])
    preference = 0
    for sample in samples:
        if sample.note in notes:
            shapes = [
                operand.shape for operand in sample.operands if isinstance(operand, np.ndarray)
            ]
            if shapes and len(shapes[0]) > 1 and 0 not in shapes[0]:
                preference = 4 if shapes[0] == _COMMON_SHAPE else 2
            break
    return preference + int(check.dtype is float32)
