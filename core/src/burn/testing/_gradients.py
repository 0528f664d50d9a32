"""Checks of gradient rules: first and second derivatives against central differences.

See `burn.testing._problem` for what is differentiated, and `burn.testing._differences` for how
accurate the differences are. The tolerance here is a thousand times that, for samples where
a function bends sharply; a wrong rule is off by far more. On a device without float64 gradients are
computed in float32, and the tolerance allows for its rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from burn.dtype import DType, Kind, float32, float64
from burn.errors import ExecutionError, UnsupportedOpError
from burn.ops import Tag
from burn.testing._check import Failure
from burn.testing._differences import (
    Slope,
    depends,
    first_differences,
    one_by_one,
    second_differences,
)
from burn.testing._problem import Problem, weighted_sum
from burn.testing._script import Transcript
from burn.testing.op_samples import Array, OpSamples, Sample
from burn.testing.subject import Subject

__all__ = [
    "check_gradient_types",
    "check_gradients",
    "check_second_gradients",
    "differentiable",
    "gradient_dtype",
    "is_differentiable",
    "script_of_gradients",
    "script_of_second_gradients",
]

_TOLERANCE: Final = {float64: (1e-5, 1e-7), float32: (1e-3, 1e-4)}
"""Relative, and absolute as a fraction of the size of the outputs."""


def gradient_dtype(subject: Subject) -> DType:
    """The dtype in which gradients are compared on a device."""
    return float64 if subject.supports(float64) else float32


def is_differentiable(samples: OpSamples, one: Sample) -> bool:
    """Whether the gradients of a sample can be compared with central differences."""
    if Tag.NO_GRADIENT in samples.op.tags or Kind.FLOAT not in (one.kinds or Kind.FLOAT):
        return False
    arrays = [
        part
        for operand in one.operands
        for part in (operand if isinstance(operand, list) else [operand])
        if isinstance(part, np.ndarray)
    ]
    # There is no moving away from infinity.
    return one.differentiable and all(bool(np.isfinite(array).all()) for array in arrays)


def differentiable(subject: Subject, samples: OpSamples, dtype: DType) -> list[Sample]:
    """The samples of an op that have gradients, and that a device can try with a dtype."""
    return [
        sample
        for sample in samples.samples
        if is_differentiable(samples, sample) and dtype in subject.dtypes(samples, sample)
    ]


def check_gradients(subject: Subject, samples: OpSamples, one: Sample) -> float | None:
    """Compare the gradients of a sample with central differences, or with those that it states.

    Parameters
    ----------
    subject : Subject
        A device.
    samples : OpSamples
        The op.
    one : Sample
        A sample. Nothing is compared if it is neither differentiable nor says what its gradients
        are.

    Returns
    -------
    float or None
        The largest error as a fraction of what is allowed.
    """
    dtype = gradient_dtype(subject)
    if one.gradients is not None:
        _check_stated(Problem(subject, samples, one, dtype), one.gradients)
    if not is_differentiable(samples, one):
        return None
    problem = Problem(subject, samples, one, dtype)
    gradients, size = problem.gradients(problem.values, problem.weights)
    slopes = first_differences(samples, one, dtype)
    return _compare(problem, "gradient", gradients, slopes, size, script_of_gradients)


def check_second_gradients(subject: Subject, samples: OpSamples, one: Sample) -> float | None:
    """Compare gradients of gradients, by Autodiff over Autodiff, with central differences.

    Returns
    -------
    float or None
        The largest error as a fraction of what is allowed.
    """
    if not is_differentiable(samples, one):
        return None
    dtype = gradient_dtype(subject)
    problem = Problem(subject, samples, one, dtype)
    gradients, size = problem.second_gradients()
    slopes = second_differences(samples, one, dtype)
    show = script_of_second_gradients
    return _compare(problem, "second gradient", gradients, slopes, size, show)


def check_gradient_types(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> None:
    """See that each gradient has the shape and the dtype of its operand.

    A rule may refuse a sample that is not differentiable.
    """
    problem = Problem(subject, samples, one, dtype)
    try:
        problem.gradients(problem.values, problem.weights)
    except (ExecutionError, UnsupportedOpError):
        if one.differentiable:
            raise


def _compare(
    problem: Problem,
    what: str,
    gradients: Sequence[Array],
    slopes: Sequence[Slope],
    size: float,
    show: Callable[[Problem, Slope, float], str],
) -> float:
    """Compare gradients with slopes; the largest error as a fraction of what is allowed."""
    relative, absolute = _TOLERANCE[gradient_dtype(problem.subject)]
    worst = 0.0
    pending = list(slopes)
    while pending:
        slope = pending.pop(0)
        found = slope.of(gradients[slope.which])
        allowed = relative * abs(slope.value) + absolute * max(1.0, size)
        error = abs(found - slope.value) / allowed
        if error <= 1.0:
            worst = max(worst, error)
        elif len(slope.indices) > 1 and what == "gradient":
            pending = [*one_by_one(problem, slope), *pending]
        else:
            raise Failure(
                f"{problem}: {what} of operand {slope.which} {slope} is {found:.9g}, "
                f"where central differences give {slope.value:.9g}",
                show(problem, slope, allowed),
                error,
            )
    return worst


def _check_stated(problem: Problem, stated: Sequence[Any]) -> None:
    """Compare with the gradients that a sample states, for weights of 1."""
    problem.weights = [np.ones_like(weight) for weight in problem.weights]
    gradients, _ = problem.gradients(problem.values, problem.weights)
    for which, ((position, _), gradient) in enumerate(
        zip(problem.float_operands, gradients, strict=True)
    ):
        if stated[position] is None:
            continue
        expected = np.broadcast_to(stated[position], gradient.shape).astype(gradient.dtype)
        wrong = ~((gradient == expected) | (np.isnan(gradient) & np.isnan(expected)))
        if wrong.any():
            index = np.flatnonzero(wrong)[:1]
            slope = Slope(which, index, np.ones(1), float(expected.flat[index[0]]))
            raise Failure(
                f"{problem}: the gradient of operand {position} is {gradient}, not {expected}",
                script_of_gradients(problem, slope, 0.0),
            )


# Programs that take the same gradients.


def script_of_gradients(problem: Problem, slope: Slope | None = None, allowed: float = 0.0) -> str:
    """A program that takes the gradients of a problem, and asserts one element."""
    writing, transcript = _written(problem)
    transcript.set_up("autodiff = Autodiff(backend)")
    transcript.set_up("ops = autodiff.for_device(device_id)")
    leaves = [_leaf(transcript, "autodiff", writing.upload(value)) for value in writing.values]
    with transcript.block("with backend.quiet():"):
        outputs = writing.run(transcript.table("ops"), leaves)
        weights = [writing.upload(weight) for weight in writing.weights]
        total = weighted_sum(transcript.table("ops"), outputs, weights)
        if any(depends(problem)):
            transcript.write(f"gradients = autodiff.backward({total.name})")
    if slope is not None:
        transcript.write(f"gradient = read(autodiff.grad({leaves[slope.which].name}, gradients))")
        _expect(transcript, slope, allowed)
    return str(transcript)


def script_of_second_gradients(
    problem: Problem, slope: Slope | None = None, allowed: float = 0.0
) -> str:
    """A program that takes the second gradients of a problem, and asserts one."""
    writing, transcript = _written(problem)
    transcript.set_up("inner = Autodiff(backend)")
    transcript.set_up("outer = Autodiff(inner)")
    transcript.set_up("below, ops = inner.for_device(device_id), outer.for_device(device_id)")
    count = len(writing.values)
    everything = [*writing.values, *writing.weights]
    leaves = [_leaf(transcript, "inner", writing.upload(value)) for value in everything]
    tracked = [_leaf(transcript, "outer", leaf) for leaf in leaves[:count]]
    with transcript.block("with backend.quiet():"):
        outputs = writing.run(transcript.table("ops"), tracked)
        total = weighted_sum(transcript.table("ops"), outputs, leaves[count:])
        transcript.write(f"first = outer.backward({total.name})")
        pairs = [
            (
                transcript.assign(f"outer.grad({leaf.name}, first)", leaf.shape, leaf.dtype),
                writing.upload(direction),
            )
            for leaf, direction, counts in zip(
                tracked, writing.directions[:count], depends(problem), strict=True
            )
            if counts
        ]
        along = weighted_sum(
            transcript.table("below"), [pair for pair, _ in pairs], [other for _, other in pairs]
        )
        transcript.write(f"second = inner.backward({along.name})")
    if slope is not None:
        transcript.write(f"gradient = read(inner.grad({leaves[slope.which].name}, second))")
        _expect(transcript, slope, allowed)
    return str(transcript)


def _expect(transcript: Transcript, slope: Slope, allowed: float) -> None:
    indices, amounts = slope.indices.tolist(), slope.amounts.tolist()
    if amounts == [1.0]:
        expression = f"gradient.flat[{indices[0]}]"
    else:
        expression = f"(gradient.flat[{indices}] * {amounts}).sum()"
    transcript.expect_close(expression, slope.value, allowed)


def _written(problem: Problem) -> tuple[Problem, Transcript]:
    """The same problem on a subject that writes a program."""
    writing, transcript = problem.subject.transcript()
    transcript.need("from burn.autodiff import Autodiff")
    copied = copy.copy(problem)
    copied.subject = writing
    return copied, transcript


def _leaf(transcript: Transcript, autodiff: str, primitive: Any) -> Any:
    expression = f"{autodiff}.require_grad({primitive.name}, device_id)"
    return transcript.assign(expression, primitive.shape, primitive.dtype)
