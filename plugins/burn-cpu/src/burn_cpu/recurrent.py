"""Recurrent layers: one product for the inputs of all steps, then each step in a few passes.

A sigmoid is computed as ``0.5 + 0.5 * tanh(x / 2)``, where the weights are halved instead of x: so
one tanh makes all gates of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from burn.plugin_api import check_recurrent_gradients, ordered_steps, recurrent_shape
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import wide_dtype
from burn_cpu.compiled import kernels_for
from burn_cpu.gates import (
    arranged_gates,
    finish_sigmoids,
    halved_rows,
    rows_of,
    sigmoid_slope,
    swapped_gates,
    tanh_slope,
    total_of,
)

_ROWS_OF_PRODUCT: Final = 256
"""Rows of the product for the inputs of some steps: more are no faster, and take more memory."""


class RecurrentOps(CpuOps):
    """One layer in one direction; a GRU whose reset gate comes first is left to the default."""

    def rnn(self, *operands: Any, nonlinearity: str, reverse: bool = False) -> tuple[Array, ...]:
        """``tanh`` or ``relu`` in place."""
        return _in_wide_floats(
            lambda *wide: _Rnn(*wide, nonlinearity=nonlinearity, reverse=reverse).outputs(),
            operands,
        )

    def rnn_grad(
        self, *operands: Any, nonlinearity: str, reverse: bool = False, needs_x: bool = True
    ) -> tuple[Array, ...]:
        """All steps again, and back."""

        def gradients(*wide: Any) -> tuple[Array, ...]:
            layer = _Rnn(*wide[:6], nonlinearity=nonlinearity, reverse=reverse)
            return layer.gradients(*wide[6:], needs_x=needs_x)

        return _in_wide_floats(gradients, operands)

    def lstm(self, *operands: Any, reverse: bool = False) -> tuple[Array, ...]:
        """Gates in place."""
        return _in_wide_floats(lambda *wide: _Lstm(*wide, reverse=reverse).outputs(), operands)

    def lstm_grad(
        self, *operands: Any, reverse: bool = False, needs_x: bool = True
    ) -> tuple[Array, ...]:
        """All steps again, and back."""

        def gradients(*wide: Any) -> tuple[Array, ...]:
            layer = _Lstm(*wide[:7], reverse=reverse, keeps=True)
            return layer.gradients(*wide[7:], needs_x=needs_x)

        return _in_wide_floats(gradients, operands)

    def gru(
        self, *operands: Any, reset_after: bool = True, reverse: bool = False
    ) -> tuple[Array, ...]:
        """Gates in place."""
        if not reset_after:
            flags = {"reset_after": False, "reverse": reverse}
            found: tuple[Array, ...] = self.ops.decomposed("gru", *operands, **flags)
            return found
        return _in_wide_floats(lambda *wide: _Gru(*wide, reverse=reverse).outputs(), operands)

    def gru_grad(
        self,
        *operands: Any,
        reset_after: bool = True,
        reverse: bool = False,
        needs_x: bool = True,
    ) -> tuple[Array, ...]:
        """All steps again, and back."""
        if not reset_after:
            flags = {"reset_after": False, "reverse": reverse, "needs_x": needs_x}
            found: tuple[Array, ...] = self.ops.decomposed("gru_grad", *operands, **flags)
            return found

        def gradients(*wide: Any) -> tuple[Array, ...]:
            layer = _Gru(*wide[:6], reverse=reverse, keeps=True)
            return layer.gradients(*wide[6:], needs_x=needs_x)

        return _in_wide_floats(gradients, operands)


def _in_wide_floats(
    function: Callable[..., tuple[Array, ...]], operands: tuple[Any, ...]
) -> tuple[Array, ...]:
    """Call a function with 16-bit floats as float32, and round what it returns."""
    dtype = operands[0].dtype
    wide = wide_dtype(dtype)
    if wide is dtype:
        return function(*operands)
    arrays = [None if operand is None else operand.astype(wide) for operand in operands]
    return tuple([item.astype(dtype) for item in function(*arrays)])


class _Layer:
    """The steps of a layer, and the way back; a subclass has one kind of layer.

    Attributes
    ----------
    x, h, weight_ih, weight_hh : array
        Operands.
    output : array, shape (T, N, H)
        The hidden state after each step.
    order : range
        Indices of the steps, in their order.
    keeps : bool
        Whether the values of all steps are kept for the gradients.
    """

    gates = 1

    def __init__(
        self,
        x: Array,
        states: dict[str, Array],
        weight_ih: Array,
        weight_hh: Array,
        biases: tuple[Array | None, Array | None],
        *,
        reverse: bool,
        keeps: bool,
    ) -> None:
        self.shape = recurrent_shape(self.gates, x, weight_ih, weight_hh, biases, **states)
        self.x, self.h, self.weight_ih, self.weight_hh = x, states["h"], weight_ih, weight_hh
        self.order = ordered_steps(self.shape.steps, reverse=reverse)
        self.is_reverse, self.keeps = reverse, keeps
        self.output = self._buffer(1)

    def _buffer(self, count: int) -> Array:
        """An array with so many values of each hidden one in each step."""
        steps, examples, hidden = self.shape
        return np.empty((steps, examples, count * hidden), self.x.dtype)

    def _kept_buffer(self) -> Array:
        """The same for one value; if they are not kept, all steps share the memory of one."""
        if self.keeps:
            return self._buffer(1)
        one = np.empty(self.shape.state, self.x.dtype)
        return np.ndarray(self.shape, one.dtype, one, strides=(0, *one.strides))

    def _value_buffer(self) -> Array:
        """An array of the gates in all steps, or in some if they need not be kept."""
        steps, examples, hidden = self.shape
        if not self.keeps:
            steps = min(steps, max(1, _ROWS_OF_PRODUCT // max(1, examples)))
        return np.empty((steps, examples, self.gates * hidden), self.x.dtype)

    def _gates(self, x: Array) -> list[Array]:
        """Views of the gates, which lie side by side along the last axis."""
        return np.split(x, self.gates, axis=-1)

    def _sigmoids(self, x: Array) -> Array:
        """A view of all gates but the last, which is the one with a tanh."""
        return x[..., : (self.gates - 1) * self.shape.hidden]

    def _steps(self, values: Array, weight: Array, bias: Array | None) -> Iterator[tuple[int, int]]:
        """Each step and its index in `values`, to which what its inputs add to the sums is written.

        The product is that of as many steps as there are in `values`.
        """
        for start in range(0, self.shape.steps, len(values)):
            steps = self.order[start : start + len(values)]
            first, count = min(steps[0], steps[-1]), len(steps)
            part = values[:count]
            np.matmul(rows_of(self.x[first : first + count]), weight.T, out=rows_of(part))
            if bias is not None:
                part += bias
            for step in steps:
                yield step, step - first

    def _earlier(self, states: Array, first: Array) -> list[Array]:
        """The state before each step, from those after the steps and that before the first."""
        return [*states[1:], first] if self.is_reverse else [first, *states[:-1]]

    def _to_weight_hh(self, to_products: Array) -> Array:
        """The gradient by the weight of the hidden state, from those by its products."""
        rows = np.concatenate(self._earlier(self.output, self.h))
        return rows_of(to_products).T @ rows

    def _to_state(self, g: Array | None) -> Array:
        """A buffer with the gradient that reaches the last state."""
        if g is None:
            return np.zeros(self.shape.state, self.x.dtype)
        return np.array(g, order="C")

    def _to_inputs(self, to_sums: Array, *, needs_x: bool) -> tuple[Array, Array, Array]:
        """Gradients by `x`, by its weight and by its bias, from those by the sums."""
        rows = rows_of(to_sums)
        if needs_x:
            to_x = (rows @ self.weight_ih).reshape(self.x.shape)
        else:
            to_x = np.zeros(self.x.shape, self.x.dtype)
        return to_x, rows.T @ rows_of(self.x), rows.sum(axis=0)


class _Rnn(_Layer):
    def __init__(
        self,
        x: Array,
        h: Array,
        weight_ih: Array,
        weight_hh: Array,
        *biases: Any,
        nonlinearity: str,
        reverse: bool,
    ) -> None:
        super().__init__(x, {"h": h}, weight_ih, weight_hh, biases, reverse=reverse, keeps=True)
        self.is_tanh = nonlinearity == "tanh"
        product = np.empty(self.shape.state, x.dtype)
        for step, _ in self._steps(self.output, weight_ih, total_of(*biases)):
            sums = self.output[step]
            sums += np.matmul(h, weight_hh.T, out=product)
            h = np.tanh(sums, out=sums) if self.is_tanh else np.maximum(sums, 0, out=sums)

    def outputs(self) -> tuple[Array, ...]:
        return self.output, self.output[self.order[-1]].copy()

    def gradients(self, g: Array | None, g_h: Array | None, *, needs_x: bool) -> tuple[Array, ...]:
        check_recurrent_gradients(self.shape, g, g_h=g_h)
        to_h, to_sums = self._to_state(g_h), self._buffer(1)
        if self.is_tanh:
            tanh_slope(self.output, to_sums)
        else:
            np.greater(self.output, 0, out=to_sums)
        for step in reversed(self.order):
            if g is not None:
                to_h += g[step]
            to_sums[step] *= to_h
            np.matmul(to_sums[step], self.weight_hh, out=to_h)
        to_x, to_weight_ih, to_bias = self._to_inputs(to_sums, needs_x=needs_x)
        return to_x, to_h, to_weight_ih, self._to_weight_hh(to_sums), to_bias


class _Lstm(_Layer):
    """Gates have the order input, forget, output, candidate, so that the sigmoids are together."""

    gates = 4

    def __init__(
        self,
        x: Array,
        h: Array,
        c: Array,
        weight_ih: Array,
        weight_hh: Array,
        *biases: Any,
        reverse: bool,
        keeps: bool = False,
    ) -> None:
        states = {"h": h, "c": c}
        super().__init__(x, states, weight_ih, weight_hh, biases, reverse=reverse, keeps=keeps)
        self.c = c
        bias = total_of(*biases)
        arranged = [None if item is None else arranged_gates(item) for item in (weight_ih, bias)]
        recurrent = np.ascontiguousarray(arranged_gates(weight_hh).T)
        self.values = self._value_buffer()
        self.cells, self.shown = self._kept_buffer(), self._kept_buffer()
        product = np.empty(self.values.shape[1:], x.dtype)
        self.kernels = kernels_for(x.dtype, "recurrent")
        if self.kernels is not None:
            c = np.array(c, order="C")
            for step, index in self._steps(self.values, *arranged):
                np.matmul(h, recurrent, out=product)
                before, c, h = c, self.cells[step], self.output[step]
                shown = self.shown[step]
                self.kernels.lstm_step(self.values[index], product, before, c, shown, h)
            return
        work = np.empty(self.shape.state, x.dtype)
        sigmoids = self._sigmoids(self.values)
        admit, keep, show, candidate = self._gates(self.values)
        for step, index in self._steps(self.values, *arranged):
            values = self.values[index]
            values += np.matmul(h, recurrent, out=product)
            np.tanh(values, out=values)
            finish_sigmoids(sigmoids[index])
            c = np.multiply(keep[index], c, out=self.cells[step])
            c += np.multiply(admit[index], candidate[index], out=work)
            shown = np.tanh(c, out=self.shown[step])
            h = np.multiply(show[index], shown, out=self.output[step])

    def outputs(self) -> tuple[Array, ...]:
        last = self.order[-1]
        return self.output, self.output[last].copy(), self.cells[last].copy()

    def gradients(
        self, g: Array | None, g_h: Array | None, g_c: Array | None, *, needs_x: bool
    ) -> tuple[Array, ...]:
        check_recurrent_gradients(self.shape, g, g_h=g_h, g_c=g_c)
        to_h, to_c = self._to_state(g_h), self._to_state(g_c)
        cells_before = self._earlier(self.cells, self.c)
        weight_hh = swapped_gates(self.weight_hh)
        to_sums = self.values  # where the gradients of a step replace its gates
        values = np.empty(to_sums.shape[1:], to_sums.dtype)
        work = np.empty(self.shape.state, to_sums.dtype)
        sigmoids, to_sigmoids = self._sigmoids(values), self._sigmoids(to_sums)
        admit, keep, show, candidate = self._gates(values)
        to_gates = self._gates(to_sums)
        for step in reversed(self.order):
            if g is not None:
                to_h += g[step]
            shown = self.shown[step]
            if self.kernels is not None:
                before = np.require(cells_before[step], requirements=["C", "W"])
                self.kernels.lstm_step_grad(to_sums[step], before, shown, to_h, to_c)
                np.matmul(to_sums[step], weight_hh, out=to_h)
                continue
            values[...] = to_sums[step]
            tanh_slope(shown, work)
            work *= show
            work *= to_h
            to_c += work
            sigmoid_slope(sigmoids, to_sigmoids[step])
            tanh_slope(candidate, to_gates[3][step])
            factors = candidate, cells_before[step], shown, admit
            reaching = to_c, to_c, to_h, to_c
            for to_gate, factor, arrived in zip(to_gates, factors, reaching, strict=True):
                to_sum = to_gate[step]
                to_sum *= np.multiply(factor, arrived, out=work)
            to_c *= keep
            np.matmul(to_sums[step], weight_hh, out=to_h)
        self.weight_ih = swapped_gates(self.weight_ih)
        to_x, to_weight_ih, to_bias = self._to_inputs(to_sums, needs_x=needs_x)
        to_weights = to_weight_ih, self._to_weight_hh(to_sums), to_bias
        return to_x, to_h, to_c, *map(swapped_gates, to_weights)


class _Gru(_Layer):
    gates = 3

    def __init__(
        self,
        x: Array,
        h: Array,
        weight_ih: Array,
        weight_hh: Array,
        *biases: Any,
        reverse: bool,
        keeps: bool = False,
    ) -> None:
        super().__init__(x, {"h": h}, weight_ih, weight_hh, biases, reverse=reverse, keeps=keeps)
        length = 2 * self.shape.hidden
        halved = [
            None if item is None else halved_rows(item, length) for item in (weight_ih, *biases)
        ]
        recurrent = np.ascontiguousarray(halved_rows(weight_hh, length).T)
        self.values, self.products = self._value_buffer(), self._kept_buffer()
        product = np.empty(self.values.shape[1:], x.dtype)
        for_sigmoids, for_candidate = self._sigmoids(product), self._gates(product)[2]
        all_sigmoids = self._sigmoids(self.values)
        reset, update, candidates = self._gates(self.values)
        for step, index in self._steps(self.values, halved[0], halved[1]):
            np.matmul(h, recurrent, out=product)
            if halved[2] is not None:
                product += halved[2]
            sigmoids = all_sigmoids[index]
            sigmoids += for_sigmoids
            np.tanh(sigmoids, out=sigmoids)
            finish_sigmoids(sigmoids)
            self.products[step] = for_candidate
            for_candidate *= reset[index]
            candidate = candidates[index]
            candidate += for_candidate
            np.tanh(candidate, out=candidate)
            before, h = h, self.output[step]
            np.subtract(before, candidate, out=h)
            h *= update[index]
            h += candidate

    def outputs(self) -> tuple[Array, ...]:
        return self.output, self.output[self.order[-1]].copy()

    def gradients(self, g: Array | None, g_h: Array | None, *, needs_x: bool) -> tuple[Array, ...]:
        check_recurrent_gradients(self.shape, g, g_h=g_h)
        to_h, before = self._to_state(g_h), self._earlier(self.output, self.h)
        to_inputs, to_products = self.values, self._buffer(3)  # gradients replace the gates
        values = np.empty(to_inputs.shape[1:], to_inputs.dtype)
        through = np.empty(self.shape.state, to_inputs.dtype)
        work = np.empty_like(through)
        sigmoids, to_sigmoids = self._sigmoids(values), self._sigmoids(to_inputs)
        reset, update, candidate = self._gates(values)
        to_resets, to_updates, to_candidates = self._gates(to_inputs)
        to_gates, to_product = self._sigmoids(to_products), self._gates(to_products)[2]
        for step in reversed(self.order):
            if g is not None:
                to_h += g[step]
            values[...] = to_inputs[step]
            to_reset, to_update, to_candidate = (
                to_resets[step],
                to_updates[step],
                to_candidates[step],
            )
            tanh_slope(candidate, to_candidate)
            sigmoid_slope(sigmoids, to_sigmoids[step])
            np.multiply(to_h, update, out=through)
            to_candidate *= np.subtract(to_h, through, out=work)
            to_update *= to_h
            to_update *= np.subtract(before[step], candidate, out=work)
            to_reset *= np.multiply(to_candidate, self.products[step], out=work)
            to_gates[step] = to_sigmoids[step]
            np.multiply(to_candidate, reset, out=to_product[step])
            np.matmul(to_products[step], self.weight_hh, out=to_h)
            to_h += through
        to_x, to_weight_ih, to_bias_ih = self._to_inputs(to_inputs, needs_x=needs_x)
        to_weight_hh, to_bias_hh = self._to_weight_hh(to_products), rows_of(to_products).sum(axis=0)
        return to_x, to_h, to_weight_ih, to_weight_hh, to_bias_ih, to_bias_hh
