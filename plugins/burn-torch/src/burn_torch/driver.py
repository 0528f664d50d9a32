"""Which accelerators there are, asked of the driver: no library of torch is loaded for it.

NVML (https://docs.nvidia.com/deploy/nvml-api) answers in milliseconds, and makes no context that
would spoil a later fork.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Gpu", "nvidia", "visible"]

_LIBRARIES = {"win32": "nvml.dll"}
_TEXT = 96


@dataclass(frozen=True)
class Gpu:
    """What the driver says of a device: name, bytes of memory, identity and driver version."""

    name: str
    memory: int | None
    uuid: str
    driver: str


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


def nvidia() -> list[Gpu]:
    """The NVIDIA devices that CUDA programs of this process see, in CUDA's order by bus."""
    try:
        library = ctypes.CDLL(_LIBRARIES.get(sys.platform, "libnvidia-ml.so.1"))
        return visible(_listed(library), os.environ.get("CUDA_VISIBLE_DEVICES"))
    except (OSError, AttributeError):  # no driver, or one that is too old
        return []


def visible(gpus: Sequence[Gpu], setting: str | None) -> list[Gpu]:
    """Those that ``CUDA_VISIBLE_DEVICES`` leaves: by number or identity, up to a wrong one."""
    if setting is None:
        return list(gpus)
    chosen: list[Gpu] = []
    for word in map(str.strip, setting.split(",")):
        if word.isdecimal():
            found = [gpus[int(word)]] if int(word) < len(gpus) else []
        elif word.startswith("MIG-"):
            found = [Gpu("NVIDIA MIG instance", None, word, gpus[0].driver)] if gpus else []
        else:
            found = [one for one in gpus if word and one.uuid.startswith(word)]
        if len(found) != 1 or found[0] in chosen:
            break
        chosen += found
    return chosen


def _listed(library: Any) -> list[Gpu]:
    if library.nvmlInit_v2():
        return []
    try:
        driver = ctypes.create_string_buffer(_TEXT)
        library.nvmlSystemGetDriverVersion(driver, _TEXT)
        count = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return []
        found = (_described(library, index, driver.value.decode()) for index in range(count.value))
        return [one for one in found if one is not None]
    finally:
        library.nvmlShutdown()


def _described(library: Any, index: int, driver: str) -> Gpu | None:
    handle = ctypes.c_void_p()
    if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
        return None  # no permission
    name, uuid = ctypes.create_string_buffer(_TEXT), ctypes.create_string_buffer(_TEXT)
    memory = _Memory()
    library.nvmlDeviceGetName(handle, name, _TEXT)
    library.nvmlDeviceGetUUID(handle, uuid, _TEXT)
    failed = library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    return Gpu(
        name=name.value.decode(errors="replace"),
        memory=None if failed else int(memory.total),
        uuid=uuid.value.decode(errors="replace"),
        driver=f"NVIDIA {driver}",
    )
