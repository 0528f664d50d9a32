"""Recurrent layers: a whole sequence in one op, for one layer and one direction.

Weights and gates are laid out as in PyTorch: a weight has a row for each gate and hidden value.
Nothing but the operands is kept for the gradients, which compute the states again, so that a
native implementation may do so by a fused kernel that keeps what it likes in between.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from burn.ops._attributes import check_choice
from burn.ops._precision import in_float32
from burn.ops.batching import merging
from burn.ops.networks.recurrence import (
    at_step,
    bias_gradient,
    check_recurrent_gradients,
    gate,
    input_gradient,
    needed,
    or_zeros,
    ordered_steps,
    recurrent_flops,
    recurrent_shape,
    slope_of_sigmoid,
    slope_of_tanh,
    stacked,
    total_bias,
    weight_gradient,
)
from burn.ops.op import Context, Tag, op
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Meta,
    OptionalFloat,
    Primitive,
    Role,
)
from burn.ops.table import OpTable

Nonlinearity: TypeAlias = Annotated[Literal["tanh", "relu"], Role.CHOICE]

_RNN_GATES, _LSTM_GATES = 1, 4


@op(Tag.COMPUTE_BOUND, outputs=("output", "last_h"))
def rnn(
    x: FloatOperand,
    h: FloatOperand,
    weight_ih: FloatOperand,
    weight_hh: FloatOperand,
    bias_ih: OptionalFloat,
    bias_hh: OptionalFloat,
    *,
    nonlinearity: Nonlinearity,
    reverse: Flag = False,
) -> tuple[Meta, Meta]:
    """``h = tanh(x[t] @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)`` for each step t.

    Shapes are (T, N, I) of `x`, (N, H) of `h`, (H, I) and (H, H) of the weights, and (H,) of the
    biases. The outputs are the hidden states after each step, (T, N, H), and after the last
    (Elman, 1990). `reverse` takes the steps from the last to the first.
    """
    shape = recurrent_shape(_RNN_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    return Meta(shape.output, x.dtype), Meta(shape.state, x.dtype)


@rnn.requirement
def check_nonlinearity(*, nonlinearity: str, **flags: bool) -> None:
    """Raise ArgumentError unless there is such a nonlinearity."""
    check_choice("nonlinearity", nonlinearity, rnn.attributes["nonlinearity"].choices)


@rnn.decomposition
@in_float32
def _(
    ops: OpTable, *operands: Any, nonlinearity: str, reverse: bool = False
) -> tuple[Primitive, Primitive]:
    hidden = _rnn_states(ops, *operands, nonlinearity=nonlinearity, reverse=reverse)
    return stacked(ops, hidden[1:], reverse=reverse), hidden[-1]


def _rnn_states(
    ops: OpTable,
    x: Primitive,
    h: Primitive,
    weight_ih: Primitive,
    weight_hh: Primitive,
    bias_ih: Primitive | None,
    bias_hh: Primitive | None,
    *,
    nonlinearity: str,
    reverse: bool,
) -> list[Primitive]:
    """The hidden states before and after all steps, in the order of the steps."""
    shape = recurrent_shape(_RNN_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    inputs = ops.linear(x, weight_ih, total_bias(ops, bias_ih, bias_hh), transposed=True)
    hidden = [h]
    for step in ordered_steps(shape.steps, reverse=reverse):
        h = ops.add(at_step(ops, inputs, step), ops.linear(h, weight_hh, None, transposed=True))
        h = ops.tanh(h) if nonlinearity == "tanh" else ops.relu(h)
        hidden.append(h)
    return hidden


_RNN_OPERANDS = ("x", "h", "weight_ih", "weight_hh", "bias_ih", "bias_hh")


@rnn.gradient(saves=_RNN_OPERANDS)
def _(ops: OpTable, ctx: Context, g: Cotangent | None, g_h: Cotangent | None) -> Gradients:
    *gradients, to_bias = ops.rnn_grad(*ctx.saved, g, g_h, **ctx.attrs, needs_x=ctx.needs[0])
    return needed((*gradients, to_bias, to_bias), ctx.needs)


rnn.batching(merging(x=1, h=0, outputs=(1, 0)))


@rnn.cost
def _(
    outputs: Any, x: Meta, h: Meta, weight_ih: Meta, weight_hh: Meta, *biases: Any, **_: Any
) -> int:
    return recurrent_flops(x, weight_ih, weight_hh, 1, 1)


@op(
    Tag.COMPUTE_BOUND,
    outputs=(
        "x_gradient",
        "h_gradient",
        "weight_ih_gradient",
        "weight_hh_gradient",
        "bias_gradient",
    ),
)
def rnn_grad(
    x: FloatOperand,
    h: FloatOperand,
    weight_ih: FloatOperand,
    weight_hh: FloatOperand,
    bias_ih: OptionalFloat,
    bias_hh: OptionalFloat,
    g: OptionalFloat,
    g_h: OptionalFloat,
    *,
    nonlinearity: Nonlinearity,
    reverse: Flag = False,
    needs_x: Flag = True,
) -> tuple[Meta, ...]:
    """Gradients of `rnn` by its operands, from those by its outputs, of which each may be None.

    Both biases have the same one. Unless `needs_x`, that by `x` is 0.
    """
    shape = recurrent_shape(_RNN_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    check_recurrent_gradients(shape, g, g_h=g_h)
    return x, h, weight_ih, weight_hh, Meta(weight_ih.shape[:1], x.dtype)


rnn_grad.requirement(check_nonlinearity)


@rnn_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    h: Primitive,
    weight_ih: Primitive,
    weight_hh: Primitive,
    bias_ih: Primitive | None,
    bias_hh: Primitive | None,
    g: Primitive | None,
    g_h: Primitive | None,
    *,
    nonlinearity: str,
    reverse: bool = False,
    needs_x: bool = True,
) -> tuple[Primitive, ...]:
    shape = recurrent_shape(_RNN_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    check_recurrent_gradients(shape, g, g_h=g_h)
    operands = (x, h, weight_ih, weight_hh, bias_ih, bias_hh)
    hidden = _rnn_states(ops, *operands, nonlinearity=nonlinearity, reverse=reverse)
    output = stacked(ops, hidden[1:], reverse=reverse)
    if nonlinearity == "tanh":
        slopes = slope_of_tanh(ops, output)
    else:
        slopes = ops.cast(ops.greater(output, 0.0), dtype=ops.dtype(x))
    to_h = or_zeros(ops, g_h, h)
    to_sums = []
    for step in reversed(ordered_steps(shape.steps, reverse=reverse)):
        if g is not None:
            to_h = ops.add(at_step(ops, g, step), to_h)
        to_sums.append(ops.multiply(to_h, at_step(ops, slopes, step)))
        to_h = ops.linear(to_sums[-1], weight_hh, None)
    to_sum = stacked(ops, to_sums, reverse=not reverse)
    return (
        input_gradient(ops, to_sum, x, weight_ih, needs_x=needs_x),
        to_h,
        weight_gradient(ops, to_sum, x),
        weight_gradient(ops, to_sum, stacked(ops, hidden[:-1], reverse=reverse)),
        bias_gradient(ops, to_sum),
    )


@rnn_grad.cost
def _(
    outputs: Any,
    x: Meta,
    h: Meta,
    weight_ih: Meta,
    weight_hh: Meta,
    *operands: Any,
    needs_x: bool = True,
    **_: Any,
) -> int:
    # The states again, and gradients by weights, states and inputs.
    return recurrent_flops(x, weight_ih, weight_hh, 2 + needs_x, 3)


@op(Tag.COMPUTE_BOUND, outputs=("output", "last_h", "last_c"))
def lstm(
    x: FloatOperand,
    h: FloatOperand,
    c: FloatOperand,
    weight_ih: FloatOperand,
    weight_hh: FloatOperand,
    bias_ih: OptionalFloat,
    bias_hh: OptionalFloat,
    *,
    reverse: Flag = False,
) -> tuple[Meta, Meta, Meta]:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; Gers et al., 2000).

    In each step t, with ``i, f, k, o`` the parts of ``x[t] @ weight_ih.T + bias_ih +
    h @ weight_hh.T + bias_hh``: ``c = sigmoid(f) * c + sigmoid(i) * tanh(k)`` and
    ``h = sigmoid(o) * tanh(c)``. Shapes are (T, N, I) of `x`, (N, H) of `h` and `c`, (4 H, I) and
    (4 H, H) of the weights, and (4 H,) of the biases. The outputs are h after each step,
    (T, N, H), and h and c after the last. `reverse` takes the steps from the last to the first.
    """
    biases = bias_ih, bias_hh
    shape = recurrent_shape(_LSTM_GATES, x, weight_ih, weight_hh, biases, h=h, c=c)
    state = Meta(shape.state, x.dtype)
    return Meta(shape.output, x.dtype), state, state


