"""The ICD loader of OpenCL through ctypes: lists devices in milliseconds, for the probe."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from burn_opencl.library_caches import check_library_caches

__all__ = ["DEVICE_TYPES", "FoundDevice", "found_devices", "type_name"]

DEVICE_TYPES: Final = ("gpu", "cpu", "accelerator", "custom")
"""In the order of the type ids, which burn's backends for compute runtimes share."""

_TYPE_BITS: Final = {1 << 2: "gpu", 1 << 1: "cpu", 1 << 3: "accelerator", 1 << 4: "custom"}
_ALL_TYPES: Final = 0xFFFFFFFF
_PLATFORM_NAME: Final = 0x0902
_DEVICE_TYPE: Final = 0x1000
_DEVICE_MEMORY: Final = 0x101F
_DEVICE_AVAILABLE: Final = 0x1027
_DEVICE_NAME: Final = 0x102B
_DRIVER_VERSION: Final = 0x102D
_DEVICE_EXTENSIONS: Final = 0x1030
_HARDWARE_IDS: Final = (
    ("cl_khr_device_uuid", 0x106A, 16),
    ("cl_khr_pci_bus_info", 0x410F, 16),
)
"""Extensions that identify hardware: name, info, bytes of the value."""

_LIBRARIES: Final = {
    "darwin": ("/System/Library/Frameworks/OpenCL.framework/OpenCL",),
    "win32": ("OpenCL.dll",),
}


class FoundDevice(NamedTuple):
    """A device, as the loader lists it.

    Attributes
    ----------
    type, name, platform, version : str
        Its type, its name and that of its platform, and the version of its driver.
    memory : int
        Bytes of its memory.
    has_fp64 : bool
        Whether it computes in float64.
    unique : str
        Identifies the hardware; "" where the driver does not.
    """

    type: str
    name: str
    platform: str
    version: str
    memory: int
    has_fp64: bool
    unique: str = ""

    def is_also(self, other: FoundDevice) -> bool:
        """Whether it is the same hardware as a device of another platform."""
        if self.platform == other.platform or self.type != other.type:
            return False
        if self.unique and other.unique:
            return self.unique == other.unique
        # A machine has CPUs of one kind, under whatever names.
        return self.type == "cpu" or self.name == other.name


def type_name(bits: int) -> str:
    """Device type for the bit field of OpenCL, in which the default device has a bit too."""
    return next((name for bit, name in _TYPE_BITS.items() if bits & bit), "custom")


def found_devices() -> list[FoundDevice]:
    """All available devices, platform by platform; none if there is no loader."""
    check_library_caches()
    library = _library()
    if library is None:
        return []
    return [
        device
        for platform in _handles(library.clGetPlatformIDs)
        for device in _devices_of(library, platform)
    ]


def _library() -> Any | None:
    """The ICD loader that PyOpenCL uses: the one in its package, or the system's.

    Another loader may find drivers that PyOpenCL cannot open.
    """
    names = []
    spec = find_spec("pyopencl")
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        folders = (package / ".libs", package / ".dylibs", package.with_name("pyopencl.libs"))
        names = [str(path) for folder in folders for path in sorted(folder.glob("*OpenCL*"))]
        # As PyOpenCL does: its loader looks for drivers there, and crashes without it. A parent
        # process with another PyOpenCL may have set another folder, so it is overwritten.
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
    """Handles that a function lists, which is called for their number first."""
    count = ctypes.c_uint32(0)
    if function(*arguments, ctypes.c_uint32(0), None, ctypes.byref(count)) or not count.value:
        return []
    handles = (ctypes.c_void_p * count.value)()
    if function(*arguments, count, handles, None):
        return []
    return [handle for handle in handles if handle]


def _text(function: Any, handle: Any, info: int) -> str:
    size = ctypes.c_size_t(0)
    if function(handle, ctypes.c_uint32(info), ctypes.c_size_t(0), None, ctypes.byref(size)):
        return ""
    text = ctypes.create_string_buffer(size.value)
    if function(handle, ctypes.c_uint32(info), size, text, None):
        return ""
    return " ".join(text.value.decode(errors="replace").split())


def _unique(function: Any, device: Any, extensions: list[str]) -> str:
    for extension, info, length in _HARDWARE_IDS:
        if extension in extensions:
            value = ctypes.create_string_buffer(length)
            size = ctypes.c_size_t(length)
            if not function(device, ctypes.c_uint32(info), size, value, None) and any(value.raw):
                return f"{extension} {value.raw.hex()}"
    return ""


def _number(function: Any, handle: Any, info: int, kind: type[Any]) -> int:
    value = kind(0)
    if function(
        handle, ctypes.c_uint32(info), ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(value),
        None,
    ):  # fmt: skip
        return 0
    return int(value.value)
