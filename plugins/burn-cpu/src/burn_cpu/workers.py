"""Threads that compute parts of kernels: they wait in native code, and take parts as they can.

The work of a kernel is divided into parts, which the calling thread and the workers take one after
the other from one counter; so a worker that sleeps, or that the system runs late, delays nothing.
A worker that finds no work spins for a while (`SPINS`), then blocks on a lock. It never needs
Python's own lock. ``kernels/runtime.ll`` has the code.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Final

from burn_cpu import threads

__all__ = ["SPINS", "Workers"]

SPINS: Final = 20_000
"""Pauses after which a worker blocks: about a millisecond, so that it is awake for the next call
of a program that Python calls again and again. A worker that the system has to wake runs late:
x*x+1 of 10^6 elements took twice as long with 1,000. Threads of OpenMP stay awake for longer."""

_WORDS: Final = 1024
"""64-bit words of the state that threads share."""

_MAX_WORKERS: Final = 64


class Workers:
    """The workers of this process, and the state that they share with native code.

    Attributes
    ----------
    pointer : ctypes.c_void_p
        The address of the state from when on native code may divide its work; before that 0.
    """

    def __init__(self) -> None:
        self.pointer: Final = ctypes.c_void_p(None)
        self._run: Any = None
        self._forget()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """A forked process has none of the threads of its parent, and may find any state."""
        self.pointer.value = None
        self._lock = threading.Lock()
        self._address = 0
        self._count = self._threads = 0

    def prepare(self, worker: int) -> None:
        """Take the address of ``burn_worker``."""
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(worker)

    def ready(self) -> None:
        """See that native code divides its work among as many threads as BLAS may use."""
        count = min(threads.thread_count(), _MAX_WORKERS)
        if count != self._threads:
            with self._lock:
                self._start(count)
                self.pointer.value = self._address
                self._threads = count

    def _start(self, count: int) -> None:
        """See that there are enough workers."""
        python = ctypes.pythonapi
        if not self._address:
            # Never freed: when the interpreter ends, workers may still look at it.
            python.PyMem_RawCalloc.restype = ctypes.c_void_p
            memory = python.PyMem_RawCalloc(ctypes.c_size_t(_WORDS + 8), ctypes.c_size_t(8))
            self._address = (memory + 63) // 64 * 64  # a cache line
        words = (ctypes.c_int64 * _WORDS).from_address(self._address)
        while self._count < count - 1:
            python.PyThread_allocate_lock.restype = ctypes.c_void_p
            lock = python.PyThread_allocate_lock()
            python.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
            words[65 + 8 * self._count] = lock
            threading.Thread(
                target=self._run,
                args=(self._address, self._count),
                name=f"burn-cpu native {self._count}",
                daemon=True,
            ).start()
            self._count += 1
        words[32] = count
