"""Truth, differences and closeness (chapter "Utility Functions" of the standard, and its like)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.dtype import Kind, promote
from burn.functions import calls
from burn.functions.common import Axis, Operand
from burn.functions.creation import asarray
from burn.functions.data_type import result_type
from burn.functions.elementwise import abs, isfinite, isnan, subtract
from burn.functions.manipulation import concat
from burn.functions.normalize import (
    as_flag,
    check_any_tensor,
    normalize_axes,
    normalize_axis,
    reduction,
)
from burn.functions.quantization import numbers_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer, as_python, real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["all", "allclose", "any", "contains_nan", "diff", "isclose"]


@reduction
def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true (not 0). NaN is true.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Bool tensor without the reduced axes; False where there are no elements.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.any(burn.asarray([[0, 1], [0, 0]], device="cpu"), axis=1).tolist()
    [True, False]
    """
    axes = normalize_axes(x, axis, "any")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "any")
    return calls.any(x, axis=axes, keepdims=keepdims)


@reduction
@documented_as(any)
def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true (not 0). NaN is true.

    The parameters are those of `any`.

    Returns
    -------
    Tensor
        Bool tensor without the reduced axes; True where there are no elements.

    Examples
    --------
    >>> import burn
    >>> burn.all(burn.asarray([[0, 1], [2, 3]], device="cpu"), axis=1).tolist()
    [False, True]
    """
    axes = normalize_axes(x, axis, "all")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "all")
    return calls.all(x, axis=axes, keepdims=keepdims)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along an axis, taken `n` times.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers.
    axis : int
        The axis to take differences along.
    n : int
        How many times; 0 gives the elements of `x` as they are.
    prepend, append : Tensor, optional
        Tensors to join to `x` along the axis before the first difference.

    Returns
    -------
    Tensor
        The axis is shorter by `n`, down to 0.

    Raises
    ------
    ArgumentError
        If `n` is negative.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.diff(burn.asarray([1, 4, 9, 16], device="cpu")).tolist()
    [3, 5, 7]
    """
    number = normalize_axis(x, axis, "diff")
    n = as_integer(n, "n", "diff", least=0)
    parts = [tensor for tensor in (prepend, x, append) if tensor is not None]
    if n and len(parts) > 1:
        x = concat(parts, axis=number)
    x = numbers_of(x) if n else x
    before = (slice(None),) * number
    for _ in range(min(n, x.shape[number])):  # after that nothing is left
        x = subtract(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return independent(x)


def isclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Whether elements are equal within a tolerance, as bool: ``|x1 - x2| <= atol + rtol * |x2|``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        What to compare; at least one is a tensor. An infinity is close to itself alone.
    rtol, atol : float
        Relative tolerance, of the size of `x2`, and absolute tolerance; neither is negative.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Tensor
        Bool tensor in the broadcast shape.

    Raises
    ------
    ArgumentError
        If a tolerance is negative or NaN.
    OperandTypeError
        If there is no tensor.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.isclose(burn.asarray([1.0, 1.1], device="cpu"), 1.0).tolist()
    [True, False]
    """
    return _is_close(x1, x2, rtol, atol, "isclose", equal_nan=equal_nan)


@documented_as(isclose)
def allclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are equal within a tolerance, as a Python bool, which is read.

    The parameters are those of `isclose`.

    Returns
    -------
    bool
        Whether `isclose` holds for all elements.

    Examples
    --------
    >>> import burn
    >>> burn.allclose(burn.asarray([1.0, 1.0 + 1e-7], device="cpu"), 1.0)
    True
    """
    return bool(all(_is_close(x1, x2, rtol, atol, "allclose", equal_nan=equal_nan)))


def contains_nan(x: Tensor, /) -> Tensor:
    """Whether any element is NaN.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers.

    Returns
    -------
    Tensor, shape ()
        A bool.

    Examples
    --------
    >>> import burn
    >>> burn.contains_nan(burn.asarray([1.0, burn.nan], device="cpu")).item()
    True
    """
    return any(isnan(x))


def _is_close(
    x1: Operand, x2: Operand, rtol: float, atol: float, operation: str, *, equal_nan: bool
) -> Tensor:
    rtol = real_number(rtol, "rtol", operation, least=0.0)
    atol = real_number(atol, "atol", operation, least=0.0)
    first, second = _as_inexact(x1, x2, operation)
    near: Tensor = abs(first - second) <= abs(second) * rtol + atol
    # The distance of two infinities is no more than their tolerance, which is infinite as well.
    near = near & isfinite(second) | (first == second)
    if as_flag(equal_nan, "equal_nan", operation):
        near = near | isnan(first) & isnan(second)
    return near


def _as_inexact(x1: Operand, x2: Operand, operation: str) -> tuple[Tensor, Tensor]:
    """Two operands as float or complex tensors of one dtype: integer differences may overflow."""
    x1, x2 = as_python(x1), as_python(x2)
    check_any_tensor(x1, x2, operation)
    tensors = [tensor for tensor in (x1, x2) if isinstance(tensor, DispatchTensor)]
    dtype = result_type(*tensors)
    device = tensors[0].tensor_type.device
    if complex in (type(x1), type(x2)):
        dtype = promote(dtype, device.settings.complex_dtype)
    elif dtype.kind in Kind.INTEGRAL:
        dtype = device.settings.float_dtype
    first, second = [
        numbers_of(tensor).astype(dtype)
        if isinstance(tensor, DispatchTensor)
        else asarray(tensor, dtype=dtype, device=device)
        for tensor in (x1, x2)
    ]
    return first, second
