"""Suite ``batching``: an op on all examples of a batch gives what a loop over them gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from burn.ops import Tag
from burn.testing._batching import (
    batched_dtypes,
    check_batched_gradients,
    check_batched_twice,
    check_batching,
    check_refused_batch,
)
from burn.testing._check import Check
from burn.testing._gradients import differentiable, gradient_dtype
from burn.testing.op_samples import OpSamples
from burn.testing.subject import Subject
from burn.testing.suites.suite import Suite, named_check

__all__ = ["SUITES"]

_TWICE: Final = ("add", "concat", "conv", "expand", "matmul", "select", "softmax", "sum", "where")
"""Ops that are also tried with a batch of batches: one for each sort of rule."""


def _batching(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        name = samples.op.name
        if not samples.op.operands:
            continue
        bodies: dict[str, Callable[..., float | None]] = {"": check_batching}
        if name in _TWICE:
            bodies[", batched twice"] = check_batched_twice
        for number, sample in enumerate(samples.samples):
            for dtype in batched_dtypes(subject, samples, sample):
                for suffix, body in bodies.items():
                    yield named_check(
                        subject,
                        "batching",
                        name,
                        dtype,
                        sample.note + suffix,
                        body,
                        samples,
                        sample,
                        dtype,
                        is_quick=number < 2 or samples.op.is_required,
                    )
        yield from _gradients(subject, samples)
        for refused in samples.errors:
            yield named_check(
                subject,
                "batching",
                name,
                None,
                refused.note,
                check_refused_batch,
                samples,
                refused,
            )


def _gradients(subject: Subject, samples: OpSamples) -> Iterator[Check]:
    if Tag.NO_GRADIENT in samples.op.tags:
        return
    dtype = gradient_dtype(subject)
    chosen = differentiable(subject, samples, dtype)
    for number, sample in enumerate(chosen):
        yield named_check(
            subject,
            "batching",
            samples.op.name,
            dtype,
            f"{sample.note}, gradients",
            check_batched_gradients,
            samples,
            sample,
            is_quick=number == 0,
        )


SUITES: Final = [
    Suite("batching", "an op on a batch gives what a loop over its examples gives", _batching)
]
"""The quick run takes more of the required ops: rules of others rest on theirs."""
