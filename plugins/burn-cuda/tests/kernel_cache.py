"""Where compiled kernels are kept from one run of the tests to the next, by a hash of their source.

The folder survives a new virtual environment and a reboot. Several processes may write to it: what
is written gets its name when it is complete.
"""

import hashlib
import os
from pathlib import Path

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "burn-tests"


def folder(name):
    """The folder of a compiler, which is made if it is not there."""
    found = FOLDER / name
    found.mkdir(parents=True, exist_ok=True)
    return found


def key(*parts):
    """Name of what was compiled of these texts: compiler, options, source."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
