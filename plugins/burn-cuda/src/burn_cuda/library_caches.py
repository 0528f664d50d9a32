"""Where CuPy keeps kernels that it executes: in a folder of burn's, or in memory."""

from __future__ import annotations

import functools
import os

from burn.plugin_api import library_folder

__all__ = ["check_library_caches"]


@functools.cache
def check_library_caches() -> None:
    """Give CuPy a folder that is closed to other users, or else let it keep nothing on disk.

    CuPy reads its variables whenever it compiles a kernel, but those of headers, which it pickles
    for Jitify in the same folder, when it is imported: so this comes before.
    """
    folder = library_folder("cupy", "CUPY_CACHE_DIR")
    if folder is None:
        os.environ["CUPY_CACHE_IN_MEMORY"] = os.environ["CUPY_DISABLE_JITIFY_CACHE"] = "1"
    else:
        os.environ["CUPY_CACHE_DIR"] = str(folder)
