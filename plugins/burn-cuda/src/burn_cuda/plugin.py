"""What burn-cuda declares: a device for each GPU that CUDA shows, found without CuPy."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from typing import Final

from burn.plugin_api import (
    INSTALL_HINT,
    Backend,
    BackendSpec,
    DeviceInfo,
    DeviceUnavailableError,
    hookimpl,
)
from burn_cuda.usage import OLDEST, usage_of
from burn_nvidia import Gpu, NoDriverError, find_gpus, visible_gpus

_WHEELS: Final = {12: "cupy-cuda12x", 13: "cupy-cuda13x"}
"""Distributions that bring CuPy, by the major version of CUDA that they need."""


@hookimpl
def burn_backends() -> list[BackendSpec]:
    """The backend ``cuda``."""
    return [
        BackendSpec(
            name="cuda",
            load=_load,
            probe=_probe,
            device_types=("cuda",),
            priority=100,
            api_version=(0, 3),
            libraries=("cupy",),
        )
    ]


def _load() -> Backend:
    from burn_cuda.library_caches import check_library_caches

    check_library_caches()  # before CuPy is imported
    from burn_cuda.backend import CudaBackend
    from burn_cuda.runtime import Runtime, device_count

    return CudaBackend(Runtime, device_count)  # type: ignore[abstract]  # the table of expressions fills in the other ops


def _probe() -> list[DeviceInfo]:
    devices, reason = _find_devices()
    if reason:
        raise DeviceUnavailableError(reason)
    return devices


def _find_devices() -> tuple[list[DeviceInfo], str]:
    """The devices, or why there are none."""
    try:
        gpus, driver, cuda = find_gpus()
    except NoDriverError as error:
        return [], str(error)
    except Exception as error:  # noqa: BLE001 — a broken driver is a reason, not an error
        return [], f"the NVIDIA driver cannot be asked: {type(error).__name__}: {error}"
    reason = _unusable(cuda)
    if reason:
        return [], reason
    choice = os.environ.get("CUDA_VISIBLE_DEVICES")
    there = visible_gpus(gpus)
    if not there:
        asked = "" if choice is None else f" is visible under CUDA_VISIBLE_DEVICES={choice!r}"
        return [], f"no NVIDIA GPU{asked or ' was found'}"
    if not any(map(_is_usable, there)):
        return [], f"{there[0].name} is older than compute capability {OLDEST[0]}.{OLDEST[1]}"
    return [
        DeviceInfo(
            "cuda",
            index,
            hardware=gpu.name,
            memory=gpu.memory,
            driver=f"NVIDIA {driver}, CUDA {cuda[0]}.{cuda[1]}",
            usage=None if gpu.capability is None else usage_of(gpu.capability),
        )
        for index, gpu in enumerate(there)
        if _is_usable(gpu)
    ], ""


def _is_usable(gpu: Gpu) -> bool:
    return gpu.capability is None or gpu.capability >= OLDEST


def _unusable(cuda: tuple[int, int]) -> str:
    """Why no installed CuPy runs on a driver for this version of CUDA; empty if one does."""
    installed = {}
    for major, name in _WHEELS.items():
        try:
            installed[major] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if not installed:
        if _has_module("cupy"):
            return ""  # built from source: for the CUDA that is there
        extra = f"cuda{max(major for major in _WHEELS if major <= max(cuda[0], min(_WHEELS)))}"
        packages = f'./core ./plugins/burn-nvidia "./plugins/burn-cuda[{extra}]"'
        return f"CuPy is not installed. {INSTALL_HINT.format(packages=packages)}"
    if all(major > cuda[0] for major in installed):
        needed = min(installed)
        return (
            f"the NVIDIA driver is too old: it runs CUDA {cuda[0]}.{cuda[1]}, "
            f"and {_WHEELS[needed]} needs {needed}.0"
        )
    return ""


def _has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
