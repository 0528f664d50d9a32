"""Operands of operations: the tensors among them, and what the rules of ops take of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from burn.ir.graph import GraphIr, OperationIr, ScalarIr, TensorIr
from burn.ir.host_number import HostNumber
from burn.ops import REGISTRY, Meta

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.ops import Op

__all__ = ["infer", "may_raise", "metas_of", "promoted_dtype", "tensors_among"]


def tensors_among(operands: Iterable[Any]) -> Iterator[TensorIr]:
    """The tensors among operands and lists of operands."""
    for operand in operands:
        if operand.__class__ is TensorIr:
            yield operand
        elif operand.__class__ is tuple:
            yield from operand


def metas_of(operands: Iterable[Any]) -> list[Any]:
    """Operands as `Op.infer` and `Op.describe` take them: a Meta for each tensor."""
    return [
        Meta(operand.shape, operand.dtype)  # type: ignore[arg-type]  # a length may be None
        if operand.__class__ is TensorIr
        else metas_of(operand)
        if operand.__class__ is tuple
        else operand
        for operand in operands
    ]


def infer(
    definition: Op, operands: Iterable[Any], attributes: Mapping[str, Any]
) -> tuple[Meta, ...]:
    """Shape and dtype of each output of a call, which `Op.infer` gives.

    Raises
    ------
    BurnError
        If the op does not accept the call.
    """
    metas = definition.infer(
        *map(_example, metas_of(operands)),
        **{name: _example(value) for name, value in attributes.items()},
    )
    return tuple(metas) if definition.returns_tuple else (metas,)


def _example(value: Any) -> Any:
    """A number that every op accepts instead of one that is known at each run."""
    return value.kind(1) if value.__class__ in (ScalarIr, HostNumber) else value


def promoted_dtype(definition: Op, operands: Iterable[Any]) -> DType | None:
    """Dtype of the operands that promote, which all have it; None if no tensor does."""
    for spec, operand in zip(definition.operands.values(), operands, strict=True):
        if spec.promotes:
            if operand.__class__ is TensorIr:
                return operand.dtype
            if operand.__class__ is tuple and operand:
                return operand[0].dtype  # type: ignore[no-any-return]  # of a TensorIr
    return None


def may_raise(operation: OperationIr) -> bool:
    """Whether values can make an operation raise an error: its op, or one of a program it runs.

    Numbers that each run gets anew are checked before it: see `burn.compiler.executable`.
    """
    return REGISTRY[operation.name].may_raise or any(
        isinstance(operation, OperationIr) and may_raise(operation)
        for value in operation.attributes.values()
        if isinstance(value, GraphIr)
        for operation in value.operations
    )
