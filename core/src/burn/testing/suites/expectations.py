"""Assertions for checks of devices: each raises a `Failure` with a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import DType
from burn.testing._check import Failure
from burn.testing.op_samples import Array
from burn.testing.tolerance import compare

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["expect", "expect_error", "expect_values", "gradient_of", "typical"]


def expect(condition: object, message: str) -> None:
    """Fail with a message unless a condition holds."""
    if not condition:
        raise Failure(message)


def expect_values(what: str, actual: Any, expected: Any, *, exact: bool = True) -> None:
    """Fail unless a tensor, or an array, has the dtype and the values of an array."""
    expected = np.asarray(expected)
    values = actual if isinstance(actual, np.ndarray) else actual.numpy()
    if values.dtype != expected.dtype:
        raise Failure(f"{what} has dtype {values.dtype}, not {expected.dtype}")
    wrong = compare(values, expected, DType.of(expected.dtype), exact=exact).text
    expect(not wrong, f"{what}: {wrong}")


def expect_error(
    kind: type[BaseException], what: str, call: Callable[[], Any], *, says: str = ""
) -> None:
    """Fail unless a call raises an exception of a class, whose message has some words."""
    try:
        call()
    except kind as error:
        expect(says in str(error), f"{what}: the message does not say {says!r}: {error}")
        return
    raise Failure(f"{what} did not raise {kind.__name__}")


def gradient_of(leaf: Tensor, loss: Tensor) -> Tensor:
    """The gradient of a number by a leaf; fails if there is none."""
    gradient = leaf.grad(loss.backward())
    if gradient is None:
        raise Failure("there is no gradient")
    return gradient


def typical(dtype: DType, *shape: int) -> Array:
    """Values of a dtype, all different and exact in it; numbers of both signs."""
    count = int(np.prod(shape))
    numbers = np.arange(count).reshape(shape)
    if dtype.is_bool:
        return np.asarray(numbers % 3 == 0)
    if dtype.is_integer:
        low, high = dtype.integer_range
        # From both ends of the range, and from its middle.
        ends = np.array([low, high, 0, 1, high - 1, low + 1, 5], object)
        chosen = ends[numbers % 7] + (numbers // 7 % 3) * (numbers % 7 == 6)
        return np.asarray(chosen).astype(dtype.numpy)
    halves = (numbers % 13 - 6) * 0.5
    if dtype.is_complex:
        return np.asarray(halves + 1j * (numbers % 7 - 3)).astype(dtype.numpy)
    return np.asarray(halves).astype(dtype.numpy)
