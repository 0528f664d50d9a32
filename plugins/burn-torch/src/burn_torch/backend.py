"""TorchBackend: torch's functions as the ops of burn, on each device that torch knows."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from burn.backend import Backend, is_implemented
from burn.device_id import DeviceId
from burn.dtype import DType, DTypeUsage, Kind
from burn.errors import ExportError
from burn.tensor_data import TensorData
from burn_torch.activation import ActivationOps
from burn_torch.arithmetic import ArithmeticOps, elementwise_functions
from burn_torch.attention import AttentionOps
from burn_torch.convolution import ConvolutionOps
from burn_torch.dtypes import BURN, SAME_BITS, TORCH, Tensor
from burn_torch.flags import NAMED, Flags
from burn_torch.indexing import IndexingOps
from burn_torch.layout import LayoutOps
from burn_torch.linear_algebra import LinearAlgebraOps
from burn_torch.normalization import NormalizationOps
from burn_torch.optimizer import OptimizerOps
from burn_torch.plugin import DEVICE_TYPES, USAGE
from burn_torch.pooling import PoolingOps
from burn_torch.random import RandomOps
from burn_torch.reduction import ReductionOps
from burn_torch.resampling import ResamplingOps
from burn_torch.settings import Precision, any_order
from burn_torch.signal import SignalOps
from burn_torch.softmax import SoftmaxOps
from burn_torch.unsigned import EMULATED, emulated

if TYPE_CHECKING:
    from burn.aliases import Primitive

_CPU = DeviceId(DEVICE_TYPES.index("cpu"))


class TorchBackend(
    LayoutOps,
    ArithmeticOps,
    ReductionOps,
    IndexingOps,
    LinearAlgebraOps,
    ActivationOps,
    SoftmaxOps,
    NormalizationOps,
    ConvolutionOps,
    PoolingOps,
    ResamplingOps,
    AttentionOps,
    OptimizerOps,
    RandomOps,
    SignalOps,
    Backend,
):
    """The ops on one device; the one that the plugin loads is that of the CPU.

    Primitives are tensors of torch. None of them requires a gradient, so torch records nothing.
    """

    def __init__(self, device: DeviceId = _CPU) -> None:
        self.device_id = device
        type_ = DEVICE_TYPES[device.type_id]
        self.on_host = type_ == "cpu"
        self.place = torch.device(type_) if self.on_host else torch.device(type_, device.index_id)
        self.flags = Flags()
        library = "mkldnn" if self.on_host else type_
        self.products = Precision(library, "matmul")
        self.convolutions = Precision(library, "conv")
        self._devices = {device: self}
        self._lock = threading.Lock()
        for name, function in elementwise_functions().items():
            if not is_implemented(getattr(type(self), name, None)):
                setattr(self, name, function)
        for name in EMULATED:
            method = getattr(self, name, None)
            if is_implemented(method):
                setattr(self, name, emulated(name, method))

        if not self.on_host:
            for name in NAMED:
                setattr(self, name, functools.partial(self._named, name, getattr(self, name, None)))

    def _named(
        self, name: str, method: Callable[..., Any] | None, *operands: Any, **attributes: Any
    ) -> Any:
        """An op whose indices are looked at later, under its name."""
        with self.flags.named(name):
            if method is None:
                return self.decomposed(name, *operands, **attributes)
            return method(*operands, **attributes)

    def __repr__(self) -> str:
        return f"TorchBackend({self.place})"

    def for_device(self, device: DeviceId) -> TorchBackend:
        """The ops on a device, the same object each time."""
        with self._lock:
            found = self._devices.get(device)
            if found is None:
                found = self._devices[device] = type(self)(device)
                found._devices, found._lock = self._devices, self._lock
            return found

    def name(self, device: DeviceId) -> str:
        """``torch``."""
        del device
        return "torch"

    def is_out_of_memory(self, error: Exception) -> bool:
        """Accelerators have a class for it; the CPU has words."""
        return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
            isinstance(error, RuntimeError)
            and any(words in str(error) for words in ("CPUAllocator", "Storage size calculation"))
        )

    def native_dtype(self, dtype: DType) -> object | None:
        """The dtype of torch with the same name."""
        return TORCH.get(dtype)

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """On the CPU everything; on CUDA what the compute capability has units for is faster."""
        type_ = DEVICE_TYPES[device.type_id]
        if dtype not in TORCH:
            return DTypeUsage.NONE
        if type_ == "cpu":
            return USAGE[dtype]
        if type_ == "cuda":
            capability = torch.cuda.get_device_capability(device.index_id)
            least = {"float16": (7, 0), "bfloat16": (8, 0)}.get(dtype.name)
            if least is not None and capability >= least:
                return DTypeUsage.GENERAL | DTypeUsage.ACCELERATED
            return DTypeUsage.GENERAL
        double = dtype.name in ("float64", "complex128")
        unsigned = dtype.kind is Kind.UINT and dtype.itemsize > 1
        if double or unsigned or dtype.is_complex:
            return DTypeUsage.NONE
        return DTypeUsage.GENERAL

    def device_count(self, type_id: int) -> int:
        """As many as torch sees."""
        type_ = DEVICE_TYPES[type_id] if type_id < len(DEVICE_TYPES) else ""
        if type_ == "cpu":
            return 1
        try:
            if type_ == "mps":
                return int(torch.backends.mps.is_available())
            if type_ in ("cuda", "xpu"):
                library: Any = getattr(torch, type_)
                return int(library.device_count()) if library.is_available() else 0
        except Exception:  # noqa: BLE001 — of whatever driver: then there is none
            return 0
        return 0

    def sync(self, device: DeviceId) -> None:
        """Wait, and raise what was noted of indices."""
        ops = self.for_device(device)
        if not ops.on_host:
            library: Any = getattr(torch, ops.place.type)
            library.synchronize(*[] if ops.place.type == "mps" else [ops.place])
            ops.flags.check()

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        """Torch says nothing of float results; what it may refuse is an order that is not fixed."""
        return any_order()

    # What follows is asked of the object that the plugin loads, whichever device it is about.

    def from_data(self, data: TensorData, device: DeviceId) -> Tensor:
        """A copy of host data on the device."""
        array = np.array(data.array, order="C")
        native = TORCH[data.dtype]
        if native in SAME_BITS:
            bits = SAME_BITS[native]
            array = array.view(str(bits).removeprefix("torch."))
            x = torch.from_numpy(array).view(native)
        else:
            x = torch.from_numpy(array)
        ops = self.for_device(device)
        return x if ops.on_host else x.to(ops.place)

    def to_data(self, x: Tensor) -> TensorData:
        """The memory of the tensor itself on the CPU, else a copy."""
        if not (self.on_host and x.is_cpu):
            self._ops_of(x).flags.check()
            x = x.cpu()
        bits = SAME_BITS.get(x.dtype)
        if bits is None:
            return TensorData(x.numpy())
        return TensorData(x.view(bits).numpy().view(BURN[x.dtype].numpy))

    def _ops_of(self, x: Tensor) -> TorchBackend:
        """The ops on the device of a tensor."""
        return self.for_device(DeviceId(DEVICE_TYPES.index(x.device.type), x.device.index or 0))

    def staging(self, data: TensorData, device: DeviceId) -> TensorData:
        """Pinned memory, from which CUDA copies by itself."""
        if DEVICE_TYPES[device.type_id] != "cuda" or not data.array.size:
            return data
        array = np.ascontiguousarray(data.array)
        pinned = torch.empty(array.nbytes, dtype=torch.uint8, pin_memory=True, device="cpu")
        result = pinned.numpy().view(array.dtype).reshape(data.shape)
        result[...] = array
        return TensorData(result)

    def memory_cleanup(self, device: DeviceId) -> None:
        """Give what torch's allocator holds back to the driver."""
        library: Any = getattr(torch, DEVICE_TYPES[device.type_id], None)
        if library is not None and hasattr(library, "empty_cache"):
            library.empty_cache()

    def share(self, data: TensorData, device: DeviceId) -> Tensor | None:
        """A tensor in the memory of host data, which nobody here writes to."""
        if DEVICE_TYPES[device.type_id] != "cpu":
            return None
        array = data.array
        if any(stride < 0 or stride % array.itemsize for stride in array.strides):
            return None  # torch has no such strides
        native = TORCH[data.dtype]
        if native in SAME_BITS:
            array = array.view(str(SAME_BITS[native]).removeprefix("torch."))
        if not array.flags.writeable:
            array = np.asarray(_Writeable(array))  # torch would warn
        return torch.from_numpy(array).view(native)

    def to_device(self, x: Tensor, device: DeviceId) -> Tensor | None:
        """Torch's own way from one accelerator to another, ordered by streams."""
        source, target = self._ops_of(x), self.for_device(device)
        if source.on_host or source.place.type != target.place.type:
            return None
        source.flags.check()
        return x.to(target.place)

    def device_of(self, x: object) -> DeviceId | None:
        """Where a tensor of torch lies; of its subclasses only parameters are as good as one."""
        if x.__class__ not in (Tensor, torch.nn.Parameter):
            return None
        tensor: Tensor = x
        type_ = tensor.device.type
        if type_ not in DEVICE_TYPES or tensor.layout is not torch.strided:
            return None
        if tensor.requires_grad:
            raise ExportError("its gradient would be lost", hint="Call .detach() first")
        if tensor.is_conj() or tensor.is_neg():
            raise ExportError(
                "its memory holds other values than it has",
                hint="Call .resolve_conj().resolve_neg() first",
            )
        return DeviceId(DEVICE_TYPES.index(type_), tensor.device.index or 0)

    def dlpack_device(self, device: DeviceId) -> tuple[int, int]:
        """That of CUDA where it is one; else of host memory."""
        return (2, device.index_id) if DEVICE_TYPES[device.type_id] == "cuda" else (1, 0)

    def to_dlpack(
        self,
        x: Tensor,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of torch's where the host cannot read the memory."""
        if x.is_cpu:
            return super().to_dlpack(x, stream=stream, max_version=max_version, copy=copy)
        self._ops_of(x).flags.check()
        exported = x.clone() if copy else x
        try:
            return exported.__dlpack__(stream=stream, max_version=max_version)
        except TypeError:  # torch before 2.9 knows no version
            return exported.__dlpack__(stream=stream)

    def from_dlpack(self, x: Any, device: DeviceId) -> Primitive | None:
        """What torch makes of it; of its own tensors, those that can be primitives."""
        place = self.for_device(device).place
        if isinstance(x, Tensor):
            if self.device_of(x) is None:
                return None
            found = x
        elif hasattr(x, "__dlpack__"):
            found = torch.utils.dlpack.from_dlpack(x)
        else:
            found = torch.as_tensor(x)  # by its __cuda_array_interface__
        if found.device.type != place.type or (found.device.index or 0) != (place.index or 0):
            return None
        return found if found.dtype in BURN else None


class _Writeable:
    """Memory that NumPy calls read-only, described as if it were not, and kept alive."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}
        self.array = array
