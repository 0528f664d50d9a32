"""What burn-opencl declares: the devices of all platforms, found without importing PyOpenCL."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec

from burn.backend import Backend
from burn.plugins import BackendSpec, DeviceInfo, hookimpl
from burn_opencl.driver import DEVICE_TYPES, found_devices
from burn_opencl.usage import usage_of

_SHORT = {
    "Portable Computing Language": "PoCL",
    "AMD Accelerated Parallel Processing": "AMD",
    "Intel(R) OpenCL Graphics": "Intel",
    "NVIDIA CUDA": "NVIDIA",
}
"""What a line has room for in place of a platform's name."""


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``opencl``."""
    return [
        BackendSpec(
            name="opencl",
            load=_load,
            probe=_probe,
            device_types=DEVICE_TYPES,
            api_version=(0, 1),
        )
    ]


def _load() -> Backend:
    from burn_opencl.backend import OpenClBackend
    from burn_opencl.runtime import System

    return OpenClBackend(System())  # type: ignore[abstract]  # the table of expressions is the rest


def _probe() -> list[DeviceInfo]:
    if find_spec("pyopencl") is None:
        return []
    devices = found_devices()
    platforms: dict[str, set[str]] = {}
    for device in devices:
        platforms.setdefault(device.name, set()).add(device.platform)
    seen: Counter[str] = Counter()
    result = []
    for device in devices:
        # One piece of hardware may be there twice, through two platforms.
        shared = len(platforms[device.name]) > 1
        platform = _SHORT.get(device.platform, device.platform)
        hardware = f"{device.name} ({platform})" if shared else device.name
        result.append(
            DeviceInfo(
                device.type,
                seen[device.type],
                hardware=hardware,
                memory=device.memory,
                driver=f"{platform} {device.version.partition('+')[0]}",
                usage=usage_of(has_fp64=device.has_fp64),
            )
        )
        seen[device.type] += 1
    return result
