"""Report: what a run of the kit found, by op and dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType
from burn.testing._check import Result, Status, finite
from burn.testing._compiled import Way
from burn.testing.op_samples import SAMPLES
from burn.testing.shape_cost import ShapeCost, distinct_calls

if TYPE_CHECKING:
    from burn.testing._check_selection import Selection
    from burn.testing._summary import SubjectSummary

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
    calls : int
        How many calls of the op differed in shapes, dtype or attributes.
    """

    op: str
    origin: str
    cells: dict[DType, str] = field(default_factory=dict)
    worst: float | None = None
    worst_dtype: DType | None = None
    seconds: float = 0.0
    failures: int = 0
    calls: int = 0


@dataclass
class Report:
    """What a run found.

    Attributes
    ----------
    subject : SubjectSummary
        What was tried.
    selection : Selection
        With which checks.
    results : list of Result
        How each check ended.
    unknown : list of str
        What is wrong with the list of expected failures, and why a run did not come to its end,
        or had no checks.
    seconds : float
        How long it took.
    total : int
        How many checks there are.
    resumed : int
        How many of the results are those of an earlier run.
    versions : dict of str to str
        Of the hardware, the driver and the plugin: for a run that resumes this one.
    shape_cost : ShapeCost
        What a call takes whose shapes are new.
    few_shapes : bool
        Whether each suite tries one sample of each op, since that is much.
    left_out : dict of str to int
        By suite, how many checks are left out for that reason.
    """

    subject: SubjectSummary
    selection: Selection
    results: list[Result]
    unknown: list[str]
    seconds: float
    total: int
    resumed: int
    versions: Mapping[str, str]
    shape_cost: ShapeCost
    few_shapes: bool
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether all checks were made."""
        return len(self.results) == self.total

    @property
    def conforms(self) -> bool:
        """Whether all checks were made, and nothing is wrong."""
        return self.finished and not self.unknown and not self.failures

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
        quick = ", quick" if self.selection.quick else ""
        return self.subject.title + quick + (", few shapes" if self.few_shapes else "")

    @property
    def verdict(self) -> str:
        """How it ended, in one line."""
        counts = ", ".join([f"{count} {name}" for name, count in self.counts.items() if count])
        counts = counts or "no checks"
        if not self.finished:
            verdict = f"stopped after {len(self.results)} of {self.total} checks"
        elif not self.total:
            verdict = "was not tried"
        else:
            verdict = "conforms" if self.conforms else "does not conform"
        earlier = f", {self.resumed} of them in an earlier run" if self.resumed else ""
        ways = f"; {self.ways_text}" if any(self.ways.values()) else ""
        found = {result.check.suite for result in self.results}
        without = [name for name in self.selection.suites if name not in found]
        empty = f"; no check of the suite {' or '.join(without)}" if found and without else ""
        empty = empty if self.finished else ""
        return f"{self.title} {verdict}: {counts}{earlier}, in {self.seconds:.1f} s{ways}{empty}"

    def _row(self, op: str, results: Sequence[Result]) -> Row:
        row = Row(op, self.subject.origins[op])
        row.seconds = sum(result.seconds for result in results)
        row.failures = sum(result.status.is_wrong for result in results)
        row.calls = distinct_calls(op, results)
        by_dtype: dict[DType, list[Result]] = {}
        for result in results:
            if result.check.dtype is not None:
                by_dtype.setdefault(result.check.dtype, []).append(result)
            if result.worst is not None and (row.worst is None or result.worst > row.worst):
                row.worst, row.worst_dtype = result.worst, result.check.dtype
        kinds = "".join([str(sample.kinds or "") for sample in SAMPLES[op].samples])
        for dtype in DType.members():
            if dtype in by_dtype:
                status = min((result.status for result in by_dtype[dtype]), key=_WORST_FIRST.index)
                is_own = row.origin in {"native", "generated"}
                passed = "passed" if is_own else row.origin
                row.cells[dtype] = passed if status is Status.PASSED else status.value
            elif str(dtype.kind) in kinds and dtype not in self.subject.dtypes:
                row.cells[dtype] = "unsupported"
        return row

    def as_json(self) -> dict[str, Any]:
        """The same for programs: dicts, lists, text and numbers."""
        return {
            "device": self.subject.name,
            **self.versions,
            "minimal": self.subject.hides,
            "compiled": self.subject.compiles,
            "quick": self.selection.quick,
            "few_shapes": self.few_shapes,
            "left_out": dict(self.left_out),
            "conforms": self.conforms,
            "finished": self.finished,
            "total": self.total,
            "resumed": self.resumed,
            "seconds": round(self.seconds, 3),
            "counts": self.counts,
            "ways": self.ways,
            "problems": self.unknown,
            "ops": [
                {
                    "name": row.op,
                    "origin": row.origin,
                    "dtypes": {dtype.name: cell for dtype, cell in row.cells.items()},
                    "worst_error": finite(row.worst),
                    "worst_dtype": row.worst_dtype.name if row.worst_dtype else None,
                    "seconds": round(row.seconds, 6),
                    "failures": row.failures,
                    "calls": row.calls,
                }
                for row in self.rows
            ],
            "others": [result.as_json() for result in self.others],
            "failures": [result.as_json() for result in self.failures],
            "shape_cost": self.shape_cost.as_json(),
            "slowest": [result.as_json() for result in self.slowest()],
        }
