"""Truth, differences and closeness (chapter "Utility Functions" of the standard, and its like)."""

from __future__ import annotations

import builtins
import functools
from typing import TYPE_CHECKING

from burn.dispatch import DispatchTensor, unary
from burn.dtype import Kind, promote
from burn.errors import OperandTypeError
from burn.functions import elementwise as elementwise_functions
from burn.functions.common import Axis, Operand, dispatch
from burn.functions.creation import asarray
from burn.functions.manipulation import concat
from burn.functions.normalize import normalize_axes, normalize_axis
from burn.functions.views import independent
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["all", "allclose", "any", "contains_nan", "diff", "isclose"]

_any = unary(dispatch, "any")
_all = unary(dispatch, "all")


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true (not 0), as bool."""
    return _any(x, axis=normalize_axes(x, axis, "any"), keepdims=keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true (not 0), as bool."""
    return _all(x, axis=normalize_axes(x, axis, "all"), keepdims=keepdims)


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
        Numeric tensor.
    axis : int
        The axis.
    n : int
        How many times; 0 gives the elements of `x` as they are.
    prepend, append : Tensor, optional
        What to join along the axis before the first difference.

    Examples
    --------
    >>> import burn
    >>> burn.diff(burn.asarray([1, 4, 9, 16], device="cpu")).tolist()
    [3, 5, 7]
    """
    number = normalize_axis(x, axis, "diff")
    n = as_integer(n, "n", "diff", least=0)
    parts = [one for one in (prepend, x, append) if one is not None]
    if n and len(parts) > 1:
        x = concat(parts, axis=number)
    before = (builtins.slice(None),) * number
    for _ in range(min(n, x.shape[number])):  # after that nothing is left
        later = x[(*before, builtins.slice(1, None))]
        x = elementwise_functions.subtract(later, x[(*before, builtins.slice(None, -1))])
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
        What to compare; infinities are close to themselves alone.
    rtol, atol : float
        Relative tolerance, of the size of `x2`, and absolute tolerance; neither is negative.
    equal_nan : bool
        Whether NaN is close to NaN.

    Examples
    --------
    >>> import burn
    >>> burn.isclose(burn.asarray([1.0, 1.1], device="cpu"), 1.0).tolist()
    [True, False]
    """
    rtol = real_number(rtol, "rtol", "isclose", least=0.0)
    atol = real_number(atol, "atol", "isclose", least=0.0)
    first, second = _as_floats(x1, x2)
    distance = elementwise_functions.abs(first - second)
    near: Tensor = distance <= elementwise_functions.abs(second) * rtol + atol
    # Infinities are as far from each other as the tolerance is wide: both infinite.
    near = near & elementwise_functions.isfinite(second) | (first == second)
    if equal_nan:
        near = near | elementwise_functions.isnan(first) & elementwise_functions.isnan(second)
    return near


def allclose(
    x1: Operand,
    x2: Operand,
    /,
    *,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are close to each other; reads the answer. See `isclose`."""
    return bool(all(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)))


def contains_nan(x: Tensor, /) -> Tensor:
    """Whether any element is NaN, as a 0-d bool tensor."""
    return any(elementwise_functions.isnan(x))


def _as_floats(x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Two operands as inexact tensors of one dtype: differences of integers may not fit theirs."""
    both = [one for one in (x1, x2) if isinstance(one, DispatchTensor)]
    if not both:
        raise OperandTypeError(
            "at least one operand must be a tensor",
            hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
            operation="isclose",
        )
    dtype = functools.reduce(promote, [one.tensor_type.dtype for one in both])
    device = both[0].tensor_type.device
    if complex in (type(x1), type(x2)):
        dtype = promote(dtype, device.settings.complex_dtype)
    elif dtype.kind in Kind.INTEGRAL:
        dtype = device.settings.float_dtype
    first, second = [
        one.astype(dtype)
        if isinstance(one, DispatchTensor)
        else asarray(one, dtype=dtype, device=device)
        for one in (x1, x2)
    ]
    return first, second
