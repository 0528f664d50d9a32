"""Steps of an LSTM beside its products, which numba compiles.

LLVM makes vector instructions of loops that write to one array, so each row takes a few loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_cpu.base import Array
from burn_cpu.compiled_base import ONE, ZERO, compiled_exactly, exp, float32

__all__ = ["lstm_step", "lstm_step_grad"]

_TWO: Any = float32(2.0)
_MAX_OF_SERIES: Any = float32(0.625)
_T4, _T3, _T2, _T1, _T0 = map(
    float32,
    (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -0.333332819),
)
"""Of ``(tanh(x) / x - 1) / x**2`` for small x (tanhf of S. Moshier's Cephes)."""


@compiled_exactly
def _tanh(x: Any) -> Any:
    size = abs(x)
    power = exp(-_TWO * size)
    large = (ONE - power) / (ONE + power)
    square = x * x
    small = ((((_T4 * square + _T3) * square + _T2) * square + _T1) * square + _T0) * square
    small = small * x + x
    return small if size < _MAX_OF_SERIES else (-large if x < ZERO else large)


@compiled_exactly
def _sigmoid_of_twice(x: Any) -> Any:
    """The sigmoid of ``2 * x``."""
    power = exp(-_TWO * abs(x))
    large = ONE / (ONE + power)
    return power * large if x < ZERO else large


@compiled_exactly
def lstm_step(
    values: Array, product: Array, before: Array, cell: Array, shown: Array, output: Array
) -> None:
    """A step of all examples.

    Parameters
    ----------
    values : array, shape (N, 4 * H)
        What the inputs add to the sums, then the gates input, forget, output and candidate. The
        sums of sigmoids are halved.
    product : array, shape (N, 4 * H)
        What the hidden state adds to the sums.
    before, cell : array, shape (N, H)
        The cell state before the step and after it; they may be the same array.
    shown, output : array, shape (N, H)
        tanh of the cell state, and the next hidden state.
    """
    hidden = cell.shape[1]
    old = np.empty(hidden, np.float32)
    for n in range(len(values)):
        row, added = values[n], product[n]
        for i in range(3 * hidden):
            row[i] = _sigmoid_of_twice(row[i] + added[i])
        for i in range(3 * hidden, 4 * hidden):
            row[i] = _tanh(row[i] + added[i])
        earlier, state, visible, result = before[n], cell[n], shown[n], output[n]
        for i in range(hidden):
            old[i] = earlier[i]
        for i in range(hidden):
            state[i] = row[hidden + i] * old[i] + row[i] * row[3 * hidden + i]
        for i in range(hidden):
            visible[i] = _tanh(state[i])
        for i in range(hidden):
            result[i] = row[2 * hidden + i] * visible[i]


@compiled_exactly
def lstm_step_grad(values: Array, before: Array, shown: Array, to_h: Array, to_c: Array) -> None:
    """The way back through a step: gradients by the sums replace the gates.

    Parameters
    ----------
    values : array, shape (N, 4 * H)
        The gates.
    before, shown : array, shape (N, H)
        The cell state before the step, and tanh of that after it.
    to_h, to_c : array, shape (N, H)
        Gradients by the states after the step; that by the cell becomes the one before it.
    """
    hidden = shown.shape[1]
    gates = np.empty(4 * hidden, np.float32)
    for n in range(len(values)):
        row, earlier, visible, above, along = values[n], before[n], shown[n], to_h[n], to_c[n]
        for i in range(4 * hidden):
            gates[i] = row[i]
        admit, keep = gates[:hidden], gates[hidden : 2 * hidden]
        show, candidate = gates[2 * hidden : 3 * hidden], gates[3 * hidden :]
        for i in range(hidden):
            along[i] += (ONE - visible[i] * visible[i]) * show[i] * above[i]
        for i in range(hidden):
            row[i] = (admit[i] - admit[i] * admit[i]) * (candidate[i] * along[i])
        for i in range(hidden):
            row[hidden + i] = (keep[i] - keep[i] * keep[i]) * (earlier[i] * along[i])
        for i in range(hidden):
            row[2 * hidden + i] = (show[i] - show[i] * show[i]) * (visible[i] * above[i])
        for i in range(hidden):
            row[3 * hidden + i] = (ONE - candidate[i] * candidate[i]) * (admit[i] * along[i])
        for i in range(hidden):
            along[i] *= keep[i]
