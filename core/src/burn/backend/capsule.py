"""DLPack capsules: read, marked as read-only, or given another dtype or device.

Layouts and numbers are those of ``dlpack.h``, version 1.1.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from burn.dtype import DType, Kind
from burn.errors import ExportError

__all__ = [
    "CapsuleContents",
    "CapsuleObject",
    "mark_read_only",
    "read_capsule",
    "readdress_capsule",
    "relabel_capsule",
    "request_capsule",
    "request_with",
]

VERSION: Final = (1, 0)
"""Version of the protocol to request: the first one that can mark memory as read-only."""

_MAX_STRIDE: Final = 1 << 48
"""A stride in elements beyond every memory."""

_READ_ONLY: Final = 1
_IS_COPIED: Final = 2
_CODES: Final = {Kind.INT: 0, Kind.UINT: 1, Kind.FLOAT: 2, Kind.COMPLEX: 5, Kind.BOOL: 6}
_BFLOAT: Final = 4


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _opened(capsule: Any) -> tuple[_Tensor, _Versioned | None]:
    """The tensor in an unused capsule, and the structure around it from version 1.0 on."""
    for name, kind in ((b"dltensor_versioned", _Versioned), (b"dltensor", _Managed)):
        if _is_valid(capsule, name):
            held = ctypes.cast(_pointer(capsule, name), ctypes.POINTER(kind)).contents
            return held.tensor, held if isinstance(held, _Versioned) else None
    raise ExportError(
        f"an object of type {type(capsule).__name__} is no DLPack capsule, or was used before"
    )


@dataclass(frozen=True)
class CapsuleContents:
    """The description of memory in a capsule.

    Attributes
    ----------
    version : tuple of int or None
        Version of the protocol; None before 1.0.
    device : tuple of int
        Type and number of the device.
    dtype : DType or None
        The dtype; None for one that burn does not have.
    shape, strides : tuple of int
        Lengths of the axes, and strides in elements.
    address : int
        Address of the first element.
    is_read_only, is_copied : bool
        Its flags.
    """

    version: tuple[int, int] | None
    device: tuple[int, int]
    dtype: DType | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    is_read_only: bool
    is_copied: bool

    @property
    def has_negative_strides(self) -> bool:
        """Whether elements lie before the first one.

        CuPy (up to 14.2) divides such strides as unsigned numbers, which makes them huge.
        """
        return 0 not in self.shape and any(
            length > 1 and not 0 <= stride < _MAX_STRIDE
            for stride, length in zip(self.strides, self.shape, strict=True)
        )


def read_capsule(capsule: Any) -> CapsuleContents:
    """Read an unused capsule.

    Raises
    ------
    ExportError
        If it is not an unused capsule.
    """
    tensor, around = _opened(capsule)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _row_major(shape)
    flags = 0 if around is None else around.flags
    return CapsuleContents(
        None if around is None else (around.major, around.minor),
        (tensor.device.type, tensor.device.id),
        _DTYPES.get((tensor.dtype.code, tensor.dtype.bits)) if tensor.dtype.lanes == 1 else None,
        shape,
        strides,
        (tensor.data or 0) + tensor.byte_offset,
        is_read_only=bool(flags & _READ_ONLY),
        is_copied=bool(flags & _IS_COPIED),
    )


def mark_read_only(capsule: Any) -> None:
    """Mark the memory as read-only for consumers; without effect before version 1.0."""
    _, around = _opened(capsule)
    if around is not None:
        around.flags |= _READ_ONLY


def relabel_capsule(capsule: Any, dtype: DType) -> Any:
    """Give the elements in an unused capsule another dtype of the same size.

    A library whose DLPack has no bfloat16 exports and imports it as uint16.

    Returns
    -------
    capsule
        The same capsule.

    Raises
    ------
    ExportError
        If the elements have another size.
    """
    tensor, _ = _opened(capsule)
    code, bits = _label(dtype)
    if (tensor.dtype.bits, tensor.dtype.lanes) != (bits, 1):
        raise ExportError(f"elements of {tensor.dtype.bits} bits cannot be {dtype}")
    tensor.dtype.code = code
    return capsule


def readdress_capsule(capsule: Any, device: tuple[int, int]) -> Any:
    """Set the device of a capsule, for devices that share memory.

    Returns
    -------
    capsule
        The same capsule.
    """
    tensor, _ = _opened(capsule)
    tensor.device.type, tensor.device.id = device
    return capsule


def _label(dtype: DType) -> tuple[int, int]:
    """Code and bits of a dtype."""
    return _BFLOAT if dtype.name == "bfloat16" else _CODES[dtype.kind], dtype.bits


_DTYPES: Final = {_label(dtype): dtype for dtype in DType.members()}


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def request_capsule(x: Any, *, copy: bool | None = None, **options: Any) -> Any:
    """A capsule of an array, of the newest version that it supports.

    A library that does not know `copy`, as it predates version 1.0, is not told.

    Raises
    ------
    ExportError
        If `copy` is False, and the capsule says that it is a copy.
    """
    capsule = request_with(x.__dlpack__, {"max_version": VERSION, **options}, copy=copy)
    if copy is False and read_capsule(capsule).is_copied:
        raise ExportError("the array was exported as a copy", hint="Leave copy=False out")
    return capsule


def request_with(export: Callable[..., Any], options: dict[str, Any], *, copy: bool | None) -> Any:
    """What `export` returns, without the options `copy` and `max_version` where it has none."""
    attempts = [options, {key: option for key, option in options.items() if key != "max_version"}]
    if copy is not None:
        attempts.insert(0, {**options, "copy": copy})
    for attempt in attempts[:-1]:
        try:
            return export(**attempt)
        except TypeError as error:
            if "keyword" not in str(error):  # the error is about the elements
                raise
    return export(**attempts[-1])


class CapsuleObject:
    """An object with `__dlpack__` that returns a given capsule; `from_dlpack` takes it once.

    Parameters
    ----------
    capsule : capsule
        An unused capsule.
    device : tuple of int
        The device in it.
    """

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device
