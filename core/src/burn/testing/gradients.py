"""Checks of gradient rules: first and second derivatives against central differences.

What is differentiated is one number: the sum of all outputs of the op, each element times a fixed
weight. Central differences are taken in float64 with a step h of 1e-6. They are off by the third
derivative times h**2 / 6, some 1e-13, and by the rounding of the outputs over h, some 1e-10 of
their size: with three digits to spare for samples where a function bends sharply, that is the
tolerance here. A wrong rule is off by far more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from burn.autodiff import Autodiff
from burn.data import TensorData
from burn.dtype import DType, Kind, float64
from burn.errors import ExecutionError, UnsupportedOpError
from burn.ops import Meta, OpTable, Tag
from burn.testing.arrays import floats
from burn.testing.sample import Array, OpSamples, Sample
from burn.testing.subject import Call, Subject

if TYPE_CHECKING:
    from burn.aliases import Primitive

__all__ = [
    "check_gradient_types",
    "check_gradients",
    "check_second_gradients",
    "is_differentiable",
]

_STEP: Final = 1e-6
_RELATIVE: Final = 1e-5
_ABSOLUTE: Final = 1e-7
"""Times the size of the outputs."""

_GROUP: Final = 40
"""How many elements are moved together: in a sum of so many a wrong one still shows."""

Function: TypeAlias = Callable[[Sequence[Array]], Array]
"""Terms of the number that is differentiated, one for each element of the outputs. They are
subtracted before they are added up, so that those which do not change add no rounding error."""


class _Problem:
    """A call as a function of the float arrays among its operands."""

    def __init__(self, subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> None:
        self.subject = subject
        self.autodiff = Autodiff(subject.backend)
        self.tracking = self.autodiff.for_device(subject.device)
        self.call = Call.of(samples, one, dtype, subject.index_dtype)
        self.places = _float_places(self.call)
        self.values = [self._operand(place) for place in self.places]
        metas = self.call.outputs(self.call.op.infer(*self.call.metas, **self.call.attributes))
        self.counted = [meta.dtype.is_float for meta in metas]
        self.weights = [
            floats(*meta.shape, low=0.5, high=1.5, phase=0.1 + 0.2 * index).astype(meta.dtype.numpy)
            for index, meta in enumerate(metas)
            if meta.dtype.is_float
        ]

    def _operand(self, place: tuple[int, int | None]) -> Array:
        position, part = place
        operand = self.call.operands[position]
        array: Array = operand if part is None else operand[part]
        return array

    def upload(self, array: Array) -> Primitive:
        """A primitive of the device below all autodiff."""
        return self.subject.backend.from_data(TensorData(array), self.subject.device)

    def run(self, table: OpTable, primitives: Sequence[Primitive]) -> tuple[Any, ...]:
        """Float outputs of the op, with these primitives in place of the float arrays."""
        operands: list[Any] = [
            [None] * len(operand)
            if isinstance(operand, list)
            else self.upload(operand)
            if isinstance(operand, np.ndarray) and (position, None) not in self.places
            else operand
            for position, operand in enumerate(self.call.operands)
        ]
        for (position, part), primitive in zip(self.places, primitives, strict=True):
            if part is None:
                operands[position] = primitive
            else:
                operands[position][part] = primitive
        result = getattr(table, self.call.op.name)(*operands, **self.call.attributes)
        outputs = self.call.outputs(result)
        return tuple([one for one, counted in zip(outputs, self.counted, strict=True) if counted])

    def objective(self, values: Sequence[Array], weights: Sequence[Array]) -> Array:
        """The terms of the number that is differentiated."""
        with self.subject.quiet():
            outputs = self.run(self.subject.table, [self.upload(value) for value in values])
            arrays = [self.subject.read(output) for output in outputs]
        return _products(arrays, weights)

    def gradients(
        self, values: Sequence[Array], weights: Sequence[Array]
    ) -> tuple[list[Array], float]:
        """Its gradient by each array, by the op's rule, and the size of the outputs."""
        autodiff, table = self.autodiff, self.tracking
        device = self.subject.device
        leaves = [autodiff.require_grad(self.upload(value), device) for value in values]
        with self.subject.quiet():
            outputs = self.run(table, leaves)
            total = weighted_sum(table, outputs, [self.upload(weight) for weight in weights])
            sizes = [_largest(self.subject.read(autodiff.inner(one))) for one in outputs]
            size = max(sizes, default=0.0)
            if not autodiff.is_tracked(total):
                return [np.zeros_like(value) for value in values], size
            found = autodiff.backward(total)
            arrays = [
                self.read(autodiff.grad(leaf, found), value)
                for leaf, value in zip(leaves, values, strict=True)
            ]
        return arrays, size

    def read(self, gradient: Primitive | None, value: Array) -> Array:
        """Values of a gradient; it is 0 where the output does not depend on the operand."""
        if gradient is None:
            return np.zeros_like(value)
        array = self.subject.read(gradient)
        if (array.shape, array.dtype) != (value.shape, value.dtype):
            self.fail(f"a gradient is {_name(array)} for an operand that is {_name(value)}")
        return array

    def fail(self, message: str) -> None:
        """Raise, naming the call."""
        call = self.call
        raise AssertionError(f"{call.op.describe(call.metas, call.attributes)}: {message}")


