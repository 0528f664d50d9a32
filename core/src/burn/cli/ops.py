"""The command ``burn ops``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

import burn
from burn.cli._output import own_stdout, write_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from rich.console import Console
    from rich.table import Table

    from burn.ops import Op
    from burn.plugins import BackendEntry

__all__ = ["complete_backend", "ops"]

_STYLES: Final = {
    "native": "green",
    "generated": "green",
    "derived": "",
    "host": "yellow",
    "unsupported": "red",
}
"""Where an op can come from, best first; see `OpTable.origin`."""


@dataclass(frozen=True)
class _Coverage:
    """Where the ops of one backend come from."""

    entry: BackendEntry
    device: str | None
    origins: Mapping[str, str]
    reason: str | None
    """Why the backend cannot be asked; None where it answered."""

    def count(self, origin: str) -> int:
        """How many ops come from there."""
        return sum(name == origin for name in self.origins.values())


def complete_backend(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Backends that begin like this; for the shell, which must not see anything else."""
    del ctx, param
    from click.shell_completion import CompletionItem

    from burn.plugins import registry

    with own_stdout():
        try:
            entries = list(registry.entries.values())
        except Exception:  # noqa: BLE001 — shell completion prints no errors
            return []
    return [
        CompletionItem(entry.name, help=str(entry.plugin))
        for entry in entries
        if entry.name.startswith(incomplete)
    ]


@click.command()
@click.argument("backend", required=False, shell_complete=complete_backend)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: see docs/cli.md.")
def ops(*, backend: str | None, as_json: bool) -> None:
    """Say where each op of a backend comes from.

    Without BACKEND it says so of every backend. An op is

    \b
      native        the backend has it itself
      generated     kernels that core writes in the language of the backend
      derived       made of other ops of the backend
      host          computed with NumPy on the host, after a transfer
      unsupported   the backend should have it, and has not

    The backends are loaded for this, on the first device of each.

    \b
    Examples:
      burn ops
      burn ops cpu
      burn ops cpu | grep host
      burn ops --json | jq '.backends[] | {name, counts}'

    \b
    Exit status:
      0   the list is complete
      1   the BACKEND that was named is not there, or cannot be loaded
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.plugins import registry

    with own_stdout() as out:
        entries = [registry.entry(backend)] if backend else list(registry.entries.values())
        if backend:
            entries[0].load()  # raises, with the reason
        coverages = [_coverage(entry) for entry in entries]
        if as_json:
            write_json(out, _as_json(coverages))
            return
        from burn.cli._rendering import console_on, print_line

        console = console_on(out)
        _print(console, coverages)
        for coverage in coverages:
            where = f"{coverage.entry.name} of {coverage.entry.plugin}"
            if coverage.reason is None:
                total = ", ".join(f"{coverage.count(name)} {name}" for name in _STYLES)
                line = f"{where}: {len(coverage.origins)} ops, {total}"
            else:
                line = f"broken: {where}: {coverage.reason}"
            style = "" if coverage.reason is None else "red"
            print_line(console, line, style)
        if not coverages:
            from burn.plugins import install_hint

            print_line(console, f"No backends. {install_hint('cpu')}")


def _coverage(entry: BackendEntry) -> _Coverage:
    from burn.device_id import DeviceId
    from burn.devices import Device
    from burn.ops import REGISTRY, resolve
    from burn.plugins import describe

    devices = Device.enumerate(entry.name)
    name = devices[0].name if devices else None
    try:
        table = devices[0].ops if devices else resolve(entry.load(), DeviceId(0))
        origins = {op.name: table.origin(op) for op in REGISTRY.values()}
    except (Exception, SystemExit) as error:  # noqa: BLE001 — the others are listed all the same
        return _Coverage(entry, name, {}, describe(error.__cause__ or error))
    return _Coverage(entry, name, origins, None)


def _families() -> dict[str, list[Op]]:
    """The ops by the module that defines them, which is named after what they have in common."""
    from burn.ops import REGISTRY

    families: dict[str, list[Op]] = {}
    for op in REGISTRY.values():
        families.setdefault(op.__module__.rpartition(".")[2].replace("_", " "), []).append(op)
    return {family: sorted(families[family], key=lambda op: op.name) for family in sorted(families)}


def _print(console: Console, coverages: list[_Coverage]) -> None:
    """Print a line for each op, with a column for each backend; as many at a time as fit."""
    from burn.cli._rendering import print_table

    shown = [coverage for coverage in coverages if coverage.reason is None]
    names = max((len(op.name) for family in _families().values() for op in family), default=0) + 2
    column = max(map(len, [*_STYLES, *(coverage.entry.name for coverage in shown)])) + 2
    fitting = max(1, (console.width - names) // column)
    for start in range(0, len(shown), fitting):
        print_table(console, _table(shown[start : start + fitting]))
        console.print()


def _table(coverages: list[_Coverage]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Op", no_wrap=True)
    for coverage in coverages:
        table.add_column(coverage.entry.name, no_wrap=True)
    for family, definitions in _families().items():
        table.add_row(Text(f"{family} ({len(definitions)})", style="bold"))
        for op in definitions:
            origins = [coverage.origins[op.name] for coverage in coverages]
            table.add_row(
                f"  {op.name}", *(Text(origin, style=_STYLES[origin]) for origin in origins)
            )
    return table


def _as_json(coverages: list[_Coverage]) -> dict[str, Any]:
    return {
        "schema": 1,
        "version": burn.__version__,
        "backends": [
            {
                "name": coverage.entry.name,
                "distribution": coverage.entry.plugin.distribution,
                "version": coverage.entry.plugin.version,
                "device": coverage.device,
                "counts": {origin: coverage.count(origin) for origin in _STYLES},
                "reason": coverage.reason,
            }
            for coverage in coverages
        ],
        "ops": [
            {
                "name": op.name,
                "family": family,
                "required": op.is_required,
                "origins": {
                    coverage.entry.name: coverage.origins.get(op.name) for coverage in coverages
                },
            }
            for family, definitions in _families().items()
            for op in definitions
        ],
    }
