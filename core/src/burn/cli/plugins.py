"""The command ``burn plugins``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

import burn
from burn.cli._output import own_stdout, printable, write_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from burn.cli.inventory import Row

__all__ = ["plugins"]

_STYLES: Final = {
    "loaded": "green",
    "ready": "green",
    "no hardware": "yellow",
    "blocked": "dim",
    "failed": "red",
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: see docs/cli.md.")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def plugins(*, as_json: bool, verbose: bool) -> None:
    """List the plugins that are installed, and what is wrong with them.

    \b
    A plugin, or a backend that it brings, is
      ready         it has devices, and is loaded when it is used
      no hardware   it works, and finds no device, no driver or no library
      failed        it cannot be used; the reason stands below the table
      blocked       BURN_PLUGINS or BURN_DISABLE_PLUGINS keeps it out

    No backend is loaded for this. What changed since the plugin API for which a plugin was written
    is a line below the table.

    \b
    Examples:
      burn plugins
      burn plugins -v
      burn plugins --json | jq '.plugins[] | select(.state == "failed")'

    \b
    Exit status:
      0   the list is complete
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.cli.inventory import plugin_rows

    with own_stdout() as out:
        rows = plugin_rows()
        if as_json:
            write_json(out, _as_json(rows))
            return
        from burn.cli._rendering import console_on, print_line, print_table, print_traceback
        from burn.plugins import install_hint
        from burn.plugins.api_changes import changes_since

        console = console_on(out)
        if rows:
            print_table(console, _table(console, rows))
        else:
            print_line(console, f"No plugins. {install_hint('cpu')}")
        reasons = [row for row in rows if row.reason]
        if reasons:
            console.print()
        for row in reasons:
            line = f"{row.state}: {_name(row)} of {row.plugin}: {row.reason}"
            print_line(console, line, _STYLES[row.state])
        for row in rows:
            if row.entry is not None and row.error is None:
                changes = changes_since(row.entry.spec.api_version)
                if changes:
                    print_line(console, f"{_name(row)} of {row.plugin}: {changes}", "dim")
        for row in reasons if verbose else ():
            if row.error is not None:
                console.print()
                print_traceback(console, _name(row), row.error)


def _name(row: Row) -> str:
    return row.plugin.name if row.entry is None else row.entry.name


def _table(console: Console, rows: list[Row]) -> Table:
    from rich.text import Text

    from burn.cli._rendering import table_on

    table = table_on(console)
    for title in ("Backend", "State", "API"):
        table.add_column(title, no_wrap=True)
    for title in ("Distribution", "Entry point"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(
            "-" if row.entry is None else row.entry.name,
            Text(row.state, style=_STYLES[row.state]),
            "-" if row.entry is None else ".".join(map(str, row.entry.spec.api_version)),
            printable(str(row.plugin)),
            printable(f"{row.plugin.name} = {row.plugin.entry_point}"),
        )
    return table


def _as_json(rows: list[Row]) -> dict[str, Any]:
    from burn.plugins import API_VERSION

    return {
        "schema": 1,
        "version": burn.__version__,
        "api_version": list(API_VERSION),
        "plugins": [
            {
                "name": row.plugin.name,
                "entry_point": row.plugin.entry_point,
                "distribution": row.plugin.distribution,
                "version": row.plugin.version,
                "backend": None if row.entry is None else row.entry.name,
                "device_types": None if row.entry is None else list(row.entry.spec.device_types),
                "api_version": None if row.entry is None else list(row.entry.spec.api_version),
                "devices": row.devices,
                "state": row.state,
                "reason": row.reason,
            }
            for row in rows
        ],
    }
