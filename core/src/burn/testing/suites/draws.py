"""Suite ``draws``: every op on operands that are drawn, of many ranks, layouts and sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

from burn.dtype import DType, float32
from burn.ops import Op, Tag
from burn.testing._check import Check, Skipped
from burn.testing._gradients import (
    check_gradients,
    differentiable,
    gradient_dtype,
    is_differentiable,
)
from burn.testing.checks import check_sample
from burn.testing.draws import Sort, drawn, has_slopes, sort_of
from burn.testing.op_samples import OpSamples
from burn.testing.subject import Subject
from burn.testing.suites.suite import Suite, named_check

__all__ = ["SUITES"]

_COUNT: Final = 20
"""Draws of an op."""

_QUICK_COUNTS: Final = {False: 5, True: 8}
"""How many of the first of them belong to the quick run; by whether the op is required."""

_HUGE_COUNT: Final = 3

_SLOPES: Final = 14
"""Draws of which gradients are compared."""

_QUICK_SLOPES: Final = {"conv": 4, "conv_transpose": 4, "max_pool": 2, "avg_pool": 2, "unfold4d": 2}
"""Ops with so many attributes that the quick run compares several gradients, not one."""

_FLOATS: Final = 0.5
"""How often a dtype is chosen among those of floats, of which there are fewer than of others."""

_NOT_DRAWN: Final = ("arange", "cond", "eye", "scan", "while_loop")
"""Ops of programs, or whose samples have every sort of numbers."""

_ALSO_HUGE: Final = ("cast", "flip", "matmul", "random_uniform", "softmax")
"""Ops that are tried on more than 65,536 elements, as elementwise ops and reductions are."""


def _draws(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        if samples.op.name in _NOT_DRAWN:
            continue
        found = {
            dtype: None for sample in samples.samples for dtype in subject.dtypes(samples, sample)
        }
        dtypes = [dtype for dtype in found if not _rounds_complex(samples, dtype)]
        if not dtypes:
            continue
        for number in range(_COUNT):
            is_quick = number < _QUICK_COUNTS[samples.op.is_required]
            yield _value(subject, samples, number, None, dtypes, is_quick)
        if _may_be_huge(samples.op) and not subject.compiles:
            is_quick = samples.op.is_required or samples.op.name in _ALSO_HUGE
            quick = (2 if Tag.REDUCTION in samples.op.tags else 1) if is_quick else 0
            for number in range(_HUGE_COUNT):
                yield _value(subject, samples, number, Sort.HUGE, dtypes, number < quick)
        yield from _gradients(subject, samples)


def _rounds_complex(samples: OpSamples, dtype: DType) -> bool:
    """Whether results must be equal, and are so for chosen complex numbers alone."""
    return dtype.is_complex and samples.exact and Tag.ELEMENTWISE in samples.op.tags


def _value(
    subject: Subject,
    samples: OpSamples,
    number: int,
    sort: Sort | None,
    dtypes: list[DType],
    is_quick: bool,
) -> Check:
    """A check of a draw in one of several dtypes; float32 where many numbers are added."""
    choices = random.Random(f"{samples.op.name} {number}")  # noqa: S311 — no secret
    floats = [dtype for dtype in dtypes if dtype.is_float]
    dtype = choices.choice(floats if floats and choices.random() < _FLOATS else dtypes)
    kind = sort or sort_of(number)
    if float32 in dtypes and (number == 0 or (kind is Sort.LONG and number < _COUNT / 2)):
        dtype = float32
    return named_check(
        subject,
        "draws",
        samples.op.name,
        dtype,
        f"{kind.value} {number}",
        _check_value,
        samples,
        number,
        sort,
        dtype,
        is_quick=is_quick,
    )


def _check_value(
    subject: Subject, samples: OpSamples, number: int, sort: Sort | None, dtype: DType
) -> float | None:
    one = drawn(
        samples,
        number,
        dtype.kind,
        sort=sort,
        accepts=lambda sample: dtype in subject.dtypes(samples, sample),
    )
    if one is None:
        raise Skipped(f"no call of {samples.op.name} with {dtype} was drawn")
    return check_sample(subject, samples, one, dtype)


def _may_be_huge(definition: Op) -> bool:
    wanted = Tag.ELEMENTWISE | Tag.REDUCTION
    is_plain = not any(spec.is_list for spec in definition.operands.values())
    return (is_plain and bool(definition.tags & wanted)) or definition.name in _ALSO_HUGE


def _gradients(subject: Subject, samples: OpSamples) -> Iterator[Check]:
    dtype = gradient_dtype(subject)
    if not differentiable(subject, samples, dtype):
        return
    quick = _QUICK_SLOPES.get(samples.op.name, 1)
    for number in range(_SLOPES):
        if has_slopes(number):
            quick -= 1
            yield named_check(
                subject,
                "draws",
                samples.op.name,
                dtype,
                f"{sort_of(number).value} {number}, gradients",
                _check_gradients,
                samples,
                number,
                is_quick=quick >= 0,
            )


def _check_gradients(subject: Subject, samples: OpSamples, number: int) -> float | None:
    dtype = gradient_dtype(subject)
    one = drawn(
        samples,
        number,
        dtype.kind,
        accepts=lambda sample: (
            is_differentiable(samples, sample) and dtype in subject.dtypes(samples, sample)
        ),
    )
    if one is None:
        raise Skipped(f"no call of {samples.op.name} that has gradients was drawn")
    return check_gradients(subject, samples, one)


SUITES: Final = [
    Suite("draws", "each op gives what its reference gives, on what is drawn", _draws),
]
