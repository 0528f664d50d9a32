"""Forms of the kernel for elementwise operations: which one goes over how tensors lie.

Operands and result are told of by the numbers of their dtypes, and by their strides over axes that
they share; the result is the last of them.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from burn.aliases import Shape

__all__ = [
    "NUMBER",
    "RANK",
    "Form",
    "broadcast",
    "collapsed",
    "cpu_form",
    "gpu_form",
    "layout_of",
    "power_of_two",
]

RANK: Final = 8
"""Axes that a kernel is told of."""

NUMBER: Final = 13
"""Stands for the dtype of an operand that is a number (``common.cl``)."""

_BLOCK: Final = 8192
"""Elements that an item of a CPU takes."""

_TILE: Final = 32
_GROUP: Final = 256

Numbers = tuple[int, ...]
Strides = tuple[Numbers, ...]


class Form(NamedTuple):
    """How a kernel goes over tensors.

    Attributes
    ----------
    items, group : int
        How many items there are, and how many in a group.
    definitions : mapping
        Macros.
    lengths, strides : tuple
        The axes, in the order in which it goes over them.
    """

    items: int
    group: int
    definitions: Mapping[str, str | int]
    lengths: Numbers
    strides: Strides


def cpu_form(types: Numbers, lengths: Numbers, strides: Strides) -> Form:
    """Along rows: an item takes a part of a row, or several rows."""
    inner = lengths[-1]
    rows = math.prod(lengths) // inner
    items = rows * -(-inner // _BLOCK) if inner >= _BLOCK else -(-rows // (_BLOCK // inner))
    definitions = {"BLOCK": _BLOCK} | _types(types) | _steps(types, strides)
    return Form(items, 1, definitions, lengths, strides)


def gpu_form(types: Numbers, lengths: Numbers, strides: Strides, starts: Numbers) -> Form:
    """Four neighbours at a time, or tiles that are turned over, or places one by one."""
    axis = _turned_axis(types, lengths, strides)
    if axis is not None:
        order = (*[one for one in range(len(lengths) - 1) if one != axis], axis, len(lengths) - 1)
        lengths = tuple([lengths[one] for one in order])
        strides = tuple([tuple([row[one] for one in order]) for row in strides])
        tiles = math.prod(lengths[:-2]) * math.prod([-(-one // _TILE) for one in lengths[-2:]])
        items, definitions = tiles * _GROUP, _turns(types, strides)
    else:
        items, definitions = -(-math.prod(lengths) // 4), {}
        if _by_fours(types, lengths, strides, starts):
            definitions = _fours(types) | _steps(types, strides)
    definitions = {"RANK": len(lengths)} | _types(types) | definitions
    return Form(items, _GROUP, definitions, lengths, strides)


def _types(types: Numbers) -> dict[str, str | int]:
    return {f"TYPE_{place}": code for place, code in enumerate(types)}


def _steps(types: Numbers, strides: Strides) -> dict[str, str | int]:
    """From one element of a row to the next: a constant where it is 0 or 1."""
    steps: dict[str, str | int] = {}
    for place, (code, row) in enumerate(zip(types, strides, strict=True)):
        step = 0 if code == NUMBER else row[-1]
        steps[f"STEP_{place}"] = step if step in (0, 1) else f"steps[{place}]"
    return steps


def _by_fours(types: Numbers, lengths: Numbers, strides: Strides, starts: Numbers) -> bool:
    """Whether four neighbours of a row lie together, where a multiple of four begins."""
    if strides[-1][-1] != 1 or (len(lengths) > 1 and lengths[-1] % 4):
        return False
    return not any(
        code != NUMBER and row[-1] == 1 and (start % 4 or any(step % 4 for step in row[:-1]))
        for code, row, start in zip(types, strides, starts, strict=True)
    )


def _fours(types: Numbers) -> dict[str, str | int]:
    """Four elements of each operand, and the operation on one of the four."""
    places = range(len(types) - 1)
    return {
        "FOURS": " ".join([f"const QUAD w{place} = FOUR({place});" for place in places]),
        "PART(c)": f"applied(OP, {', '.join([f'w{place}.c' for place in places])})",
    }


def _turned_axis(types: Numbers, lengths: Numbers, strides: Strides) -> int | None:
    """The axis along which neighbours lie in an operand whose rows do not lie like the result's."""
    if strides[-1][-1] != 1 or lengths[-1] < _TILE:
        return None
    for code, row in zip(types[:-1], strides, strict=False):
        if code != NUMBER and row[-1] not in (0, 1) and 1 in row:
            axis = row.index(1)
            return axis if lengths[axis] >= _TILE else None
    return None


def _turns(types: Numbers, strides: Strides) -> dict[str, str | int]:
    """Operands that go through local memory, and those that do not."""
    tiles, brings, values = [], [], []
    for place, (code, row) in enumerate(zip(types[:-1], strides, strict=False)):
        if code != NUMBER and row[-2] == 1 and row[-1] != 1:
            tiles.append(f"LOCAL C tile{place}[{_TILE}][{_TILE + 1}];")
            brings.append(f"BRING({place})")
            values.append(f"tile{place}[x][y + j]")
        else:
            values.append(f"VALUE({place})")
    return {"TURNED": " ".join(tiles), "BRINGS": " ".join(brings), "VALUES": ", ".join(values)}


@functools.cache
def layout_of(count: int) -> struct.Struct:
    """The structure ``Layout`` of ``elementwise.cl`` for a number of operands."""
    longs = 1 + RANK + (count + 1) * (RANK + 1)
    integers = count + 3
    padding = "4x" if integers % 2 else ""
    return struct.Struct(f"={longs}q{count}Q{integers}i{padding}")


@functools.lru_cache(maxsize=4096)
def collapsed(shape: Shape, strides: Strides) -> tuple[Numbers, Strides]:
    """Lengths and strides with axes joined where in all tensors one goes on as the next ends."""
    lengths: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        own = [row[axis] for row in strides]
        joins = lengths and all(
            row[-1] == step * length for row, step in zip(rows, own, strict=True)
        )
        if joins:
            lengths[-1] *= length
            for row, step in zip(rows, own, strict=True):
                row[-1] = step
        else:
            lengths.append(length)
            for row, step in zip(rows, own, strict=True):
                row.append(step)
    return tuple(lengths), tuple([tuple(row) for row in rows])


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that tensors of these shapes have together."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    return tuple(np.broadcast_shapes(*shapes))


def power_of_two(n: int) -> int:
    """The smallest one that is not less than a number."""
    return 1 << (n - 1).bit_length()
