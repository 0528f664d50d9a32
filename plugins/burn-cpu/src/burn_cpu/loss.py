"""Losses, with few temporaries."""

from __future__ import annotations

import numpy as np

from burn_cpu.base import Array, CpuOps
from burn_cpu.compiled import kernels_for
from burn_cpu.constants import FLOAT32
from burn_cpu.indexing import check_labels, grid, out_of_range


class LossOps(CpuOps):
    """Losses, and their gradients, of logits."""

    def cross_entropy(self, logits: Array, targets: Array, *, axis: int) -> Array:
        """The logarithm of the sum of exponentials, minus the target's logit."""
        if logits.dtype.itemsize < 4:
            wide = self.cross_entropy(logits.astype(np.float32), targets, axis=axis)
            return wide.astype(logits.dtype)
        family = kernels_for(logits.dtype, "rows") if axis == logits.ndim - 1 else None
        if family is not None and logits.size:
            losses = np.empty(targets.shape, FLOAT32)
            labels = _labels(logits, targets)
            if family.cross_entropy(logits.ravel(), logits.shape[-1], labels, losses.ravel()):
                raise out_of_range(targets, logits.shape[axis], least=0)
            return losses
        _, total, peak = _powers(logits, axis)
        losses = np.log(total, out=total)
        losses += peak
        try:
            losses -= logits[_target_key(logits, targets, axis)]
        except IndexError:
            raise out_of_range(targets, logits.shape[axis], least=0) from None
        return losses.reshape(targets.shape)

    def cross_entropy_grad(self, logits: Array, targets: Array, g: Array, *, axis: int) -> Array:
        """``(softmax - one_hot(targets)) * g`` in one array."""
        if logits.dtype.itemsize < 4:
            wide = np.float32
            result = self.cross_entropy_grad(
                logits.astype(wide), targets, g.astype(wide), axis=axis
            )
            return result.astype(logits.dtype)
        family = kernels_for(logits.dtype, "rows") if axis == logits.ndim - 1 else None
        if family is not None and logits.size:
            result = np.empty(logits.shape, FLOAT32)
            arrays = logits.ravel(), logits.shape[-1], _labels(logits, targets), _slopes(targets, g)
            if family.cross_entropy_grad(*arrays, result.ravel()):
                raise out_of_range(targets, logits.shape[axis], least=0)
            return result
        powers, total, _ = _powers(logits, axis)
        powers /= total
        # Each element is indexed once, so a buffered subtraction is right.
        try:
            powers[_target_key(logits, targets, axis)] -= logits.dtype.type(1)
        except IndexError:
            raise out_of_range(targets, logits.shape[axis], least=0) from None
        powers *= g.reshape(total.shape)
        return powers


def _labels(logits: Array, targets: Array) -> Array:
    """Labels for a compiled kernel, which checks them."""
    if targets.shape != logits.shape[:-1]:
        raise ValueError(f"targets of shape {targets.shape} for logits of {logits.shape}")
    return targets.ravel().astype(np.int64, copy=False)


def _slopes(targets: Array, g: Array) -> Array:
    """Gradients for a compiled kernel."""
    if g.shape != targets.shape:
        raise ValueError(f"g of shape {g.shape} for targets of {targets.shape}")
    return g.ravel()


def _target_key(logits: Array, targets: Array, axis: int) -> tuple[Array, ...]:
    """The key of the target's logit of each example."""
    shape = logits.shape
    if targets.shape != shape[:axis] + shape[axis + 1 :]:
        raise ValueError(f"targets of shape {targets.shape} for logits of {shape}")
    check_labels(targets, shape[axis])
    return grid(targets.reshape(*shape[:axis], 1, *shape[axis + 1 :]), axis)


def _powers(x: Array, axis: int) -> tuple[Array, Array, Array]:
    """``exp(x - max(x))`` in a new buffer, its sum along `axis`, and the maximum."""
    if not x.shape[axis]:
        total = np.add.reduce(x, axis=axis, keepdims=True)
        return np.array(x), total, total
    peak = np.maximum.reduce(x, axis=axis, keepdims=True)
    powers = np.subtract(x, peak)
    np.exp(powers, out=powers)
    return powers, np.add.reduce(powers, axis=axis, keepdims=True), peak
