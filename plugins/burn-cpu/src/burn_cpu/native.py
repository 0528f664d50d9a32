"""Native code: kernels as functions of LLVM, compiled for the processor of this machine.

A function of a kernel has a table of 64-bit words, the addresses of inputs and outputs and the bits
of scalars, and a range of items: ``void f(ptr table, i64 start, i64 stop)``.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
import inspect
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from burn.plugin_api import DiskCache, Formula, Kernel, Serial, new_lock
from burn_cpu.forking import hold_compilers_at_fork
from burn_cpu.llvm_functions import LIBRARY
from burn_cpu.llvm_writer import LlvmWriter
from burn_cpu.threads import product_functions, single_threaded_blas
from burn_cpu.workers import SPINS, Workers

__all__ = [
    "ATTRIBUTES",
    "FLAGS",
    "READABLE",
    "WRITEABLE",
    "Machine",
    "Text",
    "kernel_text",
    "machine",
]

READABLE: Final = 0x101
"""Flags of an array that is in row-major order and aligned, as in NumPy's ``arrayobject.h``."""

WRITEABLE: Final = 0x501
"""Flags of one that may be written, too."""

FLAGS: Final = 0x501

_HEAD: Final = object.__basicsize__
"""Bytes before the members of an object; the last ones are the address of its class."""

_PYTHON_FUNCTIONS: Final = (
    "PyLong_FromLong",
    "PyLong_AsUnsignedLongLongMask",
    "PyFloat_AsDouble",
    "PyErr_Occurred",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyThread_acquire_lock",
    "PyThread_release_lock",
)


class Text(NamedTuple):
    """The function of a kernel.

    Attributes
    ----------
    name : str
        Its name, the same for equal kernels alone.
    definition : str
        Its definition in LLVM's intermediate representation.
    declarations : dict of str to str
        Functions that it calls, by their names.
    items : Formula
        Number of independent items of a launch with some scalars.
    work : Formula
        Nanoseconds that all of them take, about.
    """

    name: str
    definition: str
    declarations: dict[str, str]
    items: Formula
    work: Formula


_MOST_KEPT: Final = 4096
"""Kernels whose code is kept in memory."""

_NAME_LENGTH: Final = 25
"""Letters of the name of a function."""

_MODULE_KERNELS: Final = 32
"""Kernels that are compiled together."""


@functools.lru_cache(maxsize=4096)
def kernel_text(kernel: Kernel, lanes: int) -> Text:
    """The function of a kernel, written once."""
    schedule = Serial(kernel, lanes)
    writer = LlvmWriter(lanes, relaxed=kernel.relaxed)
    writer.scalar_types = tuple(
        ["double" if scalar is float else "i64" for scalar in kernel.scalars]
    )
    schedule.write(writer)
    shared = {index for pair in kernel.overwrites for index in [("out", pair[0]), ("in", pair[1])]}
    pointers = [("in", number) for number in range(len(kernel.inputs))]
    pointers += [("out", number) for number in range(len(kernel.outputs))]
    parameters = [
        f"ptr {'' if pointer in shared else 'noalias '}nocapture %{pointer[0]}{pointer[1]}"
        for pointer in pointers
    ]
    parameters += [f"{type} %s{number}" for number, type in enumerate(writer.scalar_types)]
    types = ["ptr"] * len(pointers) + list(writer.scalar_types)
    body = f"({', '.join(parameters)}, i64 %start, i64 %stop) #0 {{\n{writer.body()}\n}}"
    pool = f"[{len(writer.pool)} x i64] [{', '.join([f'i64 {bits}' for bits in writer.pool])}]"
    digest = hashlib.sha256(f"{pool}{body}".encode()).hexdigest()
    name = f"k{digest[: _NAME_LENGTH - 1]}"
    loads, arguments = [], []
    for number, type in enumerate(types):
        loads += [
            f"  %p{number} = getelementptr i64, ptr %table, i64 {number}",
            f"  %l{number} = load {type}, ptr %p{number}",
        ]
        arguments.append(f"{type} %l{number}")
    arguments += ["i64 %start", "i64 %stop"]
    definition = "\n".join(
        [
            f"@{name}.pool = internal global {pool}, align 64",
            f"define internal void @{name}.body{body.replace('@pool', f'@{name}.pool')}",
            f"define void @{name}(ptr %table, i64 %start, i64 %stop) #0 {{",
            *loads,
            f"  call void @{name}.body({', '.join(arguments)})",
            "  ret void",
            "}",
        ]
    )
    return Text(name, definition, writer.declarations, schedule.items, schedule.work)


def _modules(texts: Sequence[Text]) -> Iterator[str]:
    """The texts of modules: what LLVM takes for a function grows with the size of its module."""
    for start in range(0, len(texts), _MODULE_KERNELS):
        part = texts[start : start + _MODULE_KERNELS]
        declarations: dict[str, str] = {}
        for text in part:
            declarations |= text.declarations
        definitions = [text.definition for text in part]
        yield "\n".join([*declarations.values(), *definitions, ATTRIBUTES])


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL: Final = 0x80
"""``METH_FASTCALL``: the function gets its arguments as an array, and their number."""

