"""Gated recurrent units: a whole sequence in one op, as in `burn.ops.networks.recurrent`."""

from __future__ import annotations

from typing import Any, NamedTuple

from burn.ops._precision import in_float32
from burn.ops.batching import merging
from burn.ops.index_arithmetic import narrow
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
)
from burn.ops.table import OpTable

_GATES = 3


@op(Tag.COMPUTE_BOUND, outputs=("output", "last_h"))
def gru(
    x: FloatOperand,
    h: FloatOperand,
    weight_ih: FloatOperand,
    weight_hh: FloatOperand,
    bias_ih: OptionalFloat,
    bias_hh: OptionalFloat,
    *,
    reset_after: Flag = True,
    reverse: Flag = False,
) -> tuple[Meta, Meta]:
    """Gated recurrent unit (Cho et al., 2014, arXiv:1406.1078), with PyTorch's order of gates.

    In each step t, with the parts ``r, z, n`` of ``a = x[t] @ weight_ih.T + bias_ih`` and of
    ``b = h @ weight_hh.T + bias_hh``: ``r = sigmoid(a_r + b_r)``, ``z = sigmoid(a_z + b_z)``,
    ``n = tanh(a_n + r * b_n)``, and ``h = (1 - z) * n + z * h``. Unless `reset_after`, the reset
    gate comes before the product: ``n = tanh(a_n + (r * h) @ W_hn.T + b_hn)``. Shapes are
    (T, N, I) of `x`, (N, H) of `h`, (3 H, I) and (3 H, H) of the weights, and (3 H,) of the biases.
    The outputs are h after each step, (T, N, H), and after the last. `reverse` takes the steps from
    the last to the first.
    """
    shape = recurrent_shape(_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    return Meta(shape.output, x.dtype), Meta(shape.state, x.dtype)


@gru.decomposition
@in_float32
def _(
    ops: OpTable, *operands: Any, reset_after: bool = True, reverse: bool = False
) -> tuple[Primitive, Primitive]:
    steps = _steps(ops, *operands, reset_after=reset_after, reverse=reverse)
    hidden = [step.after for step in steps]
    return stacked(ops, hidden, reverse=reverse), hidden[-1]


class _Step(NamedTuple):
    """What a step computes."""

    before: Primitive
    """The hidden state before it."""

    gates: Primitive
    """The reset and update gates, side by side."""

    product: Primitive
    """What the product of the hidden state adds to the candidate, without the reset gate."""

    candidate: Primitive
    after: Primitive


def _steps(
    ops: OpTable,
    x: Primitive,
    h: Primitive,
    weight_ih: Primitive,
    weight_hh: Primitive,
    bias_ih: Primitive | None,
    bias_hh: Primitive | None,
    *,
    reset_after: bool,
    reverse: bool,
) -> list[_Step]:
    """All steps, in their order."""
    shape = recurrent_shape(_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    length = shape.hidden
    inputs = ops.linear(x, weight_ih, bias_ih, transposed=True)
    for_gates = _rows(ops, weight_hh, bias_hh, 0, 2 * length)
    for_candidate = _rows(ops, weight_hh, bias_hh, 2 * length, length)
    steps: list[_Step] = []
    for step in ordered_steps(shape.steps, reverse=reverse):
        given = at_step(ops, inputs, step)
        before = h
        if reset_after:
            made = ops.linear(before, weight_hh, bias_hh, transposed=True)
            gate_sums, product = gate(ops, made, 0, length, 2), gate(ops, made, 2, length)
        else:
            gate_sums = ops.linear(before, *for_gates, transposed=True)
        gates = ops.sigmoid(ops.add(gate(ops, given, 0, length, 2), gate_sums))
        reset, update = gate(ops, gates, 0, length), gate(ops, gates, 1, length)
        if reset_after:
            added = ops.multiply(reset, product)
        else:
            added = ops.linear(ops.multiply(reset, before), *for_candidate, transposed=True)
            product = added
        candidate = ops.tanh(ops.add(gate(ops, given, 2, length), added))
        h = ops.add(candidate, ops.multiply(update, ops.subtract(before, candidate)))
        steps.append(_Step(before, gates, product, candidate, h))
    return steps


def _rows(
    ops: OpTable, weight: Primitive, bias: Primitive | None, start: int, length: int
) -> tuple[Primitive, Primitive | None]:
    """Rows of a weight, and the elements of a bias that belong to them."""
    part = None if bias is None else narrow(ops, bias, 0, start, length)
    return narrow(ops, weight, 0, start, length), part


@gru.gradient(saves=("x", "h", "weight_ih", "weight_hh", "bias_ih", "bias_hh"))
def _(ops: OpTable, ctx: Context, g: Cotangent | None, g_h: Cotangent | None) -> Gradients:
    gradients = ops.gru_grad(*ctx.saved, g, g_h, **ctx.attrs, needs_x=ctx.needs[0])
    return needed(gradients, ctx.needs)


gru.batching(merging(x=1, h=0, outputs=(1, 0)))


@gru.cost
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
        "bias_ih_gradient",
        "bias_hh_gradient",
    ),
)
def gru_grad(
    x: FloatOperand,
    h: FloatOperand,
    weight_ih: FloatOperand,
    weight_hh: FloatOperand,
    bias_ih: OptionalFloat,
    bias_hh: OptionalFloat,
    g: OptionalFloat,
    g_h: OptionalFloat,
    *,
    reset_after: Flag = True,
    reverse: Flag = False,
    needs_x: Flag = True,
) -> tuple[Meta, ...]:
    """Gradients of `gru` by its operands, from those by its outputs, of which each may be None.

    Those by biases are also computed where there are none. Unless `needs_x`, that by `x` is 0.
    """
    shape = recurrent_shape(_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    check_recurrent_gradients(shape, g, g_h=g_h)
    bias = Meta(weight_ih.shape[:1], x.dtype)
    return x, h, weight_ih, weight_hh, bias, bias


@gru_grad.decomposition
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
    reset_after: bool = True,
    reverse: bool = False,
    needs_x: bool = True,
) -> tuple[Primitive, ...]:
    shape = recurrent_shape(_GATES, x, weight_ih, weight_hh, (bias_ih, bias_hh), h=h)
    check_recurrent_gradients(shape, g, g_h=g_h)
    length = shape.hidden
    operands = (x, h, weight_ih, weight_hh, bias_ih, bias_hh)
    steps = _steps(ops, *operands, reset_after=reset_after, reverse=reverse)
    before, gates, product, candidate, _ = (
        stacked(ops, values, reverse=reverse) for values in zip(*steps, strict=True)
    )
    reset, update = gate(ops, gates, 0, length), gate(ops, gates, 1, length)
    # What reaches the sums of the update gate and of the candidate, by what reaches the state.
    update_slopes = ops.multiply(ops.subtract(before, candidate), slope_of_sigmoid(ops, update))
    slopes = ops.multiply(ops.subtract(1.0, update), slope_of_tanh(ops, candidate))
    reset_slopes = ops.multiply(product if reset_after else before, slope_of_sigmoid(ops, reset))
    if reset_after:
        reset_slopes = ops.multiply(reset_slopes, slopes)
        slopes = ops.concat([reset_slopes, update_slopes, ops.multiply(slopes, reset)], axis=2)
    gate_weight, candidate_weight = (
        narrow(ops, weight_hh, 0, start, count)
        for start, count in ((0, 2 * length), (2 * length, length))
    )
    to_h = or_zeros(ops, g_h, h)
    reaching, to_products = [], []
    for step in reversed(ordered_steps(shape.steps, reverse=reverse)):
        if g is not None:
            to_h = ops.add(at_step(ops, g, step), to_h)
        reaching.append(to_h)
        slope = at_step(ops, slopes, step)
        kept = ops.multiply(to_h, at_step(ops, update, step))
        if reset_after:
            to_products.append(ops.multiply(ops.concat([to_h, to_h, to_h], axis=1), slope))
            to_h = ops.add(kept, ops.linear(to_products[-1], weight_hh, None))
            continue
        to_candidate = ops.multiply(to_h, slope)
        to_reset_state = ops.linear(to_candidate, candidate_weight, None)
        to_gates = ops.concat(
            [
                ops.multiply(to_reset_state, at_step(ops, reset_slopes, step)),
                ops.multiply(to_h, at_step(ops, update_slopes, step)),
            ],
            axis=1,
        )
        to_products.append(ops.concat([to_gates, to_candidate], axis=1))
        kept = ops.add(kept, ops.multiply(to_reset_state, at_step(ops, reset, step)))
        to_h = ops.add(kept, ops.linear(to_gates, gate_weight, None))
    to_product = stacked(ops, to_products, reverse=not reverse)
    if reset_after:
        to_state = stacked(ops, reaching, reverse=not reverse)
        to_gates = gate(ops, to_product, 0, length, 2)
        by_candidate = ops.multiply(
            ops.multiply(to_state, ops.subtract(1.0, update)), slope_of_tanh(ops, candidate)
        )
        to_input = ops.concat([to_gates, by_candidate], axis=2)
        to_weight_hh = weight_gradient(ops, to_product, before)
    else:
        to_input = to_product
        to_weight_hh = ops.concat(
            [
                weight_gradient(ops, gate(ops, to_product, 0, length, 2), before),
                weight_gradient(ops, gate(ops, to_product, 2, length), ops.multiply(reset, before)),
            ],
            axis=0,
        )
    return (
        input_gradient(ops, to_input, x, weight_ih, needs_x=needs_x),
        to_h,
        weight_gradient(ops, to_input, x),
        to_weight_hh,
        bias_gradient(ops, to_input),
        bias_gradient(ops, to_product),
    )


@gru_grad.cost
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
    return recurrent_flops(x, weight_ih, weight_hh, 2 + needs_x, 3)
