"""Large matrix products: in panels as CPUs like them best, and in tiles as GPUs do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from burn_opencl.expressions import CODES, class_of
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer, Memory
    from burn_opencl.launcher import Launcher

__all__ = ["Product", "multiply_panels", "multiply_tiles"]

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


_TILES: Final = (Tile(128, 64, 16, 8, 4), Tile(64, 64, 16, 4, 4))
_SMALLEST: Final = _TILES[-1]


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


def multiply_tiles(
    launcher: Launcher, product: Product, out: Buffer, tile: Tile | None = None
) -> None:
    """Write a product to dense memory that is new."""
    count, m, inner, n, left, right, first, second = product
    dtype = left.dtype
    tile = tile or _tile_for(product, launcher.runtime.units, dtype.itemsize)
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
    numbers = (count, m, inner, n, left.offset, right.offset, *first, *second, 0, 0, out.offset)
    groups = count * -(-m // tile.rows) * -(-n // tile.columns)
    memories = (left.memory, right.memory, out.memory)
    launcher.run(kernel, groups * _ITEMS, numbers, memories, _ITEMS)


def _tile_for(product: Product, units: int, itemsize: int) -> Tile:
    """The largest with which all of the device has work."""
    if itemsize == 8:
        return _SMALLEST
    for tile in _TILES:
        groups = product.matrices * -(-product.m // tile.rows) * -(-product.n // tile.columns)
        if 10 * groups >= 9 * units:
            return tile
    return _SMALLEST


def _way(start: int, step: int, across: int, along: int, length: int) -> tuple[bool, bool]:
    """How a matrix is read: whether along the terms of a sum, and whether four elements at once."""
    deep = along == 1 or across != 1
    other = across if deep else along
    near = 1 in (along, across)
    whole = deep or length % 4 == 0
    return deep, near and whole and not (start % 4 or step % 4 or other % 4)
