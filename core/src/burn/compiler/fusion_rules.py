"""What each op is to fusion: a view, a value of each element, a reduction, a product, or a call."""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dtype import DType, Kind, bool_
from burn.ir import HostNumber, OperationIr, ScalarIr, Status, TensorIr, tensors_among
from burn.kernels.expressions import Expression, Nodes, expression
from burn.kernels.functions import FUNCTIONS
from burn.kernels.kernel import Apply, Literal
from burn.ops import REGISTRY, Op, Role, Tag
from burn.ops.shapes import size

if TYPE_CHECKING:
    from burn.compiler.plan import Target

__all__ = [
    "Work",
    "cost_of",
    "expression_of",
    "host_number",
    "number_for",
    "operand_dtype",
    "operands_of",
    "read_only",
    "rule",
    "shape_of",
]


class Work(enum.Enum):
    """What an operation is to fusion."""

    CALL = "call"
    VIEW = "view"
    ELEMENTWISE = "elementwise"
    NUMBER = "number"
    """All elements are one number: `full`."""

    RANGE = "range"
    """Elements follow from their indices: `arange`."""

    REDUCTION = "reduction"
    PRODUCT = "product"
    """A matrix product: a reduction of products."""

    PARTS = "parts"
    """Parts come from several tensors: `slice_assign` and `concat`."""

    GATHER = "gather"
    """Elements are read at indices."""

    PICK = "pick"
    """For each row the element at an index: a reduction."""

    ADD = "add"
    """For each row a number is added to the element at an index: `scatter_add`."""

    CHECK = "check"
    """Indices that are out of range, and 0 for those that are not."""


_MOST_PARTS: Final = 4
"""Tensors that `concat` reads in a kernel: each element tests for all of them."""


def rule(operation: OperationIr, target: Target) -> tuple[Work, str]:
    """What an operation is, and for a call the reason why it is one.

    Parameters
    ----------
    operation : OperationIr
        An operation.
    target : Target
        What the device computes with kernels.
    """
    op = REGISTRY[operation.name]
    work = _work_of(op)
    tensors = [*tensors_among(operation.inputs), *operation.outputs]
    if any(None in tensor.shape or 0 in tensor.shape for tensor in tensors):
        return Work.CALL, "a tensor has no elements, or a length that depends on data"
    if work is Work.VIEW:
        return work, ""
    strange = next((tensor.dtype for tensor in tensors if tensor.dtype not in target.dtypes), None)
    if strange is not None:
        return Work.CALL, f"kernels of the device have no {strange}"
    if any(attribute.role is Role.GRAPH for attribute in op.attributes.values()):
        return Work.CALL, "it runs programs of its own, which are compiled"
    if target.keeps(operation):
        return Work.CALL, "the device has a kernel of its own"
    if work is None:
        if Tag.ELEMENTWISE in op.tags:
            return _elementwise(operation)
        return Work.CALL, "no kernel is generated for the op"
    find = _REASONS.get(work)
    reason = "" if find is None else find(operation, target)
    return (Work.CALL, reason) if reason else (work, "")


@functools.cache
def _work_of(op: Op) -> Work | None:
    """What an op is that its definition says, or its tags; None of others."""
    if op.fuses is not None:
        return None if op.fuses == "decomposition" else Work(op.fuses)
    if Tag.VIEW in op.tags and op.is_required:
        return Work.VIEW
    return Work.REDUCTION if op.combines not in (None, "mean") else None


def _elementwise(operation: OperationIr) -> tuple[Work, str]:
    dtype = operand_dtype(operation)
    if expression_of(operation, dtype) is None:
        return Work.CALL, f"the op has no expression for {dtype}"
    if any(_is_strange(source, dtype) for source in operation.inputs):
        return Work.CALL, "a number is none of the dtype"
    return Work.ELEMENTWISE, ""


def _is_strange(operand: Any, dtype: DType) -> bool:
    """Whether an operand is a number that its dtype does not have: a fraction as an integer."""
    if isinstance(operand, float) and not dtype.is_float:
        return not operand.is_integer()  # an infinity and NaN are none
    return isinstance(operand, complex)


def _of_number(operation: OperationIr, target: Target) -> str:
    del target
    value, dtype = operation.attributes["fill_value"], operation.attributes["dtype"]
    return "the number is none of the dtype" if _is_strange(value, dtype) else ""


