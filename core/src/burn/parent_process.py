"""The end of a child process with its parent, whatever the child does at that moment."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

__all__ = ["end_with_parent"]

_SET_PARENT_DEATH_SIGNAL: Final = 1
"""``PR_SET_PDEATHSIG`` of Linux: which signal a process gets when its parent ends."""


def end_with_parent(parent: int) -> None:
    """Have the system kill this process when its parent ends, also in a call that never returns.

    Linux does so; elsewhere a process has to see by itself that its parent has ended. There, the
    parent is the thread that started this process: call this only where no other thread is to
    outlive it.

    Parameters
    ----------
    parent : int
        The process that has started this one. Where it has ended since, this one ends at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)