@lstm.decomposition
@in_float32
def _(
    ops: OpTable, *operands: Any, reverse: bool = False
) -> tuple[Primitive, Primitive, Primitive]:
    _, hidden, cells = _lstm_states(ops, *operands, reverse=reverse)
    return stacked(ops, hidden[1:], reverse=reverse), hidden[-1], cells[-1]


def _lstm_states(
    ops: OpTable,
    x: Primitive,
    h: Primitive,
    c: Primitive,
    weight_ih: Primitive,
    weight_hh: Primitive,
    bias_ih: Primitive | None,
    bias_hh: Primitive | None,
    *,
    reverse: bool,
) -> tuple[list[Primitive], list[Primitive], list[Primitive]]:
    """Sums of the gates in all steps, and both states before and after them, in their order."""
    biases = bias_ih, bias_hh
    shape = recurrent_shape(_LSTM_GATES, x, weight_ih, weight_hh, biases, h=h, c=c)
    inputs = ops.linear(x, weight_ih, total_bias(ops, *biases), transposed=True)
    sums, hidden, cells = [], [h], [c]
    for step in ordered_steps(shape.steps, reverse=reverse):
        both = ops.add(at_step(ops, inputs, step), ops.linear(h, weight_hh, None, transposed=True))
        admit, keep, change, show = _lstm_gates(ops, both, shape.hidden)
        c = ops.add(ops.multiply(keep, c), ops.multiply(admit, change))
        h = ops.multiply(show, ops.tanh(c))
        sums.append(both)
        hidden.append(h)
        cells.append(c)
    return sums, hidden, cells


