"""Quantized tensors in programs: their parts are tensors, which programs have as any others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from burn.dispatch import join_trace
from burn.functions import quantization
from burn.ir import TensorIr
from burn.ops.quantized_primitive import is_quantized, of_parts
from burn.quant_scheme import QDType
from burn.router import RouterTensor

if TYPE_CHECKING:
    from burn.aliases import Primitive, Shape
    from burn.dtype import DType
    from burn.quant_scheme import QuantScheme
    from burn.router import Recorder
    from burn.tensor.tensor import Tensor

__all__ = [
    "QuantizedIr",
    "input_of",
    "ir_of",
    "irs_of",
    "joined",
    "new_input",
    "part_tensors",
    "parts_of",
    "router_tensor",
    "scheme_of",
]


class QuantizedIr(NamedTuple):
    """A quantized tensor among the arguments of a program, which has its parts.

    Attributes
    ----------
    parts : tuple of TensorIr
        Codes, scales and, if there is one, the global scale.
    shape : tuple of int
        Length of each axis.
    dtype : QDType
        The dtype, which has the scheme.
    """

    parts: tuple[TensorIr, ...]
    shape: Shape
    dtype: QDType

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def new_input(recorder: Recorder, shape: Shape, dtype: DType) -> Primitive:
    """A new tensor without a value; of a quantized dtype, one of such parts.

    Raises
    ------
    ShapeError
        If no tensor of the shape has the dtype, as blocks do not divide it.
    """
    if not isinstance(dtype, QDType):
        return recorder.tensor(shape, dtype)
    scheme = dtype.scheme
    scheme.check(shape)
    shapes = [scheme.values_shape(shape), scheme.scales_shape(shape), (1,)]
    metas = zip(shapes, scheme.part_dtypes, strict=False)  # one level has no global scale
    return of_parts([recorder.tensor(*meta) for meta in metas], scheme)


def scheme_of(dtype: DType) -> QuantScheme | None:
    """How tensors of a dtype are quantized; None if they are not."""
    return dtype.scheme if isinstance(dtype, QDType) else None


def parts_of(primitive: Primitive) -> list[Primitive]:
    """The parts of a quantized tensor; any other primitive alone."""
    return primitive.parts if is_quantized(primitive) else [primitive]


def part_tensors(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Tensors in a trace, with its parts instead of each quantized one."""
    found: list[Tensor] = []
    for x in tensors:
        join_trace(x)
        found += quantization.part_tensors(x) if is_quantized(x.primitive) else [x]
    return found


def joined(primitives: Iterable[Primitive], dtypes: Sequence[DType]) -> list[Primitive]:
    """Primitives of these dtypes: each quantized one takes its parts from the given ones."""
    rest = iter(primitives)
    return [
        of_parts([next(rest) for _ in dtype.scheme.part_dtypes], dtype.scheme)
        if isinstance(dtype, QDType)
        else next(rest)
        for dtype in dtypes
    ]


def router_tensor(primitive: Primitive) -> RouterTensor:
    """What a trace has for a tensor, below autodiff; of a quantized one, for its codes."""
    while not isinstance(primitive, RouterTensor):
        primitive = primitive.values if is_quantized(primitive) else primitive.primitive
    return primitive


def ir_of(primitive: Primitive) -> TensorIr:
    """The tensor of a program below autodiff."""
    return router_tensor(primitive).ir


def irs_of(primitive: Primitive) -> list[TensorIr]:
    """The tensors of a program that a primitive has: of a quantized one those of its parts."""
    return [ir_of(part) for part in parts_of(primitive)]


def input_of(primitive: Primitive) -> TensorIr | QuantizedIr:
    """What a program has for an argument."""
    if is_quantized(primitive):
        return QuantizedIr(tuple(irs_of(primitive)), primitive.shape, primitive.dtype)
    return ir_of(primitive)
