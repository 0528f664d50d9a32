"""Report: what a run of the kit found, by op and dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType
from burn.ops import REGISTRY
from burn.testing._check import Result, Status
from burn.testing._compiled import Way
from burn.testing.op_samples import SAMPLES

if TYPE_CHECKING:
    from burn.testing._check_selection import Selection
    from burn.testing.subject import Subject

__all__ = ["Report", "Row"]

_WORST_FIRST: Final = (
    Status.FAILED,
    Status.UNEXPECTED,
    Status.EXPECTED,
    Status.UNSUPPORTED,
    Status.PASSED,
    Status.SKIPPED,
)


@dataclass
class Row:
    """What was found of one op.

    Attributes
    ----------
    op : str
        Its name.
    origin : str
        Where the backend has it from; see `OpTable.origin`.
    cells : dict of DType to str
        With each dtype that the op takes ``passed``, ``derived`` (it passed, and is made of other
        ops), ``host`` (computed by NumPy), ``failed``, ``expected``, ``unexpected``, or
        ``unsupported`` (the device does not compute with it, or a required op is missing).
    worst : float or None
        The largest error as a fraction of what is allowed.
    worst_dtype : DType or None
        With which dtype that was.
    seconds : float
        How long its checks took.
    failures : int
        How many of them show that the backend does not conform.
    """

    op: str
    origin: str
    cells: dict[DType, str] = field(default_factory=dict)
    worst: float | None = None
    worst_dtype: DType | None = None
    seconds: float = 0.0
    failures: int = 0


@dataclass
class Report:
    """What a run found.

    Attributes
    ----------
    subject : Subject
        What was tried.
    selection : Selection
        With which checks.
    results : list of Result
        How each check ended.
    unknown : list of str
        What is wrong with the list of expected failures.
    seconds : float
        How long it took.
    """

    subject: Subject
    selection: Selection
    results: list[Result]
    unknown: list[str]
    seconds: float

    @property
    def conforms(self) -> bool:
        """Whether nothing is wrong."""
        return not self.unknown and not self.failures

    @cached_property
    def failures(self) -> list[Result]:
        """Results that show that the backend does not conform."""
        return [result for result in self.results if result.status.is_wrong]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many checks ended how."""
        return {
            status.value: sum(result.status is status for result in self.results)
            for status in Status
        }

    @cached_property
    def ways(self) -> dict[str, int]:
        """How many checks ran how, if ops are compiled: by a value of `Way`, or no program."""
        if not self.subject.compiles:
            return {}
        found = Counter(result.way for result in self.results)
        return {**{way.value: found[way.value] for way in Way}, "no program": found[""]}

    @property
    def ways_text(self) -> str:
        """The same in one line."""
        ways = [f"{count} {way}" for way, count in self.ways.items() if count]
        return f"of these ran {', '.join(ways)}"

    @cached_property
    def rows(self) -> list[Row]:
        """A row for each op of which anything was tried."""
        by_op: dict[str, list[Result]] = {}
        for result in self.results:
            if result.check.op in SAMPLES:
                by_op.setdefault(result.check.op, []).append(result)
        return [self._row(op, by_op[op]) for op in sorted(by_op)]

    @cached_property
    def others(self) -> list[Result]:
        """Results of checks that are not about one op: of public functions, and of other rules."""
        return [result for result in self.results if result.check.op not in SAMPLES]

    def slowest(self, count: int = 10) -> list[Result]:
        """The checks that took longest."""
        return sorted(self.results, key=lambda result: -result.seconds)[:count]

    @property
    def title(self) -> str:
        """What was tried, in one line."""
        handle = self.subject.handle
        name = repr(self.subject) if handle is None else f"{handle.name} ({handle.info.hardware})"
        modes = ["required ops alone"] if self.subject.hides else []
        modes += ["compiled"] if self.subject.compiles else []
        modes += ["quick"] if self.selection.quick else []
        return ", ".join([name, *modes])

    def _row(self, op: str, results: Sequence[Result]) -> Row:
        definition = REGISTRY[op]
        row = Row(op, self.subject.table.origin(definition))
        row.seconds = sum(result.seconds for result in results)
        row.failures = sum(result.status.is_wrong for result in results)
        by_dtype: dict[DType, list[Result]] = {}
        for result in results:
            if result.check.dtype is not None:
                by_dtype.setdefault(result.check.dtype, []).append(result)
            if result.worst is not None and (row.worst is None or result.worst > row.worst):
                row.worst, row.worst_dtype = result.worst, result.check.dtype
        kinds = "".join([str(one.kinds or "") for one in SAMPLES[op].samples])
        for dtype in DType.members():
            if dtype in by_dtype:
                status = min((one.status for one in by_dtype[dtype]), key=_WORST_FIRST.index)
                passed = "passed" if row.origin == "native" else row.origin
                row.cells[dtype] = passed if status is Status.PASSED else status.value
            elif str(dtype.kind) in kinds and not self.subject.supports(dtype):
                row.cells[dtype] = "unsupported"
        return row

    def as_json(self) -> dict[str, Any]:
        """The same for programs: dicts, lists, text and numbers."""
        handle = self.subject.handle
        return {
            "device": handle.name if handle else repr(self.subject),
            "hardware": handle.info.hardware if handle else "",
            "driver": handle.info.driver if handle else "",
            "minimal": self.subject.hides,
            "compiled": self.subject.compiles,
            "quick": self.selection.quick,
            "conforms": self.conforms,
            "seconds": round(self.seconds, 3),
            "counts": self.counts,
            "ways": self.ways,
            "problems": self.unknown,
            "ops": [
                {
                    "name": row.op,
                    "origin": row.origin,
                    "dtypes": {dtype.name: cell for dtype, cell in row.cells.items()},
                    "worst_error": row.worst,
                    "worst_dtype": row.worst_dtype.name if row.worst_dtype else None,
                    "seconds": round(row.seconds, 6),
                    "failures": row.failures,
                }
                for row in self.rows
            ],
            "others": [_as_json(result) for result in self.others],
            "failures": [_as_json(result) for result in self.failures],
            "slowest": [_as_json(result) for result in self.slowest()],
        }


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "check": result.check.name,
        "status": result.status.value,
        "message": result.message,
        "script": result.script,
        "worst_error": result.worst,
        "seconds": round(result.seconds, 6),
    }
