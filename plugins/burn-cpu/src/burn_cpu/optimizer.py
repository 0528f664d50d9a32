"""Steps of optimizers: one call of native code, or NumPy block by block.

Arrays that are donated, and that nothing else uses, are overwritten, and are results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from burn.plugin_api import Donated, StepFormula, Steps
from burn_cpu.base import Array, CpuOps
from burn_cpu.block_steps import run_blocks
from burn_cpu.compilation import compiler
from burn_cpu.writing import unused_items

__all__ = ["OptimizerOps"]


class OptimizerOps(Steps, CpuOps):
    """Steps that write to new arrays, and to those that are donated."""

    overwrites_donated = True

    def run_step(
        self, formula: StepFormula, lists: list[list[Array]], numbers: tuple[float, ...]
    ) -> tuple[Array, ...]:
        """Run a step: on arrays as they are, or in the order of the elements of parameters."""
        in_place = tuple([_are_unused(lists[index]) for index in formula.outputs])
        results = _run_natively(formula, lists, numbers, in_place)
        if results is None:
            results = _run_in_order(formula, lists, numbers, in_place)
        return tuple(results)


def _are_unused(arrays: list[Array]) -> tuple[bool, ...]:
    """Which arrays of a list may be overwritten."""
    if arrays.__class__ is Donated:
        return unused_items(arrays, arrays.references)
    return (False,) * len(arrays)


def _run_natively(
    formula: StepFormula,
    lists: list[list[Array]],
    numbers: tuple[float, ...],
    in_place: Sequence[tuple[bool, ...]],
) -> list[Array] | None:
    """The results, by native code; None if there is none, or an array is not in row-major order."""
    native = _native_step()
    first = lists[0]
    dtype = first[0].dtype
    run = None
    if native is not None:
        run = native(formula, dtype, tuple([x.shape for x in first]), in_place)
    if run is None:
        return None
    arrays = [x for column in lists for x in column]
    results = []
    for index, are_targets in zip(formula.outputs, in_place, strict=True):
        for x, is_target in zip(lists[index], are_targets, strict=True):
            result = x if is_target else np.empty(x.shape, dtype)
            results.append(result)
            if not is_target:
                arrays.append(result)
    return None if run(*arrays, *numbers) else results


def _run_in_order(
    formula: StepFormula,
    lists: list[list[Array]],
    numbers: tuple[float, ...],
    in_place: Sequence[tuple[bool, ...]],
) -> list[Array]:
    """The results, in the layouts of the parameters."""
    turned = [bool(x.flags.f_contiguous and not x.flags.c_contiguous) for x in lists[0]]
    columns = [
        [
            np.require(x.T if turns else x, requirements=["C", "A"])
            for x, turns in zip(column, turned, strict=True)
        ]
        for column in lists
    ]
    results, targets = [], []
    for index, are_targets in zip(formula.outputs, in_place, strict=True):
        own = []
        for number, turns in enumerate(turned):
            x, target = lists[index][number], columns[index][number]
            is_same = target is x or target.base is x
            if not (are_targets[number] and is_same and target.flags.carray):
                x = np.empty(x.shape, x.dtype, "F" if turns else "C")
                target = x.T if turns else x
            results.append(x)
            own.append(target)
        targets.append(own)
    native, run = _native_step(), None
    if native is not None:
        shapes = tuple([x.shape for x in columns[0]])
        new = ((False,) * len(shapes),) * len(targets)  # or operands, which is the same for a step
        run = native(formula, columns[0][0].dtype, shapes, new)
    arrays = [x for column in (*columns, *targets) for x in column]
    if run is None or run(*arrays, *numbers):
        run_blocks(formula, columns, numbers, targets)
    return results


@functools.cache
def _native_step() -> Callable[..., Callable[..., int] | None] | None:
    """What makes native code; None where there is no compiler."""
    if compiler() is None:
        return None
    from burn_cpu.native_steps import native_step

    return native_step
