"""What burn-cpu declares: one device, known without importing an array library."""

from __future__ import annotations

from burn.backend import Backend
from burn.dtype import DType, DTypeUsage
from burn.plugins import BackendSpec, DeviceInfo, hookimpl
from burn.plugins.processor import memory_size, processor_name

USAGE = dict.fromkeys(DType.members(), DTypeUsage.GENERAL)
"""NumPy computes with every dtype; 16-bit floats through float32."""


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``cpu``."""
    return [
        BackendSpec(
            name="cpu",
            load=_load,
            probe=_probe,
            device_types=("cpu",),
            api_version=(0, 1),
            fork_safe=("cpu",),
        )
    ]


def _load() -> Backend:
    from burn_cpu.backend import CpuBackend

    return CpuBackend()  # type: ignore[abstract]  # the namespace fills in the other ops


def _probe() -> list[DeviceInfo]:
    return [DeviceInfo("cpu", 0, hardware=processor_name(), memory=memory_size(), usage=USAGE)]
