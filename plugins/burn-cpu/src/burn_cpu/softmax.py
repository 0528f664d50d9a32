"""Softmax and its like: a block of rows after the other, in one new buffer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import map_along, map_rows, row_products, row_sums
from burn_cpu.compiled import compiled


class SoftmaxOps(CpuOps):
    """Functions of rows, which lie along an axis."""

    def softmax(self, x: Array, *, axis: int) -> Array:
        """Exponentials, less the maximum of their row, over their sum."""
        _check_axis(x, axis)
        return _along("softmax", _softmax, x, axis=axis)

    def softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """Two passes beside one product."""
        _check_axis(output, axis, g)
        return _along("softmax_grad", _softmax_grad, output, g, axis=axis)

    def log_softmax(self, x: Array, *, axis: int) -> Array:
        """The exponentials are needed for their sum alone."""
        _check_axis(x, axis)
        return _along("log_softmax", _log_softmax, x, axis=axis)

    def log_softmax_grad(self, output: Array, g: Array, *, axis: int) -> Array:
        """Three passes beside one sum."""
        _check_axis(output, axis, g)
        return _along("log_softmax_grad", _log_softmax_grad, output, g, axis=axis)


def _along(name: str, kernel: Callable[..., None], *operands: Array, axis: int) -> Array:
    """Apply a kernel to rows: a compiled one, where it is there and rows lie side by side."""
    fast = compiled(name, operands[0]) if axis == operands[0].ndim - 1 else None
    if fast is None:
        return map_along(kernel, *operands, axis=axis)
    if len(operands) == 2:
        return map_rows(fast, *operands, packed=True)
    return map_rows(lambda rows, out: fast(rows, _peak(rows), out), *operands, packed=True)


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
