"""Datasets and functions that tests give to worker processes, which import this and little else."""

import ctypes
import os
import random
import signal
import time

import numpy as np

from burn.data import rng


class Numbers:
    """``index`` and a small array of it."""

    def __init__(self, length=10):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError(index)
        return {"number": index, "array": np.full(3, index, np.float32)}


class Images(Numbers):
    """Arrays that are large enough to go through shared memory."""

    def __getitem__(self, index):
        return np.full((64, 64, 16), index, np.float32)


class Random(Numbers):
    """Numbers of every generator."""

    def __getitem__(self, index):
        return {
            "own": rng().normal(),
            "python": random.random(),
            "numpy": np.random.normal(),  # noqa: NPY002 — what users write
        }


class Failing(Numbers):
    """Raises an exception at index 5."""

    def __init__(self, error, length=10):
        super().__init__(length)
        self.error = error

    def __getitem__(self, index):
        if index == 5:
            raise type(self.error)(*self.error.args)  # a new one: its traceback keeps all frames
        return index


class Ending(Numbers):
    """Ends the process at index 5, until a file is there."""

    def __init__(self, way, once=None):
        super().__init__(10)
        self.way, self.once = way, once

    def __getitem__(self, index):
        if index == 5 and not (self.once and self.once.exists()):
            if self.once:
                self.once.touch()
            if self.way == "exit":
                os._exit(3)
            elif self.way == "crash":
                ctypes.string_at(0)
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return index


class Stuck(Numbers):
    """Never returns, and lets no other thread of the interpreter run."""

    def __getitem__(self, index):
        os.write(1, b"stuck\n")
        while True:
            ctypes.PyDLL(None).pause()


class Slow(Numbers):
    """Takes some seconds for each example, all of them for one after the first `quick`."""

    def __init__(self, seconds, quick=0, length=1000):
        super().__init__(length)
        self.seconds, self.quick = seconds, quick

    def __getitem__(self, index):
        if index >= self.quick:
            time.sleep(self.seconds)
        return index


class Processes(Numbers):
    """The process that loads."""

    def __getitem__(self, index):
        return os.getpid()


class Endless:
    """An iterable with a state of its own."""

    def __init__(self):
        self.next = 0

    def __iter__(self):
        while True:
            self.next += 1
            yield self.next - 1

    def state_dict(self):
        return {"next": self.next}

    def load_state_dict(self, state):
        self.next = state["next"]


class NotRebuiltError(Exception):
    """An exception that pickle writes and does not read."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def noisy(x):
    return float(x) + rng().normal()


def unpicklable(examples):
    return lambda: examples


class Unreadable:
    """Pickled here, not to be read in another process."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index

    def __setstate__(self, state):
        raise RuntimeError("no such file here")

    def __getstate__(self):
        return {"a": 1}
