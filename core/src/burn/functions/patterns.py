"""Tensors with a pattern: grids, one-hot vectors, evenly spaced numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.dtype import Kind
from burn.errors import ArgumentError, DTypeError, OutOfMemoryError, ShapeError
from burn.functions import calls
from burn.functions.common import DeviceLike, DTypeLike
from burn.functions.creation import arange, asarray
from burn.functions.data_type import result_type
from burn.functions.manipulation import broadcast_to, stack
from burn.functions.normalize import (
    as_dtype,
    as_flag,
    as_number,
    as_real,
    as_shape,
    check_choice,
    device_of_numbers,
    find_device,
    normalize_axis,
    rank_of,
)
from burn.functions.searching import where
from burn.functions.views import independent
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from burn.aliases import Scalar, Shape
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

__all__ = [
    "cartesian_grid",
    "geomspace",
    "linspace",
    "logspace",
    "meshgrid",
    "one_hot",
    "one_hot_fill",
]

_PART: Final = 1 << 22
"""Powers that are computed at a time."""


def meshgrid(*arrays: Tensor, indexing: str = "xy", sparse: bool = False) -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector repeated along all axes but its own.

    Parameters
    ----------
    *arrays : Tensor
        Vectors, of one dtype.
    indexing : {"xy", "ij"}
        "xy" exchanges the first two axes of the results (Cartesian), "ij" does not (matrices).
    sparse : bool
        Whether the vectors are not repeated: the results have length 1 along all axes but their
        own, and broadcast to the grid.

    Returns
    -------
    tuple of Tensor
        A tensor for each vector, all of one shape unless `sparse`; no views.

    Raises
    ------
    ShapeError
        If a tensor is no vector.
    DTypeError
        If the dtypes differ.

    Examples
    --------
    >>> import burn
    >>> x, y = burn.meshgrid(burn.arange(2, device="cpu"), burn.arange(3, device="cpu"))
    >>> x.tolist(), y.tolist()
    ([[0, 1], [0, 1], [0, 1]], [[0, 0], [1, 1], [2, 2]])
    """
    check_choice(indexing, ("xy", "ij"), "indexing", "meshgrid")
    sparse = as_flag(sparse, "sparse", "meshgrid")
    for array in arrays:
        if rank_of(array, "meshgrid") != 1:
            raise ShapeError(f"a tensor of shape {array.shape} is no vector", operation="meshgrid")
    if len({array.dtype for array in arrays}) > 1:
        raise DTypeError(
            f"vectors of {', '.join(str(array.dtype) for array in arrays)}",
            hint="Convert them with .astype() to one dtype",
            operation="meshgrid",
        )
    rank = len(arrays)
    axes = list(range(rank))
    if indexing == "xy" and rank > 1:
        axes[0], axes[1] = 1, 0
    lengths = [0] * rank
    for axis, array in zip(axes, arrays, strict=True):
        lengths[axis] = array.size
    columns = [
        calls.reshape(
            array, shape=tuple([array.size if number == axis else 1 for number in range(rank)])
        )
        for axis, array in zip(axes, arrays, strict=True)
    ]
    if sparse:
        return tuple(columns)
    return tuple([independent(broadcast_to(column, tuple(lengths))) for column in columns])


def cartesian_grid(shape: int | Shape, /, *, device: DeviceLike | None = None) -> Tensor:
    """The indices of each element of a shape, along a new last axis.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis; N of them.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (*shape, N)
        Integers.

    Raises
    ------
    ShapeError
        If the shape has no axis, or a length is negative.

    Examples
    --------
    >>> import burn
    >>> burn.cartesian_grid((1, 2), device="cpu").tolist()
    [[[0, 0], [0, 1]]]
    """
    lengths = as_shape(shape, "cartesian_grid")
    if not lengths or min(lengths) < 0:
        raise ShapeError(
            f"a grid of shape {lengths}",
            hint="It needs an axis, and no length is negative",
            operation="cartesian_grid",
        )
    target = find_device(device, "cartesian_grid")
    axes = [arange(length, device=target) for length in lengths]
    return stack(meshgrid(*axes, indexing="ij"), axis=-1)