def _lstm_gates(
    ops: OpTable, sums: Primitive, hidden: int
) -> tuple[Primitive, Primitive, Primitive, Primitive]:
    """The input and forget gates, the candidate of the cell, and the output gate."""
    gates = ops.sigmoid(sums)
    candidate = ops.tanh(gate(ops, sums, 2, hidden))
    admit, keep, show = (gate(ops, gates, index, hidden) for index in (0, 1, 3))
    return admit, keep, candidate, show


@lstm.gradient(saves=("x", "h", "c", "weight_ih", "weight_hh", "bias_ih", "bias_hh"))
def _(
    ops: OpTable,
    ctx: Context,
    g: Cotangent | None,
    g_h: Cotangent | None,
    g_c: Cotangent | None,
) -> Gradients:
    *gradients, to_bias = ops.lstm_grad(*ctx.saved, g, g_h, g_c, **ctx.attrs, needs_x=ctx.needs[0])
    return needed((*gradients, to_bias, to_bias), ctx.needs)


lstm.batching(merging(x=1, h=0, c=0, outputs=(1, 0, 0)))


@lstm.cost
def _(
    outputs: Any,
    x: Meta,
    h: Meta,
    c: Meta,
    weight_ih: Meta,
    weight_hh: Meta,
    *biases: Any,
    **_: Any,
) -> int:
    return recurrent_flops(x, weight_ih, weight_hh, 1, 1)


