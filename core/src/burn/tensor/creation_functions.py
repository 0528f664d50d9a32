"""Making tensors (chapter "Creation Functions" of the array API standard)."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.backend.dlpack import import_host, is_readable
from burn.data import TensorData, check_unmasked
from burn.device import Device
from burn.dispatch import DispatchTensor, meet, to_scalar
from burn.dtype import DType, bool_
from burn.errors import (
    ArgumentError,
    ExportError,
    OperandTypeError,
    ShapeError,
)
from burn.tensor.dispatcher import DeviceLike, DTypeLike, dispatch, find_device
from burn.tensor.host_values import dtype_of, elements_of, host_data
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
        A Python number, a tensor, what another library calls an array (with `__dlpack__`, with a
        buffer, with `__array__`, or with `__cuda_array_interface__`), or nested sequences of them.
        Tensors in sequences are joined: the result is tracked if one of them is.
    dtype : DType, optional
        Dtype of the result. By default that of an array, a tensor or a scalar of NumPy's, or the
        one to which those in sequences promote; for Python numbers alone the device's default of
        the kind that holds them all (bool, integer, float, complex).
    device : Device or str, optional
        Where it is made. By default that of the tensor, or of the tensors in sequences; of an array
        of another library where the array is, if the backend of that library is installed or its
        memory is not the host's; else the default device.
    copy : bool, optional
        False shares memory: an error where that cannot be. Memory of an array is copied
        otherwise, since it may change; that of a tensor only for True.

    Raises
    ------
    ShapeError
        If nested sequences are ragged.
    DeviceMismatchError
        If tensors in sequences are on different hardware.
    ArgumentError
        If a NumPy array has masked elements: a tensor has no mask.
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
    if isinstance(obj, (list, tuple)):
        if any(map(_is_foreign, elements_of(obj).arrays)):
            obj = _with_tensors(obj)
            if _holds_tensors(obj):
                return _joined(obj, wanted, device, copy)
    elif _is_foreign(obj):
        made, obj, own = _taken_in(obj, device, copy)
        if made is not None:
            return _as_tensor(made, wanted, None, False if copy is False else None)
    where = find_device(own if device is None else device)
    if copy is False:
        return _shared(obj, wanted, where)
    return dispatch.from_data(host_data(obj, wanted, where), where)


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


def _with_tensors(obj: Any) -> Any:
    """Nested sequences with arrays of other libraries as tensors, or as NumPy's on the host."""
    if isinstance(obj, (list, tuple)):
        return [_with_tensors(one) for one in obj]
    if isinstance(obj, DispatchTensor) or not _is_foreign(obj):
        return obj
    made, array, own = _taken_in(obj, None, None)
    if made is not None:
        return made
    return array if own is None else dispatch.from_data(TensorData(array), own)


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
    check_unmasked(obj)
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


def _joined(obj: Any, wanted: DType | None, device: DeviceLike | None, copy: bool | None) -> Tensor:
    """Nested sequences with tensors in them, joined by ops: it is tracked if one of them is."""
    if copy is False:
        raise _needs_copy(obj)
    elements = elements_of(obj)
    tensors = [one for one in elements.arrays if isinstance(one, DispatchTensor)]
    where = functools.reduce(meet, [one.tensor_type.device for one in tensors])
    result = _along_first_axis(obj, wanted or dtype_of(elements, where), where)
    return result if device is None else result.to_device(device)


def _along_first_axis(obj: Any, dtype: DType | None, device: Device) -> Tensor:
    if isinstance(obj, DispatchTensor):
        return obj.astype(dtype or obj.dtype, copy=False)  # type: ignore[attr-defined, no-any-return]  # a Tensor
    if not _holds_tensors(obj):
        return dispatch.from_data(host_data(obj, dtype, device), device)
    parts = [_along_first_axis(one, dtype, device) for one in obj]
    if any(one.shape != parts[0].shape for one in parts):
        raise ShapeError(
            f"parts of shapes {', '.join(dict.fromkeys([str(one.shape) for one in parts]))}",
            hint="Nested sequences must have the same length at every level",
        )
    rows = [dispatch.execute("reshape", one, shape=(1, *one.shape)) for one in parts]
    return dispatch.execute("concat", rows, axis=0)  # type: ignore[no-any-return]  # one output


def _holds_tensors(obj: Any) -> bool:
    return isinstance(obj, (list, tuple)) and any(
        isinstance(one, DispatchTensor) for one in elements_of(obj).arrays
    )


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
