"""Router: a backend that sends operations to other devices, in this process or elsewhere."""

from burn.router.recorder import Recorder, TraceBackend

__all__ = ["Recorder", "TraceBackend"]
