"""Steps of optimizers."""

from __future__ import annotations

from burn_cpu.base import CpuOps

__all__ = ["OptimizerOps"]


class OptimizerOps(CpuOps):
    """Steps of optimizers, by the decompositions of the ops."""
