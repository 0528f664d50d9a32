"""OpenClBackend: devices that speak OpenCL, with kernels of our own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.plugin_api import (
    Backend,
    ChannelOps,
    DeviceId,
    DType,
    DTypeUsage,
    ExportError,
    PoolingOps,
    RandomOps,
    ResamplingOps,
    SamplingOps,
    ScanOps,
    SearchingOps,
    TensorData,
    UnfoldingOps,
)
from burn_opencl.attention import AttentionOps
from burn_opencl.buffers import Buffer
from burn_opencl.convolution import ConvolutionOps
from burn_opencl.elementwise import ElementwiseOps
from burn_opencl.fourier import FourierOps
from burn_opencl.generated import GeneratedOps
from burn_opencl.indexing import IndexingOps
from burn_opencl.launcher import Launcher
from burn_opencl.layout import LayoutOps
from burn_opencl.linear_algebra import LinearAlgebraOps
from burn_opencl.normalization import NormalizationOps
from burn_opencl.optimizer import OptimizerOps
from burn_opencl.quantization import QuantizationOps
from burn_opencl.quantized_products import QuantizedProductOps
from burn_opencl.reduction import ReductionOps
from burn_opencl.softmax import SoftmaxOps
from burn_opencl.sorting import SortingOps
from burn_opencl.staging import Uploads
from burn_opencl.usage import COMPUTED, usage_of
from burn_opencl.writing import WritingOps

if TYPE_CHECKING:
    from burn_opencl.runtime import System

__all__ = ["OpenClBackend"]

_MAX_CACHED_TABLES: Final = 128
"""Tables from the host that a device keeps, those that were used last."""


class OpenClBackend(Backend):
    """Devices that speak OpenCL: an `OpenClDevice` each, which is made on first use."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._devices: dict[DeviceId, OpenClDevice] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "OpenClBackend()"

    def name(self, device: DeviceId) -> str:
        """``opencl``."""
        del device
        return "opencl"

    def native_dtype(self, dtype: DType) -> object | None:
        """The `DType` itself, for dtypes that the kernels know."""
        return dtype if dtype in COMPUTED else None

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """By whether the device computes in float64."""
        has_fp64 = self.for_device(device).launcher.runtime.has_fp64
        return usage_of(has_fp64=has_fp64).get(dtype, DTypeUsage.NONE)

    def device_count(self, type_id: int) -> int:
        """Number of devices that the platforms list."""
        return self._system.count(type_id)

    def for_device(self, device: DeviceId) -> OpenClDevice:
        """The object of a device."""
        found = self._devices.get(device)
        if found is None:
            with self._lock:
                found = self._devices.get(device)
                if found is None:
                    found = OpenClDevice(self, device)
                    self._devices[device] = found
        return found

    def from_data(self, data: TensorData, device: DeviceId) -> Buffer:
        """A copy on the device."""
        own = self.for_device(device)
        out = own.launcher.empty(data.shape, data.dtype)
        if data.array.size:
            own.uploads.write(out.memory.handle, data.array)
        return out

    def staging(self, data: TensorData, device: DeviceId) -> TensorData:
        """A copy in pinned memory, which a GPU reads directly; a CPU reads all memory."""
        return TensorData(self.for_device(device).uploads.pinned(data.array))

    def to_data(self, x: Buffer) -> TensorData:
        """A copy on the host; raises the index errors of kernels."""
        launcher = x.owner.launcher
        values = np.empty(x.shape, x.dtype.numpy)
        if values.size:
            x = launcher.dense(x)
            start = x.offset * x.dtype.itemsize
            launcher.runtime.read(values.reshape(-1).view(np.uint8), x.memory.handle, start)
        launcher.raise_index_error()
        return TensorData(values)

    def device_of(self, x: object) -> Any:
        """Device of a buffer."""
        return x.owner.device if isinstance(x, Buffer) else None

    def to_dlpack(
        self,
        x: Buffer,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A copy in host memory: DLPack does not describe the memory of an OpenCL queue."""
        if copy is False:
            raise ExportError(
                "memory of an OpenCL device is not shared", hint="Leave copy=False out"
            )
        return super().to_dlpack(x, stream=stream, max_version=max_version, copy=copy)

    def sync(self, device: DeviceId) -> None:
        """Wait for all work of the device, and raise the index errors of its kernels.

        Raises
        ------
        OutOfRangeError
            If an index was out of range.
        """
        own = self.for_device(device)
        own.launcher.runtime.finish()
        own.uploads.settle()
        own.launcher.raise_index_error()

    def memory_cleanup(self, device: DeviceId) -> None:
        """Free the memory that the pools and the caches hold."""
        own = self.for_device(device)
        own.tables.cache_clear()
        own.launcher.pool.release()
        own.uploads.release()


class OpenClDevice(
    AttentionOps,
    ChannelOps,
    ConvolutionOps,
    FourierOps,
    OptimizerOps,
    GeneratedOps,
    IndexingOps,
    LinearAlgebraOps,
    NormalizationOps,
    PoolingOps,
    QuantizationOps,
    QuantizedProductOps,
    RandomOps,
    ResamplingOps,
    SamplingOps,
    SearchingOps,
    SoftmaxOps,
    SortingOps,
    UnfoldingOps,
    WritingOps,
    ReductionOps,
    ScanOps,
    ElementwiseOps,
    LayoutOps,
    OpenClBackend,
):
    """One device, with its ops."""

    tables: functools._lru_cache_wrapper[list[Buffer]]

    def __init__(self, backend: OpenClBackend, device: DeviceId) -> None:
        self._system = backend._system
        self._devices = backend._devices
        self._lock = backend._lock
        self.device = device
        runtime = self._system.open(device.type_id, device.index_id)
        self.launcher = Launcher(runtime, self)
        self.named = self.launcher.checked.named
        self.uploads = Uploads(runtime)
        self.tables = functools.lru_cache(maxsize=_MAX_CACHED_TABLES)(self._uploaded)

    def _uploaded(
        self, make: Callable[..., Iterable[np.ndarray[Any, Any]]], *arguments: Hashable
    ) -> list[Buffer]:
        """The arrays that `make` computes on the host, as buffers."""
        made = [np.asarray(array, order="C") for array in make(*arguments)]
        return [self.from_data(TensorData(array), self.device) for array in made]

    def __repr__(self) -> str:
        return f"OpenClDevice({self.launcher.runtime.name!r})"
