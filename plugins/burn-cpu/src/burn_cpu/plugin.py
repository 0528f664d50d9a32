"""What burn-cpu declares: one device, known without importing an array library."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from burn.backend import Backend
from burn.dtype import DType, DTypeUsage
from burn.plugins import BackendSpec, DeviceInfo, hookimpl

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
    return [DeviceInfo("cpu", 0, hardware=_processor(), memory=_memory(), usage=USAGE)]


def _processor() -> str:
    """Name of the processor, as well as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine() or "CPU"


def _memory() -> int | None:
    """Bytes of memory of the machine, where the system tells it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None  # not POSIX
