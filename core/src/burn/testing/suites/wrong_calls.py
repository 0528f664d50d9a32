"""Suite ``wrong_calls``: what a function cannot do is the same error on every device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import burn.testing.functions  # noqa: F401 — importing it is what fills the table of samples
from burn.testing._check import Check
from burn.testing.subject import Subject
from burn.testing.suites.suite import Suite, named_check
from burn.testing.wrong_calls import check_mutated_calls, check_wrong_call

__all__ = ["SUITES"]

_FIRST: Final = 4
"""How many of the mutated calls of a function are quick."""

_ALL: Final = 60
"""How many of them are made at all: tens of thousands for all functions."""


def _checks(subject: Subject, table: Sequence[Any]) -> Iterator[Check]:
    for samples in table:
        for error in samples.errors:
            yield named_check(
                subject,
                "wrong_calls",
                samples.name,
                None,
                error.note,
                check_wrong_call,
                samples,
                error,
            )
        for note, start, stop in (("some calls", 0, _FIRST), ("other calls", _FIRST, _ALL)):
            yield named_check(
                subject,
                "wrong_calls",
                samples.name,
                None,
                f"{note} with arguments replaced",
                check_mutated_calls,
                samples,
                start,
                stop,
                is_quick=start == 0,
            )


SUITES: Final = [
    Suite(
        "wrong_calls",
        "wrong arguments are the error that they are on every device, in the same words",
        _checks,
        of_devices=True,
        of_functions=True,
    ),
]
