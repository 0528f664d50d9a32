"""DLPack, the protocol by which array libraries share memory: export and import of host memory.

NumPy's DLPack has no bfloat16, which is exchanged as uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import bfloat16, uint16
from burn.errors import ExportError

if TYPE_CHECKING:
    from burn.tensor_data import TensorData

__all__ = [
    "HOST",
    "DLPackDevice",
    "DLPackObject",
    "export_host",
    "import_host",
    "is_readable",
    "read_in_place",
]

DLPackDevice = tuple[int, int]
"""Type and number of a device in DLPack's numbering."""

HOST: Final[DLPackDevice] = (1, 0)
"""Host memory (kDLCPU)."""

_READABLE_TYPES: Final = (1, 3, 11, 13)
"""Types of memory that the host can read: host, pinned (CUDA, ROCm) and managed memory."""


def is_readable(device: DLPackDevice) -> bool:
    """Whether the host can read the memory of a device."""
    return device[0] in _READABLE_TYPES


def export_host(
    data: TensorData, *, max_version: tuple[int, int] | None = None, copy: bool | None = None
) -> Any:
    """DLPack capsule of host data, read-only where the version supports it.

    Data with negative strides are copied: PyTorch ends the process for them.

    Raises
    ------
    ExportError
        If DLPack does not have the dtype, or a copy is needed that `copy` forbids.
    """
    array = data.array.view()
    if data.dtype is bfloat16:
        array = array.view(uint16.numpy)
    is_reversed = array.size > 0 and min(array.strides, default=0) < 0
    if is_reversed and copy is False:
        raise ExportError(
            "memory with negative strides is exported as a copy only", hint="Leave copy out"
        )
    has_flags = max_version is not None and max_version >= (1, 0)
    if has_flags:
        array.flags.writeable = False
    copies = bool(copy) or is_reversed or (copy is None and not has_flags)
    try:
        capsule = array.__dlpack__(
            max_version=max_version if has_flags else None, copy=True if copies else None
        )
    except (BufferError, TypeError, ValueError) as error:
        raise ExportError(f"DLPack cannot carry {data.dtype}: {error}") from error
    if data.dtype is bfloat16:
        from burn.backend.capsule import relabel_capsule  # imports ctypes, which start-up avoids

        return relabel_capsule(capsule, bfloat16)
    return capsule


def read_in_place(read: Callable[[], TensorData]) -> TensorData:
    """What `read` returns, which must be the memory of the tensor and no copy of it.

    Two results that are both alive are in one memory only if neither is a copy.

    Raises
    ------
    ExportError
        If `read` copies.
    """
    data, again = read(), read()
    first, second = (
        tensor_data.array.__array_interface__["data"][0] for tensor_data in (data, again)
    )
    if data.array.size and first != second:
        raise ExportError(
            "the memory of the device is read by a copy, so it cannot be shared",
            hint="Leave copy=False out",
        )
    return data


def import_host(x: Any, *, copy: bool | None = None) -> TensorData:
    """The values of an array in memory that the host can read.

    They are in the memory of the array, unless its library exports a copy. If `copy` is True, the
    caller makes one.

    Raises
    ------
    ExportError
        If they cannot be read, or only from a copy, which `copy` forbids if it is False.
    """
    import numpy as np

    from burn.tensor_data import TensorData, check_unmasked

    check_unmasked(x)
    copy = False if copy is False else None
    if isinstance(x, np.ndarray) and x.dtype.isnative:
        return TensorData(x.view(np.ndarray))
    from burn.backend.capsule import CapsuleObject, request_capsule  # imports ctypes

    try:
        try:
            # With the array itself NumPy would request an old capsule after any error.
            capsule = CapsuleObject(request_capsule(x, copy=copy), x.__dlpack_device__())
            return TensorData(np.from_dlpack(capsule))
        except (BufferError, RuntimeError):
            array = _import_bfloat16(x, copy)
            if array is None:
                raise
            return TensorData(array)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ExportError(f"cannot read an object of type {type(x).__name__}: {error}") from error


def _import_bfloat16(x: Any, copy: bool | None) -> Any:
    """An array of bfloat16 as NumPy's; None for another dtype."""
    import numpy as np

    from burn.backend.capsule import CapsuleObject, read_capsule, relabel_capsule, request_capsule

    capsule = request_capsule(x, copy=copy)
    found = read_capsule(capsule)
    if found.dtype is not bfloat16:
        return None
    as_uint16 = CapsuleObject(relabel_capsule(capsule, uint16), found.device)
    return np.from_dlpack(as_uint16).view(bfloat16.numpy)


class DLPackObject:
    """An array, or a primitive, as an object that `from_dlpack` of a library takes.

    Memory with negative strides is exported as a copy, or not at all: PyTorch ends the process for
    it.

    Parameters
    ----------
    export : callable
        Makes the capsule: `__dlpack__` of the array, or `Backend.to_dlpack` of the primitive.
    device : tuple of int
        Its device in DLPack's numbering.
    copy : bool, optional
        Whether every export is a copy, or none is; None for a copy where it is needed.
    """

    def __init__(
        self, export: Callable[..., Any], device: DLPackDevice, *, copy: bool | None = None
    ) -> None:
        self._export = export
        self._device = device
        self._copy = copy

    def __dlpack__(self, *, dl_device: DLPackDevice | None = None, **options: Any) -> Any:
        from burn.backend.capsule import read_capsule, request_with  # imports ctypes

        if dl_device not in (None, self._device):
            raise ExportError(f"memory of {self._device} is not at {dl_device}")
        if self._copy is False:
            options.pop("copy", None)
            capsule = request_with(self._export, options, copy=False)
        else:
            if self._copy:
                options["copy"] = True
            capsule = self._export(**options)
        found = read_capsule(capsule)
        if self._copy is False and (found.has_negative_strides or found.is_copied):
            raise ExportError("it is exported as a copy only", hint="Leave copy=False out")
        if found.has_negative_strides:
            capsule = self._export(**{**options, "copy": True})
            if read_capsule(capsule).has_negative_strides:
                raise ExportError("a copy has negative strides")
        return capsule

    def __dlpack_device__(self) -> DLPackDevice:
        return self._device
