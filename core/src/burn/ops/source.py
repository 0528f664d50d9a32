"""The line of the user's program that called an op."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["PROGRAM", "is_of_user", "source_line"]

PROGRAM: Final = "<burn.ir.GraphIr>"
"""File name of the functions that run programs; their global `source_at` gives a line of the user's
for the offset of an instruction. Python finds the number of a line in time that grows with it."""

# As `co_filename` spells it, which may differ from what the file system calls it.
_PACKAGE: Final = str(Path(sys._getframe().f_code.co_filename).parent.parent) + os.sep
_STANDARD_LIBRARY: Final = str(Path(os.__file__).parent) + os.sep
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

_shown: Final[dict[str, str]] = {}
"""For each file that frames come from: how it is shown; empty for those that are passed over."""


def source_line() -> str:
    """The innermost line that is running outside of burn, as ``"file.py:12"``.

    Frames of burn and of the standard library are passed over, and an operation of a program has
    the line at which it was traced. The path of a file below the working directory is relative to
    it, as it was when the file was first met.

    Returns
    -------
    str
        Empty where no such line is running.

    Examples
    --------
    >>> from burn.ops.source import source_line
    >>> source_line().endswith(":1")
    True
    """
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        shown = _shown_as(filename)
        if shown:
            return f"{shown}:{frame.f_lineno}"
        if filename == PROGRAM:
            source: str = frame.f_globals["source_at"](frame.f_lasti)
            if source:
                return source
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    return ""


def is_of_user(filename: str) -> bool:
    """Whether code of a file, as `co_filename` spells it, is of neither burn nor Python itself.

    Examples
    --------
    >>> is_of_user("train.py"), is_of_user(os.__file__)
    (True, False)
    """
    return bool(_shown_as(filename))


def _shown_as(filename: str) -> str:
    shown = _shown.get(filename)
    if shown is None:
        shown = _shown[filename] = _show(filename)
    return shown


def _show(filename: str) -> str:
    """How a file is shown."""
    if filename.startswith((_PACKAGE, "<burn.", "<frozen ")):
        return ""
    if filename.startswith(_STANDARD_LIBRARY) and not any(name in filename for name in _INSTALLED):
        return ""
    with contextlib.suppress(OSError):  # a working directory that is gone
        below = str(Path.cwd()) + os.sep
        if filename.startswith(below):
            return filename[len(below) :]
    return filename
