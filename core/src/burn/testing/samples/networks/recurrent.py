"""Samples of recurrent layers, and what those of all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from burn.errors import ArgumentError, BurnError, ShapeError
from burn.testing.arrays import floats, matrix_transposed, reversed_view, strided, transposed
from burn.testing.op_samples import Array, ErrorSample, Sample, error, reference, sample

__all__ = ["Layer"]

_IMAGINARY_STEP: Final = 1e-60


class Layer(NamedTuple):
    """A kind of recurrent layer.

    Attributes
    ----------
    function : callable
        The op: the states after each step, and after the last. It works on complex numbers too.
    gates : int
        Number of values that are computed for each hidden one.
    states : int
        Number of states.
    """

    function: Callable[..., tuple[Array, ...]]
    gates: int
    states: int

    def operands(
        self,
        steps: int,
        examples: int,
        features: int,
        hidden: int,
        biased: Sequence[bool] = (True, True),
    ) -> list[Any]:
        """Operands of a call, with or without each of the biases."""
        rows = self.gates * hidden
        return [
            floats(steps, examples, features),
            *[floats(examples, hidden, phase=0.1 * state) for state in range(self.states)],
            floats(rows, features, low=-1.0, high=1.0, phase=0.5),
            floats(rows, hidden, low=-1.0, high=1.0, phase=0.6),
            *[
                floats(rows, phase=0.7 + 0.1 * index) if is_biased else None
                for index, is_biased in enumerate(biased)
            ],
        ]

    def calls(self, **attributes: Any) -> dict[str, tuple[list[Any], dict[str, Any]]]:
        """Operands and attributes of calls that work, by what is special about them."""
        several = self.operands(3, 2, 3, 2)
        layouts = self.operands(2, 2, 3, 2)
        layouts[0] = transposed(layouts[0])
        layouts[1] = strided(layouts[1])
        layouts[-4] = matrix_transposed(layouts[-4])
        layouts[-3:] = [reversed_view(operand) for operand in layouts[-3:]]
        saturated = [several[0] * 300.0, *several[1:]]
        operands = {
            "one step": self.operands(1, 2, 3, 2),
            "several steps": several,
            "without biases": self.operands(2, 2, 3, 2, (False, False)),
            "without the first bias": self.operands(2, 2, 3, 2, (False, True)),
            "without the second bias": self.operands(2, 2, 3, 2, (True, False)),
            "one example of one feature": self.operands(3, 1, 1, 1),
            "layouts": layouts,
            "large features": saturated,
            "no examples": self.operands(2, 0, 3, 2),
            "no features": self.operands(2, 2, 0, 3),
            "no hidden values": self.operands(2, 2, 3, 0),
        }
        calls = {note: (values, attributes) for note, values in operands.items()}
        backwards = {**attributes, "reverse": True}
        calls["reverse"] = several, backwards
        calls["one step of reverse"] = self.operands(1, 2, 2, 2, (False, False)), backwards
        return calls

    def gradient_calls(self, **attributes: Any) -> dict[str, tuple[list[Any], dict[str, Any]]]:
        """The same of the gradient."""
        calls = {
            note: ([*operands, *self.cotangents(operands)], attrs)
            for note, (operands, attrs) in self.calls(**attributes).items()
        }
        operands, attrs = calls["several steps"]
        first, count = len(operands) - self.states - 1, self.states
        calls["by the output alone"] = [*operands[: first + 1], *[None] * count], attrs
        calls["by the last states alone"] = [*operands[:first], None, *operands[-count:]], attrs
        calls["by the first state alone"] = (
            [*operands[:first], None, operands[first + 1], *[None] * (count - 1)],
            attrs,
        )
        calls["x needs no gradient"] = operands, {**attrs, "needs_x": False}
        return calls

    def cotangents(self, operands: Sequence[Any]) -> list[Array]:
        """Gradients by the outputs."""
        steps, state = len(operands[0]), operands[1].shape
        return [
            floats(steps, *state, phase=0.2),
            *[floats(*state, phase=0.25 + 0.1 * number) for number in range(self.states)],
        ]

    def errors(self, *, with_gradient: bool, **attributes: Any) -> list[ErrorSample]:
        """Calls that must be refused."""
        operands = self.operands(3, 2, 3, 2)
        extra = self.cotangents(operands) if with_gradient else []
        found = []

        def refuse(note: str, index: int, *shape: int) -> None:
            wrong = [*operands, *extra]
            wrong[index] = floats(*shape)
            found.append(error(note, ShapeError, *wrong, **attributes))

        rows, states = self.gates * 2, self.states
        refuse("x without examples", 0, 3, 3)
        refuse("no steps", 0, 0, 2, 3)
        refuse("x of other features", 0, 3, 2, 4)
        for state in range(states):
            refuse(f"state {state} of other examples", 1 + state, 3, 2)
            refuse(f"state {state} of other length", 1 + state, 2, 3)
        refuse("weight_ih of other rows", 1 + states, rows + 1, 3)
        refuse("weight_hh of other rows", 2 + states, rows + 1, 2)
        refuse("weight_hh of other columns", 2 + states, rows, 3)
        refuse("weight_hh is a vector", 2 + states, rows)
        refuse("bias_ih of other length", 3 + states, rows + 1)
        refuse("bias_hh of other length", 4 + states, 1)
        if with_gradient:
            refuse("g of fewer steps", 5 + states, 2, 2, 2)
            for state in range(states):
                refuse(f"gradient of state {state} with other length", 6 + state + states, 2, 1)
        return found

    def gradients(self, *operands: Any, needs_x: bool, **attributes: Any) -> list[Array]:
        """Gradients by each operand, by complex steps (Squire and Trapp, 1998)."""
        count = 5 + self.states
        values, cotangents = list(operands[:count]), operands[count:]
        rows = values[-4].shape[:1]
        values[-2:] = [np.zeros(rows) if bias is None else bias for bias in values[-2:]]
        found = []
        for position, value in enumerate(values):
            gradient = np.zeros(value.shape)
            for index in np.ndindex(value.shape) if position or needs_x else ():
                moved = value.astype(complex)
                moved[index] += 1j * _IMAGINARY_STEP
                outputs = self.function(
                    *values[:position], moved, *values[position + 1 :], **attributes
                )
                gradient[index] = sum(
                    float(np.sum(output.imag * g)) / _IMAGINARY_STEP
                    for output, g in zip(outputs, cotangents, strict=True)
                    if g is not None
                )
            found.append(gradient)
        return found

    def terms(self, *operands: Any, **attributes: Any) -> tuple[int, float]:
        """How many terms are added up, and a bound of their magnitudes, in all steps together."""
        count = 5 + self.states
        attributes.pop("needs_x", None)
        output, *_ = self.function(*operands[:count], **attributes)
        x, weight_ih, weight_hh = operands[0], operands[1 + self.states], operands[2 + self.states]
        features, hidden, steps = x.shape[2], weight_hh.shape[1], x.shape[0]
        state = max(1.0, largest(output), largest(operands[1]))
        sums = features * largest(x) * largest(weight_ih) + hidden * state * largest(weight_hh)
        size = steps * (1.0 + sums + sum(map(largest, operands[count - 2 : count])))
        terms = features + hidden
        if operands[count:]:
            rows, examples = weight_ih.shape[0], x.shape[1]
            size *= sum(map(largest, operands[count:])) * max(state, largest(x))
            terms += rows + steps * examples
        return terms, size


def largest(operand: Array | None) -> float:
    """Largest magnitude."""
    return 0.0 if operand is None else float(np.abs(operand).max(initial=0.0))


def samples_of(calls: Mapping[str, tuple[list[Any], dict[str, Any]]]) -> list[Sample]:
    """A sample of each call."""
    return [sample(note, *operands, **attrs) for note, (operands, attrs) in calls.items()]


def sigmoid(x: Array) -> Array:
    """Without overflow, also of complex numbers."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def sums_of(x: Array, weight: Array, bias: Array | None) -> Array:
    """``x @ weight.T + bias``."""
    total = x @ weight.T
    return np.asarray(total if bias is None else total + bias)


