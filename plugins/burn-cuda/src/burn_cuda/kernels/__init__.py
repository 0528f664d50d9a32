"""Sources of the kernels: C++ for the device, with macros for the dtypes of an op."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

from burn.plugin_api import DType, shared_source

__all__ = [
    "C_TYPES",
    "THREADS",
    "WORDS",
    "c_type",
    "compiler_options",
    "computed_type",
    "core_source",
    "shared",
    "source",
    "text",
]

THREADS: Final = 256
"""Threads of a block, in all kernels."""

C_TYPES: Final = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "complex64",
    "complex128": "complex128",
}
"""C++ types of the elements, by the name of the dtype."""

WORDS: Final = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "uint64",
    16: "Word128",
}
"""C++ types of kernels that move elements without computing, by the size in bytes."""


def compiler_options(*, contracts: bool) -> tuple[str, ...]:
    """Options of NVRTC, which otherwise makes fused multiply-adds of products and sums."""
    return ("--std=c++17",) if contracts else ("--std=c++17", "--fmad=false")


def c_type(dtype: DType) -> str:
    """C++ type of the elements of a dtype."""
    return C_TYPES[dtype.name]


def computed_type(dtype: DType) -> str:
    """C++ type in which kernels compute elements of a dtype."""
    return "float" if dtype.is_float and dtype.itemsize < 4 else c_type(dtype)


_INCLUDE: Final = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)


@functools.cache
def text(name: str) -> str:
    """The text of a file, with those that it includes."""
    found = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda line: text(line[1]), found)


def source(name: str, **definitions: str | int) -> str:
    """The shared sources, macros, and the text of a kernel file."""
    macros = "".join([f"#define {macro} {value}\n" for macro, value in definitions.items()])
    has_complex = any(str(value).startswith("complex") for value in definitions.values())
    return f"{shared(has_complex=has_complex)}\n{macros}{text(name)}"


_USES_FOUR: Final = re.compile(r"_four\b|_FOUR\b")
"""What a shared source of core has that accesses four elements at once."""

_C_TYPES_OF_KINDS: Final = {"long": "int64", "ulong": "uint64"}


def core_source(file: str, kind: str, definitions: Mapping[str, str | int]) -> str:
    """A shared source of core after the header of this dialect.

    Parameters
    ----------
    file : str
        The source.
    kind : str
        What `c_type_of` returns: the type that the kernel computes in.
    definitions : dict
        Macros.
    """
    macros: dict[str, str | int] = {
        "C": _C_TYPES_OF_KINDS.get(kind, kind),
        "KIND": kind,
        "IS_CPU": 0,
        "IS_DOUBLE": int(kind == "double"),
        "IS_FLOATING": int(kind in ("float", "double")),
        "IS_SIGNED": int(kind != "ulong"),
        **definitions,
    }
    lines = "".join([f"#define {macro} {value}\n" for macro, value in macros.items()])
    body = shared_source(file)
    parts = [text("generated.cuh"), text("dialect.cuh"), lines, shared_source("common.c")]
    if _USES_FOUR.search(body):
        parts += [text("four.cuh"), shared_source("four.c")]
    return "\n".join([*parts, body])


def shared(*, has_complex: bool = False) -> str:
    """The sources that precede every kernel; those of complex numbers on request."""
    parts = ["common.cuh", "functions.cuh"] + ["complex.cuh"] * has_complex
    return "\n".join([text(part) for part in parts])
