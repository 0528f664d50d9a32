"""Runs a step of an optimizer for all parameters: in place where it may, and small ones at once.

Small parameters are joined to one array, as the calls of NumPy would take longer than they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from burn.plugin_api import Donated
from burn_cpu.base import Array
from burn_cpu.blocks import in_blocks
from burn_cpu.joined import Whole, joined_parameters
from burn_cpu.writing import are_unused

__all__ = ["Step", "stepped"]

_BLOCK: Final = 32768
"""Elements that a step computes at a time: eight such arrays of float32 fit the L2 cache."""

Step: TypeAlias = Callable[[list[Any], list[Array], Array], None]
"""From operands to results, which may be the operands; with two arrays to work in."""


def stepped(step: Step, lists: list[list[Array]], outputs: Sequence[int]) -> tuple[Array, ...]:
    """The results of a step: for each list of `outputs` that is not empty as many arrays.

    Arrays that are donated, and that nothing else uses, are overwritten, and are results.
    """
    outputs = [index for index in outputs if lists[index]]
    joined = joined_parameters(tuple([tensor.shape for tensor in lists[0]]))
    results: list[list[Any]] = [[None] * len(lists[0]) for _ in outputs]
    if joined.indices:
        wholes: list[Any] = [joined.array(operand) if operand else None for operand in lists]
        targets = list(wholes)
        for index in outputs:
            if wholes[index].parts and not _is_donated(lists[index], joined.indices):
                targets[index] = Whole(wholes[index].shape, wholes[index].dtype)
        flat = [None if whole is None else whole.view(np.ndarray) for whole in wholes]
        _run(
            step,
            flat,
            [
                item if whole is target else target.view(np.ndarray)
                for item, whole, target in zip(flat, wholes, targets, strict=True)
            ],
            outputs,
        )
        for index, column in zip(outputs, results, strict=True):
            parts = joined.split(targets[index]) if not targets[index].parts else None
            for order, number in enumerate(joined.indices):
                column[number] = lists[index][number] if parts is None else parts[order]
    for index in joined.others:
        is_donated = [
            _is_donated(operand, (index,)) for operand in lists
        ]  # before others refer to them
        operands = [operand[index] if operand else None for operand in lists]
        for column, array in zip(
            results, _run_whole(step, operands, is_donated, outputs), strict=True
        ):
            column[index] = array
    return tuple([array for column in results for array in column])


def _is_donated(arrays: list[Array], indices: Sequence[int]) -> bool:
    """Whether some arrays of a list may be overwritten."""
    if not arrays or not isinstance(arrays, Donated):
        return False
    return are_unused(arrays, indices, arrays.references)


def _run_whole(
    step: Step, operands: list[Any], is_donated: Sequence[bool], outputs: Sequence[int]
) -> list[Array]:
    """A step of one parameter, whose results have its layout."""
    parameter = operands[0]
    turns = parameter.flags.f_contiguous and not parameter.flags.c_contiguous

    def flat(x: Array) -> Array:
        return (x.T if turns else x).reshape(-1)

    arrays = [None if operand is None else flat(operand) for operand in operands]
    targets, results = list(arrays), []
    for index in outputs:
        result = operands[index]
        # The references to an array without memory of its own do not show what else uses it.
        flags = (result.T if turns else result).flags
        if not (is_donated[index] and result.flags.owndata and flags.carray):
            result = np.empty(parameter.shape, parameter.dtype, "F" if turns else "C")
            targets[index] = flat(result)
        results.append(result)
    _run(step, arrays, targets, outputs)
    return results


def _run(step: Step, operands: list[Any], targets: list[Any], outputs: Sequence[int]) -> None:
    """A step of arrays with one axis, block by block; 16-bit floats are computed in float32.

    What `outputs` says of the targets is written; it may be the operand of the same index.
    """
    parameter = operands[0]
    dtype = parameter.dtype
    wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype

    def run(start: int, stop: int) -> None:
        parts: list[Any] = [
            None if operand is None else operand[start:stop].astype(wide, copy=False)
            for operand in operands
        ]
        work = np.empty((2, stop - start), wide)
        if wide is not dtype:
            found = [np.empty_like(work[0]) for _ in outputs]
            step(parts, found, work)
            for index, part in zip(outputs, found, strict=True):
                targets[index][start:stop] = part
            return
        results = [
            parts[index] if targets[index] is operands[index] else targets[index][start:stop]
            for index in outputs
        ]
        step(parts, results, work)

    in_blocks(run, parameter.size, _BLOCK)
