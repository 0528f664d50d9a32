"""Steps of optimizers by NumPy: blocks of them, which are in cache for the next call.

Small parameters are joined to one array, as the calls of NumPy would take longer than they compute.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from burn.plugin_api import StepFormula
from burn_cpu.base import Array
from burn_cpu.blocks import in_blocks, wide_dtype
from burn_cpu.constants import constant

__all__ = ["run_blocks"]

_BLOCK: Final = 32768
"""Elements of a block: eight such arrays of float32 fit the L2 cache."""

_SMALL: Final = 4096
"""Parameters with fewer elements are joined."""


def run_blocks(
    formula: StepFormula,
    lists: Sequence[Sequence[Array]],
    numbers: Sequence[float],
    results: Sequence[Sequence[Array]],
) -> None:
    """Run a step.

    Parameters
    ----------
    formula : StepFormula
        The step.
    lists : sequence of sequence of array
        Its operands, in row-major order.
    numbers : sequence of float
        Its numbers.
    results : sequence of sequence of array
        What is written, likewise; it may be operands of the same index.
    """
    sizes = [x.size for x in lists[0]]
    small = [index for index, size in enumerate(sizes) if size < _SMALL]
    if len(small) > 1:
        joined = [
            np.concatenate([tensors[index] for index in small], axis=None) for tensors in lists
        ]
        found = [np.empty_like(joined[0]) for _ in results]
        _run(formula, joined, numbers, found)
        ends = list(itertools.accumulate([sizes[index] for index in small]))
        for column, values in zip(results, found, strict=True):
            for index, start, end in zip(small, [0, *ends], ends, strict=False):
                target = column[index]
                target[...] = values[start:end].reshape(target.shape)
    else:
        small = []
    for index in sorted({*range(len(sizes))} - {*small}):
        operands = [tensors[index].reshape(-1) for tensors in lists]
        _run(formula, operands, numbers, [column[index].reshape(-1) for column in results])


def _run(
    formula: StepFormula, operands: list[Array], numbers: Sequence[float], targets: list[Array]
) -> None:
    """A step of arrays with one axis; 16-bit floats are computed in float32."""
    dtype = operands[0].dtype
    wide = wide_dtype(dtype)
    plan = _planned(formula)
    constants = [constant(number, wide) for number in numbers]

    def run(start: int, stop: int) -> None:
        values = [x[start:stop] for x in operands]
        outputs = [x[start:stop] for x in targets]
        if wide is not dtype:
            values = [x.astype(wide) for x in values]
            outputs = [np.empty(stop - start, wide) for _ in targets]
        values += constants
        outputs += [np.empty(stop - start, wide) for _ in range(plan.buffers)]
        for compute, used, output in plan.calls:
            values.append(compute(*[values[index] for index in used], out=outputs[output]))
        for index, value in plan.copies:
            outputs[index][...] = values[value]
        if wide is not dtype:
            for target, output in zip(targets, outputs, strict=False):
                target[start:stop] = output

    size = operands[0].size
    if size <= _BLOCK:
        run(0, size)
    else:
        in_blocks(run, size, _BLOCK)


class _Plan(NamedTuple):
    """A formula as calls of NumPy.

    Attributes
    ----------
    calls : list
        A function, the indices of its operands among the values, and the array that it writes:
        that of a result, or after these a buffer.
    copies : list of (int, int)
        Results that are values of other arrays.
    buffers : int
        Number of buffers.
    """

    calls: Sequence[tuple[Callable[..., Array], tuple[int, ...], int]]
    copies: list[tuple[int, int]]
    buffers: int


@functools.lru_cache(maxsize=256)
def _planned(formula: StepFormula) -> _Plan:
    """Calls that write to a result where nothing reads later what it replaces, else to a buffer."""
    first = len(formula.operands) + formula.number_count
    last = {
        value: number
        for number, instruction in enumerate(formula.instructions)
        for value in instruction.operands
    }
    written: dict[int, int] = {}
    for result, (value, operand) in enumerate(zip(formula.results, formula.outputs, strict=True)):
        if value >= first + last.get(operand, 0) and value not in written:
            written[value] = result
    buffers = 0
    free: list[int] = []
    held: dict[int, int] = {}
    calls = []
    for number, (function, used) in enumerate(formula.instructions):
        value = first + number
        ended = [index for index in held if last.get(index) == number]
        free += [held.pop(index) for index in ended if index not in formula.results]
        output = written.get(value)
        if output is None:
            if not free:
                free.append(len(formula.results) + buffers)
                buffers += 1
            output = held[value] = free.pop()
        calls.append((getattr(np, function), used, output))
    copies = [
        (result, value)
        for result, value in enumerate(formula.results)
        if written.get(value) != result
    ]
    return _Plan(calls, copies, buffers)
