"""Suites that try every op on its samples: values, settings, errors, gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from burn.dtype import (
    DType,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
)
from burn.errors import OutOfRangeError
from burn.ops import Tag
from burn.testing._check import Check
from burn.testing._gradients import (
    check_gradient_types,
    check_gradients,
    check_second_gradients,
    differentiable,
    gradient_dtype,
    is_differentiable,
    script_of_gradients,
    script_of_second_gradients,
)
from burn.testing._problem import Problem
from burn.testing.checks import (
    check_dispatch,
    check_error_in_dispatch,
    check_error_in_table,
    check_sample,
    script_of_call,
    script_of_dispatch,
    script_of_refused,
)
from burn.testing.op_samples import ErrorSample, OpSamples, Sample
from burn.testing.sample_sorts import LARGE, sorts_of
from burn.testing.subject import Call, Subject
from burn.testing.suites.suite import Suite, on_op

__all__ = ["SUITES"]

_QUICK_DTYPES: Final = (
    (bool_,),
    (int64, int32),
    (uint8,),
    (float32,),
    (bfloat16, float16),
    (complex64,),
)
"""The quick run takes the first of each row that a sample can be tried with.

Of large floats it takes float64 as well.
"""


def _values(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        for number, sample in enumerate(samples.samples):
            dtypes = subject.dtypes(samples, sample)
            quick = _quick(dtypes, number)
            if float64 in dtypes and LARGE in sorts_of(sample):
                quick.append(float64)
            for dtype in dtypes:
                yield Check(
                    "values",
                    samples.op.name,
                    dtype,
                    sample.note,
                    on_op(subject, check_sample, samples, sample, dtype),
                    partial(_script, script_of_call, subject, samples, sample, dtype),
                    is_quick=dtype in quick,
                )


def _settings(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        for sample in samples.samples:
            dtypes = subject.dtypes(samples, sample)
            quick = [float32] if float32 in dtypes else dtypes[-1:]
            for dtype in dtypes:
                yield Check(
                    "settings",
                    samples.op.name,
                    dtype,
                    sample.note,
                    on_op(subject, check_dispatch, samples, sample, dtype),
                    partial(_script, script_of_dispatch, subject, samples, sample, dtype),
                    is_quick=dtype in quick,
                )


def _quick(dtypes: list[DType], number: int = 0) -> list[DType]:
    """One dtype of each sort; both floats of 16 bits in turn."""
    rows = [[dtype for dtype in row if dtype in dtypes] for row in _QUICK_DTYPES]
    return [row[-(number % 2) if row[0].is_float else 0] for row in rows if row]


def _errors(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in table:
        for refused in [*samples.errors, *_far_away(subject, samples)]:
            yield Check(
                "errors",
                samples.op.name,
                None,
                f"{refused.note}, in the op table",
                on_op(subject, check_error_in_table, samples, refused),
            )
            if subject.handle is not None and not subject.hides:
                yield Check(
                    "errors",
                    samples.op.name,
                    None,
                    refused.note,
                    on_op(subject, check_error_in_dispatch, samples, refused),
                    partial(script_of_refused, subject, samples, refused),
                )


_FAR: Final = (1 << 31, 1 << 32, -(1 << 32) - 1, (1 << 40) + 1, (1 << 63) - 1, -(1 << 63))
"""Indices that are in range again where a library keeps some of their bits."""


_FAR_OF_INT32: Final = ((1 << 31) - 1, -(1 << 31))
"""The farthest where there is no int64."""


def _far_away(subject: Subject, samples: OpSamples) -> Iterator[ErrorSample]:
    """A call with an index out of range, with one that is far out of range."""
    for refused in samples.errors:
        if refused.in_data and refused.expected is OutOfRangeError:
            specs = list(samples.op.operands.values())
            for number, operand in enumerate(refused.operands):
                if not specs[number].promotes and getattr(operand, "dtype", None) == np.int64:
                    for index in _FAR if subject.supports(int64) else _FAR_OF_INT32:
                        far = operand.copy()
                        far.reshape(-1)[np.argmax(np.abs(far))] = index
                        operands = (
                            *refused.operands[:number],
                            far,
                            *refused.operands[number + 1 :],
                        )
                        yield replace(refused, note=f"index {index}", operands=operands)
                    return


def _gradients(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in _with_gradients(table):
        for number, sample in enumerate(samples.samples):
            if sample.gradients is None and not is_differentiable(samples, sample):
                continue
            if gradient_dtype(subject) not in subject.dtypes(samples, sample):
                continue
            yield Check(
                "gradients",
                samples.op.name,
                gradient_dtype(subject),
                sample.note,
                on_op(subject, check_gradients, samples, sample),
                partial(_gradient_script, script_of_gradients, subject, samples, sample),
                is_quick=number < 2,
            )


def _second_gradients(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    for samples in _with_gradients(table):
        chosen = differentiable(subject, samples, gradient_dtype(subject))
        for number, sample in enumerate(chosen):
            yield Check(
                "second_gradients",
                samples.op.name,
                gradient_dtype(subject),
                sample.note,
                on_op(subject, check_second_gradients, samples, sample),
                partial(_gradient_script, script_of_second_gradients, subject, samples, sample),
                is_quick=number == 1,
            )


def _gradient_types(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    if subject.hides:  # what is hidden has no part in it
        return
    for samples in _with_gradients(table):
        for number, sample in enumerate(samples.samples):
            for dtype in subject.dtypes(samples, sample):
                if dtype.is_float:
                    yield Check(
                        "gradient_types",
                        samples.op.name,
                        dtype,
                        sample.note,
                        on_op(subject, check_gradient_types, samples, sample, dtype),
                        partial(_gradient_script, script_of_gradients, subject, samples, sample),
                        is_quick=number == 1 and dtype in _quick([dtype]),
                    )


def _with_gradients(table: Sequence[OpSamples]) -> list[OpSamples]:
    return [op_samples for op_samples in table if Tag.NO_GRADIENT not in op_samples.op.tags]


def _script(
    write: Callable[[Subject, Call], str],
    subject: Subject,
    samples: OpSamples,
    one: Sample,
    dtype: DType,
) -> str:
    return write(subject, Call.of(samples, one, dtype, subject.index_dtype))


def _gradient_script(
    write: Callable[[Problem], str], subject: Subject, samples: OpSamples, one: Sample
) -> str:
    return write(Problem(subject, samples, one, gradient_dtype(subject)))


SUITES: Final = [
    Suite("values", "each op gives what its reference gives, with each dtype", _values),
    Suite(
        "settings",
        "the same through Dispatch, while NumPy raises and warnings are errors",
        _settings,
        of_devices=True,
    ),
    Suite("errors", "wrong calls are refused, with the error of every backend", _errors),
    Suite("gradients", "gradients agree with central differences", _gradients),
    Suite("second_gradients", "and so do gradients of gradients", _second_gradients),
    Suite("gradient_types", "a gradient has the shape and dtype of its operand", _gradient_types),
]
