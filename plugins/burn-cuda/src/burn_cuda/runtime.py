"""Runtime: one GPU through CuPy: memory, streams, transfers, compiled kernels and cuBLAS."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import operator
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import cupy
import numpy as np
from cupy.cuda import compiler, cublas, function, memory, nvrtc, runtime

from burn.plugin_api import (
    ConvGeometry,
    ExecutionError,
    OutOfMemoryError,
    Shape,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)
from burn_cuda.cudnn import Cudnn, installed
from burn_cuda.kernels import source
from burn_cuda.products import Products
from burn_cuda.small_products import TILES, launch_of, suits

__all__ = ["Runtime", "device_count"]

Array = Any
_Result = TypeVar("_Result")
Launch = Callable[[tuple[int, ...], tuple[int, ...], tuple[Any, ...]], None]

_STANDARD: Final = "--std=c++17"
_MIN_NVRTC_FOR_MINIMAL: Final = (12, 4)
"""Version of NVRTC from which on it need not declare CUDA's textures and its runtime."""

_log = logging.getLogger("burn")

_FLOAT32: Final = 0
_FLOAT64: Final = 1
_COMPLEX128: Final = 5
_CUDA_DATA_TYPES: Final = {
    float32.numpy: _FLOAT32,
    float64.numpy: _FLOAT64,
    float16.numpy: 2,
    bfloat16.numpy: 14,
    complex64.numpy: 4,
    complex128.numpy: _COMPLEX128,
}
"""cudaDataType of the dtypes that cuBLAS multiplies."""

_FACTOR_TYPES: Final = {
    kind: _FLOAT32 if kind in (2, 14) else kind for kind in _CUDA_DATA_TYPES.values()
}
"""cudaDataType of the factors of a product."""

_COMPUTE_FLOAT32: Final = 68
_COMPUTE_FAST_TF32: Final = 77
_COMPUTE_FLOAT64: Final = 70
_DEFAULT_ALGORITHM: Final = -1

_ALPHA_AND_BETA: Final = (np.array([1.0, 0.0], np.complex64), np.array([1.0, 0.0], np.complex128))
_FLOAT32_FACTORS, _FLOAT64_FACTORS = [
    (pair.ctypes.data, pair.ctypes.data + pair.itemsize) for pair in _ALPHA_AND_BETA
]
"""Host addresses of cuBLAS's alpha (1) and beta (0); real numbers are read from complex ones."""


_TIMED_LAUNCHES: Final = 4
_QUEUEING_NANOSECONDS: Final = 150_000
"""In this time the host queues launches that are timed, so that the device does not wait for it."""


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

    def __init__(self, source: str) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._loaded: Any = None

    def function(self, name: str, architecture: str) -> Launch:
        """A kernel by its name, for the current device."""
        with self._lock:
            if self._loaded is None:
                module = function.Module()
                module.load(_binary(self._source, architecture))
                self._loaded = module
            launch: Launch = self._loaded.get_function(name)
            return launch


class _Graph:
    """A captured graph, and the pool of the memory that its kernels use."""

    def __init__(self, graph: Any, pool: Any) -> None:
        self._graph = graph
        self._pool = pool

    def launch(self) -> None:
        """Launch it on the current stream."""
        self._graph.launch()


