"""What burn-cpu compiles is kept in the cache of core alone, and made again where it is damaged."""

import importlib.util
import sys

import numpy as np
import pytest

from burn.plugin_api import DiskCache

pytest.importorskip("numba")
pytest.importorskip("llvmlite")

from burn_cpu import compiled_cache, native

_KERNEL = """
from burn_cpu.compiled_base import compiled

@compiled
def total(x):
    result = 0.0
    for i in range(len(x)):
        result += x[i]
    return result
"""

_FUNCTION = "define i64 @three() {\n  ret i64 3\n}"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BURN_CACHE", str(tmp_path / "cache"))
    found = DiskCache("unit")
    monkeypatch.setattr(compiled_cache, "_cache", found)
    monkeypatch.setattr(native.machine(), "_cache", found)
    return found


@pytest.fixture
def kernel(tmp_path):
    """A function that imports a kernel anew, from a module beside which there is nothing."""
    path = tmp_path / "sources/kernels_of_a_test.py"
    path.parent.mkdir()
    path.write_text(_KERNEL)

    def imported():
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module  # as numba needs to unpickle what it compiled
        spec.loader.exec_module(module)
        return module.total

    yield imported
    sys.modules.pop(path.stem, None)


def by_numba(kernel):
    """Whether a kernel was compiled, not loaded."""
    total = kernel()
    assert total(np.ones(5, np.float32)) == 5.0
    return sum(total.stats.cache_hits.values()) == 0


def by_llvm(monkeypatch):
    """Whether a function was compiled, not loaded."""
    written = []
    machine = native.machine()
    with monkeypatch.context() as patch:
        patch.setattr(machine._cache, "put", lambda key, value: written.append((key, value)))
        code = machine.object_code(_FUNCTION)
    for key, value in written:
        machine._cache.put(key, value)
    _, (address,) = machine.loaded([code], ["three"])
    assert address
    return bool(written)


def _cut(stored, at):
    return stored[:at]


def _flipped(stored, at):
    return stored[:at] + bytes([stored[at] ^ 0x10]) + stored[at + 1 :]


def times(factor):
    """A kernel that has a number of the function around it."""

    def kernel(x):
        return factor * x

    return kernel


def test_kernels_that_differ_in_what_is_around_them_are_kept_apart(cache):
    from burn_cpu.compiled_base import compiled

    for _ in range(2):  # compiled, then loaded
        assert [compiled(times(factor))(1.0) for factor in (2, 3, 5)] == [2.0, 3.0, 5.0]


@pytest.mark.parametrize("compiler", ["numba", "llvmlite"])
def test_damaged_code_is_compiled_again_and_replaced(cache, kernel, monkeypatch, compiler):
    def compiles():
        return by_numba(kernel) if compiler == "numba" else by_llvm(monkeypatch)

    assert compiles()
    assert not compiles()
    (entry,) = cache.folder.glob("*.bin")
    whole = entry.read_bytes()
    for damage in (_cut, _flipped):
        for at in (0, 40, len(whole) // 2, len(whole) - 1):
            entry.write_bytes(damage(whole, at))
            assert compiles(), (damage, at)
    assert not compiles()


def test_code_that_numba_does_not_take_is_compiled_again(cache, kernel, monkeypatch):
    assert by_numba(kernel)
    keys = []
    get = cache.get
    monkeypatch.setattr(cache, "get", lambda key: keys.append(key) or get(key))
    assert not by_numba(kernel)
    monkeypatch.undo()
    for content in (b"", b"no pickle", b"N."):
        cache.put(keys[0], content)
        monkeypatch.setattr(compiled_cache, "_cache", cache)
        assert by_numba(kernel)


def test_nothing_is_written_where_nothing_shall_be_kept(tmp_path, kernel, cache, monkeypatch):
    monkeypatch.setenv("BURN_CACHE", "0")
    for name in (compiled_cache, native.machine()):
        monkeypatch.setattr(name, "_cache", DiskCache("unit"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert by_numba(kernel)
    assert by_numba(kernel)
    assert by_llvm(monkeypatch)
    assert [path.name for path in tmp_path.rglob("*")] == ["sources", "kernels_of_a_test.py"]