ATTRIBUTES: Final = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'


class Machine:
    """The compiler for the processor of this machine, and the code that all programs share.

    Attributes
    ----------
    lanes : int
        Lanes of a vector of float32.
    has_half : bool
        Whether the processor converts from and to float16.
    products : dict of str to int
        Addresses of the functions for products by BLAS, by the types of their elements.
    call : int
        Address of ``burn_call``.
    """

    def __init__(self) -> None:
        hold_compilers_at_fork()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        features = llvm.get_host_cpu_features()
        self._triple = llvm.get_process_triple()
        self.lanes = 16 if features.get("avx512f") else 8
        self.has_half = bool(features.get("f16c")) or self._triple.startswith(("aarch64", "arm64"))
        self._features = features.flatten()
        self._identity = f"{llvm.llvm_version_info} {self._features}"
        self._cache = DiskCache("cpu")
        self._target = self._new_target()
        self.workers = Workers()
        library = _c_library()
        for name in LIBRARY:
            _add_symbol(name, getattr(library, name))
        self._lock = new_lock()
        self._kept: dict[Kernel, tuple[Text, int]] = {}
        self._engine: Any = None
        self._load_runtime()

    def _load_runtime(self) -> None:
        text = (resources.files("burn_cpu") / "kernels" / "runtime.ll").read_text()
        product = (resources.files("burn_cpu") / "kernels" / "product.ll").read_text()
        functions = product_functions()
        bits = 64
        for name in ("sgemm", "dgemm"):
            address, bits = functions.get(name, (1, bits))
            llvm.add_symbol(f"burn_{name}", address)
        for name in _PYTHON_FUNCTIONS:
            _add_symbol(name, getattr(ctypes.pythonapi, name))
        _add_symbol("sched_yield", _yield_function())
        llvm.add_symbol("burn_ndarray", id(np.ndarray))
        llvm.add_symbol("burn_state", ctypes.addressof(self.workers.pointer))
        pause = ""
        if self._triple.startswith("x86_64"):
            pause = 'call void asm sideeffect "pause", ""()'
        elif self._triple.startswith(("aarch64", "arm64")):
            pause = 'call void asm sideeffect "isb", ""()'
        loads = []
        for number, name in ((1, "%b0"), (2, "%c0")):
            loads += [
                f"%r{number} = getelementptr ptr, ptr %table, i64 {number}",
                f"{name} = load ptr, ptr %r{number}",
            ]
        for number in range(3, 20):
            loads += [
                f"%r{number} = getelementptr i64, ptr %table, i64 {number}",
                f"%w{number} = load i64, ptr %r{number}",
            ]
        narrow = "trunc" if bits == 32 else "bitcast"
        loads += [f"%n{number} = {narrow} i64 %w{number} to i{bits}" for number in range(5, 11)]
        loads += ["%ta = trunc i64 %w3 to i32", "%tb = trunc i64 %w4 to i32"]
        template = string.Template(product)
        products = [
            template.substitute(
                name=name,
                float=type,
                int=f"i{bits}",
                narrow=narrow,
                loads="\n  ".join(loads),
            )
            for name, type in (("sgemm", "float"), ("dgemm", "double"))
        ]
        text = string.Template(text).substitute(
            int=f"i{bits}",
            head=_HEAD,
            type=_HEAD - ctypes.sizeof(ctypes.c_void_p),
            spins=SPINS,
            pause=pause,
            products="\n".join(products),
        )
        code = self.object_code(text)
        names = ["burn_call", "burn_worker", "burn_product_sgemm", "burn_product_dgemm"]
        engine, (self.call, worker, *addresses) = self.loaded([code], names)
        engine.detach()  # never freed: workers may run in it when the interpreter ends
        self.workers.prepare(worker)
        self._method = _Method(b"run", self.call, _FASTCALL, None)
        self.products = {
            type: address
            for type, name, address in zip(
                ("float32", "float64"), ("sgemm", "dgemm"), addresses, strict=True
            )
            if name in functions
        }

    def functions(self, kernels: Iterable[Kernel]) -> tuple[Any, dict[Kernel, tuple[Text, int]]]:
        """The functions of kernels: their texts and addresses, valid while an object lives."""
        texts = {kernel: kernel_text(kernel, self.lanes) for kernel in kernels}
        if not texts:
            return None, {}
        by_name = {text.name: text for text in texts.values()}
        codes = [self.object_code(module) for module in _modules(list(by_name.values()))]
        engine, found = self.loaded(codes, by_name)
        addresses = dict(zip(by_name, found, strict=True))
        return engine, {kernel: (text, addresses[text.name]) for kernel, text in texts.items()}

    def kept_functions(
        self, kernels: Iterable[Kernel]
    ) -> tuple[Any, dict[Kernel, tuple[Text, int]]]:
        """The same, of code that is kept for other programs with these kernels."""
        wanted = list(kernels)
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:  # programs that run keep the engine of their code
                self._kept.clear()
                self._engine = None
            for kernel in wanted:
                if kernel not in self._kept:
                    self._kept[kernel] = self._function(kernel)
            return self._engine, {kernel: self._kept[kernel] for kernel in wanted}

    def _function(self, kernel: Kernel) -> tuple[Text, int]:
        """The text and address of a kernel; its text is written if the disk has no code of it."""
        key = f"{self._identity}\n{_sources()}\n{kernel!r}"
        stored = self._cache.get(key)
        if stored is None:
            text = kernel_text(kernel, self.lanes)
            code = self._compiled("".join(_modules([text])))
            self._cache.put(key, text.name.encode() + code)
        else:
            name, code = stored[:_NAME_LENGTH].decode(), stored[_NAME_LENGTH:]
            schedule = Serial(kernel, self.lanes)
            text = Text(name, "", {}, schedule.items, schedule.work)
        return text, self._added(code, text.name)

    def _added(self, code: bytes, name: str) -> int:
        """The address of a function whose code is kept."""
        if self._engine is None:
            self._engine, _ = self.loaded([], [])
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        return int(self._engine.get_function_address(name))

    def entry(self, words: Any) -> Callable[..., int]:
        """A function of Python that runs the steps of some words; see ``kernels/runtime.ll``."""
        function = ctypes.pythonapi.PyCFunction_NewEx
        function.restype = ctypes.py_object
        function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        made: Callable[..., int] = function(ctypes.addressof(self._method), words, None)
        return made

    def parallel(self, run: Callable[..., int], *, uses_blas: bool) -> Callable[..., int]:
        """A function that runs native code with the workers; BLAS then has one thread."""
        ready, single = self.workers.ready, single_threaded_blas

        def run_with_workers(*arguments: Any) -> int:
            ready()
            return run(*arguments)

        def run_with_blas(*arguments: Any) -> int:
            with single():
                ready()
                return run(*arguments)

        return run_with_blas if uses_blas else run_with_workers

    def object_code(self, text: str) -> bytes:
        """The object code of a module: from the disk, or compiled.

        The text has vectors and unrolled loops already, so few passes are left.
        """
        key = f"{self._identity}\n{text}"
        code = self._cache.get(key)
        if code is None:
            code = self._compiled(text)
            self._cache.put(key, code)
        return code

    def _compiled(self, text: str) -> bytes:
        module = llvm.parse_assembly(f'target triple = "{self._triple}"\n{text}')
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        builder = llvm.create_pass_builder(self._target, options)
        passes = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        return bytes(self._target.emit_object(module))

    def loaded(self, codes: Iterable[bytes], names: Iterable[str]) -> tuple[Any, list[int]]:
        """Object code in memory, for as long as the object that is returned, and addresses."""
        # The object takes the target.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self._new_target())
        for code in codes:
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return engine, [engine.get_function_address(name) for name in names]

    def _new_target(self) -> Any:
        return llvm.Target.from_triple(self._triple).create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=self._features, opt=2, jit=True
        )


