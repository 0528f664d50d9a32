"""The types in the signatures of op definitions: operands with kinds, attributes with roles.

The parameters before the ``*`` of an op's definition are its operands, those after it its
attributes: serializable values, some with defaults. Each is annotated with one of the aliases
below, an operand with the dtype kinds that it accepts, an attribute with its role. Attributes that
several ops share are a TypedDict: ``**attributes: Unpack[ConvAttributes]``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias

from burn.aliases import Primitive, Scalar, Shape, Slices
from burn.dtype import DType, Kind
from burn.errors import BurnError
from burn.quant_scheme import QuantScheme

__all__ = [
    "AnyList",
    "AnyOperand",
    "AnyOrScalar",
    "Axes",
    "Axis",
    "AxisPairs",
    "AxisSlices",
    "BoolOperand",
    "BroadcastAxis",
    "ComplexOperand",
    "Cotangent",
    "Example",
    "FillValue",
    "Flag",
    "FloatList",
    "FloatOperand",
    "FloatOrScalar",
    "Gradients",
    "Graph",
    "IndexOperand",
    "InexactOperand",
    "InexactOrScalar",
    "Integer",
    "IntegerOrScalar",
    "IntegralOperand",
    "IntegralOrScalar",
    "Meta",
    "Number",
    "NumberOperand",
    "NumberOrScalar",
    "NumericOperand",
    "NumericOrScalar",
    "Operand",
    "OptionalBool",
    "OptionalFloat",
    "OptionalNumber",
    "OptionalSpatialNumbers",
    "Pairs",
    "Part",
    "Primitive",
    "RealOperand",
    "RealOrScalar",
    "Role",
    "RuntimeInteger",
    "RuntimeNumber",
    "Scalar",
    "Scheme",
    "Shape",
    "Sizes",
    "TargetDType",
    "TargetShape",
    "TensorList",
    "parameters_of",
]

Cotangent: TypeAlias = Any
"""A primitive: the gradient of the differentiated result by an output of the op."""

Gradients: TypeAlias = tuple[Any, ...]
"""The result of a gradient rule: a primitive, a `Part` or None for each operand."""


class Part(NamedTuple):
    """A gradient that is 0 outside of a slice of its operand.

    A backward pass joins the parts that reach a tensor: those of `burn.unstack` cost one copy.

    Attributes
    ----------
    gradient : primitive
        The gradient of the elements in the slice.
    slices : tuple
        For each axis (start, length, step).
    """

    gradient: Primitive
    slices: Slices


class Meta(NamedTuple):
    """Shape and dtype of a tensor."""

    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class Example(NamedTuple):
    """A call of an op, on which tests try it; the values of the operands are drawn.

    Attributes
    ----------
    note : str
        What is special about it, in a few words.
    shapes : tuple
        The shape of each operand.
    attributes : dict
        Those of the call.
    low, high : float
        The range of floats.
    refused : type, optional
        The class of the error of a call that must be refused.
    """

    note: str
    shapes: tuple[Shape, ...]
    attributes: Mapping[str, Any] = {}
    low: float = -2.0
    high: float = 2.0
    refused: type[BurnError] | None = None


@dataclass(frozen=True)
class Operand:
    """The values that one operand of an op accepts.

    Attributes
    ----------
    kinds : Kind
        The dtype kinds it takes.
    scalar : bool
        Whether it may be a Python number.
    promotes : bool
        Whether it takes part in promotion: all operands that do have one dtype in the backend.
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


def parameters_of(operands: Mapping[str, Operand]) -> list[str]:
    """The operands as parameters of a function, in text: the last ones, if optional, with None."""
    found: list[str] = []
    is_last = True
    for name, spec in reversed(list(operands.items())):
        is_last = is_last and spec.optional
        found.append(f"{name}=None" if is_last else name)
    return found[::-1]


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
FloatList: TypeAlias = Annotated[list[Meta], Operand(Kind.FLOAT, is_list=True)]
TensorList: TypeAlias = Annotated[list[Meta], Operand(Kind.ANY, is_list=True)]
AnyList: TypeAlias = Annotated[list[Meta], Operand(Kind.ANY, promotes=False, is_list=True)]


