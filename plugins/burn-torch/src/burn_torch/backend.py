"""TorchBackend: torch's functions as the ops of burn, on every device of torch."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch

from burn.plugin_api import (
    REGISTRY,
    DeviceId,
    DType,
    DTypeUsage,
    ExportError,
    Kind,
    Primitive,
    TensorData,
    is_implemented,
    new_lock,
)
from burn_torch.activation import ActivationOps
from burn_torch.arithmetic import ArithmeticOps, elementwise_functions
from burn_torch.attention import AttentionOps
from burn_torch.convolution import ConvolutionOps
from burn_torch.device_types import DEVICE_TYPES
from burn_torch.dtypes import BITS_FOR_NUMPY, BURN_DTYPES, TORCH_DTYPES, Tensor
from burn_torch.index_checks import IndexChecks
from burn_torch.indexing import IndexingOps
from burn_torch.layout import LayoutOps
from burn_torch.linear_algebra import LinearAlgebraOps
from burn_torch.normalization import NormalizationOps
from burn_torch.optimizer import OptimizerOps
from burn_torch.pooling import PoolingOps
from burn_torch.precision import for_each_dtype
from burn_torch.programs import ProgramOps
from burn_torch.quantized_products import QuantizedProductOps
from burn_torch.random import RandomOps
from burn_torch.recurrent import RecurrentOps
from burn_torch.reduction import ReductionOps
from burn_torch.resampling import ResamplingOps
from burn_torch.settings import Precision
from burn_torch.signal import SignalOps
from burn_torch.softmax import SoftmaxOps
from burn_torch.unsigned import EMULATED, emulated
from burn_torch.writing import WritingOps

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
    QuantizedProductOps,
    RandomOps,
    RecurrentOps,
    SignalOps,
    WritingOps,
    ProgramOps,
):
    """The ops on one device; the object that the plugin loads is the one of the CPU.

    Primitives are tensors of torch that require no gradient, so torch records nothing.
    """

    overwrites_donated = True

    def __init__(self, device: DeviceId = _CPU) -> None:
        self.device_id = device
        type_ = DEVICE_TYPES[device.type_id]
        self.on_host = type_ == "cpu"
        self.torch_device = (
            torch.device(type_) if self.on_host else torch.device(type_, device.index_id)
        )
        self.index_checks = IndexChecks()
        library = "mkldnn" if self.on_host else type_
        self.products = Precision(library, "matmul")
        self.convolutions = Precision(library, "conv")
        self.recurrences = Precision(library, "rnn")
        self._devices = {device: self}
        self._lock = new_lock()
        for name, function in elementwise_functions().items():
            if not is_implemented(getattr(type(self), name, None)):
                setattr(self, name, function)
        for name in REGISTRY:
            chosen = for_each_dtype(getattr(self, name, None))
            if chosen is not None:
                setattr(self, name, chosen)
        for name in EMULATED:
            method = getattr(self, name, None)
            if is_implemented(method):
                setattr(self, name, emulated(name, method))
        if not self.on_host:
            self.named = self.index_checks.named

    def __repr__(self) -> str:
        return f"TorchBackend({self.torch_device})"

    def for_device(self, device: DeviceId) -> TorchBackend:
        """The ops on a device: the same object each time."""
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
        """`torch.OutOfMemoryError` of accelerators, or the messages of the CPU allocator."""
        return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
            isinstance(error, RuntimeError)
            and any(words in str(error) for words in ("CPUAllocator", "Storage size calculation"))
        )

    def native_dtype(self, dtype: DType) -> object | None:
        """The dtype of torch with the same name."""
        return TORCH_DTYPES.get(dtype)

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """All dtypes on the CPU; on CUDA 16-bit floats are accelerated by compute capability."""
        type_ = DEVICE_TYPES[device.type_id]
        if dtype not in TORCH_DTYPES:
            return DTypeUsage.NONE
        if type_ == "cpu":
            return DTypeUsage.GENERAL
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
        """The number that torch reports."""
        type_ = DEVICE_TYPES[type_id] if type_id < len(DEVICE_TYPES) else ""
        if type_ == "cpu":
            return 1
        try:
            if type_ == "mps":
                return int(torch.backends.mps.is_available())
            if type_ in ("cuda", "xpu"):
                library: Any = getattr(torch, type_)
                return int(library.device_count()) if library.is_available() else 0
        except Exception:  # noqa: BLE001 — a broken driver means no device, whatever it raises
            return 0
        return 0

    def sync(self, device: DeviceId) -> None:
        """Synchronize, and raise errors about indices."""
        ops = self.for_device(device)
        if not ops.on_host:
            library: Any = getattr(torch, ops.torch_device.type)
            library.synchronize(*[] if ops.torch_device.type == "mps" else [ops.torch_device])
            ops.index_checks.raise_errors()

    # Core calls the members below on the object that the plugin loads, for any device.

    def from_data(self, data: TensorData, device: DeviceId) -> Tensor:
        """A copy of host data on the device."""
        array = np.array(data.array, order="C")
        native = TORCH_DTYPES[data.dtype]
        if native in BITS_FOR_NUMPY:
            bits = BITS_FOR_NUMPY[native]
            array = array.view(str(bits).removeprefix("torch."))
            x = torch.from_numpy(array).view(native)
        else:
            x = torch.from_numpy(array)
        ops = self.for_device(device)
        return x if ops.on_host else x.to(ops.torch_device)

    def to_data(self, x: Tensor) -> TensorData:
        """The memory of the tensor on the CPU, else a copy."""
        if not (self.on_host and x.is_cpu):
            self._ops_of(x).index_checks.raise_errors()
            x = x.cpu()
        bits = BITS_FOR_NUMPY.get(x.dtype)
        if bits is None:
            return TensorData(x.numpy())
        return TensorData(x.view(bits).numpy().view(BURN_DTYPES[x.dtype].numpy))

    def _ops_of(self, x: Tensor) -> TorchBackend:
        """The ops on the device of a tensor."""
        return self.for_device(DeviceId(DEVICE_TYPES.index(x.device.type), x.device.index or 0))

    def staging(self, data: TensorData, device: DeviceId) -> TensorData:
        """Pinned memory, which CUDA copies without the processor."""
        if DEVICE_TYPES[device.type_id] != "cuda" or not data.array.size:
            return data
        array = np.ascontiguousarray(data.array)
        pinned = torch.empty(array.nbytes, dtype=torch.uint8, pin_memory=True, device="cpu")
        result = pinned.numpy().view(array.dtype).reshape(data.shape)
        result[...] = array
        return TensorData(result)

    def memory_cleanup(self, device: DeviceId) -> None:
        """Return the memory that torch's allocator caches to the driver."""
        library: Any = getattr(torch, DEVICE_TYPES[device.type_id], None)
        if library is not None and hasattr(library, "empty_cache"):
            library.empty_cache()

    def share(self, data: TensorData, device: DeviceId) -> Tensor | None:
        """A tensor in the memory of host data; no op writes to it."""
        if DEVICE_TYPES[device.type_id] != "cpu":
            return None
        array = data.array
        if any(stride < 0 or stride % array.itemsize for stride in array.strides):
            return None  # torch has no negative strides, and none within elements
        native = TORCH_DTYPES[data.dtype]
        if native in BITS_FOR_NUMPY:
            array = array.view(str(BITS_FOR_NUMPY[native]).removeprefix("torch."))
        if not array.flags.writeable:
            array = np.asarray(_Writeable(array))  # torch warns of read-only memory
        return torch.from_numpy(array).view(native)

    def to_device(self, x: Tensor, device: DeviceId) -> Tensor | None:
        """Torch's copy between accelerators of one type, ordered by streams."""
        source, target = self._ops_of(x), self.for_device(device)
        if source.on_host or source.torch_device.type != target.torch_device.type:
            return None
        source.index_checks.raise_errors()
        return x.to(target.torch_device)

    def device_of(self, x: object) -> DeviceId | None:
        """The device of a tensor or parameter of torch; other subclasses compute differently."""
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
                "its memory holds values that it conjugates or negates lazily",
                hint="Call .resolve_conj().resolve_neg() first",
            )
        return DeviceId(DEVICE_TYPES.index(type_), tensor.device.index or 0)

    def dlpack_device(self, device: DeviceId) -> tuple[int, int]:
        """CUDA's number on a CUDA device, else that of host memory."""
        return (2, device.index_id) if DEVICE_TYPES[device.type_id] == "cuda" else (1, 0)

    def to_dlpack(
        self,
        x: Tensor,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Torch's capsule for memory that the host cannot read."""
        if x.is_cpu:
            return super().to_dlpack(x, stream=stream, max_version=max_version, copy=copy)
        self._ops_of(x).index_checks.raise_errors()
        exported = x.clone() if copy else x
        # Torch exports memory of its current GPU alone.
        current = torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()
        with current:
            try:
                return exported.__dlpack__(stream=stream, max_version=max_version)
            except TypeError:  # torch before 2.9 has no max_version
                return exported.__dlpack__(stream=stream)

    def from_dlpack(self, x: Any, device: DeviceId) -> Primitive | None:
        """Torch's tensor in the memory; of a tensor of torch another one, which is burn's alone."""
        wanted = self.for_device(device).torch_device
        if isinstance(x, Tensor):
            if self.device_of(x) is None:
                return None
            found = x.detach()
        elif hasattr(x, "__dlpack__"):
            found = torch.utils.dlpack.from_dlpack(x)
        else:
            found = torch.as_tensor(x)  # by its __cuda_array_interface__
        if found.device.type != wanted.type or (found.device.index or 0) != (wanted.index or 0):
            return None
        return found if found.dtype in BURN_DTYPES else None


class _Writeable:
    """Read-only memory described as writeable, and kept alive."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}
        self.array = array
