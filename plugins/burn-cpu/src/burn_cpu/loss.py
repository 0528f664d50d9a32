"""Losses, with few temporaries."""

from __future__ import annotations

import numpy as np

from burn_cpu.base import Array, CpuOps
from burn_cpu.indexing import check_labels, grid, out_of_range


class LossOps(CpuOps):
    """Losses, and their gradients, of logits."""

    def cross_entropy(self, logits: Array, targets: Array, *, axis: int) -> Array:
        """The logarithm of the sum of exponentials, minus the target's logit."""
        if logits.dtype.itemsize < 4:
            wide = self.cross_entropy(logits.astype(np.float32), targets, axis=axis)
            return wide.astype(logits.dtype)
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
        powers, total, _ = _powers(logits, axis)
        powers /= total
        # Each element is indexed once, so a buffered subtraction is right.
        try:
            powers[_target_key(logits, targets, axis)] -= logits.dtype.type(1)
        except IndexError:
            raise out_of_range(targets, logits.shape[axis], least=0) from None
        powers *= g.reshape(total.shape)
        return powers


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
