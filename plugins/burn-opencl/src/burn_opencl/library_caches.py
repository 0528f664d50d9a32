"""Where PoCL and PyOpenCL keep code that they execute: in a folder of burn's, and nowhere."""

from __future__ import annotations

import functools
import logging
import os
import sys

from burn.plugin_api import library_folder

__all__ = ["check_library_caches"]

_log = logging.getLogger("burn")

_NO_FOLDER = f"{os.devnull}/burn-pocl-none"
"""A path where nothing can be made: PoCL then has no devices, and all other drivers work."""


@functools.cache
def check_library_caches() -> None:
    """Give PoCL a folder that is closed to other users, and let PyOpenCL keep nothing on disk.

    Both read their variables when they are initialized, so this comes before. PoCL's is always
    set: without it, PoCL looks for a folder in another way than Python. PyOpenCL pickles Python
    code in folders that no variable of its own names. It saves no time by that, and binaries are
    kept by burn-opencl.
    """
    if sys.platform == "win32":  # neither PoCL nor PyOpenCL shares folders there
        return
    folder = library_folder("pocl", "POCL_CACHE_DIR", or_temporary=True)
    if folder is None:
        _log.warning(
            "PoCL has no devices: it keeps what it compiles in files, and there is no folder for "
            "them: set BURN_CACHE or TMPDIR to one that can be written to"
        )
    os.environ["POCL_CACHE_DIR"] = _NO_FOLDER if folder is None else str(folder)
    os.environ["PYOPENCL_NO_CACHE"] = "1"
