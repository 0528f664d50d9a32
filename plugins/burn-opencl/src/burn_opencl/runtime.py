"""The interface to PyOpenCL: devices, queues, memory, programs, and errors."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

import numpy as np
import pyopencl as cl

from burn.plugin_api import DeviceUnavailableError, ExecutionError
from burn_opencl.address_space import bytes_left, has_room_for_binaries, require_room_to_compile
from burn_opencl.failures import build_error, driver_error, lost_error, resource_error
from burn_opencl.icd_loader import DEVICE_TYPES, type_name
from burn_opencl.limits import SMALL_GROUP_ITEMS
from burn_opencl.pacing import Pacing

__all__ = ["Runtime", "System"]

_log = logging.getLogger("burn")

_OUT_OF_MEMORY: Final = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}
_RESERVE_BYTES: Final = 1 << 25
"""What tensors leave of a limited address space: PoCL ends the process where it lacks a little."""

_POLLING_SECONDS: Final = 2e-4
"""How long a thread polls a CPU for the end of a command before it sleeps.

Putting a thread to sleep and waking it takes the system longer than a small operation.
"""

_yield_thread: Final = getattr(os, "sched_yield", None)
"""Lets other threads run, those of the driver above all; None where the system lacks it."""

_POCL: Final = "Portable Computing Language"
_NVIDIA_FAULT: Final = -9999
_DEVICE_LOST: Final = {
    cl.status_code.DEVICE_NOT_AVAILABLE,
    cl.status_code.INVALID_DEVICE,
    cl.status_code.INVALID_CONTEXT,
    cl.status_code.INVALID_COMMAND_QUEUE,
    _NVIDIA_FAULT,
}
"""Status codes for a device that is gone, or that a kernel has brought down."""


class System:
    """The devices of all platforms, by type, in the order in which the probe lists them."""

    def __init__(self) -> None:
        self.devices: dict[str, list[Any]] = {name: [] for name in DEVICE_TYPES}
        for platform in _platforms():
            try:
                found = [device for device in platform.get_devices() if device.available]
                types = [type_name(item.type) for item in found]
            except cl.Error as error:
                # The probe skips such a platform too.
                _log.warning("an OpenCL platform does not list its devices: %s", error)
                continue
            for device, name in zip(found, types, strict=True):
                self.devices[name].append(device)

    def count(self, type_id: int) -> int:
        """Number of devices of a type."""
        return len(self.devices[DEVICE_TYPES[type_id]]) if type_id < len(DEVICE_TYPES) else 0

    def open(self, type_id: int, index: int) -> Runtime:
        """Open a device.

        Raises
        ------
        DeviceUnavailableError
            If PyOpenCL does not list it.
        """
        listed = self.devices[DEVICE_TYPES[type_id]]
        if index >= len(listed):
            raise DeviceUnavailableError(
                f"opencl/{DEVICE_TYPES[type_id]}:{index} cannot be opened: PyOpenCL lists "
                f"{len(listed)} devices of this type",
                hint="`clinfo -l` lists the drivers that are registered (on Linux, by a file in "
                "/etc/OpenCL/vendors)",
            )
        return Runtime(listed[index])


class Runtime:
    """A device with one queue, which executes commands in order.

    Attributes
    ----------
    name : str
        The name that the driver gives the device.
    is_cpu : bool
        Whether it is a CPU, which has kernels of its own.
    has_fp64 : bool
        Whether it computes in float64.
    divides_exactly : bool
        Whether its quotients of float32 are correctly rounded.
    binaries_take_long : bool
        Whether asking for the binary of a program compiles its kernels again. (PoCL also has a
        cache of its own, which loads more slowly than binaries do.)
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self.name = "an OpenCL device"
        self.memory_size = 0
        self._queue: Any = None
        self._last: Any = None
        self.used: Callable[[], int] = int
        """Returns the bytes allocated on the device; the pool sets it."""
        self.relieve: Callable[[], None] = self.finish
        """Frees memory that is not in use, when the device lacks some; the pool sets it."""
        with self._translated("opening it"):
            self._context = cl.Context([device])
            # `Programs` keeps binaries; PyOpenCL's own cache would pickle beside them.
            self._context.cache_dir = False  # type: ignore[attr-defined]  # it is dynamic
            self._queue = cl.CommandQueue(self._context, device)
            self.name = " ".join(device.name.split())
            self.is_cpu = bool(device.type & cl.device_type.CPU)
            self.has_fp64 = "cl_khr_fp64" in device.extensions.split()
            self.units = int(device.max_compute_units)
            self.max_items = int(device.max_work_group_size)
            self.memory_size = int(device.global_mem_size)
            self.largest_block = int(device.max_mem_alloc_size)
            self._options = "-cl-std=CL1.2 -w"
            self.divides_exactly = bool(
                device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
            )
            if self.divides_exactly:
                self._options += " -cl-fp32-correctly-rounded-divide-sqrt"
            platform = device.platform
            self.binaries_take_long = platform.name == _POCL
            self.identity = (
                f"{platform.name}|{platform.version}|{device.name}|{device.driver_version}"
            )
        self._pacing = Pacing(self._is_complete, self._wait)
        self.lock = threading.RLock()
        """Held while the arguments of a kernel are set and it is queued."""

    @property
    def queue(self) -> Any:
        """PyOpenCL's queue, for libraries that add commands to it."""
        return self._queue

    def __repr__(self) -> str:
        return f"Runtime({self.name!r})"

    # Programs

    def build(self, source: str) -> Any:
        """Compile a source.

        Raises
        ------
        ExecutionError
            With the log of the compiler and the line that it names; an OutOfMemoryError where a
            limited address space leaves it too little.
        """
        if self.is_cpu:
            require_room_to_compile(self.name, self.relieve)
        try:
            with _quiet_compiler():
                return cl.Program(self._context, source).build(self._options)
        except cl.Error as error:
            raise build_error(self.name, source, str(error)) from None

    def load(self, binary: bytes) -> Any | None:
        """A program from its binary; None where the driver refuses it."""
        try:
            with _quiet_compiler():
                return cl.Program(self._context, [self._device], [binary]).build()
        except cl.Error:
            return None

    def binary(self, program: Any) -> bytes | None:
        """The binary of a program, for `load`; None where there is none, or too little memory."""
        if self.is_cpu and not has_room_for_binaries():
            return None
        try:
            return bytes(program.get_info(cl.program_info.BINARIES)[0])
        except cl.Error:
            return None

    def kernel(self, program: Any, name: str) -> Any:
        """A kernel of a program."""
        with self._translated(f"asking for the kernel {name}"):
            return cl.Kernel(program, name)

    def launch(
        self,
        kernel: Any,
        parameters: bytes,
        memories: list[Any],
        size: tuple[int, ...],
        local: tuple[int, ...],
    ) -> None:
        """Queue a kernel; its arguments are a block of parameters and then memory."""
        try:
            self._queued(kernel, parameters, memories, size, local)
        except cl.Error as error:
            again = functools.partial(self._queued, kernel, parameters, memories, size, local)
            self._launched_again(error, kernel, memories, size, local, again)

    def launch_changed(
        self,
        kernel: Any,
        changed: list[tuple[int, Any]],
        memories: list[Any],
        size: tuple[int, ...],
        local: tuple[int, ...],
    ) -> None:
        """Queue a kernel that keeps its arguments, of which some change: bytes, or memory."""
        set_bytes = getattr(kernel, "_set_arg_buf", kernel.set_arg)

        def queue() -> None:
            with self.lock:
                for number, value in changed:
                    (set_bytes if value.__class__ is bytes else kernel.set_arg)(number, value)
                self._last = cl.enqueue_nd_range_kernel(self._queue, kernel, size, local)
                self._pace((id(kernel), size[0].bit_length(), 0))

        try:
            queue()
        except cl.Error as error:
            self._launched_again(error, kernel, memories, size, local, queue)

    def _queued(
        self,
        kernel: Any,
        parameters: bytes,
        memories: list[Any],
        size: tuple[int, ...],
        local: tuple[int, ...],
    ) -> None:
        # PyOpenCL's private setter of bytes; `set_arg` tries all other types first, in 8 µs.
        set_bytes = getattr(kernel, "_set_arg_buf", kernel.set_arg)
        with self.lock:
            set_bytes(0, parameters)
            for number, memory in enumerate(memories, 1):
                kernel.set_arg(number, memory)
            self._last = cl.enqueue_nd_range_kernel(self._queue, kernel, size, local)
            # Kernels with large groups may loop, as often as the size of their memory suggests.
            memory = memories[0].size.bit_length() if local[0] > SMALL_GROUP_ITEMS else 0
            self._pace((id(kernel), size[0].bit_length(), memory))

    def paced_by(self, key: Hashable) -> None:
        """Note work that a library has queued; see `Pacing.add`."""
        with self._translated("waiting for its work"), self.lock:
            self._last = cl.enqueue_marker(self._queue)
            self._pace(key)

    def _pace(self, key: Hashable) -> None:
        """Note the last command, under the lock, and wait if the queue holds too much work."""
        with contextlib.suppress(cl.Error):  # a failed command raises when its result is read
            self._pacing.add(key, self._last)

    def _launched_again(
        self,
        error: Any,
        kernel: Any,
        memories: list[Any],
        size: tuple[int, ...],
        local: tuple[int, ...],
        again: Callable[[], None],
    ) -> None:
        """Retry after freeing memory; some drivers allocate at the first launch only."""
        held = {id(memory): memory.size for memory in memories if isinstance(memory, cl.Buffer)}
        work = (
            f"launching {kernel.function_name} for {size[0]} items in groups of {local[0]}, "
            f"on {sum(held.values())} bytes"
        )
        if error.code not in _OUT_OF_MEMORY:
            raise self._failure(work, error) from None
        self.relieve()
        with self._translated(work):
            again()

    # Memory

    def allocate(self, size: int) -> Any | None:
        """Allocate memory; None if the device lacks it."""
        flags: Any = cl.mem_flags.READ_WRITE
        if self.is_cpu:
            # PoCL would allocate at the first command, and end the process where that fails.
            flags |= cl.mem_flags.ALLOC_HOST_PTR
            left = bytes_left()
            if left is not None and size + _RESERVE_BYTES > left:
                return None
        try:
            return cl.Buffer(self._context, flags, size)
        except cl.MemoryError:
            return None
        except cl.Error as error:
            if error.code in _OUT_OF_MEMORY:
                return None
            raise self._failure(f"allocating {size} bytes", error) from None

    def release(self, memory: Any) -> None:
        """Free memory."""
        with self._translated("freeing memory"):
            memory.release()

    def write(self, memory: Any, values: np.ndarray[Any, Any]) -> None:
        """Copy contiguous host memory to the start of device memory, and wait for it."""
        with self._translated(f"uploading {values.nbytes} bytes"), self.lock:
            cl.enqueue_copy(self._queue, memory, values, is_blocking=True)

    def write_soon(self, memory: Any, values: np.ndarray[Any, Any]) -> Any:
        """Queue the same. The values must not change until `is_done` returns True.

        The result holds a reference to them; deleting it before waits for the copy.
        """
        with self._translated(f"uploading {values.nbytes} bytes"), self.lock:
            self._last = None  # it may hold the values of an upload
            return cl.enqueue_copy(self._queue, memory, values, is_blocking=False)

    def is_done(self, work: Any) -> bool:
        """Whether a command of `write_soon` is done, or failed."""
        with self._translated("uploading"):
            return self._is_complete(work)

    def wait_for(self, work: Any) -> None:
        """Wait for a command of `write_soon`."""
        with self._translated("uploading"):
            work.wait()

    def pinned(self, size: int) -> tuple[Any, np.ndarray[Any, Any]] | None:
        """Host memory that the device reads directly, and its owner; None if there is none."""
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        try:
            with self.lock:
                piece = cl.Buffer(self._context, flags, size)
                mapped: Any = cl.enqueue_map_buffer(
                    self._queue,
                    piece,
                    cl.map_flags.WRITE,
                    0,
                    (size,),
                    np.dtype(np.uint8),
                    is_blocking=True,
                )
        except cl.Error:
            return None
        return piece, mapped[0]

    def read(self, values: np.ndarray[Any, Any], memory: Any, offset: int) -> None:
        """Copy device memory, from an offset in bytes on, to the host."""
        with self._translated(f"reading {values.nbytes} bytes"):
            with self.lock:
                event = cl.enqueue_copy(
                    self._queue, values, memory, src_offset=offset, is_blocking=False
                )
                self._queue.flush()
            self._wait(event)
        with self.lock:
            self._pacing.clear()

    def copy(self, target: Any, source: Any, offset: int, size: int) -> None:
        """Queue a copy within the device, from an offset in bytes on."""
        with self._translated(f"copying {size} bytes"), self.lock:
            self._last = cl.enqueue_copy(
                self._queue, target, source, src_offset=offset, byte_count=size
            )
            self._pace(("copy", size.bit_length()))

    def fill(self, memory: Any, pattern: bytes, size: int) -> None:
        """Queue a fill of memory with a pattern of 1, 2, 4 or 8 bytes."""
        with self._translated(f"filling {size} bytes"), self.lock:
            self._last = cl.enqueue_fill_buffer(self._queue, memory, pattern, 0, size)
            self._pace(("fill", size.bit_length()))

    def finish(self) -> None:
        """Wait for all commands in the queue."""
        with self._translated("waiting for its work"):
            last = self._last if self.is_cpu else None
            if last is None:
                self._queue.finish()
            else:  # commands finish in order
                self._queue.flush()
                self._wait(last)
        with self.lock:
            self._pacing.clear()

    def _wait(self, command: Any) -> None:
        """Wait for a command that was flushed to the device."""
        if self.is_cpu and _yield_thread is not None:
            latest = time.perf_counter() + _POLLING_SECONDS
            while not self._is_complete(command):
                _yield_thread()
                if time.perf_counter() > latest:
                    break
        command.wait()

    @staticmethod
    def _is_complete(command: Any) -> bool:
        """Whether a command is done, or failed."""
        return bool(command.command_execution_status <= cl.command_execution_status.COMPLETE)

    # Errors

    @contextlib.contextmanager
    def _translated(self, work: str) -> Iterator[None]:
        """Turn exceptions of PyOpenCL into burn's."""
        try:
            yield
        except cl.Error as error:
            raise self._failure(work, error) from None

    def _answers(self) -> bool:
        """Whether the device still executes commands, which its first error need not tell."""
        try:
            if self._queue is not None:
                self._queue.finish()
        except cl.Error:
            return False
        return True

    def _failure(self, work: str, error: Any) -> ExecutionError:
        text = " ".join(str(error).split())
        if error.code in _DEVICE_LOST or not self._answers():
            return lost_error(self.name, work, text)
        if error.code in _OUT_OF_MEMORY:
            return resource_error(self.name, work, text, self.used(), self.memory_size)
        return driver_error(self.name, work, text)


def _platforms() -> list[Any]:
    try:
        return list(cl.get_platforms())
    except cl.Error:
        return []  # the loader found no driver


@contextlib.contextmanager
def _quiet_compiler() -> Iterator[None]:
    """Suppress the warnings of a compiler."""
    with _BUILD_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_BUILD_LOCK: Final = threading.RLock()
"""Warning filters are global to the process, so programs are built one at a time."""
