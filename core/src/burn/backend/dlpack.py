"""DLPack, by which array libraries share memory: exports of host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.errors import ExportError

if TYPE_CHECKING:
    from burn.data import TensorData

__all__ = ["HOST", "export_host"]

HOST: Final = (1, 0)
"""What DLPack calls the memory of the host (kDLCPU)."""


def export_host(
    data: TensorData, *, max_version: tuple[int, int] | None = None, copy: bool | None = None
) -> Any:
    """DLPack capsule of host data, which nobody may write to.

    Raises
    ------
    ExportError
        If DLPack has no such dtype.
    """
    array = data.array.view()
    marks = max_version is not None and max_version >= (1, 0)
    if marks:
        array.flags.writeable = False
    elif copy is not False:
        array = array.copy()
    try:
        if marks:
            return array.__dlpack__(max_version=max_version, copy=copy)
        return array.__dlpack__()
    except (BufferError, TypeError, ValueError) as error:
        raise ExportError(f"DLPack cannot carry {data.dtype}: {error}") from error
