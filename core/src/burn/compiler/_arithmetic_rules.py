"""Rules for elementwise ops."""

from __future__ import annotations

import math
from typing import Any

from burn.compiler._rewriting import Builder, exact, made_by, rewrites
from burn.dtype import DType
from burn.ir import Input, OperationIr, TensorIr
from burn.ops import REGISTRY, broadcast_shapes

__all__ = ["with_numbers"]


def with_numbers(program: Builder, operation: OperationIr) -> OperationIr:
    """An elementwise operation whose operands do not repeat elements where broadcasting does.

    A tensor of one value becomes the number, and an expanded tensor what it was expanded from, as
    long as the others have the shape of the output.
    """
    inputs = list(operation.inputs)
    tensors = [source for source in inputs if source.__class__ is TensorIr]
    if len(tensors) < 2:
        return operation
    specs = list(REGISTRY[operation.name].operands.values())
    for index, operand in enumerate(inputs):
        maker = program.maker(operand) if isinstance(operand, TensorIr) else None
        if maker is None or maker.name not in {"full", "expand"}:
            continue
        simpler: Input = maker.inputs[0] if maker.inputs else None
        if maker.name == "full":
            if not specs[index].scalar:
                continue
            simpler = _as_number(maker.attributes["fill_value"], maker.outputs[0].dtype)
        others = [*inputs[:index], simpler, *inputs[index + 1 :]]
        if _fits(specs, others, operation.outputs[0].shape):
            inputs = others
    return operation._replace(inputs=tuple(inputs))


def _fits(specs: list[Any], operands: list[Any], shape: Any) -> bool:
    """Whether operands have a shape together, and a tensor among them says the dtype."""
    shapes: list[Any] = [operand.shape for operand in operands if operand.__class__ is TensorIr]
    promotes = any(
        spec.promotes and operand.__class__ is TensorIr
        for spec, operand in zip(specs, operands, strict=True)
    )
    return promotes and broadcast_shapes(*shapes) == shape


def _as_number(value: Any, dtype: DType) -> Any:
    """The Python number that a dtype has for a value."""
    return dtype.numpy.type(value).item() if dtype.is_float else value


def _is(operand: Input, number: float) -> bool:
    """Whether an operand is a number, of any real type; 0.0 is not -0.0."""
    if operand.__class__ is not int and operand.__class__ is not float:
        return False
    value: Any = operand
    return bool(value == number) and exact(float(value)) == exact(float(number))


def _like_output(operand: Input, operation: OperationIr) -> TensorIr | None:
    """A tensor operand, if the output of an operation is like it, and not complex."""
    output = operation.outputs[0]
    if not isinstance(operand, TensorIr) or output.dtype.is_complex:
        return None
    return operand if operand[1:3] == output[1:3] else None


@rewrites("add")
def _add(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A sum with -0.0, or with 0 for integers, or with the negative of a tensor."""
    x1, x2 = operation.inputs
    for x, other in ((x1, x2), (x2, x1)):
        same = _like_output(x, operation)
        if same is not None and _is(other, 0 if not same.dtype.is_float else -0.0):
            return same
        negated = made_by(program, other, "negative")
        if negated is not None:
            return program.call("subtract", x, negated.inputs[0])
    return None


@rewrites("subtract")
def _subtract(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A difference with 0, or with the negative of a tensor."""
    x1, x2 = operation.inputs
    same = _like_output(x1, operation)
    if same is not None and _is(x2, 0):
        return same
    negated = made_by(program, x2, "negative")
    return None if negated is None else program.call("add", x1, negated.inputs[0])


@rewrites("multiply")
def _multiply(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A product with 1."""
    del program
    x1, x2 = operation.inputs
    if _is(x2, 1):
        return _like_output(x1, operation)
    return _like_output(x2, operation) if _is(x1, 1) else None


@rewrites("divide")
def _divide(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A quotient by 1, or by a power of two, which is a product."""
    x1, x2 = operation.inputs
    same = _like_output(x1, operation)
    if same is None or x2.__class__ not in {int, float}:
        return None
    if _is(x2, 1):
        return same
    number: Any = x2
    mantissa, exponent = math.frexp(number)
    if abs(mantissa) != 0.5 or abs(exponent) > 14:  # both numbers are normal in float16 too
        return None
    return program.call("multiply", same, 1.0 / number)


@rewrites("pow")
def _pow(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A first or a second power."""
    x1, x2 = operation.inputs
    same = _like_output(x1, operation)
    if same is None:
        return None
    if _is(x2, 1):
        return same
    return program.call("multiply", same, same) if _is(x2, 2) else None


@rewrites("negative", "bitwise_not", "conj")
def _inverse_of_itself(program: Builder, operation: OperationIr) -> TensorIr | None:
    """An operation that undoes another one of the same op."""
    inner = made_by(program, operation.inputs[0], operation.name)
    return None if inner is None else inner.inputs[0]  # type: ignore[return-value]  # an operand of a unary op


@rewrites("where")
def _where(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A choice between a tensor and itself."""
    del program
    _, x1, x2 = operation.inputs
    return _like_output(x1, operation) if x1.__class__ is TensorIr and x1 == x2 else None
