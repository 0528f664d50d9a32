"""Sources of the kernels: C++ for the device, put together for the types that an op meets."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Final

from burn.plugin_api import DType

__all__ = ["C_TYPES", "THREADS", "WORDS", "c_type", "computed_type", "shared", "source"]

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
"""What the kernels call the dtypes."""


WORDS: Final = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "uint64",
    16: "LongWord",
}
"""Types in which elements are only moved, by their bytes."""


def c_type(dtype: DType) -> str:
    """Type of the elements of a dtype."""
    return C_TYPES[dtype.name]


def computed_type(dtype: DType) -> str:
    """Type in which elements of a dtype are computed."""
    return "float" if dtype.is_float and dtype.itemsize < 4 else c_type(dtype)


_INCLUDE: Final = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)


@functools.cache
def _text(name: str) -> str:
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: _text(found[1]), text)


def source(name: str, **definitions: str | int) -> str:
    """Text of a kernel file after the shared part, with macros defined for this use."""
    macros = "".join([f"#define {macro} {value}\n" for macro, value in definitions.items()])
    has_complex = any(str(value).startswith("complex") for value in definitions.values())
    return f"{shared(has_complex=has_complex)}\n{macros}{_text(name)}"


def shared(*, has_complex: bool = False) -> str:
    """The part that all kernels have before their own, and those of complex numbers."""
    parts = ["common.cuh", "functions.cuh"] + ["complex.cuh"] * has_complex
    return "\n".join([_text(part) for part in parts])
