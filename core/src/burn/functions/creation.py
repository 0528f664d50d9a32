"""Making tensors (chapter "Creation Functions" of the array API standard)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burn.dispatch import to_scalar
from burn.dtype import DType, bool_
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.common import DeviceLike, DTypeLike, dispatch
from burn.functions.conversion import convert
from burn.functions.normalize import as_shape, find_device
from burn.ops.arguments import as_integer

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
    return convert(obj, None if dtype is None else DType.of(dtype), device, copy)


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
    if not isinstance(value, (bool, int, float, complex)):
        raise OperandTypeError(f"fill_value must be a number, not {value!r}")
    return value


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
    if not (math.isfinite(span) and math.isfinite(step)):
        raise ArgumentError(
            f"the range from {start} to {stop} by {step}",
            hint="Ends and step of a range are finite",
            operation="arange",
        )
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
    """Ones on the `k`-th diagonal of a matrix, zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        Shape of the matrix; square if the second one is left out.
    k : int
        Which diagonal: 0 is the main one, those above it have positive numbers. Beyond the matrix
        there are no ones.
    dtype : DType, optional
        Dtype of the elements; the default float dtype if left out.
    device : Device or str, optional
        Where to make it; the default device if left out.

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
    where = find_device(device)
    wanted = where.settings.float_dtype if dtype is None else DType.of(dtype)
    rows = as_integer(n_rows, "n_rows", "eye")
    columns = rows if n_cols is None else as_integer(n_cols, "n_cols", "eye")
    offset = diagonal(k, (rows, columns), "eye")
    return dispatch.create("eye", where, wanted, rows=rows, columns=columns, offset=offset)


def diagonal(k: int, shape: Shape, operation: str) -> int:
    """The number of a diagonal, no further out than just beyond the matrix.

    There all diagonals are the same, and kernels count in 32 bits.
    """
    rows, columns = shape[-2:]
    return max(-rows, min(as_integer(k, "k", operation), columns))
