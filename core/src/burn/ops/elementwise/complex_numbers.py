"""Parts of complex numbers, and numbers from their parts.

A complex tensor is never tracked: an op with a tracked operand and a complex result is an error. A
backend that declares complex dtypes implements the ops here; the defaults are for the others, where
the imaginary part of every number is 0.
"""

from __future__ import annotations

from burn.dtype import Kind, complex64, complex128, float64
from burn.errors import UnsupportedOpError
from burn.ops._precision import for_reals
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import elementwise
from burn.ops.signature import Cotangent, FloatOperand, Gradients, Meta, NumberOperand, Primitive
from burn.ops.table import OpTable


@op(Tag.ELEMENTWISE)
def real(x: NumberOperand) -> Meta:
    """Real part of each element, in the float dtype of the parts; a real number is its own."""
    return Meta(x.shape, x.dtype.component)


@real.decomposition
@for_reals
def _(ops: OpTable, x: Primitive) -> Primitive:
    return x


@real.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (g,)


@op(
    Tag.ELEMENTWISE,
    expression={Kind.REAL: "0"},
)
def imag(x: NumberOperand) -> Meta:
    """Imaginary part of each element, in the float dtype of the parts; 0 for a real number."""
    return Meta(x.shape, x.dtype.component)


@imag.decomposition
@for_reals
def _(ops: OpTable, x: Primitive) -> Primitive:
    zero = ops.full(shape=(1,) * len(x.shape), fill_value=0, dtype=ops.dtype(x))
    return ops.expand(zero, shape=tuple(x.shape))


@imag.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.multiply(g, 0.0),)


@op(Tag.ELEMENTWISE)
def conj(x: NumberOperand) -> Meta:
    """Complex conjugate of each element; a real number is its own."""
    return x


@conj.decomposition
@for_reals
def _(ops: OpTable, x: Primitive) -> Primitive:
    return x


@conj.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (g,)


@op(Tag.ELEMENTWISE | Tag.NO_GRADIENT | Tag.UNTRACKED)
def complex(real: FloatOperand, imag: FloatOperand) -> Meta:
    """Complex numbers from their two parts: complex128 of float64, else complex64."""
    output = elementwise(real, imag)
    return Meta(output.shape, complex128 if output.dtype is float64 else complex64)


def _flops(output: Meta, *operands: Meta) -> int:
    """None: they move numbers."""
    return 0


real.cost(_flops)
imag.cost(_flops)
complex.cost(_flops)


@complex.decomposition
def _(ops: OpTable, real: Primitive, imag: Primitive) -> Primitive:
    raise UnsupportedOpError("the backend has no complex numbers")
