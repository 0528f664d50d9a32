"""The backend that burn-opencl declares; its probe lists devices without importing PyOpenCL."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec

from burn.plugin_api import Backend, BackendSpec, DeviceInfo, hookimpl
from burn_opencl.icd_loader import DEVICE_TYPES, FoundDevice, found_devices
from burn_opencl.library_caches import check_library_caches
from burn_opencl.usage import usage_of

_SHORT_PLATFORM_NAMES = {
    "Portable Computing Language": "PoCL",
    "AMD Accelerated Parallel Processing": "AMD",
    "Intel(R) OpenCL Graphics": "Intel",
    "NVIDIA CUDA": "NVIDIA",
}
"""Names that fit a line of a table."""


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``opencl``."""
    return [
        BackendSpec(
            name="opencl",
            load=_load,
            probe=_probe,
            device_types=DEVICE_TYPES,
            api_version=(0, 3),
        )
    ]


def _load() -> Backend:
    check_library_caches()  # before PyOpenCL is imported
    from burn_opencl.backend import OpenClBackend
    from burn_opencl.runtime import System

    return OpenClBackend(System())  # type: ignore[abstract]  # the ops are those of its devices


def _probe() -> list[DeviceInfo]:
    if find_spec("pyopencl") is None:
        return []
    devices = found_devices()
    counts: Counter[str] = Counter()
    names = []
    for device in devices:
        names.append(f"{device.type}:{counts[device.type]}")
        counts[device.type] += 1
    return [
        DeviceInfo(
            device.type,
            int(name.partition(":")[2]),
            hardware=_hardware_name(device, devices, names),
            memory=device.memory,
            driver=f"{_platform(device)} {device.version.partition('+')[0]}",
            usage=usage_of(has_fp64=device.has_fp64),
        )
        for device, name in zip(devices, names, strict=True)
    ]


def _platform(device: FoundDevice) -> str:
    return _SHORT_PLATFORM_NAMES.get(device.platform, device.platform)


def _hardware_name(device: FoundDevice, devices: list[FoundDevice], names: list[str]) -> str:
    """Name of a device, with the names of devices of other platforms that are the same hardware."""
    others = [name for other, name in zip(devices, names, strict=True) if other.is_also(device)]
    if not others:
        return device.name
    return f"{device.name} ({_platform(device)}, also {', '.join(others)})"