def is_differentiable(samples: OpSamples, one: Sample) -> bool:
    """Whether central differences say what the gradients of a sample are."""
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


def check_gradients(subject: Subject, samples: OpSamples, one: Sample) -> None:
    """Compare the gradients of a sample with central differences, or with what it says they are.

    Parameters
    ----------
    subject : Subject
        A device that has float64.
    samples : OpSamples
        The op.
    one : Sample
        A sample. Nothing is compared if it is neither differentiable nor says what its gradients
        are.
    """
    if not is_differentiable(samples, one) and one.gradients is None:
        return
    problem = _Problem(subject, samples, one, float64)
    if one.gradients is not None:
        _check_stated(problem, one.gradients)
    if not is_differentiable(samples, one):
        return
    gradients, size = problem.gradients(problem.values, problem.weights)
    for which, gradient in enumerate(gradients):
        _compare(
            problem,
            "gradient",
            problem.values,
            which,
            gradient,
            lambda values: problem.objective(values, problem.weights),
            size,
            _alike(gradient),
        )


def check_second_gradients(subject: Subject, samples: OpSamples, one: Sample) -> None:
    """Compare gradients of gradients, by Autodiff over Autodiff, with central differences.

    Both the operands and the weights of the outputs are moved: the second shows whether a rule can
    be differentiated by the gradient that reaches it.
    """
    if not is_differentiable(samples, one):
        return
    problem = _Problem(subject, samples, one, float64)
    count = len(problem.values)
    directions = [
        floats(*value.shape, low=0.5, high=1.5, phase=0.3 + 0.2 * index)
        for index, value in enumerate(problem.values)
    ]
    everything = [*problem.values, *problem.weights]

    def along(values: Sequence[Array]) -> Array:
        """Terms of the first gradient along fixed directions."""
        gradients, _ = problem.gradients(values[:count], values[count:])
        return _products(gradients, directions)

    second, size = _second_gradients(problem, directions)
    for which, gradient in enumerate(second):
        together = [np.arange(gradient.size)]
        _compare(problem, "second gradient", everything, which, gradient, along, size, together)