@op(
    Tag.COMPUTE_BOUND,
    outputs=(
        "x_gradient",
        "h_gradient",
        "c_gradient",
        "weight_ih_gradient",
        "weight_hh_gradient",
        "bias_gradient",
    ),
)
def lstm_grad(
    x: FloatOperand,
    h: FloatOperand,
    c: FloatOperand,
    weight_ih: FloatOperand,
    weight_hh: FloatOperand,
    bias_ih: OptionalFloat,
    bias_hh: OptionalFloat,
    g: OptionalFloat,
    g_h: OptionalFloat,
    g_c: OptionalFloat,
    *,
    reverse: Flag = False,
    needs_x: Flag = True,
) -> tuple[Meta, ...]:
    """Gradients of `lstm` by its operands, from those by its outputs, of which each may be None.

    Both biases have the same one. Unless `needs_x`, that by `x` is 0.
    """
    biases = bias_ih, bias_hh
    shape = recurrent_shape(_LSTM_GATES, x, weight_ih, weight_hh, biases, h=h, c=c)
    check_recurrent_gradients(shape, g, g_h=g_h, g_c=g_c)
    return x, h, c, weight_ih, weight_hh, Meta(weight_ih.shape[:1], x.dtype)


@lstm_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    h: Primitive,
    c: Primitive,
    weight_ih: Primitive,
    weight_hh: Primitive,
    bias_ih: Primitive | None,
    bias_hh: Primitive | None,
    g: Primitive | None,
    g_h: Primitive | None,
    g_c: Primitive | None,
    *,
    reverse: bool = False,
    needs_x: bool = True,
) -> tuple[Primitive, ...]:
    biases = bias_ih, bias_hh
    shape = recurrent_shape(_LSTM_GATES, x, weight_ih, weight_hh, biases, h=h, c=c)
    check_recurrent_gradients(shape, g, g_h=g_h, g_c=g_c)
    sums, hidden, cells = _lstm_states(ops, x, h, c, weight_ih, weight_hh, *biases, reverse=reverse)
    gates = _lstm_gates(ops, stacked(ops, sums, reverse=reverse), shape.hidden)
    admit, keep, candidate, show = gates
    before = stacked(ops, cells[:-1], reverse=reverse)
    shown = ops.tanh(stacked(ops, cells[1:], reverse=reverse))
    slopes = ops.concat(
        [
            ops.multiply(candidate, slope_of_sigmoid(ops, admit)),
            ops.multiply(before, slope_of_sigmoid(ops, keep)),
            ops.multiply(admit, slope_of_tanh(ops, candidate)),
            ops.multiply(shown, slope_of_sigmoid(ops, show)),
        ],
        axis=2,
    )
    cell_slopes = ops.multiply(show, slope_of_tanh(ops, shown))
    to_h, to_c = or_zeros(ops, g_h, h), or_zeros(ops, g_c, c)
    to_sums = []
    for step in reversed(ordered_steps(shape.steps, reverse=reverse)):
        if g is not None:
            to_h = ops.add(at_step(ops, g, step), to_h)
        to_c = ops.add(to_c, ops.multiply(to_h, at_step(ops, cell_slopes, step)))
        reaching = ops.concat([to_c, to_c, to_c, to_h], axis=1)
        to_sums.append(ops.multiply(reaching, at_step(ops, slopes, step)))
        to_h = ops.linear(to_sums[-1], weight_hh, None)
        to_c = ops.multiply(to_c, at_step(ops, keep, step))
    to_sum = stacked(ops, to_sums, reverse=not reverse)
    return (
        input_gradient(ops, to_sum, x, weight_ih, needs_x=needs_x),
        to_h,
        to_c,
        weight_gradient(ops, to_sum, x),
        weight_gradient(ops, to_sum, stacked(ops, hidden[:-1], reverse=reverse)),
        bias_gradient(ops, to_sum),
    )


@lstm_grad.cost
def _(
    outputs: Any,
    x: Meta,
    h: Meta,
    c: Meta,
    weight_ih: Meta,
    weight_hh: Meta,
    *operands: Any,
    needs_x: bool = True,
    **_: Any,
) -> int:
    return recurrent_flops(x, weight_ih, weight_hh, 2 + needs_x, 3)
