"""Router: a backend that sends operations to other devices, in this process or elsewhere."""

from burn.router.backend import RouterBackend
from burn.router.bridge import InnerDevice, MultiBackendBridge, TensorHandle
from burn.router.channel import DirectClient, RunnerChannel, RunnerClient
from burn.router.forwarding import ForwardingChannel, ForwardingClient
from burn.router.in_process import InProcessChannel, InProcessClient, InstalledDevices
from burn.router.recorder import Recorder, TraceBackend
from burn.router.tensor import RouterTensor

__all__ = [
    "DirectClient",
    "ForwardingChannel",
    "ForwardingClient",
    "InProcessChannel",
    "InProcessClient",
    "InnerDevice",
    "InstalledDevices",
    "MultiBackendBridge",
    "Recorder",
    "RouterBackend",
    "RouterTensor",
    "RunnerChannel",
    "RunnerClient",
    "TensorHandle",
    "TraceBackend",
]
