"""The declaration of burn-torch: the devices of torch, found without importing it."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

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
from burn_nvidia import find_gpus, visible_gpus
from burn_torch.device_types import DEVICE_TYPES


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``torch``."""
    return [
        BackendSpec(
            name="torch",
            load=_load,
            probe=_probe,
            device_types=DEVICE_TYPES,
            api_version=(0, 3),
            # None: the OpenMP threads on which torch computes do not survive a fork.
            fork_safe=(),
            libraries=("torch",),
        )
    ]


def _load() -> Backend:
    from burn_torch.backend import TorchBackend

    return TorchBackend()  # type: ignore[abstract]  # __init__ sets the other ops


def _probe() -> list[DeviceInfo]:
    libraries = _libraries()
    if libraries is None:
        return []
    found: list[DeviceInfo] = []
    if _has(libraries, "torch_cuda"):
        found += _nvidia()
    if sys.platform == "darwin" and platform.machine() == "arm64":
        found.append(DeviceInfo("mps", 0, hardware=f"Apple {platform.machine()} GPU"))
    usage = dict.fromkeys(DType.members(), DTypeUsage.GENERAL)
    found.append(DeviceInfo("cpu", 0, hardware=processor_name(), memory=memory_size(), usage=usage))
    if _has(libraries, "torch_xpu"):
        found += [DeviceInfo("xpu", index, hardware=name) for index, name in enumerate(_intel())]
    return found


def _libraries() -> Path | None:
    """Folder of torch's libraries; None where torch is not installed. It imports nothing."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "lib"


def _has(libraries: Path, name: str) -> bool:
    """Whether this build of torch has a library: a build for the CPU lacks that for CUDA."""
    return any(
        (libraries / file).exists() for file in (f"lib{name}.so", f"{name}.dll", f"lib{name}.dylib")
    )


def _nvidia() -> list[DeviceInfo]:
    """The GPUs that CUDA shows; none where there is no driver that answers."""
    try:
        gpus, driver, _ = find_gpus()
    except Exception:  # noqa: BLE001 — a broken driver means no GPU, whatever it raises
        return []
    return [
        DeviceInfo("cuda", index, gpu.name, gpu.memory, f"NVIDIA {driver}")
        for index, gpu in enumerate(visible_gpus(gpus))
    ]


def _intel() -> Iterator[str]:
    """Intel GPUs with a driver for computing, from Linux's list of devices."""
    for card in sorted(Path("/sys/class/drm").glob("renderD*/device")):
        try:
            driver = (card / "driver").resolve().name
            if driver in ("xe", "i915"):
                yield f"Intel GPU ({driver})"
        except OSError:
            continue
