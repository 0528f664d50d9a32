"""Folders in which PoCL and PyOpenCL keep code that they execute: checked as burn's own is."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

from burn.plugin_api import may_cache_in

__all__ = ["check_library_caches"]


@functools.cache
def check_library_caches() -> None:
    """Keep the libraries from folders that other users can write to, and from all by BURN_CACHE=0.

    PoCL then has a folder until the process ends, and PyOpenCL keeps nothing. Both read their
    variables when they are initialized, so this comes before.
    """
    if sys.platform == "win32":  # neither PoCL nor PyOpenCL shares folders there
        return
    try:
        mac = Path.home() / "Library/Caches"
        usual = mac if sys.platform == "darwin" else Path.home() / ".cache"
    except RuntimeError:  # the user has no home
        usual = Path(tempfile.gettempdir())
    caches = Path(os.environ.get("XDG_CACHE_HOME") or usual)
    pocl = os.environ.get("POCL_CACHE_DIR")
    folder = Path(pocl) if pocl else caches / "pocl" / "kcache"
    if not may_cache_in(folder, "POCL_CACHE_DIR"):
        temporary = tempfile.mkdtemp(prefix="burn-pocl-")
        os.environ["POCL_CACHE_DIR"] = temporary
        atexit.register(_remove, temporary, os.getpid())
    # Python code that sets the arguments of kernels, which PyOpenCL pickles.
    if "PYOPENCL_NO_CACHE" not in os.environ and not may_cache_in(
        caches / "pytools", "XDG_CACHE_HOME"
    ):
        os.environ["PYOPENCL_NO_CACHE"] = "1"


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a fork shares the folder
        shutil.rmtree(folder, ignore_errors=True)
