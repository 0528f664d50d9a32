"""CLBlast, for products of matrices on devices where it is faster than the kernels here.

It is used where its Python package ``pyclblast`` is installed. Which of both is faster is measured
once for each device and class of shapes, and kept beside the binaries of kernels.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from burn_opencl.programs import write_whole

if TYPE_CHECKING:
    from burn_opencl.buffers import Buffer
    from burn_opencl.products import Product
    from burn_opencl.runtime import Runtime

__all__ = ["ClBlast"]

_LARGE: Final = 1 << 24
"""Multiplications from which on a product is worth the question."""

_ROUNDS: Final = 3


class ClBlast:
    """Products by CLBlast or by a kernel of our own, whichever is faster.

    Parameters
    ----------
    runtime : Runtime
        The device.
    folder : Path or None
        Where what was measured is kept, if anywhere.
    """

    def __init__(self, runtime: Runtime, folder: Path | None) -> None:
        self._runtime = runtime
        digest = hashlib.sha256(runtime.identity.encode()).hexdigest()
        self._file = None if folder is None else folder / f"clblast-{digest[:16]}.json"

    @functools.cached_property
    def _is_faster(self) -> dict[str, bool]:
        """By class of shapes."""
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):
                kept = json.loads(self._file.read_text(encoding="utf-8"))
                if isinstance(kept, dict):
                    return kept
        return {}

    def multiply(self, product: Product, out: Buffer, own: Callable[[], None]) -> None:
        """Write a product to dense memory, which `own` does by the kernel here."""
        found = _class_of(product)
        if found is None or _library() is None:
            own()
            return
        is_faster = self._is_faster.get(found)
        if is_faster is None:
            is_faster = self._measured(product, out, own)
            self._is_faster[found] = is_faster
            self._keep()
        if is_faster:
            self._multiply(product, out)
            self._runtime.paced_by(("CLBlast", found))
        else:
            own()

    def _multiply(self, product: Product, out: Buffer) -> None:
        _, m, inner, n, left, right, first, second = product
        arrays = importlib.import_module("pyopencl.array")
        runtime = self._runtime
        with runtime.lock:
            a, b, c = (
                arrays.Array(runtime.queue, (1, 1), one.dtype.numpy, data=one.memory.handle)
                for one in (left, right, out)
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

    def _measured(self, product: Product, out: Buffer, own: Callable[[], None]) -> bool:
        """Whether CLBlast is faster; it is not where it fails."""
        try:
            return self._seconds(lambda: self._multiply(product, out)) < self._seconds(own)
        except RuntimeError:
            return False

    def _seconds(self, function: Callable[[], None]) -> float:
        taken = []
        with self._runtime.lock:
            for _ in range(1 + _ROUNDS):
                self._runtime.finish()
                start = time.perf_counter()
                function()
                self._runtime.finish()
                taken.append(time.perf_counter() - start)
        return min(taken[1:])

    def _keep(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                write_whole(self._file, json.dumps(dict(self._is_faster)).encode())


def _class_of(product: Product) -> str | None:
    """The class of a product that CLBlast can make: alike in size and in how operands lie."""
    matrices, m, inner, n, left, _, first, second = product
    dtype = left.dtype.name
    if matrices != 1 or dtype not in ("float32", "float64") or m * inner * n < _LARGE:
        return None
    lengths = ((inner, m, first), (n, inner, second))
    if any(
        1 not in strides[1:] or max(strides[1:]) < (width if strides[2] == 1 else height)
        for width, height, strides in lengths
    ):
        return None
    ways = f"{int(first[2] != 1)}{int(second[2] != 1)}"
    return "-".join([dtype, ways, *[str(length.bit_length()) for length in (m, inner, n)]])


@functools.cache
def _library() -> Any:
    """The package, or None where it is not installed."""
    try:
        return importlib.import_module("pyclblast")
    except (ImportError, OSError):
        return None
