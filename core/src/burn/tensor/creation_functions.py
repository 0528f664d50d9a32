"""Making tensors (chapter "Creation Functions" of the array API standard)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.backend.dlpack import import_host, is_readable
from burn.data import TensorData
from burn.device import Device
from burn.dispatch import DispatchTensor, to_scalar
from burn.dtype import DType, bool_, float64
from burn.errors import (
    ArgumentError,
    ExportError,
    OperandTypeError,
    ScalarRangeError,
    ShapeError,
)
from burn.ops.shapes import check_conversion
from burn.tensor.dispatcher import DeviceLike, DTypeLike, dispatch, find_device
from burn.tensor.interchange import from_cuda, from_dlpack, own_device, place_of

if TYPE_CHECKING:
    from burn.aliases import RealScalar, Scalar, Shape
    from burn.tensor.tensor import Tensor


def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor of what somebody has: numbers, nested sequences, an array, a tensor.

    Parameters
    ----------
    obj : object
        A Python number, nested sequences of numbers, a tensor, or what another library calls an
        array: with `__dlpack__`, with a buffer, with `__array__`, or with
        `__cuda_array_interface__`.
    dtype : DType, optional
        Dtype of the result. By default that of an array or a tensor; for Python numbers the
        device's default of the kind that holds them all (bool, integer, float, complex).
    device : Device or str, optional
        Where it is made. By default the tensor's own; of an array of another library where the
        array is, if the backend of that library is installed or its memory is not the host's; else
        the default device.
    copy : bool, optional
        False shares memory: an error where that cannot be. Memory of an array is copied
        otherwise, since it may change; that of a tensor only for True.

    Raises
    ------
    ShapeError
        If nested sequences are ragged.
    OperandTypeError
        If there is something in it that is no number.
    ScalarRangeError
        If a number does not fit the dtype.
    ExportError
        If an array of another library cannot be read, such as a PyTorch tensor that requires a
        gradient: call its ``.detach()`` first.

    Examples
    --------
    >>> import burn
    >>> burn.asarray([1, 2.5], device="cpu").dtype
    burn.float32
    """
    wanted = None if dtype is None else DType.of(dtype)
    if isinstance(obj, DispatchTensor):
        return _as_tensor(obj, wanted, device, copy)  # type: ignore[arg-type]  # the only subclass that users see
    own = None
    if _is_foreign(obj):
        made, obj, own = _taken_in(obj, device, copy)
        if made is not None:
            return _as_tensor(made, wanted, None, False if copy is False else None)
    where = find_device(own if device is None else device)
    if copy is False:
        return _shared(obj, wanted, where)
    return dispatch.from_data(_host_data(obj, wanted, where), where)


def _as_tensor(
    x: Tensor, wanted: DType | None, device: DeviceLike | None, copy: bool | None
) -> Tensor:
    """A tensor as another one, with its value or itself."""
    moves = device is not None and Device(device).hardware is not x.device.hardware
    converts = wanted is not None and wanted is not x.dtype
    if copy is False and (moves or converts):
        raise _needs_copy(x)
    result = x if device is None else x.to_device(device)
    return (
        result if wanted is None and not copy else result.astype(wanted or x.dtype, copy=bool(copy))
    )


def _is_foreign(obj: Any) -> bool:
    """Whether an object is an array of a library that may have devices."""
    if isinstance(obj, (np.ndarray, np.generic)):
        return False
    return hasattr(obj, "__dlpack__") or hasattr(obj, "__cuda_array_interface__")


def _taken_in(
    obj: Any, device: DeviceLike | None, copy: bool | None
) -> tuple[Tensor | None, Any, Device | None]:
    """A foreign array as a tensor where the host cannot read it; else as NumPy's.

    Also the device of the backend of its own library, if there is one.
    """
    where = None if device is None else Device(device)
    if not hasattr(obj, "__dlpack__"):
        return from_cuda(obj, where, copy), None, None
    try:
        place = place_of(obj)
        if not is_readable(place):
            return from_dlpack(obj, device=where, copy=copy is not False), None, None
        own = own_device(obj, place) if where is None else None
        return None, import_host(obj).array, own
    except ExportError as error:
        # What DLPack cannot carry may have another way.
        try:
            array = np.asarray(obj)
        except Exception:  # noqa: BLE001 — of whatever library it is
            raise error from None
        if array.dtype == object:
            raise
        return None, array, None


def _shared(obj: Any, wanted: DType | None, device: Device) -> Tensor:
    """A tensor in the memory of an array on the host."""
    try:
        array = np.array(obj, copy=False)
    except (TypeError, ValueError):
        raise _needs_copy(obj) from None
    if array.base is None and array is not obj:  # made of numbers just now
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


def _host_data(obj: Any, wanted: DType | None, device: Device) -> TensorData:
    if isinstance(obj, (list, tuple)) and _has_tensors(obj):
        obj = _plain(obj)
    try:
        data = TensorData.of(obj)
        if data.dtype is float64 and isinstance(obj, (list, tuple)):
            data = _without_rounding(obj, data, wanted)
    except OverflowError as error:
        raise ScalarRangeError(f"no integer dtype holds these numbers: {error}") from error
    if wanted is None:
        from_python = not isinstance(obj, (np.ndarray, np.generic)) and not hasattr(
            obj, "__array__"
        )
        wanted = device.settings.default_for(data.dtype) if from_python else data.dtype
    if wanted is data.dtype:
        return data
    return TensorData(_converted(data, wanted))


