"""Softmax, log_softmax and their gradients, block by block of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import map_along, map_rows, row_products, row_sums
from burn_cpu.compiled import compiled


class SoftmaxOps(CpuOps):
    """Functions of rows along an axis."""

    def softmax(self, x: Array, *, axis: int) -> Array:
        """``exp(x - max(x))`` divided by its sum."""
        _check_axis(x, axis)
        return _along("softmax", _softmax, x, axis=axis)

    def softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """``(g - sum(output * g)) * output``."""
        _check_axis(output, axis, g)
        return _along("softmax_grad", _softmax_grad, output, g, axis=axis)

    def log_softmax(self, x: Array, *, axis: int) -> Array:
        """``x - max(x) - log(sum(exp(x - max(x))))``."""
        _check_axis(x, axis)
        return _along("log_softmax", _log_softmax, x, axis=axis)

    def log_softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """``g - exp(output) * sum(g)``."""
        _check_axis(output, axis, g)
        return _along("log_softmax_grad", _log_softmax_grad, output, g, axis=axis)


def _along(name: str, kernel: Callable[..., None], *operands: Array, axis: int) -> Array:
    """Apply a kernel to rows; the compiled one where there is one and rows are contiguous."""
    jit_kernel = compiled(name, operands[0]) if axis == operands[0].ndim - 1 else None
    if jit_kernel is None:
        return map_along(kernel, *operands, axis=axis)
    if len(operands) == 2:
        return map_rows(jit_kernel, *operands, packed=True)
    return map_rows(lambda rows, out: jit_kernel(rows, _peak(rows), out), *operands, packed=True)


def _peak(rows: Array) -> Array:
    return np.maximum.reduce(rows, axis=-1, keepdims=True)


def _check_axis(x: Array, axis: int, g: Array | None = None) -> None:
    if not 0 <= axis < x.ndim:
        raise IndexError(f"axis {axis} of {x.ndim}")
    if g is not None and g.shape != x.shape:
        raise ValueError(f"g of shape {g.shape} for {x.shape}")


def _softmax(rows: Array, out: Array) -> None:
    powers(rows, out)
    out /= row_sums(out)


def powers(rows: Array, out: Array) -> Array:
    """Write ``exp(rows - maximum)`` to `out`; the maximum of each row is returned."""
    peak = _peak(rows)
    np.subtract(rows, peak, out=out)
    np.exp(out, out=out)
    return peak


def _softmax_grad(output: Array, g: Array, out: Array) -> None:
    np.subtract(g, row_products(output, g), out=out)
    out *= output


def _log_softmax(rows: Array, out: Array) -> None:
    np.subtract(rows, _peak(rows), out=out)
    out -= np.log(row_sums(np.exp(out)))


def _log_softmax_grad(output: Array, g: Array, out: Array) -> None:
    np.exp(output, out=out)
    out *= row_sums(g)
    np.subtract(g, out, out=out)
