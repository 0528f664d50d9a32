"""Block maps: what views and selections make of blocks that divide the elements of a tensor.

A rule gets the shape of a tensor (of a list, the shapes) and the lengths of the blocks that divide
it. It returns the lengths of the blocks of the output and the attributes with which the op runs on
a tensor that has one element for each block; or None if the output has no such blocks. With
`is_ordered` the elements of a block keep their order in it, as those of a word do, into which they
are packed.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from burn.aliases import Shape, Slices
from burn.ops.arrays.indexing import select
from burn.ops.arrays.layout import concat, expand, permute, reshape
from burn.ops.arrays.slicing import flip, index_axis, slice
from burn.ops.control import detach

Blocks: TypeAlias = tuple[Shape, dict[str, Any]] | None


@detach.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool) -> Blocks:
    del extent, is_ordered
    return block, {}


@permute.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool, axes: tuple[int, ...]) -> Blocks:
    del extent, is_ordered
    return tuple([block[axis] for axis in axes]), {"axes": axes}


@flip.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool, axes: tuple[int, ...]) -> Blocks:
    del extent
    if is_ordered and any(block[axis] > 1 for axis in axes):
        return None
    return block, {"axes": axes}


@expand.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool, **attributes: Any) -> Blocks:
    del is_ordered
    target: Shape = attributes["shape"]
    lead = len(target) - len(extent)
    lengths = (1,) * lead + tuple(
        [1 if length == 1 else number for length, number in zip(extent, block, strict=True)]
    )
    return lengths, {"shape": _counts(target, lengths)}


@slice.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool, slices: Slices) -> Blocks:
    lengths, parts = [], []
    for (start, length, step), whole, number in zip(slices, extent, block, strict=True):
        if number == 1:
            lengths.append(1)
            parts.append((start, length, step))
        elif number == whole and not is_ordered:  # one block, of which some elements remain
            lengths.append(max(length, 1))
            parts.append((0, min(length, 1), 1))
        elif step == 1 and not start % number and not length % number:
            lengths.append(number)
            parts.append((start // number, length // number, 1))
        else:
            return None
    return tuple(lengths), {"slices": tuple(parts)}


@index_axis.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool, axis: int, index: int) -> Blocks:
    del extent
    if is_ordered and block[axis] > 1:
        return None
    return (*block[:axis], *block[axis + 1 :]), {"axis": axis, "index": index // block[axis]}


@select.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool, axis: int) -> Blocks:
    del extent, is_ordered
    return (block, {"axis": axis}) if block[axis] == 1 else None


@concat.block_map
def _(extent: list[Shape], block: Shape, /, *, is_ordered: bool, axis: int) -> Blocks:
    del extent, is_ordered
    return block, {"axis": axis}


@reshape.block_map
def _(extent: Shape, block: Shape, /, *, is_ordered: bool, **attributes: Any) -> Blocks:
    del is_ordered
    target: Shape = attributes["shape"]
    found = _kept_axes(extent, block, target) or _runs(extent, block, target)
    return None if found is None else (found, {"shape": _counts(target, found)})


def _kept_axes(shape: Shape, block: Shape, target: Shape) -> Shape | None:
    """Blocks of a reshape that keeps the last axes, those in which blocks are longer than 1."""
    last = 0
    while last < min(len(shape), len(target)) and shape[-1 - last] == target[-1 - last]:
        last += 1
    if any(length != 1 for length in block[: len(block) - last]):
        return None
    return (1,) * (len(target) - last) + tuple(block[len(block) - last :])


def _runs(shape: Shape, block: Shape, target: Shape) -> Shape | None:
    """Blocks of a reshape of blocks that are runs of elements in row-major order."""
    inner = len(block)
    while inner and block[inner - 1] == shape[inner - 1]:  # whole axes
        inner -= 1
    if any(length != 1 for length in block[: max(inner - 1, 0)]):
        return None
    run = math.prod(block)
    lengths = [1] * len(target)
    for axis in reversed(range(len(target))):
        if run == 1:
            break
        whole = target[axis]
        if whole % run == 0:
            lengths[axis], run = run, 1
        elif whole and run % whole == 0:
            lengths[axis], run = whole, run // whole
        else:
            return None
    return tuple(lengths) if run == 1 else None


def _counts(shape: Shape, block: Shape) -> Shape:
    return tuple([length // number for length, number in zip(shape, block, strict=True)])
