"""The OpenCL loader through ctypes: which devices there are, in milliseconds, for the probe."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["DEVICE_TYPES", "FoundDevice", "found_devices", "type_name"]

DEVICE_TYPES: Final = ("gpu", "cpu", "accelerator", "custom")
"""Numbered as burn's other backends for compute runtimes number them."""

_TYPE_BITS: Final = {1 << 2: "gpu", 1 << 1: "cpu", 1 << 3: "accelerator", 1 << 4: "custom"}
_ALL_TYPES: Final = 0xFFFFFFFF
_PLATFORM_NAME: Final = 0x0902
_DEVICE_TYPE: Final = 0x1000
_DEVICE_MEMORY: Final = 0x101F
_DEVICE_AVAILABLE: Final = 0x1027
_DEVICE_NAME: Final = 0x102B
_DRIVER_VERSION: Final = 0x102D
_DEVICE_EXTENSIONS: Final = 0x1030
_UNIQUE: Final = (
    ("cl_khr_device_uuid", 0x106A, 16),
    ("cl_khr_pci_bus_info", 0x410F, 16),
)
"""What tells one piece of hardware from all others, by the extension that knows it."""

_LIBRARIES: Final = {
    "darwin": ("/System/Library/Frameworks/OpenCL.framework/OpenCL",),
    "win32": ("OpenCL.dll",),
}


class FoundDevice(NamedTuple):
    """What the loader tells of a device.

    Attributes
    ----------
    type, name, platform, version : str
        Its type, and the names and the version that it gives.
    memory : int
        Bytes of its memory.
    has_fp64 : bool
        Whether it computes in float64.
    unique : str
        What only this piece of hardware has; "" where the driver does not say.
    """

    type: str
    name: str
    platform: str
    version: str
    memory: int
    has_fp64: bool
    unique: str = ""

    def is_also(self, other: FoundDevice) -> bool:
        """Whether it is the hardware of a device that another platform offers."""
        if self.platform == other.platform or self.type != other.type:
            return False
        if self.unique and other.unique:
            return self.unique == other.unique
        # A machine has one kind of processors, whatever platforms call it.
        return self.type == "cpu" or self.name == other.name


def type_name(bits: int) -> str:
    """Device type of burn for the bit field of OpenCL, of which one is the default's."""
    return next((name for bit, name in _TYPE_BITS.items() if bits & bit), "custom")


def found_devices() -> list[FoundDevice]:
    """All devices that are available, platform by platform; none where there is no loader."""
    library = _library()
    if library is None:
        return []
    return [
        device
        for platform in _handles(library.clGetPlatformIDs)
        for device in _devices_of(library, platform)
    ]


def _library() -> Any | None:
    """The loader of OpenCL drivers that PyOpenCL uses: the one in its package, or the system's.

    Two loaders need not find the same drivers: what another one lists PyOpenCL may not open.
    """
    names = []
    spec = find_spec("pyopencl")
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        folders = (package / ".libs", package / ".dylibs", package.with_name("pyopencl.libs"))
        names = [str(path) for folder in folders for path in sorted(folder.glob("*OpenCL*"))]
        # As PyOpenCL does, whatever it was: its loader looks for drivers there, and crashes
        # without it. A parent process with another PyOpenCL may have left its own.
        os.environ["PYOPENCL_HOME"] = str(package)
    for name in (*names, *_LIBRARIES.get(sys.platform, ("libOpenCL.so.1", "libOpenCL.so"))):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _devices_of(library: Any, platform: int) -> list[FoundDevice]:
    kind = ctypes.c_uint64(_ALL_TYPES)
    handle = ctypes.c_void_p(platform)
    name = _text(library.clGetPlatformInfo, handle, _PLATFORM_NAME)
    found = []
    for number in _handles(library.clGetDeviceIDs, handle, kind):
        device = ctypes.c_void_p(number)
        ask = library.clGetDeviceInfo
        if not _number(ask, device, _DEVICE_AVAILABLE, ctypes.c_uint32):
            continue
        extensions = _text(ask, device, _DEVICE_EXTENSIONS)
        found.append(
            FoundDevice(
                type=type_name(_number(ask, device, _DEVICE_TYPE, ctypes.c_uint64)),
                name=_text(ask, device, _DEVICE_NAME),
                platform=name,
                version=_text(ask, device, _DRIVER_VERSION),
                memory=_number(ask, device, _DEVICE_MEMORY, ctypes.c_uint64),
                has_fp64="cl_khr_fp64" in extensions.split(),
                unique=_unique(ask, device, extensions.split()),
            )
        )
    return found


def _handles(function: Any, *arguments: Any) -> list[int]:
    """What a function lists: called for the number, and again for the handles."""
    count = ctypes.c_uint32(0)
    if function(*arguments, ctypes.c_uint32(0), None, ctypes.byref(count)) or not count.value:
        return []
    handles = (ctypes.c_void_p * count.value)()
    if function(*arguments, count, handles, None):
        return []
    return [handle for handle in handles if handle]


def _text(function: Any, handle: Any, what: int) -> str:
    size = ctypes.c_size_t(0)
    if function(handle, ctypes.c_uint32(what), ctypes.c_size_t(0), None, ctypes.byref(size)):
        return ""
    text = ctypes.create_string_buffer(size.value)
    if function(handle, ctypes.c_uint32(what), size, text, None):
        return ""
    return " ".join(text.value.decode(errors="replace").split())


def _unique(function: Any, device: Any, extensions: list[str]) -> str:
    for extension, what, length in _UNIQUE:
        if extension in extensions:
            value = ctypes.create_string_buffer(length)
            size = ctypes.c_size_t(length)
            if not function(device, ctypes.c_uint32(what), size, value, None) and any(value.raw):
                return f"{extension} {value.raw.hex()}"
    return ""


def _number(function: Any, handle: Any, what: int, kind: type[Any]) -> int:
    value = kind(0)
    if function(
        handle, ctypes.c_uint32(what), ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(value),
        None,
    ):  # fmt: skip
        return 0
    return int(value.value)
