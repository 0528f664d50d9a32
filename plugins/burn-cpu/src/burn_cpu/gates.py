"""Weights and gates of recurrent layers: their layout, and the passes that they share."""

from __future__ import annotations

import numpy as np

from burn_cpu.base import Array

__all__ = [
    "arranged_gates",
    "finish_sigmoids",
    "halved_rows",
    "rows_of",
    "sigmoid_slope",
    "swapped_gates",
    "tanh_slope",
    "total_of",
]


def rows_of(x: Array) -> Array:
    """One row for each example in each step."""
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def total_of(bias_ih: Array | None, bias_hh: Array | None) -> Array | None:
    """The sum of two biases, of which either may be None."""
    if bias_ih is None or bias_hh is None:
        return bias_hh if bias_ih is None else bias_ih
    return bias_ih + bias_hh


def swapped_gates(x: Array) -> Array:
    """Rows of four gates with the last two gates exchanged."""
    first, second, third = len(x) // 2, len(x) // 4 * 3, len(x)
    return np.concatenate((x[:first], x[second:third], x[first:second]))


def arranged_gates(x: Array) -> Array:
    """Rows of an LSTM in the order of an LSTM, those of sigmoids halved."""
    result = swapped_gates(x)
    result[: len(x) // 4 * 3] *= 0.5
    return result


def halved_rows(x: Array, length: int) -> Array:
    """The first rows halved."""
    result = np.array(x, order="C")
    result[:length] *= 0.5
    return result


def finish_sigmoids(x: Array) -> None:
    """Make sigmoids of what tanh gives for half of their argument."""
    x *= 0.5
    x += 0.5


def tanh_slope(value: Array, out: Array) -> None:
    """The derivative of tanh, given its value."""
    np.multiply(value, value, out=out)
    np.subtract(1, out, out=out)


def sigmoid_slope(value: Array, out: Array) -> None:
    """The derivative of the sigmoid, given its value."""
    np.multiply(value, value, out=out)
    np.subtract(value, out, out=out)
