"""Devices as tables: one of the hardware, and one of what each can do with which dtype."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from burn.cli._output import printable
from burn.cli._rendering import print_table, table_on
from burn.cli.inventory import usage_of
from burn.dtype import DType, DTypeUsage

if TYPE_CHECKING:
    from rich.console import Console

    from burn.cli.inventory import Inventory
    from burn.devices import Device

__all__ = ["compact", "print_devices"]

_MIN_NAME_COLUMNS: Final = 16
"""Columns that a name of hardware, or of a driver, needs at least."""


_COLUMNS_PER_DTYPE: Final = 3
"""Columns from the mark of one dtype to that of the next: most widths have two digits."""


class _Mark(NamedTuple):
    """How a use of a dtype is shown, and what that means."""

    sign: str
    ascii: str
    style: str
    meaning: str


_COMPUTES: Final = _Mark("●", "C", "green", "computes")
_ACCELERATES: Final = _Mark("★", "A", "bold green", "computes faster than with float32")
_STORES: Final = _Mark("○", "S", "yellow", "stores only")
_LACKS: Final = _Mark("-", "-", "dim", "not there")
_UNKNOWN: Final = _Mark("?", "?", "dim", "its library knows; -v asks it")


def print_devices(console: Console, inventory: Inventory) -> None:
    """Print all devices: as tables where the console is wide enough, else one below the other."""
    hardware, dtypes = _hardware_table(console, inventory), _dtype_table(console, inventory)
    if max(_least_width(hardware), _least_width(dtypes)) <= console.width:
        print_table(console, hardware)
        console.print()
        print_table(console, dtypes)
        print_table(console, Padding(_legend(console, inventory), (0, 0, 0, 2), expand=False))
    else:
        for device in inventory.devices:
            console.print(_name(device, inventory), overflow="fold")
            print_table(console, _details(device))


def _name(device: Device, inventory: Inventory) -> Text:
    is_default = device is inventory.default
    return Text(
        f"{'*' if is_default else ' '} {device.name}", style="bold green" if is_default else ""
    )


def _memory(device: Device) -> str:
    memory = device.info.memory
    return "?" if memory is None else f"{memory / 2**30:.1f} GiB"


def _least_width(table: Table) -> int:
    """Width below which something in a table would be cut."""
    widths = [
        max(map(_width, [column.header, *column.cells])) if column.no_wrap else _MIN_NAME_COLUMNS
        for column in table.columns
    ]
    return sum(widths) + (table.padding[1] + 1) * (len(widths) - 1)


def _width(cell: object) -> int:
    return max(map(cell_len, str(cell).split("\n")))


def _hardware_table(console: Console, inventory: Inventory) -> Table:
    table = table_on(console)
    table.add_column("  Device", no_wrap=True)
    table.add_column("Hardware", overflow="fold", min_width=_MIN_NAME_COLUMNS)
    table.add_column("Memory", no_wrap=True, justify="right")
    with_driver = any(device.info.driver for device in inventory.devices)
    if with_driver:
        table.add_column("Driver", overflow="fold", min_width=_MIN_NAME_COLUMNS)
    table.add_column("DeviceId", no_wrap=True)
    for device in inventory.devices:
        driver = [Text(printable(device.info.driver))] if with_driver else []
        table.add_row(
            _name(device, inventory),
            Text(printable(device.info.hardware)),
            _memory(device),
            *driver,
            str(tuple(device.dispatch_id)),
        )
    return table


def _dtype_table(console: Console, inventory: Inventory) -> Table:
    """A column for each family of dtypes, with a mark below the width of each."""
    table = table_on(console)
    table.add_column("\n  Dtypes", no_wrap=True)
    families = _families(DType.members())
    for family, dtypes in families.items():
        widths = [f"{_bits(dtype):{_COLUMNS_PER_DTYPE - 1}}" for dtype in dtypes]
        table.add_column(f"{family}\n{' '.join(widths)}", no_wrap=True)
    for device in inventory.devices:
        marks = _marks(device)
        cells = []
        for dtypes in families.values():
            cell = Text()
            for dtype in dtypes:
                cell.append(_sign(console, marks[dtype]), marks[dtype].style)
                cell.append(" " * (_COLUMNS_PER_DTYPE - 1))
            cells.append(cell)
        table.add_row(_name(device, inventory), *cells)
    return table


def _legend(console: Console, inventory: Inventory) -> Text:
    """What the marks mean that occur."""
    found = {mark for device in inventory.devices for mark in _marks(device).values()}
    legend = Text()
    for mark in (_COMPUTES, _ACCELERATES, _STORES, _LACKS, _UNKNOWN):
        if mark in found:
            meaning = f" {mark.meaning}"
            if not console.options.ascii_only:  # a meaning is not broken over two lines
                meaning = meaning.replace(" ", "\N{NO-BREAK SPACE}")
            legend.append("   " if legend else "")
            legend.append(_sign(console, mark), mark.style)
            legend.append(meaning, "dim")
    return legend


def _marks(device: Device) -> dict[DType, _Mark]:
    """What the device does with each dtype."""
    usage = usage_of(device)
    return {
        dtype: _UNKNOWN if usage is None else _mark(usage.get(dtype, DTypeUsage.NONE))
        for dtype in DType.members()
    }


def _mark(usage: DTypeUsage) -> _Mark:
    if DTypeUsage.GENERAL in usage:
        return _ACCELERATES if DTypeUsage.ACCELERATED in usage else _COMPUTES
    return _STORES if DTypeUsage.STORAGE in usage else _LACKS


def _sign(console: Console, mark: _Mark) -> str:
    return mark.ascii if console.options.ascii_only else mark.sign


def _details(device: Device) -> Table:
    """All that is known of one device, a line for each."""
    info = device.info
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=3)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("", "hardware", printable(info.hardware))
    grid.add_row("", "memory", _memory(device))
    if info.driver:
        grid.add_row("", "driver", printable(info.driver))
    grid.add_row("", "DeviceId", str(tuple(device.dispatch_id)))
    usage = usage_of(device)
    if usage is None:
        grid.add_row("", "computes", "?")
        return grid
    for label, dtypes in _by_usage(usage):
        if dtypes:
            grid.add_row("", label, compact(dtypes))
    return grid


def _by_usage(usage: Mapping[DType, DTypeUsage]) -> Iterator[tuple[str, list[DType]]]:
    dtypes = [dtype for dtype in DType.members() if usage.get(dtype)]
    general = [dtype for dtype in dtypes if DTypeUsage.GENERAL in usage[dtype]]
    yield "computes", general
    yield "accelerates", [dtype for dtype in dtypes if DTypeUsage.ACCELERATED in usage[dtype]]
    yield "stores", [dtype for dtype in dtypes if dtype not in general]


def compact(dtypes: Iterable[DType]) -> str:
    """Names of dtypes, those that differ in their width alone as one.

    Examples
    --------
    >>> from burn.dtype import bool_, int8, int16, int32, float16, float64
    >>> compact([bool_, int8, int16, int32, float16, float64])
    'bool, int8-32, float16/64'
    """
    return ", ".join(
        family + _joined([_bits(dtype) for dtype in found])
        for family, found in _families(dtypes).items()
    )


def _joined(widths: list[str]) -> str:
    """Three widths or more, each twice the one before, as a range."""
    doubled = all(2 * int(low) == int(high) for low, high in itertools.pairwise(widths))
    return f"{widths[0]}-{widths[-1]}" if doubled and len(widths) > 2 else "/".join(widths)


def _families(dtypes: Iterable[DType]) -> dict[str, list[DType]]:
    """Dtypes by their names without the width."""
    families: dict[str, list[DType]] = {}
    for dtype in dtypes:
        families.setdefault(dtype.name.removesuffix(_bits(dtype)), []).append(dtype)
    return families


def _bits(dtype: DType) -> str:
    """The width in the name of a dtype; nothing for bool."""
    return dtype.name[len(dtype.name.rstrip("0123456789")) :]
