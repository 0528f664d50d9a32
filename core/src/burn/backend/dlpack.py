"""DLPack, by which array libraries share memory: exports and imports of host memory.

NumPy's DLPack has no bfloat16; it goes through here as what NumPy can see in it, uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import bfloat16, uint16
from burn.errors import ExportError

if TYPE_CHECKING:
    from burn.tensor_data import TensorData

__all__ = ["HOST", "Lent", "Place", "export_host", "import_host", "is_readable"]

Place = tuple[int, int]
"""Type and number of a device, as DLPack has them."""

HOST: Final[Place] = (1, 0)
"""What DLPack calls the memory of the host (kDLCPU)."""

_READABLE: Final = (1, 3, 11, 13)
"""Types of memory that the host can read: its own, pinned (CUDA, ROCm), and managed."""


def is_readable(place: Place) -> bool:
    """Whether the host can read the memory of a device as it is."""
    return place[0] in _READABLE


def export_host(
    data: TensorData, *, max_version: tuple[int, int] | None = None, copy: bool | None = None
) -> Any:
    """DLPack capsule of host data, which nobody may write to.

    What has negative strides is copied: PyTorch ends the process where it meets them.

    Raises
    ------
    ExportError
        If DLPack has no such dtype, or it takes a copy that `copy` forbids.
    """
    array = data.array.view()
    if data.dtype is bfloat16:
        array = array.view(uint16.numpy)
    is_reversed = array.size > 0 and min(array.strides, default=0) < 0
    if is_reversed and copy is False:
        raise ExportError(
            "memory with negative strides is given away as a copy only", hint="Leave copy out"
        )
    marks = max_version is not None and max_version >= (1, 0)
    if marks:
        array.flags.writeable = False
    copies = bool(copy) or is_reversed or (copy is None and not marks)
    try:
        capsule = array.__dlpack__(
            max_version=max_version if marks else None, copy=True if copies else None
        )
    except (BufferError, TypeError, ValueError) as error:
        raise ExportError(f"DLPack cannot carry {data.dtype}: {error}") from error
    if data.dtype is bfloat16:
        from burn.backend.capsule import relabel  # what takes ctypes is not for a start

        return relabel(capsule, bfloat16)
    return capsule


def import_host(x: Any) -> TensorData:
    """The values of an array in memory that the host can read, shared with it.

    Raises
    ------
    ExportError
        If they cannot be read.
    """
    import numpy as np

    from burn.tensor_data import TensorData, check_unmasked

    check_unmasked(x)
    if isinstance(x, np.ndarray) and x.dtype.isnative:
        return TensorData(x.view(np.ndarray))
    from burn.backend.capsule import Held, request  # what takes ctypes is not for a start

    try:
        try:
            # NumPy would ask once more for a capsule of before version 1.0, whatever went wrong.
            return TensorData(np.from_dlpack(Held(request(x), x.__dlpack_device__())))
        except (BufferError, RuntimeError):
            array = _import_bfloat16(x)
            if array is None:
                raise
            return TensorData(array)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ExportError(f"cannot read an object of type {type(x).__name__}: {error}") from error


def _import_bfloat16(x: Any) -> Any:
    """An array of bfloat16 as NumPy's; None for another dtype."""
    import numpy as np

    from burn.backend.capsule import Held, contents, relabel, request

    capsule = request(x)
    found = contents(capsule)
    if found.dtype is not bfloat16:
        return None
    return np.from_dlpack(Held(relabel(capsule, uint16), found.device)).view(bfloat16.numpy)


class Lent:
    """An array, or a primitive, as an object that `from_dlpack` of a library takes.

    What has negative strides is exported as a copy: PyTorch ends the process where it meets them.

    Parameters
    ----------
    export : callable
        Makes the capsule: `__dlpack__` of the array, or `Backend.to_dlpack` for the primitive.
    place : tuple of int
        What DLPack calls the device that it lies on.
    copies : bool
        Whether every export is to be a copy.
    """

    def __init__(self, export: Callable[..., Any], place: Place, *, copies: bool = False) -> None:
        self._export = export
        self._place = place
        self._copies = copies

    def __dlpack__(self, *, dl_device: Place | None = None, **options: Any) -> Any:
        from burn.backend.capsule import contents  # what takes ctypes is not for a start

        if dl_device not in (None, self._place):
            raise ExportError(f"memory of {self._place} is not at {dl_device}")
        if self._copies:
            options["copy"] = True
        capsule = self._export(**options)
        if contents(capsule).has_negative_strides:
            capsule = self._export(**{**options, "copy": True})
            if contents(capsule).has_negative_strides:
                raise ExportError("a copy has negative strides")
        return capsule

    def __dlpack_device__(self) -> Place:
        return self._place
