"""Integrals of sampled functions by the trapezoidal rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import ShapeError
from burn.functions.cumulative import cumulative_sum
from burn.functions.normalize import as_float, check_tensor, normalize_axis
from burn.functions.quantization import numbers_of
from burn.functions.rearranging import narrow
from burn.functions.statistical import sum
from burn.functions.utility import diff
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["cumulative_trapezoid", "trapezoid"]


def trapezoid(y: Tensor, /, x: Tensor | None = None, *, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Values of the function; integers give the default float dtype.
    x : Tensor, optional
        Where the values lie: a vector as long as the axis, or a tensor that broadcasts with `y`.
    dx : float
        Distance of neighbouring values, where `x` is left out.
    axis : int
        The axis along which is integrated.

    Returns
    -------
    Tensor
        The integrals, without the axis; 0 where it has fewer than two values.

    Raises
    ------
    AxisError
        If `y` has no such axis.
    ShapeError
        If `x` has another length along it.

    Examples
    --------
    >>> import burn
    >>> y = burn.asarray([1.0, 2.0, 4.0], device="cpu")
    >>> burn.trapezoid(y).item(), burn.trapezoid(y, burn.asarray([0, 2, 3], device="cpu")).item()
    (4.5, 6.0)
    """
    areas, number = _areas(y, x, dx, axis, "trapezoid")
    return sum(areas, axis=number)


@documented_as(trapezoid)
def cumulative_trapezoid(
    y: Tensor, /, x: Tensor | None = None, *, dx: float = 1.0, axis: int = -1
) -> Tensor:
    """Integrals from the first value of an axis to each later one, by the trapezoidal rule.

    The parameters are those of `trapezoid`.

    Returns
    -------
    Tensor
        The integrals, one fewer along the axis than there are values.

    Examples
    --------
    >>> import burn
    >>> burn.cumulative_trapezoid(burn.asarray([1.0, 2.0, 4.0], device="cpu")).tolist()
    [1.5, 4.5]
    """
    areas, number = _areas(y, x, dx, axis, "cumulative_trapezoid")
    return cumulative_sum(areas, axis=number)


def _areas(y: Tensor, x: Tensor | None, dx: float, axis: int, operation: str) -> tuple[Tensor, int]:
    """Areas between neighbouring values, and their axis."""
    y = numbers_of(as_float(y, operation, "y"))
    number = normalize_axis(y, axis, operation)
    step = real_number(dx, "dx", operation, takes_nan=True)
    length = y.shape[number]
    count = max(length - 1, 0)
    before, after = (narrow(y, start, count, axis=number) for start in (0, length - count))
    pairs = before * 0.5 + after * 0.5
    if x is None:
        return pairs * step, number
    check_tensor(x, "x", operation)
    if x.ndim == 1:
        x = x.reshape((-1,) + (1,) * (y.ndim - 1 - number))
    from_end = number - y.ndim
    if x.ndim < -from_end or x.shape[from_end] != length:
        raise ShapeError(
            f"x of shape {x.shape} for values of shape {y.shape}",
            hint="x has an element for each value along the axis",
            operation=operation,
        )
    if not x.dtype.is_float:
        x = as_float(x, operation, "x")
    areas = pairs * diff(x, axis=from_end)
    return areas, areas.ndim + from_end
