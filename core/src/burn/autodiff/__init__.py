"""Reverse-mode automatic differentiation as a decorator over any backend."""

from burn.autodiff._cross_device import Route
from burn.autodiff.backend import Autodiff
from burn.autodiff.backward import Gradients, backward_all
from burn.autodiff.graph import (
    AutodiffTensor,
    DistributedParams,
    Freed,
    HookHandle,
    Leaf,
    Node,
    Rule,
)
from burn.autodiff.recording import RecordingTable
from burn.autodiff.recording_state import (
    Capture,
    Replay,
    custom_node,
    recording,
    records,
    running_again,
)
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
    "Freed",
    "Gradients",
    "HookHandle",
    "Leaf",
    "Node",
    "RecordingTable",
    "Replay",
    "Route",
    "Rule",
    "backward_all",
    "custom_node",
    "examples_of",
    "is_tracked",
    "is_wrapped",
    "recording",
    "records",
    "running_again",
    "tracking_level",
    "untracked",
    "value_of",
]


def __dir__() -> list[str]:
    return __all__
