"""What ``burn check`` prints of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from burn.cli._device_tables import compact
from burn.cli._output import printable
from burn.cli._rendering import print_line, print_table, table_on
from burn.dtype import DType

if TYPE_CHECKING:
    from burn.testing import Report, Result
    from burn.testing.report import Row

__all__ = ["print_report"]

_PASSED_STYLES: Final = {"passed": "green", "derived": "green", "host": "yellow"}
"""States of dtypes with which an op passed; the table says where the op is from beside it."""

_STYLES: Final = {
    "failed": "bold red",
    "unexpected": "bold red",
    "expected": "yellow",
    "unsupported": "dim",
}
"""The other states, in the order in which a row names them."""

_SLOWEST: Final = 5
"""Checks, and ops, that are named as the slowest."""

_MAX_FULL_FAILURES: Final = 10
"""Failures that are printed in full, at most."""

_MAX_NAMED_FAILURES: Final = 50
"""Further failures of which the name is printed, at most."""


def print_report(console: Console, report: Report) -> None:
    """Print a table of ops, what is slow, what failed, and the verdict."""
    _print_ops(console, report)
    for result in report.others:
        if result.status.value not in ("passed", "failed", "unexpected"):
            line = f"{result.status.value}: {result.check.name}: {result.message}"
            print_line(console, line, "dim")
    _print_slowest(console, report)
    missing = [result for result in report.failures if _is_missing(result)]
    if missing:
        names = ", ".join([result.check.op for result in missing])
        console.print()
        print_line(console, f"FAILED contract: not there, and required: {names}", "bold red")
    failures = _round_robin(result for result in report.failures if not _is_missing(result))
    for result in failures[:_MAX_FULL_FAILURES]:
        console.print()
        print_line(console, f"{result.status.name} {result.check.name}", "bold red")
        console.print(printable(result.message), soft_wrap=True)
        if result.script:
            console.print("This program shows it:", style="dim")
            console.print(printable(result.script), soft_wrap=True)
    left = failures[_MAX_FULL_FAILURES:]
    if left:
        console.print()
        line = f"and {len(left)} more failures: --json and --html have all of them"
        print_line(console, line, "red")
        for result in left[:_MAX_NAMED_FAILURES]:
            print_line(console, f"  {result.check.name}", "red")
        if len(left) > _MAX_NAMED_FAILURES:
            print_line(console, "  ...", "red")
    for problem in report.unknown:
        print_line(console, problem, "bold red")
    print_line(console, report.verdict, "green" if report.conforms else "bold red")


def _is_missing(result: Result) -> bool:
    """Whether all that a failure says is that a required op is not there yet."""
    check = result.check
    return result.status.value == "failed" and (check.suite, check.note) == ("contract", "required")


def _round_robin(results: Iterable[Result]) -> list[Result]:
    """Results with the first of each op before the second of any."""
    counts: Counter[str] = Counter()
    numbered = []
    for result in results:
        counts[result.check.op] += 1
        numbered.append((counts[result.check.op], result))
    return [result for _, result in sorted(numbered, key=lambda pair: pair[0])]


def _table(console: Console, rows: Sequence[Row]) -> Table:
    """A line for each op, with its dtypes by what came out."""
    table = table_on(console)
    table.add_column("Op", no_wrap=True)
    table.add_column("From", no_wrap=True)
    table.add_column("Dtypes", overflow="fold")
    table.add_column("Worst error", no_wrap=True)
    table.add_column("Time", no_wrap=True, justify="right")
    for row in rows:
        worst = ""
        if row.worst is not None:
            worst = f"{row.worst:.2g}" + (f" {row.worst_dtype}" if row.worst_dtype else "")
        table.add_row(row.op, row.origin, _cells(row), worst, f"{row.seconds * 1000:.0f} ms")
    return table


def _cells(row: Row) -> Text:
    by_state: dict[str, list[DType]] = {}
    for dtype, state in row.cells.items():
        by_state.setdefault(state, []).append(dtype)
    text = Text()
    for state, style in _PASSED_STYLES.items():
        if state in by_state:
            text.append(compact(by_state[state]), style=style)
    for state, style in _STYLES.items():
        if state in by_state:
            text.append("; " if text else "")
            text.append(f"{state} {compact(by_state[state])}", style=style)
    if row.failures and not any(state in row.cells.values() for state in ("failed", "unexpected")):
        text.append("; " if text else "")
        text.append("failed otherwise", style=_STYLES["failed"])
    return text


def _print_ops(console: Console, report: Report) -> None:
    if report.rows:
        print_table(console, _table(console, report.rows))
        console.print()


def _print_slowest(console: Console, report: Report) -> None:
    slowest = report.slowest(_SLOWEST)
    if not slowest:
        return
    slow = ", ".join([f"{result.check.name} {result.seconds:.2f} s" for result in slowest])
    print_line(console, f"slowest: {slow}", "dim")
    if report.shape_cost.is_high:
        compiles = "each program" if report.shape_cost.of_programs else "for each shape"
        rows = sorted(report.rows, key=lambda row: -row.seconds)[:_SLOWEST]
        ops = ", ".join([f"{row.op} {row.seconds:.1f} s, {row.calls} calls" for row in rows])
        print_line(
            console,
            f"why: {report.shape_cost}: the library seems to compile {compiles}. "
            "Slowest ops, and how many of their calls differ in shapes, dtype or attributes: "
            f"{ops}",
            "dim",
        )
    if report.few_shapes:
        left_out = ", ".join([f"{count} of {name}" for name, count in report.left_out.items()])
        print_line(
            console,
            "few shapes: each suite tried one sample of each op, values one of each sort, and few "
            f"suites the ops that are made of others. Left out: {left_out}. --all-shapes tries all "
            "of the quick run",
            "dim",
        )
