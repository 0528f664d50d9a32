"""CLBlast, for matrix products on devices where it is faster than the kernels of this package.

It is used where the Python package ``pyclblast`` is installed. Which of the two is faster is
measured once for each device and class of shapes, and cached beside the binaries of kernels.
"""

from __future__ import annotations

import functools
import importlib
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from burn.plugin_api import DiskCache
    from burn_opencl.buffers import Buffer
    from burn_opencl.gemm import Gemm
    from burn_opencl.runtime import Runtime

__all__ = ["ClBlast"]

_MIN_MULTIPLICATIONS: Final = 1 << 24
"""Products of fewer multiplications are not measured, and never use CLBlast."""

_TIMED_RUNS: Final = 3


class ClBlast:
    """Products by CLBlast or by a kernel of our own, whichever is faster.

    Parameters
    ----------
    runtime : Runtime
        The device.
    cache : DiskCache
        What keeps the results of measurements.
    """

    def __init__(self, runtime: Runtime, cache: DiskCache) -> None:
        self._runtime = runtime
        self._cache = cache
        self._key = f"CLBlast|{runtime.identity}"

    @functools.cached_property
    def _is_faster(self) -> dict[str, bool]:
        """Whether CLBlast is faster, by class of shapes."""
        kept: dict[str, bool] = json.loads(self._cache.get(self._key) or b"{}")
        return kept

    def multiply(self, product: Gemm, out: Buffer, own: Callable[[], None]) -> None:
        """Write a product to dense memory; `own` does so by a kernel of this package."""
        found = _shape_class(product)
        if found is None or _library() is None:
            own()
            return
        is_faster = self._is_faster.get(found)
        if is_faster is None:
            with self._runtime.lock:  # one thread measures, and the others wait for it
                is_faster = self._is_faster.get(found)
                if is_faster is None:
                    is_faster = self._measured(product, out, own)
                    self._is_faster[found] = is_faster
                    self._cache.put(self._key, json.dumps(dict(self._is_faster)).encode())
        if is_faster:
            self._multiply(product, out)
            self._runtime.paced_by(("CLBlast", found))
        else:
            own()

    def _multiply(self, product: Gemm, out: Buffer) -> None:
        _, m, inner, n, left, right, first, second = product
        arrays = importlib.import_module("pyopencl.array")
        runtime = self._runtime
        with runtime.lock:
            a, b, c = (
                arrays.Array(runtime.queue, (1, 1), buffer.dtype.numpy, data=buffer.memory.handle)
                for buffer in (left, right, out)
            )
            _library().gemm(
                *(runtime.queue, m, n, inner, a, b, c),
                a_ld=max(first[1:]),
                b_ld=max(second[1:]),
                c_ld=n,
                a_transp=first[2] != 1,
                b_transp=second[2] != 1,
                a_offset=left.offset,
                b_offset=right.offset,
                c_offset=out.offset,
            )

    def _measured(self, product: Gemm, out: Buffer, own: Callable[[], None]) -> bool:
        """Whether CLBlast is faster; False where it fails."""
        try:
            return self._seconds(lambda: self._multiply(product, out)) < self._seconds(own)
        except RuntimeError:
            return False

    def _seconds(self, function: Callable[[], None]) -> float:
        taken = []
        with self._runtime.lock:
            for _ in range(1 + _TIMED_RUNS):
                self._runtime.finish()
                start = time.perf_counter()
                function()
                self._runtime.finish()
                taken.append(time.perf_counter() - start)
        return min(taken[1:])


def _shape_class(product: Gemm) -> str | None:
    """Class of a product by sizes and strides; None for one that CLBlast does not take."""
    matrices, m, inner, n, left, _, first, second = product
    dtype = left.dtype.name
    if matrices != 1 or dtype not in ("float32", "float64") or m * inner * n < _MIN_MULTIPLICATIONS:
        return None
    lengths = ((inner, m, first), (n, inner, second))
    if any(
        1 not in strides[1:] or max(strides[1:]) < (width if strides[2] == 1 else height)
        for width, height, strides in lengths
    ):
        return None
    transposed = f"{int(first[2] != 1)}{int(second[2] != 1)}"
    return "-".join([dtype, transposed, *[str(length.bit_length()) for length in (m, inner, n)]])


@functools.cache
def _library() -> Any:
    """The package, or None where it is not installed."""
    try:
        return importlib.import_module("pyclblast")
    except (ImportError, OSError):
        return None
