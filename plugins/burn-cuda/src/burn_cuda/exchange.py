"""Memory in and out: DLPack, the CUDA array interface, and pinned memory of the host."""

from __future__ import annotations

from typing import Any, Final

from burn.plugin_api import (
    CapsuleObject,
    DeviceId,
    ExportError,
    TensorData,
    bfloat16,
    read_capsule,
    relabel_capsule,
    request_capsule,
    uint16,
)
from burn_cuda.array import Array
from burn_cuda.base import CudaOps

__all__ = ["ExchangeOps"]


_CUDA: Final = 2
"""DLPack's device type kDLCUDA."""


class ExchangeOps(CudaOps):
    """Arrays shared with other libraries, ordered by streams."""

    def device_of(self, x: object) -> DeviceId | None:
        """Device of an array of this plugin, or of CuPy."""
        found = self.runtime.adopted(x)
        return None if found is None else DeviceId(0, found.device_id)

    def as_primitive(self, x: Any) -> Array | None:
        """An array of CuPy as one of this plugin, in the same memory."""
        return self.runtime.adopted(x)

    def dlpack_device(self, device: DeviceId) -> tuple[int, int]:
        """A CUDA device."""
        return _CUDA, device.index_id

    def to_dlpack(
        self,
        x: Array,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """CuPy's export; the stream of the consumer waits for that of x."""
        owner = self.runtime.owner(x)
        if owner != self.index:
            own = self.for_device(DeviceId(0, owner))
            return own.to_dlpack(x, stream=stream, max_version=max_version, copy=copy)
        if copy:
            x = self.launcher.copied(x)
        marks = max_version if max_version is not None and max_version >= (1, 0) else None
        is_bfloat16 = self.launcher.dtypes[x.dtype] is bfloat16
        if is_bfloat16:  # not every version of CuPy exports it
            x = x.view(uint16.numpy)
        try:
            capsule = x.__dlpack__(stream=stream, max_version=marks)
        except (BufferError, TypeError, ValueError) as error:
            raise ExportError(f"DLPack cannot carry {x.dtype}: {error}") from error
        return relabel_capsule(capsule, bfloat16) if is_bfloat16 else capsule

    def from_dlpack(self, x: Any, device: DeviceId) -> Array | None:
        """The same memory; later work on the current stream waits for the work that computes it."""
        own = self.for_device(device)
        with own.runtime.current():
            found = own._imported(x)
        if found is None or found.dtype not in self.launcher.dtypes:
            return None
        return found if own.runtime.owner(found) == own.index else None

    def _imported(self, x: Any) -> Array | None:
        runtime = self.runtime
        own = runtime.adopted(x)
        if own is not None:
            return own
        if not hasattr(x, "__dlpack__"):
            return runtime.from_interface(x) if hasattr(x, "__cuda_array_interface__") else None
        capsule = request_capsule(x, stream=runtime.consumer_stream())
        found = read_capsule(capsule)
        if found.device != (_CUDA, self.index) or found.dtype is None:
            return None
        if found.dtype is bfloat16:
            words = runtime.from_dlpack(
                CapsuleObject(relabel_capsule(capsule, uint16), found.device)
            )
            return words.view(bfloat16.numpy)
        return runtime.from_dlpack(CapsuleObject(capsule, found.device))

    def staging(self, data: TensorData, device: DeviceId) -> TensorData:
        """A copy in pinned memory, which the device reads asynchronously."""
        return TensorData(self.for_device(device).runtime.pinned(data.array))
