"""MultiBackendBridge: brings what one backend has for a tensor to another backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from burn.dtype import DType, DTypeUsage

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.backend import Backend
    from burn.device_id import DeviceId
    from burn.ops import OpTable

__all__ = ["InnerDevice", "Move", "MultiBackendBridge", "TensorHandle"]


class InnerDevice(Protocol):
    """A device of a backend that a router runs operations on; `burn.Device` is one."""

    @property
    def name(self) -> str:
        """The canonical spelling."""

    @property
    def id(self) -> DeviceId:
        """The device in the numbering of its backend."""

    @property
    def backend(self) -> Backend:
        """The backend."""

    @property
    def ops(self) -> OpTable:
        """The ops of the device."""

    def sync(self) -> None:
        """Wait for all work on the device."""

    def dtype_usage(self, dtype: DType) -> DTypeUsage:
        """What the device can do with a dtype."""

    def memory_cleanup(self) -> None:
        """Give memory that is held but not in use back to the system."""


Move = Callable[[DType, Any, Any, Any], Any]
"""``move(dtype, source, target, primitive)``: a primitive of one device on another one."""


class TensorHandle(NamedTuple):
    """A tensor as a backend has it.

    Attributes
    ----------
    primitive : Primitive
        The object that the backend computes with.
    dtype : DType
        Its dtype.
    device : InnerDevice
        Its device.
    """

    primitive: Primitive
    dtype: DType
    device: InnerDevice


class MultiBackendBridge:
    """Changes the backend of handles, by the kind of their dtype.

    A subclass may have another way for a kind.

    Parameters
    ----------
    move : callable
        See `Move`.
    """

    def __init__(self, move: Move) -> None:
        self._move = move

    def change_backend(self, handle: TensorHandle, device: InnerDevice) -> TensorHandle:
        """The handle on another device."""
        if handle.dtype.is_bool:
            return self.change_backend_bool(handle, device)
        if handle.dtype.is_float or handle.dtype.is_complex:
            return self.change_backend_float(handle, device)
        return self.change_backend_int(handle, device)

    def change_backend_float(self, handle: TensorHandle, device: InnerDevice) -> TensorHandle:
        """The handle of a float or complex tensor on another device."""
        primitive = self._move(handle.dtype, handle.device, device, handle.primitive)
        return TensorHandle(primitive, handle.dtype, device)

    def change_backend_int(self, handle: TensorHandle, device: InnerDevice) -> TensorHandle:
        """The handle of a tensor of signed or unsigned integers on another device."""
        return self.change_backend_float(handle, device)

    def change_backend_bool(self, handle: TensorHandle, device: InnerDevice) -> TensorHandle:
        """The handle of a bool tensor on another device."""
        return self.change_backend_float(handle, device)
