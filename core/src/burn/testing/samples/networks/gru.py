"""Samples of gated recurrent units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.testing.op_samples import Array, reference
from burn.testing.samples.networks.recurrent import Layer, in_order, samples_of, sigmoid, sums_of


def _gru(
    x: Array,
    h: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None,
    bias_hh: Array | None,
    *,
    reset_after: bool = True,
    reverse: bool = False,
) -> tuple[Array, ...]:
    result: dict[int, Array] = {}
    for step in in_order(x, reverse=reverse):
        a_r, a_z, a_n = np.split(sums_of(x[step], weight_ih, bias_ih), 3, axis=1)
        b_r, b_z, b_n = np.split(sums_of(h, weight_hh, bias_hh), 3, axis=1)
        r, z = sigmoid(a_r + b_r), sigmoid(a_z + b_z)
        if not reset_after:
            b_n = np.split(sums_of(r * h, weight_hh, bias_hh), 3, axis=1)[2]
        h = (1.0 - z) * np.tanh(a_n + (r * b_n if reset_after else b_n)) + z * h
        result[step] = h
    return np.stack([result[step] for step in range(len(x))]), h


_GRU: Final = Layer(_gru, 3, 1)


def _with_both_orders(
    calls: Callable[..., dict[str, tuple[list[Any], dict[str, Any]]]],
) -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """Calls with the reset gate after the product, and some with the gate before it."""
    found = calls()
    for note in ("several steps", "without biases", "reverse", "no examples", "no hidden values"):
        operands, attrs = found[note]
        found[f"{note}, reset before"] = operands, {**attrs, "reset_after": False}
    return found


reference(
    "gru",
    samples=samples_of(_with_both_orders(_GRU.calls)),
    errors=_GRU.errors(with_gradient=False),
    terms=_GRU.terms,
)(_gru)


@reference(
    "gru_grad",
    samples=samples_of(_with_both_orders(_GRU.gradient_calls)),
    errors=_GRU.errors(with_gradient=True),
    terms=_GRU.terms,
)
def _(*operands: Any, needs_x: bool = True, **attributes: Any) -> list[Array]:
    return _GRU.gradients(*operands, needs_x=needs_x, **attributes)
