"""Programs: sources assembled and built once for a device, and cached on disk as binaries."""

from __future__ import annotations

import atexit
import functools
import os
import re
import threading
import time
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import shared_source
from burn_opencl import __version__

if TYPE_CHECKING:
    from burn.plugin_api import DiskCache
    from burn_opencl.runtime import Runtime

__all__ = ["Programs", "text_of"]

_MAX_SHARE_FOR_SAVING: Final = 0.1
"""Share of the time of a process that writing binaries at its end may add."""

_USES_FOUR: Final = re.compile(r"_four\b|_FOUR\b")
"""What a shared source has that accesses four elements at once."""


@functools.cache
def text_of(file: str) -> str:
    """Text of a kernel file: a shared source of core, or one of this plugin."""
    if file.endswith(".c"):
        return shared_source(file)
    return resources.files("burn_opencl.kernels").joinpath(file).read_text(encoding="utf-8")


class Programs:
    """The kernels of one device, by their source.

    Parameters
    ----------
    runtime : Runtime
        The device.
    cache : DiskCache or None
        What keeps binaries; None to keep none.
    """

    def __init__(self, runtime: Runtime, cache: DiskCache | None) -> None:
        self._runtime = runtime
        self._cache = cache
        self._programs: dict[str, Any] = {}
        self._kernels: dict[tuple[Any, ...], Any] = {}
        self._unsaved: list[tuple[str, Any]] = []
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._process = os.getpid()
        if runtime.binaries_take_long and cache is not None:
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
        files = ["dialect.cl", "common.c"]
        if file.endswith(".c") and _USES_FOUR.search(text):
            files += ["vec4.cl", "four.c"]
        if file.endswith(".c") and self._runtime.is_cpu and "load_vector" in text:
            files.append("row_helpers.cl")
        source += "\n".join([*map(text_of, files), body, text])
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
        if self._cache is None:
            return self._runtime.build(source)
        key = f"{__version__}|{self._runtime.identity}|{source}"
        binary = self._cache.get(key)
        program = None if binary is None else self._runtime.load(binary)
        if program is None:
            program = self._runtime.build(source)
            self._unsaved.append((key, program))
            if not self._runtime.binaries_take_long:
                self.save()
        return program

    def save(self, seconds: float | None = None) -> None:
        """Keep the binaries that were built, for at most so many seconds if given."""
        if self._cache is None or self._cache.folder is None:
            self._unsaved.clear()
            return
        start = time.monotonic()
        while self._unsaved and (seconds is None or time.monotonic() - start < seconds):
            key, program = self._unsaved.pop(0)
            binary = self._runtime.binary(program)
            if binary:
                self._cache.put(key, binary)

    def _save_at_exit(self) -> None:
        if os.getpid() == self._process:  # drivers do not work in a forked process
            self.save(_MAX_SHARE_FOR_SAVING * (time.monotonic() - self._start))
