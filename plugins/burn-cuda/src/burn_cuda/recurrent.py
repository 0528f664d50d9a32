"""Recurrent layers: a product and a kernel for each step, and one product for all inputs.

An LSTM whose weight fits the registers of a block is one kernel for all steps.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from burn.plugin_api import (
    check_recurrent_gradients,
    in_float32,
    ordered_steps,
    recurrent_shape,
    transpose_matrices,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type

if TYPE_CHECKING:
    from burn.plugin_api import OpTable

__all__ = ["RecurrentOps"]

_MAX_HIDDEN_OF_BLOCK: Final = 128
"""Hidden values of an example up to which one block computes all steps of an LSTM in float32."""

_WANTED_BLOCKS: Final = 132
_MAX_EXAMPLES_OF_BLOCK: Final = 4


class RecurrentOps(CudaOps):
    """One layer in one direction; a GRU whose reset gate comes first is left to the default."""

    def rnn(self, *operands: Any, **attributes: Any) -> tuple[Array, ...]:
        """One kernel a step."""
        return self._layer("rnn", _Rnn, operands, attributes)

    def rnn_grad(self, *operands: Any, **attributes: Any) -> tuple[Array, ...]:
        """All steps again, and back."""
        return self._layer("rnn_grad", _Rnn, operands, attributes)

    def lstm(self, *operands: Any, **attributes: Any) -> tuple[Array, ...]:
        """One kernel a step."""
        return self._layer("lstm", _Lstm, operands, attributes)

    def lstm_grad(self, *operands: Any, **attributes: Any) -> tuple[Array, ...]:
        """All steps again, and back."""
        return self._layer("lstm_grad", _Lstm, operands, attributes)

    def gru(self, *operands: Any, **attributes: Any) -> tuple[Array, ...]:
        """One kernel a step."""
        return self._layer("gru", _Gru, operands, attributes)

    def gru_grad(self, *operands: Any, **attributes: Any) -> tuple[Array, ...]:
        """All steps again, and back."""
        return self._layer("gru_grad", _Gru, operands, attributes)

    def _layer(
        self, name: str, kind: type[_Layer], operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[Array, ...]:
        """The outputs of a layer, or the gradients by its operands."""
        count = 5 + kind.states
        x, *states, weight_ih, weight_hh, bias_ih, bias_hh = operands[:count]
        named = dict(zip(("h", "c"), states, strict=False))
        biases = bias_ih, bias_hh
        shape = recurrent_shape(kind.gates, x, weight_ih, weight_hh, biases, **named)
        if len(operands) > count:
            g, *by_states = operands[count:]
            names = ("g_h", "g_c")[: kind.states]
            check_recurrent_gradients(shape, g, **dict(zip(names, by_states, strict=True)))
        is_empty = 0 in (*shape, x.shape[2])
        if is_empty or not attributes.get("reset_after", True):
            default: tuple[Array, ...] = self.ops.decomposed(name, *operands, **attributes)
            return default

        def call(ops: OpTable, *wide: Any) -> tuple[Array, ...]:
            layer = kind.suited(wide[:count])(self, ops, wide[:count], **attributes)
            return layer.gradients(*wide[count:]) if len(wide) > count else layer.outputs()

        result: tuple[Array, ...] = in_float32(call)(self.ops, *operands)
        return result


class _Layer:
    """The steps of a layer, and the way back; a subclass has one kind of layer."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1

    def __init__(
        self,
        backend: CudaOps,
        ops: OpTable,
        operands: tuple[Any, ...],
        *,
        reverse: bool = False,
        needs_x: bool = True,
        **rest: Any,
    ) -> None:
        del rest
        launcher = self.launcher = backend.launcher
        self.ops, self.needs_x = ops, needs_x
        x, *states, weight_ih, weight_hh, self.bias_ih, self.bias_hh = operands
        self.x, self.weight_ih, self.dtype = x, weight_ih, x.dtype
        self.before = [launcher.dense(state) for state in states]
        self.weight_hh = launcher.dense(weight_hh)
        self.steps, self.count, self.hidden = x.shape[0], x.shape[1], weight_hh.shape[1]
        self.order = ordered_steps(self.steps, reverse=reverse)
        self.is_reverse = reverse
        self.c_type = c_type(launcher.dtypes[x.dtype])

    @functools.cached_property
    def product(self) -> Array:
        """Memory for what the hidden state adds to the sums of a step."""
        return self._empty(self.gates)

    @classmethod
    def suited(cls, operands: tuple[Any, ...]) -> type[_Layer]:
        """The class that is fastest for such operands."""
        del operands
        return cls

    def outputs(self) -> tuple[Array, ...]:
        raise NotImplementedError

    def gradients(self, *cotangents: Any) -> tuple[Array, ...]:
        raise NotImplementedError

    def _empty(self, count: int, *steps: int) -> Array:
        """Memory for so many values of each hidden one."""
        shape = (*steps, self.count, count * self.hidden)
        return self.launcher.empty(shape, self.dtype)

    @functools.cached_property
    def _zeros(self) -> Array:
        result = self._empty(1)
        self.launcher.runtime.zero(result)
        return result

    def _writable(self, g: Array | None) -> Array:
        """A gradient by a state, to be replaced step by step."""
        return self.launcher.copied(self._zeros if g is None else g)

    def _sums(self, bias: Array | None) -> Array:
        """What the inputs of all steps add to the sums, to be written to."""
        sums = self.ops.linear(self.x, self.weight_ih, bias, transposed=True)
        return self.launcher.dense(sums)

    def _multiply(self, h: Array) -> None:
        """Write the product of the hidden state and its weight."""
        shape = (self.count, self.gates * self.hidden, self.hidden)
        self.launcher.runtime.gemm(h, self.weight_hh, self.product, shape, transposed=(False, True))

    def _multiply_back(self, to_product: Array, to_h: Array) -> None:
        """Write the gradient by the hidden state, from that by the product."""
        shape = (self.count, self.hidden, self.gates * self.hidden)
        self.launcher.runtime.gemm(to_product, self.weight_hh, to_h, shape)

    def _launch(self, name: str, *arguments: Any) -> None:
        kernel = self.launcher.kernel(name, "recurrent.cu", T=self.c_type)
        threads = self.count * self.hidden
        self.launcher.run(kernel, threads, *arguments, threads)

    def _earlier(self, states: Array, first: Array) -> list[Array]:
        """The state before each step."""
        if self.is_reverse:
            return [*[states[step] for step in range(1, self.steps)], first]
        return [first, *[states[step] for step in range(self.steps - 1)]]

    def _at_steps(self, g: Array | None) -> list[Array | int]:
        """A gradient in each step; null pointers for None."""
        return [0] * self.steps if g is None else list(self.launcher.dense(g))

    def _to_inputs(self, to_sums: Array) -> tuple[Array, Array, Array]:
        """Gradients by `x`, by its weight and by its bias, from those by the sums."""
        ops, shape = self.ops, self.x.shape
        if self.needs_x:
            to_x = ops.linear(to_sums, self.weight_ih, None)
        else:
            to_x = self.launcher.empty(shape, self.dtype)
            self.launcher.runtime.zero(to_x)
        dtype = self.launcher.dtypes[self.dtype]
        return to_x, self._to_weight(to_sums, self.x), ops.sum(to_sums, axis=(0, 1), dtype=dtype)

    def _to_weight(self, to_sums: Array, x: Array) -> Array:
        """The gradient by the weight that makes sums of `x`."""
        rows, columns = (
            self.ops.reshape(tensor, shape=(self.steps * self.count, tensor.shape[-1]))
            for tensor in (to_sums, x)
        )
        return self.ops.matmul(transpose_matrices(self.ops, rows), columns)

    def _to_weight_hh(self, to_product: Array, output: Array) -> Array:
        """The gradient by the weight of the hidden state."""
        first = self.ops.reshape(self.before[0], shape=(1, self.count, self.hidden))
        rest = output[1:] if self.is_reverse else output[:-1]
        states = [rest, first] if self.is_reverse else [first, rest]
        return self._to_weight(to_product, self.ops.concat(states, axis=0))

    def _total_bias(self) -> Array | None:
        if self.bias_ih is None or self.bias_hh is None:
            return self.bias_hh if self.bias_ih is None else self.bias_ih
        return self.ops.add(self.bias_ih, self.bias_hh)


