"""Mock devices: hardware with limits, for tests on machines that have none.

`mock_backend` declares a backend that computes with NumPy on any number of devices. Each can lack
dtypes, have little memory, fail at what was queued, or refuse to be opened, so that what a program
or a plugin does about it can be tried out. The backend has the required ops alone, and is stricter
than hardware: an op that meets or makes a dtype which the device has not is an error, wherever in a
decomposition that happens.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.backend import ArrayBackend, Backend
from burn.backend.capsule import CapsuleObject, read_capsule, readdress_capsule, request_capsule
from burn.backend.dlpack import HOST
from burn.device_id import DeviceId
from burn.dtype import DType, DTypeUsage
from burn.errors import DTypeError, ExecutionError
from burn.locks import new_rlock
from burn.ops import REGISTRY, Op
from burn.plugins import BackendSpec, DeviceInfo
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from burn.testing.op_samples import Array

__all__ = ["MOCK_DEVICES", "MockArray", "MockBackend", "MockDevice", "hang", "mock_backend"]

_DTYPES: Final = tuple(
    DType.of(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
)
"""What a mock device has at most: real dtypes of NumPy's own."""


@dataclass(frozen=True)
class MockDevice:
    """What a mock device is like.

    Attributes
    ----------
    type : str
        Its type: an identifier. Devices of one type are numbered in their order.
    without : tuple of str
        Names of dtypes that it has not.
    stores : tuple of str
        Names of dtypes that it stores, but does not compute with.
    memory : int or None
        How many bytes its tensors can take together; beyond that the backend raises a
        `MemoryError`. A view takes none.
    fault : str
        If not empty, work that is queued on it fails: the next `sync`, or read of a tensor, raises
        an `ExecutionError` with this text.
    refusal : str
        If not empty, the device is there but cannot be opened: its driver raises an `OSError` with
        this text.
    dlpack : tuple of int or None
        Type and number that DLPack gives its memory, which devices of the same share; None for
        memory that no other library shares, and that is read and written as the host's.
    """

    type: str = "unit"
    without: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    memory: int | None = None
    fault: str = ""
    refusal: str = ""
    dlpack: tuple[int, int] | None = None

    def usage(self, dtype: DType) -> DTypeUsage:
        """What it can do with a dtype."""
        if dtype not in _DTYPES or dtype.name in self.without:
            return DTypeUsage.NONE
        return DTypeUsage.STORAGE if dtype.name in self.stores else DTypeUsage.GENERAL


MOCK_DEVICES: Final = (
    MockDevice("plain"),
    MockDevice("plain"),
    MockDevice("no_float64", without=("float64",)),
    MockDevice("no_64bit", without=("float64", "int64", "uint64")),
    MockDevice("stores_float16", stores=("float16",)),
    MockDevice("failing", fault="the unit reports a memory fault"),
    MockDevice("small", memory=4096),
    MockDevice("busy", refusal="the unit belongs to another process"),
)
"""The devices of a mock backend by default; each is named after what it is for."""


def mock_backend(
    name: str = "mock",
    devices: Sequence[MockDevice] = MOCK_DEVICES,
    *,
    priority: int | Mapping[str, int] = 0,
    fork_safe: bool = True,
    on_probe: Callable[[], object] | None = None,
    on_load: Callable[[], object] | None = None,
) -> BackendSpec:
    """Declare a backend of mock devices, to be registered in the process.

    Parameters
    ----------
    name : str
        Its name.
    devices : sequence of MockDevice
        What devices it has; `MOCK_DEVICES` if left out.
    priority : int or mapping of str to int
        As in a `BackendSpec`.
    fork_safe : bool
        Whether a forked process may go on using the devices.
    on_probe, on_load : callable, optional
        Called when devices are counted and when the backend is loaded: to raise what a driver or a
        library would, to wait, or to `hang`.

    Returns
    -------
    BackendSpec
        For `burn.registered`, `burn.register_backend`, or the hook of a plugin.

    Examples
    --------
    A device without 64-bit types gives other defaults, and says what it has not:

    >>> import burn
    >>> from burn.testing import MockDevice, hang, mock_backend
    >>> with burn.registered(mock_backend("mock")):
    ...     x = burn.arange(3, device="mock/no_64bit")
    ...     print(x.dtype, burn.argmax(x).dtype)
    ...     x.astype("float64")
    Traceback (most recent call last):
        ...
    burn.errors.DTypeError: astype: mock/no_64bit:0 has no float64. It has bool, int8, ...

    Memory runs out after some bytes:

    >>> with burn.registered(mock_backend("tiny", [MockDevice(memory=1000)])):
    ...     x = burn.ones(200, device="tiny")
    ...     y = x * 2
    Traceback (most recent call last):
        ...
    burn.errors.OutOfMemoryError: multiply(float32[200], 2.0): tiny:0 has too little memory: ...

    What was queued fails when the program waits for it:

    >>> with burn.registered(mock_backend("mock")):
    ...     device = burn.Device("mock/failing")
    ...     y = burn.exp(burn.ones(2, device=device))
    ...     device.sync()
    Traceback (most recent call last):
        ...
    burn.errors.ExecutionError: the unit reports a memory fault

    A driver that does not answer costs seconds, and no other backend notices:

    >>> import os
    >>> os.environ["BURN_PROBE_SECONDS"] = "0.1"
    >>> with burn.registered(mock_backend("stuck", on_probe=hang)) as entry:
    ...     entry.state, burn.Device("cpu")
    (<State.FAILED: 'failed'>, Device('cpu:0'))
    >>> del os.environ["BURN_PROBE_SECONDS"]

    What a library raises when it is loaded is reported to those who ask for it by name:

    >>> def fail():
    ...     raise OSError("libunit.so: cannot open shared object file")
    >>> with burn.registered(mock_backend("broken", on_load=fail)):
    ...     burn.ones(2, device="broken")
    Traceback (most recent call last):
        ...
    burn.errors.PluginError: backend 'broken' of (this process) cannot be used: OSError: ...
    """
    types = tuple(dict.fromkeys(device.type for device in devices))

    def probe() -> list[DeviceInfo]:
        if on_probe is not None:
            on_probe()
        return [
            DeviceInfo(
                device.type,
                device_id.index_id,
                hardware=f"a mock ({device.type})",
                memory=device.memory,
                usage={dtype: device.usage(dtype) for dtype in DType.members()},
            )
            for device_id, device in _numbered(devices).items()
        ]

    def load() -> Backend:
        if on_load is not None:
            on_load()
        return MockBackend(name, devices)  # type: ignore[abstract]  # its ops are added below

    return BackendSpec(
        name,
        load=load,
        probe=probe,
        device_types=types or ("unit",),
        priority=priority,
        api_version=(0, 1),
        fork_safe=types if fork_safe else (),
    )


