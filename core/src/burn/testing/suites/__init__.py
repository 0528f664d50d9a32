"""The suites of checks: each lists the checks of one subject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import burn.testing.samples  # noqa: F401 — importing it is what fills the table of samples
from burn.errors import ArgumentError
from burn.testing._check import Check
from burn.testing._check_selection import Selection
from burn.testing.function_samples import FUNCTIONS
from burn.testing.op_samples import SAMPLES, load_samples
from burn.testing.subject import Subject
from burn.testing.suites import (
    autodiff,
    batching,
    by_op,
    compiled,
    compiled_calls,
    contract,
    creation,
    draws,
    dtypes,
    failures,
    functions,
    interchange,
    long_axes,
    memory,
    programs,
    quantization,
    quantized_tensors,
    random_numbers,
    rounding,
    silence,
    sizes,
    special_cases,
    threads,
    transfers,
    views,
    wrong_calls,
)
from burn.testing.suites.suite import DeviceSuite, Suite

__all__ = ["SUITES", "DeviceSuite", "Suite", "checks_of", "find_check", "is_left_out"]

SUITES: Final[dict[str, Suite]] = {
    suite.name: suite
    for module in (
        contract,
        dtypes,
        by_op,
        draws,
        functions,
        wrong_calls,
        special_cases,
        silence,
        creation,
        views,
        transfers,
        interchange,
        failures,
        random_numbers,
        autodiff,
        batching,
        quantization,
        quantized_tensors,
        programs,
        compiled,
        compiled_calls,
        rounding,
        threads,
        memory,
        sizes,
        long_axes,
    )
    for suite in module.SUITES
}
"""Every suite by its name, in the order in which they run."""


def checks_of(subject: Subject, selection: Selection | None = None) -> Iterator[Check]:
    """The checks of a subject, in an order that does not change from run to run.

    Suites that need a `burn.Device` are left out for a minimal or compiled subject, and for one
    without a handle; see `is_left_out`.

    Parameters
    ----------
    subject : Subject
        What to try.
    selection : Selection, optional
        Which of them; all, the large ones included, if left out.
    """
    load_samples()
    ops, public = (
        [value for name, value in table.items() if not selection or selection.includes_op(name)]
        for table in (SAMPLES, FUNCTIONS)
    )
    for suite in SUITES.values():
        if is_left_out(subject, suite):
            continue
        if selection and selection.suites and suite.name not in selection.suites:
            continue
        if selection and not (suite.of_ops or selection.includes_op("")):
            continue
        for check in suite.checks(subject, public if suite.of_functions else ops):
            if not selection or selection.includes(check):
                yield check


def is_left_out(subject: Subject, suite: Suite) -> bool:
    """Whether a suite is about a `burn.Device`, and the subject is none as users have it.

    A suite that compiles what it tries is also for the subject that compiles each op.
    """
    differs = subject.hides or (subject.compiles and not suite.compiles)
    return suite.of_devices and (subject.handle is None or differs)


def find_check(subject: Subject, name: str) -> Check:
    """The check of a subject with a name.

    Raises
    ------
    ArgumentError
        If it has none of that name.
    """
    suite, _, rest = name.partition("/")
    op = rest.partition("/")[0]
    ops = (op if op in SAMPLES or op in FUNCTIONS else "",)
    for check in checks_of(subject, Selection(ops=ops, suites=(suite,), large=True)):
        if check.name == name:
            return check
    hint = "`burn check NAME --list` has them"
    raise ArgumentError(f"{subject} has no check {name!r}", hint=hint)
