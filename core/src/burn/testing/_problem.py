"""Problem: an op as a function of the floats it is given, which can be differentiated.

What is differentiated is one number: the sum of all float outputs of the op, each element times a
fixed weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import DType
from burn.ops import Meta, OpTable
from burn.tensor_data import TensorData
from burn.testing._check import Failure
from burn.testing.arrays import floats
from burn.testing.op_samples import Array, OpSamples, Sample
from burn.testing.subject import Call, Subject

if TYPE_CHECKING:
    from burn.aliases import Primitive

__all__ = ["Problem", "products", "weighted_sum"]


class Problem:
    """A sample as a function of the float arrays among its operands.

    Attributes
    ----------
    subject : Subject
        Where it is computed.
    sample : (OpSamples, Sample, DType)
        What it was made of.
    autodiff : Autodiff
        Gradients over the backend of the subject.
    call : Call
        The call that the sample means.
    float_operands : list of (int, int or None)
        Which operands are float arrays: index of the operand, and index in a list of operands.
    values : list of array
        Those operands.
    weights : list of array
        What the elements of each float output count.
    directions : list of array
        A direction in the space of each operand, and of each array of weights, in which second
        derivatives are taken.
    """

    def __init__(self, subject: Subject, samples: OpSamples, one: Sample, dtype: DType) -> None:
        self.subject = subject
        self.sample = (samples, one, dtype)
        self.autodiff = subject.autodiff
        self.call = Call.of(samples, one, dtype, subject.index_dtype)
        self.float_operands = _float_operands(self.call)
        self.values = [self._operand(position) for position in self.float_operands]
        metas = self.call.outputs(self.call.op.infer(*self.call.metas, **self.call.attributes))
        self.counted = [meta.dtype.is_float for meta in metas]
        self.weights = [
            floats(*meta.shape, low=0.5, high=1.5, phase=0.1 + 0.2 * index).astype(meta.dtype.numpy)
            for index, meta in enumerate(metas)
            if meta.dtype.is_float
        ]
        self.directions = [
            floats(*value.shape, low=0.5, high=1.5, phase=0.3 + 0.2 * index).astype(value.dtype)
            for index, value in enumerate([*self.values, *self.weights])
        ]

    def _operand(self, index: tuple[int, int | None]) -> Array:
        position, part = index
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
            if isinstance(operand, np.ndarray) and (position, None) not in self.float_operands
            else operand
            for position, operand in enumerate(self.call.operands)
        ]
        for (position, part), primitive in zip(self.float_operands, primitives, strict=True):
            if part is None:
                operands[position] = primitive
            else:
                operands[position][part] = primitive
        result = getattr(table, self.call.op.name)(*operands, **self.call.attributes)
        outputs = self.call.outputs(result)
        return tuple(
            [output for output, counted in zip(outputs, self.counted, strict=True) if counted]
        )

    def terms(self, values: Sequence[Array], weights: Sequence[Array]) -> Array:
        """The terms of the number that is differentiated."""
        with self.subject.quiet():
            outputs = self.run(self.subject.table, [self.upload(value) for value in values])
            arrays = [self.subject.read(output) for output in outputs]
        return products(arrays, weights)

    def gradients(
        self, values: Sequence[Array], weights: Sequence[Array]
    ) -> tuple[list[Array], float]:
        """Its gradient by each array, by the op's rule, and the size of the outputs."""
        autodiff, device = self.autodiff, self.subject.device
        table = autodiff.for_device(device)
        leaves = [autodiff.require_grad(self.upload(value), device) for value in values]
        with self.subject.quiet():
            outputs = self.run(table, leaves)
            total = weighted_sum(table, outputs, [self.upload(weight) for weight in weights])
            sizes = [_largest(self.subject.read(autodiff.inner(output))) for output in outputs]
            size = max(sizes, default=0.0)
            if not autodiff.is_tracked(total):
                return [np.zeros_like(value) for value in values], size
            found = autodiff.backward(total)
            arrays = [
                self._read(autodiff.grad(leaf, found), value)
                for leaf, value in zip(leaves, values, strict=True)
            ]
        return arrays, size

    def depends(self) -> list[bool]:
        """Whether the number depends on each of the arrays by the op's rule."""
        autodiff, device = self.autodiff, self.subject.device
        table = autodiff.for_device(device)
        leaves = [autodiff.require_grad(self.upload(value), device) for value in self.values]
        with self.subject.quiet():
            weights = [self.upload(weight) for weight in self.weights]
            total = weighted_sum(table, self.run(table, leaves), weights)
            if not autodiff.is_tracked(total):
                return [False] * len(leaves)
            found = autodiff.backward(total)
            return [autodiff.grad(leaf, found) is not None for leaf in leaves]

    def second_gradients(self) -> tuple[list[Array], float]:
        """Gradient of the first gradient along `directions`: by the operands, then the weights.

        Also the size of the first gradient. By Autodiff over Autodiff.
        """
        device = self.subject.device
        inner, outer = self.autodiff, self.subject.second_autodiff
        everything = [*self.values, *self.weights]
        count = len(self.values)
        with self.subject.quiet():
            leaves = [inner.require_grad(self.upload(value), device) for value in everything]
            tracked = [outer.require_grad(leaf, device) for leaf in leaves[:count]]
            table = outer.for_device(device)
            total = weighted_sum(table, self.run(table, tracked), leaves[count:])
            if not outer.is_tracked(total):
                return [np.zeros_like(value) for value in everything], 0.0
            first = outer.backward(total)
            pairs = [
                (gradient, self.upload(direction))
                for leaf, direction in zip(tracked, self.directions[:count], strict=True)
                if (gradient := outer.grad(leaf, first)) is not None
            ]
            size = max(_largest(self.subject.read(inner.inner(pair))) for pair, _ in pairs)
            along = weighted_sum(
                inner.for_device(device), [pair for pair, _ in pairs], [other for _, other in pairs]
            )
            if not inner.is_tracked(along):
                return [np.zeros_like(value) for value in everything], size
            found = inner.backward(along)
            return [
                self._read(inner.grad(leaf, found), value)
                for leaf, value in zip(leaves, everything, strict=True)
            ], size

    def _read(self, gradient: Primitive | None, value: Array) -> Array:
        """Values of a gradient; it is 0 where the output does not depend on the operand."""
        if gradient is None:
            return np.zeros_like(value)
        array = self.subject.read(gradient)
        if (array.shape, array.dtype) != (value.shape, value.dtype):
            raise Failure(
                f"{self}: a gradient is {_name(array)} for an operand that is {_name(value)}"
            )
        return array

    def __str__(self) -> str:
        return self.call.op.describe(self.call.metas, self.call.attributes)


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


def products(arrays: Sequence[Array], weights: Sequence[Array]) -> Array:
    """All elements times their weights, in one row."""
    pairs = zip(arrays, weights, strict=True)
    with np.errstate(all="ignore"):
        return np.concatenate([(array * weight).reshape(-1) for array, weight in pairs])


def _float_operands(call: Call) -> list[tuple[int, int | None]]:
    indices: list[tuple[int, int | None]] = []
    for position, operand in enumerate(call.operands):
        if isinstance(operand, list):
            indices += [(position, part) for part in range(len(operand))]
        elif isinstance(operand, np.ndarray) and DType.of(operand.dtype).is_float:
            indices.append((position, None))
    return indices


def _largest(array: Array) -> float:
    """Largest finite magnitude."""
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def _name(array: Array) -> str:
    return str(Meta(array.shape, DType.of(array.dtype)))
