"""Samples of normalization."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from burn.errors import ShapeError
from burn.testing.arrays import expanded, floats, strided, transposed
from burn.testing.op_samples import Array, error, reference, sample

_EPSILON: Final = 1e-5


def _mean(values: Array) -> float:
    """The mean, with one rounding; NaN of nothing."""
    return math.fsum(values.tolist()) / values.size if values.size else math.nan


def _statistics(rows: Array) -> tuple[Array, Array]:
    """Mean and variance of each row, as columns."""
    means = np.array([_mean(row) for row in rows]).reshape(-1, 1)
    variances = np.array([_mean((row - mean) ** 2) for row, mean in zip(rows, means, strict=True)])
    return means, variances.reshape(-1, 1)


def _normal(rows: Array, epsilon: float) -> Array:
    means, variances = _statistics(rows)
    return (rows - means) / np.sqrt(variances + epsilon)


def _gradients(
    rows: Array, factor: Array, g: Array, means: Array, variances: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    """Gradients by rows that are normalized, and what sums up to those by gamma and beta."""
    normal = (rows - means) / np.sqrt(variances + epsilon)
    weighted = g * factor
    result = np.empty(rows.shape)
    for row in range(len(rows)):
        level, bend = _mean(weighted[row]), _mean(weighted[row] * normal[row])
        rest = weighted[row] - level - normal[row] * bend
        result[row] = rest / math.sqrt(variances[row, 0] + epsilon)
    return result, g * normal, g


def _column_sums(rows: Array) -> Array:
    return np.array([math.fsum(column) for column in rows.T.tolist()])


_GAMMA: Final = floats(4, low=0.5, high=1.5)
_BETA: Final = floats(4, phase=0.2)


@reference(
    "layer_norm",
    samples=[
        sample("matrix", floats(3, 4), _GAMMA, _BETA, epsilon=_EPSILON),
        sample("without parameters", floats(3, 4), None, None, epsilon=_EPSILON),
        sample("gamma alone", floats(3, 4), _GAMMA, None, epsilon=_EPSILON),
        sample("beta alone", floats(3, 4), None, _BETA, epsilon=_EPSILON),
        sample("vector", floats(4), _GAMMA, _BETA, epsilon=_EPSILON),
        sample("batch", floats(2, 3, 4), _GAMMA, _BETA, epsilon=0.1),
        sample("long rows", floats(3, 200), None, None, epsilon=_EPSILON),
        sample("many rows", floats(130, 2), floats(2, phase=0.1), None, epsilon=_EPSILON),
        sample("one element", floats(3, 1), floats(1), floats(1, phase=0.1), epsilon=_EPSILON),
        sample("equal elements", np.full((2, 4), 3.0), _GAMMA, _BETA, epsilon=_EPSILON),
        sample("far from 0", floats(2, 4) + 100.0, _GAMMA, _BETA, epsilon=_EPSILON),
        sample("squares beyond float16", floats(2, 4) * 400.0, _GAMMA, _BETA, epsilon=_EPSILON),
        sample("no rows", floats(0, 4), _GAMMA, _BETA, epsilon=_EPSILON),
        sample("no columns", floats(3, 0), floats(0), floats(0), epsilon=_EPSILON),
        sample("transposed", transposed(floats(3, 4)), strided(_GAMMA), _BETA, epsilon=_EPSILON),
        sample("strided", strided(floats(3, 4)), expanded(floats(), 4), _BETA, epsilon=_EPSILON),
        sample(
            "a row with NaN",
            np.array([[1.0, math.nan, 2.0], [1.0, 2.0, 3.0]]),
            None,
            None,
            epsilon=_EPSILON,
        ),
    ],
    errors=[
        error("gamma of another length", ShapeError, floats(2, 3), floats(2), None, epsilon=0.1),
        error("beta that would broadcast", ShapeError, floats(2, 3), None, floats(1), epsilon=0.1),
        error("gamma with two axes", ShapeError, floats(2, 3), floats(1, 3), None, epsilon=0.1),
        error("0-d", ShapeError, floats(), None, None, epsilon=0.1),
    ],
    terms=lambda x, gamma, beta, epsilon: (
        max(x.shape[-1], 1),
        _magnitude(x, epsilon) * (1.0 if gamma is None else np.abs(gamma))
        + (0.0 if beta is None else np.abs(beta)),
    ),
)
def _(x: Array, gamma: Array | None, beta: Array | None, *, epsilon: float) -> Array:
    normal = _normal(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), epsilon).reshape(x.shape)
    return normal * (1.0 if gamma is None else gamma) + (0.0 if beta is None else beta)


def _magnitude(x: Array, epsilon: float) -> Array:
    """What a normalized element is the difference of: its own size and that of the mean."""
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    means, variances = _statistics(rows)
    size = (np.abs(rows) + np.abs(means)) / np.sqrt(variances + epsilon)
    return np.asarray(size + 1.0).reshape(x.shape)


def _layer_norm_grad_terms(
    x: Array, gamma: Array | None, g: Array, *, epsilon: float
) -> tuple[float, float]:
    """One bound for all outputs."""
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    _, variances = _statistics(rows)
    if not x.size:
        return 1, 1.0
    factor = 1.0 if gamma is None else max(1.0, float(np.abs(gamma).max()))
    steep = max(1.0, float(np.max(1.0 / np.sqrt(variances + epsilon))))
    largest = float(np.max(_magnitude(x, epsilon)))
    return x.size, float(np.abs(g).max()) * factor * steep * largest


@reference(
    "layer_norm_grad",
    samples=[
        sample("matrix", floats(3, 4), _GAMMA, floats(3, 4, phase=0.1), epsilon=_EPSILON),
        sample("without gamma", floats(3, 4), None, floats(3, 4, phase=0.1), epsilon=_EPSILON),
        sample("vector", floats(4), _GAMMA, floats(4, phase=0.1), epsilon=_EPSILON),
        sample("batch", floats(2, 3, 4), _GAMMA, floats(2, 3, 4, phase=0.1), epsilon=0.1),
        sample("long rows", floats(2, 120), None, floats(2, 120, phase=0.1), epsilon=_EPSILON),
        sample("many rows", floats(70, 2), None, floats(70, 2, phase=0.1), epsilon=0.1),
        sample("one element", floats(3, 1), floats(1), floats(3, 1, phase=0.1), epsilon=0.1),
        sample("no rows", floats(0, 4), _GAMMA, floats(0, 4), epsilon=_EPSILON),
        sample("no columns", floats(3, 0), floats(0), floats(3, 0), epsilon=_EPSILON),
        sample(
            "layouts",
            transposed(floats(3, 4)),
            strided(_GAMMA),
            strided(floats(3, 4, phase=0.1)),
            epsilon=_EPSILON,
        ),
        sample("expanded g", floats(3, 4), None, expanded(floats(), 3, 4), epsilon=_EPSILON),
    ],
    errors=[
        error("g of another shape", ShapeError, floats(2, 3), None, floats(3), epsilon=0.1),
        error(
            "gamma of another length",
            ShapeError,
            floats(2, 3),
            floats(2),
            floats(2, 3),
            epsilon=0.1,
        ),
        error("0-d", ShapeError, floats(), None, floats(), epsilon=0.1),
    ],
    terms=_layer_norm_grad_terms,
)
def _(x: Array, gamma: Array | None, g: Array, *, epsilon: float) -> tuple[Array, Array, Array]:
    matrix = (math.prod(x.shape[:-1]), x.shape[-1])
    rows, slopes = x.reshape(matrix), g.reshape(matrix)
    factor = np.ones(matrix[1]) if gamma is None else gamma
    to_x, to_gamma, to_beta = _gradients(rows, factor, slopes, *_statistics(rows), epsilon)
    return to_x.reshape(x.shape), _column_sums(to_gamma), _column_sums(to_beta)


@reference(
    "rms_norm",
    samples=[
        sample("matrix", floats(3, 4), _GAMMA, epsilon=_EPSILON),
        sample("without gamma", floats(3, 4), None, epsilon=_EPSILON),
        sample("vector", floats(4), _GAMMA, epsilon=0.1),
        sample("batch", floats(2, 3, 4), _GAMMA, epsilon=_EPSILON),
        sample("long rows", floats(2, 200), None, epsilon=_EPSILON),
        sample("zeros", np.zeros((2, 4)), _GAMMA, epsilon=_EPSILON),
        sample("squares beyond float16", floats(2, 4) * 400.0, _GAMMA, epsilon=_EPSILON),
        sample("no rows", floats(0, 4), _GAMMA, epsilon=_EPSILON),
        sample("no columns", floats(3, 0), None, epsilon=_EPSILON),
        sample("layouts", transposed(floats(3, 4)), strided(_GAMMA), epsilon=_EPSILON),
    ],
    errors=[
        error("gamma of another length", ShapeError, floats(2, 3), floats(2), epsilon=0.1),
        error("0-d", ShapeError, floats(), None, epsilon=0.1),
    ],
)
def _(x: Array, gamma: Array | None, *, epsilon: float) -> Array:
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    result = np.empty(rows.shape)
    for index, row in enumerate(rows):
        result[index] = row / math.sqrt(_mean(row * row) + epsilon)
    return result.reshape(x.shape) * (1.0 if gamma is None else gamma)


_CHANNEL_GAMMA: Final = floats(3, low=0.5, high=1.5)
_CHANNEL_BETA: Final = floats(3, phase=0.2)
_CHANNEL_MEAN: Final = floats(3, phase=0.4)
_CHANNEL_VARIANCE: Final = floats(3, low=0.5, high=2.0, phase=0.6)


def _to_channels(x: Array) -> Array:
    """A row for each channel."""
    return np.moveaxis(x, 1, 0).reshape(x.shape[1], x.shape[0] * math.prod(x.shape[2:]))


def _from_channels(rows: Array, shape: tuple[int, ...]) -> Array:
    return np.moveaxis(rows.reshape((shape[1], shape[0], *shape[2:])), 0, 1)


def _channel(x: Array | None, fill: float, count: int) -> Array:
    return np.full((count, 1), fill) if x is None else x.reshape(count, 1)


@reference(
    "batch_norm",
    samples=[
        sample(
            note,
            x,
            gamma,
            beta,
            _CHANNEL_MEAN,
            _CHANNEL_VARIANCE,
            epsilon=_EPSILON,
        )
        for note, x, gamma, beta in [
            ("images", floats(2, 3, 2, 4), _CHANNEL_GAMMA, _CHANNEL_BETA),
            ("signals", floats(2, 3, 4), _CHANNEL_GAMMA, _CHANNEL_BETA),
            ("vectors", floats(4, 3), _CHANNEL_GAMMA, _CHANNEL_BETA),
            ("without parameters", floats(2, 3, 4), None, None),
            ("gamma alone", floats(2, 3, 4), _CHANNEL_GAMMA, None),
            ("beta alone", floats(2, 3, 4), None, _CHANNEL_BETA),
            ("no examples", floats(0, 3, 2), _CHANNEL_GAMMA, _CHANNEL_BETA),
            ("no positions", floats(2, 3, 0), _CHANNEL_GAMMA, _CHANNEL_BETA),
            ("layouts", transposed(floats(2, 3, 4)), strided(_CHANNEL_GAMMA), _CHANNEL_BETA),
            ("strided", strided(floats(2, 3, 4)), _CHANNEL_GAMMA, strided(_CHANNEL_BETA)),
        ]
    ],
    errors=[
        error(
            "gamma per position",
            ShapeError,
            floats(2, 3, 4),
            floats(4),
            None,
            floats(3),
            floats(3),
            epsilon=0.1,
        ),
        error(
            "one mean for all",
            ShapeError,
            floats(2, 3),
            None,
            None,
            floats(1),
            floats(3),
            epsilon=0.1,
        ),
        error("a vector", ShapeError, floats(3), None, None, floats(3), floats(3), epsilon=0.1),
    ],
)
def _(
    x: Array,
    gamma: Array | None,
    beta: Array | None,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
) -> Array:
    count = x.shape[1]
    distance = _to_channels(x) - mean.reshape(count, 1)
    normal = distance / np.sqrt(variance.reshape(count, 1) + epsilon)
    rows = normal * _channel(gamma, 1.0, count) + _channel(beta, 0.0, count)
    return _from_channels(rows, x.shape)


_BATCHES: Final = {
    "images": (floats(2, 3, 2, 4), _CHANNEL_GAMMA, _CHANNEL_BETA),
    "signals": (floats(2, 3, 4), _CHANNEL_GAMMA, _CHANNEL_BETA),
    "vectors": (floats(5, 3), _CHANNEL_GAMMA, _CHANNEL_BETA),
    "without parameters": (floats(2, 3, 4), None, None),
    "gamma alone": (floats(2, 3, 4), _CHANNEL_GAMMA, None),
    "beta alone": (floats(2, 3, 4), None, _CHANNEL_BETA),
    "many positions": (floats(2, 2, 90), None, None),
    "far from 0": (floats(2, 3, 4) + 50.0, _CHANNEL_GAMMA, _CHANNEL_BETA),
    "layouts": (transposed(floats(2, 3, 4)), strided(_CHANNEL_GAMMA), _CHANNEL_BETA),
    "strided": (strided(floats(2, 3, 4)), _CHANNEL_GAMMA, strided(_CHANNEL_BETA)),
    "no channels": (floats(2, 0, 3), floats(0), floats(0)),
}


def _channel_terms(x: Array, *parameters: Array | None, epsilon: float) -> tuple[float, float]:
    """One bound for all outputs."""
    if not x.size:
        return 1, 1.0
    rows = _to_channels(x)
    size = [
        float(np.abs(parameter).max())
        for parameter in parameters
        if parameter is not None and parameter.size
    ]
    largest = float(_magnitude(rows, epsilon).max())
    spread = 1.0 / np.sqrt(_statistics(rows)[1] + epsilon)
    return rows.shape[1], largest * max([1.0, *size]) * max(1.0, float(spread.max()))


@reference(
    "batch_norm_training",
    samples=[
        *[
            sample(note, x, gamma, beta, epsilon=_EPSILON)
            for note, (x, gamma, beta) in _BATCHES.items()
        ],
        sample("no examples", floats(0, 3, 2), None, None, epsilon=0.1, differentiable=False),
        sample("one element each", floats(1, 3), None, _CHANNEL_BETA, epsilon=0.5),
    ],
    errors=[
        error("gamma per position", ShapeError, floats(2, 3, 4), floats(4), None, epsilon=0.1),
        error("beta for all", ShapeError, floats(2, 3), None, floats(1), epsilon=0.1),
        error("a vector", ShapeError, floats(3), None, None, epsilon=0.1),
    ],
    terms=_channel_terms,
)
def _(
    x: Array, gamma: Array | None, beta: Array | None, *, epsilon: float
) -> tuple[Array, Array, Array]:
    count = x.shape[1]
    rows = _to_channels(x)
    means, variances = _statistics(rows)
    normal = (rows - means) / np.sqrt(variances + epsilon)
    rows = normal * _channel(gamma, 1.0, count) + _channel(beta, 0.0, count)
    return _from_channels(rows, x.shape), means.reshape(count), variances.reshape(count)


@reference(
    "batch_norm_grad",
    samples=[
        sample(
            note,
            x,
            gamma,
            _CHANNEL_MEAN[: x.shape[1]],
            _CHANNEL_VARIANCE[: x.shape[1]],
            floats(*x.shape, phase=0.1),
            epsilon=_EPSILON,
        )
        for note, (x, gamma, beta) in _BATCHES.items()
        if note not in ("beta alone", "far from 0")
    ],
    errors=[
        error(
            "g of another shape",
            ShapeError,
            floats(2, 3),
            None,
            floats(3),
            floats(3),
            floats(3),
            epsilon=0.1,
        ),
        error(
            "a mean for each position",
            ShapeError,
            floats(2, 3, 4),
            None,
            floats(4),
            floats(3),
            floats(2, 3, 4),
            epsilon=0.1,
        ),
    ],
    terms=lambda x, gamma, mean, variance, g, epsilon: _channel_terms(
        x, gamma, mean, variance, g, epsilon=epsilon
    ),
)
def _(
    x: Array,
    gamma: Array | None,
    mean: Array,
    variance: Array,
    g: Array,
    *,
    epsilon: float,
) -> tuple[Array, Array, Array]:
    count = x.shape[1]
    to_x, to_gamma, to_beta = _gradients(
        _to_channels(x),
        _channel(gamma, 1.0, count),
        _to_channels(g),
        mean.reshape(count, 1),
        variance.reshape(count, 1),
        epsilon,
    )
    sums = [np.array([math.fsum(row) for row in rows.tolist()]) for rows in (to_gamma, to_beta)]
    return _from_channels(to_x, x.shape), sums[0], sums[1]
