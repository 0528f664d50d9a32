"""CudaOps: the typed base of the mixins of `CudaBackend`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import Backend
from burn_cuda.launcher import Launcher
from burn_cuda.usage import STORED

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["Array", "CudaOps"]

_EARLY_CAPABILITY: Final = (9, 0)
"""Compute capability from which on kernels wait for the one before by themselves."""

Array = Any
"""A `burn_cuda.array.Array`, for which the methods of core have no type."""


class CudaOps(Backend):
    """Ops on the arrays of one device. Each mixin adds the methods of one family of ops.

    A method that leaves a case to the default of its op calls ``self.ops.decomposed``.

    Parameters
    ----------
    runtime : Runtime
        The device.

    Attributes
    ----------
    index : int
        Its index among the devices that CUDA shows.
    launcher : Launcher
        Compiles and launches its kernels.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.index = runtime.index
        self.launcher = Launcher(runtime, {dtype.numpy: dtype for dtype in STORED})
        self.named = self.launcher.checked.named

    def early(self, kernel: Any) -> Callable[..., None]:
        """How to launch a kernel of which blocks may start before the kernel before it is done."""
        is_possible = self.runtime.capability >= _EARLY_CAPABILITY
        launch: Callable[..., None] = kernel.early if is_possible else kernel
        return launch
