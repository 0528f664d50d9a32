"""What the parts of a program may be: tensors, operands, and attributes by their roles."""

from __future__ import annotations

import numbers
import reprlib
from typing import Any, Final

import numpy as np

from burn.dtype import DType
from burn.errors import DTypeError, GraphError
from burn.ir.graph import GraphIr, OperationIr, ScalarIr, Status, TensorIr
from burn.ops import REGISTRY, Attribute, Op, Operand, Role
from burn.quant_scheme import QuantScheme

__all__ = [
    "INTEGER_BITS",
    "MAX_AXES",
    "MAX_GRAPHS",
    "check_operation",
    "check_scalar",
    "check_tensor",
    "is_id",
    "restore_schemes",
    "shown",
]

MAX_AXES: Final = 64
"""Number of axes that a tensor has at most, which is NumPy's limit."""

MAX_GRAPHS: Final = 16
"""Number of programs within each other: of the bodies of loops within loops."""

INTEGER_BITS: Final = 256
"""Number of bits of the integers that text and bytes hold: an offset of random numbers has 130."""


shown: Final = reprlib.repr
"""A value in a message, however large it is."""


def is_id(value: Any) -> bool:
    """Whether a value numbers a tensor or a scalar: an integer in [0, 2**63)."""
    return bool((value.__class__ is int or isinstance(value, np.integer)) and 0 <= value < 1 << 63)


def check_tensor(tensor: Any) -> None:
    """Raise GraphError unless this is a TensorIr with a number, a shape, a dtype and a status."""
    if tensor.__class__ is not TensorIr:
        raise GraphError(f"a tensor is a TensorIr, not {type(tensor).__name__}")
    id, shape, dtype, status = tensor
    if not is_id(id):
        raise GraphError(f"the number of a tensor is an integer in [0, 2**63), not {shown(id)}")
    if dtype.__class__ is not DType or status.__class__ is not Status:
        raise GraphError(f"%{id} has no dtype or no status: {shown(dtype)}, {shown(status)}")
    if shape.__class__ is not tuple or len(shape) > MAX_AXES:
        raise GraphError(f"the shape of %{id} is no tuple of at most {MAX_AXES} lengths")
    elements = 1
    for length in shape:
        if length is None:
            continue
        if not is_id(length):
            raise GraphError(
                f"a length of %{id} is {shown(length)}", hint="Use an integer, or None"
            )
        elements *= length
    if elements >= 1 << 63:
        raise GraphError(f"%{id} has more than 2**63 - 1 elements")


def check_scalar(scalar: Any) -> None:
    """Raise GraphError unless this is a ScalarIr with a number, a kind, and an integer to add."""
    if scalar.__class__ is not ScalarIr:
        raise GraphError(f"a scalar is a ScalarIr, not {type(scalar).__name__}")
    if not is_id(scalar.id):
        raise GraphError(
            f"the number of a scalar is an integer in [0, 2**63), not {shown(scalar.id)}"
        )
    if scalar.kind is not int and scalar.kind is not float:
        raise GraphError(
            f"the kind of ${scalar.id} is {shown(scalar.kind)}", hint="Use int or float"
        )
    if scalar.plus.__class__ is not int or not -(1 << 63) <= scalar.plus < 1 << 63:
        raise GraphError(f"what is added to ${scalar.id} is no integer of 64 bits")


def check_operation(operation: OperationIr) -> Op:
    """The op of an operation, whose operands and attributes are what its signature says.

    Raises
    ------
    BurnError
        If there is no such op, or the signature of the op says otherwise. `Op.infer`, which finds
        more, is not called.
    """
    definition = REGISTRY.get(operation.name) if operation.name.__class__ is str else None
    if definition is None:
        raise GraphError(
            f"there is no op {shown(operation.name)}",
            hint="Another version of burn, or a plugin that is not loaded here, may define it",
        )
    if len(operation.inputs) != len(definition.operands):
        raise GraphError(
            f"takes {len(definition.operands)} operands ({', '.join(definition.operands)}), "
            f"got {len(operation.inputs)}"
        )
    for (name, spec), operand in zip(definition.operands.items(), operation.inputs, strict=True):
        _check_operand(name, spec, operand)
    for name, value in operation.attributes.items():
        attribute = definition.attributes.get(name)
        if attribute is None:
            known = ", ".join(definition.attributes) or "none"
            raise GraphError(f"has no attribute {shown(name)}", hint=f"It has: {known}")
        _check_attribute(attribute, value)
    for name, attribute in definition.attributes.items():
        if attribute.required and name not in operation.attributes:
            raise GraphError(f"needs the attribute {name!r}")
    names = definition.output_names(operation.inputs, operation.attributes)
    _check_outputs(names, operation.outputs)
    return definition


def restore_schemes(name: Any, attributes: dict[str, Any]) -> None:
    """Replace the texts of quantization schemes among the attributes of an operation."""
    definition = REGISTRY.get(name) if name.__class__ is str else None
    for key, value in attributes.items() if definition else ():
        known = definition and definition.attributes.get(key)
        if known and known.role is Role.SCHEME and value.__class__ is str:
            try:
                attributes[key] = QuantScheme.parse(value)
            except DTypeError as error:
                raise GraphError(f"{key} of {name}: {error.rule}", hint=error.hint) from None


def _check_outputs(names: tuple[str, ...], outputs: tuple[TensorIr, ...]) -> None:
    if len(outputs) != len(names):
        raise GraphError(f"has {len(names)} outputs ({', '.join(names)}), got {len(outputs)}")
    for output in outputs:
        check_tensor(output)
        if output.status is not Status.NOT_INIT:
            raise GraphError(f"%{output.id} is made here", hint="Its status must be NOT_INIT")


def _check_operand(name: str, spec: Operand, operand: Any) -> None:
    if operand.__class__ is tuple and spec.is_list:
        for tensor in operand:
            _check_use(tensor)
    elif operand.__class__ is TensorIr and not spec.is_list:
        _check_use(operand)
    elif not (
        spec.optional if operand is None else spec.scalar and isinstance(operand, numbers.Number)
    ):
        expected = "a list of tensors" if spec.is_list else "a tensor"
        raise GraphError(f"{name} must be {expected}, not {shown(operand)}")


def _check_use(tensor: Any) -> None:
    check_tensor(tensor)
    if tensor.status is Status.NOT_INIT:
        raise GraphError(f"%{tensor.id} is used here, so its status is not NOT_INIT")


def _check_attribute(attribute: Attribute, value: Any) -> None:
    if value.__class__ is ScalarIr:
        check_scalar(value)
        if not attribute.role.is_runtime:
            raise GraphError(
                f"{attribute.name} is ${value.id}, which differs at each run",
                hint=f"An attribute with the role {attribute.role.value!r} is part of the program",
            )
        if attribute.role is Role.RUNTIME_INTEGER and value.kind is not int:
            raise GraphError(f"{attribute.name} is ${value.id}, and must be an integer")
        return
    if isinstance(value, (tuple, list)) and len(value) > MAX_AXES:
        raise GraphError(f"{attribute.name} has {len(value)} items", hint=f"At most {MAX_AXES}")
    if attribute.role is Role.GRAPH and not isinstance(value, GraphIr):
        raise GraphError(f"{attribute.name} must be a GraphIr, not {shown(value)}")
    attribute.check(value)