@functools.cache
def _sources() -> str:
    """What the texts of kernels depend on, beside the kernels: the modules that write them."""
    folders = {Path(__file__).parent, Path(inspect.getfile(Serial)).parent}
    digest = hashlib.sha256()
    for path in sorted([path for folder in folders for path in folder.glob("*.py")]):
        found = path.stat()
        digest.update(f"{path.name} {found.st_size} {found.st_mtime_ns}".encode())
    return digest.hexdigest()


def _add_symbol(name: str, function: Any) -> None:
    llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


def _c_library() -> Any:
    """The library with the functions of math.h."""
    for name in (None, ctypes.util.find_library("m"), "ucrtbase"):
        try:
            library = ctypes.CDLL(name)
        except (OSError, TypeError):
            continue
        if all(hasattr(library, name) for name in LIBRARY):
            return library
    raise OSError("no library with the functions of math.h")


def _yield_function() -> Any:
    """What lets another thread run."""
    if hasattr(ctypes.pythonapi, "sched_yield"):
        return ctypes.pythonapi.sched_yield
    return ctypes.CDLL("kernel32").SwitchToThread


def _check_layout() -> None:
    """Raise unless arrays are in memory what native code takes them for."""
    for array in (np.zeros((3, 5), np.float32), np.zeros((4, 6))[::2, ::3], np.zeros(())):
        start = id(array) + _HEAD
        shape = ctypes.c_void_p.from_address(start + 16).value or 0
        found = (
            ctypes.c_void_p.from_address(start - 8).value,
            ctypes.c_void_p.from_address(start).value,
            ctypes.c_int.from_address(start + 8).value,
            [ctypes.c_ssize_t.from_address(shape + 8 * axis).value for axis in range(array.ndim)],
            ctypes.c_int.from_address(start + 48).value & FLAGS,
        )
        flags = (array.flags.c_contiguous, array.flags.aligned, array.flags.writeable)
        bits = sum(bit for bit, is_set in zip((1, 0x100, 0x400), flags, strict=True) if is_set)
        if found != (id(np.ndarray), array.ctypes.data, array.ndim, list(array.shape), bits):
            raise ImportError("arrays of this version of NumPy have an unknown layout")


@functools.cache
def machine() -> Machine:
    """The compiler, made once."""
    _check_layout()
    return Machine()
