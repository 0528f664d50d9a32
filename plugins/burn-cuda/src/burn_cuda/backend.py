"""CudaBackend: NVIDIA GPUs through CuPy, with kernels of our own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from burn.backend import Backend, is_implemented
from burn.device_id import DeviceId
from burn.dtype import DType, DTypeUsage
from burn.ops import REGISTRY, OpTable
from burn.tensor_data import TensorData
from burn_cuda.attention import AttentionOps
from burn_cuda.channels import ChannelOps
from burn_cuda.complex_numbers import ComplexOps
from burn_cuda.composed import ComposedOps
from burn_cuda.convolution import ConvolutionOps
from burn_cuda.elementwise import ElementwiseOps
from burn_cuda.exchange import ExchangeOps
from burn_cuda.indexing import IndexingOps
from burn_cuda.launcher import Launcher
from burn_cuda.layout import LayoutOps
from burn_cuda.linear_algebra import LinearAlgebraOps
from burn_cuda.normalization import NormalizationOps
from burn_cuda.optimizer import OptimizerOps
from burn_cuda.pooling import PoolingOps
from burn_cuda.random import RandomOps
from burn_cuda.reduction import ReductionOps
from burn_cuda.resampling import ResamplingOps, uploaded_tables
from burn_cuda.scan import ScanOps
from burn_cuda.softmax import SoftmaxOps
from burn_cuda.sorting import SortingOps
from burn_cuda.usage import STORED, usage_of

__all__ = ["CudaBackend"]

Array = Any
_Input = TypeVar("_Input")
_Output = TypeVar("_Output")

_TABLES: Final = 128
"""So many tables that kernels look things up in are kept on a device, those that were used last."""


class CudaBackend(
    LayoutOps,
    ElementwiseOps,
    ReductionOps,
    IndexingOps,
    SortingOps,
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
    ResamplingOps,
    ComplexOps,
    ComposedOps,
    ExchangeOps,
    Backend,
):
    """NVIDIA GPUs. An object for each device; that of device 0 knows the others.

    Parameters
    ----------
    driver : type
        Makes what the ops need of a device, from its number.
    count : callable
        How many devices there are.
    index : int
        Which device this object is for.
    siblings : dict, optional
        The objects of all devices by number; new if left out.
    """

    tables: functools._lru_cache_wrapper[tuple[Any, Any]]

    def __init__(
        self,
        driver: Callable[[int], Any],
        count: Callable[[], int],
        index: int = 0,
        siblings: dict[int, CudaBackend] | None = None,
    ) -> None:
        self._driver_type = driver
        self._count = count
        self.index = index
        self._siblings = {} if siblings is None else siblings
        self._senders: tuple[CudaBackend, ...] = ()
        self._lock = threading.Lock()
        self.driver = driver(index)
        self.launcher = Launcher(self.driver, {dtype.numpy: dtype for dtype in STORED})
        self._reductions = {}
        self._attentions = {}
        kept = functools.lru_cache(maxsize=_TABLES)
        self.tables = kept(functools.partial(uploaded_tables, self.driver))
        self._make_elementwise()
        self.table = OpTable(self, DeviceId(0, index))
        if count() > 1:
            self._bind_device()
        self._siblings[index] = self  # when it is complete: other threads look there

    def _bind_device(self) -> None:
        """Let each op first make its device the current one, where CUDA shows several."""
        for name in (*REGISTRY, "from_data", "to_data", "to_dlpack"):
            method = getattr(self, name, None)
            if is_implemented(method):
                setattr(self, name, _on_device(self.driver, method))

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
        capability = self.for_device(device).driver.capability
        return usage_of(capability).get(dtype, DTypeUsage.NONE)

    def device_count(self, type_id: int) -> int:
        """What CUDA counts."""
        return self._count() if type_id == 0 else 0

    def for_device(self, device: DeviceId) -> CudaBackend:
        """The object of a device; made when it is first asked for."""
        index = device.index_id
        found = self._siblings.get(index)
        if found is None:
            with self._lock:
                found = self._siblings.get(index)
                if found is None:
                    found = type(self)(self._driver_type, self._count, index, self._siblings)
                    found._lock = self._lock
        return found

    def sync(self, device: DeviceId) -> None:
        """Wait for all work of the device; raise what its kernels left in the flag.

        Raises
        ------
        OutOfRangeError
            If an index was out of range.
        ExecutionError
            If a kernel failed.
        """
        own = self.for_device(device)
        own.driver.synchronize()
        own._raise_failed()

    def _raise_failed(self) -> None:
        """Raise what kernels left in the flag of this device, or of one that sent it tensors."""
        self.launcher.raise_failed()
        for sender in self._senders:
            sender.launcher.raise_failed()

    def from_data(self, data: TensorData, device: DeviceId) -> Array:
        """A copy on the device."""
        if device.index_id != self.index:
            return self.for_device(device).from_data(data, device)
        return self.driver.upload(data.array)

    def to_data(self, x: Array) -> TensorData:
        """A copy on the host; raises what kernels left in the flag."""
        owner = self.driver.owner(x)
        if owner != self.index:
            return self.for_device(DeviceId(0, owner)).to_data(x)
        values = self.driver.download(self.launcher.dense(x))
        self._raise_failed()
        return TensorData(values)

    def to_device(self, x: Array, device: DeviceId) -> Array:
        """A copy on another GPU, for which nobody waits."""
        source = self.for_device(DeviceId(0, self.driver.owner(x)))
        target = self.for_device(device)
        if target is source:
            return x
        with source.driver.current():
            x = source.launcher.dense(x)
        with self._lock:
            senders = dict.fromkeys((*target._senders, source, *source._senders))
            senders.pop(target, None)
            target._senders = tuple(senders)
        return target.driver.receive(x, source.driver)

    def memory_persistent_allocations(
        self, device: DeviceId, input: _Input, func: Callable[[_Input], _Output]
    ) -> _Output:
        """What `func` allocates comes from a pool of its own, away from what comes and goes."""
        with self.for_device(device).driver.persistent():
            return func(input)

    def memory_cleanup(self, device: DeviceId) -> None:
        """Empty the pools."""
        own = self.for_device(device)
        own.tables.cache_clear()
        own.driver.cleanup()


def _on_device(driver: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that runs with its device as the current one."""

    @functools.wraps(method)
    def call(*operands: Any, **attributes: Any) -> Any:
        if driver.is_current():
            return method(*operands, **attributes)
        with driver.current():
            return method(*operands, **attributes)

    return call
