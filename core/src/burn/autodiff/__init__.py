"""Reverse-mode automatic differentiation as a decorator over any backend."""

from burn.autodiff._cross_device import Route
from burn.autodiff.backend import Autodiff
from burn.autodiff.backward import Gradients
from burn.autodiff.graph import AutodiffTensor, DistributedParams
from burn.autodiff.recording import RecordingTable, recording

__all__ = [
    "Autodiff",
    "AutodiffTensor",
    "DistributedParams",
    "Gradients",
    "RecordingTable",
    "Route",
    "recording",
]


def __dir__() -> list[str]:
    return __all__
