"""Runtime: one GPU through CuPy: memory, streams, transfers, compiled kernels and cuBLAS."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import cupy
import numpy as np
from cupy.cuda import alloc, compiler, function, memory, nvrtc, runtime

from burn.plugin_api import (
    ConvGeometry,
    DiskCache,
    ExecutionError,
    OutOfMemoryError,
    Shape,
)
from burn_cuda.array import Array, dense_layout
from burn_cuda.blas import Blas
from burn_cuda.cudnn import Cudnn, installed
from burn_cuda.kernel import Kernel, Space
from burn_cuda.kernels import compiler_options

__all__ = ["Runtime", "device_count"]

_MIN_NVRTC_FOR_MINIMAL: Final = (12, 4)
"""Version of NVRTC from which on it need not declare CUDA's textures and its runtime."""

_ARGUMENT_BYTES: Final = 4096
_WIDE_ARGUMENT_BYTES: Final = 32764
_MIN_NVRTC_FOR_WIDE: Final = (12, 1)
_MIN_DRIVER_FOR_WIDE: Final = 12010
_MIN_CAPABILITY_FOR_WIDE: Final = (7, 0)
"""Versions of NVRTC and the driver, and the GPUs, with which arguments may take more memory."""

_binaries: Final = DiskCache("cuda")


def device_count() -> int:
    """Number of GPUs that CUDA shows; 0 where there is no usable driver."""
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError:
        return 0


_persistent: Final = memory.MemoryPool()
"""The pool of long-lived arrays, which would fragment the default pool."""


class Pinned(np.ndarray[Any, Any]):
    """Pinned host memory that is not written to."""


class _Module:
    """The kernels of a source. The first call compiles it; calls of other threads wait for that."""

    def __init__(self, source: str, contracts: bool) -> None:
        self._source = source
        self._contracts = contracts
        self._lock = threading.Lock()
        self._loaded: Any = None

    def function(self, name: str, architecture: str) -> Any:
        """A kernel by its name, for the current device."""
        with self._lock:
            if self._loaded is None:
                module = function.Module()
                module.load(_binary(self._source, architecture, contracts=self._contracts))
                self._loaded = module
            return self._loaded.get_function(name)


