"""Making tensors (chapter "Creation Functions" of the array API standard)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burn.devices import Device
from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.dtype import DType, bool_
from burn.errors import ArgumentError, BurnError, OperandTypeError, ShapeError
from burn.functions import calls
from burn.functions._conversion import convert
from burn.functions.common import DeviceLike, DTypeLike, dispatch
from burn.functions.data_type import result_type
from burn.functions.normalize import (
    as_dtype,
    as_flag,
    as_number,
    as_scalar,
    as_shape,
    check_tensor,
    device_of_numbers,
    find_device,
)
from burn.ops.arguments import as_integer
from burn.public_calls import public_operation, shown_value

if TYPE_CHECKING:
    from burn.aliases import RealScalar, Scalar, Shape
    from burn.tensor.tensor import Tensor

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor from numbers, nested sequences, an array or a tensor.

    Parameters
    ----------
    obj : object
        A Python number, a tensor, `TensorData` (quantized, too), an array of another library (with
        `__dlpack__`, with a buffer, with `__array__`, or with `__cuda_array_interface__`), or
        nested sequences of these but `TensorData`. Tensors in sequences are joined: the result is
        tracked if one of them is.
    dtype : DType or str, optional
        Dtype of the result. By default that of an array, a tensor or a NumPy scalar, or the one to
        which those in sequences promote; for Python numbers alone the device's default of the kind
        that holds them all (bool, integer, float, complex).
    device : Device or str, optional
        Device of the result. By default that of the tensor, or of the tensors in sequences; for an
        array of another library the device that holds it, if the backend of that library is
        installed or its memory is not the host's; else the default device.
    copy : bool, optional
        False shares memory, or raises where that is impossible. Otherwise memory of an array is
        copied, since it may change; that of a tensor only for True.

    Returns
    -------
    Tensor
        Of the shape of the array, or of the nesting of the sequences.

    Raises
    ------
    ShapeError
        If nested sequences are ragged.
    DeviceMismatchError
        If tensors in sequences are on different hardware.
    ArgumentError
        If a NumPy array has masked elements: a tensor has no mask.
    OperandTypeError
        If an element is no number.
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
    if copy is not None and copy.__class__ is not bool:
        copy = as_flag(copy, "copy", "asarray")
    try:
        return convert(obj, None if dtype is None else DType.of(dtype), device, copy)
    except BurnError as error:
        error.operation = error.operation or public_operation("asarray")
        raise


def full(
    shape: int | Shape,
    fill_value: Scalar | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A tensor in which every element has one value.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    fill_value : number or Tensor, shape ()
        The value of every element. The gradient of a tensor is the sum of those of the elements.
    dtype : DType or str, optional
        Dtype of the elements. By default that of a tensor, and of a number the device's default
        dtype of its kind.
    device : Device or str, optional
        Device of the tensor. By default that of a tensor, and of a number the default device.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    OperandTypeError
        If `fill_value` is no number.
    ScalarRangeError
        If it does not fit the dtype.
    ShapeError
        If `shape` is no shape, or a length is negative.

    Examples
    --------
    >>> import burn
    >>> burn.full((1, 2), 7, device="cpu").tolist()
    [[7, 7]]
    """
    target = device_of_numbers(device, "full", fill_value)
    if isinstance(fill_value, DispatchTensor):
        wanted = fill_value.dtype if dtype is None else as_dtype(dtype, "full")
        return _filled_from(shape, fill_value, wanted, target, "full")
    value = as_number(fill_value, "fill_value", "full")
    if dtype is not None:
        wanted = as_dtype(dtype, "full")
    elif isinstance(value, bool):
        wanted = bool_
    elif isinstance(value, int):
        wanted = target.settings.int_dtype
    elif isinstance(value, complex):
        wanted = target.settings.complex_dtype
    else:
        wanted = target.settings.float_dtype
    return _filled(shape, value, wanted, target, "full")


def _filled(shape: Any, value: Scalar, dtype: DType, device: Device, operation: str) -> Tensor:
    number = as_scalar(value, dtype, operation)
    lengths = as_shape(shape, operation)
    return dispatch.create("full", device, dtype, shape=lengths, fill_value=number)


def _filled_from(shape: Any, value: Tensor, dtype: DType, device: Device, operation: str) -> Tensor:
    """A tensor of one element, repeated."""
    if value.shape:
        raise ShapeError(
            f"fill_value has the shape {value.shape}",
            hint="Give a number, or a tensor without axes; burn.broadcast_to() repeats others",
            operation=operation,
        )
    one = asarray(value, dtype=dtype, device=device)
    return asarray(calls.expand(one, shape=as_shape(shape, operation)), copy=True)


