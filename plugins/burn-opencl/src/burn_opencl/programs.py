"""Programs: sources assembled and built once for a device, and cached on disk as binaries."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import platformdirs

from burn_opencl import __version__

if TYPE_CHECKING:
    from burn_opencl.runtime import Runtime

__all__ = ["Programs", "cache_folder", "text_of", "write_whole"]

_MAX_SHARE_FOR_SAVING: Final = 0.1
"""Share of the time of a process that writing binaries at its end may add."""


@functools.cache
def text_of(file: str) -> str:
    """Text of a kernel file."""
    return resources.files("burn_opencl.kernels").joinpath(file).read_text(encoding="utf-8")


def cache_folder() -> Path | None:
    """The folder of cached binaries; None if ``BURN_OPENCL_CACHE`` is empty."""
    configured = os.environ.get("BURN_OPENCL_CACHE")
    if configured is not None:
        return Path(configured) if configured else None
    return Path(platformdirs.user_cache_dir("burn-opencl", appauthor=False))


class Programs:
    """The kernels of one device, by their source.

    Parameters
    ----------
    runtime : Runtime
        The device.
    folder : Path or None
        The folder of cached binaries; None to cache nothing.
    """

    def __init__(self, runtime: Runtime, folder: Path | None) -> None:
        self._runtime = runtime
        self._folder = folder
        self._programs: dict[str, Any] = {}
        self._kernels: dict[tuple[Any, ...], Any] = {}
        self._unsaved: list[tuple[Path, Any]] = []
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._process = os.getpid()
        if runtime.binaries_take_long and folder is not None:
            atexit.register(self._save_at_exit)

    def kernel(
        self, name: str, file: str, definitions: Mapping[str, str | int], body: str = ""
    ) -> Any:
        """A kernel of a file, with macros and source before it."""
        key = (name, file, body, *definitions.items())
        found = self._kernels.get(key)
        if found is None:
            with self._lock:
                found = self._kernels.get(key)
                if found is None:
                    found = self._built(name, file, body, definitions)
                    self._kernels[key] = found
        return found

    def _built(self, name: str, file: str, body: str, definitions: Mapping[str, str | int]) -> Any:
        macros = dict(definitions)
        macros["IS_CPU"] = int(self._runtime.is_cpu)
        if self._runtime.has_fp64:
            macros["HAS_FP64"] = 1
        text = text_of(file)
        # A file may have kernels that are used separately: ``#ifdef HAS_name`` compiles one.
        # Kernels that are used together are in one program, so the macro is left out there.
        macros = {
            macro: value
            for macro, value in macros.items()
            if not macro.startswith("HAS_") or macro in text or macro == "HAS_FP64"
        }
        source = "".join([f"#define {macro} {value}\n" for macro, value in macros.items()])
        source += "\n".join([text_of("dialect.cl"), text_of("common.cl"), body, text])
        program = self._programs.get(source)
        if program is None:
            program = self._program(source)
            self._programs[source] = program
        return self._runtime.kernel(program, name)

    def generated(self, source: str, name: str) -> Any:
        """A kernel of a whole source, whose arguments nothing else sets."""
        with self._lock:
            program = self._programs.get(source)
            if program is None:
                program = self._programs[source] = self._program(source)
        return self._runtime.kernel(program, name)

    def _program(self, source: str) -> Any:
        path = self._path(source)
        if path is not None:
            with contextlib.suppress(OSError):
                program = self._runtime.load(_checked_binary(path.read_bytes()))
                if program is not None:
                    return program
        program = self._runtime.build(source)
        if path is not None:
            self._unsaved.append((path, program))
            if not self._runtime.binaries_take_long:
                self.save()
        return program

    def save(self, seconds: float | None = None) -> None:
        """Write the built binaries to the folder, for at most so many seconds if given."""
        start = time.monotonic()
        while self._unsaved and (seconds is None or time.monotonic() - start < seconds):
            path, program = self._unsaved.pop(0)
            binary = self._runtime.binary(program)
            if binary:
                with contextlib.suppress(OSError):
                    write_whole(path, hashlib.sha256(binary).digest() + binary)

    def _save_at_exit(self) -> None:
        if os.getpid() == self._process:  # drivers do not work in a forked process
            self.save(_MAX_SHARE_FOR_SAVING * (time.monotonic() - self._start))

    def _path(self, source: str) -> Path | None:
        if self._folder is None:
            return None
        key = f"{__version__}|{self._runtime.identity}|{source}"
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.bin"


def _checked_binary(stored: bytes) -> bytes:
    """The binary in a file of the cache; raises OSError if the file is damaged."""
    digest, binary = stored[:32], stored[32:]
    if hashlib.sha256(binary).digest() != digest:
        raise OSError("a file of the cache is damaged")
    return binary


def write_whole(path: Path, values: bytes) -> None:
    """Write a file of the cache atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(values)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
