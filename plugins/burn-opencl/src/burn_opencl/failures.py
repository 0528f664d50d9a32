"""Errors of compilers and memory, with what is needed to understand them."""

from __future__ import annotations

import re
from typing import Final

from burn.errors import ExecutionError

__all__ = ["build_error", "memory_error"]

_PLACE: Final = re.compile(r"error: [^\n]*?:(\d+):\d+:|:(\d+):\d+: (?:fatal )?error")
_SHOWN_LOG: Final = 2000


def build_error(device: str, source: str, log: str) -> ExecutionError:
    """A failed build: the log of the compiler, and the line of the source that it names."""
    lines = source.splitlines()
    shown = ""
    match = _PLACE.search(log)
    number = int(match[1] or match[2]) if match else 0
    if 0 < number <= len(lines):
        shown = f"\nline {number}: {lines[number - 1].strip()}"
    return ExecutionError(
        f"the compiler of {device} refuses a kernel:{shown}\n{log.strip()[:_SHOWN_LOG]}",
        hint="Report it with the lines above, the device and its driver (`burn devices`)",
    )


def memory_error(device: str, size: int, used: int, total: int) -> ExecutionError:
    """No room for a tensor."""
    return ExecutionError(
        f"{device} has no room for {size} bytes: {used} of its {total} bytes are in use here",
        hint="Free tensors, or work on smaller ones",
    )
