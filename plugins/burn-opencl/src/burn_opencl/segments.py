"""Updates of many elements at places that indices name, on a GPU: sorted, and joined in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn_opencl.expressions import CODES, class_of
from burn_opencl.sorting import sort_by_digits

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer
    from burn_opencl.launcher import Launcher

__all__ = ["joins_segments", "update_segments"]

_CHUNK: Final = 16
_LATER_CHUNK: Final = 32
"""Updates that an item joins: first, where there are most, and in later passes."""

_GROUP: Final = 256
_ITEMS_OF_A_UNIT: Final = 256
_MANY: Final = 128
_LONGEST: Final = 1 << 31
_COMPARED: Final = 1 << 25
"""Up to so many comparisons keys are put in order by comparing all of them."""

_SHARERS: Final = 32
"""Items that compare a key with the others."""


def joins_segments(launcher: Launcher, lines: int, count: int, length: int) -> bool:
    """Whether an item for each line would leave most of a GPU without work."""
    runtime = launcher.runtime
    few = lines < _ITEMS_OF_A_UNIT * runtime.units
    return not runtime.is_cpu and few and count >= _MANY and max(count, length) < _LONGEST


def update_segments(
    launcher: Launcher,
    out: Buffer,
    indices: Buffer,
    values: Buffer,
    lengths: tuple[int, int, int, int],
    *,
    shared: bool,
    update: int,
    note: tuple[Any, int],
) -> None:
    """Update dense elements as (outer, length, inner) by dense values as (outer, count, inner).

    Indices are one for all lines (shared), or lie as the values do.
    """
    outer, length, count, inner = lengths
    lines = outer * inner
    rows = 1 if shared else lines
    memory, call = note
    keys, places = (launcher.scratch(4 * rows * count) for _ in range(2))
    dtype = out.dtype
    computed = class_of(dtype)
    code = CODES[indices.dtype.name]
    starts = (indices.offset, values.offset)
    numbers = (lines, count, length, inner, *starts, int(shared), code, call)
    kernel = launcher.kernel("make_targets", "segments.cl", computed)
    launcher.run(kernel, rows * count, numbers, (indices.memory, keys, places, memory), _GROUP)
    if rows * count * count <= _COMPARED:
        unsorted, keys = keys, launcher.scratch(4 * rows * count)
        kernel = launcher.kernel("rank_targets", "segments.cl", computed, {"SHARERS": _SHARERS})
        launcher.run(kernel, rows * count * _SHARERS, numbers, (unsorted, keys, places), _GROUP)
    else:
        keys, places = sort_by_digits(launcher, keys, places, rows, count, 0, length.bit_length())
    source, first = values.memory, True
    while True:
        chunk = _CHUNK if first else _LATER_CHUNK
        chunks = -(-count // chunk)
        carried_keys = launcher.scratch(4 * 2 * lines * chunks)
        carried = launcher.scratch(8 * 2 * lines * chunks)
        definitions = {"TYPE": CODES[dtype.name], "UPDATE": update, "IS_FIRST": int(first)}
        definitions["CHUNK"] = chunk
        kernel = launcher.kernel("join_segments", "segments.cl", computed, definitions)
        numbers = (lines, count, length, inner, *starts, int(shared and first), 0, 0)
        memories = (out.memory, keys, places, source, carried_keys, carried)
        launcher.run(kernel, lines * chunks, numbers, memories, _GROUP)
        if chunks == 1:
            return
        keys, source, count, first = carried_keys, carried, 2 * chunks, False
