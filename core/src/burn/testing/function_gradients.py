"""Checks of gradients of public functions, against central differences of their references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn import namespace as burn
from burn.dtype import float32, float64
from burn.testing._check import Failure
from burn.testing._gradients import gradient_dtype
from burn.testing.arrays import floats
from burn.testing.function_checks import Trial, flat, main_kind
from burn.testing.function_samples import FunctionCall, FunctionSamples, arrays_in
from burn.testing.op_samples import Array
from burn.testing.subject import Subject

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["check_function_gradients", "check_function_second_gradients", "has_gradient"]

_STEP: Final = 1e-6
"""Step of first central differences; their error is some 1e-10 of the size of the values."""

_SECOND_STEP: Final = 1e-4
"""Step of second differences, with errors of some 1e-8 of the size of the values."""

_FIRST_TOLERANCE: Final = {float64: (1e-5, 1e-7), float32: (1e-3, 1e-4)}
_SECOND_TOLERANCE: Final = {float64: (1e-4, 1e-5), float32: (1e-2, 1e-3)}
"""Relative, and absolute as a fraction of the size of the outputs."""


def has_gradient(samples: FunctionSamples, one: FunctionCall) -> bool:
    """Whether the gradients of a call can be compared with differences of its reference."""
    if samples.reference is None or not one.differentiable or main_kind(one) != "f":
        return False
    arrays = list(arrays_in([*one.arguments, one.keywords]))
    return all(bool(np.isfinite(array).all()) for array in arrays)


def check_function_gradients(
    subject: Subject, samples: FunctionSamples, one: FunctionCall
) -> float | None:
    """Compare the gradients of a call with central differences of its reference.

    Returns
    -------
    float or None
        The largest error as a fraction of what is allowed.
    """
    dtype = gradient_dtype(subject)
    trial = Trial(subject, samples, one, dtype)
    values = trial.floats
    weights = _weights(trial)
    if not weights:
        return None
    gradients = [gradient.numpy() for gradient in _gradients(trial, values, weights)]
    relative, absolute = _FIRST_TOLERANCE[dtype]
    size = _size(trial)
    worst = 0.0
    for which, gradient in enumerate(gradients):
        for index in range(values[which].size):
            ends = []
            for step in (_STEP, -_STEP):
                moved = [value.copy() for value in values]
                moved[which].flat[index] += step
                ends.append(_products(trial.reference(moved), weights))
            slope = float(np.sum(ends[0] - ends[1])) / (2.0 * _STEP)
            found = float(gradient.flat[index])
            error = abs(found - slope) / (relative * abs(slope) + absolute * max(1.0, size))
            if not error <= 1.0:
                raise Failure(
                    f"{trial}: the gradient of array {which} at element {index} is {found:.9g}, "
                    f"where central differences of the reference give {slope:.9g}",
                    worst=error,
                )
            worst = max(worst, error)
    return worst


def check_function_second_gradients(
    subject: Subject, samples: FunctionSamples, one: FunctionCall
) -> float | None:
    """Compare the second derivative along one direction with differences of the reference.

    Returns
    -------
    float or None
        The error as a fraction of what is allowed.
    """
    dtype = gradient_dtype(subject)
    trial = Trial(subject, samples, one, dtype)
    values = trial.floats
    weights = _weights(trial)
    if not weights or not any(value.size for value in values):
        return None
    directions = [
        floats(*value.shape, low=0.5, high=1.5, phase=0.3 + 0.2 * index)
        for index, value in enumerate(values)
    ]
    constants = [_constant(trial, direction) for direction in directions]

    def along(*tensors: Tensor) -> Any:
        gradients = burn.grad(_loss(trial, weights), tuple(range(len(tensors))))(*tensors)
        pairs = zip(gradients, constants, strict=True)
        return _total([burn.sum(gradient * other) for gradient, other in pairs])

    tensors = [_constant(trial, value) for value in values]
    second = burn.grad(along, tuple(range(len(tensors))))(*tensors)
    found = sum(
        float(np.sum(gradient.numpy().astype(np.float64) * direction))
        for gradient, direction in zip(second, directions, strict=True)
    )
    parts = []
    for step in (_SECOND_STEP, 0.0, -_SECOND_STEP):
        pairs = zip(values, directions, strict=True)
        moved = [value + step * direction for value, direction in pairs]
        parts.append(_products(trial.reference(moved), weights))
    curvature = float(np.sum((parts[0] - parts[1]) - (parts[1] - parts[2]))) / _SECOND_STEP**2
    relative, absolute = _SECOND_TOLERANCE[dtype]
    allowed = relative * abs(curvature) + absolute * max(1.0, _size(trial))
    error = abs(found - curvature) / allowed
    if not error <= 1.0:
        raise Failure(
            f"{trial}: the second derivative along a direction is {found:.9g}, "
            f"where differences of the reference give {curvature:.9g}",
            worst=error,
        )
    return error


def _weights(trial: Trial) -> list[Array | None]:
    """What the elements of each float result count, None for other results; empty without any."""
    weights = [
        floats(*np.shape(item), low=0.5, high=1.5, phase=0.1 + 0.2 * index)
        if np.asarray(item).dtype.kind == "f"
        else None
        for index, item in enumerate(trial.reference())
    ]
    return weights if any(weight is not None for weight in weights) else []


def _products(results: Sequence[Any], weights: Sequence[Array | None]) -> Array:
    """All float results times their weights, in one row."""
    pairs = zip(results, weights, strict=True)
    return np.concatenate([np.ravel(x * weight) for x, weight in pairs if weight is not None])


def _size(trial: Trial) -> float:
    """Largest magnitude of a float result."""
    arrays = [np.abs(item) for item in trial.reference() if np.asarray(item).dtype.kind == "f"]
    return max([float(np.max(array, initial=0.0)) for array in arrays], default=0.0)


def _constant(trial: Trial, value: Array) -> Tensor:
    return burn.asarray(value, dtype=gradient_dtype(trial.subject), device=trial.device)


def _loss(trial: Trial, weights: Sequence[Array | None]) -> Callable[..., Any]:
    """The call as a function of its float tensors, with one number as its result."""

    def loss(*tensors: Tensor) -> Any:
        rest = iter(tensors)
        results = trial.run(
            lambda array: next(rest) if array.dtype.kind == "f" else trial.tensor(array)
        )
        return _total(
            [
                burn.sum(result * _constant(trial, weight))
                for result, weight in zip(flat(results), weights, strict=True)
                if weight is not None
            ]
        )

    return loss


def _total(terms: Sequence[Tensor]) -> Any:
    total: Any = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _gradients(
    trial: Trial, values: Sequence[Array], weights: Sequence[Array | None]
) -> list[Tensor]:
    tensors = [_constant(trial, value) for value in values]
    function = burn.grad(_loss(trial, weights), tuple(range(len(tensors))))
    return list(function(*tensors))
