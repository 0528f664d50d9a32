"""Parts of one op on several threads, with BLAS on one thread in each of them.

BLAS shares a product out among threads that wait for each other many times, which costs a third of
the time where a matrix is narrow; and what is copied between two products it leaves to one core.
Parts that are independent have neither. How many threads there are is what BLAS is set to
(``OPENBLAS_NUM_THREADS``, threadpoolctl); where it cannot be asked there is one part.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import ctypes
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

__all__ = ["blas_alone", "in_parallel", "shares", "thread_count"]

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

_NAMES: Final = [
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
]
"""The functions of OpenBLAS, as the builds of NumPy call them."""


class _Blas:
    """The number of threads of the BLAS that NumPy is linked to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.saved = 1
        self.get: Callable[[], int] | None = None
        self.set: Callable[[int], object] = _nothing
        for path in _libraries():
            with contextlib.suppress(OSError):
                self._take(ctypes.CDLL(str(path)))
            if self.get is not None:
                break

    def _take(self, library: ctypes.CDLL) -> None:
        for getter, setter in _NAMES:
            if hasattr(library, getter) and hasattr(library, setter):
                self.get, self.set = getattr(library, getter), getattr(library, setter)
                return

    def count(self) -> int:
        """How many threads it may use; 1 if that is not known."""
        if self.get is None:
            return 1
        with self.lock:
            return self.saved if self.users else self.get()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """BLAS uses one thread, until the last who wanted it so leaves."""
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
        """Those who wanted it alone are in another process."""
        self.lock = threading.Lock()
        if self.users:
            self.users = 0
            self.set(self.saved)


def _nothing(count: int) -> None:
    del count


def _libraries() -> Iterator[Path]:
    """Libraries of NumPy through which the functions of its BLAS may be found.

    Where names are looked up in what a library is linked to as well (not on Windows), NumPy's own
    is enough, wherever BLAS came from.
    """
    package = Path(np.__file__).parent
    yield from sorted(package.glob("_core/_multiarray_umath*"))
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        yield from sorted(folder.glob("*openblas*"))


_blas: Final = _Blas()

_is_part: Final = contextvars.ContextVar("burn_cpu_is_part", default=False)
"""Whether a part is what runs."""


@functools.cache
def _executor() -> concurrent.futures.ThreadPoolExecutor:
    """The threads, which are started when they are first needed."""
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="burn-cpu")


def _after_fork() -> None:
    """A forked process has none of the threads yet."""
    _executor.cache_clear()
    _blas.forget_users()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def blas_alone() -> contextlib.AbstractContextManager[None]:
    """Context in which BLAS uses one thread, for the whole process."""
    return _blas.alone()


def thread_count() -> int:
    """How many parts run at the same time."""
    return _blas.count()


def in_parallel(work: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """Call a function with each of the parts, at the same time. One part is left to BLAS.

    Within a part there are no others: parts of it run one after the other.
    """
    if len(parts) < 2 or _is_part.get():
        return [work(part) for part in parts]

    def within(part: _Part) -> _Result:
        _is_part.set(True)
        return work(part)

    with _blas.alone():
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
    """A length cut into so many parts, as even as possible and none of them empty."""
    count = max(1, min(count, length))
    ends = [length * number // count for number in range(count + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(ends)]
