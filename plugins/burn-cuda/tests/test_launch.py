"""What the driver gets of a launch, with a driver that keeps it."""

import ctypes
import importlib.util
import struct
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import burn_cuda
from burn_cuda.array import Array
from burn_cuda.launcher import packed


class Driver:
    """Keeps the arguments of launches, and the devices that threads chose."""

    def __init__(self):
        self.launches, self.chosen = [], []

    def launch(self, function, *numbers):
        *sizes, shared, stream, parameters, extra = numbers
        assert (shared, parameters) == (0, 0)
        words = (ctypes.c_void_p * 5).from_address(extra)
        assert (words[0], words[2], words[4]) == (1, 2, None)
        size = ctypes.c_size_t.from_address(words[3]).value
        self.launches.append((function, sizes, stream, ctypes.string_at(words[1], size)))

    def choose(self, index):
        self.chosen.append((threading.get_ident(), index))


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def module(driver, monkeypatch):
    """The module of launches, on that driver instead of CuPy's."""
    cuda = types.ModuleType("cupy.cuda")
    cuda.driver = types.SimpleNamespace(launchKernel=driver.launch)
    cuda.runtime = types.SimpleNamespace(setDevice=driver.choose)
    cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=7)
    cupy = types.ModuleType("cupy")
    cupy.cuda = cuda
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    path = Path(burn_cuda.__file__).parent / "kernel.py"
    spec = importlib.util.spec_from_file_location("kernel_on_a_driver", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def array(address):
    return Array(None, address, np.dtype(np.float32), (2,), (4,), 2, is_dense=True)


def test_arguments_are_packed_one_after_the_other(module, driver):
    kernel = module.Kernel(types.SimpleNamespace(ptr=99), module.Space(3))
    layout = packed(np.array([4, -5], np.int64))
    for number, address in ((1.5, 1 << 40), (-2.0, 8)):
        kernel((6, 2), (64,), (array(address), number, -3, layout, True))
        expected = struct.pack("=qdq2qq", address, number, -3, 4, -5, 1)
        assert driver.launches.pop() == (99, [6, 2, 1, 64, 1, 1], 7, expected)
    other = module.Kernel(types.SimpleNamespace(ptr=98), module.Space(3))
    other.launch(12, 1 << 40, 0.5)
    expected = struct.pack("=qd", 1 << 40, 0.5)
    assert driver.launches.pop() == (98, [12, 1, 1, 256, 1, 1], 7, expected)


def test_an_argument_of_another_kind_than_before_is_refused(module, driver):
    kernel = module.Kernel(types.SimpleNamespace(ptr=99), module.Space(0))
    kernel.launch(1, 16, 2)
    with pytest.raises(struct.error):
        kernel.launch(1, 16, 2.5)
    with pytest.raises(struct.error):
        kernel.launch(1, 16)
    assert len(driver.launches) == 1


def test_each_thread_has_memory_for_arguments_and_a_context(module, driver):
    space = module.Space(2)
    kernel = module.Kernel(types.SimpleNamespace(ptr=99), space)
    together = threading.Barrier(3, timeout=60)
    buffers = []

    def work():
        kernel.launch(1, 16)
        buffers.append(ctypes.addressof(space.parts[0]))
        together.wait()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join(60)
    assert len(set(buffers)) == 3
    assert len({thread for thread, _ in driver.chosen}) == 3
    assert {index for _, index in driver.chosen} == {2}
