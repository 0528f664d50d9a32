"""Batching as a decorator over any backend: each op runs once for all examples."""

from burn.batching.backend import Batch
from burn.batching.table import BatchingTable
from burn.batching.tensor import BatchedTensor, Frame

__all__ = ["Batch", "BatchedTensor", "BatchingTable", "Frame"]


def __dir__() -> list[str]:
    return __all__
