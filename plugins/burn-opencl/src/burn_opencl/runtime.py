"""What touches PyOpenCL: devices, their queues and memory, programs, and its errors."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyopencl as cl

from burn.errors import ExecutionError
from burn_opencl.driver import DEVICE_TYPES, type_name
from burn_opencl.failures import build_error

__all__ = ["Runtime", "System"]

_NO_MEMORY: Final = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}


class System:
    """The devices of all platforms, by their type, in the order in which the probe lists them."""

    def __init__(self) -> None:
        self.devices: dict[str, list[Any]] = {name: [] for name in DEVICE_TYPES}
        with _translated("listing devices"):
            for platform in _platforms():
                for device in platform.get_devices():
                    if device.available:
                        self.devices[type_name(device.type)].append(device)

    def count(self, type_id: int) -> int:
        """How many devices there are of a type."""
        return len(self.devices[DEVICE_TYPES[type_id]]) if type_id < len(DEVICE_TYPES) else 0

    def open(self, type_id: int, index: int) -> Runtime:
        """A device, ready for work."""
        return Runtime(self.devices[DEVICE_TYPES[type_id]][index])


class Runtime:
    """A device with one queue, which takes commands in order, from one thread at a time.

    Attributes
    ----------
    name : str
        What the driver calls the device.
    is_cpu : bool
        Whether it shares the caches and the memory of the host: kernels differ by that.
    has_fp64 : bool
        Whether it computes in float64.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        with _translated("opening a device"):
            self._context = cl.Context([device])
            self._queue = cl.CommandQueue(self._context, device)
            self.name = " ".join(device.name.split())
            self.is_cpu = bool(device.type & cl.device_type.CPU)
            self.has_fp64 = "cl_khr_fp64" in device.extensions.split()
            self.units = int(device.max_compute_units)
            self.memory_size = int(device.global_mem_size)
            self.largest_block = int(device.max_mem_alloc_size)
            self._options = "-cl-std=CL1.2 -w"
            if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
                self._options += " -cl-fp32-correctly-rounded-divide-sqrt"
            platform = device.platform
            self.identity = (
                f"{platform.name}|{platform.version}|{device.name}|{device.driver_version}"
            )
        self.lock = threading.RLock()
        """Held while arguments of a kernel are set and it is put into the queue."""

    def __repr__(self) -> str:
        return f"Runtime({self.name!r})"

    # Programs

    def build(self, source: str) -> Any:
        """Compile a source.

        Raises
        ------
        ExecutionError
            With what the compiler says and the lines that it means.
        """
        try:
            with _quiet_compiler():
                return cl.Program(self._context, source).build(self._options)
        except cl.Error as error:
            raise build_error(self.name, source, str(error)) from None

    def load(self, binary: bytes) -> Any | None:
        """A program from its binary; None where the driver does not take it."""
        try:
            with _quiet_compiler():
                return cl.Program(self._context, [self._device], [binary]).build()
        except cl.Error:
            return None

    def binary(self, program: Any) -> bytes | None:
        """What `load` takes; None where the driver gives none."""
        try:
            return bytes(program.get_info(cl.program_info.BINARIES)[0])
        except cl.Error:
            return None

    def kernel(self, program: Any, name: str) -> Any:
        """A kernel of a program."""
        with _translated(f"kernel {name}"):
            return cl.Kernel(program, name)

    def launch(
        self,
        kernel: Any,
        parameters: bytes,
        memories: list[Any],
        size: tuple[int, ...],
        local: tuple[int, ...],
    ) -> None:
        """Put a kernel into the queue: a block of parameters first, then pieces of memory."""
        try:
            with self.lock:
                kernel.set_arg(0, parameters)
                for place, memory in enumerate(memories, 1):
                    kernel.set_arg(place, memory)
                cl.enqueue_nd_range_kernel(self._queue, kernel, size, local)
        except cl.Error as error:
            raise _failure(f"launching {kernel.function_name}", error) from None

    # Memory

    def allocate(self, size: int) -> Any | None:
        """A piece of memory; None where there is no room."""
        try:
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
        except cl.MemoryError:
            return None
        except cl.Error as error:
            if error.code in _NO_MEMORY:
                return None
            raise _failure(f"allocating {size} bytes", error) from None

    def write(self, memory: Any, values: np.ndarray[Any, Any]) -> None:
        """Copy host memory without gaps to the start of a piece; done when it returns."""
        with _translated(f"uploading {values.nbytes} bytes"), self.lock:
            cl.enqueue_copy(self._queue, memory, values, is_blocking=True)

    def read(self, values: np.ndarray[Any, Any], memory: Any, offset: int) -> None:
        """Copy memory of the device, from a number of bytes on, to the host."""
        with _translated(f"reading {values.nbytes} bytes"):
            with self.lock:
                event = cl.enqueue_copy(
                    self._queue, values, memory, src_offset=offset, is_blocking=False
                )
                self._queue.flush()
            event.wait()

    def copy(self, target: Any, source: Any, offset: int, size: int) -> None:
        """Copy within the device, in the queue."""
        with _translated(f"copying {size} bytes"), self.lock:
            cl.enqueue_copy(self._queue, target, source, src_offset=offset, byte_count=size)

    def fill(self, memory: Any, pattern: bytes, size: int) -> None:
        """Fill memory with a pattern of 1, 2, 4 or 8 bytes."""
        with _translated(f"filling {size} bytes"), self.lock:
            cl.enqueue_fill_buffer(self._queue, memory, pattern, 0, size)

    def finish(self) -> None:
        """Wait for all that is in the queue."""
        with _translated("waiting"):
            self._queue.finish()


def _platforms() -> list[Any]:
    try:
        return list(cl.get_platforms())
    except cl.Error:
        return []  # the loader found no driver


@contextlib.contextmanager
def _translated(work: str) -> Iterator[None]:
    """PyOpenCL's exceptions as burn's."""
    try:
        yield
    except cl.Error as error:
        raise _failure(work, error) from None


def _failure(work: str, error: Any) -> ExecutionError:
    text = " ".join(str(error).split())
    return ExecutionError(
        f"{work}: OpenCL reports {text}",
        hint="`burn devices` shows the device and its driver",
    )


@contextlib.contextmanager
def _quiet_compiler() -> Iterator[None]:
    """Nothing said of warnings that a compiler has."""
    with _BUILDING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_BUILDING: Final = threading.RLock()
"""Warning filters belong to the process: one build at a time."""
