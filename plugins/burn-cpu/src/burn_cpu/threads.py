"""Parts of one op on several threads, each of which runs BLAS on one thread.

The threads of BLAS synchronize many times within a product, a third of its time for narrow
matrices, and copies between two products run on one core. Independent parts have neither cost. The
number of threads is that of BLAS (``OPENBLAS_NUM_THREADS``, threadpoolctl), or 1 where it is
unknown.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import ctypes
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from burn.plugin_api import new_lock

__all__ = [
    "in_parallel",
    "product_functions",
    "shares",
    "single_threaded_blas",
    "thread_count",
]

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

_OPENBLAS_FUNCTIONS: Final = [
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
]
"""The functions of OpenBLAS by the names that NumPy's builds give them."""


class _Blas:
    """The number of threads of the BLAS that NumPy uses."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.users = 0
        self.saved = 1
        self.get: Callable[[], int] | None = None
        self.set: Callable[[int], object] = _nothing
        self.products: dict[str, tuple[int, int]] = {}
        for path in _libraries():
            with contextlib.suppress(OSError):
                self._take(ctypes.CDLL(str(path)))
            if self.get is not None:
                break

    def _take(self, library: ctypes.CDLL) -> None:
        for getter, setter in _OPENBLAS_FUNCTIONS:
            if hasattr(library, getter) and hasattr(library, setter):
                self.get, self.set = getattr(library, getter), getattr(library, setter)
                for name in ("sgemm", "dgemm"):
                    product = getter.replace("openblas_get_num_threads", f"cblas_{name}")
                    if hasattr(library, product):
                        address = ctypes.cast(getattr(library, product), ctypes.c_void_p).value
                        self.products[name] = address or 0, 64 if getter.endswith("64_") else 32
                return

    def count(self) -> int:
        """The number of threads it may use; 1 if that is unknown."""
        if self.get is None:
            return 1
        with self.lock:
            return self.saved if self.users else self.get()

    @contextlib.contextmanager
    def single_threaded(self) -> Iterator[None]:
        """Context in which BLAS uses one thread, until its last concurrent user leaves."""
        with self.lock:
            if not self.users and self.get is not None:
                self.saved = self.get()
                self.set(1)
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    self.set(self.saved)

    def forget_users(self) -> None:
        """After a fork: the users of `single_threaded` are threads of the parent process."""
        if self.users:
            self.users = 0
            self.set(self.saved)


def _nothing(count: int) -> None:
    del count


def _libraries() -> Iterator[Path]:
    """Libraries through which the functions of NumPy's BLAS may be found.

    NumPy's own extension module finds them wherever a look-up includes the libraries that it is
    linked to, which is everywhere but on Windows.
    """
    package = Path(np.__file__).parent
    yield from sorted(package.glob("_core/_multiarray_umath*"))
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        yield from sorted(folder.glob("*openblas*"))


_blas: Final = _Blas()

_in_part: Final = contextvars.ContextVar("burn_cpu_in_part", default=False)
"""Whether the current code runs within a part."""


@functools.cache
def _executor() -> concurrent.futures.ThreadPoolExecutor:
    """The threads, started on first use."""
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="burn-cpu")


def _after_fork() -> None:
    """A forked process has none of the threads of its parent."""
    _executor.cache_clear()
    _blas.forget_users()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def single_threaded_blas() -> contextlib.AbstractContextManager[None]:
    """Context in which BLAS uses one thread, for the whole process."""
    return _blas.single_threaded()


def product_functions() -> dict[str, tuple[int, int]]:
    """By their names, ``sgemm`` and ``dgemm``: their addresses, and bits of their integers.

    They are those of CBLAS; there are none where they are not found.
    """
    return _blas.products


def thread_count() -> int:
    """The number of parts that run at a time."""
    return _blas.count()


def in_parallel(work: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """Call a function with each of the parts on threads; a single part keeps the threads of BLAS.

    Calls within a part run its parts one after the other.
    """
    if len(parts) < 2 or _in_part.get():
        return [work(part) for part in parts]

    def within(part: _Part) -> _Result:
        _in_part.set(True)
        return work(part)

    with _blas.single_threaded():
        # NumPy's error state is part of the context.
        futures = [
            _executor().submit(contextvars.copy_context().run, within, part) for part in parts[1:]
        ]
        try:
            first = contextvars.copy_context().run(within, parts[0])
        finally:
            concurrent.futures.wait(futures)
    return [first, *[future.result() for future in futures]]


def shares(length: int, count: int) -> list[slice]:
    """A range divided into `count` parts of nearly equal length, none of them empty."""
    count = max(1, min(count, length))
    ends = [length * number // count for number in range(count + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(ends)]
