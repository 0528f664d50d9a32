"""The processor of this machine and its memory, for the probe of a plugin that computes on it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["memory_size", "processor_name"]


def processor_name() -> str:
    """Name of the processor, as well as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine() or "CPU"


def memory_size() -> int | None:
    """Bytes of memory of the machine, where the system tells it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None  # not POSIX
