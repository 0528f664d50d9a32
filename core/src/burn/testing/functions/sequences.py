"""Samples of what networks of sequences and of styles need: transducers, masks, Gram matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.errors import ArgumentError, DTypeError, OperandTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import floats
from burn.testing.function_samples import call, function_reference, wrong
from burn.testing.op_samples import Array

_SCORES = floats(2, 3, 3, 4)
_LABELS = np.array([[1, 3], [2, 2]])
_FRAMES, _COUNTS = np.array([3, 2]), np.array([2, 1])


@function_reference(
    "nn.functional.rnnt_loss",
    samples=[
        call("each", _SCORES, _LABELS, _FRAMES, _COUNTS, reduction="none"),
        call("the mean", _SCORES, _LABELS, _FRAMES, _COUNTS),
        call("the last class", _SCORES, _LABELS % 3, _FRAMES, _COUNTS, blank=-1),
        call("no label", _SCORES[:, :, :1], _LABELS[:, :0], _FRAMES, _COUNTS * 0),
    ],
    errors=[
        wrong("no frame", ShapeError, _SCORES[:, :0], _LABELS, _FRAMES, _COUNTS),
        wrong("too few labels", ShapeError, _SCORES, _LABELS[:, :1], _FRAMES, _COUNTS),
        wrong("a class too large", ArgumentError, _SCORES, _LABELS, _FRAMES, _COUNTS, blank=4),
        wrong("floats", DTypeError, _SCORES, _LABELS * 1.0, _FRAMES, _COUNTS),
        wrong("the blank", OutOfRangeError, _SCORES, _LABELS * 0, _FRAMES, _COUNTS, in_data=True),
    ],
    magnitude=lambda x, *_, **__: 16.0 * (1.0 + np.abs(x).max()),
)
def _(
    x: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    *,
    blank: int = 0,
    reduction: str = "mean",
) -> Any:
    x = x - np.log(np.sum(np.exp(x), -1, keepdims=True))
    losses = np.zeros(len(x))
    for n, (frames, labels) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        reached = np.full((frames, labels + 1), -np.inf)
        for t, u in np.ndindex(reached.shape):
            ways = [0.0] if t == u == 0 else []
            ways += [reached[t - 1, u] + x[n, t - 1, u, blank]] if t else []
            ways += [reached[t, u - 1] + x[n, t, u - 1, targets[n, u - 1]]] if u else []
            reached[t, u] = np.logaddexp.reduce(ways)
        losses[n] = -reached[-1, -1] - x[n, frames - 1, labels, blank]
    return losses if reduction == "none" else np.mean(losses)


@function_reference(
    "nn.functional.sliding_window_mask",
    samples=[
        call("causal", (4, 4), 1),
        call("both sides", (3, 5), 1, 2),
        call("more queries", (4, 2), 0, after=1),
        call("no key", (2, 0), 3),
    ],
    errors=[
        wrong("one length", ShapeError, (4,), 1),
        wrong("a negative number", ArgumentError, (4, 4), -1),
    ],
    exact=True,
)
def _(shape: tuple[int, int], before: int, after: int = 0) -> Any:
    queries, keys = shape
    distance = np.arange(keys) - (np.arange(queries)[:, None] + keys - queries)
    return (distance < -before) | (distance > after)


def _gram(x: Array) -> Any:
    rows = x.reshape(*x.shape[:2], -1)
    return rows @ rows.swapaxes(1, 2) / max(rows.shape[1] * rows.shape[2], 1)


@function_reference(
    "nn.functional.gram_matrix",
    samples=[call("images", floats(2, 3, 2, 4)), call("vectors", floats(2, 3))],
    errors=[wrong("a vector", ShapeError, floats(3))],
    magnitude=lambda x: 4.0 * np.max(np.abs(x)) ** 2,
)
def _(x: Array) -> Any:
    return _gram(x)


@function_reference(
    "nn.functional.gram_matrix_loss",
    samples=[
        call("one layer", floats(2, 3, 2, 2), floats(2, 3, 5, phase=0.7)),
        call("two layers", [floats(1, 2, 3)] * 2, [floats(1, 2, 3, phase=0.7)] * 2),
    ],
    errors=[
        wrong("other channels", ShapeError, floats(1, 2, 3), floats(1, 3, 3)),
        wrong("another number", OperandTypeError, [floats(1, 2, 3)], []),
    ],
    magnitude=lambda *_: 16.0,
)
def _(features: Any, targets: Any) -> Any:
    pairs = (
        zip(features, targets, strict=True) if isinstance(features, list) else [(features, targets)]
    )
    return np.sum([np.mean((_gram(item) - _gram(other)) ** 2) for item, other in pairs])


_CLASSES = np.array([[2, 0, -1, 1], [3, 2, 1, -1]])


@function_reference(
    "nn.functional.multilabel_margin_loss",
    samples=[
        call("the mean", floats(2, 4), _CLASSES),
        call("each", floats(2, 4), _CLASSES, reduction="none"),
        call("no class", floats(1, 3), np.array([[-1, 0, 1]])),
    ],
    errors=[
        wrong("other shapes", ShapeError, floats(2, 4), _CLASSES[:1]),
        wrong("floats", DTypeError, floats(2, 4), _CLASSES * 1.0),
        wrong("no such class", OutOfRangeError, floats(2, 4), _CLASSES + 9, in_data=True),
    ],
    magnitude=lambda x, *_, **__: 8.0 * (1.0 + np.abs(x).max()),
)
def _(x: Array, targets: Array, *, reduction: str = "mean") -> Any:
    losses = np.zeros(len(x))
    for n, (scores, classes) in enumerate(zip(x, targets, strict=True)):
        end = int(np.argmax(classes < 0)) if (classes < 0).any() else len(classes)
        others = np.delete(scores, classes[:end])
        excess = 1.0 - scores[classes[:end], None] + others
        losses[n] = np.sum(np.maximum(excess, 0.0)) / len(scores)
    return losses if reduction == "none" else np.mean(losses)


@function_reference(
    "nn.functional.multilabel_soft_margin_loss",
    samples=[
        call("the mean", floats(2, 3), floats(2, 3, low=0.0, high=1.0)),
        call(
            "weights",
            floats(2, 3),
            floats(2, 3, low=0.0, high=1.0),
            weight=floats(3, low=0.5),
            reduction="none",
        ),
    ],
    errors=[wrong("other shapes", ShapeError, floats(2, 4), floats(1, 4))],
    magnitude=lambda x, *_, **__: 8.0 * (1.0 + np.abs(x).max()),
)
def _(x: Array, targets: Array, *, weight: Any = 1.0, reduction: str = "mean") -> Any:
    losses = targets * np.log1p(np.exp(-x)) + (1.0 - targets) * np.log1p(np.exp(x))
    losses = np.mean(losses * weight, -1)
    return losses if reduction == "none" else np.mean(losses)