class _Rnn(_Layer):
    gates = 1

    def __init__(self, *arguments: Any, nonlinearity: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.is_tanh = int(nonlinearity == "tanh")
        self.output = self._sums(self._total_bias())
        (h,) = self.before
        for step in self.order:
            self._multiply(h)
            h = self.output[step]
            self._launch("rnn_step", h, self.product, self.is_tanh)

    def outputs(self) -> tuple[Array, ...]:
        return self.output, self.output[self.order[-1]]

    def gradients(self, *cotangents: Any) -> tuple[Array, ...]:
        g, g_h = cotangents
        by_output, to_h = self._at_steps(g), self._writable(g_h)
        to_sums = self._empty(1, self.steps)
        for step in reversed(self.order):
            to_sum = to_sums[step]
            arguments = (self.output[step], by_output[step], to_h, to_sum, self.is_tanh)
            self._launch("rnn_step_back", *arguments)
            self._multiply_back(to_sum, to_h)
        to_x, to_weight_ih, to_bias = self._to_inputs(to_sums)
        return to_x, to_h, to_weight_ih, self._to_weight_hh(to_sums, self.output), to_bias


class _Lstm(_Layer):
    gates = 4
    states = 2

    @classmethod
    def suited(cls, operands: tuple[Any, ...]) -> type[_Layer]:
        weight_hh = operands[4]
        fits = weight_hh.dtype == np.float32 and weight_hh.shape[1] <= _MAX_HIDDEN_OF_BLOCK
        return _LstmOfBlocks if fits else cls

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.values = self._sums(self._total_bias())
        self.cells, self.output = self._empty(1, self.steps), self._empty(1, self.steps)
        h, c = self.before
        for step in self.order:
            self._multiply(h)
            before, c, h = c, self.cells[step], self.output[step]
            self._launch("lstm_step", self.values[step], self.product, before, c, h, self.hidden)

    def outputs(self) -> tuple[Array, ...]:
        last = self.order[-1]
        return self.output, self.output[last], self.cells[last]

    def gradients(self, *cotangents: Any) -> tuple[Array, ...]:
        g, g_h, g_c = cotangents
        by_output, to_h, to_c = self._at_steps(g), self._writable(g_h), self._writable(g_c)
        earlier = self._earlier(self.cells, self.before[1])
        to_sums = self._empty(4, self.steps)
        for step in reversed(self.order):
            to_sum = to_sums[step]
            states = (self.values[step], earlier[step], self.cells[step])
            gradients = (by_output[step], to_h, to_c, to_sum)
            self._launch("lstm_step_back", *states, *gradients, self.hidden)
            self._multiply_back(to_sum, to_h)
        to_x, to_weight_ih, to_bias = self._to_inputs(to_sums)
        to_weight_hh = self._to_weight_hh(to_sums, self.output)
        return to_x, to_h, to_c, to_weight_ih, to_weight_hh, to_bias


class _LstmOfBlocks(_Layer):
    """All steps in one kernel: a block keeps the weight, and has some of the examples."""

    gates = 4
    states = 2

    def outputs(self) -> tuple[Array, ...]:
        output, cell = self._empty(1, self.steps), self._empty(1)
        self._forward(output, cell, records=0)
        return output, output[self.order[-1]], cell

    def gradients(self, *cotangents: Any) -> tuple[Array, ...]:
        hidden, cells = self._empty(1, self.steps), self._empty(1, self.steps)
        gates = self._forward(hidden, cells, records=1)
        given = [0 if g is None else self.launcher.dense(g) for g in cotangents]
        to_sums, to_h, to_c = self._empty(4, self.steps), self._empty(1), self._empty(1)
        memory = (gates, cells, self.weight_hh, *given, to_sums, to_h, to_c)
        self._launch_all("lstm_layer_back", 1, *memory)
        to_x, to_weight_ih, to_bias = self._to_inputs(to_sums)
        return to_x, to_h, to_c, to_weight_ih, self._to_weight(to_sums, hidden), to_bias

    def _forward(self, hidden: Array, cells: Array, *, records: int) -> Array:
        """Write the states; return what are the gates then, if they are recorded."""
        sums = self._sums(None)
        dense = self.launcher.dense
        biases = [0 if item is None else dense(item) for item in (self.bias_ih, self.bias_hh)]
        memory = (sums, self.weight_hh, *biases, *self.before, hidden, cells)
        self._launch_all("lstm_layer", records, *memory)
        return sums

    def _launch_all(self, name: str, records: int, *memory: Any) -> None:
        examples = min(-(-self.count // _WANTED_BLOCKS), _MAX_EXAMPLES_OF_BLOCK)
        definitions: dict[str, str | int] = {
            "T": self.c_type,
            "HIDDEN": self.hidden,
            "EXAMPLES": examples,
            "RECORDS": records,
            f"HAS_{name}": 1,
        }
        kernel = self.launcher.kernel(name, "lstm.cu", **definitions)
        grid, block = (-(-self.count // examples),), (self.gates * self.hidden,)
        kernel(grid, block, (*memory, self.steps, self.count, int(self.is_reverse)))


class _Gru(_Layer):
    gates = 3

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.values = self._sums(self.bias_ih)
        self.kept, self.output = self._empty(1, self.steps), self._empty(1, self.steps)
        bias = 0 if self.bias_hh is None else self.launcher.dense(self.bias_hh)
        (h,) = self.before
        for step in self.order:
            self._multiply(h)
            before, h = h, self.output[step]
            states = (before, self.kept[step], h)
            arguments = (self.values[step], self.product, bias, *states, self.hidden)
            self._launch("gru_step", *arguments)

    def outputs(self) -> tuple[Array, ...]:
        return self.output, self.output[self.order[-1]]

    def gradients(self, *cotangents: Any) -> tuple[Array, ...]:
        g, g_h = cotangents
        by_output, to_h, direct = self._at_steps(g), self._writable(g_h), self._writable(None)
        earlier = self._earlier(self.output, self.before[0])
        to_inputs, to_products = self._empty(3, self.steps), self._empty(3, self.steps)
        for step in reversed(self.order):
            to_product = to_products[step]
            states = (self.values[step], earlier[step], self.kept[step])
            gradients = (by_output[step], to_h, direct, to_inputs[step], to_product)
            self._launch("gru_step_back", *states, *gradients, self.hidden)
            self._multiply_back(to_product, to_h)
        to_x, to_weight_ih, to_bias_ih = self._to_inputs(to_inputs)
        to_weight_hh = self._to_weight_hh(to_products, self.output)
        dtype = self.launcher.dtypes[self.dtype]
        to_bias_hh = self.ops.sum(to_products, axis=(0, 1), dtype=dtype)
        to_state = self.ops.add(to_h, direct)
        return to_x, to_state, to_weight_ih, to_weight_hh, to_bias_ih, to_bias_hh
