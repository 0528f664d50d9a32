"""The declaration of burn-cpu: one device, found without importing an array library."""

from __future__ import annotations

from burn.plugin_api import (
    Backend,
    BackendSpec,
    DeviceInfo,
    DType,
    DTypeUsage,
    hookimpl,
    memory_size,
    processor_name,
)


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``cpu``."""
    return [
        BackendSpec(
            name="cpu",
            load=_load,
            probe=_probe,
            device_types=("cpu",),
            api_version=(0, 3),
            fork_safe=("cpu",),
        )
    ]


def _load() -> Backend:
    from burn_cpu.backend import CpuBackend

    return CpuBackend()  # type: ignore[abstract]  # __init__ sets the ops of the namespace


def _probe() -> list[DeviceInfo]:
    usage = dict.fromkeys(DType.members(), DTypeUsage.GENERAL)
    return [DeviceInfo("cpu", 0, hardware=processor_name(), memory=memory_size(), usage=usage)]
