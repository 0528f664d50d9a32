"""Minimal: a backend with only its required ops, so that every default has to do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.dtype import DType, DTypeUsage
from burn.ops import REGISTRY, resolve

if TYPE_CHECKING:
    from burn.device_id import DeviceId

__all__ = ["Minimal"]


class Minimal:
    """A backend that hides what another has beyond the required ops.

    Its op table resolves every other op to the default, and programs call the ops of that table:
    what an author gets before writing any method for speed. It has no complex dtypes, for which a
    backend needs more than that.

    Parameters
    ----------
    backend : Backend
        The backend to show, or what its `for_device` returned.

    Examples
    --------
    >>> import burn
    >>> from burn.ops import REGISTRY, OpTable
    >>> device = burn.Device("cpu")
    >>> OpTable(Minimal(device.backend), device.id).origin(REGISTRY["softmax"])
    'derived'
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        definition = REGISTRY.get(name)
        if definition is not None and not definition.is_required:
            raise AttributeError(f"{name!r} is not a required op, so it is hidden here")
        if name in {"compile", "dialect", "kernel_runner"}:
            raise AttributeError(f"{name!r} is not required, and would hide the defaults")
        return getattr(self._backend, name)

    def __repr__(self) -> str:
        return f"Minimal({self._backend!r})"

    @property
    def wrapped(self) -> Any:
        """The backend with all that it has."""
        return self._backend

    def native_dtype(self, dtype: DType) -> object | None:
        """The other's object for a dtype, of real dtypes."""
        return None if dtype.is_complex else self._backend.native_dtype(dtype)

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """What the other's device can do with a dtype, if that is real."""
        if dtype.is_complex:
            return DTypeUsage.NONE
        return self._backend.dtype_usage(device, dtype)  # type: ignore[no-any-return]  # of a Backend

    def supports_dtype(self, device: DeviceId, dtype: DType) -> bool:
        """Whether the other's device computes with a dtype, if that is real."""
        return DTypeUsage.GENERAL in self.dtype_usage(device, dtype)

    def for_device(self, device: DeviceId) -> Minimal:
        """What the backend has for one device, minimal too."""
        return Minimal(resolve(self._backend, device).backend)
