"""Suite ``silence``: float results that are not finite cause no warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from burn.dtype import complex64, float32
from burn.errors import UnsupportedOpError
from burn.testing._check import Check
from burn.testing.checks import run_in_dispatch
from burn.testing.op_samples import SAMPLES, OpSamples
from burn.testing.subject import Call, Subject
from burn.testing.suites.expectations import expect
from burn.testing.suites.suite import Suite, named_check

__all__ = ["SUITES"]


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    """A check for the ops of each family: one of all of them would take minutes on some devices."""
    del table
    families = dict.fromkeys(map(_family, SAMPLES.values()))
    for family in families:
        note = f"no op of {family} warns"
        yield named_check(subject, "silence", "", None, note, _ops_are_silent, family)


def _family(samples: OpSamples) -> str:
    """The module that defines an op."""
    return samples.op.__module__.rpartition(".")[2]


def _ops_are_silent(subject: Subject, family: str) -> None:
    """Every op, through Dispatch, on its float samples, where users listen to what NumPy says.

    They show all warnings, as test runners do, and have a handler called for what NumPy notices.
    """
    unfinished = (UnsupportedOpError,) if subject.missing else ()
    heard: dict[str, None] = {}
    op = ""

    def show(message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        heard[f"{op}: {category.__name__}: {message} ({filename}:{lineno})"] = None

    def handler(kind: str, flag: int) -> None:
        del flag
        heard[f"{op}: the handler of numpy.seterrcall is called: {kind}"] = None

    settings = np.errstate(divide="warn", invalid="warn", over="call", under="call", call=handler)
    with warnings.catch_warnings(), settings:
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]  # it takes what the other takes
        for op, samples in SAMPLES.items():  # noqa: B007 — `show` tells it
            for sample in samples.samples if _family(samples) == family else ():
                for dtype in (float32, complex64):
                    if dtype in subject.dtypes(samples, sample):
                        call = Call.of(samples, sample, dtype, subject.index_dtype)
                        with suppress(*unfinished):
                            run_in_dispatch(subject, call, call.upload(subject))
    expect(not heard, "\n".join(["NumPy, or the library, speaks:", *list(heard)[:20]]))


SUITES: Final = [
    Suite(
        "silence",
        "float results that are not finite are no reason to warn",
        _checks,
        of_devices=True,
    )
]
