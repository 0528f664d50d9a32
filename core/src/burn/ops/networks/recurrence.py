"""Walks through time that the recurrent ops share: shapes, steps, and gradients of weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from burn.errors import ShapeError
from burn.ops.arrays.indexing import check_same_shape
from burn.ops.index_arithmetic import narrow
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.shapes import size
from burn.ops.signature import Meta, Primitive, Shape
from burn.ops.table import OpTable


class RecurrentShape(NamedTuple):
    """The lengths in a call of a recurrent op."""

    steps: int
    examples: int
    hidden: int

    @property
    def output(self) -> Shape:
        """Shape of the hidden states of all steps."""
        return tuple(self)

    @property
    def state(self) -> Shape:
        """Shape of the state before or after a step."""
        return self.examples, self.hidden


def recurrent_shape(
    gates: int,
    x: Meta | Primitive,
    weight_ih: Meta | Primitive,
    weight_hh: Meta | Primitive,
    biases: Iterable[Meta | Primitive | None],
    **states: Meta | Primitive,
) -> RecurrentShape:
    """The lengths in a call of a recurrent op.

    Parameters
    ----------
    gates : int
        Number of values that are computed for each hidden one: 4 of an LSTM, 3 of a GRU.
    x, weight_ih, weight_hh, biases
        Operands of the op.
    **states
        The states before the first step.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or there is no step.
    """
    shape, matrix = tuple(x.shape), tuple(weight_hh.shape)
    if len(shape) != 3 or not shape[0]:
        raise ShapeError(
            f"x has shape {shape}", hint="Its shape is (T, N, features), with one step or more"
        )
    if len(matrix) != 2 or matrix[0] != gates * matrix[1]:
        raise ShapeError(
            f"weight_hh has shape {matrix}",
            hint=f"Its shape is ({gates} * hidden, hidden)" if gates > 1 else "It is square",
        )
    steps, examples, features = shape
    rows, hidden = matrix
    expected: dict[str, tuple[Any, Shape]] = {"weight_ih": (weight_ih, (rows, features))}
    expected |= {name: (state, (examples, hidden)) for name, state in states.items()}
    expected |= {
        name: (bias, (rows,))
        for name, bias in zip(("bias_ih", "bias_hh"), biases, strict=True)
        if bias is not None
    }
    for name, (operand, wanted) in expected.items():
        if tuple(operand.shape) != wanted:
            raise ShapeError(
                f"{name} has shape {tuple(operand.shape)} where {wanted} is needed",
                hint=f"That fits x of shape {shape} and weight_hh of shape {matrix}",
            )
    return RecurrentShape(steps, examples, hidden)


def check_recurrent_gradients(
    shape: RecurrentShape, g: Meta | Primitive | None, **states: Meta | Primitive | None
) -> None:
    """Raise ShapeError unless gradients have the shapes of the outputs that they are by."""
    if g is not None:
        check_same_shape("g", tuple(g.shape), shape.output)
    for name, state in states.items():
        if state is not None:
            check_same_shape(name, tuple(state.shape), shape.state)


def ordered_steps(steps: int, *, reverse: bool) -> range:
    """Indices of the steps, in the order in which a layer takes them."""
    return range(steps - 1, -1, -1) if reverse else range(steps)


def at_step(ops: OpTable, x: Primitive, step: int) -> Primitive:
    """The values of one step."""
    return ops.reshape(narrow(ops, x, 0, step, 1), shape=tuple(x.shape[1:]))


def stacked(ops: OpTable, values: Sequence[Primitive], *, reverse: bool) -> Primitive:
    """Values of all steps as one tensor; `reverse` if the first is that of the last step."""
    rows = [ops.reshape(value, shape=(1, *value.shape)) for value in values]
    return ops.concat(rows[::-1] if reverse else rows, axis=0)


def gate(ops: OpTable, x: Primitive, index: int, hidden: int, count: int = 1) -> Primitive:
    """The part of a gate, or of several, along the last axis."""
    return narrow(ops, x, len(x.shape) - 1, index * hidden, count * hidden)


def total_bias(
    ops: OpTable, bias_ih: Primitive | None, bias_hh: Primitive | None
) -> Primitive | None:
    """The sum of two biases, of which either may be None."""
    if bias_ih is None or bias_hh is None:
        return bias_hh if bias_ih is None else bias_ih
    return ops.add(bias_ih, bias_hh)


def slope_of_tanh(ops: OpTable, value: Primitive) -> Primitive:
    """Derivative of tanh, by its value."""
    return ops.subtract(1.0, ops.multiply(value, value))


def slope_of_sigmoid(ops: OpTable, value: Primitive) -> Primitive:
    """Derivative of the sigmoid, by its value."""
    return ops.multiply(value, ops.subtract(1.0, value))


def zeros(ops: OpTable, shape: Shape, like: Primitive) -> Primitive:
    """Zeros that take the memory of one."""
    zero = ops.full(shape=(), fill_value=0.0, dtype=ops.dtype(like))
    return ops.expand(zero, shape=tuple(shape))


def or_zeros(ops: OpTable, g: Primitive | None, like: Primitive) -> Primitive:
    """A gradient, or zeros where there is none."""
    return zeros(ops, like.shape, like) if g is None else g


def input_gradient(
    ops: OpTable, gradient: Primitive, x: Primitive, weight_ih: Primitive, *, needs_x: bool
) -> Primitive:
    """Gradient by `x`, from that by what `weight_ih` makes of it; zeros unless it is needed."""
    if not needs_x:
        return zeros(ops, x.shape, x)
    return ops.linear(gradient, weight_ih, None)


def weight_gradient(ops: OpTable, gradient: Primitive, x: Primitive) -> Primitive:
    """Gradient by the weight that makes `gradient`'s values of `x`, summed over all steps."""
    return ops.matmul(transpose_matrices(ops, _rows(ops, gradient)), _rows(ops, x))


def bias_gradient(ops: OpTable, gradient: Primitive) -> Primitive:
    """Gradient by a bias: the sum over all steps and examples."""
    return ops.sum(gradient, axis=(0, 1), dtype=ops.dtype(gradient))


def needed(gradients: tuple[Any, ...], needs: Sequence[bool]) -> tuple[Any, ...]:
    """The gradients that are required, and None for the others."""
    return tuple(
        [gradient if need else None for gradient, need in zip(gradients, needs, strict=True)]
    )


def recurrent_flops(x: Meta, weight_ih: Meta, weight_hh: Meta, inputs: int, hidden: int) -> int:
    """Operations of so many products with each weight; elementwise ones are not counted."""
    products = inputs * size(weight_ih.shape) + hidden * size(weight_hh.shape)
    return 2 * size(x.shape[:2]) * products


def _rows(ops: OpTable, x: Primitive) -> Primitive:
    return ops.reshape(x, shape=(size(x.shape[:-1]), x.shape[-1]))
