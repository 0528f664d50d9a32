"""Reverse-mode automatic differentiation as a decorator over any backend."""

from burn.autodiff._cross_device import Route
from burn.autodiff.backend import Autodiff
from burn.autodiff.backward import Gradients
from burn.autodiff.graph import AutodiffTensor, DistributedParams, Leaf
from burn.autodiff.recording import RecordingTable, recording
from burn.autodiff.wrapped import is_tracked, untracked, value_of

__all__ = [
    "Autodiff",
    "AutodiffTensor",
    "DistributedParams",
    "Gradients",
    "Leaf",
    "RecordingTable",
    "Route",
    "is_tracked",
    "recording",
    "untracked",
    "value_of",
]


def __dir__() -> list[str]:
    return __all__
