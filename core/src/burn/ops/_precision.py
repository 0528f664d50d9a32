"""Decorators of decompositions: 16-bit floats computed in float32, and real numbers only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from burn.dtype import DType, float32
from burn.errors import UnsupportedOpError
from burn.ops.signature import Primitive
from burn.ops.table import OpTable

__all__ = ["for_reals", "in_float32", "is_scalar"]


def is_scalar(operand: Primitive) -> bool:
    """Whether an operand is a Python number and no tensor."""
    # Not isinstance: a primitive without axes may be a NumPy scalar, and numpy.float64 is a float.
    return operand.__class__ in (bool, int, float, complex)


def _is_tensor(operand: Primitive | None) -> bool:
    return operand is not None and not is_scalar(operand)


def for_reals(decomposition: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a decomposition for real numbers only.

    A backend that declares complex dtypes has its own method for such an op.
    """

    @functools.wraps(decomposition)
    def call(ops: OpTable, *operands: Primitive, **attributes: Any) -> Any:
        for operand in filter(_is_tensor, operands):
            if ops.dtype(operand).is_complex:
                raise UnsupportedOpError(
                    f"the backend has no method of its own for {ops.dtype(operand)}",
                    hint="Compute with real numbers, or on another device",
                )
        return decomposition(ops, *operands, **attributes)

    return call


def _widened(ops: OpTable, operand: Primitive | None, dtype: DType) -> Primitive | None:
    """A tensor of a 16-bit float in float32; a number beside one rounded as in such a tensor."""
    if _is_tensor(operand):
        return ops.cast(operand, dtype=float32) if ops.dtype(operand) is dtype else operand
    if operand is None:
        return None
    with np.errstate(over="ignore"):
        return float(np.asarray(operand, dtype.numpy))


def in_float32(decomposition: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: run a decomposition in float32 where its first tensor is a 16-bit float.

    The tolerance of an op allows one or two roundings to 16 bits, not more. All operands of that
    dtype are widened, and the results are rounded once.
    """

    @functools.wraps(decomposition)
    def call(ops: OpTable, *operands: Primitive, **attributes: Any) -> Any:
        dtype = ops.dtype(next(filter(_is_tensor, operands)))
        if not dtype.is_float or dtype.itemsize >= float32.itemsize:
            return decomposition(ops, *operands, **attributes)
        wide = [_widened(ops, operand, dtype) for operand in operands]
        result = decomposition(ops, *wide, **attributes)
        if isinstance(result, tuple):
            return tuple([ops.cast(item, dtype=dtype) for item in result])
        return ops.cast(result, dtype=dtype)

    return call
