"""What the namespace can do (chapter "Inspection" of the array API standard)."""

from __future__ import annotations

from typing import Any

from burn.devices.device import Device
from burn.dtype import DType
from burn.functions.common import DeviceLike
from burn.functions.data_type import isdtype
from burn.functions.normalize import find_device

__all__ = ["__array_namespace_info__"]

_STANDARD = [dtype for dtype in DType.members() if dtype.name not in ("float16", "bfloat16")]


class ArrayNamespaceInfo:
    """What ``burn`` can do and on which devices, as array API consumers ask for it."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on the library.

        Returns
        -------
        dict
            ``"boolean indexing"`` and ``"data-dependent shapes"``, both True, and
            ``"max dimensions"``, the number of axes that every backend takes.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device on which tensors are made where nobody says."""
        return Device.default()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        """The dtypes that a device gives where nobody says.

        Returns
        -------
        dict
            By ``"real floating"``, ``"complex floating"``, ``"integral"`` and ``"indexing"``.
        """
        settings = find_device(device).settings
        return {
            "real floating": settings.float_dtype,
            "complex floating": settings.complex_dtype,
            "integral": settings.int_dtype,
            "indexing": settings.int_dtype,
        }

    def dtypes(
        self,
        *,
        device: DeviceLike | None = None,
        kind: str | tuple[str, ...] | None = None,
    ) -> dict[str, DType]:
        """The dtypes of the standard that a device computes with, by name.

        Parameters
        ----------
        device : Device, optional
            The device; the default one if left out.
        kind : str or tuple of str, optional
            Only dtypes of these kinds; see `burn.isdtype`.
        """
        where = find_device(device)
        return {
            dtype.name: dtype
            for dtype in _STANDARD
            if where.supports_dtype(dtype) and (kind is None or isdtype(dtype, kind))
        }

    def devices(self) -> tuple[Device, ...]:
        """Every device that is there."""
        return tuple(Device.enumerate())


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807 — the standard's name
    """What the namespace can do, and on which devices."""
    return ArrayNamespaceInfo()
