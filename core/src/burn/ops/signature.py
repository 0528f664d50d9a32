"""What an op takes: the vocabulary in which the op definitions state their signatures.

The parameters before the ``*`` of an op's definition are its operands, annotated with one of the
aliases below; those after it are its attributes: serializable values, with defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias

from burn.aliases import Primitive, Scalar, Shape
from burn.dtype import DType, Kind

__all__ = [
    "AnyOperand",
    "AnyOrScalar",
    "BoolOperand",
    "ComplexOperand",
    "Cotangent",
    "FloatOperand",
    "FloatOrScalar",
    "Gradients",
    "IndexOperand",
    "InexactOperand",
    "InexactOrScalar",
    "IntegerOrScalar",
    "IntegralOperand",
    "IntegralOrScalar",
    "Meta",
    "NumberOperand",
    "NumberOrScalar",
    "NumericOperand",
    "NumericOrScalar",
    "Operand",
    "OptionalBool",
    "OptionalFloat",
    "Primitive",
    "RealOperand",
    "RealOrScalar",
    "Scalar",
    "Shape",
    "TensorList",
]

Cotangent: TypeAlias = Any
"""A primitive with the gradient of what is differentiated, as it arrives at an output."""

Gradients: TypeAlias = tuple[Any, ...]
"""What a gradient rule returns: a primitive or None for each operand."""


class Meta(NamedTuple):
    """What is known of a tensor without its data."""

    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Operand:
    """What one operand of an op accepts.

    Attributes
    ----------
    kinds : Kind
        The dtype kinds it takes.
    scalar : bool
        Whether it may be a Python number.
    promotes : bool
        Whether it takes part in promotion: all operands that do have one dtype when the backend
        sees them.
    is_list : bool
        Whether it is a list of tensors.
    optional : bool
        Whether it may be None.
    """

    kinds: Kind
    scalar: bool = False
    promotes: bool = True
    is_list: bool = False
    optional: bool = False


AnyOperand: TypeAlias = Annotated[Meta, Operand(Kind.ANY)]
AnyOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.ANY, scalar=True)]
RealOperand: TypeAlias = Annotated[Meta, Operand(Kind.REAL)]
RealOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.REAL, scalar=True)]
NumericOperand: TypeAlias = Annotated[Meta, Operand(Kind.NUMERIC)]
NumericOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.NUMERIC, scalar=True)]
IntegralOperand: TypeAlias = Annotated[Meta, Operand(Kind.INTEGRAL)]
IntegralOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.INTEGRAL, scalar=True)]
IntegerOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.INTEGER, scalar=True)]
NumberOperand: TypeAlias = Annotated[Meta, Operand(Kind.NUMBER)]
NumberOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.NUMBER, scalar=True)]
InexactOperand: TypeAlias = Annotated[Meta, Operand(Kind.INEXACT)]
InexactOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.INEXACT, scalar=True)]
ComplexOperand: TypeAlias = Annotated[Meta, Operand(Kind.COMPLEX)]
FloatOperand: TypeAlias = Annotated[Meta, Operand(Kind.FLOAT)]
FloatOrScalar: TypeAlias = Annotated[Meta | Scalar, Operand(Kind.FLOAT, scalar=True)]
BoolOperand: TypeAlias = Annotated[Meta, Operand(Kind.BOOL, promotes=False)]
IndexOperand: TypeAlias = Annotated[Meta, Operand(Kind.INTEGER, promotes=False)]
OptionalFloat: TypeAlias = Annotated[Meta | None, Operand(Kind.FLOAT, optional=True)]
OptionalBool: TypeAlias = Annotated[Meta | None, Operand(Kind.BOOL, promotes=False, optional=True)]
TensorList: TypeAlias = Annotated[list[Meta], Operand(Kind.ANY, is_list=True)]