def one_hot(
    x: Tensor, num_classes: int, /, *, dtype: DTypeLike | None = None, axis: int = -1
) -> Tensor:
    """1 at the index that each element gives along a new axis, 0 at the others.

    Parameters
    ----------
    x : Tensor
        Integers in [-n, n), where n is the number of classes: a negative one counts from the end.
        Any other integer gives only zeros, as in ONNX.
    num_classes : int
        Length of the new axis.
    dtype : DType or str, optional
        Dtype of the result. By default the device's default float dtype.
    axis : int
        Position of the new axis in the result.

    Returns
    -------
    Tensor
        Of the shape of `x` with the new axis.

    Raises
    ------
    DTypeError
        If `x` does not hold integers.

    Examples
    --------
    >>> import burn
    >>> burn.one_hot(burn.asarray([0, 2], device="cpu"), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    mask = _class_mask(x, num_classes, axis, "one_hot")
    return mask.astype(
        x.device.settings.float_dtype if dtype is None else as_dtype(dtype, "one_hot")
    )


@documented_as(one_hot)
def one_hot_fill(
    x: Tensor, num_classes: int, on_value: float, off_value: float, /, *, axis: int = -1
) -> Tensor:
    """One number at the index that each element gives along a new axis, another at the others.

    The other parameters are those of `one_hot`.

    Parameters
    ----------
    x : Tensor
        Integers in [-n, n), where n is the number of classes; see `one_hot`.
    on_value, off_value : number
        The numbers at the index and at the others. They decide which default dtype the result has.

    Examples
    --------
    >>> import burn
    >>> burn.one_hot_fill(burn.asarray([0, 2], device="cpu"), 3, 9, 5).tolist()
    [[9, 5, 5], [5, 5, 9]]
    """
    mask = _class_mask(x, num_classes, axis, "one_hot_fill")
    on = as_number(on_value, "on_value", "one_hot_fill")
    return where(mask, on, as_number(off_value, "off_value", "one_hot_fill"))


def _class_mask(x: Tensor, count: int, axis: int, operation: str) -> Tensor:
    rank = rank_of(x, operation) + 1
    number = normalize_axis(x, axis, operation, rank=rank)
    if not x.dtype.is_integer:
        raise DTypeError(f"classes are integers, not {x.dtype}", operation=operation)
    count = as_integer(count, "num_classes", operation, least=0)
    x = x.astype(x.device.settings.int_dtype)
    x = where(x < 0, x + count, x)
    column = tuple([count if index == number else 1 for index in range(rank)])
    classes = calls.reshape(arange(count, device=x.device), shape=column)
    wide = calls.reshape(x, shape=(*x.shape[:number], 1, *x.shape[number:]))
    return wide == classes  # type: ignore[no-any-return]  # a Tensor


def linspace(
    start: complex | Tensor,
    stop: complex | Tensor,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Evenly spaced numbers from `start` to `stop`.

    Parameters
    ----------
    start, stop : number or Tensor, shape ()
        The ends. The first number is `start`, the last is `stop` if `endpoint` is true. Tensors
        are read.
    num : int
        Number of numbers.
    dtype : DType or str, optional
        Dtype of the result. By default the one to which tensors of floats promote, else the
        device's default float dtype; the complex dtype for complex ends.
    device : Device or str, optional
        Device of the tensor. By default that of an end that is a tensor, else the default device.
    endpoint : bool
        Whether `stop` is one of the numbers.

    Returns
    -------
    Tensor, shape (num,)
        The numbers.

    Raises
    ------
    ArgumentError
        If an end is not finite, or `num` is negative.

    Examples
    --------
    >>> import burn
    >>> burn.linspace(0, 1, 5, device="cpu").tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    target, dtype = _of_ends(start, stop, dtype, device, "linspace")
    first = as_number(start, "start", "linspace")
    last = as_number(stop, "stop", "linspace")
    numbers = _evenly_spaced(first, last, num, "linspace", endpoint=endpoint)
    return _on_device(numbers, dtype, target, "linspace")


def logspace(
    start: float | Tensor,
    stop: float | Tensor,
    /,
    num: int,
    *,
    base: float | Tensor = 10.0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Powers of a base, of evenly spaced exponents from `start` to `stop`.

    Parameters
    ----------
    start, stop : float or Tensor, shape ()
        The first exponent, and the last if `endpoint` is true.
    num : int
        Number of powers.
    base : float or Tensor, shape ()
        What is raised to the exponents; positive.
    dtype : DType or str, optional
        Dtype of the result. By default the one to which tensors of floats promote, else the
        device's default float dtype.
    device : Device or str, optional
        Device of the tensor. By default that of an end that is a tensor, else the default device.
    endpoint : bool
        Whether `stop` is one of the exponents.

    Returns
    -------
    Tensor, shape (num,)
        The powers, computed in float64; infinite where they are beyond it.

    Raises
    ------
    ArgumentError
        If an exponent is not finite, `num` is negative, or `base` not positive and finite.

    Examples
    --------
    >>> import burn
    >>> burn.logspace(0, 3, 4, device="cpu").tolist()
    [1.0, 10.0, 100.0, 1000.0]
    """
    target, dtype = _of_ends(start, stop, dtype, device, "logspace")
    first = as_real(start, "start", "logspace")
    last = as_real(stop, "stop", "logspace")
    base = as_real(base, "base", "logspace", above=0.0, below=math.inf)
    exponents = _evenly_spaced(first, last, num, "logspace", endpoint=endpoint)
    with np.errstate(over="ignore", under="ignore"):
        return _on_device(_powers(base, exponents), dtype, target, "logspace")


