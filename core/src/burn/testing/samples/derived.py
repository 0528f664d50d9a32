"""Samples of ops that have none of their own: the examples of the definition, or what its tags say.

The reference is the op's decomposition, in float64 on NumPy: the samples test whatever else
computes the op, its gradient and its batching rule.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.device_id import DeviceId
from burn.dtype import Kind
from burn.errors import OperandTypeError, ShapeError
from burn.ops import REGISTRY, Op, OpTable, Tag
from burn.testing.arrays import LONG_LENGTH, SPECIAL, booleans, floats, integers, long
from burn.testing.op_samples import SAMPLES, Array, ErrorSample, Sample, error, reference, sample
from burn.testing.reference_backend import NumpyBackend

__all__ = ["attach"]

_SHAPES: Final = {
    "scalars": ((), (), ()),
    "matrices": ((3, 4), (3, 4), (3, 4)),
    "shapes that broadcast": ((3, 4), (4,), (3, 1)),
    "registers": ((LONG_LENGTH,), (LONG_LENGTH,), (LONG_LENGTH,)),
    "empty": ((0, 3), (0, 3), (3,)),
}
"""The shapes of the first operands of an elementwise op."""


def attach() -> None:
    """Give samples to each op that has none, where its definition tells them."""
    for name, op in REGISTRY.items():
        if name in SAMPLES or op.default is None:
            continue
        if op.examples:
            samples, errors = _of_examples(op)
        elif Tag.ELEMENTWISE in op.tags and all(spec.promotes for spec in op.operands.values()):
            samples, errors = _of_elementwise(op)
        else:
            continue
        reference(name, samples=samples, errors=errors)(_decomposed(op))


def _decomposed(op: Op) -> Any:
    """The decomposition of an op on NumPy's arrays."""
    table = OpTable(NumpyBackend(), DeviceId(0))  # type: ignore[abstract]  # the namespace fills in the other ops
    default: Any = op.default

    def compute(*operands: Any, **attributes: Any) -> Any:
        with np.errstate(all="ignore"):
            return default(table, *operands, **attributes)

    return compute


def _array(op: Op, number: int, shape: tuple[int, ...], low: float, high: float) -> Array:
    """An operand with numbers of the strongest kind that it takes."""
    kinds = list(op.operands.values())[number].kinds
    phase = 0.3 * number
    if kinds & Kind.FLOAT:
        return floats(*shape, low=low, high=high, phase=phase)
    if kinds & Kind.INTEGER:
        return integers(*shape, phase=phase)
    return booleans(*shape, phase=phase)


def _of_examples(op: Op) -> tuple[list[Sample], list[ErrorSample]]:
    samples, errors = [], []
    for example in op.examples:
        operands = [
            _array(op, number, shape, example.low, example.high)
            for number, shape in enumerate(example.shapes)
        ]
        if example.refused is None:
            samples.append(sample(example.note, *operands, **example.attributes))
        else:
            errors.append(error(example.note, example.refused, *operands, **example.attributes))
    return samples, errors


def _of_elementwise(op: Op) -> tuple[list[Sample], list[ErrorSample]]:
    """Shapes that broadcast, numbers, and special floats; numbers from 0.5 to 2."""
    specs = list(op.operands.values())
    count = len(specs)
    attributes: dict[str, Any] = {
        name: 0.5 for name, attribute in op.attributes.items() if attribute.required
    }

    def operands(shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
        return [_array(op, number, (shapes * count)[number], 0.5, 2.0) for number in range(count)]

    samples = [sample(note, *operands(shapes), **attributes) for note, shapes in _SHAPES.items()]
    if all(spec.kinds & Kind.FLOAT for spec in specs):
        special = [
            np.roll(long(np.append(SPECIAL, floats(4))), 2 * number) for number in range(count)
        ]
        samples.append(sample("special floats", *special, differentiable=False, **attributes))
    errors = []
    if count > 1:
        wrong = [floats(2, 3), floats(4), *operands(_SHAPES["scalars"])[2:]]
        errors.append(error("shapes that do not broadcast", ShapeError, *wrong, **attributes))
    for number, spec in enumerate(specs):
        if spec.scalar and number:
            given = operands(_SHAPES["matrices"])
            given[number] = 1.5 if spec.kinds & Kind.FLOAT else 1
            samples.append(sample(f"a number as operand {number}", *given, **attributes))
    if all(spec.scalar for spec in specs):
        numbers = [1.5] * count
        errors.append(error("numbers and no tensor", OperandTypeError, *numbers, **attributes))
    return samples, errors
