"""assert_close: compare tensors within the tolerance of their dtypes, in tests of users."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.dtype import DType
from burn.errors import ArgumentError
from burn.functions.common import dispatch
from burn.tensor.tensor import Tensor
from burn.tensor_data import TensorData
from burn.testing.op_samples import Array
from burn.testing.tolerance import ELEMENTWISE

__all__ = ["assert_close"]

_MAX_SHOWN_ELEMENTS = 10
"""Different elements whose index and values a message shows, at most."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    message: str = "",
) -> None:
    """Raise an AssertionError unless two tensors have one shape and nearly the same values.

    Elements x and y are near enough if ``|x - y| <= max(atol, rtol * max(|x|, |y|))``. Infinities
    must be equal. Devices may differ, and so may dtypes: the less precise one says what is near.

    Parameters
    ----------
    actual, expected : Tensor, array, number or nested sequence of numbers
        What was computed, and what it should be. A number stands for a tensor full of it.
    rtol, atol : float, optional
        Relative and absolute tolerance. Without them those that burn itself is tested with: 1e-10
        and 1e-12 for float64, 1e-5 and 1e-6 for float32, 2e-3 and 1e-4 for float16, 2e-2 and 1e-3
        for bfloat16, 0 for integers and bools. What sums many terms needs more.
    equal_nan : bool
        Whether NaN is near NaN.
    message : str
        The first line of the error, if it is to be another.

    Raises
    ------
    AssertionError
        It says how many elements differ, where, and by how much.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0, 3.0], device="cpu")
    >>> burn.testing.assert_close(burn.sqrt(x * x), x)
    >>> burn.testing.assert_close(x, [1.0, 2.0, 3.1])
    Traceback (most recent call last):
    AssertionError: Tensors are not close: rtol=1e-05, atol=1e-06
    Elements that differ: 1 of 3 (33.3%)
    Greatest absolute difference: 0.1 at (2,)
    Greatest relative difference: 0.0323 at (2,)
    at (2,): actual 3.0, expected 3.1
    """
    __tracebackhide__ = True  # pytest shows the line that calls this
    x, y = _values(actual), _values(expected)
    default_rtol, default_atol = _default_tolerance(actual, expected)
    rtol = _checked("rtol", default_rtol if rtol is None else rtol)
    atol = _checked("atol", default_atol if atol is None else atol)
    head = message or f"Tensors are not close: rtol={rtol:g}, atol={atol:g}"
    if x.shape != y.shape and not isinstance(expected, (bool, int, float, complex)):
        raise AssertionError(f"{head}\nShapes differ: actual {x.shape}, expected {y.shape}")
    x, y = np.broadcast_arrays(x, y)
    with np.errstate(all="ignore"):
        wide_x, wide_y = _wide(x), _wide(y)
        error = _difference(x, y)
        largest = np.maximum(np.abs(wide_x), np.abs(wide_y))
        measured = np.isfinite(wide_x) & np.isfinite(wide_y)
        near = (x == y) | (measured & (error <= np.maximum(atol, rtol * largest)))
        if equal_nan:
            near |= np.isnan(wide_x) & np.isnan(wide_y)
        relative = error / largest
    if near.all():
        return
    lines = [head, f"Elements that differ: {(~near).sum()} of {near.size} ({np.mean(~near):.1%})"]
    compared = measured & ~near
    if compared.any():
        for name, distance in ("absolute", error), ("relative", relative):
            index = _index(np.argmax(np.where(compared, distance, -1.0)), x.shape)
            lines.append(f"Greatest {name} difference: {distance[index]:.3g} at {index}")
    for number in np.flatnonzero(~near)[:_MAX_SHOWN_ELEMENTS]:
        index = _index(number, x.shape)
        lines.append(f"at {index}: actual {x[index]!s}, expected {y[index]!s}")
    raise AssertionError("\n".join(lines))


def _values(x: Any) -> Array:
    """The values on the host, also of a tracked tensor."""
    return (dispatch.to_data(x) if isinstance(x, Tensor) else TensorData.of(x)).array


def _default_tolerance(*operands: Any) -> tuple[float, float]:
    """That of the least precise dtype among operands; Python's numbers have none of their own."""
    arrays = [operand for operand in operands if hasattr(operand, "dtype")] or operands
    dtypes = [DType.of(_values(array).dtype).component for array in arrays]
    found = [ELEMENTWISE[dtype] for dtype in dtypes if dtype.is_float]
    return max(found, default=(0.0, 0.0))


def _checked(name: str, tolerance: float) -> float:
    if not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise ArgumentError(
            f"{name} must be a number from 0 on, not {tolerance!r}", operation="assert_close"
        )
    return float(tolerance)


def _wide(x: Array) -> Array:
    """Floats whose differences are not rounded to the dtype that is tested."""
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _difference(x: Array, y: Array) -> Array:
    """``|x - y|``, of integers before it is rounded to a float."""
    if x.dtype.kind in "biu" and y.dtype.kind in "biu":
        distance: Array = np.abs(x.astype(object) - y.astype(object))
        return distance.astype(np.float64)
    return np.asarray(np.abs(_wide(x) - _wide(y)))


def _index(number: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(part) for part in np.unravel_index(number, shape))