def geomspace(
    start: float | Tensor,
    stop: float | Tensor,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Numbers from `start` to `stop`, each a fixed multiple of the one before.

    Parameters
    ----------
    start, stop : float or Tensor, shape ()
        The ends, of equal sign and not 0. The first number is `start`, the last is `stop` if
        `endpoint` is true.
    num : int
        Number of numbers.
    dtype : DType or str, optional
        Dtype of the result. By default the one to which tensors of floats promote, else the
        device's default float dtype.
    device : Device or str, optional
        Device of the tensor. By default that of an end that is a tensor, else the default device.
    endpoint : bool
        Whether `stop` is one of the numbers.

    Returns
    -------
    Tensor, shape (num,)
        The numbers, computed in float64.

    Raises
    ------
    ArgumentError
        If an end is 0 or not finite, the ends differ in sign, or `num` is negative.

    Examples
    --------
    >>> import burn
    >>> burn.geomspace(1, 8, 4, device="cpu").tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    target, dtype = _of_ends(start, stop, dtype, device, "geomspace")
    first, last = [
        as_real(item, "an end", "geomspace", above=-math.inf, below=math.inf)
        for item in (start, stop)
    ]
    sign = math.copysign(1.0, first)
    if not (first and last) or sign != math.copysign(1.0, last):
        raise ArgumentError(
            f"numbers from {shown_value(start)} to {shown_value(stop)}",
            hint="Both are positive, or both negative",
            operation="geomspace",
        )
    exponents = _evenly_spaced(
        math.log10(abs(first)), math.log10(abs(last)), num, "geomspace", endpoint=endpoint
    )
    with np.errstate(over="ignore", under="ignore"):
        numbers = _powers(10.0, exponents)
        numbers *= sign
    numbers[:1] = first
    if endpoint and len(numbers) > 1:
        numbers[-1] = last
    return _on_device(numbers, dtype, target, "geomspace")


def _of_ends(
    start: Any, stop: Any, dtype: DTypeLike | None, device: DeviceLike | None, operation: str
) -> tuple[Device, DTypeLike | None]:
    """Device and dtype of numbers between two ends; None for the default dtype."""
    target = device_of_numbers(device, operation, start, stop)
    tensors: list[Any] = [tensor for tensor in (start, stop) if isinstance(tensor, DispatchTensor)]
    if dtype is None and tensors:
        common = result_type(*tensors)
        dtype = common if common.kind in Kind.INEXACT else None
    return target, dtype


def _evenly_spaced(
    first: Scalar, last: Scalar, num: int, operation: str, *, endpoint: bool
) -> NDArray[Any]:
    count = as_integer(num, "num", operation, least=0)
    if endpoint.__class__ is not bool:
        endpoint = as_flag(endpoint, "endpoint", operation)
    if not (_is_finite(first) and _is_finite(last)):
        raise ArgumentError(
            f"numbers from {shown_value(first)} to {shown_value(last)}",
            hint="Both must be finite",
            operation=operation,
        )
    try:
        return np.linspace(first * 1.0, last * 1.0, count, endpoint=endpoint)
    except (MemoryError, ValueError, IndexError, OverflowError) as error:  # by the count
        rule = f"{shown_value(count)} numbers do not fit in memory"
        raise OutOfMemoryError(rule, hint="Compute with fewer", operation=operation) from error


def _powers(base: float, exponents: NDArray[Any]) -> NDArray[Any]:
    """Powers in place of the exponents: Ctrl-C ends the call between two parts."""
    for start in range(0, len(exponents), _PART):
        part = exponents[start : start + _PART]
        np.power(base, part, out=part)
    return exponents


def _on_device(
    numbers: NDArray[Any], dtype: DTypeLike | None, target: Device, operation: str
) -> Tensor:
    if dtype is not None:
        dtype = as_dtype(dtype, operation)
    elif numbers.dtype.kind == "f":
        dtype = target.settings.float_dtype
    else:
        dtype = "complex64" if target.settings.float_dtype.itemsize <= 4 else "complex128"
    return asarray(numbers, dtype=dtype, device=target)


def _is_finite(number: Scalar) -> bool:
    try:
        return math.isfinite(abs(number))
    except OverflowError:  # an integer beyond all floats
        return False
