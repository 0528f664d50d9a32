"""GPUs as the driver's own library (NVML) knows them: quick, and without a context on any of them.

The CUDA runtime would need over 100 ms to count, and a process that is forked afterwards could not
use CUDA any more.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Gpu", "NoDriverError", "find_gpus", "visible"]

_NAME_BYTES: Final = 96
_VERSION_BYTES: Final = 96
_SUCCESS: Final = 0
_MAJOR: Final = 1000
"""CUDA versions are numbers such as 12040, for 12.4."""


class NoDriverError(Exception):
    """There is no driver, or it does not work; the message says which."""


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes
    ----------
    name : str
        Its name.
    uuid : str
        Its identity, ``GPU-...``.
    memory : int
        Bytes of memory.
    capability : tuple of int
        Compute capability.
    """

    name: str
    uuid: str
    memory: int
    capability: tuple[int, int]


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
    """All GPUs of the machine in the order of their PCI addresses, and the driver's versions.

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
        gpus = [_gpu(nvml, number) for number in range(count.value)]
    finally:
        nvml.nvmlShutdown()
    return gpus, driver, (version.value // _MAJOR, version.value % _MAJOR // 10)


def _gpu(nvml: Any, number: int) -> Gpu:
    handle = ctypes.c_void_p()
    _call(nvml, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(handle))
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


def _call(nvml: Any, function: str, *arguments: Any) -> None:
    """Call a function of the library.

    Raises
    ------
    NoDriverError
        If it fails, with the driver's own words.
    """
    status = getattr(nvml, function)(*arguments)
    if status == _SUCCESS:
        return
    describe = nvml.nvmlErrorString
    describe.restype = ctypes.c_char_p
    reason = describe(ctypes.c_int(status))
    words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else f"error {status}"
    raise NoDriverError(f"the NVIDIA driver does not answer: {function} says {words!r}")


def visible(gpus: list[Gpu], choice: str | None) -> list[Gpu]:
    """The GPUs that CUDA will show, in its order.

    Parameters
    ----------
    gpus : list of Gpu
        Those of the machine.
    choice : str or None
        Value of ``CUDA_VISIBLE_DEVICES``: numbers, or beginnings of identities (``GPU-...``). As
        in CUDA the first entry that names no GPU, or one a second time, ends the list.
    """
    if choice is None:
        return gpus
    chosen: list[Gpu] = []
    for entry in choice.split(","):
        found = _named(gpus, entry.strip())
        if found is None:
            break
        if found in chosen:
            return []  # CUDA shows none where one is named twice
        chosen.append(found)
    return chosen


def _named(gpus: list[Gpu], entry: str) -> Gpu | None:
    if entry.isascii() and entry.isdigit():
        return gpus[int(entry)] if int(entry) < len(gpus) else None
    if entry.startswith("GPU-"):
        matches = [gpu for gpu in gpus if gpu.uuid.startswith(entry)]
        return matches[0] if len(matches) == 1 else None
    return None  # a MIG partition is none of the GPUs that NVML lists
