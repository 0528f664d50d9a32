"""The command ``burn check``."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

import burn
from burn.cli._output import own_stdout, printable, write_json
from burn.cli.ops import complete_backend

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from burn.dtype import DType
    from burn.testing import Report, Result, Selection, Subject
    from burn.testing.report import Row

__all__ = ["check"]

_PASSED_STYLES: Final = {"passed": "green", "derived": "green", "host": "yellow"}
"""States of dtypes with which an op passed; the table says where the op is from beside it."""

_STYLES: Final = {
    "failed": "bold red",
    "unexpected": "bold red",
    "expected": "yellow",
    "unsupported": "dim",
}
"""The other states, in the order in which a row names them."""

_MAX_FULL_FAILURES: Final = 10
"""Failures that are printed in full, at most."""

_MAX_NAMED_FAILURES: Final = 50
"""Further failures of which the name is printed, at most."""


@click.command()
@click.argument("device", metavar="BACKEND_OR_DEVICE", shell_complete=complete_backend)
@click.option("--op", "ops", multiple=True, help="Only this op; * stands for any letters.")
@click.option("--dtype", "dtypes", multiple=True, help="Only this dtype.")
@click.option("--suite", "suites", multiple=True, help="Only this suite; --list names them.")
@click.option("--quick", is_flag=True, help="Only a representative part.")
@click.option("--large", is_flag=True, help="Also what takes gigabytes of memory.")
@click.option(
    "--minimal/--native",
    default=False,
    help="Hide what the backend has beyond the required ops, or not (the default).",
)
@click.option(
    "--compiled",
    is_flag=True,
    help="Compile each call of an op as a program; the end says how many ran generated kernels.",
)
@click.option(
    "--expected-failures",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the failures that are expected; "
    "else expected_failures.txt beside the module of the plugin.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write a JSON document.")
@click.option("--html", "html_file", type=click.Path(path_type=Path), help="Write a page.")
@click.option("--list", "as_list", is_flag=True, help="List suites and chosen checks; run nothing.")
def check(
    *,
    device: str,
    ops: tuple[str, ...],
    dtypes: tuple[str, ...],
    suites: tuple[str, ...],
    quick: bool,
    large: bool,
    minimal: bool,
    compiled: bool,
    expected_failures: Path | None,
    json_file: Path | None,
    html_file: Path | None,
    as_list: bool,
) -> None:
    """Run the conformance kit on a device, or on every device of a backend.

    Each op is tried with each dtype that the device has, against NumPy and, for gradients, central
    differences; so are creation, transfers, errors, random numbers, threads and memory. For each
    op the report says where the backend has it from (native, derived from other ops, or computed
    by NumPy on the host), with which dtypes it passed, and with which it

    \b
      failed        is wrong: see below the table, with a program that shows it
      unexpected    passed, although the list of expected failures has it
      expected      failed, and that list says why
      unsupported   is not there, or a required op is missing

    The worst error is a fraction of the tolerance: over 1 is wrong.

    \b
    Examples:
      burn check cuda --quick
      burn check opencl/gpu:0 --op softmax --op "conv*" --dtype float16
      burn check cpu --minimal --suite values
      burn check cuda --compiled --quick
      burn check cuda --html report.html --json report.json

    \b
    Exit status:
      0   everything is as it should be, or as it is expected to be
      1   something is not, or there is no such device
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.cli._rendering import console_on
    from burn.testing import Subject, devices_of, run, select

    with own_stdout() as out:
        devices = devices_of(device)
        if as_list:
            selection = select(ops=ops, dtypes=dtypes, suites=suites, quick=quick, large=large)
            _list(out, Subject.of(devices[0], minimal=minimal, compiles=compiled), selection)
            return
        reports = []
        for one in devices:
            with _progress(one.name) as progress:
                reports.append(
                    run(
                        one,
                        ops=ops,
                        dtypes=dtypes,
                        suites=suites,
                        quick=quick,
                        large=large,
                        minimal=minimal,
                        compiles=compiled,
                        expected_failures=expected_failures,
                        progress=progress,
                    )
                )
        to_stdout = str(json_file) == "-"
        if not to_stdout:
            console = console_on(out)
            for report in reports:
                _print(console, report)
        if json_file is not None:
            if to_stdout:
                write_json(out, _as_json(reports))
            else:
                with json_file.open("w", encoding="utf-8") as file:
                    write_json(file, _as_json(reports))
        if html_file is not None:
            from burn.testing.report_html import render

            html_file.write_text(render(reports), encoding="utf-8")
    if not all(report.conforms for report in reports):
        sys.exit(1)


def _list(out: TextIO, subject: Subject, selection: Selection) -> None:
    from burn.testing import SUITES, checks_of

    out.writelines(f"# {suite.name}: {suite.summary}\n" for suite in SUITES.values())
    out.writelines(f"{one.name}\n" for one in checks_of(subject, selection))


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Any]:
    """A bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True, highlight=False, markup=False)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(name, total=None, note="")
        failures = 0

        def step(result: Result, done: int, total: int) -> None:
            nonlocal failures
            failures += result.status.is_wrong
            if done % 50 == 0 or result.seconds > 0.1 or done == total:
                note = result.check.op or result.check.suite
                note += f", {failures} failed" if failures else ""
                bar.update(task, completed=done, total=total, note=note)

        yield step


def _print(console: Console, report: Report) -> None:
    from burn.cli._rendering import print_line, print_table

    print_table(console, _table(console, report.rows))
    console.print()
    for result in report.others:
        if result.status.value not in ("passed", "failed", "unexpected"):
            line = f"{result.status.value}: {result.check.name}: {result.message}"
            print_line(console, line, "dim")
    _print_slowest(console, report.slowest(5))
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
    print_line(console, _verdict(report), "green" if report.conforms else "bold red")


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
    from burn.cli._rendering import table_on

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
    from rich.text import Text

    from burn.cli._device_tables import compact

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


def _print_slowest(console: Console, results: Sequence[Result]) -> None:
    from burn.cli._rendering import print_line

    slow = ", ".join([f"{result.check.name} {result.seconds:.2f} s" for result in results])
    print_line(console, f"slowest: {slow}", "dim")


def _verdict(report: Report) -> str:
    counts = ", ".join([f"{count} {name}" for name, count in report.counts.items() if count])
    verdict = "conforms" if report.conforms else "does not conform"
    ways = f"; {report.ways_text}" if report.ways else ""
    return f"{report.title} {verdict}: {counts or 'no checks'}, in {report.seconds:.1f} s{ways}"


def _as_json(reports: Sequence[Report]) -> dict[str, Any]:
    return {
        "schema": 1,
        "version": burn.__version__,
        "conforms": all(report.conforms for report in reports),
        "devices": [report.as_json() for report in reports],
    }