def check_gradient_types(subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> None:
    """See that each gradient has the shape and the dtype of its operand.

    A rule may refuse a sample that is not differentiable.
    """
    problem = _Problem(subject, samples, one, dtype)
    try:
        problem.gradients(problem.values, problem.weights)
    except (ExecutionError, UnsupportedOpError):
        if one.differentiable:
            raise


def weighted_sum(
    table: OpTable, outputs: Sequence[Primitive], weights: Sequence[Primitive]
) -> Primitive:
    """Sum of all elements of all outputs, each times its weight."""
    total = None
    for output, weight in zip(outputs, weights, strict=True):
        axis = tuple(range(len(output.shape)))
        product = table.multiply(output, weight)
        term = table.sum(product, axis=axis, keepdims=False, dtype=table.dtype(output))
        if total is not None:
            # Outputs of one op have one dtype, but for casts of one.
            term = table.add(total, term)
        total = term
    return total


def _second_gradients(problem: _Problem, directions: Sequence[Array]) -> tuple[list[Array], float]:
    """Gradient of the first gradient along `directions`: by the operands, then by the weights."""
    device = problem.subject.device
    inner = Autodiff(problem.subject.backend)
    outer: Any = Autodiff(inner)
    everything = [*problem.values, *problem.weights]
    with problem.subject.quiet():
        leaves = [inner.require_grad(problem.upload(value), device) for value in everything]
        count = len(problem.values)
        tracked = [outer.require_grad(leaf, device) for leaf in leaves[:count]]
        table = outer.for_device(device)
        outputs = problem.run(table, tracked)
        total = weighted_sum(table, outputs, leaves[count:])
        if not outer.is_tracked(total):
            return [np.zeros_like(value) for value in everything], 0.0
        first = outer.backward(total)
        pairs = [
            (gradient, problem.upload(direction))
            for leaf, direction in zip(tracked, directions, strict=True)
            if (gradient := outer.grad(leaf, first)) is not None
        ]
        size = max(_largest(problem.subject.read(inner.inner(one))) for one, _ in pairs)
        along = weighted_sum(
            inner.for_device(device), [one for one, _ in pairs], [other for _, other in pairs]
        )
        if not inner.is_tracked(along):
            return [np.zeros_like(value) for value in everything], size
        found = inner.backward(along)
        return [
            problem.read(inner.grad(leaf, found), value)
            for leaf, value in zip(leaves, everything, strict=True)
        ], size


def _check_stated(problem: _Problem, stated: Sequence[Any]) -> None:
    """Compare with the gradients that a sample states, for weights of 1."""
    gradients, _ = problem.gradients(
        problem.values, [np.ones_like(weight) for weight in problem.weights]
    )
    for (position, _), gradient in zip(problem.places, gradients, strict=True):
        expected = stated[position]
        if expected is not None and not np.array_equal(gradient, expected, equal_nan=True):
            problem.fail(f"the gradient of operand {position} is {gradient}, not {expected}")


def _compare(
    problem: _Problem,
    what: str,
    values: Sequence[Array],
    which: int,
    gradient: Array,
    function: Function,
    size: float,
    groups: Iterable[Array],
) -> None:
    """Compare one gradient with central differences of a function.

    The elements of a group are moved together, each by an amount of its own. Only where that
    disagrees, or leads out of the domain, are they moved one by one, to see which it is.
    """

    def slopes(places: Array, amounts: Array) -> tuple[float, float, bool]:
        """What the gradient says of a direction, what differences say, and if that is the same."""
        with np.errstate(all="ignore"):
            exact = float(np.sum(gradient.flat[places] * amounts))
        numeric = _central_difference(function, values, which, places, amounts)
        allowed = _RELATIVE * abs(numeric) + _ABSOLUTE * max(1.0, size)
        return exact, numeric, abs(exact - numeric) <= allowed

    for group in groups:
        *_, near = slopes(group, floats(group.size, low=0.5))
        if near:
            continue
        for place in group[:: max(1, -(-group.size // _GROUP))]:
            exact, numeric, near = slopes(place[None], np.ones(1))
            # At the edge of the domain there is only one side.
            if np.isfinite(numeric) and not near:
                problem.fail(
                    f"{what} of operand {which} at element {place} is {exact:.9g}, "
                    f"where central differences give {numeric:.9g}"
                )


def _alike(gradient: Array) -> list[Array]:
    """Places of a few elements of one sign and size each, so that none drowns in their sum."""
    groups: dict[Any, list[int]] = {}
    for place, slope in enumerate(gradient.reshape(-1).tolist()):
        power = math.frexp(slope)[1] // 3
        groups.setdefault((slope < 0.0, slope > 0.0, power), []).append(place)
    return [
        np.array(places[start : start + _GROUP])
        for places in groups.values()
        for start in range(0, len(places), _GROUP)
    ]


def _central_difference(
    function: Function, values: Sequence[Array], which: int, places: Array, amounts: Array
) -> float:
    """Slope of a function where some elements of one operand move, each by its amount."""
    ends = []
    for step in (_STEP, -_STEP):
        moved = [value.copy() if index == which else value for index, value in enumerate(values)]
        moved[which].flat[places] += step * amounts
        ends.append(function(moved))
    with np.errstate(all="ignore"):
        return float(np.sum(ends[0] - ends[1])) / (2.0 * _STEP)


def _products(arrays: Sequence[Array], weights: Sequence[Array]) -> Array:
    """All elements times their weights, in one row."""
    pairs = zip(arrays, weights, strict=True)
    with np.errstate(all="ignore"):
        return np.concatenate([(array * weight).reshape(-1) for array, weight in pairs])


def _float_places(call: Call) -> list[tuple[int, int | None]]:
    """Which operands are float arrays: their position, and place in a list operand."""
    places: list[tuple[int, int | None]] = []
    for position, operand in enumerate(call.operands):
        if isinstance(operand, list):
            places += [(position, part) for part in range(len(operand))]
        elif isinstance(operand, np.ndarray) and DType.of(operand.dtype).is_float:
            places.append((position, None))
    return places


def _largest(array: Array) -> float:
    """Largest finite magnitude."""
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def _name(array: Array) -> str:
    return str(Meta(array.shape, DType.of(array.dtype)))
