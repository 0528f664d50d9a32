"""Comparison, choice by a mask, and bits (which for booleans are logic)."""

from __future__ import annotations

from typing import Any

from burn.dtype import Kind, bool_
from burn.errors import ArgumentError
from burn.ops._precision import for_reals, is_scalar
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import elementwise
from burn.ops.signature import (
    AnyOrScalar,
    BoolOperand,
    Cotangent,
    Gradients,
    InexactOperand,
    IntegerOrScalar,
    IntegralOperand,
    IntegralOrScalar,
    Meta,
    Primitive,
    RealOrScalar,
)
from burn.ops.table import OpTable

_MASK = Tag.ELEMENTWISE | Tag.NO_GRADIENT


@op(_MASK)
def equal(x1: AnyOrScalar, x2: AnyOrScalar) -> Meta:
    """Elementwise ``x1 == x2`` as bool. NaN equals nothing."""
    return elementwise(x1, x2, dtype=bool_)


@op(_MASK)
def not_equal(x1: AnyOrScalar, x2: AnyOrScalar) -> Meta:
    """Elementwise ``x1 != x2`` as bool."""
    return elementwise(x1, x2, dtype=bool_)


@not_equal.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    return ops.bitwise_not(ops.equal(x1, x2))


@op(_MASK)
def less(x1: RealOrScalar, x2: RealOrScalar) -> Meta:
    """Elementwise ``x1 < x2`` as bool; False is less than True."""
    return elementwise(x1, x2, dtype=bool_)


@op(_MASK)
def less_equal(x1: RealOrScalar, x2: RealOrScalar) -> Meta:
    """Elementwise ``x1 <= x2`` as bool."""
    return elementwise(x1, x2, dtype=bool_)


@less_equal.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    return ops.bitwise_or(ops.less(x1, x2), ops.equal(x1, x2))


@op(_MASK)
def greater(x1: RealOrScalar, x2: RealOrScalar) -> Meta:
    """Elementwise ``x1 > x2`` as bool."""
    return elementwise(x1, x2, dtype=bool_)


@greater.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    return ops.less(x2, x1)


@op(_MASK)
def greater_equal(x1: RealOrScalar, x2: RealOrScalar) -> Meta:
    """Elementwise ``x1 >= x2`` as bool."""
    return elementwise(x1, x2, dtype=bool_)


@greater_equal.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    return ops.less_equal(x2, x1)


@op(Tag.ELEMENTWISE)
def where(condition: BoolOperand, x1: AnyOrScalar, x2: AnyOrScalar) -> Meta:
    """Elementwise ``x1`` where the condition holds, else ``x2``; all three broadcast.

    The other one has no influence on the value, and its gradient is 0 even where it is NaN.
    """
    return elementwise(condition, x1, x2, dtype=elementwise(x1, x2).dtype)


@where.cost
def _(output: Meta, *operands: Any) -> int:
    return 0  # it selects


@where.gradient(saves=("condition",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (condition,) = ctx.saved
    return (
        None,
        ops.where(condition, g, 0.0) if ctx.needs[1] else None,
        ops.where(condition, 0.0, g) if ctx.needs[2] else None,
    )


@op(_MASK)
def isnan(x: InexactOperand) -> Meta:
    """Whether each element is NaN, or a part of it, as bool."""
    return Meta(x.shape, bool_)


@isnan.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.not_equal(x, x)


@op(_MASK)
def isinf(x: InexactOperand) -> Meta:
    """Whether each element is infinite, of either sign, or a part of it, as bool."""
    return Meta(x.shape, bool_)


@isinf.decomposition
@for_reals
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.equal(ops.abs(x), float("inf"))


@op(_MASK)
def isfinite(x: InexactOperand) -> Meta:
    """Whether each element is neither infinite nor NaN, as bool."""
    return Meta(x.shape, bool_)


@isfinite.decomposition
@for_reals
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.less(ops.abs(x), float("inf"))


@op(_MASK)
def bitwise_and(x1: IntegralOrScalar, x2: IntegralOrScalar) -> Meta:
    """Elementwise ``x1 & x2``: of bits, or of booleans."""
    return elementwise(x1, x2)


@op(_MASK)
def bitwise_or(x1: IntegralOrScalar, x2: IntegralOrScalar) -> Meta:
    """Elementwise ``x1 | x2``: of bits, or of booleans."""
    return elementwise(x1, x2)


@op(_MASK)
def bitwise_xor(x1: IntegralOrScalar, x2: IntegralOrScalar) -> Meta:
    """Elementwise ``x1 ^ x2``: of bits, or of booleans."""
    return elementwise(x1, x2)


@op(_MASK)
def bitwise_not(x: IntegralOperand) -> Meta:
    """Elementwise ``~x``: of bits, or of booleans."""
    return x


@op(_MASK)
def bitwise_left_shift(x1: IntegerOrScalar, x2: IntegerOrScalar) -> Meta:
    """Elementwise ``x1 << x2``; a shift by the width of the dtype or more gives 0."""
    return elementwise(x1, x2)


@op(_MASK)
def bitwise_right_shift(x1: IntegerOrScalar, x2: IntegerOrScalar) -> Meta:
    """Elementwise ``x1 >> x2``, keeping the sign, of which a shift by the width leaves copies."""
    return elementwise(x1, x2)


@bitwise_left_shift.number_requirement(Kind.INTEGER)
@bitwise_right_shift.number_requirement(Kind.INTEGER)
def _(x1: Primitive, x2: Primitive) -> None:
    if is_scalar(x2) and x2 < 0:
        raise ArgumentError(f"cannot shift by {x2} bits", hint="Shift the other way instead")