def _float_dtype(dtype: DTypeLike | None, device: Device, operation: str) -> DType:
    """The given dtype, or the device's default float dtype."""
    return device.settings.float_dtype if dtype is None else as_dtype(dtype, operation)


def zeros(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    dtype : DType or str, optional
        Dtype of the result. By default the device's default float dtype.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        Of the given shape.

    Raises
    ------
    ShapeError
        If `shape` is no shape, or a length is negative.

    Examples
    --------
    >>> import burn
    >>> burn.zeros((1, 2), device="cpu").tolist()
    [[0.0, 0.0]]
    """
    target = find_device(device, "zeros")
    return _filled(shape, 0.0, _float_dtype(dtype, target, "zeros"), target, "zeros")


@documented_as(zeros)
def ones(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor of ones.

    The parameters are those of `zeros`.

    Examples
    --------
    >>> import burn
    >>> burn.ones((1, 2), device="cpu").tolist()
    [[1.0, 1.0]]
    """
    target = find_device(device, "ones")
    return _filled(shape, 1.0, _float_dtype(dtype, target, "ones"), target, "ones")


@documented_as(zeros)
def empty(
    shape: int | Shape, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor whose values do not matter; they are zeros.

    The parameters are those of `zeros`.

    Examples
    --------
    >>> import burn
    >>> burn.empty((1, 2), device="cpu").shape
    (1, 2)
    """
    target = find_device(device, "empty")
    return _filled(shape, 0.0, _float_dtype(dtype, target, "empty"), target, "empty")


def full_like(
    x: Tensor,
    /,
    fill_value: Scalar | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """One value in the shape of `x`.

    Parameters
    ----------
    x : Tensor
        Tensor that gives the shape.
    fill_value : number or Tensor, shape ()
        The value of every element.
    dtype : DType or str, optional
        Dtype of the elements. By default that of `x`.
    device : Device or str, optional
        Device of the tensor. By default that of `x`.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    OperandTypeError
        If `fill_value` is no number.
    ScalarRangeError
        If it does not fit the dtype.

    Examples
    --------
    >>> import burn
    >>> burn.full_like(burn.asarray([[3, 4]], device="cpu"), 7).tolist()
    [[7, 7]]
    """
    if not isinstance(fill_value, DispatchTensor):
        fill_value = as_number(fill_value, "fill_value", "full_like")
    return _filled_like(x, fill_value, dtype, device, "full_like")


def _filled_like(
    x: Tensor,
    value: Scalar | Tensor,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    operation: str,
) -> Tensor:
    check_tensor(x, "x", operation)
    wanted = x.dtype if dtype is None else as_dtype(dtype, operation)
    if isinstance(value, DispatchTensor):
        target = device_of_numbers(device, operation, x, value)
        return _filled_from(x.shape, value, wanted, target, operation)
    target = x.device if device is None else find_device(device, operation)
    return _filled(x.shape, value, wanted, target, operation)


def zeros_like(
    x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Zeros in the shape of `x`.

    Parameters
    ----------
    x : Tensor
        Tensor that gives the shape.
    dtype : DType or str, optional
        Dtype of the elements. By default that of `x`.
    device : Device or str, optional
        Device of the tensor. By default that of `x`.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import burn
    >>> burn.zeros_like(burn.asarray([[3, 4]], device="cpu")).tolist()
    [[0, 0]]
    """
    return _filled_like(x, 0, dtype, device, "zeros_like")


@documented_as(zeros_like)
def ones_like(
    x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Ones in the shape of `x`.

    The parameters are those of `zeros_like`.

    Examples
    --------
    >>> import burn
    >>> burn.ones_like(burn.asarray([[3, 4]], device="cpu")).tolist()
    [[1, 1]]
    """
    return _filled_like(x, 1, dtype, device, "ones_like")


@documented_as(zeros_like)
def empty_like(
    x: Tensor, /, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor in the shape of `x` whose values do not matter.

    The parameters are those of `zeros_like`.

    Examples
    --------
    >>> import burn
    >>> burn.empty_like(burn.asarray([[3, 4]], device="cpu")).shape
    (1, 2)
    """
    return _filled_like(x, 0, dtype, device, "empty_like")


def arange(
    start: RealScalar | Tensor,
    /,
    stop: RealScalar | Tensor | None = None,
    step: RealScalar | Tensor = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Numbers from `start` up to, but without, `stop`, in steps.

    Parameters
    ----------
    start : number or Tensor, shape ()
        First number; the end, after a start of 0, where `stop` is left out. Tensors are read.
    stop : number or Tensor, shape (), optional
        End, which is not among the numbers.
    step : number or Tensor, shape ()
        Distance of the numbers.
    dtype : DType or str, optional
        Dtype of the elements. By default the one to which tensors and numbers promote; without
        tensors the device's default integer dtype for integers, else its default float dtype.
    device : Device or str, optional
        Device of the tensor. By default that of a tensor among the numbers, else the default one.

    Returns
    -------
    Tensor, shape (N,)
        The numbers; none where `stop` lies behind `start`.

    Raises
    ------
    ArgumentError
        If `step` is 0, a number is not finite, or `dtype` complex.
    OperandTypeError
        If an argument is no real number.

    Examples
    --------
    >>> import burn
    >>> burn.arange(2, 8, 3, device="cpu").tolist()
    [2, 5]
    """
    target = device_of_numbers(device, "arange", start, stop, step)
    if stop is None:
        start, stop = 0, start
    tensors = [tensor for tensor in (start, stop, step) if isinstance(tensor, DispatchTensor)]
    promoted = result_type(start, stop, step) if tensors and dtype is None else None
    start, stop, step = _real(start, "start"), _real(stop, "stop"), _real(step, "step")
    if step == 0:
        raise ArgumentError("step is 0", hint="A range needs a step", operation="arange")
    are_integers = all(isinstance(number, int) for number in (start, stop, step))
    if dtype is not None:
        wanted = as_dtype(dtype, "arange")
    elif promoted is not None:
        wanted = promoted
    elif are_integers:
        wanted = target.settings.int_dtype
    else:
        wanted = target.settings.float_dtype
    if wanted.is_complex:  # the op takes real numbers, and these would be complex ones
        raise ArgumentError(f"a range of {wanted} is not defined", operation="arange")
    length = _length(start, stop, step, are_integers=are_integers)
    return dispatch.create(
        "arange",
        target,
        wanted,
        start=as_scalar(start, wanted, "arange"),
        step=as_scalar(step, wanted, "arange"),
        length=length,
    )


def _real(value: Any, name: str) -> RealScalar:
    number = as_number(value, name, "arange")
    if isinstance(number, complex):
        raise OperandTypeError(
            f"{name} must be a real number, not {shown_value(value)}", operation="arange"
        )
    return number


def _length(start: RealScalar, stop: RealScalar, step: RealScalar, *, are_integers: bool) -> int:
    """How many numbers a range has."""
    if are_integers:
        return max(-((int(start) - int(stop)) // int(step)), 0)
    try:
        span = (stop - start) / step
    except OverflowError:
        span = math.inf
    if not (math.isfinite(span) and math.isfinite(step)):
        raise ArgumentError(
            f"the range from {shown_value(start)} to {shown_value(stop)} by {shown_value(step)}",
            hint="Start, stop and step of a range are finite",
            operation="arange",
        )
    return max(math.ceil(span), 0)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix with ones on the `k`-th diagonal, zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        Numbers of rows and columns. By default as many columns as rows.
    k : int
        Index of the diagonal: 0 is the main one, those above it have positive indices. Beyond the
        matrix there are no ones.
    dtype : DType or str, optional
        Dtype of the result. By default the device's default float dtype.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (n_rows, n_cols)
        The matrix.

    Raises
    ------
    OperandTypeError
        If a length or `k` is no integer.
    ShapeError
        If a length is negative.

    Examples
    --------
    >>> import burn
    >>> burn.eye(2, 3, k=1, dtype="int64", device="cpu").tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    target = find_device(device, "eye")
    wanted = _float_dtype(dtype, target, "eye")
    rows = as_integer(n_rows, "n_rows", "eye")
    columns = rows if n_cols is None else as_integer(n_cols, "n_cols", "eye")
    offset = diagonal(k, (rows, columns), "eye")
    return dispatch.create("eye", target, wanted, rows=rows, columns=columns, offset=offset)


def diagonal(k: int, shape: Shape, operation: str) -> int:
    """The index of a diagonal, clipped to the matrix, since kernels count in 32 bits."""
    rows, columns = shape[-2:]
    return max(-rows, min(as_integer(k, "k", operation), columns))