class Runtime:
    """One GPU.

    Parameters
    ----------
    index : int
        Its index among those that CUDA shows.

    Attributes
    ----------
    array : type
        The class of arrays.
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

    array = cupy.ndarray
    is_dense = staticmethod(operator.attrgetter("_c_contiguous"))
    """Whether an array is dense in row-major order."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.device = cupy.cuda.Device(index)
        self.tf32 = os.environ.get("BURN_CUDA_TF32") == "1"
        self.winograd = os.environ.get("BURN_CUDA_WINOGRAD") != "0"
        self._lock = threading.Lock()
        self._modules: dict[str, _Module] = {}
        self._uploads: list[tuple[Any, Pinned]] = []
        self._thread = threading.local()
        self._peers: set[int] = set()
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
        try:
            return cupy.ndarray(shape, dtype)
        except memory.OutOfMemoryError:
            self.cleanup()
        try:
            return cupy.ndarray(shape, dtype)
        except memory.OutOfMemoryError as error:
            raise self._out_of_memory(shape, dtype) from error

    def _out_of_memory(self, shape: Shape, dtype: Any) -> OutOfMemoryError:
        wanted = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        with self.device:
            free, total = runtime.memGetInfo()
            used = cupy.get_default_memory_pool().used_bytes() + _persistent.used_bytes()
        return OutOfMemoryError(
            f"no memory for {wanted:,} bytes (shape {tuple(shape)} of {np.dtype(dtype).name}) on "
            f"cuda:{self.index}: {free:,} of {total:,} bytes are free, {used:,} are in use here",
            hint="Free tensors, or compute with smaller ones; other programs may use the GPU too",
        )

    def view(self, x: Array, shape: Shape, strides: Sequence[int]) -> Array:
        """Another view of the memory of an array, to which it refers; strides are in bytes."""
        whole = memory.UnownedMemory(x.data.ptr, 0, x, self.index)
        pointer = memory.MemoryPointer(whole, 0)
        return cupy.ndarray(shape, x.dtype, memptr=pointer, strides=strides)

    @staticmethod
    def address(x: Array) -> int:
        """Address of the first element of an array."""
        return int(x.data.ptr)

    @staticmethod
    def references(x: Array) -> tuple[int, ...]:
        """References to an array, to its address and to its memory, which views share.

        Empty for memory that others may refer to: CuPy did not allocate it.
        """
        if x.data.mem.__class__ is not memory.PooledMemory:
            return ()
        return sys.getrefcount(x), sys.getrefcount(x.data), sys.getrefcount(x.data.mem)

    def compile(self, source: str, name: str) -> Launch:
        """A kernel of this device: ``launch(grid, block, arguments)``."""
        with self._lock:
            module = self._modules.get(source)
            if module is None:
                module = self._modules[source] = _Module(source)
        with self.device:
            return module.function(name, self.device.compute_capability)

    def upload(self, values: np.ndarray[Any, Any]) -> Array:
        """A copy of host memory, which the caller may change when this returns."""
        result = self.empty(values.shape, values.dtype)
        if values.size:
            if isinstance(values, Pinned) and values.flags.c_contiguous:
                self._upload_async(result, values)
            else:
                values = np.ascontiguousarray(values)
                result.data.copy_from_host(values.ctypes.data, values.nbytes)
        return result

    def _upload_async(self, target: Array, values: Pinned) -> None:
        """Queue an upload of pinned memory, and keep the memory alive until it is done."""
        stream = cupy.cuda.get_current_stream()
        target.data.copy_from_host_async(values.ctypes.data, values.nbytes, stream)
        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        with self._lock:
            self._uploads = [one for one in self._uploads if not one[0].done]
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
        return int(x.data.device_id)

    def consumer_stream(self) -> int:
        """The current stream, as DLPack numbers streams."""
        return int(cupy.cuda.get_current_stream().ptr) or 1

    def from_dlpack(self, x: Any) -> Array:
        """An array in the memory of an object with ``__dlpack__``."""
        return cupy.from_dlpack(x)

    def from_interface(self, x: Any) -> Array:
        """An array in the memory of an object with ``__cuda_array_interface__``."""
        return cupy.asarray(x)

    def download(self, x: Array) -> np.ndarray[Any, Any]:
        """A copy of a dense array in host memory; waits for the work before it."""
        result = np.empty(x.shape, x.dtype)
        stream = cupy.cuda.get_current_stream()
        try:
            if x.size:
                x.data.copy_to_host_async(result.ctypes.data, result.nbytes, stream)
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
            ends = (result.data.ptr, self.index, x.data.ptr, source.index)
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
        for one, peer in ((self, other), (other, self)):
            with one.device, contextlib.suppress(runtime.CUDARuntimeError):
                # An error says that there is none, or that it is enabled already.
                runtime.deviceEnablePeerAccess(peer.index)
        self._peers.add(other.index)

    def zero(self, x: Array) -> None:
        """Set all bytes of a dense array to 0."""
        if x.size:
            x.data.memset_async(0, x.nbytes)

    def copy(self, x: Array) -> Array:
        """A copy of a dense array."""
        result = self.empty(x.shape, x.dtype)
        if x.size:
            result.data.copy_from_device_async(x.data, x.nbytes)
        return result

    @contextlib.contextmanager
    def tuned_products(self) -> Iterator[None]:
        """Context in which products are computed by the algorithm that is fastest here.

        The first product of its kind is timed, which waits for the device.
        """
        self._thread.is_on = True
        try:
            yield
        finally:
            self._thread.is_on = False

    @functools.cached_property
    def _products(self) -> Products:
        return Products(self.empty, lambda: int(self.stream().ptr), self._elapsed)

    def _elapsed(self, run: Callable[[], None]) -> float:
        """Milliseconds that the device takes for what a function launches, on average of a few."""
        wait = self.compile(source("wait.cu"), "wait")
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        wait((1,), (1,), (_QUEUEING_NANOSECONDS,))
        start.record()
        for _ in range(_TIMED_LAUNCHES):
            run()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / _TIMED_LAUNCHES

    def stream(self) -> Any:
        """The current stream."""
        return cupy.cuda.get_current_stream()

    @property
    def is_capturing(self) -> bool:
        """Whether this thread captures what it launches."""
        return getattr(self._thread, "captures", False)

    def other_streams(self, count: int) -> list[Any]:
        """Streams that wait for no other one."""
        return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]

    def record(self) -> Any:
        """An event after all that the current stream has been given."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self.stream())
        return event

    def capture(self, run: Callable[[], _Result]) -> tuple[Callable[[], None], _Result]:
        """Capture what a function launches on the current stream, and does not run.

        What it allocates has a pool of its own, which lives as long as the launch that is returned.
        """
        with self.device:
            # The work before it has left memory there that this pool needs.
            cupy.get_default_memory_pool().free_all_blocks()
            pool, stream = memory.MemoryPool(), cupy.cuda.Stream(non_blocking=True)
            with cupy.cuda.using_allocator(pool.malloc), stream:
                stream.begin_capture()
                self._thread.captures = True
                try:
                    result = run()
                except BaseException:
                    with contextlib.suppress(runtime.CUDARuntimeError):
                        stream.end_capture()  # the error may have ended it
                    raise
                finally:
                    self._thread.captures = False
                graph = stream.end_capture()
        return _Graph(graph, pool).launch, result

    @contextlib.contextmanager
    def persistent(self) -> Iterator[None]:
        """Context in which memory comes from a pool of its own."""
        with self.device, cupy.cuda.using_allocator(_persistent.malloc):
            yield

    def cleanup(self) -> None:
        """Give memory that is not in use back to the driver."""
        with self._lock:
            self._uploads = [one for one in self._uploads if not one[0].done]
        with self.device:
            cupy.get_default_memory_pool().free_all_blocks()
            _persistent.free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()

    def argsort_rows(self, keys: Array) -> Array:
        """Indices that sort unsigned integers along the last axis, stably, as int64."""
        return cupy.argsort(keys, axis=-1)

    def sort_keys(self, keys: Array) -> None:
        """Sort a vector of unsigned integers in place."""
        keys.sort()

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

    def gemm(
        self,
        a: Array,
        b: Array,
        out: Array,
        shape: tuple[int, int, int],
        *,
        transposed: tuple[bool, bool] = (False, False),
        leading: tuple[int, int] | None = None,
        strides: tuple[int, int, int] = (0, 0, 0),
        batch: int = 1,
        bias: Array = None,
    ) -> bool:
        """Matrix products of cuBLAS, of row-major matrices: ``out[i] = a[i] @ b[i] + bias``.

        Parameters
        ----------
        a, b, out : array
            The first matrix of each.
        shape : tuple of int
            Rows of `a`, columns of `b`, and terms of each sum.
        transposed : tuple of bool
            Whether the memory of `a`, and of `b`, holds the transposed matrix.
        leading : tuple of int, optional
            Elements between rows in the memory of `a`, and of `b`.
        strides : tuple of int
            Elements from one matrix to the next in `a`, in `b` and in `out`.
        batch : int
            Number of products.
        bias : array, optional
            A dense vector of the dtype of `out`.

        Returns
        -------
        bool
            False if there is a bias, and no algorithm that adds it here.
        """
        rows, columns, terms = shape
        if leading is None:
            leading = (rows if transposed[0] else terms, terms if transposed[1] else columns)
        kind, result = _CUDA_DATA_TYPES[a.dtype], _CUDA_DATA_TYPES[out.dtype]
        if kind in (_FLOAT64, _COMPLEX128):
            compute, factors = _COMPUTE_FLOAT64, _FLOAT64_FACTORS
        else:
            compute, factors = _COMPUTE_FLOAT32, _FLOAT32_FACTORS
            if self.tf32 and kind == _FLOAT32:
                compute = _COMPUTE_FAST_TF32
        one, zero = factors
        # cuBLAS is column-major: it multiplies the transposed matrices in reverse order.
        if getattr(self._thread, "is_on", False):
            addresses: tuple[int, ...] = (b.data.ptr, a.data.ptr, out.data.ptr)
            if bias is not None:
                addresses = (*addresses, bias.data.ptr)
            groups = (
                (compute, _FACTOR_TYPES[kind], (kind, result)),
                ((columns, rows, terms), transposed[::-1], leading[::-1]),
                (batch, (strides[1], strides[0], strides[2]), bias is not None),
            )
            own: list[Callable[[], None]] = []
            if kind == result == _FLOAT32 and batch == 1 and bias is None and suits(shape):
                own = [
                    functools.partial(
                        launch_of,
                        self.compile,
                        tile,
                        shape,
                        transposed,
                        leading,
                        (a.data.ptr, b.data.ptr, out.data.ptr),
                    )
                    for tile in TILES
                ]
            if self._products.run(groups, factors, addresses, own):
                return True
        if bias is not None:
            return False
        handle = self.device.cublas_handle
        flags = (int(transposed[1]), int(transposed[0]), columns, rows, terms)
        right, left = (b.data.ptr, kind, leading[1]), (a.data.ptr, kind, leading[0])
        target = (out.data.ptr, result, columns)
        ends = (compute, _DEFAULT_ALGORITHM)
        if batch == 1:
            cublas.gemmEx(handle, *flags, one, *right, *left, zero, *target, *ends)
            return True
        a_step, b_step, out_step = strides
        cublas.gemmStridedBatchedEx(
            handle,
            *flags,
            one,
            *right,
            b_step,
            *left,
            a_step,
            zero,
            *target,
            out_step,
            batch,
            *ends,
        )
        return True


def _cache_folder() -> Path:
    """The folder in which CuPy caches kernels."""
    chosen = os.environ.get("CUPY_CACHE_DIR")
    return Path(chosen) if chosen else Path.home() / ".cupy" / "kernel_cache"


@functools.cache
def _versions() -> str:
    """The versions that a cached binary is valid for; to ask NVRTC for its own would load it."""
    return f"{cupy.__version__} {runtime.runtimeGetVersion()}"


def _binary(source: str, architecture: str) -> bytes:
    """The binary of a source, compiled by NVRTC and cached on disk beside the kernels of CuPy.

    CuPy's own compilation would flush subnormal numbers to 0.
    """
    identity = f"{architecture} {_STANDARD} {_versions()}\n{source}"
    key = hashlib.sha256(identity.encode())
    path = _cache_folder() / f"burn-{key.hexdigest()[:40]}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        pass  # not cached yet
    minimal = ("--minimal",) if nvrtc.getVersion() >= _MIN_NVRTC_FOR_MINIMAL else ()
    binary, _ = compiler.compile_using_nvrtc(source, (_STANDARD, *minimal))
    binary = bytes(binary)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(binary)
        Path(file.name).replace(path)
    except OSError as error:
        _log.debug("a compiled kernel cannot be kept in %s: %s", path.parent, error)
    return binary