def in_order(x: Array, *, reverse: bool) -> range:
    """Indices of the steps."""
    return range(len(x))[:: -1 if reverse else 1]


def _rnn(
    x: Array,
    h: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    *,
    nonlinearity: str,
    reverse: bool = False,
) -> tuple[Array, ...]:
    result: dict[int, Array] = {}
    for step in in_order(x, reverse=reverse):
        total = sums_of(x[step], weight_ih, bias_ih) + sums_of(h, weight_hh, bias_hh)
        h = np.tanh(total) if nonlinearity == "tanh" else np.where(total.real < 0, 0.0, total)
        result[step] = h
    return np.stack([result[step] for step in range(len(x))]), h


def _lstm(
    x: Array,
    h: Array,
    c: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    *,
    reverse: bool = False,
) -> tuple[Array, ...]:
    result: dict[int, Array] = {}
    for step in in_order(x, reverse=reverse):
        total = sums_of(x[step], weight_ih, bias_ih) + sums_of(h, weight_hh, bias_hh)
        i, f, k, o = np.split(total, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(k)
        h = sigmoid(o) * np.tanh(c)
        result[step] = h
    return np.stack([result[step] for step in range(len(x))]), h, c


_RNN: Final = Layer(_rnn, 1, 1)
_LSTM: Final = Layer(_lstm, 4, 2)


def _with_choice(
    calls: Callable[..., dict[str, tuple[list[Any], dict[str, Any]]]],
) -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """Calls with tanh, and one with relu."""
    found = calls(nonlinearity="tanh")
    for note in ("several steps", "reverse"):
        operands, attrs = found[note]
        found[f"{note} with relu"] = operands, {**attrs, "nonlinearity": "relu"}
    return found


def _no_choice(operands: Sequence[Any]) -> ErrorSample:
    expected: type[BurnError] = ArgumentError
    return error("unknown nonlinearity", expected, *operands, nonlinearity="sigmoid")


reference(
    "rnn",
    samples=samples_of(_with_choice(_RNN.calls)),
    errors=[
        *_RNN.errors(with_gradient=False, nonlinearity="tanh"),
        _no_choice(_RNN.operands(3, 2, 3, 2)),
    ],
    terms=_RNN.terms,
)(_rnn)


@reference(
    "rnn_grad",
    samples=samples_of(_with_choice(_RNN.gradient_calls)),
    errors=[
        *_RNN.errors(with_gradient=True, nonlinearity="tanh"),
        _no_choice(_RNN.gradient_calls()["several steps"][0]),
    ],
    terms=_RNN.terms,
)
def _(*operands: Any, needs_x: bool = True, **attributes: Any) -> list[Array]:
    return _RNN.gradients(*operands, needs_x=needs_x, **attributes)[:-1]


reference(
    "lstm",
    samples=samples_of(_LSTM.calls()),
    errors=_LSTM.errors(with_gradient=False),
    terms=_LSTM.terms,
)(_lstm)


@reference(
    "lstm_grad",
    samples=samples_of(_LSTM.gradient_calls()),
    errors=_LSTM.errors(with_gradient=True),
    terms=_LSTM.terms,
)
def _(*operands: Any, needs_x: bool = True, **attributes: Any) -> list[Array]:
    return _LSTM.gradients(*operands, needs_x=needs_x, **attributes)[:-1]
