"""NVIDIA's run-time compiler, which needs no GPU: what it says of a kernel."""

import ctypes
import functools
import importlib.util
from pathlib import Path

import kernel_cache

FOR_ALL = (b"--gpu-architecture=compute_90", b"--minimal")
OPTIONS = (*FOR_ALL, b"--std=c++17")


@functools.cache
def library():
    """The library, or None where it is not installed."""
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    package = importlib.util.find_spec("nvidia")
    for folder in [] if package is None else package.submodule_search_locations or []:
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.1*")):
            return ctypes.CDLL(str(path))
    return None


@functools.cache
def version():
    """Version of the library, such as 13.0, with the file it was loaded from."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value} {library()._name}"


def errors(source):
    """What the compiler finds wrong with a kernel; empty where it is right.

    A kernel that it accepted is not compiled again by the same version with the same options.
    """
    accepted = kernel_cache.folder("nvrtc") / kernel_cache.key(version(), str(OPTIONS), source)
    if accepted.exists():
        return ""
    log, _ = _compiled(source, OPTIONS)
    if not log:
        accepted.touch()
    return log


def assembly(source, options):
    """The instructions (PTX) of a kernel that is right."""
    log, text = _compiled(source, (*FOR_ALL, *[option.encode() for option in options]))
    assert not log
    return text


def _compiled(source, options):
    """What the compiler finds wrong, and the instructions."""
    nvrtc = library()
    program = ctypes.c_void_p()
    text = ctypes.c_char_p(source.encode())
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*options)
    )
    read = "ProgramLog" if failed else "PTX"
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{read}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{read}")(program, found)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    words = found.value.decode("utf-8", "replace")
    return (words or "it fails", "") if failed else ("", words)