class Role(enum.Enum):
    """What an attribute of an op means, for code that handles the attributes of all ops alike."""

    AXIS = "axis"
    """One axis in [0, rank) of the first tensor operand; of a list, of each of its tensors."""

    BROADCAST_AXIS = "broadcast axis"
    """One axis in [0, rank) of the shape to which the operands broadcast."""

    AXES = "axes"
    """A tuple of axes in [0, rank) of the first tensor operand."""

    SHAPE = "shape"
    """The shape of the output."""

    SLICES = "slices"
    """(start, length, step) for each axis of the first tensor operand."""

    AXIS_PAIRS = "axis pairs"
    """(before, after) for each axis of the first tensor operand."""

    SIZES = "sizes"
    """An integer for each spatial axis; the spatial axes are the last ones."""

    SPATIAL_PAIRS = "spatial pairs"
    """(before, after) for each spatial axis."""

    SPATIAL_NUMBERS = "spatial numbers"
    """A real number for each spatial axis."""

    DTYPE = "dtype"
    """The dtype of an output, which may also be that in which the op computes."""

    INTEGER = "integer"
    """An integer that is no axis: a count, a length, a class."""

    NUMBER = "number"
    """A real number."""

    SCALAR = "scalar"
    """A number of the kind of the dtype, such as the value of new elements."""

    RUNTIME_INTEGER = "runtime integer"
    """An integer that may differ at each run of a recorded program: a seed, an offset, a step."""

    RUNTIME_NUMBER = "runtime number"
    """A real number that may differ at each run of a recorded program: a learning rate."""

    FLAG = "flag"
    """True or False."""

    CHOICE = "choice"
    """One of a closed set of strings, which the annotation lists as a ``Literal``."""

    SCHEME = "scheme"
    """How a quantized tensor is stored (`burn.quant_scheme.QuantScheme`)."""

    GRAPH = "graph"
    """A program (`burn.ir.GraphIr`) that the op runs: a branch, the body of a loop."""

    @property
    def is_runtime(self) -> bool:
        """Whether the value may differ at each run of a recorded program."""
        return self in {Role.RUNTIME_INTEGER, Role.RUNTIME_NUMBER}


Axis: TypeAlias = Annotated[int, Role.AXIS]
BroadcastAxis: TypeAlias = Annotated[int, Role.BROADCAST_AXIS]
Axes: TypeAlias = Annotated[tuple[int, ...], Role.AXES]
TargetShape: TypeAlias = Annotated[Shape, Role.SHAPE]
TargetDType: TypeAlias = Annotated[DType, Role.DTYPE]
AxisSlices: TypeAlias = Annotated[Slices, Role.SLICES]
AxisPairs: TypeAlias = Annotated[tuple[tuple[int, int], ...], Role.AXIS_PAIRS]
Sizes: TypeAlias = Annotated[tuple[int, ...], Role.SIZES]
Pairs: TypeAlias = Annotated[tuple[tuple[int, int], ...], Role.SPATIAL_PAIRS]
OptionalSpatialNumbers: TypeAlias = Annotated[tuple[float, ...] | None, Role.SPATIAL_NUMBERS]
Integer: TypeAlias = Annotated[int, Role.INTEGER]
Number: TypeAlias = Annotated[float, Role.NUMBER]
OptionalNumber: TypeAlias = Annotated[float | None, Role.NUMBER]
FillValue: TypeAlias = Annotated[Scalar, Role.SCALAR]
RuntimeInteger: TypeAlias = Annotated[int, Role.RUNTIME_INTEGER]
RuntimeNumber: TypeAlias = Annotated[float, Role.RUNTIME_NUMBER]
Flag: TypeAlias = Annotated[bool, Role.FLAG]
Scheme: TypeAlias = Annotated[QuantScheme, Role.SCHEME]
Graph: TypeAlias = Annotated[Any, Role.GRAPH]
