"""Suite ``special_cases``: functions near 0; complex ones also at NaN and the largest numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from burn.dtype import DType, complex64, complex128, float32, float64
from burn.testing._check import Check, Failure
from burn.testing.op_samples import Array, OpSamples
from burn.testing.special_cases import EXTREMES, FUNCTIONS, is_part, special_cases
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
        if name in _IN_MORE_DIGITS:
            for dtype in (complex64, complex128):
                if subject.supports(dtype) and _has_more_range(dtype):
                    note = "the largest and the least numbers"
                    yield named_check(
                        subject, "special_cases", name, dtype, note, _check_extremes, name, dtype
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


def _check_extremes(subject: Subject, name: str, dtype: DType) -> None:
    """Numbers whose squares leave the range of the dtype, against NumPy in a wider one.

    The error may be as large as that of numbers near 1, relative to the magnitude of the result.
    """
    component = dtype.component
    parts = [sign * part for part in (0.0, *EXTREMES[component], 1.5) for sign in (1.0, -1.0)]
    numbers = np.array([complex(*pair) for pair in itertools.product(parts, parts)], dtype.numpy)
    numbers = numbers[numbers != 0.0]
    with np.errstate(all="ignore"):
        wide = _IN_MORE_DIGITS[name](numbers.astype(_WIDER[dtype]))
        expected = wide.astype(dtype.numpy)
    operands = (1.0, subject.upload(numbers)) if name == "divide" else (subject.upload(numbers),)
    with subject.quiet():
        results = subject.read(getattr(subject.table, name)(*operands))
    tolerance, _ = ELEMENTWISE[component]
    smallest = float(np.finfo(component.numpy).smallest_subnormal)
    with np.errstate(all="ignore"):
        allowed = tolerance * np.abs(wide) + 2 * smallest
        is_right = np.ones(numbers.shape, np.bool_)
        for found, right, exact in (
            (results.real, expected.real, wide.real),
            (results.imag, expected.imag, wide.imag),
        ):
            is_near = np.abs(found - exact) <= allowed
            is_open = np.isnan(right)  # NumPy's expm1 multiplies infinity by 0
            is_right &= (found == right) | is_open | (np.isfinite(found) & is_near)
    if not is_right.all():
        wrong = [
            f"{name} of {number} is {result}, not {right}"
            for number, result, right in zip(
                numbers[~is_right], results[~is_right], expected[~is_right], strict=True
            )
        ]
        raise Failure("\n".join([f"{len(wrong)} of {len(numbers)} results differ:", *wrong]))


_WIDER: Final = {complex64: np.complex128, complex128: np.clongdouble}


def _has_more_range(dtype: DType) -> bool:
    """Whether NumPy has a dtype with larger exponents; of complex128 not on every system."""
    wider = np.finfo(_WIDER[dtype]).maxexp
    return bool(wider > 4 * np.finfo(dtype.numpy).maxexp)


def _wide_log1p(x: Array) -> Array:
    """NumPy's `log1p` of a complex number has no digits near 0."""
    moved = x.copy()
    moved.real += 1.0
    result = np.log(moved)
    near = 0.5 * np.log1p(x.real * (x.real + 2.0) + x.imag * x.imag)
    result.real = np.where(np.maximum(np.abs(x.real), np.abs(x.imag)) < 0.5, near, result.real)
    return np.asarray(result)


_IN_MORE_DIGITS: Final[dict[str, Callable[[Array], Array]]] = {
    **{name: getattr(np, name) for name in ("exp", "expm1", "log", "log2", "log10", "sqrt")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh")},
    "atanh": np.arctanh,
    "divide": lambda x: np.asarray(1.0 / x),
    "log1p": _wide_log1p,
    "reciprocal": lambda x: np.asarray(1.0 / x),
    "sign": lambda x: np.asarray(x / np.hypot(x.real, x.imag)),
}
"""Functions of complex numbers, ``1 / x`` for `divide`, whose squares are in the range."""

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
