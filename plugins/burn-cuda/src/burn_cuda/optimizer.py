"""Steps of optimizers."""

from __future__ import annotations

from burn_cuda.base import CudaOps

__all__ = ["OptimizerOps"]


class OptimizerOps(CudaOps):
    """Steps of optimizers, by the decompositions of the ops."""