def hang() -> None:
    """Never return, as a driver that does not answer.

    Call it from the probe of a mock backend alone: that runs in a thread which is given up.
    """
    threading.Event().wait()


class MockArray:
    """A primitive of a mock device.

    Attributes
    ----------
    values : numpy.ndarray
        Its values, in memory of the host.
    device : DeviceId
        The device that it is on.
    """

    __slots__ = ("device", "values")

    def __init__(self, values: Array, device: DeviceId) -> None:
        self.values = values
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.values.shape

    @property
    def dtype(self) -> DType:
        """The dtype; a DType is its own native object here."""
        return DType.of(self.values.dtype)


class MockBackend(Backend):
    """A backend of mock devices, with the required ops alone; `mock_backend` declares it.

    Parameters
    ----------
    name : str
        Its name.
    devices : sequence of MockDevice
        Its devices.
    """

    def __init__(self, name: str, devices: Sequence[MockDevice]) -> None:
        self._name = name
        self._units = {
            device_id: _Unit(f"{name}/{device.type}:{device_id.index_id}", device)
            for device_id, device in _numbered(devices).items()
        }
        self._host = _Host()  # type: ignore[abstract]  # the namespace fills in the other ops

    def __repr__(self) -> str:
        return f"MockBackend({self._name!r})"

    def name(self, device: DeviceId) -> str:
        """The name that it was given."""
        del device
        return self._name

    def native_dtype(self, dtype: DType) -> object | None:
        """The DType itself, if any of its devices could have it."""
        return dtype if dtype in _DTYPES else None

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """What was said of the device, which is opened for it."""
        return self._opened(device).usage(dtype)

    def device_count(self, type_id: int) -> int:
        """Number of devices of a type."""
        return sum(device.type_id == type_id for device in self._units)

    def for_device(self, device: DeviceId) -> MockBackend:
        """Open a device.

        Raises
        ------
        OSError
            If it was said to be refused.
        """
        self._opened(device)
        return self

    def _opened(self, device: DeviceId) -> MockDevice:
        """What was said of a device that is not refused."""
        like = self._units[device].like
        if like.refusal:
            raise OSError(like.refusal)
        return like

    def sync(self, device: DeviceId) -> None:
        """Wait for what was queued.

        Raises
        ------
        ExecutionError
            If there was any, and the device was said to fail.
        """
        self._units[device].wait()

    def quiet(self) -> AbstractContextManager[Any]:
        """NumPy neither warns nor raises about float results."""
        return np.errstate(all="ignore")

    def from_data(self, data: TensorData, device: DeviceId) -> MockArray:
        """A copy of the data."""
        return self._made(np.array(data.array), device)

    def to_data(self, x: MockArray) -> TensorData:
        """The values, once the device has done its work."""
        self._units[x.device].wait()
        return TensorData(x.values.view())

    def device_of(self, x: object) -> DeviceId | None:
        """The device that it was made on."""
        return x.device if isinstance(x, MockArray) and x.device in self._units else None

    def dlpack_device(self, device: DeviceId) -> tuple[int, int]:
        """What was said of the device."""
        return self._units[device].like.dlpack or HOST

    def to_dlpack(
        self,
        x: MockArray,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory of the values, under the name that the device's has."""
        dlpack_device = self.dlpack_device(x.device)
        capsule = super().to_dlpack(x, stream=stream, max_version=max_version, copy=copy)
        return readdress_capsule(capsule, dlpack_device)

    def from_dlpack(self, x: Any, device: DeviceId) -> MockArray | None:
        """The same memory."""
        dlpack_device = self.dlpack_device(device)
        capsule = request_capsule(x)
        if read_capsule(capsule).device != dlpack_device:
            return None
        return self._made(
            np.from_dlpack(CapsuleObject(readdress_capsule(capsule, HOST), HOST)), device
        )

    def run(self, definition: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """Run an op on the host, and hold it to what the device can do."""
        arrays = [part for operand in operands for part in _parts(operand)]
        device = attributes["device"] if "device" in attributes else arrays[0].device
        unit = self._units[device]
        for array in arrays:
            if array.device != device:
                raise ExecutionError(f"{unit.name}: the memory of another device was passed to it")
            if definition.needs_arithmetic:
                unit.require(DTypeUsage.GENERAL, array.dtype)
        unit.queue()
        with self.quiet():
            result = getattr(self._host, definition.name)(
                *[_unwrapped(operand) for operand in operands], **attributes
            )
        if not definition.returns_tuple:
            return self._made(result, device)
        return tuple([self._made(item, device) for item in result])

    def _made(self, values: Any, device: DeviceId) -> MockArray:
        array = MockArray(np.asarray(values), device)
        unit = self._units[device]
        unit.require(DTypeUsage.STORAGE, array.dtype)
        unit.claim(array.values)
        return array


def _op(definition: Op) -> Callable[..., Any]:
    """The method of `MockBackend` for an op."""

    def method(self: MockBackend, *operands: Any, **attributes: Any) -> Any:
        return self.run(definition, operands, attributes)

    method.__name__ = definition.name
    method.__doc__ = definition.__doc__
    return method


for _definition in REGISTRY.values():
    if _definition.is_required:
        setattr(MockBackend, _definition.name, _op(_definition))


class _Host(ArrayBackend):
    """NumPy, which does the work of all mock devices."""

    def __init__(self) -> None:
        super().__init__(np)

    def name(self, device: DeviceId) -> str:
        del device
        return "host"

    def native_dtype(self, dtype: DType) -> object | None:
        return dtype.numpy if dtype in _DTYPES else None

    def to_data(self, x: Array) -> TensorData:
        return TensorData(np.asarray(x))


class _Unit:
    """The state of one mock device.

    Parameters
    ----------
    name : str
        How users spell it.
    like : MockDevice
        What it is like.
    """

    def __init__(self, name: str, like: MockDevice) -> None:
        self.name = name
        self.like = like
        self._lock = new_rlock()  # memory may be released while some is claimed
        self._is_busy = False
        self._used = 0
        self._blocks: set[int] = set()

    def require(self, usage: DTypeUsage, dtype: DType) -> None:
        """Refuse a dtype that the device cannot use like this."""
        if usage not in self.like.usage(dtype):
            verb = "compute with" if usage == DTypeUsage.GENERAL else "have"
            raise DTypeError(
                f"{self.name} does not {verb} {dtype}, and was asked to",
                hint="A decomposition, or a method of a backend, does not look at dtype_usage",
            )

    def queue(self) -> None:
        """Note that there is work."""
        self._is_busy = True

    def wait(self) -> None:
        """Wait for the work."""
        was_busy, self._is_busy = self._is_busy, False
        if was_busy and self.like.fault:
            raise ExecutionError(self.like.fault)

    def claim(self, values: Array) -> None:
        """Count the memory of values until their last reference goes."""
        limit = self.like.memory
        if limit is None:
            return
        block = values
        while isinstance(block.base, np.ndarray):
            block = block.base
        with self._lock:
            if id(block) in self._blocks:
                return
            if self._used + block.nbytes > limit:
                raise MemoryError(
                    f"{block.nbytes} bytes do not fit: {self._used} of {limit} are in use"
                )
            self._used += block.nbytes
            self._blocks.add(id(block))
        finalizer = weakref.finalize(block, self._release, id(block), block.nbytes)
        finalizer.atexit = False

    def _release(self, block: int, nbytes: int) -> None:
        with self._lock:
            self._blocks.discard(block)
            self._used -= nbytes


def _numbered(devices: Sequence[MockDevice]) -> dict[DeviceId, MockDevice]:
    """Devices by their ids: types in the order in which they occur."""
    types = list(dict.fromkeys(device.type for device in devices))
    counts = dict.fromkeys(types, 0)
    result = {}
    for device in devices:
        result[DeviceId(types.index(device.type), counts[device.type])] = device
        counts[device.type] += 1
    return result


def _parts(operand: Any) -> list[MockArray]:
    found = operand if isinstance(operand, list) else [operand]
    return [mock_array for mock_array in found if isinstance(mock_array, MockArray)]


def _unwrapped(operand: Any) -> Any:
    if isinstance(operand, list):
        return [_unwrapped(part) for part in operand]
    return operand.values if isinstance(operand, MockArray) else operand
