"""Samples of attention."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.testing.arrays import booleans, expanded, floats, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample


def _operands(
    batch: tuple[int, ...], queries: int, keys: int, features: int, values: int
) -> tuple[Array, Array, Array]:
    return (
        floats(*batch, queries, features),
        floats(*batch, keys, features, phase=0.1),
        floats(*batch, keys, values, phase=0.2),
    )


def _attributes(
    scale: float, *, softcap: float | None = None, is_causal: bool = False
) -> dict[str, Any]:
    return {"scale": scale, "softcap": softcap, "is_causal": is_causal}


def _calls() -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Operands without the gradient, and attributes."""
    small = _operands((2,), 3, 4, 2, 3)
    query, key, value = small
    first_row = np.array([[True] * 4, [False] * 4, [False, True, False, True]])
    bias = floats(2, 3, 4, phase=0.3)
    never = np.where(booleans(3, 4), -math.inf, 0.5)
    never[1] = -math.inf
    plain = _attributes(0.7)
    causal = _attributes(0.7, is_causal=True)
    return {
        "plain": ((*small, None, None), plain),
        "one head": ((*_operands((), 3, 5, 4, 2), None, None), _attributes(0.5)),
        "heads in a batch": ((*_operands((2, 2), 2, 3, 2, 2), None, None), _attributes(0.5)),
        "mask": ((*small, booleans(2, 3, 4), None), plain),
        "mask for all": ((*small, booleans(3, 4), None), plain),
        "mask of keys": ((*small, booleans(2, 1, 4), None), plain),
        "a query without keys": ((*small, first_row, None), plain),
        "everything masked": ((*small, np.ones((1, 1), np.bool_), None), plain),
        "bias": ((*small, None, bias), plain),
        "bias for all": ((*small, None, bias[0]), plain),
        "bias of keys": ((*small, None, floats(4, phase=0.3)), plain),
        "mask and bias": ((*small, booleans(3, 4), bias), plain),
        "infinite bias": ((*small, None, never), plain),
        "causal": ((*_operands((2,), 3, 3, 2, 2), None, None), causal),
        "causal, more keys": ((*small, None, None), causal),
        "causal, more queries": ((*_operands((2,), 4, 2, 2, 2), None, None), causal),
        "causal and mask": ((*_operands((), 3, 3, 2, 2), booleans(3, 3), None), causal),
        "soft cap": ((*small, None, None), _attributes(2.0, softcap=1.5)),
        "soft cap and everything": (
            (*_operands((), 3, 3, 2, 2), booleans(3, 3), floats(3, 3, phase=0.3)),
            _attributes(2.0, softcap=3.0, is_causal=True),
        ),
        "negative scale": ((*small, None, None), _attributes(-1.0)),
        "large scores": ((query * 40.0, key, value, None, None), _attributes(30.0)),
        "keys for all queries": ((query, key[:1], value[:1], None, None), plain),
        "values for all": ((query, key, value[0], None, None), plain),
        "queries for all": ((query[0], key[0], value, None, None), plain),
        "many positions": ((*_operands((), 9, 40, 3, 2), None, None), _attributes(0.6)),
        "no features": ((*_operands((), 2, 3, 0, 2), None, None), plain),
        "no queries": ((*_operands((2,), 0, 3, 2, 2), None, None), plain),
        "no keys": ((*_operands((2,), 3, 0, 2, 2), None, None), plain),
        "no values": ((*_operands((2,), 3, 4, 2, 0), None, None), plain),
        "no batch": ((*_operands((0,), 3, 4, 2, 2), None, None), plain),
        "layouts": (
            (transposed(query), strided(key), transposed(value), transposed(booleans(3, 4)), None),
            plain,
        ),
        "layouts of heads": (
            (*map(transposed, _operands((2, 2), 3, 3, 2, 2)), None, None),
            causal,
        ),
        "expanded": (
            (expanded(query[0], 2, 3, 2), key, value, None, expanded(bias[0], 2, 3, 4)),
            plain,
        ),
    }


class _Attention(NamedTuple):
    """What the reference computes of one call, with a plain loop over queries."""

    shape: tuple[int, ...]
    weights: Array
    bend: Array


