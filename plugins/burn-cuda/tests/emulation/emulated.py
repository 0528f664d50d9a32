"""A runtime without a GPU: memory is that of the host, for which kernels are compiled, too.

It runs the kernels and the Python of the plugin, so that most mistakes show on machines without a
GPU. It does not emulate races, alignment or the libraries of CUDA.
"""

import contextlib
import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import kernel_cache
import ml_dtypes
import numpy as np

from burn_cuda.array import Array, dense_layout
from burn_cuda.kernels import THREADS
from burn_cuda.launcher import Packed

FOLDER = Path(__file__).parent
HEADER = (FOLDER / "device.h").read_text(encoding="utf-8")
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
CACHE = kernel_cache.folder("emulated")
OPTIONS = (
    *("-std=c++17", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off"),
    # Shared memory of a template is a kernel's own, and not that of all libraries.
    *("-fno-gnu-unique", "-w"),
)
SIGNATURE = re.compile(
    r'(?:extern "C" __global__ void (?:__launch_bounds__\([\w, ]+\)\s+)?|KERNEL\(\w+\)\s+void\s+)'
    r"(\w+)\(([^{]*)\) \{"
)
QUALIFIERS = re.compile(r"\w+$|__restrict__|\brestrict\b|\bGLOBAL\b|\bvolatile\b")


_devices = {}
"""Device of the memory at each address."""


class Memory:
    """Memory of an emulated device; that of a graph has no bytes here."""

    def __init__(self, device_id, bytes_, owner=None):
        self.device_id = device_id
        self.owner = owner
        self.bytes = bytes_
        if bytes_ is not None:
            _devices[bytes_.ctypes.data] = device_id

    def __del__(self):
        if self.bytes is not None:
            _devices.pop(self.bytes.ctypes.data, None)


class _Interface:
    """What NumPy reads of an array."""

    def __init__(self, x):
        self.array = x
        self.__array_interface__ = {
            "version": 3,
            "data": (x.address, False),
            "shape": x.shape,
            "strides": x.strides,
            "typestr": f"|V{x.dtype.itemsize}",
        }


def host(x):
    """An array of NumPy in the memory of an array, which it keeps."""
    return np.asarray(_Interface(x)).view(x.dtype) if x.size else np.empty(x.shape, x.dtype)


def _alias(x):
    """The same memory, which it does not keep."""
    if not x.size:
        return np.empty(x.shape, x.dtype)
    cell = (ctypes.c_char * x.dtype.itemsize).from_address(x.address)
    first = np.frombuffer(cell, np.uint8).view(x.dtype)
    return np.lib.stride_tricks.as_strided(first, x.shape, x.strides)


_to_cupy = Array.to_cupy


def _exported(x):
    root = x.memory if isinstance(x.memory, Array) else x
    return host(x) if isinstance(root.memory, Memory) else _to_cupy(x)


Array.to_cupy = _exported


_launching = threading.Lock()
_thread = threading.local()


def current_device():
    """Index of the current device of this thread."""
    return getattr(_thread, "index", 0)


class _Stream(contextlib.nullcontext):
    """A stream; all are one."""

    def __eq__(self, other):
        return isinstance(other, _Stream)

    def __hash__(self):
        return 0

    def wait_event(self, event):
        assert event is not None


class Runtime:
    """An emulated device.

    It raises for calls with its arrays while another device is the current one.
    """

    capability = (9, 0)
    multiprocessors = 2
    cudnn = None
    tf32 = False
    winograd = True
    memory = 1 << 20  # so little that convolutions go in several parts
    max_argument_bytes = 8192

    def __init__(self, index):
        self.index = index
        self.received = []
        self.flag = np.zeros(3, np.int64)
        self.flag_address = self.flag.ctypes.data
        self.sources = []
        self.contracts = {}
        self.recorded = None
        self.pool = None

    @staticmethod
    def is_dense(x):
        return x.is_dense

    @contextlib.contextmanager
    def current(self):
        before = current_device()
        _thread.index = self.index
        try:
            yield
        finally:
            _thread.index = before

    def is_current(self):
        return current_device() == self.index

    def check(self, *arrays):
        assert self.is_current(), f"device {current_device()} is the current one, not {self.index}"
        for array in arrays:
            assert array.device_id == self.index, f"device {self.index} meets {array.device_id}"

    def own(self, values):
        """A copy of an array, as one of this device."""
        result = self._new(values.shape, values.dtype, None)
        np.copyto(_alias(result), values)
        return result

    def _new(self, shape, dtype, pool):
        assert type(shape) is tuple
        assert isinstance(dtype, np.dtype)
        strides, size = dense_layout(shape, dtype.itemsize)
        memory = np.full(max(size * dtype.itemsize, 1), 0x5A, np.uint8)  # no op may rely on zeros
        address = memory.ctypes.data
        if pool is not None:
            pool.append(memory)
            memory = None
        return Array(Memory(self.index, memory), address, dtype, shape, strides, size, True)

    def empty(self, shape, dtype):
        self.check()
        return self._new(shape, dtype, self.pool)

    def view(self, x, shape, strides):
        return x.strided(tuple(shape), tuple(strides))

    def address(self, x):
        self.check(x)
        return x.address

    def references(self, x):
        if x.memory.__class__ is Array or x.memory.owner is not None:
            return ()
        return sys.getrefcount(x), sys.getrefcount(x.memory)

    @property
    def is_capturing(self):
        return self.recorded is not None

    def stream(self):
        return _Stream()

    def other_streams(self, count):
        return [_Stream() for _ in range(count)]

    def record(self):
        return len(self.recorded)

    def tuned_products(self):
        return contextlib.nullcontext()

    def perform(self, work):
        """Do what a launch does, or record it."""
        if self.recorded is None:
            work()
        else:
            self.recorded.append(work)

    def capture(self, run):
        """What a function launches, with its memory; both have addresses alone."""
        assert self.is_current()
        self.recorded, self.pool = recorded, pool = [], []
        try:
            result = run()
        finally:
            self.recorded = self.pool = None

        def launch():
            assert self.is_current()
            assert pool is not None
            for function in recorded:
                function()

        return launch, result

    def refuse(self):
        if self.recorded is not None:
            raise RuntimeError("a copy to or from the host while launches are captured")

    def compile(self, source, name, *, contracts=True):
        self.sources.append((source, name))
        self.contracts[source] = contracts
        return Kernel(self, compiled(source, name))

    def upload(self, values):
        self.check()
        self.refuse()
        return self.own(np.array(values, order="C"))

    def receive(self, x, source):
        assert x.device_id == source.index
        assert x.is_dense
        self.received.append(x.shape)
        return self.own(_alias(x))

    def pinned(self, values):
        return values

    def owner(self, x):
        return x.device_id

    def adopted(self, x):
        """An array of NumPy stands for one of CuPy."""
        if type(x) is not np.ndarray:
            return x if isinstance(x, Array) else None
        dense = x.flags.c_contiguous
        memory = Memory(self.index, None, owner=x)
        return Array(memory, x.ctypes.data, x.dtype, x.shape, x.strides, x.size, dense)

    @contextlib.contextmanager
    def persistent(self):
        with self.current():
            yield

    def consumer_stream(self):
        return 1

    def download(self, x):
        self.check(x)
        self.refuse()
        return np.array(_alias(x))

    def synchronize(self):
        pass

    def zero(self, x):
        self.check(x)
        target = _alias(x)
        self.perform(lambda: target.fill(0))

    def copy(self, x):
        self.check(x)
        result = self.empty(x.shape, x.dtype)
        source, target = _alias(x), _alias(result)
        self.perform(lambda: np.copyto(target, source))
        return result

    def cleanup(self):
        pass

    def argsort_rows(self, keys):
        self.check(keys)
        self.refuse()
        return self.own(np.argsort(_alias(keys), axis=-1, kind="stable"))

    def sort_keys(self, keys):
        self.check(keys)
        self.refuse()
        _alias(keys).sort()

    def gemm(
        self,
        a,
        b,
        out,
        shape,
        *,
        transposed=(False, False),
        leading=None,
        strides=(0, 0, 0),
        batch=1,
        bias=None,
    ):
        self.check(a, b, out)
        if bias is not None:
            return False
        rows, columns, terms = shape
        if leading is None:
            leading = (rows if transposed[0] else terms, terms if transposed[1] else columns)
        wide = a.dtype if a.dtype.itemsize >= 4 else np.dtype(np.float32)
        item = a.dtype.itemsize

        def matrices(x, rows, columns, is_transposed, step, distance):
            inner = (item, step * item) if is_transposed else (step * item, item)
            return np.lib.stride_tricks.as_strided(
                x, (batch, rows, columns), (distance * item, *inner)
            ).astype(wide)

        a, b, out = _alias(a), _alias(b), _alias(out)

        def multiply():
            left = matrices(a, rows, terms, transposed[0], leading[0], strides[0])
            right = matrices(b, terms, columns, transposed[1], leading[1], strides[1])
            target = np.lib.stride_tricks.as_strided(
                out,
                (batch, rows, columns),
                (strides[2] * out.itemsize, columns * out.itemsize, out.itemsize),
            )
            with np.errstate(all="ignore"):
                target[...] = (left @ right).astype(out.dtype)

        self.perform(multiply)
        return True

    def multiply_codes(self, a, b, out, shape, *, scales=None, bias=None):
        self.check(a, b, out, *(scales or ()))
        rows, _, terms = shape
        is_float = a.dtype == np.uint8
        assert a.is_dense
        assert b.is_dense
        assert is_float or rows % 16 == 0
        codes = [_alias(tensor).reshape(-1, terms) for tensor in (a, b)]
        factors = [_alias(scale).reshape(-1, 1) for scale in scales or ()]
        target = _alias(out)
        vector = None if bias is None else _alias(bias)

        def multiply():
            if is_float:
                wide = [code.view(ml_dtypes.float8_e4m3fn).astype(np.float64) for code in codes]
            else:
                wide = [code.astype(np.int32) for code in codes]
            if factors:
                wide = [item * factor for item, factor in zip(wide, factors, strict=True)]
            product = wide[0] @ wide[1].T
            if vector is not None:
                product = product + vector.astype(np.float64)
            target[...] = product.astype(target.dtype)

        self.perform(multiply)
        return True


class Kernel:
    """A kernel of a device, which checks its arrays."""

    def __init__(self, runtime, prepare):
        self._runtime = runtime
        self._prepare = prepare

    def early(self, grid, block, arguments, shared=0):
        self(grid, block, arguments, shared)

    def __call__(self, grid, block, arguments, shared=0):
        self._runtime.check(*[argument for argument in arguments if isinstance(argument, Array)])
        self._runtime.perform(self._prepare(grid, block, arguments))

    def launch(self, blocks, *words):
        self._runtime.check()
        index = self._runtime.index
        for word in words:
            assert _devices.get(word, index) == index, f"device {index} meets an array of another"
        self._runtime.perform(self._prepare((blocks,), (THREADS,), words))


def compiled(source, name):
    """A kernel as a function ``prepare(grid, block, arguments)``, which returns the launch."""
    library = CACHE / f"{kernel_cache.key(*OPTIONS, HEADER, source, name)}.so"
    parameters = next(text for found, text in SIGNATURE.findall(source) if found == name)
    kinds = [QUALIFIERS.sub("", text.strip()).strip() for text in _split(parameters)]
    if not library.exists():
        _build(_program(source, name, kinds), library, "-O0")
    fibers()
    launch = ctypes.CDLL(str(library)).launch

    def prepare(grid, block, arguments):
        assert len(arguments) == len(kinds), (name, len(arguments), kinds)
        cells = [_cell(value, kind) for value, kind in zip(arguments, kinds, strict=True)]
        pointers = (ctypes.c_void_p * len(cells))(*[ctypes.addressof(cell) for cell in cells])

        def run():
            with _launching:
                launch(_three(grid), _three(block), pointers)

        run.cells = cells  # the pointers do not keep them alive
        return run

    return prepare


def _split(parameters):
    return [word for word in " ".join(parameters.split()).split(",") if word.strip()]


def _three(numbers):
    return (ctypes.c_uint * 3)(*numbers, *[1] * (3 - len(numbers)))


def _cell(value, kind):
    """The ctypes value of an argument."""
    if isinstance(value, Packed):
        return (ctypes.c_char * len(value)).from_buffer_copy(value)
    if isinstance(value, Array):
        assert kind.endswith("*"), kind
        return ctypes.c_void_p(value.address)
    if isinstance(value, float):
        assert kind.replace("const ", "") == "double", (kind, value)
        return ctypes.c_double(value)
    assert type(value) is int, (kind, type(value))
    assert kind.endswith("*") or kind.replace("const ", "") in ("long long", "int64"), kind
    return ctypes.c_longlong(value)


@functools.cache
def fibers():
    """The library that runs blocks and threads, loaded so that kernels find it."""
    source = FOLDER / "fibers.cpp"
    text = source.read_text(encoding="utf-8")
    library = CACHE / f"fibers-{kernel_cache.key(*OPTIONS, text)}.so"
    if not library.exists():
        _build(text, library, "-O1")
    return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def _build(text, library, *options):
    """Compile in a new folder: other threads and processes may build the same library."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        path, made = Path(folder) / "source.cpp", Path(folder) / "made.so"
        path.write_text(text, encoding="utf-8")
        command = [COMPILER, *OPTIONS, *options, "-o", str(made), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{library.name} does not compile:\n{done.stderr[:3000]}")
        made.replace(library)


def _program(source, name, kinds):
    """The source of a kernel and of the function that launches it."""
    own = source.replace("#define BARRIER __syncthreads()", "")  # of the header of shared sources
    waits = any(name in own for name in ("__sync", "__shfl", "BARRIER"))
    values = ", ".join(
        [f"*({kind.replace('const ', '')}*)arguments[{i}]" for i, kind in enumerate(kinds)]
    )
    return f"""{HEADER}
{source}
static void** arguments;
extern "C" void launch(const unsigned* grid, const unsigned* block, void** given) {{
    arguments = given;
    run_grid(grid, block, {str(waits).lower()}, [] {{ {name}({values}); }});
}}
"""
