"""NVIDIA's GPUs for the probe of a plugin, as the library of the driver (NVML) knows them.

It answers in milliseconds and makes no context on any of them. The CUDA runtime would need over
100 ms to count, and a process that is forked afterwards could not use CUDA any more. See
https://docs.nvidia.com/deploy/nvml-api and, for what CUDA shows of them, the environment variables
in the CUDA programming guide.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Gpu", "NoDriverError", "find_gpus", "in_cuda_order", "shown", "visible"]

_NAME_BYTES: Final = 96
_VERSION_BYTES: Final = 96
_SUCCESS: Final = 0
_NO_PERMISSION: Final = 4
_MAJOR: Final = 1000
"""CUDA versions are numbers such as 12040, for 12.4."""


class NoDriverError(Exception):
    """There is no driver, or it does not work; the message says which."""


@dataclass(frozen=True)
class Gpu:
    """One GPU, or a part of one that CUDA shows like one.

    Attributes
    ----------
    name : str
        Its name.
    uuid : str
        Its identity, ``GPU-...``, or ``MIG-...`` of a part.
    memory : int or None
        Bytes of memory; None of a part.
    capability : tuple of int or None
        Compute capability; None of a part.
    """

    name: str
    uuid: str
    memory: int | None
    capability: tuple[int, int] | None


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


def _library_names() -> list[str]:
    """Where the library of the driver is, on each system."""
    if sys.platform == "win32":
        programs = os.environ.get("PROGRAMFILES", r"C:\Program Files")
        return ["nvml.dll", str(Path(programs) / "NVIDIA Corporation" / "NVSMI" / "nvml.dll")]
    return ["libnvidia-ml.so.1", "libnvidia-ml.so"]


def load_library() -> Any:
    """The library of the driver.

    Raises
    ------
    NoDriverError
        If there is none.
    """
    for name in _library_names():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoDriverError("there is no NVIDIA driver: its library NVML was not found")


def find_gpus(load: Callable[[], Any] = load_library) -> tuple[list[Gpu], str, tuple[int, int]]:
    """All GPUs that this process may use, by their PCI addresses, and the driver's versions.

    Parameters
    ----------
    load : callable
        Gives the library.

    Returns
    -------
    gpus : list of Gpu
    driver : str
        Version of the driver.
    cuda : tuple of int
        The newest version of CUDA that the driver runs.

    Raises
    ------
    NoDriverError
        If there is no driver, or it does not answer.
    """
    nvml = load()
    _call(nvml, "nvmlInit_v2")
    try:
        driver = _text(nvml, "nvmlSystemGetDriverVersion", _VERSION_BYTES)
        version = ctypes.c_int()
        _call(nvml, "nvmlSystemGetCudaDriverVersion", ctypes.byref(version))
        count = ctypes.c_uint()
        _call(nvml, "nvmlDeviceGetCount_v2", ctypes.byref(count))
        found = [_gpu(nvml, number) for number in range(count.value)]
    finally:
        nvml.nvmlShutdown()
    gpus = [gpu for gpu in found if gpu is not None]
    return gpus, driver, (version.value // _MAJOR, version.value % _MAJOR // 10)


def _gpu(nvml: Any, number: int) -> Gpu | None:
    """What is known of a GPU; None of one that this process may not use."""
    handle = ctypes.c_void_p()
    place = (ctypes.c_uint(number), ctypes.byref(handle))
    if not _call(nvml, "nvmlDeviceGetHandleByIndex_v2", *place, allowed=_NO_PERMISSION):
        return None
    memory = _Memory()
    _call(nvml, "nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    major, minor = ctypes.c_int(), ctypes.c_int()
    _call(
        nvml,
        "nvmlDeviceGetCudaComputeCapability",
        handle,
        ctypes.byref(major),
        ctypes.byref(minor),
    )
    return Gpu(
        name=_text(nvml, "nvmlDeviceGetName", _NAME_BYTES, handle),
        uuid=_text(nvml, "nvmlDeviceGetUUID", _NAME_BYTES, handle),
        memory=int(memory.total),
        capability=(major.value, minor.value),
    )


def _text(nvml: Any, function: str, length: int, *arguments: Any) -> str:
    buffer = ctypes.create_string_buffer(length)
    _call(nvml, function, *arguments, buffer, ctypes.c_uint(length))
    return buffer.value.decode("utf-8", "replace")


def _call(nvml: Any, function: str, *arguments: Any, allowed: int = _SUCCESS) -> bool:
    """Call a function of the library; whether it did what it was to do.

    Raises
    ------
    NoDriverError
        If it fails with another status than the one that is allowed, with the driver's own words.
    """
    status = getattr(nvml, function)(*arguments)
    if status in (_SUCCESS, allowed):
        return bool(status == _SUCCESS)
    describe = nvml.nvmlErrorString
    describe.restype = ctypes.c_char_p
    reason = describe(ctypes.c_int(status))
    words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else f"error {status}"
    raise NoDriverError(f"the NVIDIA driver does not answer: {function} says {words!r}")


def shown(gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs that CUDA shows to this process, numbered as it numbers them.

    ``CUDA_DEVICE_ORDER`` and ``CUDA_VISIBLE_DEVICES`` say which, as in every CUDA program.

    Parameters
    ----------
    gpus : list of Gpu
        Those of the machine, by their PCI addresses.
    """
    ordered = in_cuda_order(gpus, os.environ.get("CUDA_DEVICE_ORDER"))
    return visible(ordered, os.environ.get("CUDA_VISIBLE_DEVICES"))


def in_cuda_order(gpus: list[Gpu], order: str | None) -> list[Gpu]:
    """GPUs as CUDA numbers them: the most capable first, unless told to go by the PCI bus."""
    if order == "PCI_BUS_ID":
        return gpus
    # CUDA says no more than "fastest first"; of equal ones the order is that of the bus.
    return sorted(gpus, key=lambda gpu: gpu.capability or (0, 0), reverse=True)


def visible(gpus: list[Gpu], choice: str | None) -> list[Gpu]:
    """The GPUs that CUDA will show, in its order.

    Parameters
    ----------
    gpus : list of Gpu
        Those of the machine, in CUDA's order.
    choice : str or None
        Value of ``CUDA_VISIBLE_DEVICES``: numbers, or beginnings of identities (``GPU-...``). As
        in CUDA the first entry that names no GPU ends the list, one that is named twice leaves
        none, and of parts of GPUs (``MIG-...``) there is one.
    """
    if choice is None:
        return gpus
    entries = [entry.strip() for entry in choice.split(",")]
    if gpus and entries[0].startswith("MIG-"):
        return [Gpu("NVIDIA MIG instance", entries[0], None, None)]
    chosen: list[Gpu] = []
    for entry in entries:
        found = _named(gpus, entry)
        if found is None:
            break
        if found in chosen:
            return []
        chosen.append(found)
    return chosen


def _named(gpus: list[Gpu], entry: str) -> Gpu | None:
    number = re.match(r"[0-9]+", entry)  # CUDA reads no further either
    if number:
        place = int(number.group())
        return gpus[place] if place < len(gpus) else None
    matches = [gpu for gpu in gpus if entry.startswith("GPU-") and gpu.uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None
