"""Large matrix products: by panels of packed matrices on CPUs, by tiles on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from burn.plugin_api import DTYPE_CODES, c_type_of
from burn_opencl.limits import GPU_GROUP_ITEMS
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer, Memory
    from burn_opencl.launcher import Launcher

__all__ = ["Gemm", "multiply_panels", "multiply_tiles", "split_inner"]

_ROWS_PER_PACKING_ITEM: Final = 64

_ROWS_IN_CPU_REGISTERS: Final = 6
_VECTOR_BYTES: Final = 64
"""A CPU multiplies so many rows at a time by a vector of the other matrix."""


class Tile(NamedTuple):
    """Shape of the tile that a group computes, and of the part of it that an item does."""

    rows: int
    columns: int
    depth: int
    rows_per_item: int
    columns_per_item: int


class Gemm(NamedTuple):
    """A batch of matrix products.

    `first` and `second` are strides of the left and right operand: from matrix to matrix, from row
    to row, and from column to column.
    """

    matrices: int
    m: int
    inner: int
    n: int
    left: Buffer
    right: Buffer
    first: tuple[int, int, int]
    second: tuple[int, int, int]


_SMALLEST_TILE: Final = Tile(64, 64, 16, 4, 4)
_TILES: Final = (Tile(128, 64, 16, 8, 4), _SMALLEST_TILE)
_FLOAT64_TILES: Final = (Tile(128, 128, 8, 8, 8), _SMALLEST_TILE)
"""Tiles of float64, as large as local memory allows."""

_MAX_TILE_DEPTH: Final = 16
_GPU_GROUPS_PER_UNIT: Final = 4
"""With so many groups, a compute unit computes while some of them wait for memory."""

_MIN_INNER_PER_PART: Final = 512
_MIN_INNER_TO_SPLIT: Final = 1024
"""Below this length of the inner axis, a second kernel takes longer than it saves."""


def multiply_panels(launcher: Launcher, product: Gemm, out: Buffer) -> None:
    """Write a product to new, dense memory, on a CPU."""
    count, m, inner, n, left, right, first, second = product
    c_type = c_type_of(right.dtype)
    width = _VECTOR_BYTES // (8 if c_type == "double" else 4)
    panels = -(-n // width)
    packed = _packed(launcher, right, width, (second[0] and count) or 1, n, inner, second)
    memory = left.memory
    is_row_major = first[2] == 1
    if not is_row_major:
        memory = _packed(
            launcher,
            left,
            _ROWS_IN_CPU_REGISTERS,
            (first[0] and count) or 1,
            m,
            inner,
            (first[0], first[2], first[1]),
        )
    target = DTYPE_CODES[out.dtype.name]
    parameters = (count, m, inner, n, left.offset, 0, *first, *second, 0, target, out.offset)
    kernel = launcher.kernel(
        "multiply_panels", "matmul.cl", c_type, {"PACKED_1": int(not is_row_major)}
    )
    launcher.run(
        kernel,
        count * panels * -(-m // _ROWS_IN_CPU_REGISTERS),
        parameters,
        (memory, packed, out.memory),
        1,
    )


def _packed(
    launcher: Launcher,
    x: Buffer,
    width: int,
    count: int,
    columns: int,
    inner: int,
    strides: tuple[int, int, int],
) -> Memory:
    """Matrices of (inner, columns) in panels of a width, the last one padded with zeros."""
    c_type = c_type_of(x.dtype)
    panels = -(-columns // width)
    packed = launcher.scratch(count * panels * inner * width * (8 if c_type == "double" else 4))
    definitions = {"PANEL": width, "TYPE": DTYPE_CODES[x.dtype.name], "TARGET": 0}
    kernel = launcher.kernel("pack_panels", "matmul.cl", c_type, definitions)
    parameters = (count, 0, inner, columns, 0, x.offset, 0, 0, 0, *strides, 0, 0, 0)
    launcher.run(
        kernel,
        count * panels * -(-inner // _ROWS_PER_PACKING_ITEM),
        parameters,
        (x.memory, packed),
        1,
    )
    return packed


def split_inner(launcher: Launcher, product: Gemm) -> tuple[int, int]:
    """Number and length of the parts of the inner axis that are multiplied by groups of their own.

    With few tiles, whole products would leave a part of the device without work.
    """
    units, inner = launcher.runtime.units, product.inner
    tile = _tile_for(product, units, product.left.dtype.itemsize)
    parts = min(
        _GPU_GROUPS_PER_UNIT * units // _groups(product, tile), inner // _MIN_INNER_PER_PART
    )
    if parts < 2 or inner < _MIN_INNER_TO_SPLIT:
        return 1, inner
    chunk = -(-inner // parts // _MAX_TILE_DEPTH) * _MAX_TILE_DEPTH
    return -(-inner // chunk), chunk


def multiply_tiles(
    launcher: Launcher, product: Gemm, out: Buffer, parts: int = 1, chunk: int = 0
) -> None:
    """Write a product to new, dense memory, on a GPU.

    If the inner axis is split, the products of its parts are written: (batch, parts, m, n).
    """
    count, m, inner, n, left, right, first, second = product
    dtype = left.dtype
    tile = _tile_for(product, launcher.runtime.units, dtype.itemsize)
    along_inner_1, by_vec4_1 = _reading_order(left.offset, first[0], first[1], first[2], m)
    along_inner_2, by_vec4_2 = _reading_order(right.offset, second[0], second[2], second[1], n)
    definitions: dict[str, str | int] = {
        "ROWS": tile.rows,
        "COLUMNS": tile.columns,
        "DEPTH": tile.depth,
        "ROWS_PER_ITEM": tile.rows_per_item,
        "COLUMNS_PER_ITEM": tile.columns_per_item,
        "ALONG_INNER_1": int(along_inner_1),
        "BY_VEC4_1": int(by_vec4_1),
        "ALONG_INNER_2": int(along_inner_2),
        "BY_VEC4_2": int(by_vec4_2),
        "WRITES_VEC4": int(n % 4 == 0 and out.offset % 4 == 0),
        "TYPE": DTYPE_CODES[dtype.name],
        "TARGET": DTYPE_CODES[out.dtype.name],
    }
    kernel = launcher.kernel(
        "multiply_tiles", "matmul_tiles.cl", c_type_of(dtype), definitions, text_of("vec4.cl")
    )
    parameters = [count, m, inner, n, left.offset, right.offset, *first, *second]
    parameters += [parts, chunk or inner, out.offset]
    items = parts * _groups(product, tile) * GPU_GROUP_ITEMS
    launcher.run(
        kernel, items, parameters, (left.memory, right.memory, out.memory), GPU_GROUP_ITEMS
    )


def _tile_for(product: Gemm, units: int, itemsize: int) -> Tile:
    """The largest tile that gives all of the device work and that the result fills."""
    parts = (
        max(1, product.inner // _MIN_INNER_PER_PART) if product.inner >= _MIN_INNER_TO_SPLIT else 1
    )
    for tile in _FLOAT64_TILES if itemsize == 8 else _TILES:
        fills = tile.rows < 2 * product.m and tile.columns < 2 * product.n
        if fills and 10 * parts * _groups(product, tile) >= 9 * units:
            return tile
    return _SMALLEST_TILE


def _groups(product: Gemm, tile: Tile) -> int:
    return product.matrices * -(-product.m // tile.rows) * -(-product.n // tile.columns)


def _reading_order(
    offset: int, matrix_stride: int, outer_stride: int, inner_stride: int, outer_length: int
) -> tuple[bool, bool]:
    """Whether items read a matrix along the inner axis, and whether by vectors of four."""
    along_inner = inner_stride == 1 or outer_stride != 1
    other_stride = outer_stride if along_inner else inner_stride
    contiguous = 1 in (inner_stride, outer_stride)
    divisible = along_inner or outer_length % 4 == 0
    aligned = not (offset % 4 or matrix_stride % 4 or other_stride % 4)
    return along_inner, contiguous and divisible and aligned
