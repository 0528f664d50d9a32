"""Samples of connectionist temporal classification."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import floats, integers, strided, transposed
from burn.testing.op_samples import Array, error, reference, sample


def _log_probs(*shape: int) -> Array:
    """Logarithms of probabilities that add up to 1 over the last axis."""
    scores = floats(*shape)
    return np.asarray(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))


_LENGTHS_4: Final = np.array([4, 4])

_CALLS: Final = {
    "batch": (_log_probs(4, 2, 3), np.array([[1, 2], [2, 1]]), _LENGTHS_4, np.array([2, 2]), 0),
    "different lengths": (
        _log_probs(4, 3, 3),
        np.array([[1, 2], [2, 0], [1, 2]]),
        np.array([4, 3, 2]),
        np.array([2, 1, 2]),
        0,
    ),
    "repeated labels": (
        _log_probs(5, 1, 3),
        np.array([[1, 1]]),
        np.array([5]),
        np.array([2]),
        0,
    ),
    "exactly enough frames": (
        _log_probs(3, 2, 3),
        np.array([[1, 1], [1, 2]]),
        np.array([3, 2]),
        np.array([2, 2]),
        0,
    ),
    "empty target": (
        _log_probs(3, 2, 3),
        np.array([[1, 2], [1, 2]]),
        np.array([3, 2]),
        np.array([0, 1]),
        0,
    ),
    "only empty targets": (
        _log_probs(3, 2, 3),
        np.zeros((2, 0), np.int64),
        np.array([3, 1]),
        np.array([0, 0]),
        0,
    ),
    "empty input": (
        _log_probs(3, 2, 3),
        np.array([[1], [1]]),
        np.array([0, 0]),
        np.array([0, 1]),
        0,
    ),
    "too few frames": (
        _log_probs(2, 3, 3),
        np.array([[1, 1], [1, 2], [2, 0]]),
        np.array([2, 1, 2]),
        np.array([2, 2, 1]),
        0,
    ),
    "last class is blank": (
        _log_probs(4, 2, 3),
        np.array([[0, 1], [1, 0]]),
        _LENGTHS_4,
        np.array([2, 2]),
        2,
    ),
    "scores that are no probabilities": (
        floats(4, 2, 3),
        np.array([[1, 2], [2, 1]]),
        _LENGTHS_4,
        np.array([2, 2]),
        0,
    ),
    "what lies beyond is not read": (
        _log_probs(3, 2, 3),
        np.array([[1, 99], [-7, 99]]),
        np.array([3, 2]),
        np.array([1, 0]),
        0,
    ),
    "blank alone": (
        _log_probs(2, 1, 1),
        np.zeros((1, 0), np.int64),
        np.array([2]),
        np.array([0]),
        0,
    ),
    "no examples": (
        _log_probs(3, 0, 3),
        np.zeros((0, 2), np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        0,
    ),
    "no frames": (
        _log_probs(0, 2, 3),
        np.array([[1], [1]]),
        np.array([0, 0]),
        np.array([0, 1]),
        0,
    ),
    "layouts": (
        transposed(_log_probs(4, 2, 3)),
        strided(np.array([[1, 2], [2, 1]])),
        strided(_LENGTHS_4),
        np.array([2, 1]),
        0,
    ),
    "lengths of int32": (
        _log_probs(3, 1, 3),
        np.array([[1]], np.int32),
        np.array([3], np.int32),
        np.array([1], np.uint8),
        0,
    ),
    "an impossible class": (
        np.array([[[-0.1, -3.0, -math.inf]], [[-0.2, -2.0, -3.0]], [[-math.inf, -0.1, -2.5]]]),
        np.array([[2]]),
        np.array([3]),
        np.array([1]),
        0,
    ),
}
"""Log-probabilities, targets, lengths of inputs and targets, and the blank."""


def _alignments(frames: int, classes: int, target: list[int], blank: int) -> list[tuple[int, ...]]:
    """All sequences of classes that collapse to a target."""
    found = []
    for path in itertools.product(range(classes), repeat=frames):
        merged = [label for label, _ in itertools.groupby(path)]
        if [label for label in merged if label != blank] == target:
            found.append(path)
    return found


def _paths(
    log_probs: Array, targets: Array, frames: int, labels: int, example: int, blank: int
) -> list[tuple[tuple[int, ...], float]]:
    """All alignments of one example with their probabilities."""
    target = targets[example, :labels].tolist()
    return [
        (path, math.exp(math.fsum(log_probs[t, example, label] for t, label in enumerate(path))))
        for path in _alignments(frames, log_probs.shape[2], target, blank)
    ]


def _errors(*extra: Array) -> list[Any]:
    log_probs, targets, lengths, twos = (
        floats(3, 2, 3),
        integers(2, 2, low=1, high=3),
        [3, 3],
        [2, 2],
    )
    inputs, counts = np.array(lengths), np.array(twos)
    return [
        error("no batch", ShapeError, floats(3, 3), targets, inputs, counts, *extra, blank=0),
        error(
            "targets in a row",
            ShapeError,
            log_probs,
            np.array([1, 2]),
            inputs,
            counts,
            *extra,
            blank=0,
        ),
        error(
            "targets of another batch",
            ShapeError,
            log_probs,
            np.array([[1, 2]]),
            inputs,
            counts,
            *extra,
            blank=0,
        ),
        error(
            "one length for all",
            ShapeError,
            log_probs,
            targets,
            inputs[:1],
            counts,
            *extra,
            blank=0,
        ),
        error(
            "blank is no class", ArgumentError, log_probs, targets, inputs, counts, *extra, blank=3
        ),
        error(
            "negative blank", ArgumentError, log_probs, targets, inputs, counts, *extra, blank=-1
        ),
        error(
            "float targets", DTypeError, log_probs, floats(2, 2), inputs, counts, *extra, blank=0
        ),
        error(
            "more frames than there are",
            OutOfRangeError,
            log_probs,
            targets,
            np.array([3, 4]),
            counts,
            *extra,
            blank=0,
            in_data=True,
        ),
        error(
            "more labels than there are",
            OutOfRangeError,
            log_probs,
            targets,
            inputs,
            np.array([2, 3]),
            *extra,
            blank=0,
            in_data=True,
        ),
        error(
            "negative length",
            OutOfRangeError,
            log_probs,
            targets,
            inputs,
            np.array([-1, 2]),
            *extra,
            blank=0,
            in_data=True,
        ),
        *[
            error(
                note,
                OutOfRangeError,
                log_probs,
                np.array([[1, 2], [1, label]]),
                inputs,
                counts,
                *extra,
                blank=0,
                in_data=True,
            )
            for note, label in (("label -1", -1), ("label -n", -3), ("the blank as a label", 0))
        ],
        error(
            "a label that is no class",
            OutOfRangeError,
            log_probs,
            np.array([[1, 2], [1, 3]]),
            inputs,
            counts,
            *extra,
            blank=0,
            in_data=True,
        ),
    ]


@reference(
    "ctc_loss",
    samples=[sample(note, *operands, blank=blank) for note, (*operands, blank) in _CALLS.items()],
    errors=_errors(),
)
def _(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, *, blank: int
) -> Array:
    result = np.empty(log_probs.shape[1])
    for example, (frames, labels) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        paths = _paths(log_probs, targets, int(frames), int(labels), example, blank)
        total = math.fsum(probability for _, probability in paths)
        result[example] = -math.log(total) if total else math.inf
    return result


@reference(
    "ctc_loss_grad",
    samples=[
        sample(note, *operands, floats(operands[0].shape[1], phase=0.2), blank=blank)
        for note, (*operands, blank) in _CALLS.items()
    ],
    errors=[
        *_errors(floats(2)),
        error(
            "g of another shape",
            ShapeError,
            floats(3, 2, 3),
            np.array([[1], [1]]),
            np.array([3, 3]),
            np.array([1, 1]),
            floats(1),
            blank=0,
        ),
    ],
)
def _(
    log_probs: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    g: Array,
    *,
    blank: int,
) -> Array:
    result = np.zeros(log_probs.shape)
    for example, (frames, labels) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        paths = _paths(log_probs, targets, int(frames), int(labels), example, blank)
        total = math.fsum(probability for _, probability in paths)
        for path, probability in paths:
            for frame, label in enumerate(path):
                if total:
                    result[frame, example, label] -= g[example] * probability / total
    return result
