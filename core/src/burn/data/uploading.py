"""Batches in memory of the host become batches on a device, a few of them ahead of use."""

from __future__ import annotations

import functools
import queue
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

import burn.tensor.tensor  # noqa: F401 — without it Dispatch would make tensors of no user's class
from burn.data._containers import map_leaves
from burn.data._rows import Numbers, as_array, is_tensor
from burn.dtype import DType
from burn.errors import BurnError, DTypeError
from burn.functions.common import dispatch
from burn.functions.host_values import host_data
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from burn.devices import Device

__all__ = ["Source", "Uploads", "upload", "upload_one"]

_NUMERIC_KINDS: Final = "biufcV"
"""NumPy's codes of the kinds of dtypes that tensors have (V: those of ml_dtypes)."""

_END: Final = object()
"""Stands in the queue after the last batch."""


class Source(Protocol):
    """Batches on the host, one after the other."""

    def __next__(self) -> Any:
        """The next batch; an exception is that of one batch, and the next call goes on."""

    def close(self) -> None:
        """End; a call of `__next__` that waits in another thread ends as well."""


class Uploads(Protocol):
    """Batches on a device, one after the other."""

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...

    def close(self) -> None:
        """End the source, and the thread if there is one."""


def upload(source: Source, device: Device, ahead: int, *, owned: bool) -> Uploads:
    """The batches of a source on a device.

    Parameters
    ----------
    source : Source
        The batches on the host. One thread at a time calls it.
    device : Device
        The device of the tensors.
    ahead : int
        How many batches a thread may upload before they are asked for. With 0 there is no thread;
        nor is there one where the device reads memory of the host.
    owned : bool
        Whether the arrays belong to the batches alone, so that tensors may lie in their memory.

    Returns
    -------
    Uploads
        An iterator with ``close()``, which runs as well when the iterator is dropped.
    """
    if ahead and not _reads_host_memory(device):
        return _UploadsAhead(source, device, ahead, owned=owned)
    return _UploadsInTurn(source, device, owned=owned)


def upload_one(batch: Any, device: Device, *, owned: bool) -> Any:
    """A batch with tensors on a device instead of its arrays; all else in it stays as it is.

    Raises
    ------
    DTypeError
        If the device does not have the dtype of an array.
    ScalarRangeError
        If a Python number does not fit the default dtype of the device.
    """
    return map_leaves(functools.partial(_on_device, device=device, owned=owned), batch, "batch")


def _on_device(x: Any, name: str, *, device: Device, owned: bool) -> Any:
    """A tensor of an array; any other object itself."""
    try:
        if isinstance(x, np.ndarray):
            return _tensor(x, device, owned=owned) if x.dtype.kind in _NUMERIC_KINDS else x
        if is_tensor(x):
            return x.to_device(device)
        if hasattr(x, "__dlpack__") and not isinstance(x, np.generic):
            array: Any = as_array(x)
            return (
                array.to_device(device) if is_tensor(array) else _tensor(array, device, owned=owned)
            )
    except BurnError as error:
        error.operation = f"upload of {name}"
        if isinstance(error, DTypeError):
            error.hint = (
                f"{error.hint}. Convert it in the dataset or the transform, such as by "
                'array.astype("float32")'
            ).removeprefix(". ")
        raise
    return x


def _tensor(array: np.ndarray[Any, Any], device: Device, *, owned: bool) -> Any:
    """A tensor of an array of numbers, in its memory if that is allowed and possible."""
    if array.__class__ is Numbers:
        own = array.view(np.ndarray)
        data = host_data(own, device.settings.default_for(DType.of(own.dtype)), device)
    else:
        data = TensorData(array)
    if owned:
        shared = dispatch.share(data, device)
        if shared is not None:
            return shared
    return dispatch.from_data(device.staging(data), device)


def _reads_host_memory(device: Device) -> bool:
    """Whether tensors of the device may lie in the memory of arrays."""
    return dispatch.share(TensorData(np.zeros(1, np.float32)), device) is not None


class _UploadsInTurn:
    """Uploads each batch when it is asked for."""

    def __init__(self, source: Source, device: Device, *, owned: bool) -> None:
        self._source = source
        self._device = device
        self._owned = owned
        self._finalizer = weakref.finalize(self, source.close)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return upload_one(next(self._source), self._device, owned=self._owned)

    def close(self) -> None:
        self._finalizer()


class _UploadsAhead:
    """Uploads batches in a thread, before they are asked for."""

    def __init__(self, source: Source, device: Device, ahead: int, *, owned: bool) -> None:
        self._channel = channel = _Channel(ahead)
        thread = threading.Thread(
            target=_run, args=(source, device, owned, channel), name="burn-upload", daemon=True
        )
        self._finalizer = weakref.finalize(self, _end, source, channel, thread)
        thread.start()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._finalizer.alive:
            raise StopIteration
        item, error = self._channel.uploaded.get()
        if item is _END:
            self._channel.uploaded.put((_END, None))  # for further calls
            raise StopIteration
        self._channel.allowances.put(None)
        if error is None:
            return item
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame

    def close(self) -> None:
        self._finalizer()


class _Channel:
    """What the two threads share: simple queues, whose methods a finalizer may call at any time.

    Parameters
    ----------
    ahead : int
        How many batches may be uploaded that were not received.
    """

    def __init__(self, ahead: int) -> None:
        self.uploaded: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self.allowances: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(ahead):
            self.allowances.put(None)
        self.is_closed = False


def _run(source: Source, device: Device, owned: bool, channel: _Channel) -> None:
    """Upload batches until the source or the iteration ends."""
    while True:
        channel.allowances.get()
        if channel.is_closed:
            break
        try:
            batch = upload_one(next(source), device, owned=owned)
        except StopIteration:
            break
        except BaseException as error:  # noqa: BLE001 — raised where the batch is asked for
            channel.uploaded.put((None, error))
            continue
        channel.uploaded.put((batch, None))
        del batch
    channel.uploaded.put((_END, None))


def _end(source: Source, channel: _Channel, thread: threading.Thread) -> None:
    """End the thread of uploads; the garbage collector may call it in any thread."""
    channel.is_closed = True
    channel.allowances.put(None)
    source.close()
    if threading.current_thread() is not thread:
        thread.join()
    while not channel.uploaded.empty():
        channel.uploaded.get()
    channel.uploaded.put((_END, None))
