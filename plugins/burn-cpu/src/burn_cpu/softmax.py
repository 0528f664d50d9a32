"""Softmax, log_softmax and their gradients, block by block of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import map_along, packed, row_products, row_sums
from burn_cpu.compiled import kernels_for


class SoftmaxOps(CpuOps):
    """Functions of rows along an axis."""

    def softmax(self, x: Array, *, axis: int) -> Array:
        """``exp(x - max(x))`` divided by its sum."""
        return _along("softmax", _softmax, x, axis=axis)

    def softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """``(g - sum(output * g)) * output``."""
        return _along("softmax_grad", _softmax_grad, output, g, axis=axis)

    def log_softmax(self, x: Array, *, axis: int) -> Array:
        """``x - max(x) - log(sum(exp(x - max(x))))``."""
        return _along("log_softmax", _log_softmax, x, axis=axis)

    def log_softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """``g - exp(output) * sum(g)``."""
        return _along("log_softmax_grad", _log_softmax_grad, output, g, axis=axis)


def _along(
    name: str, kernel: Callable[..., None], x: Array, g: Array | None = None, *, axis: int
) -> Array:
    """Apply a kernel to rows; the compiled one where rows lie along the last axis."""
    shape = x.shape
    if not 0 <= axis < len(shape):
        raise IndexError(f"axis {axis} of {len(shape)}")
    if g is not None and g.shape != shape:
        raise ValueError(f"g of shape {g.shape} for {shape}")
    if axis == len(shape) - 1:
        family = kernels_for(x.dtype, "rows")
        if family is not None:
            length = shape[axis]
            return packed(getattr(family, name), x, g, length=length, parameters=(length,))
    return map_along(kernel, *([x] if g is None else [x, g]), axis=axis)


def _softmax(rows: Array, out: Array) -> None:
    np.subtract(rows, np.maximum.reduce(rows, axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= row_sums(out)


def _softmax_grad(output: Array, g: Array, out: Array) -> None:
    np.subtract(g, row_products(output, g), out=out)
    out *= output


def _log_softmax(rows: Array, out: Array) -> None:
    np.subtract(rows, np.maximum.reduce(rows, axis=-1, keepdims=True), out=out)
    out -= np.log(row_sums(np.exp(out)))


def _log_softmax_grad(output: Array, g: Array, out: Array) -> None:
    np.exp(output, out=out)
    out *= row_sums(g)
    np.subtract(g, out, out=out)
