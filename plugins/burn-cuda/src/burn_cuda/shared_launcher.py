"""SharedLauncher: launches of the shared kernels of core, a `KernelLauncher` there."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.plugin_api import CheckedOps, DType, Shape
from burn_cuda import array
from burn_cuda.kernels import THREADS, core_source

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["Packed", "SharedLauncher"]

Array = Any
_Array: Final = array.Array

_MAX_TABLES: Final = 128
"""Tables from the host that a device keeps: those used last."""

_MIN_SIZE_FOR_FIXED_SIZES: Final = 1 << 20
"""Results from which on a kernel for one size of windows is compiled."""

_NOTHING: Final[Mapping[str, str | int]] = {}


@functools.cache
def _struct(count: int) -> struct.Struct:
    """So many integers of 64 bits."""
    return struct.Struct(f"={count}q")


class Packed(bytes):
    """Numbers that a kernel takes by value, as a struct."""

    __slots__ = ()


class SharedLauncher:
    """Memory and launches as the shared kernels need them.

    Parameters
    ----------
    runtime : Runtime
        The device.
    dtypes : dict
        DType of each NumPy dtype that arrays have.
    """

    dense: Callable[[Array], Array]
    copied: Callable[[Array], Array]
    is_cpu: Final = False
    max_group: Final = 1024

    def __init__(self, runtime: Runtime, dtypes: dict[Any, DType]) -> None:
        self.runtime = runtime
        self.dtypes = dtypes
        self.checked = CheckedOps()
        self._compiled: dict[Any, Any] = {}
        self._tables = functools.lru_cache(maxsize=_MAX_TABLES)(self._uploaded)

    @property
    def units(self) -> int:
        """Multiprocessors of the device."""
        return self.runtime.multiprocessors

    @staticmethod
    def fixes_sizes(size: int) -> bool:
        """Whether NVRTC's time for a kernel is worth it."""
        return size >= _MIN_SIZE_FOR_FIXED_SIZES

    def new(self, shape: Shape, dtype: DType) -> Array:
        """A dense array whose elements are not written yet."""
        return self.runtime.empty(shape, dtype.numpy)

    @staticmethod
    def is_aligned(x: Array) -> bool:
        """Whether the address is a multiple of the size of four elements."""
        return bool(x.address % (4 * x.dtype.itemsize) == 0)

    def parts(self, x: Array) -> Array:
        """A real array of complex numbers: their two parts along a new last axis."""
        component = self.dtypes[x.dtype].component.numpy
        return self.dense(x).reshape(-1).view(component).reshape((*x.shape, 2))

    def of_parts(self, parts: Array, dtype: DType) -> Array:
        """The complex numbers of a real array with their parts along the last axis."""
        return self.dense(parts).reshape(-1).view(dtype.numpy).reshape(parts.shape[:-1])

    def dtype_of(self, x: Array) -> DType:
        """Dtype of the elements."""
        return self.dtypes[x.dtype]

    @staticmethod
    def offset_of(x: Array) -> int:
        """0: the address is that of the first element."""
        del x
        return 0

    def shared_kernel(
        self,
        entry: str,
        file: str,
        c_type: str,
        definitions: Mapping[str, str | int] = _NOTHING,
        types: Mapping[str, str | int] = _NOTHING,
        size: int = 0,
    ) -> Any:
        """A kernel of core, which knows all types while it is compiled."""
        del size
        key = (entry, file, c_type, *definitions.items(), *types.items())
        found = self._compiled.get(key)
        if found is None:
            macros = {**definitions, **types, f"HAS_{entry}": 1}
            text = core_source(file, c_type, macros)
            found = self._compiled[key] = self.runtime.compile(text, entry, contracts=False)
        return found

    def start(
        self,
        kernel: Any,
        parameters: Sequence[int],
        arrays: Sequence[Any],
        items: int,
        group: int = 0,
    ) -> None:
        """Launch a kernel of core, which takes its parameters as a struct."""
        if not items:
            return
        struct_ = Packed(_struct(len(parameters)).pack(*parameters))
        words = [x.address if x.__class__ is _Array else x or 0 for x in arrays]
        if group in (0, THREADS):
            kernel.launch(-(-items // THREADS), struct_, *words)
        else:
            kernel((-(-items // group),), (group,), (struct_, *words))

    def index_error(self, op: str) -> tuple[int, int]:
        """See `flag`."""
        return self.flag(op)

    def table(self, make: Callable[..., Any], *arguments: Any) -> Sequence[Array]:
        """Arrays that a function computes on the host, of which those used last are kept."""
        return self._tables(make, *arguments)

    def clear_tables(self) -> None:
        """Free the memory of tables."""
        self._tables.cache_clear()

    def _uploaded(self, make: Callable[..., Any], *arguments: Any) -> list[Array]:
        return [self.runtime.upload(np.ascontiguousarray(x)) for x in make(*arguments)]

    def flag(self, op: str) -> tuple[int, int]:
        """Arguments of a kernel that checks indices: address of the flag, and number of the op."""
        return self.runtime.flag_address, self.checked.number(op)
