"""Native code: kernels as functions of LLVM, compiled for the processor of this machine.

A function of a kernel has a table of 64-bit words, the addresses of inputs and outputs and the bits
of scalars, and a range of items: ``void f(ptr table, i64 start, i64 stop)``.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
from typing import Any, Final, NamedTuple

import llvmlite.binding as llvm

from burn.plugin_api import Kernel, Serial
from burn_cpu.llvm_functions import LIBRARY
from burn_cpu.llvm_writer import LlvmWriter

__all__ = ["Machine", "Text", "kernel_text", "machine"]

_VERSION: Final = 1
"""Part of the names of object code: to be changed when the text for equal kernels changes."""


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
    items : int
        Number of independent items.
    work : float
        Nanoseconds that all items take, about.
    """

    name: str
    definition: str
    declarations: dict[str, str]
    items: int
    work: float


@functools.lru_cache(maxsize=4096)
def kernel_text(kernel: Kernel, lanes: int) -> Text:
    """The function of a kernel, written once."""
    schedule = Serial(kernel, lanes)
    writer = LlvmWriter(lanes)
    writer.scalar_types = tuple(["double" if one is float else "i64" for one in kernel.scalars])
    schedule.write(writer)
    shared = {index for pair in kernel.overwrites for index in [("out", pair[0]), ("in", pair[1])]}
    pointers = [("in", number) for number in range(len(kernel.inputs))]
    pointers += [("out", number) for number in range(len(kernel.outputs))]
    parameters = [
        f"ptr {'' if one in shared else 'noalias '}nocapture %{one[0]}{one[1]}" for one in pointers
    ]
    parameters += [f"{type} %s{number}" for number, type in enumerate(writer.scalar_types)]
    types = ["ptr"] * len(pointers) + list(writer.scalar_types)
    body = f"({', '.join(parameters)}, i64 %start, i64 %stop) #0 {{\n{writer.body()}\n}}"
    name = "k" + hashlib.sha256(body.encode()).hexdigest()[:24]
    loads, arguments = [], []
    for number, type in enumerate(types):
        loads += [
            f"  %p{number} = getelementptr i64, ptr %table, i64 {number}",
            f"  %l{number} = load {type}, ptr %p{number}",
        ]
        arguments.append(f"{type} %l{number}")
    arguments += ["i64 %start", "i64 %stop"]
    definition = "\n".join([
        f"define internal void @{name}.body{body}",
        f"define void @{name}(ptr %table, i64 %start, i64 %stop) #0 {{",
        *loads,
        f"  call void @{name}.body({', '.join(arguments)})",
        "  ret void",
        "}",
    ])
    return Text(name, definition, writer.declarations, schedule.items, schedule.work)


class Machine:
    """The compiler for the processor of this machine."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features()
        self.lanes = 16 if features.get("avx512f") else 8
        triple = llvm.get_process_triple()
        self.has_half = bool(features.get("f16c")) or triple.startswith(("aarch64", "arm64"))
        self.identity = f"{_VERSION} {llvm.llvm_version_info} {llvm.get_host_cpu_name()} "
        self.identity += features.flatten()
        self.target = llvm.Target.from_triple(triple).create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2, jit=True
        )
        self.header = f'target triple = "{triple}"\n'
        self.engines: list[Any] = []
        library = _c_library()
        for name in LIBRARY:
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)

    def object_code(self, text: str) -> bytes:
        """Compile a module to object code."""
        module = llvm.parse_assembly(self.header + text)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        builder = llvm.create_pass_builder(self.target, options)
        builder.getModulePassManager().run(module, builder)
        return self.target.emit_object(module)

    def addresses(self, code: bytes, names: list[str]) -> list[int]:
        """Load object code for as long as the process runs."""
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(self.header), self.target)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self.engines.append(engine)
        return [engine.get_function_address(name) for name in names]


def _c_library() -> Any:
    """The library with the functions of math.h."""
    for name in (None, ctypes.util.find_library("m"), "ucrtbase"):
        try:
            library = ctypes.CDLL(name)
        except (OSError, TypeError):
            continue
        if all(hasattr(library, one) for one in LIBRARY):
            return library
    raise OSError("no library with the functions of math.h")


@functools.cache
def machine() -> Machine:
    """The compiler, made once."""
    return Machine()
