"""Memory comes back without Python code, in which Ctrl-C would be lost."""

import gc
import sys
from collections import deque

import pytest

import burn
from burn_opencl.leases import Leases


class Owner:
    pass


@pytest.fixture
def calls():
    """The functions of Python that are called while a callable runs."""

    def of(run):
        found = []

        def note(frame, event, argument):
            del argument
            if event == "call" and frame.f_code is not run.__code__:
                found.append(frame.f_code.co_name)

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            run()
        finally:
            sys.setprofile(before)
        return found

    return of


def test_what_an_object_has_comes_back_once_also_from_a_cycle():
    leases, free = Leases(), deque()
    owner, other = Owner(), Owner()
    other.itself = other
    leases.lend(owner, "content", free)
    leases.lend(other, "more", free)
    assert leases.taken(free) is None
    del owner
    assert leases.taken(free) == "content"
    assert leases.taken(free) is None
    del other
    gc.collect()
    assert leases.taken(free) == "more"
    assert not leases._alive


def test_memory_of_a_tensor_comes_back_without_python_code(calls):
    x = [burn.zeros(1000, device="opencl")]
    buffer = x[0].primitive
    x.clear()
    pool = buffer.owner.launcher.pool
    free = pool._free[buffer.memory.size]
    held = [buffer]
    before = len(free)
    del buffer
    assert calls(lambda: held.clear()) == []
    assert len(free) == before + 1
