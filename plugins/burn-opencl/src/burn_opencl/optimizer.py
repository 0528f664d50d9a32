"""Steps of optimizers."""

from __future__ import annotations

from burn_opencl.base import OpenClOps

__all__ = ["OptimizerOps"]


class OptimizerOps(OpenClOps):
    """Steps of optimizers, by the decompositions of the ops."""
