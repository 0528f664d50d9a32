"""Capabilities of the namespace (chapter "Inspection" of the array API standard)."""

from __future__ import annotations

from typing import Any

from burn.devices import Device
from burn.dtype import DType
from burn.functions.common import DeviceLike
from burn.functions.data_type import isdtype
from burn.functions.normalize import find_device

__all__ = ["__array_namespace_info__"]

_STANDARD = [dtype for dtype in DType.members() if dtype.name not in ("float16", "bfloat16")]


class ArrayNamespaceInfo:
    """Capabilities, devices and dtypes of ``burn``, as the array API standard names them."""

    def capabilities(self) -> dict[str, Any]:
        """Capabilities that the standard leaves to the library.

        Returns
        -------
        dict
            ``"boolean indexing"`` and ``"data-dependent shapes"``, both True, and
            ``"max dimensions"``, the number of axes that every backend takes.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of new tensors where none is given."""
        return Device.default()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        """The dtypes of new tensors on a device where none is given.

        Parameters
        ----------
        device : Device or str, optional
            The device. By default the default device.

        Returns
        -------
        dict
            By kind: ``"real floating"``, ``"complex floating"``, ``"integral"``, ``"indexing"``.
        """
        settings = find_device(device, "default_dtypes").settings
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
        device : Device or str, optional
            The device. By default the default device.
        kind : str or tuple of str, optional
            Only dtypes of these kinds; see `burn.isdtype`.

        Returns
        -------
        dict
            Dtypes by name.
        """
        target = find_device(device, "dtypes")
        return {
            dtype.name: dtype
            for dtype in _STANDARD
            if target.supports_dtype(dtype) and (kind is None or isdtype(dtype, kind))
        }

    def devices(self) -> tuple[Device, ...]:
        """All available devices."""
        return tuple(Device.enumerate())


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807 — the standard's name
    """Capabilities, devices and dtypes of the namespace.

    Returns
    -------
    ArrayNamespaceInfo
        An object with a method for each question of the standard.

    Examples
    --------
    >>> import burn
    >>> burn.__array_namespace_info__().default_dtypes(device="cpu")["real floating"]
    burn.float32
    """
    return ArrayNamespaceInfo()
