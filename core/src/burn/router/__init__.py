"""Router: a backend that sends operations to other devices, in this process or elsewhere."""

from burn.router.recorder import Recorder, TraceBackend
from burn.router.tensor import RouterTensor

__all__ = ["Recorder", "RouterTensor", "TraceBackend"]
