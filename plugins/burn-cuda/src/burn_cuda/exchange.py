"""Memory in and out: DLPack, the CUDA array interface, and pinned memory of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.backend.capsule import Held, contents, relabel, request
from burn.device_id import DeviceId
from burn.dtype import bfloat16, uint16
from burn.errors import ExportError
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["ExchangeOps"]

Array = Any

_CUDA: Final = 2
"""What DLPack calls the memory of a CUDA device (kDLCUDA)."""


class ExchangeOps:
    """Sharing what lies on the device with other libraries, ordered by streams."""

    launcher: Launcher
    driver: Any
    index: int
    for_device: Any

    def device_of(self, x: object) -> DeviceId | None:
        """Device of an array of CuPy."""
        driver = self.driver
        if x.__class__ is not driver.array or x.dtype not in self.launcher.dtypes:  # type: ignore[attr-defined]  # an array has one
            return None
        return DeviceId(0, driver.owner(x))

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
        """CuPy's export, after which the stream of the consumer waits for the one of x."""
        owner = self.driver.owner(x)
        if owner != self.index:
            own = self.for_device(DeviceId(0, owner))
            return own.to_dlpack(x, stream=stream, max_version=max_version, copy=copy)
        if copy:
            x = self.launcher.copied(x)
        marks = max_version if max_version is not None and max_version >= (1, 0) else None
        is_bfloat16 = self.launcher.dtypes[x.dtype] is bfloat16
        if is_bfloat16:  # which not every DLPack of CuPy has
            x = x.view(uint16.numpy)
        try:
            capsule = x.__dlpack__(stream=stream, max_version=marks)
        except (BufferError, TypeError, ValueError) as error:
            raise ExportError(f"DLPack cannot carry {x.dtype}: {error}") from error
        return relabel(capsule, bfloat16) if is_bfloat16 else capsule

    def from_dlpack(self, x: Any, device: DeviceId) -> Array | None:
        """The same memory, once the work that makes it is ordered before what comes."""
        own = self.for_device(device)
        with own.driver.current():
            found = own._imported(x)
        if found is None or found.dtype not in self.launcher.dtypes:
            return None
        return found if own.driver.owner(found) == own.index else None

    def _imported(self, x: Any) -> Array | None:
        driver = self.driver
        if x.__class__ is driver.array:
            return x
        if not hasattr(x, "__dlpack__"):
            return driver.from_interface(x) if hasattr(x, "__cuda_array_interface__") else None
        capsule = request(x, stream=driver.consumer_stream())
        found = contents(capsule)
        if found.device != (_CUDA, self.index) or found.dtype is None:
            return None
        if found.dtype is bfloat16:
            words = driver.from_dlpack(Held(relabel(capsule, uint16), found.device))
            return words.view(bfloat16.numpy)
        return driver.from_dlpack(Held(capsule, found.device))

    def staging(self, data: TensorData, device: DeviceId) -> TensorData:
        """A copy in pinned memory, which the device reads by itself."""
        return TensorData(self.for_device(device).driver.pinned(data.array))
