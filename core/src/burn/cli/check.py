"""The command ``burn check``."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from burn.cli._output import own_stdout
from burn.cli.ops import complete_backend
from burn.errors import ArgumentError, BurnError

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.testing import Report, Selection, Subject

__all__ = ["check"]


@click.command()
@click.argument("device", metavar="BACKEND_OR_DEVICE", shell_complete=complete_backend)
@click.option("--op", "ops", multiple=True, help="Only this op; * stands for any letters.")
@click.option("--dtype", "dtypes", multiple=True, help="Only this dtype.")
@click.option("--suite", "suites", multiple=True, help="Only this suite; --list names them.")
@click.option("--quick", is_flag=True, help="Only a representative part.")
@click.option("--large", is_flag=True, help="Also what takes gigabytes of memory.")
@click.option(
    "--few-shapes/--all-shapes",
    default=None,
    help="One sample of each op in each suite; by default where the run is quick and the library "
    "compiles for each shape.",
)
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
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    help="Processes that make the checks, by default 1; 0: this one, as debuggers want it.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time that a check may take in a worker; ten times as long with gigabytes. First calls "
    "of compiled programs have ten times as long besides.",
)
@click.option(
    "--resume",
    "resumed",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Go on where the run stopped that wrote this JSON document.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a JSON document, and keep it up to date while the run goes on.",
)
@click.option(
    "--html", "html_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a page."
)
@click.option("--list", "as_list", is_flag=True, help="List suites and chosen checks; run nothing.")
def check(
    *,
    device: str,
    ops: tuple[str, ...],
    dtypes: tuple[str, ...],
    suites: tuple[str, ...],
    quick: bool,
    large: bool,
    few_shapes: bool | None,
    minimal: bool,
    compiled: bool,
    expected_failures: Path | None,
    workers: int | None,
    time_limit: float,
    resumed: Path | None,
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

    The checks are made in worker processes: one that ends its process, or takes too long, has
    failed, and the others are made. Standard error says how far the run has come; the document of
    --json is there from the beginning, whole at any moment, and --resume goes on from it.

    \b
    Examples:
      burn check cuda --quick
      burn check opencl/gpu:0 --op softmax --op "conv*" --dtype float16
      burn check cpu --minimal --suite values
      burn check cuda --compiled --quick
      burn check cuda --html report.html --json report.json
      burn check cuda --resume report.json --json report.json

    \b
    Exit status:
      0   everything is as it should be, or as it is expected to be
      1   something is not, or there is no such device
      130 Ctrl-C, and 143 SIGTERM: the report is of the checks that were made
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.testing import Subject, devices_of, select
    from burn.testing.earlier_run import EarlierRun

    with own_stdout() as out:
        devices = devices_of(device)
        selection = select(ops=ops, dtypes=dtypes, suites=suites, quick=quick, large=large)
        if as_list:
            _list(out, Subject.of(devices[0], minimal=minimal, compiles=compiled), selection)
            return
        run = _Run(
            out,
            selection,
            {
                "minimal": minimal,
                "compiles": compiled,
                "expected_failures": expected_failures,
                "time_limit": time_limit,
                "few_shapes": few_shapes,
                "earlier": None if resumed is None else EarlierRun(resumed),
            },
            workers,
            json_file,
        )
        status = run.run(devices)
        run.print()
        if html_file is not None:
            from burn.testing.report_html import render

            try:
                html_file.write_text(render(run.reports), encoding="utf-8")
            except OSError as error:
                raise ArgumentError(f"cannot write the page: {error}") from error
    sys.exit(status)


class _Run:
    """A run on some devices, one after the other, of which it says what is known at any time."""

    def __init__(
        self,
        out: TextIO,
        selection: Selection,
        options: dict[str, Any],
        workers: int | None,
        json_file: Path | None,
    ) -> None:
        from burn.cli._check_json import JsonFile

        self._out = out
        self._selection = selection
        self._options = options
        self._workers = workers
        self._json_to_out = str(json_file) == "-"
        self._file = None if json_file is None or self._json_to_out else JsonFile(json_file)
        self._is_over = False
        self.reports: list[Report] = []

    def run(self, devices: list[Device]) -> int:
        """Make the checks; returns the exit status."""
        try:
            with _terminating():
                self._save(force=True)
                for device in devices:
                    self._run_on(device)
        except KeyboardInterrupt as interrupt:
            self._save(force=True)
            return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
        except BurnError:  # of one device; what is known of those before is not lost
            self._save(force=True)
            if self.reports:
                self.print()
            raise
        self._is_over = True
        self._save(force=True)
        return 0 if all(report.conforms for report in self.reports) else 1

    def _run_on(self, device: Device) -> None:
        from burn.cli.check_progress import progress_of
        from burn.testing.session import Session, check_workers

        workers = self._workers
        if workers is None:
            workers = 0 if device.entry.plugin.is_in_process or not sys.executable else 1
        check_workers(device, workers, self._options["time_limit"])
        session = Session(device, self._selection, workers=workers, **self._options)
        before = len(self.reports)
        try:
            with progress_of(session) as progress, contextlib.closing(session.results()) as results:
                for result in results:
                    progress.update(result)
                    if self._file is not None and self._file.is_due:
                        self._take(session.report, before)
                        self._save()
        finally:
            self._take(session.report, before)

    def _take(self, report: Report | None, index: int) -> None:
        """Keep the newest report of a device."""
        self.reports[index:] = [] if report is None else [report]

    def _save(self, *, force: bool = False) -> None:
        if self._file is not None and (force or self._file.is_due):
            self._file.write(self.reports, is_over=self._is_over)

    def print(self) -> None:
        """Print what is known, as a report or as a document."""
        from burn.cli._check_json import document_of
        from burn.cli._check_report import print_report
        from burn.cli._rendering import console_on

        if self._json_to_out:
            self._out.write(document_of(self.reports, is_over=self._is_over))
            return
        console = console_on(self._out)
        for report in self.reports:
            print_report(console, report)
        if not self.reports:
            console.print("stopped before the first check")


@contextlib.contextmanager
def _terminating() -> Iterator[None]:
    """Have SIGTERM, which ``timeout`` and CI send, stop the run as Ctrl-C does."""

    def stop(number: int, frame: object) -> None:
        del frame
        raise KeyboardInterrupt(number)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _list(out: TextIO, subject: Subject, selection: Selection) -> None:
    from burn.testing import SUITES, checks_of

    out.writelines(f"# {suite.name}: {suite.summary}\n" for suite in SUITES.values())
    out.writelines(f"{check.name}\n" for check in checks_of(subject, selection))
