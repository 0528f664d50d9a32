"""CudaBackend: NVIDIA GPUs through CuPy, with kernels of our own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from burn.plugin_api import (
    REGISTRY,
    ChannelOps,
    DeviceId,
    DType,
    DTypeUsage,
    ResamplingOps,
    SamplingOps,
    SearchingOps,
    TensorData,
    UnfoldingOps,
    is_implemented,
)
from burn_cuda.attention import AttentionOps
from burn_cuda.base import Array
from burn_cuda.complex_numbers import ComplexOps
from burn_cuda.convolution import ConvolutionOps
from burn_cuda.elementwise import ElementwiseOps
from burn_cuda.exchange import ExchangeOps
from burn_cuda.generated import GeneratedOps
from burn_cuda.indexing import IndexingOps
from burn_cuda.layout import LayoutOps
from burn_cuda.linear_algebra import LinearAlgebraOps
from burn_cuda.normalization import NormalizationOps
from burn_cuda.optimizer import OptimizerOps
from burn_cuda.pooling import PoolingOps
from burn_cuda.programs import ProgramOps
from burn_cuda.quantization import QuantizationOps
from burn_cuda.quantized_products import QuantizedProductOps
from burn_cuda.random import RandomOps
from burn_cuda.recurrent import RecurrentOps
from burn_cuda.reduction import ReductionOps
from burn_cuda.scan import ScanOps
from burn_cuda.softmax import SoftmaxOps
from burn_cuda.sorting import SortingOps
from burn_cuda.usage import STORED, usage_of
from burn_cuda.writing import WritingOps

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["CudaBackend"]

_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


class CudaBackend(
    LayoutOps,
    ElementwiseOps,
    ReductionOps,
    IndexingOps,
    SortingOps,
    SearchingOps,
    ScanOps,
    LinearAlgebraOps,
    RandomOps,
    SoftmaxOps,
    NormalizationOps,
    ChannelOps,
    OptimizerOps,
    ConvolutionOps,
    AttentionOps,
    PoolingOps,
    RecurrentOps,
    ResamplingOps,
    SamplingOps,
    UnfoldingOps,
    ComplexOps,
    QuantizationOps,
    QuantizedProductOps,
    ExchangeOps,
    WritingOps,
    GeneratedOps,
    ProgramOps,
):
    """NVIDIA GPUs: an object for each device, which reaches those of the others.

    Parameters
    ----------
    runtime : callable
        From the index of a device to its `Runtime`.
    count : callable
        Number of devices.
    index : int
        The device that this object serves.
    siblings : dict, optional
        The objects of all devices by index; new if left out.
    """

    def __init__(
        self,
        runtime: Callable[[int], Runtime],
        count: Callable[[], int],
        index: int = 0,
        siblings: dict[int, CudaBackend] | None = None,
    ) -> None:
        super().__init__(runtime(index))
        self._make_runtime = runtime
        self._count = count
        self._siblings = {} if siblings is None else siblings
        self._senders: tuple[CudaBackend, ...] = ()
        self._lock = threading.Lock()
        if count() > 1:
            self._bind_device()
        self._siblings[index] = self  # last: other threads find it there

    def _bind_device(self) -> None:
        """Make each op run with its device as the current one, where CUDA shows several."""
        for name in (*REGISTRY, "from_data", "to_data", "to_dlpack"):
            method = getattr(self, name, None)
            if is_implemented(method):
                setattr(self, name, _on_device(self.runtime, method))
        load = self.load_kernel
        self.load_kernel = lambda *given: _on_device(self.runtime, load(*given))  # type: ignore[method-assign]  # likewise

    def __repr__(self) -> str:
        return f"CudaBackend({self.index})"

    def name(self, device: DeviceId) -> str:
        """``cuda``."""
        del device
        return "cuda"

    def native_dtype(self, dtype: DType) -> object | None:
        """NumPy's dtypes, and bfloat16 of ml_dtypes."""
        return dtype.numpy if dtype in STORED else None

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """By the compute capability of the device."""
        capability = self.for_device(device).runtime.capability
        return usage_of(capability).get(dtype, DTypeUsage.NONE)

    def device_count(self, type_id: int) -> int:
        """As many as CUDA shows."""
        return self._count() if type_id == 0 else 0

    def for_device(self, device: DeviceId) -> CudaBackend:
        """The object of a device, made by the first call."""
        index = device.index_id
        found = self._siblings.get(index)
        if found is None:
            with self._lock:
                found = self._siblings.get(index)
                if found is None:
                    found = type(self)(self._make_runtime, self._count, index, self._siblings)
                    found._lock = self._lock
        return found

    def sync(self, device: DeviceId) -> None:
        """Wait for all work of the device; raise the error that its kernels reported.

        Raises
        ------
        OutOfRangeError
            If an index was out of range.
        ExecutionError
            If a kernel failed.
        """
        own = self.for_device(device)
        own.runtime.synchronize()
        own._raise_failed()

    def _raise_failed(self) -> None:
        """Raise what kernels of this device, or of one that sent it tensors, have reported."""
        self.launcher.raise_failed()
        for sender in self._senders:
            sender.launcher.raise_failed()

    def from_data(self, data: TensorData, device: DeviceId) -> Array:
        """A copy on the device."""
        if device.index_id != self.index:
            return self.for_device(device).from_data(data, device)
        return self.runtime.upload(data.array)

    def to_data(self, x: Array) -> TensorData:
        """A copy on the host; raises the error that kernels reported."""
        owner = self.runtime.owner(x)
        if owner != self.index:
            return self.for_device(DeviceId(0, owner)).to_data(x)
        values = self.runtime.download(self.launcher.dense(x))
        self._raise_failed()
        return TensorData(values)

    def to_device(self, x: Array, device: DeviceId) -> Array:
        """A copy on another GPU, without waiting on the host."""
        source = self.for_device(DeviceId(0, self.runtime.owner(x)))
        target = self.for_device(device)
        if target is source:
            return x
        with source.runtime.current():
            x = source.launcher.dense(x)
        with self._lock:
            senders = dict.fromkeys((*target._senders, source, *source._senders))
            senders.pop(target, None)
            target._senders = tuple(senders)
        return target.runtime.receive(x, source.runtime)

    def memory_persistent_allocations(
        self, device: DeviceId, input: _Input, func: Callable[[_Input], _Output]
    ) -> _Output:
        """`func` allocates from a separate pool, so that its arrays leave no gaps in the other."""
        with self.for_device(device).runtime.persistent():
            return func(input)

    def memory_cleanup(self, device: DeviceId) -> None:
        """Empty the pools."""
        own = self.for_device(device)
        own.launcher.clear_tables()
        own.runtime.cleanup()


def _on_device(runtime: Runtime, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that runs with its device as the current one."""

    @functools.wraps(method)
    def call(*operands: Any, **attributes: Any) -> Any:
        if runtime.is_current():
            return method(*operands, **attributes)
        with runtime.current():
            return method(*operands, **attributes)

    return call
