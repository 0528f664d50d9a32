"""Drawing elements of a tensor, with and without replacement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burn.backend.invalid_values import InvalidValue
from burn.dispatch import DispatchTensor
from burn.dtype import float32, float64
from burn.errors import ArgumentError, DeviceMismatchError, DTypeError, ShapeError
from burn.functions import calls
from burn.functions._value_checks import require
from burn.functions.common import DeviceLike
from burn.functions.elementwise import isfinite, log1p
from burn.functions.indexing import take
from burn.functions.normalize import as_flag, as_shape, check_tensor, find_device, normalize_axis
from burn.functions.random import draw_classes, integers, permutation, uniform
from burn.functions.searching import count_nonzero, where
from burn.functions.utility import all
from burn.ops.arguments import as_integer
from burn.public_calls import has_functions, shown_value

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

__all__ = ["choice"]

has_functions(__name__, prefix="random.")


def choice(
    x: Tensor | int,
    shape: int | Shape = (),
    *,
    replace: bool = True,
    p: Tensor | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> Tensor:
    """Elements of a tensor, or slices along an axis, drawn at random.

    Parameters
    ----------
    x : Tensor or int
        What to draw from; an integer n stands for those from 0 to ``n - 1``.
    shape : int or tuple of int
        How many to draw, and in which shape; () draws one.
    replace : bool
        Whether the same one may be drawn several times.
    p : Tensor, shape (n,), optional
        The probability of each, up to a common factor: floats that are not negative. By default
        all are as probable.
    axis : int
        The axis whose slices are drawn.
    device : Device or str, optional
        Device of the result where `x` is an integer; that of `p`, or the default device, if left
        out. A tensor is drawn from on its own device.

    Returns
    -------
    Tensor
        `shape` replaces the axis; of an integer in the default integer dtype. Without replacement
        they come in the order in which they were drawn. Elements of a tensor have gradients.

    Raises
    ------
    ArgumentError
        If there is nothing to draw from, or without replacement less than is to be drawn.
    AxisError
        If `x` has no such axis.
    DeviceMismatchError
        If `device` is another one than that of `x` or `p`.
    OutOfRangeError
        If a weight is negative or not finite, or fewer are positive than are drawn without
        replacement (with replacement: none is); on an asynchronous device at the next read.
    ShapeError
        If there is not one weight for each slice.

    Notes
    -----
    Without replacement the slices with the smallest of the keys ``E / p`` are drawn, where E are
    exponentially distributed (P. S. Efraimidis and P. G. Spirakis, "Weighted random sampling with a
    reservoir", 2006): the same as one after the other, each with the probabilities of those that
    are left. E has the resolution of uniform numbers: 2**-24 in float32, 2**-53 in float64.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([10, 20, 30], device="cpu")
    >>> burn.sort(burn.random.choice(x, 3, replace=False)).tolist()
    [10, 20, 30]
    >>> burn.random.choice(5, 4, p=burn.asarray([0.0, 0, 0, 1, 0], device="cpu")).tolist()
    [3, 3, 3, 3]
    """
    operation = "random.choice"
    lengths = as_shape(shape, operation)
    replace = as_flag(replace, "replace", operation)
    is_tensor = isinstance(x, DispatchTensor)
    if is_tensor:
        number = normalize_axis(x, axis, operation)  # type: ignore[arg-type]  # a Tensor
        length = x.shape[number]  # type: ignore[union-attr]  # likewise
    else:
        length = as_integer(x, "x", operation, least=0)  # type: ignore[arg-type]  # checked
        normalize_axis(x, axis, operation, rank=1)  # type: ignore[arg-type]  # unused
    if p is not None:
        _check_weights(p, length, operation)
    owner = x if is_tensor else p
    target = _device(owner, device, operation)
    count = math.prod(lengths)
    if min(lengths, default=1) < 0:
        raise ShapeError(f"shape {lengths} has a negative length", operation=operation)
    if count > (length if not replace else 0 if not length else count):
        how = "with" if replace else "without"
        raise ArgumentError(
            f"{shown_value(count)} of {shown_value(length)}, {how} replacement",
            hint="Draw no more than there are" if length else "There is nothing to draw from",
            operation=operation,
        )
    if not (replace and length):
        chosen = _without_replacement(length, count, p, target)
    elif p is None:
        chosen = integers(count, 0, length, device=target)
    else:
        chosen = draw_classes(p, count, InvalidValue.FEW_WEIGHTS)
    indices = chosen.reshape(lengths, copy=True)
    return take(x, indices, axis=number) if is_tensor else indices  # type: ignore[arg-type]  # a Tensor


def _check_weights(p: Any, length: int, operation: str) -> None:
    check_tensor(p, "p", operation)
    if p.shape != (length,):
        raise ShapeError(
            f"p of shape {p.shape} for {shown_value(length)} to draw from",
            hint="A vector has a weight for each",
            operation=operation,
        )
    if not p.dtype.is_float:
        raise DTypeError(
            f"p must be floats, not {p.dtype}",
            hint="Convert them with .astype()",
            operation=operation,
        )


def _device(owner: Any, device: DeviceLike | None, operation: str) -> Device:
    """The device of a tensor, or the given one."""
    if owner is None:
        return find_device(device, operation)
    own: Device = owner.device
    if device is not None and find_device(device, operation).hardware is not own.hardware:
        raise DeviceMismatchError(
            f"device is {device}, and a tensor is on {own}",
            hint="Leave device out, or move the tensor with .to_device()",
            operation=operation,
        )
    return own


def _without_replacement(length: int, count: int, p: Tensor | None, device: Device) -> Tensor:
    """`count` different indices."""
    if p is None:
        return permutation(length, device=device)[:count]
    dtype = float64 if p.dtype is float64 else float32
    weights = p.astype(dtype)
    possible = weights > 0
    valid = all((weights >= 0) & isfinite(weights)) & (count_nonzero(possible) >= count)
    fault = require(valid, InvalidValue.FEW_WEIGHTS)
    waiting = -log1p(-uniform(length, dtype=dtype, device=device))
    keys = where(possible, waiting / where(possible, weights, 1.0), math.inf)
    index_dtype = device.settings.int_dtype
    drawn = calls.argtopk(keys, k=count, axis=0, largest=False, dtype=index_dtype)
    return drawn + fault.astype(index_dtype)
