"""NVIDIA's run-time compiler, which needs no GPU: what it says of a kernel."""

import ctypes
import functools
import importlib.util
from pathlib import Path

import kernel_cache

OPTIONS = (b"--gpu-architecture=compute_90", b"--std=c++17", b"--minimal")


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
    nvrtc = library()
    accepted = kernel_cache.folder("nvrtc") / kernel_cache.key(version(), str(OPTIONS), source)
    if accepted.exists():
        return ""
    program = ctypes.c_void_p()
    text = ctypes.c_char_p(source.encode())
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if not failed:
        accepted.touch()
    return log.value.decode("utf-8", "replace") if failed else ""
