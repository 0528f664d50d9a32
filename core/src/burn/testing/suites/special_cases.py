"""Suite ``special_cases``: functions of complex numbers where a part is infinite, NaN or zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from burn.dtype import DType, complex64, complex128
from burn.testing._check import Check, Failure
from burn.testing.op_samples import OpSamples
from burn.testing.special_cases import FUNCTIONS, is_part, special_cases
from burn.testing.subject import Subject
from burn.testing.suites.suite import Suite, named_check
from burn.testing.tolerance import ELEMENTWISE

__all__ = ["SUITES"]


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        name = samples.op.name
        if name in FUNCTIONS:
            for dtype in (complex64, complex128):
                if subject.supports(dtype):
                    note = "what the array API standard says"
                    yield named_check(
                        subject, "special_cases", name, dtype, note, _check, name, dtype
                    )


def _check(subject: Subject, name: str, dtype: DType) -> None:
    """Compare every special case of a function with what the standard says."""
    cases = list(special_cases(name))
    numbers = np.array([case.number for case in cases], dtype.numpy)
    with subject.quiet():
        results = subject.read(getattr(subject.table, name)(subject.upload(numbers)))
    tolerance, _ = ELEMENTWISE[dtype.component]
    wrong = [
        f"{name}({case.number}) is {result}, not {case.real} and {case.imag}j"
        for case, result in zip(cases, results.tolist(), strict=True)
        if not (
            is_part(result.real, case.real, tolerance)
            and is_part(result.imag, case.imag, tolerance)
        )
    ]
    if wrong:
        raise Failure("\n".join([f"{len(wrong)} of {len(cases)} special cases differ:", *wrong]))


SUITES: Final = [
    Suite("special_cases", "complex functions at zeros, infinities and NaN", _checks),
]
