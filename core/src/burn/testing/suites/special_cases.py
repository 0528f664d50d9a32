"""Suite ``special_cases``: functions near 0; of complex numbers also at infinities and NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from burn.dtype import DType, complex64, complex128, float32, float64
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
        for dtype in (float32, float64) if name in _SLOPES else ():
            if subject.supports(dtype):
                note = "small numbers"
                yield named_check(
                    subject, "special_cases", name, dtype, note, _check_near_zero, name, dtype
                )


def _check(subject: Subject, name: str, dtype: DType) -> None:
    """Compare every special case of a function with what the standard says."""
    cases = list(special_cases(name, dtype.component))
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


_SLOPES: Final = {
    **dict.fromkeys(("asin", "asinh", "atan", "atanh", "expm1", "log1p", "sin", "sinh"), 1.0),
    **dict.fromkeys(("softsign", "tan", "tanh"), 1.0),
    "erf": 2.0 / math.sqrt(math.pi),
}
"""Functions that are 0 at 0, and their slopes there."""

_SMALL: Final = np.array([1e-10, -1e-11, 1e-14, -1e-20, 1e-30])
"""Numbers so small that each of these functions is its slope times the number."""


def _check_near_zero(subject: Subject, name: str, dtype: DType) -> None:
    """Small results have as many digits as others: ``exp(x) - 1`` has none of them."""
    numbers = _SMALL.astype(dtype.numpy)
    with subject.quiet():
        results = subject.read(getattr(subject.table, name)(subject.upload(numbers)))
    expected = numbers.astype(np.float64) * _SLOPES[name]
    wrong = np.abs(results - expected) > 10 * ELEMENTWISE[dtype][0] * np.abs(expected)
    if wrong.any():
        raise Failure(f"{name} of {numbers} is {results}, not {expected}")


SUITES: Final = [
    Suite(
        "special_cases", "functions near 0, and complex ones at zeros, infinities and NaN", _checks
    ),
]