def _attend(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> _Attention:
    """The weights of all keys, and the slopes of the soft cap."""
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    queries, keys = query.shape[-2], key.shape[-2]
    shape = (*batch, queries, keys)
    query = np.broadcast_to(query, (*batch, *query.shape[-2:]))
    key = np.broadcast_to(key, (*batch, *key.shape[-2:]))
    excluded = np.broadcast_to(np.zeros(()) if mask is None else mask, shape)
    added = np.broadcast_to(np.zeros(()) if bias is None else bias, shape)
    weights, bend = np.zeros(shape), np.ones(shape)
    for index in np.ndindex(shape[:-1]):
        scores = np.full(keys, -math.inf)
        for other in range(keys):
            score = math.fsum((query[index] * key[(*index[:-1], other)]).tolist()) * scale
            if softcap is not None:
                bent = math.tanh(score / softcap)
                score, bend[(*index, other)] = bent * softcap, 1.0 - bent * bent
            beyond = is_causal and other - keys > index[-1] - queries
            if not beyond and not excluded[(*index, other)]:
                scores[other] = score + added[(*index, other)]
        largest = max(scores.tolist(), default=-math.inf)
        if largest > -math.inf:
            powers = [math.exp(score - largest) for score in scores.tolist()]
            weights[index] = np.array(powers) / math.fsum(powers)
    return _Attention(shape, weights, bend)


def _largest(operand: Array | None) -> float:
    """Largest finite magnitude."""
    if operand is None or not operand.size:
        return 0.0
    return float(np.abs(operand[np.isfinite(operand)]).max(initial=0.0))


def _terms(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    *,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[int, float]:
    """How many terms are added up, and a bound of their magnitudes.

    An error of a score is a relative one of its weight, so the size of the scores is a factor.
    """
    del mask, softcap, is_causal
    score = abs(scale) * query.shape[-1] * _largest(query) * _largest(key) + _largest(bias)
    return query.shape[-1] + key.shape[-2], (1.0 + score) * _largest(value)


def _gradient_terms(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    g: Array,
    *,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[int, float]:
    """The same for all gradients."""
    attributes = _attributes(scale, softcap=softcap, is_causal=is_causal)
    count, size = _terms(query, key, value, mask, bias, **attributes)
    steep = max(1.0, abs(scale) * max(_largest(query), _largest(key)))
    slope = _largest(g) * max(size * value.shape[-1], 1.0)
    return count + value.shape[-1] + query.shape[-2], steep * slope


def _samples(*, with_gradient: bool) -> list[Sample]:
    samples = []
    for note, (operands, attributes) in _calls().items():
        extra = []
        if with_gradient:
            query, key, value, *_ = operands
            batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
            extra = [floats(*batch, query.shape[-2], value.shape[-1], phase=0.4)]
        samples.append(sample(note, *operands, *extra, **attributes))
    return samples


def _errors(*, with_gradient: bool) -> list[Any]:
    def refused(
        note: str, expected: Any, *operands: Any, g: Array | None = None, **attributes: Any
    ) -> Any:
        extra = [floats(2, 3, 2) if g is None else g] if with_gradient else []
        return error(note, expected, *operands, *extra, **_attributes(1.0, **attributes))

    query, key, value = _operands((2,), 3, 4, 2, 2)
    errors = [
        refused("features differ", ShapeError, query, floats(2, 4, 3), value, None, None),
        refused("keys without values", ShapeError, query, key, floats(2, 3, 2), None, None),
        refused("batches differ", ShapeError, query, key, floats(3, 4, 2), None, None),
        refused("a vector", ShapeError, floats(2), key, value, None, None),
        refused("mask of another shape", ShapeError, query, key, value, booleans(3, 3), None),
        refused(
            "mask in a larger batch", ShapeError, query, key, value, booleans(2, 2, 3, 4), None
        ),
        refused("bias of another shape", ShapeError, query, key, value, None, floats(3, 3)),
        refused("soft cap 0", ArgumentError, query, key, value, None, None, softcap=0.0),
        refused("float mask", DTypeError, query, key, value, floats(3, 4), None),
    ]
    if with_gradient:
        errors.append(
            refused("g of another shape", ShapeError, query, key, value, None, None, g=floats(3, 2))
        )
    return errors


@reference(
    "attention",
    samples=_samples(with_gradient=False),
    errors=_errors(with_gradient=False),
    terms=_terms,
)
def _(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    *,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> Array:
    found = _attend(query, key, value, mask, bias, scale, softcap, is_causal)
    batch, (queries, keys) = found.shape[:-2], found.shape[-2:]
    value = np.broadcast_to(value, (*batch, keys, value.shape[-1]))
    result = np.empty((*batch, queries, value.shape[-1]))
    for index in np.ndindex(result.shape):
        chosen = found.weights[index[:-1]] * value[(*index[:-2], slice(None), index[-1])]
        result[index] = math.fsum(chosen.tolist())
    return result


def _score_slopes(found: _Attention, value: Array, g: Array) -> Array:
    """Gradient by what the softmax sees."""
    batch, (queries, keys) = found.shape[:-2], found.shape[-2:]
    value = np.broadcast_to(value, (*batch, keys, value.shape[-1]))
    result = np.empty(found.shape)
    for index in np.ndindex((*batch, queries)):
        to_weights = [
            math.fsum((g[index] * value[(*index[:-1], key)]).tolist()) for key in range(keys)
        ]
        weights = found.weights[index].tolist()
        mean = math.fsum(w * slope for w, slope in zip(weights, to_weights, strict=True))
        result[index] = [w * (slope - mean) for w, slope in zip(weights, to_weights, strict=True)]
    return result


@reference(
    "attention_grad",
    samples=_samples(with_gradient=True),
    errors=_errors(with_gradient=True),
    terms=_gradient_terms,
)
def _(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    g: Array,
    *,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[Array, Array, Array]:
    found = _attend(query, key, value, mask, bias, scale, softcap, is_causal)
    slopes = _score_slopes(found, value, g) * found.bend * scale
    return (
        np.einsum("...ts,...sd->...td", slopes, key),
        np.einsum("...ts,...td->...sd", slopes, query),
        np.einsum("...ts,...tv->...sv", found.weights, g),
    )


@reference(
    "attention_bias_grad",
    samples=_samples(with_gradient=True),
    errors=_errors(with_gradient=True),
    terms=_gradient_terms,
)
def _(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    g: Array,
    *,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> Array:
    return _score_slopes(
        _attend(query, key, value, mask, bias, scale, softcap, is_causal), value, g
    )
