"""Scatter on a GPU: updates sorted by index, and combined by segments of equal indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.plugin_api import DTYPE_CODES, c_type_of
from burn_opencl.limits import GPU_GROUP_ITEMS, INT32_LIMIT
from burn_opencl.sorting import sort_by_digits

if TYPE_CHECKING:
    from burn.plugin_api import Update
    from burn_opencl.buffers import Buffer
    from burn_opencl.launcher import Launcher

__all__ = ["update_segments", "updates_by_segments"]

_UPDATES_PER_ITEM: Final = 16
_UPDATES_PER_ITEM_OF_LATER_PASSES: Final = 32

_MAX_COLUMNS_PER_UNIT: Final = 256
_MIN_UPDATES: Final = 128
"""Segments are used for at least so many updates of at most so many columns."""

_MAX_COMPARISONS: Final = 1 << 25
"""Up to so many comparisons, keys are sorted by comparing each with all others."""

_LANES_PER_KEY: Final = 32
"""Items that compare a key with the others."""


def updates_by_segments(launcher: Launcher, rule: Update) -> bool:
    """Whether an item for each column would leave most of a GPU without work."""
    runtime = launcher.runtime
    few = rule.outer * rule.inner < _MAX_COLUMNS_PER_UNIT * runtime.units
    is_narrow = max(rule.count, rule.length) < INT32_LIMIT
    return not runtime.is_cpu and few and rule.count >= _MIN_UPDATES and is_narrow


def update_segments(
    launcher: Launcher, out: Buffer, indices: Buffer, values: Buffer, rule: Update
) -> None:
    """Update dense elements as (outer, length, inner) by dense values as (outer, count, inner)."""
    length, count, inner, shared = rule.length, rule.count, rule.inner, rule.is_select
    columns, update = rule.outer * inner, rule.code
    rows = 1 if shared else columns
    error_memory, op_number = launcher.index_error_memory(rule.op)
    keys, positions = (launcher.scratch(4 * rows * count) for _ in range(2))
    dtype = out.dtype
    c_type = c_type_of(dtype)
    code = DTYPE_CODES[indices.dtype.name]
    offsets = (indices.offset, values.offset)
    parameters = (columns, count, length, inner, rule.parts, *offsets, int(shared), code, op_number)
    kernel = launcher.kernel("make_keys", "segments.cl", c_type)
    launcher.run(
        kernel,
        rows * count,
        parameters,
        (indices.memory, keys, positions, error_memory),
        GPU_GROUP_ITEMS,
    )
    if rows * count * count <= _MAX_COMPARISONS:
        unsorted, keys = keys, launcher.scratch(4 * rows * count)
        kernel = launcher.kernel("rank_keys", "segments.cl", c_type, {"LANES": _LANES_PER_KEY})
        launcher.run(
            kernel,
            rows * count * _LANES_PER_KEY,
            parameters,
            (unsorted, keys, positions),
            GPU_GROUP_ITEMS,
        )
    else:
        keys, positions = sort_by_digits(
            launcher, keys, positions, rows, count, 0, length.bit_length()
        )
    source, first = values.memory, True
    while True:
        chunk = _UPDATES_PER_ITEM if first else _UPDATES_PER_ITEM_OF_LATER_PASSES
        chunks = -(-count // chunk)
        carried_keys = launcher.scratch(4 * 2 * columns * chunks)
        carried = launcher.scratch(8 * 2 * columns * chunks)
        definitions = {"TYPE": DTYPE_CODES[dtype.name], "UPDATE": update, "IS_FIRST": int(first)}
        definitions["CHUNK"] = chunk
        kernel = launcher.kernel("combine_segments", "segments.cl", c_type, definitions)
        sizes = (columns, count, length, inner, rule.parts)
        parameters = (*sizes, *offsets, int(shared and first), 0, 0)
        memories = (out.memory, keys, positions, source, carried_keys, carried)
        launcher.run(kernel, columns * chunks, parameters, memories, GPU_GROUP_ITEMS)
        if chunks == 1:
            return
        keys, source, count, first = carried_keys, carried, 2 * chunks, False