def _of_parts(operation: OperationIr, target: Target) -> str:
    del target
    if operation.name == "concat":
        parts = operation.inputs[0]
        if isinstance(parts, tuple) and len(parts) > _MOST_PARTS:
            return f"it joins more than {_MOST_PARTS} tensors"
        return ""
    if any(step != 1 for _, length, step in operation.attributes["slices"] if length > 1):
        return "it writes to a slice with steps"
    return ""


def _of_indices(operation: OperationIr, target: Target) -> str:
    if not target.checks:
        return "the device checks indices in its own op"
    indices = operands_of(operation)[1]
    if operation.name == "scatter_add" and indices.shape[operation.attributes["axis"]] != 1:
        return "several values may be added to one element"
    return ""


def _of_product(operation: OperationIr, target: Target) -> str:
    (first, _), output = operands_of(operation), operation.outputs[0]
    count = size(shape_of(output)) * first.shape[-1]
    if count > target.max_product:
        return "it is a large matrix product"
    return "" if output.dtype.kind in Kind.NUMERIC else f"it is a product of {output.dtype}"


_REASONS: Final = {
    Work.NUMBER: _of_number,
    Work.PARTS: _of_parts,
    Work.PRODUCT: _of_product,
    Work.GATHER: _of_indices,
    Work.ADD: _of_indices,
}


def shape_of(tensor: TensorIr) -> tuple[int, ...]:
    """The shape of a tensor whose lengths are known, as those of all operands are."""
    return tensor.shape  # type: ignore[return-value]  # see above


def operands_of(operation: OperationIr) -> Any:
    """The operands of an operation, which are what the signature of its op says."""
    return operation.inputs


def read_only(tensor: TensorIr) -> TensorIr:
    """A tensor as what reads it names it."""
    return tensor if tensor.status is Status.READ_ONLY else tensor._replace(status=Status.READ_ONLY)


def operand_dtype(operation: OperationIr) -> DType:
    """The dtype of the operands that promote, which all have it."""
    for number in _promoting(operation.name):
        operand = operation.inputs[number]
        if operand.__class__ is TensorIr:
            return operand.dtype
    return operation.outputs[0].dtype


@functools.cache
def _promoting(name: str) -> tuple[int, ...]:
    """Numbers of the operands of an op that promote."""
    specs = REGISTRY[name].operands.values()
    return tuple([number for number, spec in enumerate(specs) if spec.promotes])


def expression_of(operation: OperationIr, dtype: DType) -> Expression | None:
    """The expression of an elementwise op for the dtype of its operands."""
    return expression(operation.name, dtype.kind, _choice(operation))


def _choice(operation: OperationIr) -> str | None:
    """The value of the attribute of an op that is a choice, if it has one."""
    for value in operation.attributes.values():
        if value.__class__ is str:  # a dtype is another class
            return str(value)
    return None


def cost_of(operation: OperationIr, dtype: DType) -> int:
    """What one element of an elementwise operation costs, in additions."""
    return 1 if operation.name == "cast" else _cost(operation.name, dtype, _choice(operation))


@functools.cache
def _cost(name: str, dtype: DType, choice: str | None) -> int:
    found = expression(name, dtype.kind, choice)
    if found is None:
        return 1
    nodes = Nodes()
    values = {
        parameter: nodes.literal(index + 2, bool_ if parameter == "condition" else dtype)
        for index, parameter in enumerate(found.parameters)
    }
    found.write(nodes, values, dtype)
    return sum([FUNCTIONS[node.function].cost for node in nodes.body if isinstance(node, Apply)])


def number_for(value: Any, dtype: DType) -> Literal:
    """A number as a constant of a dtype; integers wrap around, and floats are rounded."""
    if dtype.is_float:
        with np.errstate(all="ignore"):
            rounded = np.asarray(float(value)).astype(dtype.numpy)
        return Literal(float(rounded), dtype)
    if dtype.is_bool:
        return Literal(bool(value), dtype)
    bits = 8 * dtype.itemsize
    wrapped = int(value) & ((1 << bits) - 1)
    if dtype.kind == Kind.INT and wrapped >> (bits - 1):
        wrapped -= 1 << bits
    return Literal(wrapped, dtype)


def host_number(value: Any) -> HostNumber | None:
    """A number that each run gets anew; None if a value is none."""
    if value.__class__ is ScalarIr:
        return HostNumber.of(value)
    return value if value.__class__ is HostNumber else None
