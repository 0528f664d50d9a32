"""Tensors from tensors, arrays of other libraries, numbers, and sequences of them: `asarray`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.backend.dlpack import import_host, is_readable
from burn.devices import Device
from burn.dispatch import DispatchTensor, common_device, join_trace
from burn.dtype import DType
from burn.errors import ArgumentError, ExportError, ShapeError
from burn.functions import calls
from burn.functions.common import DeviceLike, dispatch
from burn.functions.host_values import dtype_of, elements_of, host_data
from burn.functions.interchange import from_cuda, from_dlpack, memory_of, own_device
from burn.functions.normalize import find_device
from burn.tensor_data import QuantizedData, TensorData, check_unmasked

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["convert"]


def convert(obj: Any, wanted: DType | None, device: DeviceLike | None, copy: bool | None) -> Tensor:
    """A tensor of an object; see `burn.asarray`."""
    if isinstance(obj, DispatchTensor):
        return _as_tensor(obj, wanted, device, copy)  # type: ignore[arg-type]  # the only subclass that users see
    if isinstance(obj, TensorData):
        return _uploaded(obj, wanted, find_device(device), copy)
    own = None
    if isinstance(obj, (list, tuple)):
        if any(map(_is_foreign, elements_of(obj).arrays)):
            obj = _with_tensors(obj)
            if _holds_tensors(obj):
                return _joined(obj, wanted, device, copy)
    elif _is_foreign(obj):
        made, obj, own = _imported(obj, device, copy)
        if made is not None:
            return _as_tensor(made, wanted, None, False if copy is False else None)
    target = find_device(own if device is None else device)
    if copy is False:
        return _shared(obj, wanted, target)
    return dispatch.from_data(host_data(obj, wanted, target), target)


def _uploaded(data: TensorData, wanted: DType | None, device: Device, copy: bool | None) -> Tensor:
    """A tensor of host data, quantized or not."""
    if copy is not False:
        return _as_tensor(dispatch.from_data(data, device), wanted, None, None)
    if isinstance(data, QuantizedData):
        raise _needs_copy(data)
    return _shared(data.array, wanted, device)


def _as_tensor(
    x: Tensor, wanted: DType | None, device: DeviceLike | None, copy: bool | None
) -> Tensor:
    """A tensor with the dtype and on the device; itself where nothing changes."""
    moves = device is not None and Device(device) != x.device
    converts = wanted is not None and wanted is not x.dtype
    if copy is False and (moves or converts):
        raise _needs_copy(x)
    result = x if device is None else x.to_device(device)
    return (
        result if wanted is None and not copy else result.astype(wanted or x.dtype, copy=bool(copy))
    )


def _is_foreign(obj: Any) -> bool:
    """Whether an object is an array of a library that may have devices of its own."""
    if isinstance(obj, (np.ndarray, np.generic)):
        return False
    return hasattr(obj, "__dlpack__") or hasattr(obj, "__cuda_array_interface__")


def _with_tensors(obj: Any) -> Any:
    """Nested sequences with arrays of other libraries as tensors, or as NumPy arrays."""
    if isinstance(obj, (list, tuple)):
        return [_with_tensors(item) for item in obj]
    if isinstance(obj, DispatchTensor) or not _is_foreign(obj):
        return obj
    made, array, own = _imported(obj, None, None)
    if made is not None:
        return made
    return array if own is None else dispatch.from_data(TensorData(array), own)


def _imported(
    obj: Any, device: DeviceLike | None, copy: bool | None
) -> tuple[Tensor | None, Any, Device | None]:
    """A foreign array as a tensor where the host cannot read it; else as a NumPy array.

    Also the device of the backend of its own library, if there is one.
    """
    target = None if device is None else Device(device)
    if not hasattr(obj, "__dlpack__"):
        return from_cuda(obj, target, copy), None, None
    try:
        memory = memory_of(obj)
        own = own_device(obj, memory) if target is None else None
        if not is_readable(memory) or (copy is False and own is not None):
            return from_dlpack(obj, device=target, copy=copy is not False), None, None
        return None, import_host(obj, copy=copy).array, own
    except ExportError as error:
        # An array that DLPack cannot carry may have another protocol.
        try:
            array = np.asarray(obj, copy=False if copy is False else None)
        except Exception:  # noqa: BLE001 — any library may raise anything
            raise error from None
        if array.dtype == object:
            raise
        return None, array, None


def _shared(obj: Any, wanted: DType | None, device: Device) -> Tensor:
    """A tensor in the memory of an array on the host."""
    check_unmasked(obj)
    try:
        array = np.array(obj, copy=False)
    except (TypeError, ValueError):
        raise _needs_copy(obj) from None
    if array.base is None and array is not obj:  # NumPy made it of numbers
        raise _needs_copy(obj)
    data = TensorData(array)
    primitive = device.ops.backend.share(data, device.id)
    if primitive is None or not array.dtype.isnative or wanted not in (None, data.dtype):
        raise _needs_copy(obj)
    return dispatch.wrap(primitive, device.tensor_type(data.dtype))


def _needs_copy(obj: Any) -> ArgumentError:
    return ArgumentError(
        f"an object of type {type(obj).__name__} cannot become this tensor without a copy",
        hint="Leave copy out",
        operation="asarray",
    )


def _joined(obj: Any, wanted: DType | None, device: DeviceLike | None, copy: bool | None) -> Tensor:
    """Nested sequences with tensors in them, joined by ops: tracked if one of them is."""
    if copy is False:
        raise _needs_copy(obj)
    elements = elements_of(obj)
    tensors = [array for array in elements.arrays if isinstance(array, DispatchTensor)]
    for tensor in tensors:
        join_trace(tensor)
    common = functools.reduce(common_device, [tensor.tensor_type.device for tensor in tensors])
    result = _along_first_axis(obj, wanted or dtype_of(elements, common), common)
    return result if device is None else result.to_device(device)


def _along_first_axis(obj: Any, dtype: DType | None, device: Device) -> Tensor:
    if isinstance(obj, DispatchTensor):
        same = dtype in (None, obj.tensor_type.dtype)
        return obj if same else obj.astype(dtype)  # type: ignore[attr-defined, return-value]  # a Tensor
    if not _holds_tensors(obj):
        return dispatch.from_data(host_data(obj, dtype, device), device)
    parts = [_along_first_axis(item, dtype, device) for item in obj]
    if any(part.shape != parts[0].shape for part in parts):
        raise ShapeError(
            f"parts of shapes {', '.join(dict.fromkeys([str(part.shape) for part in parts]))}",
            hint="Nested sequences must have the same length at every level",
        )
    rows = [calls.reshape(part, shape=(1, *part.shape)) for part in parts]
    return calls.concat(rows, axis=0)


def _holds_tensors(obj: Any) -> bool:
    return isinstance(obj, (list, tuple)) and any(
        isinstance(array, DispatchTensor) for array in elements_of(obj).arrays
    )
