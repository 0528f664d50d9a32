"""A forked process computes, whatever other threads of its parent were doing."""

import importlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import burn
from burn import locks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

ROOT = Path(__file__).parents[2]


def test_every_lock_that_another_thread_holds_is_free_in_a_child():
    burn.compile(lambda x: x * 2)(burn.ones(3, device="cpu"))
    locks._find_cached_properties()
    every = list(locks._all)
    assert len(every) > 20
    is_held, is_over = threading.Event(), threading.Event()

    def hold():
        held = [lock for lock in every if lock.acquire(timeout=5)]
        is_held.set()
        is_over.wait(60)
        for lock in held:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(60)
    child = os.fork()
    if not child:
        os._exit(sum(not lock.acquire(blocking=False) for lock in every) and 1)
    is_over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_lock_that_the_forking_thread_holds_stays_its_own():
    lock = locks.new_rlock()
    with lock:
        child = os.fork()
        if not child:
            lock.release()  # raises if it is not held
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("is_overdue", [False, True])
def test_a_child_does_not_wait_for_an_import_of_another_thread(is_overdue, tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import threading\n"
        "value = 3\n"
        "if hasattr(threading, 'until'):\n"
        "    threading.begun.set()\n"
        "    threading.until.wait(60)\n"
        "value = 5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(locks, "_SECONDS", 0.0)
    monkeypatch.setattr(locks, "_overdue", set())
    monkeypatch.setattr(threading, "begun", threading.Event(), raising=False)
    monkeypatch.setattr(threading, "until", threading.Event(), raising=False)
    parent, imports_of_others = os.getpid(), locks._imports_of_others
    if not is_overdue:  # as if the import began right before the fork
        monkeypatch.setattr(
            locks,
            "_imports_of_others",
            lambda: set() if os.getpid() == parent else imports_of_others(),
        )
    thread = threading.Thread(target=importlib.import_module, args=["slow_to_import"])
    thread.start()
    assert threading.begun.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(60)
        del threading.until
        found = importlib.import_module("slow_to_import").value
        os._exit(found != (3 if is_overdue else 5))
    assert os.waitpid(child, 0)[1] == 0
    threading.until.set()
    thread.join()
    assert sys.modules.pop("slow_to_import").value == 5


# The thread is in a compiler when the process forks, and goes on once the fork waits for it.
_COMPILING = """
import os, signal, sys, threading
import burn
from burn_cpu import native

x = burn.ones((64, 64), device="cpu")
inside, go = threading.Event(), threading.Event()
kind = sys.argv[1]

def attention():
    y = burn.ones((2, 8, 8), device="cpu")
    attributes = {"scale": 1.0, "softcap": None, "is_causal": False}
    return burn.apply_op("attention", y, y, y, None, None, **attributes)

def halt():
    if threading.current_thread() is thread:
        inside.set()
        assert go.wait(60)

if kind == "numba":
    from burn_cpu import compiled_attention as _
    from numba.core.compiler_lock import global_compiler_lock as lock
    compute = attention
elif kind == "llvmlite":
    from llvmlite.binding.ffi import lib
    native.machine()
    lock = lib._lock
    compute = lambda: burn.compile(lambda x: burn.exp(x) + 3)(x)
else:
    from importlib import _bootstrap
    import burn_cpu
    lock = _bootstrap._ModuleLockManager("burn_cpu.compiled_attention")
    compute = attention

def work():
    with lock:  # as within each call of the compiler
        halt()
    compute()

thread = threading.Thread(target=work)
thread.start()
assert inside.wait(60)
os.register_at_fork(before=go.set)  # the last one runs first
child = os.fork()
if not child:
    signal.alarm(60)
    compute()
    assert float(burn.compile(lambda x: (x * 2 + 1).sum())(x)) == 3 * 64 * 64
    os._exit(0)
_, status = os.waitpid(child, 0)
thread.join()
print(status)
"""


@pytest.mark.parametrize(
    "kind",
    [
        "llvmlite",
        pytest.param("numba", marks=pytest.mark.exhaustive),
        pytest.param("import", marks=pytest.mark.exhaustive),
    ],
)
def test_a_child_compiles_where_a_thread_of_its_parent_was_compiling(kind):
    pytest.importorskip("numba")
    status = subprocess.check_output([sys.executable, "-c", _COMPILING, kind], text=True)
    assert status.split() == ["0"]


def test_locks_of_devices_that_may_be_used_after_a_fork_are_free_then():
    packages = ["core", "plugins/burn-cpu", "plugins/burn-torch"]
    makers = [
        str(path.relative_to(ROOT))
        for package in packages
        for path in (ROOT / package / "src").rglob("*.py")
        if "threading.Lock()" in (text := path.read_text("utf-8")) or "threading.RLock()" in text
        if "fork" not in text  # what frees its own
    ]
    assert not makers, "burn.locks.new_lock() is free in a forked process"
