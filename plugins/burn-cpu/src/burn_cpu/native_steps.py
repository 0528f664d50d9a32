"""Steps of optimizers as native code: one call for all parameters, on all threads."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from burn.plugin_api import DType, Shape, StepFormula, step_kernel
from burn_cpu.native import READABLE, WRITEABLE, machine
from burn_cpu.segment import LONG_WORK, PARALLEL_WORK, PARTS

__all__ = ["native_step"]

Targets: TypeAlias = tuple[tuple[bool, ...], ...]
"""For each result, and for each parameter, whether it is written to the operand."""


@functools.lru_cache(maxsize=256)
def native_step(
    formula: StepFormula, dtype: np.dtype[Any], shapes: tuple[Shape, ...], targets: Targets
) -> Callable[..., int] | None:
    """A function of arrays in row-major order that runs a step; None if the processor does not.

    Parameters
    ----------
    formula : StepFormula
        The step.
    dtype : numpy.dtype
        Dtype of all arrays.
    shapes : tuple of tuple
        Shapes of the parameters.
    targets : tuple of tuple of bool
        Which operands are overwritten.

    Returns
    -------
    callable or None
        ``run(*arrays, *numbers)``: the arrays of each operand, and then for each result those that
        are new. It returns 0, or 1 and the index of an array that does not fit, of which no one is
        written then.
    """
    compiler = machine()
    if dtype.char == "e" and not compiler.has_half:
        return None
    count = len(shapes)
    columns = [
        list(range(column * count, (column + 1) * count)) for column in range(len(formula.operands))
    ]
    described = [[READABLE, len(shape), *shape] for _ in columns for shape in shapes]
    for column, in_place in zip(formula.outputs, targets, strict=True):
        indices = []
        for number, (shape, is_overwritten) in enumerate(zip(shapes, in_place, strict=True)):
            if is_overwritten:
                indices.append(columns[column][number])
                described[indices[-1]][0] = WRITEABLE
            else:
                indices.append(len(described))
                described.append([WRITEABLE, len(shape), *shape])
        columns.append(indices)
    arrays, numbers = len(described), formula.number_count
    kernel = step_kernel(formula, DType.of(dtype.name))
    text, function = compiler.kept_functions([kernel])[1][kernel]
    steps: list[int] = []
    total, is_parallel, step_count = 0.0, False, 0
    for number, shape in enumerate(shapes):
        scalars = (0.0,) * numbers + (math.prod(shape),)
        items, work = text.items(scalars), text.work(scalars)
        if not items:
            continue
        divided = work > PARALLEL_WORK and items > 1
        table = [(indices[number], 0) for indices in columns]
        table += [(arrays + index, 0) for index in range(numbers)]
        table.append((arrays + numbers, math.prod(shape)))
        steps += [function, items, PARTS * divided, len(table)]
        steps += [word for pair in table for word in pair]
        total += work
        is_parallel |= divided
        step_count += 1
    words = [arrays, numbers, int(total > LONG_WORK), step_count, len(columns) + numbers + 1]
    words += [word for array in described for word in array] + [1] * numbers
    run = compiler.entry(np.array(words + steps, np.int64))
    return compiler.parallel(run, uses_blas=False) if is_parallel else run
