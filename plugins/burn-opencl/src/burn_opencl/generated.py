"""Kernels that core generates: their programs, and launches with prepared arguments."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burn_opencl.base import OpenClOps
from burn_opencl.dialect import OpenClDialect, scalar_types
from burn_opencl.limits import GPU_GROUP_ITEMS

if TYPE_CHECKING:
    from burn.plugin_api import Code, Shape
    from burn_opencl.buffers import Buffer
    from burn_opencl.launcher import Launcher

__all__ = ["GeneratedOps"]


class GeneratedOps(OpenClOps):
    """A device that runs generated kernels."""

    @functools.cached_property
    def dialect(self) -> OpenClDialect:
        """OpenCL C for the work groups of the device."""
        runtime = self.launcher.runtime
        lanes = 1 if runtime.is_cpu else min(GPU_GROUP_ITEMS, runtime.max_items)
        return OpenClDialect(lanes, has_fp64=runtime.has_fp64, is_cpu=runtime.is_cpu)

    def load_kernel(self, code: Code, shapes: tuple[Shape, ...]) -> Callable[..., Any]:
        """A launch with an object of its own for the arguments, of which it sets what changes."""
        kernel = self.launcher.programs.generated(code.text, code.entry)
        return _Launch(self.launcher, kernel, code, shapes).run


class _Launch:
    """A kernel with the arguments of its last launch."""

    def __init__(
        self, launcher: Launcher, kernel: Any, code: Code, shapes: tuple[Shape, ...]
    ) -> None:
        self._launcher = launcher
        self._kernel = kernel
        self._outputs = [
            (shape, dtype) for shape, (dtype, _) in zip(shapes, code.kernel.outputs, strict=True)
        ]
        self._types = scalar_types(code.kernel)
        self._groups = code.groups
        self._group = (code.lanes,)
        self._last: list[Any] = []
        self._lock = threading.Lock()

    def run(
        self,
        inputs: tuple[Buffer, ...],
        scalars: tuple[float, ...],
        out: tuple[Buffer | None, ...],
    ) -> tuple[Buffer, ...]:
        """Launch the kernel; see `Backend.load_kernel`."""
        launcher = self._launcher
        dense = [x if x.is_dense and not x.offset else launcher.copied(x) for x in inputs]
        results = tuple(
            [
                launcher.empty(*meta) if given is None else given
                for given, meta in zip(out, self._outputs, strict=True)
            ]
        )
        size = (self._groups(scalars) * self._group[0],)
        if not size[0]:
            return results
        memories = [x.memory.handle for x in dense]
        memories += [x.memory.handle for x in results]
        arguments = memories + [
            bytes(kind(value)) for kind, value in zip(self._types, scalars, strict=True)
        ]
        with self._lock:
            last = self._last
            changed = [
                (number, value)
                for number, value in enumerate(arguments)
                if not last or value is not last[number]
            ]
            self._last = []  # unless the launch succeeds, the arguments are not known
            launcher.runtime.launch_changed(self._kernel, changed, memories, size, self._group)
            self._last = arguments
        return results
