"""The command ``burn devices``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

import burn
from burn.cli._output import own_stdout, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from burn.cli.device_check import Outcome
    from burn.cli.inventory import Inventory
    from burn.devices import Device
    from burn.dtype import DType, DTypeUsage
    from burn.plugins import PluginRecord

__all__ = ["devices"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: see docs/cli.md.")
@click.option("--check", is_flag=True, help="Compute on each device, and compare with the host.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Load the backends, for what only they can tell; show tracebacks.",
)
@click.pass_context
def devices(ctx: click.Context, *, as_json: bool, check: bool, verbose: bool) -> None:
    """List the devices, what they can do, and the plugins without any.

    The device marked with * is the default. No backend is loaded for the list; a ? stands for
    what only the loaded library can tell, and -v asks it.

    --check computes on each device, in a process of its own: a transfer there and back, a matrix
    product, reductions and random bits. It prints PASS, or FAIL and the reason.

    \b
    Examples:
      burn devices
      burn devices --check
      BURN_DEVICE_PRIORITY=opencl,cpu burn devices
      burn devices --json | jq '.devices[].name'

    \b
    Exit status:
      0   the list is complete; with --check, there are devices, and all passed
      1   with --check, a device failed, a plugin is broken,
          or there is no device
    """  # noqa: D301 — \b keeps click from filling the paragraph
    from burn.cli.inventory import take

    with own_stdout() as out:
        # A check loads the backend in a process of its own: this one is to survive what crashes.
        inventory = take(load=verbose and not check)
        checks = _checks(inventory) if check else iter(())
        # All else is done before the checks: a backend that hangs in one keeps its lock.
        if as_json:
            document = _as_json(inventory)
            outcomes = list(checks)
            _add_outcomes(document, outcomes)
            write_json(out, document)
        else:
            from burn.cli._rendering import console_on

            console = console_on(out)
            _print(console, inventory, verbose=verbose)
            if check:
                console.print()
            width = max(map(len, _names(inventory)), default=0)
            outcomes = [_print_outcome(console, check, width, verbose=verbose) for check in checks]
    if check and not (outcomes and all(outcome.passed for outcome in outcomes)):
        ctx.exit(1)


def _checks(inventory: Inventory) -> Iterator[Outcome]:
    from burn.cli._device_check_process import check_all
    from burn.cli.device_check import failed

    yield from check_all(inventory)
    for failure in inventory.failures:
        yield failed(failure)


def _print(console: Console, inventory: Inventory, *, verbose: bool) -> None:
    from burn.cli._device_tables import print_devices
    from burn.cli._rendering import print_line, print_traceback

    if inventory.devices:
        print_devices(console, inventory)
        console.print()
    else:
        # A backend that is installed and broken is not mended by another one.
        install = "" if inventory.failures else f" Install a backend. {inventory.hint}"
        print_line(console, f"No devices.{install}")
    for style, line in _notes(inventory):
        print_line(console, line, style)
    if verbose:
        for failure in inventory.failures:
            console.print()
            print_traceback(console, failure.name, failure.error)


def _notes(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Lines below the table, each with its style."""
    if inventory.default is not None:
        yield "", f"* default device: {inventory.choice}"
    elif inventory.devices:
        yield "red", f"no default device: {inventory.choice}"
    for entry in inventory.idle:
        reason = f": {entry.absence}" if entry.absence else ""
        yield "dim", f"no hardware: {entry.name} of {entry.plugin}{reason}"
    for failure in inventory.failures:
        yield "red", f"broken: {failure.name} of {failure.plugin}: {failure.reason}"
    for restriction in inventory.restrictions:
        yield "dim", f"restricted by {restriction}"


def _names(inventory: Inventory) -> list[str]:
    """What outcomes of checks are called."""
    return [device.name for device in inventory.devices] + [
        failure.name for failure in inventory.failures
    ]


def _print_outcome(console: Console, one: Outcome, width: int, *, verbose: bool) -> Outcome:
    """Print an outcome, with its name in a column of its own, and return it."""
    from rich.text import Text

    from burn.cli._output import printable
    from burn.cli._rendering import print_traceback

    line = Text.assemble(
        ("PASS", "bold green") if one.passed else ("FAIL", "bold red"),
        f"  {one.name:{width}}",
        "" if one.seconds is None else (f"  {one.seconds:.2f} s", "dim"),
        printable(f"  {one.reason}") if one.reason else "",
    )
    console.print(line, soft_wrap=not console.is_terminal)
    if verbose and one.traceback:
        print_traceback(console, one.name, one.traceback)
    return one


def _as_json(inventory: Inventory) -> dict[str, Any]:
    return {
        "schema": 1,
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
    from burn.cli.inventory import usage_of

    info = device.info
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
        "dtypes": _usage_as_json(usage_of(device)),
        "check": None,
    }


def _usage_as_json(usage: Mapping[DType, DTypeUsage] | None) -> dict[str, list[str]] | None:
    from burn.dtype import DType, DTypeUsage

    if usage is None:
        return None
    return {
        dtype.name: [
            (usage_flag.name or "").lower() for usage_flag in usage.get(dtype, DTypeUsage.NONE)
        ]
        for dtype in DType.members()
    }


def _add_outcomes(document: dict[str, Any], outcomes: list[Outcome]) -> None:
    """Put what the checks found beside the devices; there may be outcomes of no device."""
    found = {outcome.name: outcome for outcome in outcomes if outcome.seconds is not None}
    for device in document["devices"]:
        one = found.get(device["name"])
        if one is not None and one.seconds is not None:
            device["check"] = {
                "passed": one.passed,
                "seconds": round(one.seconds, 3),
                "reason": one.reason,
            }
            device["dtypes"] = _usage_as_json(one.usage) or device["dtypes"]


def _plugin_as_json(plugin: PluginRecord) -> dict[str, str]:
    return {"distribution": plugin.distribution, "version": plugin.version}
