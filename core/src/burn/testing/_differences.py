"""Central differences: what gradients are compared with.

They are computed in float64 with a step h of 1e-6, by NumPy (`NumpyBackend`) for every device:
other checks compare the values of the device with references, and differences take hundreds of
calls, which are slow on some devices. Their errors are the third derivative times h**2 / 6, some
1e-13, and the rounding of the outputs over h, some 1e-10 of their size.

Elements of an operand whose derivatives have one sign and size are moved together, each by an
amount of its own, so that none is lost in the sum. Where that leads out of the domain, elements are
moved one by one; so they are to find the element whose derivative disagrees.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from burn.autodiff import Autodiff
from burn.device_id import DeviceId
from burn.dtype import DType, float64
from burn.testing._problem import Problem, products
from burn.testing.arrays import floats
from burn.testing.op_samples import Array, OpSamples, Sample
from burn.testing.reference_backend import NumpyBackend
from burn.testing.subject import Subject

__all__ = ["Slope", "depends", "first_differences", "one_by_one", "second_differences"]

_STEP: Final = 1e-6

_MAX_ELEMENTS_MOVED_TOGETHER: Final = 40
"""In a sum of so many derivatives one wrong derivative still shows."""

Function: TypeAlias = Callable[[Sequence[Array]], Array]
"""Terms of the number that is differentiated, one for each element of the outputs. They are
subtracted before they are added up, so that those which do not change add no rounding error."""


@dataclass(frozen=True, eq=False)
class Slope:
    """The derivative of a number as some elements of an array move.

    Attributes
    ----------
    which : int
        Number of the array, among all that may be moved.
    indices : array of int
        Which of its elements, counted in C order.
    amounts : array of float64
        How far each of them moves.
    value : float
        How fast the number grows.
    """

    which: int
    indices: Array = field(repr=False)
    amounts: Array = field(repr=False)
    value: float

    def of(self, gradient: Array) -> float:
        """The same derivative by a gradient."""
        with np.errstate(all="ignore"):
            return float(np.sum(gradient.flat[self.indices].astype(np.float64) * self.amounts))

    def __str__(self) -> str:
        if len(self.indices) == 1:
            return f"at element {self.indices[0]}"
        return f"along {len(self.indices)} elements"


def first_differences(samples: OpSamples, one: Sample, dtype: DType) -> list[Slope]:
    """Derivatives by the operands, rounded to a dtype."""
    key = (one, dtype, samples.op.vjp)
    if key not in _first:
        problem = _reference_problem(samples, one, dtype)
        gradients, _ = problem.gradients(problem.values, problem.weights)
        slopes = []
        for which, gradient in enumerate(gradients):
            for indices in _alike(gradient):
                slope = _first_slope(problem, which, indices)
                if np.isfinite(slope.value):
                    slopes.append(slope)
                else:
                    slopes += _alone(problem, slope)
        _first[key] = slopes
    return _first[key]


def second_differences(samples: OpSamples, one: Sample, dtype: DType) -> list[Slope]:
    """Derivatives of the first gradient along fixed directions, by operands and by weights.

    Both the operands and the weights of the outputs are moved: the second shows whether a rule can
    be differentiated by the gradient that reaches it.
    """
    key = (one, dtype, samples.op.vjp)
    if key not in _second:
        problem = _reference_problem(samples, one, dtype)
        count = len(problem.values)
        everything = [*problem.values, *problem.weights]

        def along(values: Sequence[Array]) -> Array:
            gradients, _ = problem.gradients(values[:count], values[count:])
            return products(gradients, problem.directions[:count])

        slopes = []
        if np.isfinite(along(everything)).all():
            for which, direction in enumerate(problem.directions):
                if direction.size:
                    indices, amounts = np.arange(direction.size), direction.reshape(-1)
                    value = _difference(along, everything, which, indices, amounts)
                    slopes.append(Slope(which, indices, amounts, value))
        _second[key] = [slope for slope in slopes if np.isfinite(slope.value)]
    return _second[key]


def one_by_one(problem: Problem, slope: Slope) -> list[Slope]:
    """First derivatives by each of the elements of a slope."""
    samples, one, dtype = problem.sample
    return _alone(_reference_problem(samples, one, dtype), slope)


def depends(problem: Problem) -> list[bool]:
    """Whether what is differentiated depends on each operand."""
    samples, one, _ = problem.sample
    return _reference_problem(samples, one, float64).depends()


@functools.cache
def _reference_subject() -> Subject:
    return Subject(NumpyBackend(), DeviceId(0))  # type: ignore[abstract]  # the namespace fills in the other ops


def _reference_problem(samples: OpSamples, one: Sample, dtype: DType) -> Problem:
    """The problem in float64, at values that are numbers of another dtype."""
    problem = Problem(_reference_subject(), samples, one, float64)
    problem.autodiff = Autodiff(problem.subject.backend)  # rules may have changed since the last
    if dtype is not float64:
        rounded = Problem(_reference_subject(), samples, one, dtype)
        problem.values = [value.astype(np.float64) for value in rounded.values]
        problem.weights = [weight.astype(np.float64) for weight in rounded.weights]
        problem.directions = [direction.astype(np.float64) for direction in rounded.directions]
    return problem


def _alike(gradient: Array) -> Iterator[Array]:
    """Indices of a few elements of one sign and size each."""
    groups: dict[Any, list[int]] = {}
    for index, slope in enumerate(gradient.reshape(-1).tolist()):
        power = math.frexp(slope)[1] // 3
        groups.setdefault((slope < 0.0, slope > 0.0, power), []).append(index)
    for indices in groups.values():
        for start in range(0, len(indices), _MAX_ELEMENTS_MOVED_TOGETHER):
            yield np.array(indices[start : start + _MAX_ELEMENTS_MOVED_TOGETHER])


def _alone(problem: Problem, slope: Slope) -> list[Slope]:
    """A slope for each element; what is not finite is the edge of the domain, with one side."""
    slopes = [_first_slope(problem, slope.which, index[None]) for index in slope.indices]
    return [slope for slope in slopes if np.isfinite(slope.value)]


def _first_slope(problem: Problem, which: int, indices: Array) -> Slope:
    amounts = floats(len(indices), low=0.5) if len(indices) > 1 else np.ones(1)

    def terms(values: Sequence[Array]) -> Array:
        return problem.terms(values, problem.weights)

    value = _difference(terms, problem.values, which, indices, amounts)
    return Slope(which, indices, amounts, value)


def _difference(
    function: Function, values: Sequence[Array], which: int, indices: Array, amounts: Array
) -> float:
    """How fast the sum of what a function returns grows as elements of one array move."""
    ends = []
    for step in (_STEP, -_STEP):
        moved = list(values)
        moved[which] = np.array(values[which], order="C")
        moved[which].flat[indices] += step * amounts
        ends.append(function(moved))
    with np.errstate(all="ignore"):
        return float(np.sum(ends[0] - ends[1])) / (2.0 * _STEP)


_first: dict[Any, list[Slope]] = {}
_second: dict[Any, list[Slope]] = {}
