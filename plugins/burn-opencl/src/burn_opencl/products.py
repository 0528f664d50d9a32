"""Large matrix products: in panels as CPUs like them best, and in tiles as GPUs do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from burn_opencl.expressions import CODES, class_of
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer, Memory
    from burn_opencl.launcher import Launcher

__all__ = ["Product", "multiply_panels", "multiply_tiles", "split"]

_ITEMS: Final = 256
"""Items that make a tile."""

_STEPS: Final = 64
"""An item packs so many rows of a panel."""

_ROWS: Final = 6
"""Rows that a CPU has in registers."""


class Tile(NamedTuple):
    """What a group makes of a result: an item makes so many rows and columns of the tile."""

    rows: int
    columns: int
    depth: int
    per_rows: int
    per_columns: int


class Product(NamedTuple):
    """Matrices, each with its strides from one to the next, along rows and along columns."""

    matrices: int
    m: int
    inner: int
    n: int
    left: Buffer
    right: Buffer
    first: tuple[int, int, int]
    second: tuple[int, int, int]


_SMALLEST: Final = Tile(64, 64, 16, 4, 4)
_TILES: Final = (Tile(128, 64, 16, 8, 4), _SMALLEST)
_WIDE_TILES: Final = (Tile(128, 128, 8, 8, 8), _SMALLEST)
"""Those of float64: as many elements as there is room for."""

_DEEPEST: Final = 16
_GROUPS_OF_A_UNIT: Final = 4
"""So many groups let a unit of a GPU wait for memory and compute at once."""

_SHORTEST: Final = 512
"""A part of the inner axis has this length at least."""

_LONG: Final = 1024
"""From this length on the inner axis goes in parts: two kernels take the host longer than one."""


def multiply_panels(launcher: Launcher, product: Product, out: Buffer) -> None:
    """Write a product to dense memory that is new, on a CPU."""
    count, m, inner, n, left, right, first, second = product
    computed = class_of(right.dtype)
    width = 8 if computed == "double" else 16
    panels = -(-n // width)
    packed = _packed(launcher, right, width, (second[0] and count) or 1, n, inner, second)
    memory = left.memory
    in_order = first[2] == 1
    if not in_order:
        memory = _packed(
            launcher,
            left,
            _ROWS,
            (first[0] and count) or 1,
            m,
            inner,
            (first[0], first[2], first[1]),
        )
    target = CODES[out.dtype.name]
    numbers = (count, m, inner, n, left.offset, 0, *first, *second, 0, target, out.offset)
    kernel = launcher.kernel(
        "multiply_panels", "matmul.cl", computed, {"PACKED_1": int(not in_order)}
    )
    launcher.run(kernel, count * panels * -(-m // _ROWS), numbers, (memory, packed, out.memory), 1)


def _packed(
    launcher: Launcher,
    x: Buffer,
    width: int,
    count: int,
    columns: int,
    inner: int,
    strides: tuple[int, int, int],
) -> Memory:
    """Matrices of (inner, columns) in panels of a width, the last filled up with zeros."""
    computed = class_of(x.dtype)
    panels = -(-columns // width)
    packed = launcher.scratch(count * panels * inner * width * (8 if computed == "double" else 4))
    definitions = {"PANEL": width, "TYPE": CODES[x.dtype.name], "TARGET": 0}
    kernel = launcher.kernel("pack_panels", "matmul.cl", computed, definitions)
    numbers = (count, 0, inner, columns, 0, x.offset, 0, 0, 0, *strides, 0, 0, 0)
    launcher.run(kernel, count * panels * -(-inner // _STEPS), numbers, (x.memory, packed), 1)
    return packed


def split(launcher: Launcher, product: Product) -> tuple[int, int]:
    """In how many parts of what length to add up along the inner axis, for tiles.

    Where there are few tiles, all of the device has work only so.
    """
    units, inner = launcher.runtime.units, product.inner
    tile = _tile_for(product, units, product.left.dtype.itemsize)
    parts = min(_GROUPS_OF_A_UNIT * units // _groups(product, tile), inner // _SHORTEST)
    if parts < 2 or inner < _LONG:
        return 1, inner
    chunk = -(-inner // parts // _DEEPEST) * _DEEPEST
    return -(-inner // chunk), chunk


def multiply_tiles(
    launcher: Launcher, product: Product, out: Buffer, parts: int = 1, chunk: int = 0
) -> None:
    """Write a product to dense memory that is new.

    If the inner axis goes in parts, what each comes to is written: (batch, parts, m, n).
    """
    count, m, inner, n, left, right, first, second = product
    dtype = left.dtype
    tile = _tile_for(product, launcher.runtime.units, dtype.itemsize)
    deep_1, quads_1 = _way(left.offset, first[0], first[1], first[2], m)
    deep_2, quads_2 = _way(right.offset, second[0], second[2], second[1], n)
    definitions: dict[str, str | int] = {
        "ROWS": tile.rows,
        "COLUMNS": tile.columns,
        "DEPTH": tile.depth,
        "PER_ROWS": tile.per_rows,
        "PER_COLUMNS": tile.per_columns,
        "DEEP_1": int(deep_1),
        "QUADS_1": int(quads_1),
        "DEEP_2": int(deep_2),
        "QUADS_2": int(quads_2),
        "QUADS_OUT": int(n % 4 == 0 and out.offset % 4 == 0),
        "TYPE": CODES[dtype.name],
        "TARGET": CODES[out.dtype.name],
    }
    kernel = launcher.kernel(
        "multiply_tiles", "tiles.cl", class_of(dtype), definitions, text_of("quads.cl")
    )
    numbers = [count, m, inner, n, left.offset, right.offset, *first, *second]
    numbers += [parts, chunk or inner, out.offset]
    items = parts * _groups(product, tile) * _ITEMS
    launcher.run(kernel, items, numbers, (left.memory, right.memory, out.memory), _ITEMS)


def _tile_for(product: Product, units: int, itemsize: int) -> Tile:
    """The largest with which all of the device has work, and which the result fills."""
    parts = max(1, product.inner // _SHORTEST) if product.inner >= _LONG else 1
    for tile in _WIDE_TILES if itemsize == 8 else _TILES:
        fills = tile.rows < 2 * product.m and tile.columns < 2 * product.n
        if fills and 10 * parts * _groups(product, tile) >= 9 * units:
            return tile
    return _SMALLEST


def _groups(product: Product, tile: Tile) -> int:
    return product.matrices * -(-product.m // tile.rows) * -(-product.n // tile.columns)


def _way(start: int, step: int, across: int, along: int, length: int) -> tuple[bool, bool]:
    """How a matrix is read: whether along the terms of a sum, and whether four elements at once."""
    deep = along == 1 or across != 1
    other = across if deep else along
    near = 1 in (along, across)
    whole = deep or length % 4 == 0
    return deep, near and whole and not (start % 4 or step % 4 or other % 4)
