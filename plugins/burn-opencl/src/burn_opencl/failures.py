"""Errors of compilers, memory and devices, with the details that explain them."""

from __future__ import annotations

import re
from typing import Final

from burn.plugin_api import ExecutionError, OutOfMemoryError

__all__ = [
    "build_error",
    "compiler_memory_error",
    "driver_error",
    "lost_error",
    "memory_error",
    "resource_error",
]

_LINE_NUMBER: Final = re.compile(
    r"error: [^\n]*?:(\d+):\d+:|:(\d+):\d+: (?:fatal )?error|line (\d+): (?:fatal )?error"
)
_MAX_LOG_CHARACTERS: Final = 2000


def build_error(device: str, source: str, log: str) -> ExecutionError:
    """A failed build: the log of the compiler, and the line of the source that it names."""
    lines = source.splitlines()
    shown = ""
    match = _LINE_NUMBER.search(log)
    number = int(match[match.lastindex or 0]) if match else 0
    if 0 < number <= len(lines):
        shown = f"\nline {number}: {lines[number - 1].strip()}"
    return ExecutionError(
        f"the compiler of {device} refuses a kernel:{shown}\n{log.strip()[:_MAX_LOG_CHARACTERS]}",
        hint="Report it with the lines above, the device and its driver (`burn devices`)",
    )


def memory_error(
    device: str, size: int, used: int, total: int, left: int | None
) -> OutOfMemoryError:
    """The device lacks the memory for a tensor, or the address space of the process is limited."""
    limit = "" if left is None else f", and RLIMIT_AS leaves {left} bytes of address space"
    return OutOfMemoryError(
        f"{device} has no room for {size} bytes: {used} of its {total} bytes are in use here"
        + limit,
        hint="Free tensors, or work on smaller ones",
    )


def compiler_memory_error(device: str, size: int, left: int) -> OutOfMemoryError:
    """The address space of the process is too limited to compile a kernel."""
    return OutOfMemoryError(
        f"{device} compiles no kernel with less than {size} bytes of address space, and RLIMIT_AS "
        f"leaves {left}",
        hint="Free tensors, or raise the limit (`ulimit -v`)",
    )


def resource_error(device: str, work: str, text: str, used: int, total: int) -> OutOfMemoryError:
    """The driver refuses a command because it lacks memory or other resources."""
    return OutOfMemoryError(
        f"{device} lacks memory or other resources for {work}: OpenCL reports {text}; {used} of "
        f"its {total} bytes are in use here",
        hint="Free tensors, or work on smaller ones",
    )


def lost_error(device: str, work: str, text: str) -> ExecutionError:
    """The device does not respond any more."""
    return ExecutionError(
        f"{device} is lost, found while {work}: OpenCL reports {text}",
        hint="Its tensors are gone; other devices go on. It takes a new process to use it again",
    )


def driver_error(device: str, work: str, text: str) -> ExecutionError:
    """Any other error that a driver reports."""
    return ExecutionError(
        f"{device} failed while {work}: OpenCL reports {text}",
        hint="`burn devices` shows the device and its driver",
    )
