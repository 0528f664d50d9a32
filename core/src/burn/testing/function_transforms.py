"""Checks of public functions under ``burn.vmap`` and ``burn.compile``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from burn import namespace as burn
from burn.dtype import DType
from burn.testing._first_calls import first_call
from burn.testing.function_checks import Trial, expect_near, flat, read
from burn.testing.function_samples import FunctionCall, FunctionSamples, arrays_in
from burn.testing.op_samples import Array
from burn.testing.subject import Subject

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["check_function_batched", "check_function_compiled"]


def check_function_batched(
    subject: Subject, samples: FunctionSamples, one: FunctionCall, dtype: DType | None
) -> None:
    """Compare a call under ``burn.vmap`` with one call for each example."""
    trial = Trial(subject, samples, one, dtype)
    arrays = list(arrays_in(trial.map(lambda array: array)))
    examples = [[array, _other(array)] for array in arrays]
    separate = [
        [read(value) for value in flat(trial.run(_in_order(trial, [two[k] for two in examples])))]
        for k in range(2)
    ]
    stacked = [burn.stack([trial.tensor(array) for array in two]) for two in examples]
    mapped = burn.vmap(lambda *tensors: trial.run(_given(tensors)), fallback=False)(*stacked)
    together = [read(value) for value in flat(mapped)]
    for number, results in enumerate(separate):
        for actual, expected in zip(together, results, strict=True):
            if isinstance(actual, np.ndarray):
                expect_near(f"{trial} under burn.vmap", actual[number], expected)


def check_function_compiled(
    subject: Subject, samples: FunctionSamples, one: FunctionCall, dtype: DType | None
) -> None:
    """Compare a call in a compiled program with the same call outside."""
    trial = Trial(subject, samples, one, dtype)
    arrays = list(arrays_in(trial.map(lambda array: array)))
    expected = [read(value) for value in flat(trial.run())]
    program = burn.compile(lambda *tensors: trial.run(_given(tensors)))
    with first_call():
        found = [read(value) for value in flat(program(*map(trial.tensor, arrays)))]
    for actual, right in zip(found, expected, strict=True):
        if isinstance(actual, np.ndarray):
            expect_near(f"{trial} compiled", actual, right)


def _other(array: Array) -> Array:
    """Another example: numbers that are not indices or masks are multiplied by 0.5."""
    return array * 0.5 if array.dtype.kind in "fc" else array


def _given(tensors: Sequence[Tensor]) -> Callable[[Array], Tensor]:
    rest = iter(tensors)

    def given(array: Array) -> Tensor:
        del array
        return next(rest)

    return given


def _in_order(trial: Trial, arrays: Sequence[Array]) -> Callable[[Array], Tensor]:
    rest = iter(arrays)

    def ordered(array: Array) -> Tensor:
        del array
        return trial.tensor(next(rest))

    return ordered