def _without_rounding(obj: Any, data: TensorData, wanted: DType | None) -> TensorData:
    """Host values; integers that NumPy reads as floats, since only some fit int64, in uint64."""
    asks_for_floats = wanted is not None and not wanted.is_integer
    if asks_for_floats or not np.any(np.abs(data.array) >= 2.0**63):
        return data
    numbers = np.array(obj, dtype=object)
    if not all(isinstance(number, (int, np.integer)) for number in numbers.flat):
        return data
    return TensorData(numbers.astype(np.uint64))


def _converted(data: TensorData, dtype: DType) -> np.ndarray[Any, Any]:
    """Host values in another dtype; integers that do not fit are refused."""
    array = data.array
    check_conversion(data.dtype, dtype)
    if dtype.is_integer and data.dtype.is_integer and array.size:
        for value in (int(array.min()), int(array.max())):
            to_scalar(value, dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy)


def _has_tensors(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(_has_tensors(one) for one in obj)
    return isinstance(obj, DispatchTensor)


def _plain(obj: Any) -> Any:
    """Nested sequences with the 0-d tensors in them as numbers."""
    if isinstance(obj, (list, tuple)):
        return [_plain(one) for one in obj]
    return obj.tolist() if isinstance(obj, DispatchTensor) else obj  # type: ignore[attr-defined]  # a Tensor


def full(
    shape: int | Shape,
    fill_value: Scalar,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A tensor in which every element has one value.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    fill_value : number
        The value. Without `dtype`, its kind decides which default dtype of the device is taken.
    dtype : DType, optional
        Dtype of the elements.
    device : Device or str, optional
        Where to make it; the default device if left out.
    """
    where = find_device(device)
    if dtype is not None:
        wanted = DType.of(dtype)
    elif isinstance(fill_value, bool):
        wanted = bool_
    elif isinstance(fill_value, int):
        wanted = where.settings.int_dtype
    elif isinstance(fill_value, complex):
        wanted = where.settings.complex_dtype
    else:
        wanted = where.settings.float_dtype
    value = to_scalar(_number(fill_value), wanted)
    return dispatch.create("full", where, wanted, shape=as_shape(shape), fill_value=value)


def _number(value: Any) -> Scalar:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise OperandTypeError(f"fill_value must be a number, not {value!r}")
    return value


def as_shape(shape: Any) -> Shape:
    """A shape from what a user gives: an integer, or a sequence of integers."""
    try:
        if hasattr(shape, "__index__"):
            return (shape.__index__(),)
        return tuple([length.__index__() for length in shape])
    except (AttributeError, TypeError):
        raise ShapeError(f"{shape!r} is no shape", hint="A shape is a tuple of integers") from None


def zeros(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Zeros, of the default float dtype unless another is named; see `full`."""
    return full(shape, 0.0, dtype=dtype, device=device)


def ones(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Ones, of the default float dtype unless another is named; see `full`."""
    return full(shape, 1.0, dtype=dtype, device=device)


def empty(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor whose values nobody relies on: they are zeros."""
    return full(shape, 0.0, dtype=dtype, device=device)


def full_like(
    x: Tensor,
    /,
    fill_value: Scalar,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """One value in the shape of `x`, and its dtype and device unless others are named."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(
    x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Zeros in the shape of `x`, and its dtype and device unless others are named."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(
    x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Ones in the shape of `x`, and its dtype and device unless others are named."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(
    x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor in the shape of `x` whose values nobody relies on."""
    return full_like(x, 0, dtype=dtype, device=device)


def arange(
    start: RealScalar,
    /,
    stop: RealScalar | None = None,
    step: RealScalar = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The numbers from `start` (0 if only one is given) up to but without `stop`, by `step`.

    Raises
    ------
    ArgumentError
        If `step` is 0.

    Examples
    --------
    >>> import burn
    >>> burn.arange(2, 8, 3, device="cpu").tolist()
    [2, 5]
    """
    where = find_device(device)
    if stop is None:
        start, stop = 0, start
    if not all(isinstance(number, (int, float)) for number in (start, stop, step)):
        raise OperandTypeError(f"a range is made of numbers, not {(start, stop, step)!r}")
    if step == 0:
        raise ArgumentError("step is 0", hint="A range needs a step", operation="arange")
    if dtype is not None:
        wanted = DType.of(dtype)
    elif all(isinstance(number, int) for number in (start, stop, step)):
        wanted = where.settings.int_dtype
    else:
        wanted = where.settings.float_dtype
    span = (stop - start) / step
    if not math.isfinite(span):
        raise ArgumentError(f"the range from {start} to {stop} by {step}", operation="arange")
    if all(isinstance(number, int) for number in (start, stop, step)):
        length = len(range(int(start), int(stop), int(step)))
    else:
        length = max(math.ceil(span), 0)
    return dispatch.create(
        "arange",
        where,
        wanted,
        start=to_scalar(start, wanted),
        step=to_scalar(step, wanted),
        length=length,
    )


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Ones on the `k`-th diagonal of a matrix, zeros elsewhere."""
    where = find_device(device)
    wanted = where.settings.float_dtype if dtype is None else DType.of(dtype)
    columns = n_rows if n_cols is None else n_cols
    return dispatch.create("eye", where, wanted, rows=n_rows, columns=columns, offset=k)
