"""Profiles as tables for people, with rich, which is imported when one is printed."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from rich import box
from rich.console import Console
from rich.table import Table

from burn.ops.op_log import duration_text
from burn.profiling.summary import Summary

if TYPE_CHECKING:
    from burn.profiling.profiles import Profile

__all__ = ["print_profile", "text_of"]

_MAX_ROWS: Final = 20
"""Rows of a table; the rest is summed up in one more."""


_HEAD: Final = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


def print_profile(profile: Profile) -> None:
    """Print the tables of a profile to standard output, in colours if that is a terminal."""
    console = _console(sys.stdout)
    if console.is_terminal:
        _print(console, profile)
    else:
        sys.stdout.write(f"{_text(console, profile)}\n")


def text_of(profile: Profile) -> str:
    """The tables of a profile as text."""
    return _text(_console(io.StringIO()), profile)


def _console(file: TextIO) -> Console:
    return Console(file=file, highlight=False, markup=False, emoji=False)


def _text(console: Console, profile: Profile) -> str:
    """What is printed on a console, without the blanks that fill its lines."""
    with console.capture() as capture:
        _print(console, profile)
    return "\n".join([line.rstrip() for line in capture.get().splitlines()])


def _print(console: Console, profile: Profile) -> None:
    micro = "u" if console.options.ascii_only else "µ"

    def show(seconds: float) -> str:
        return duration_text(1e9 * seconds).replace("µ", micro)

    def print_table(name: str, rows: Sequence[Summary], shown: int = 7) -> None:
        table = Table(
            box=_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            header_style="bold",
            border_style="dim",
        )
        table.add_column(name, overflow="fold")
        heads = ["calls", "time", "share", "bytes", "FLOP", "GB/s", "GFLOP/s"][:shown]
        heads = heads[: max(2, (console.width - 17) // 9)]  # what leaves room for the name
        for head in heads:
            table.add_column(head, justify="right", no_wrap=True)
        for row in rows:
            cells = [
                f"{row.calls:,}",
                show(row.seconds),
                f"{row.share:.1%}",
                _scaled(row.bytes, "B"),
                _scaled(row.flops),
                _rate(row.bytes_per_second),
                _rate(row.flops_per_second),
            ]
            table.add_row(row.name or "(none)", *cells[: len(heads)])
        console.print()
        console.print(table)

    calls = len(profile.events)
    inside = sum([row.seconds for row in profile.by_device()])
    share = profile.outside / profile.seconds if profile.seconds else 0.0
    console.print(
        f"{show(profile.seconds)}; {calls:,} calls take {show(inside)}; outside of them the "
        f"program takes {show(profile.outside)} ({share:.0%})"
    )
    if not calls:
        return
    by_op = profile.by_op()
    print_table("op", [*_cut(by_op), _sum("total", by_op)])
    print_table("line", _cut(profile.by_line()))
    print_table("device", profile.by_device())
    if round_trips := profile.round_trips():
        print_table("round trips", round_trips, shown=4)


def _cut(rows: list[Summary]) -> list[Summary]:
    """The rows of a table: the first ones, and the sum of all others."""
    if len(rows) <= _MAX_ROWS:
        return rows
    rest = rows[_MAX_ROWS - 1 :]
    return [*rows[: _MAX_ROWS - 1], _sum(f"{len(rest)} others", rest)]


def _sum(name: str, rows: list[Summary]) -> Summary:
    return Summary(
        name,
        sum([row.calls for row in rows]),
        sum([row.seconds for row in rows]),
        sum([row.share for row in rows]),
        sum([row.bytes for row in rows]),
        sum([row.flops for row in rows]),
    )


def _scaled(number: float, unit: str = "") -> str:
    """A number with three digits and a prefix for thousands, as ``4.19 M``; empty for 0."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * size:
            return f"{number / size:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}".rstrip() if number else ""


def _rate(per_second: float) -> str:
    """Billions for each second, with three digits at most; empty for 0."""
    billions = per_second / 1e9
    if not billions:
        return ""
    return f"{billions:.3g}" if billions >= 0.001 else "<0.001"
