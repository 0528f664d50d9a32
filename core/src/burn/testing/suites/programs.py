"""Suite ``programs``: a traced op, saved and read back, gives what the eager call gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from burn.testing._batching import batched_dtypes
from burn.testing._check import Check
from burn.testing._programs import (
    check_program,
    check_refused_program,
    check_unchanged_after_error,
)
from burn.testing.op_samples import OpSamples
from burn.testing.subject import Subject
from burn.testing.suites.suite import Suite, named_check

__all__ = ["SUITES"]


def _programs(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        name = samples.op.name
        for number, sample in enumerate(samples.samples):
            is_quick = number < 2 or samples.op.is_required
            quick = batched_dtypes(subject, samples, sample) if is_quick else []
            for dtype in subject.dtypes(samples, sample):
                yield named_check(
                    subject,
                    "programs",
                    name,
                    dtype,
                    sample.note,
                    check_program,
                    samples,
                    sample,
                    dtype,
                    is_quick=dtype in quick,
                )
        for refused in samples.errors:
            yield named_check(
                subject,
                "programs",
                name,
                None,
                refused.note,
                check_refused_program,
                samples,
                refused,
                is_quick=refused.in_data,
            )
        in_data = [error for error in samples.errors if error.in_data]
        for refused in in_data:
            yield named_check(
                subject,
                "programs",
                name,
                None,
                f"{refused.note}, nothing written",
                check_unchanged_after_error,
                samples,
                refused,
                is_quick=refused is in_data[0],
            )


SUITES: Final = [
    Suite(
        "programs",
        "a traced op, saved and read back, gives what the eager call gives",
        _programs,
        of_devices=True,
    )
]
