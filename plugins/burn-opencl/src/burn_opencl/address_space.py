"""What the limit of this process on its address space leaves (``ulimit -v``)."""

from __future__ import annotations

import mmap
from pathlib import Path

__all__ = ["bytes_left"]


def bytes_left() -> int | None:
    """Bytes that the process may still map; None where there is no limit, or none is known."""
    try:
        import resource  # not on Windows

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text("ascii").partition(" ")[0])
    except (ImportError, AttributeError, OSError, ValueError):  # not Linux
        return None
    return max(limit - pages * mmap.PAGESIZE, 0)
