"""Check: one thing that is tried on a device, and how it may end."""

from __future__ import annotations

import enum
import math
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from burn.dtype import DType

__all__ = ["Check", "Failure", "Result", "Skipped", "Status", "Unsupported", "finite"]


class Failure(AssertionError):  # noqa: N818 — what failed is the backend, not the check
    """A device did not do what it should.

    Parameters
    ----------
    message : str
        What was tried, and what came out.
    script : str
        A program that shows it; "" where the check can tell no more than its name.
    worst : float, optional
        The largest error as a fraction of what is allowed.
    """

    def __init__(self, message: str, script: str = "", worst: float | None = None) -> None:
        super().__init__(message)
        self.script = script
        self.worst = worst


class Skipped(Exception):  # noqa: N818 — nothing is wrong
    """A check cannot be made here: there is too little memory, or no second device."""


class Unsupported(Exception):  # noqa: N818 — what is missing fails a check of its own
    """An op needs a required op that the backend does not have yet."""


class Status(enum.Enum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    EXPECTED = "expected"
    """It failed, and the list of expected failures says why."""
    UNEXPECTED = "unexpected"
    """It passed, although the list of expected failures has it."""
    UNSUPPORTED = "unsupported"
    """The op needs a required op that the backend does not have yet."""
    SKIPPED = "skipped"

    @property
    def is_wrong(self) -> bool:
        """Whether the backend does not conform for it."""
        return self in (Status.FAILED, Status.UNEXPECTED)


@dataclass(frozen=True, eq=False)
class Check:
    """One thing to try on a device.

    Attributes
    ----------
    suite : str
        Which suite it belongs to.
    op : str
        Which op it tries; "" for what is not about one op.
    dtype : DType or None
        With which dtype, where there is one to choose.
    note : str
        What is tried, in a few words.
    body : callable
        Tries it; raises if it does not work. What it returns is the largest error as a fraction of
        what is allowed, or None where nothing was to be compared.
    script : callable
        Writes a program that does the same; for a `body` that raised something of its own.
    is_quick : bool
        Whether it is among the representative ones of the quick run.
    is_large : bool
        Whether it takes gigabytes.
    """

    suite: str
    op: str
    dtype: DType | None
    note: str
    body: Callable[[], float | None] = field(repr=False)
    script: Callable[[], str] = field(repr=False, default=str)
    is_quick: bool = True
    is_large: bool = False

    @property
    def name(self) -> str:
        """Its name, unique among the checks of a device: ``values/softmax/float32/rows``."""
        parts = (self.suite, self.op, self.dtype.name if self.dtype else "", self.note)
        return "/".join([part for part in parts if part])

    def __str__(self) -> str:
        return self.name

    def run(self) -> Result:
        """Try it, and say how it went; nothing is raised but what stops the program."""
        start = time.perf_counter()
        worst, message, script, status = None, "", "", Status.PASSED
        try:
            worst = self.body()
        except Skipped as reason:
            status, message = Status.SKIPPED, str(reason)
        except Unsupported as reason:
            status, message = Status.UNSUPPORTED, str(reason)
        except Failure as failure:
            status, message = Status.FAILED, str(failure)
            script, worst = failure.script or self.script(), failure.worst
        except Exception as error:  # noqa: BLE001 — a backend may raise anything
            status, script = Status.FAILED, self.script()
            message = "".join(traceback.format_exception(error)).rstrip()
        return Result(self, status, message, script, worst, time.perf_counter() - start)


@dataclass
class Result:
    """How a check ended.

    Attributes
    ----------
    check : Check
        What was tried.
    status : Status
        How it ended.
    message : str
        What went wrong, or why it was skipped, or why its failure is expected.
    script : str
        A program that shows a failure.
    worst : float or None
        The largest error as a fraction of what is allowed.
    seconds : float
        How long it took.
    way : str
        How the calls of its op ran, if ops are compiled: a value of `Way`, `Way.CALLS` where
        some ran so; "" without a program of the op.
    """

    check: Check
    status: Status
    message: str
    script: str
    worst: float | None
    seconds: float
    way: str = ""

    def as_json(self) -> dict[str, Any]:
        """The same for programs; an error that is not finite is null."""
        return {
            "check": self.check.name,
            "status": self.status.value,
            "message": self.message,
            "script": self.script,
            "worst_error": finite(self.worst),
            "seconds": round(self.seconds, 6),
            "way": self.way,
        }

    @classmethod
    def of_json(cls, check: Check, record: Mapping[str, Any]) -> Result:
        """The result that `as_json` wrote.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is none.
        """
        worst, seconds = record["worst_error"], float(record["seconds"])
        texts = [record[name] for name in ("message", "script", "way")]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a text is none")
        message, script, way = texts
        worst = None if worst is None else float(worst)
        return cls(check, Status(record["status"]), message, script, worst, seconds, way)

    def __str__(self) -> str:
        text = f"{self.check.name}: {self.status.value}"
        if self.message:
            text += f"\n{self.message}"
        if self.script:
            text += f"\nThis shows it:\n\n{self.script}"
        return text


def finite(number: float | None) -> float | None:
    """A number for JSON, which has no infinity and no NaN: None instead of them."""
    return number if number is not None and math.isfinite(number) else None