class Runtime(Blas):
    """One GPU.

    Parameters
    ----------
    index : int
        Its index among those that CUDA shows.

    Attributes
    ----------
    flag : numpy.ndarray of int64
        Pinned host memory that kernels write to: the number of the op that found an index out of
        range, the index, and the length of the axis.
    memory : int
        Bytes of memory of the GPU.
    tf32 : bool
        Whether float32 matrices may be multiplied in TF32.
    winograd : bool
        Whether float32 convolutions may use Winograd's transform.
    """

    is_dense = staticmethod(operator.attrgetter("is_dense"))
    """Whether an array is dense in row-major order."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index
        self.device = cupy.cuda.Device(index)
        self.tf32 = os.environ.get("BURN_CUDA_TF32") == "1"
        self.winograd = os.environ.get("BURN_CUDA_WINOGRAD") != "0"
        self._lock = threading.Lock()
        self._modules: dict[tuple[str, bool], _Module] = {}
        self._uploads: list[tuple[Any, Pinned]] = []
        self._peers: set[int] = set()
        self._space = Space(index)
        with self.device:
            capability = self.device.compute_capability
            pinned = cupy.cuda.alloc_pinned_memory(64)
            self.memory = int(runtime.memGetInfo()[1])
        self.capability = (int(capability[:-1]), int(capability[-1]))
        self.flag = np.frombuffer(pinned, np.int64, 3)
        self.flag[:] = 0
        self.flag_address = int(pinned.ptr)

    def __repr__(self) -> str:
        return f"Runtime({self.index})"

    @functools.cached_property
    def max_argument_bytes(self) -> int:
        """Size of the arguments of a kernel."""
        is_wide = (
            nvrtc.getVersion() >= _MIN_NVRTC_FOR_WIDE
            and runtime.driverGetVersion() >= _MIN_DRIVER_FOR_WIDE
            and self.capability >= _MIN_CAPABILITY_FOR_WIDE
        )
        return _WIDE_ARGUMENT_BYTES if is_wide else _ARGUMENT_BYTES

    @functools.cached_property
    def multiprocessors(self) -> int:
        """Number of multiprocessors."""
        return int(self.device.attributes["MultiProcessorCount"])

    def current(self) -> contextlib.AbstractContextManager[Any]:
        """Context in which this device is CUDA's current one."""
        context: contextlib.AbstractContextManager[Any] = self.device
        return context

    def is_current(self) -> bool:
        """Whether this device is CUDA's current one in this thread."""
        return bool(runtime.getDevice() == self.index)

    def empty(self, shape: Shape, dtype: Any) -> Array:
        """A new array with uninitialized elements.

        Raises
        ------
        OutOfMemoryError
            If there is no memory for it, even after the pool was emptied.
        """
        itemsize = dtype.itemsize
        strides, size = dense_layout(shape, itemsize)
        try:
            pointer = alloc(size * itemsize)
        except memory.OutOfMemoryError:
            pointer = self._alloc_again(shape, dtype)
        return Array(pointer, pointer.ptr, dtype, shape, strides, size, True)  # noqa: FBT003 — see there

    def _alloc_again(self, shape: Shape, dtype: Any) -> Any:
        """Memory for an array, from an empty pool."""
        self.cleanup()
        try:
            return alloc(math.prod(shape) * dtype.itemsize)
        except memory.OutOfMemoryError as error:
            raise self._out_of_memory(shape, dtype) from error

    def _out_of_memory(self, shape: Shape, dtype: Any) -> OutOfMemoryError:
        wanted = math.prod(shape) * dtype.itemsize
        with self.device:
            free, total = runtime.memGetInfo()
            used = cupy.get_default_memory_pool().used_bytes() + _persistent.used_bytes()
        return OutOfMemoryError(
            f"no memory for {wanted:,} bytes (shape {shape} of {dtype.name}) on "
            f"cuda:{self.index}: {free:,} of {total:,} bytes are free, {used:,} are in use here",
            hint="Free tensors, or compute with smaller ones; other programs may use the GPU too",
        )

    def view(self, x: Array, shape: Shape, strides: Sequence[int]) -> Array:
        """Another view of the memory of an array, to which it refers; strides are in bytes."""
        return x.strided(tuple(shape), tuple(strides))

    @staticmethod
    def address(x: Array) -> int:
        """Address of the first element of an array."""
        return x.address

    @staticmethod
    def references(x: Array) -> tuple[int, ...]:
        """References to an array, which its views have too, and to its memory.

        Empty for memory that others may refer to: it is a view's, or CuPy did not allocate it.
        """
        pointer = x.memory
        if pointer.__class__ is Array or pointer.mem.__class__ is not memory.PooledMemory:
            return ()
        return sys.getrefcount(x), sys.getrefcount(pointer), sys.getrefcount(pointer.mem)

    def compile(self, source: str, name: str, *, contracts: bool = True) -> Kernel:
        """A kernel of this device.

        `contracts` permits fused multiply-adds where the source has a product and a sum.
        """
        key = (source, contracts)
        with self._lock:
            module = self._modules.get(key)
            if module is None:
                module = self._modules[key] = _Module(*key)
        with self.device:
            return Kernel(module.function(name, self.device.compute_capability), self._space)

    def upload(self, values: np.ndarray[Any, Any]) -> Array:
        """A copy of host memory, which the caller may change when this returns."""
        result = self.empty(values.shape, values.dtype)
        if values.size:
            if isinstance(values, Pinned) and values.flags.c_contiguous:
                self._upload_async(result, values)
            else:
                values = np.ascontiguousarray(values)
                result.memory.copy_from_host(values.ctypes.data, values.nbytes)
        return result

    def _upload_async(self, target: Array, values: Pinned) -> None:
        """Queue an upload of pinned memory, and keep the memory alive until it is done."""
        stream = cupy.cuda.get_current_stream()
        target.memory.copy_from_host_async(values.ctypes.data, values.nbytes, stream)
        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        with self._lock:
            self._uploads = [upload for upload in self._uploads if not upload[0].done]
            self._uploads.append((event, values))

    def pinned(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A read-only copy in memory of the host that is pinned."""
        if not values.size or isinstance(values, Pinned):
            return values
        with self.device:
            memory_ = cupy.cuda.alloc_pinned_memory(values.nbytes)
        flat = np.frombuffer(memory_, values.dtype, values.size)
        result = flat.reshape(values.shape).view(Pinned)
        result[...] = values
        result.flags.writeable = False
        return result

    def owner(self, x: Array) -> int:
        """Index of the device of an array."""
        return x.device_id

    def consumer_stream(self) -> int:
        """The current stream, as DLPack numbers streams."""
        return int(cupy.cuda.get_current_stream().ptr) or 1

    def adopted(self, x: Any) -> Array | None:
        """The array that an object of this plugin or of CuPy is; None for others."""
        if isinstance(x, cupy.ndarray):
            return _wrapped(x)
        return x if isinstance(x, Array) else None

    def from_dlpack(self, x: Any) -> Array:
        """An array in the memory of an object with ``__dlpack__``."""
        return _wrapped(cupy.from_dlpack(x))

    def from_interface(self, x: Any) -> Array:
        """An array in the memory of an object with ``__cuda_array_interface__``."""
        return _wrapped(cupy.asarray(x))

    def download(self, x: Array) -> np.ndarray[Any, Any]:
        """A copy of a dense array in host memory; waits for the work before it."""
        result = np.empty(x.shape, x.dtype)
        stream = cupy.cuda.get_current_stream()
        try:
            if x.size:
                ends = (result.ctypes.data, x.address)
                runtime.memcpyAsync(*ends, x.nbytes, runtime.memcpyDeviceToHost, stream.ptr)
            stream.synchronize()
        except runtime.CUDARuntimeError as error:
            raise self._failure(error) from error
        return result

    def synchronize(self) -> None:
        """Wait for everything on this device.

        Raises
        ------
        ExecutionError
            If work failed after it was queued, with CUDA's own words.
        """
        try:
            with self.device:
                runtime.deviceSynchronize()
        except runtime.CUDARuntimeError as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ExecutionError:
        """The error for what CUDA raises while it waits: a kernel launched before has failed."""
        return ExecutionError(
            f"cuda:{self.index} failed at what was queued on it: {error}",
            hint="CUDA does no more in this process: start it anew, with CUDA_LAUNCH_BLOCKING=1 to "
            "learn which operation it is",
        )

    def receive(self, x: Array, source: Runtime) -> Array:
        """A copy of a dense array of another GPU, by peer access where the two have it.

        Both streams wait: this one until `x` is computed, and that of `source` until the copy is
        done, since another array may get the memory of `x` then.
        """
        with source.device:
            there = cupy.cuda.get_current_stream()
            made = cupy.cuda.Event(disable_timing=True)
            made.record(there)
        self._enable_peer_access(source)
        with self.device:
            result = self.empty(x.shape, x.dtype)
            if not x.size:
                return result
            here = cupy.cuda.get_current_stream()
            here.wait_event(made)
            ends = (result.address, self.index, x.address, source.index)
            runtime.memcpyPeerAsync(*ends, x.nbytes, here.ptr)
            copied = cupy.cuda.Event(disable_timing=True)
            copied.record(here)
        with source.device:
            there.wait_event(copied)
        return result

    def _enable_peer_access(self, other: Runtime) -> None:
        """Enable peer access of two GPUs, without which copies go through the host."""
        if other.index in self._peers:
            return
        for own, peer in ((self, other), (other, self)):
            with own.device, contextlib.suppress(runtime.CUDARuntimeError):
                # An error says that there is none, or that it is enabled already.
                runtime.deviceEnablePeerAccess(peer.index)
        self._peers.add(other.index)

    def zero(self, x: Array) -> None:
        """Set all bytes of a dense array to 0."""
        if x.size:
            runtime.memsetAsync(x.address, 0, x.nbytes, self.stream().ptr)

    def copy(self, x: Array) -> Array:
        """A copy of a dense array."""
        result = self.empty(x.shape, x.dtype)
        if x.size:
            ends = (result.address, x.address)
            kind = runtime.memcpyDeviceToDevice
            runtime.memcpyAsync(*ends, x.nbytes, kind, self.stream().ptr)
        return result

    @contextlib.contextmanager
    def persistent(self) -> Iterator[None]:
        """Context in which memory comes from a pool of its own."""
        with self.device, cupy.cuda.using_allocator(_persistent.malloc):
            yield

    def cleanup(self) -> None:
        """Give memory that is not in use back to the driver."""
        with self._lock:
            self._uploads = [upload for upload in self._uploads if not upload[0].done]
        with self.device:
            cupy.get_default_memory_pool().free_all_blocks()
            _persistent.free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()

    def argsort_rows(self, keys: Array) -> Array:
        """Indices that sort unsigned integers along the last axis, stably, as int64."""
        return _wrapped(cupy.argsort(keys.to_cupy(), axis=-1))

    def sort_keys(self, keys: Array) -> None:
        """Sort a vector of unsigned integers in place."""
        keys.to_cupy().sort()

    @functools.cached_property
    def cudnn(self) -> Cudnn | None:
        """The convolutions of cuDNN; None where its package is not installed."""
        library = installed()
        return None if library is None else Cudnn(library, self.empty, self.memory)

    def convolve(
        self, kind: str, operands: Sequence[Array], out: Array, plan: ConvGeometry
    ) -> bool:
        """Write a convolution of dense arrays by cuDNN; whether it took it. See `Cudnn.run`."""
        if self.cudnn is None:
            return False
        stream = int(cupy.cuda.get_current_stream().ptr)
        return self.cudnn.run(kind, operands, out, plan, stream, tf32=self.tf32)


def _wrapped(x: Any) -> Array:
    """An array of CuPy as one of this plugin, in the same memory."""
    is_dense = bool(x.flags.c_contiguous)
    return Array(x.data, x.data.ptr, x.dtype, x.shape, x.strides, x.size, is_dense)


@functools.cache
def _versions() -> str:
    """The versions that a cached binary is valid for; to ask NVRTC for its own would load it."""
    return f"{cupy.__version__} {runtime.runtimeGetVersion()}"


def _binary(source: str, architecture: str, *, contracts: bool) -> bytes:
    """The binary of a source, compiled by NVRTC, or kept on disk.

    CuPy's own compilation would flush subnormal numbers to 0.
    """
    options = compiler_options(contracts=contracts)
    identity = f"{architecture} {' '.join(options)} {_versions()}\n{source}"
    binary = _binaries.get(identity)
    if binary is None:
        minimal = ("--minimal",) if nvrtc.getVersion() >= _MIN_NVRTC_FOR_MINIMAL else ()
        binary = bytes(compiler.compile_using_nvrtc(source, (*options, *minimal))[0])
        _binaries.put(identity, binary)
    return binary
