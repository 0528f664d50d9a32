"""Variants of the elementwise kernel, and which of them fits the layouts of the operands.

Operands are described by the codes of their dtypes and by their strides over the axes of the
result, which is the last of them.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from burn.plugin_api import SCALAR_CODE
from burn_opencl.limits import GPU_GROUP_ITEMS, MAX_KERNEL_AXES

if TYPE_CHECKING:
    from burn.plugin_api import Shape

__all__ = [
    "Variant",
    "broadcast",
    "collapsed",
    "cpu_variant",
    "gpu_variant",
    "parameter_struct",
    "power_of_two",
]

_CPU_ITEM_ELEMENTS: Final = 8192
"""Elements that an item of a CPU computes."""

_TILE_LENGTH: Final = 32
"""Elements along each of the two axes of a tile that is transposed."""

Numbers = tuple[int, ...]
Strides = tuple[Numbers, ...]


class Variant(NamedTuple):
    """A variant of the kernel, and its launch.

    Attributes
    ----------
    items, group : int
        Number of work items, and of those in a group.
    definitions : mapping
        Macros that select the variant.
    lengths, strides : tuple
        Lengths of the axes and strides of each operand, in the order in which it iterates.
    """

    items: int
    group: int
    definitions: Mapping[str, str | int]
    lengths: Numbers
    strides: Strides


def cpu_variant(codes: Numbers, lengths: Numbers, strides: Strides) -> Variant:
    """Along rows: an item computes a part of a row, or several rows."""
    inner = lengths[-1]
    rows = math.prod(lengths) // inner
    if inner >= _CPU_ITEM_ELEMENTS:
        items = rows * -(-inner // _CPU_ITEM_ELEMENTS)
    else:
        items = -(-rows // (_CPU_ITEM_ELEMENTS // inner))
    definitions = {"ITEM_ELEMENTS": _CPU_ITEM_ELEMENTS} | _types(codes) | _strides(codes, strides)
    return Variant(items, 1, definitions, lengths, strides)


def gpu_variant(codes: Numbers, lengths: Numbers, strides: Strides, offsets: Numbers) -> Variant:
    """By vectors of four elements, by tiles that are transposed, or element by element.

    Complex numbers are vectors themselves, and go element by element.
    """
    is_complex = max(codes) > SCALAR_CODE
    axis = None if is_complex else _transposed_axis(codes, lengths, strides)
    if axis is not None:
        order = (
            *[index for index in range(len(lengths) - 1) if index != axis],
            axis,
            len(lengths) - 1,
        )
        lengths = tuple([lengths[number] for number in order])
        strides = tuple([tuple([row[number] for number in order]) for row in strides])
        tiles = math.prod(lengths[:-2]) * math.prod(
            [-(-length // _TILE_LENGTH) for length in lengths[-2:]]
        )
        items, definitions = tiles * GPU_GROUP_ITEMS, _tile_macros(codes, strides)
    else:
        items, definitions = -(-math.prod(lengths) // 4), {}
        if not is_complex and _fits_vec4(codes, lengths, strides, offsets):
            definitions = _vec4_macros(codes) | _strides(codes, strides)
    definitions = {"RANK": len(lengths)} | _types(codes) | definitions
    return Variant(items, GPU_GROUP_ITEMS, definitions, lengths, strides)


def _types(codes: Numbers) -> dict[str, str | int]:
    return {f"TYPE_{k}": code for k, code in enumerate(codes)}


def _strides(codes: Numbers, strides: Strides) -> dict[str, str | int]:
    """Strides along the last axis, as constants where they are 0 or 1."""
    macros: dict[str, str | int] = {}
    for k, (code, row) in enumerate(zip(codes, strides, strict=True)):
        stride = 0 if code == SCALAR_CODE else row[-1]
        macros[f"STRIDE_{k}"] = stride if stride in (0, 1) else f"strides[{k}]"
    return macros


def _fits_vec4(codes: Numbers, lengths: Numbers, strides: Strides, offsets: Numbers) -> bool:
    """Whether vectors of four elements of a row are contiguous and aligned in all operands."""
    if strides[-1][-1] != 1 or (len(lengths) > 1 and lengths[-1] % 4):
        return False
    return not any(
        code != SCALAR_CODE
        and row[-1] == 1
        and (offset % 4 or any(number % 4 for number in row[:-1]))
        for code, row, offset in zip(codes, strides, offsets, strict=True)
    )


def _vec4_macros(codes: Numbers) -> dict[str, str | int]:
    """The load of a vector of each operand, and the operation on one component of them."""
    operands = range(len(codes) - 1)
    return {
        "LOAD_VEC4S": " ".join([f"const VEC4 v{k} = OPERAND_VEC4({k});" for k in operands]),
        "COMPONENT(c)": f"applied(OP, {', '.join([f'v{k}.c' for k in operands])})",
    }


def _transposed_axis(codes: Numbers, lengths: Numbers, strides: Strides) -> int | None:
    """The contiguous axis of an operand that is not contiguous along the axis of the result."""
    if strides[-1][-1] != 1 or lengths[-1] < _TILE_LENGTH:
        return None
    for code, row in zip(codes[:-1], strides, strict=False):
        if code != SCALAR_CODE and row[-1] not in (0, 1) and 1 in row:
            axis = row.index(1)
            return axis if lengths[axis] >= _TILE_LENGTH else None
    return None


def _tile_macros(codes: Numbers, strides: Strides) -> dict[str, str | int]:
    """Operands that are transposed in local memory, and those that are read directly."""
    tiles, loads, values = [], [], []
    for k, (code, row) in enumerate(zip(codes[:-1], strides, strict=False)):
        if code != SCALAR_CODE and row[-2] == 1 and row[-1] != 1:
            tiles.append(f"LOCAL C tile{k}[{_TILE_LENGTH}][{_TILE_LENGTH + 1}];")
            loads.append(f"LOAD_TILE({k})")
            values.append(f"tile{k}[x][y + j]")
        else:
            values.append(f"VALUE({k})")
    return {"TILES": " ".join(tiles), "LOAD_TILES": " ".join(loads), "VALUES": ", ".join(values)}


@functools.cache
def parameter_struct(operands: int) -> struct.Struct:
    """The structure ``Parameters`` of ``elementwise.cl`` for a number of operands."""
    longs = 1 + MAX_KERNEL_AXES + (operands + 1) * (MAX_KERNEL_AXES + 1)
    integers = operands + 3
    padding = "4x" if integers % 2 else ""
    return struct.Struct(f"={longs}q{operands}Q{integers}i{padding}")


@functools.lru_cache(maxsize=4096)
def collapsed(shape: Shape, strides: Strides) -> tuple[Numbers, Strides]:
    """Lengths and strides with neighbouring axes merged where all operands allow it."""
    lengths: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        own = [row[axis] for row in strides]
        merges = lengths and all(
            row[-1] == stride * length for row, stride in zip(rows, own, strict=True)
        )
        if merges:
            lengths[-1] *= length
            for row, stride in zip(rows, own, strict=True):
                row[-1] = stride
        else:
            lengths.append(length)
            for row, stride in zip(rows, own, strict=True):
                row.append(stride)
    return tuple(lengths), tuple([tuple(row) for row in rows])


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that these shapes broadcast to."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    return tuple(np.broadcast_shapes(*shapes))


def power_of_two(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()
