"""Tables and lines for people, with rich, which is imported here when it is needed."""

from __future__ import annotations

import traceback
from typing import Final, TextIO

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from burn.cli._output import printable

__all__ = ["console_on", "print_line", "print_table", "print_traceback", "table_on"]

_ASCII_HEAD: Final = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


def console_on(out: TextIO) -> Console:
    """A console that takes text as it is, with colours if `out` is a terminal that wants them."""
    return Console(file=out, highlight=False, markup=False, emoji=False)


def table_on(console: Console) -> Table:
    """A table without lines but that below its head."""
    return Table(
        box=_ASCII_HEAD if console.options.ascii_only else box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
        border_style="dim",
    )


def print_table(console: Console, table: RenderableType) -> None:
    """Print a table; in a pipe, without the blanks that fill its lines."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as capture:
        console.print(table)
    console.file.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def print_line(console: Console, line: str, style: str = "") -> None:
    """Print a line, broken between words on a terminal, and whole for programs that read it."""
    console.print(printable(line), style=style, soft_wrap=not console.is_terminal)


def print_traceback(console: Console, name: str, error: BaseException | str) -> None:
    """Print where an exception comes from, or the text that says so."""
    console.print(f"{name}:", style="bold")
    text = error if isinstance(error, str) else "".join(traceback.format_exception(error))
    text = text.rstrip()
    console.print(printable(text), style="dim", soft_wrap=True)
