"""Suites ``functions`` and ``function_transforms``: public functions, as users call them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import burn.testing.functions  # noqa: F401 — importing it is what fills the table of samples
from burn.dtype import float32, float64
from burn.testing._check import Check
from burn.testing._gradients import gradient_dtype
from burn.testing.function_checks import check_function, main_kind, tried_dtypes
from burn.testing.function_gradients import (
    check_function_gradients,
    check_function_second_gradients,
    has_gradient,
)
from burn.testing.function_transforms import check_function_batched, check_function_compiled
from burn.testing.subject import Subject
from burn.testing.suites.suite import Suite, named_check

__all__ = ["SUITES"]


def _functions(subject: Subject, table: Sequence[Any]) -> Iterator[Check]:
    for samples in table:
        for number, sample in enumerate(samples.samples):
            dtypes = tried_dtypes(subject, samples, sample)
            for dtype in dtypes:
                yield named_check(
                    subject,
                    "functions",
                    samples.name,
                    dtype,
                    sample.note,
                    check_function,
                    samples,
                    sample,
                    dtype,
                    is_quick=dtype in (None, float32) or float32 not in dtypes,
                )
            if has_gradient(samples, sample) and gradient_dtype(subject) in dtypes:
                for what, body in _GRADIENTS.items():
                    yield named_check(
                        subject,
                        "functions",
                        samples.name,
                        gradient_dtype(subject),
                        f"{sample.note}, {what}",
                        body,
                        samples,
                        sample,
                        is_quick=number == 0,
                    )


def _transforms(subject: Subject, table: Sequence[Any]) -> Iterator[Check]:
    for samples in table:
        if not samples.transforms or samples.reference is None:
            continue
        for number, sample in enumerate(samples.samples):
            dtypes = tried_dtypes(subject, samples, sample)
            if not main_kind(sample) or not dtypes:
                continue
            dtype = next((dtype for dtype in (float64, float32) if dtype in dtypes), dtypes[0])
            for what, body in _TRANSFORMS.items():
                yield named_check(
                    subject,
                    "function_transforms",
                    samples.name,
                    dtype,
                    f"{sample.note}, {what}",
                    body,
                    samples,
                    sample,
                    dtype,
                    is_quick=number == 0,
                )


_GRADIENTS: Final = {
    "gradients": check_function_gradients,
    "second gradients": check_function_second_gradients,
}

_TRANSFORMS: Final = {
    "mapped": check_function_batched,
    "compiled": check_function_compiled,
}

SUITES: Final = [
    Suite(
        "functions",
        "public functions give what their references give, and gradients agree with differences",
        _functions,
        of_devices=True,
        of_functions=True,
    ),
    Suite(
        "function_transforms",
        "and so they do under burn.vmap and burn.compile",
        _transforms,
        of_devices=True,
        of_functions=True,
    ),
]
