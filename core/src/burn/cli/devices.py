"""The command ``burn devices``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

    from burn.cli.inventory import Inventory
    from burn.device import Device
    from burn.dtype import DType, DTypeUsage
    from burn.plugins import PluginRecord

__all__ = ["devices"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def devices(*, as_json: bool) -> None:
    """List the devices that are there, and the plugins that bring none.

    The device marked with * is the default. With each device stand the dtypes that it

    \b
      computes      runs every op with
      stores        creates, casts, rearranges and transfers, but does no arithmetic with
      accelerates   computes with faster than with float32, on special units

    No backend is loaded for this; a ? stands for what only the loaded library can tell.

    \b
    Examples:
      burn devices
      BURN_DEVICE_PRIORITY=opencl,cpu burn devices
      burn devices --json | jq '.devices[].name'
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.cli.inventory import take  # imports NumPy

    inventory = take()
    if as_json:
        click.echo(json.dumps(_as_json(inventory), indent=2))
    else:
        _print(inventory)


def _print(inventory: Inventory) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if inventory.devices:
        console.print(_table(inventory))
        console.print()
    else:
        console.print(f"No devices. Install a backend. {inventory.hint}", soft_wrap=True)
    # These lines are not broken, so that a program, or a reader with grep, finds each on one.
    for style, line in _notes(inventory):
        console.print(line, style=style, soft_wrap=True)


def _table(inventory: Inventory) -> Table:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("  Device", no_wrap=True)
    table.add_column("Memory", no_wrap=True, justify="right")
    table.add_column("Hardware and dtypes", overflow="fold")
    for device in inventory.devices:
        is_default = device is inventory.default
        info = device.info
        table.add_row(
            Text(
                f"{'*' if is_default else ' '} {device.name}", style="green" if is_default else ""
            ),
            "?" if info.memory is None else f"{info.memory / 2**30:.1f} GiB",
            Group(Text(info.hardware, overflow="fold"), _dtypes(info.usage)),
        )
    return table


def _dtypes(usage: Mapping[DType, DTypeUsage] | None) -> Table:
    """A line for each kind of use, with the dtypes that have it."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True, min_width=len("accelerates"))
    grid.add_column(overflow="fold")
    if usage is None:
        grid.add_row("computes", "?")
        return grid
    for label, dtypes in _by_usage(usage):
        if dtypes:
            grid.add_row(label, _compact(dtypes))
    return grid


def _by_usage(usage: Mapping[DType, DTypeUsage]) -> Iterator[tuple[str, list[DType]]]:
    from burn.dtype import DType, DTypeUsage

    dtypes = [dtype for dtype in DType.members() if usage.get(dtype)]
    general = [dtype for dtype in dtypes if DTypeUsage.GENERAL in usage[dtype]]
    yield "computes", general
    yield "accelerates", [dtype for dtype in dtypes if DTypeUsage.ACCELERATED in usage[dtype]]
    yield "stores", [dtype for dtype in dtypes if dtype not in general]


def _compact(dtypes: Iterable[DType]) -> str:
    """Names of dtypes, those that differ in their width alone as one.

    Examples
    --------
    >>> from burn.dtype import bool_, int8, int16, int32, float16, float64
    >>> _compact([bool_, int8, int16, int32, float16, float64])
    'bool, int8-32, float16/64'
    """
    widths: dict[str, list[str]] = {}
    for dtype in dtypes:
        family = dtype.name.rstrip("0123456789")
        widths.setdefault(family, []).append(dtype.name.removeprefix(family))
    return ", ".join(family + _joined(found) for family, found in widths.items())


def _joined(widths: list[str]) -> str:
    """Three widths or more, each twice the one before, as a range."""
    doubled = all(2 * int(low) == int(high) for low, high in itertools.pairwise(widths))
    return f"{widths[0]}-{widths[-1]}" if doubled and len(widths) > 2 else "/".join(widths)


def _notes(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Lines below the table, each with its style."""
    if inventory.default is not None:
        yield "", f"* default device: {inventory.choice}"
    elif inventory.devices:
        yield "red", f"no default device: {inventory.choice}"
    for entry in inventory.idle:
        yield "dim", f"no hardware: {entry.name} of {_origin(entry.plugin)}"
    for failure in inventory.failures:
        yield "red", f"broken: {failure.name} of {_origin(failure.plugin)}: {failure.reason}"
    for restriction in inventory.restrictions:
        yield "dim", f"restricted by {restriction}"


def _origin(plugin: PluginRecord) -> str:
    return f"{plugin.distribution} {plugin.version}".rstrip()


def _as_json(inventory: Inventory) -> dict[str, Any]:
    import burn

    return {
        "version": burn.__version__,
        "default": inventory.default.name if inventory.default else None,
        "default_reason": inventory.choice,
        "devices": [
            _device_as_json(device, is_default=device is inventory.default)
            for device in inventory.devices
        ],
        "no_hardware": [
            {"name": entry.name, **_plugin_as_json(entry.plugin)} for entry in inventory.idle
        ],
        "broken": [
            {"name": failure.name, **_plugin_as_json(failure.plugin), "reason": failure.reason}
            for failure in inventory.failures
        ],
        "restrictions": inventory.restrictions,
    }


def _device_as_json(device: Device, *, is_default: bool) -> dict[str, Any]:
    from burn.dtype import DType, DTypeUsage

    info = device.info
    usage = info.usage
    return {
        "name": device.name,
        "backend": device.backend_name,
        "type": device.type,
        "index": device.index,
        "default": is_default,
        "id": device.id._asdict(),
        "dispatch_id": device.dispatch_id._asdict(),
        "hardware": info.hardware,
        "memory": info.memory,
        "driver": info.driver,
        "dtypes": None
        if usage is None
        else {
            dtype.name: [(one.name or "").lower() for one in usage.get(dtype, DTypeUsage.NONE)]
            for dtype in DType.members()
        },
    }


def _plugin_as_json(plugin: PluginRecord) -> dict[str, str]:
    return {"distribution": plugin.distribution, "version": plugin.version}
