"""Reverse-mode automatic differentiation as a decorator over any backend."""

from burn.autodiff._cross_device import Route
from burn.autodiff.backend import Autodiff
from burn.autodiff.backward import Gradients, backward_all
from burn.autodiff.graph import (
    AutodiffTensor,
    DistributedParams,
    HookHandle,
    Leaf,
    Node,
    custom_node,
)
from burn.autodiff.recording import Capture, RecordingTable, recording, records
from burn.autodiff.wrapped import (
    examples_of,
    is_tracked,
    is_wrapped,
    tracking_level,
    untracked,
    value_of,
)

__all__ = [
    "Autodiff",
    "AutodiffTensor",
    "Capture",
    "DistributedParams",
    "Gradients",
    "HookHandle",
    "Leaf",
    "Node",
    "RecordingTable",
    "Route",
    "backward_all",
    "custom_node",
    "examples_of",
    "is_tracked",
    "is_wrapped",
    "recording",
    "records",
    "tracking_level",
    "untracked",
    "value_of",
]


def __dir__() -> list[str]:
    return __all__
