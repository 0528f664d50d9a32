"""GPUs as the library of NVIDIA's driver (NVML) lists them, and in the order that CUDA gives them.

NVML answers in milliseconds and makes no context on a GPU. The CUDA runtime needs over 100 ms to
count the GPUs, and a process that is forked afterwards cannot use CUDA. See
https://docs.nvidia.com/deploy/nvml-api and, for the order and the visibility, the environment
variables in the CUDA programming guide.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from typing import Any

__all__ = ["Gpu", "NoDriverError", "find_gpus", "in_cuda_order", "select_visible", "visible_gpus"]


class NoDriverError(Exception):
    """There is no driver, or it does not work; the message says which."""


@dataclass(frozen=True)
class Gpu:
    """One GPU, or one part (MIG instance) of a GPU.

    Attributes
    ----------
    name : str
        Name of the model.
    uuid : str
        Unique identifier, ``GPU-...``, or ``MIG-...`` of a part.
    memory : int or None
        Bytes of memory; None of a part.
    capability : tuple of int or None
        Compute capability; None of a part.
    """

    name: str
    uuid: str
    memory: int | None
    capability: tuple[int, int] | None


def find_gpus() -> tuple[list[Gpu], str, tuple[int, int]]:
    """All GPUs that this process has permission to use, by their PCI addresses.

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
    if not _has_library():
        raise _missing()
    import pynvml  # takes 0.12 s

    try:
        pynvml.nvmlInit()
        try:
            driver = pynvml.nvmlSystemGetDriverVersion()
            version = pynvml.nvmlSystemGetCudaDriverVersion()  # 12040 stands for 12.4
            found = [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError_LibraryNotFound as error:
        raise _missing() from error
    except pynvml.NVMLError as error:
        raise NoDriverError(f"the NVIDIA driver does not answer: {error}") from error
    gpus = [gpu for gpu in found if gpu is not None]
    return gpus, driver, (version // 1000, version % 1000 // 10)


def _has_library() -> bool:
    """Whether the driver's library is there; True where only `pynvml` knows where to look."""
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _missing() -> NoDriverError:
    return NoDriverError("there is no NVIDIA driver: its library NVML was not found")


def _gpu(pynvml: Any, index: int) -> Gpu | None:
    """What NVML knows of a GPU; None where this process has no permission to use it."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError_NoPermission:
        return None
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        name=pynvml.nvmlDeviceGetName(handle),
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        memory=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
        capability=(major, minor),
    )


def visible_gpus(gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs that CUDA shows to this process, in the order in which it numbers them.

    ``CUDA_DEVICE_ORDER`` and ``CUDA_VISIBLE_DEVICES`` select them, as in every CUDA program.

    Parameters
    ----------
    gpus : list of Gpu
        All GPUs of the machine, by their PCI addresses.
    """
    ordered = in_cuda_order(gpus, os.environ.get("CUDA_DEVICE_ORDER"))
    return select_visible(ordered, os.environ.get("CUDA_VISIBLE_DEVICES"))


def in_cuda_order(gpus: list[Gpu], order: str | None) -> list[Gpu]:
    """GPUs in CUDA's order: the most capable first, or by PCI address for ``PCI_BUS_ID``."""
    if order == "PCI_BUS_ID":
        return gpus
    # CUDA documents no more than "fastest first"; equal GPUs keep the order of the bus.
    return sorted(gpus, key=lambda gpu: gpu.capability or (0, 0), reverse=True)


def select_visible(gpus: list[Gpu], choice: str | None) -> list[Gpu]:
    """The GPUs that a value of ``CUDA_VISIBLE_DEVICES`` selects, in its order.

    Parameters
    ----------
    gpus : list of Gpu
        All GPUs of the machine, in CUDA's order.
    choice : str or None
        The value: indices, or prefixes of identifiers (``GPU-...``). As in CUDA, the list ends at
        the first entry that names no GPU, a GPU that is named twice leaves an empty list, and of
        parts of GPUs (``MIG-...``) only the first is visible.
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
    digits = re.match(r"[0-9]+", entry)  # CUDA ignores what follows the digits
    if digits:
        index = int(digits.group())
        return gpus[index] if index < len(gpus) else None
    matches = [gpu for gpu in gpus if entry.startswith("GPU-") and gpu.uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None
