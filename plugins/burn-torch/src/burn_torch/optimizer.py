"""Steps of optimizers."""

from __future__ import annotations

from burn_torch.base import TorchOps

__all__ = ["OptimizerOps"]


class OptimizerOps(TorchOps):
    """Steps of optimizers, by the decompositions of the ops."""
