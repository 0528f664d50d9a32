"""Draws of normalization, of recurrent layers, and of images that are sampled."""

from __future__ import annotations

from typing import Any

from burn.aliases import Shape
from burn.testing.arrays import floats
from burn.testing.draws._draw import Draw, Sort, draws
from burn.testing.op_samples import Array, Sample, sample

_EPSILON = 1e-5


def _optional(draw: Draw, length: int, low: float = 0.5) -> Array | None:
    return draw.floats(length, low=low, high=1.5) if draw.chance(0.6) else None


def _near_0_or_not(draw: Draw, shape: Shape) -> Array:
    middle = draw.among(0.0, 0.0, 50.0)
    return draw.floats(*shape, low=middle - 2.0, high=middle + 2.0)


@draws("layer_norm", "rms_norm")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    parameters = [_optional(draw, shape[-1]) for _ in list(draw.op.operands)[1:]]
    return sample("", _near_0_or_not(draw, shape), *parameters, epsilon=_EPSILON)


@draws("layer_norm_grad")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape(least=1, empty=False)
    x, g = draw.noise(*shape), draw.noise(*shape)
    return sample("", x, _optional(draw, shape[-1]), g, epsilon=_EPSILON)


@draws("batch_norm", "batch_norm_training", "batch_norm_grad")
def _(draw: Draw) -> Sample | None:
    """Many channels, many examples, and up to four axes after the channels."""
    shape = draw.shape(least=2, empty=False)
    x, channels = draw.noise(*shape), shape[1]
    gamma, beta = _optional(draw, channels), _optional(draw, channels, -1.0)
    operands: list[Any] = [x, gamma, beta]
    if draw.op.name == "batch_norm":
        operands += [draw.floats(channels), draw.floats(channels, low=0.5, high=1.5)]
    elif draw.op.name == "batch_norm_grad":
        others = tuple(axis for axis in range(len(shape)) if axis != 1)
        operands = [x, gamma, x.mean(axis=others), x.var(axis=others), draw.noise(*shape)]
    return sample("", *operands, epsilon=_EPSILON)


@draws("rnn", "gru", "lstm")
def _(draw: Draw) -> Sample | None:
    """More steps, examples, inputs or hidden values than a tile has."""
    steps, examples, inputs, hidden = (draw.integer(1, 4) for _ in range(4))
    if draw.sort is Sort.LONG:
        long = {1: (2, 3, 2, 33), 4: (17, 2, 3, 2)}
        steps, examples, inputs, hidden = long.get(draw.number, (2, 33, 17, 3))
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[draw.op.name] * hidden
    states = [draw.floats(examples, hidden) for _ in ("h", "c")[: 1 + (draw.op.name == "lstm")]]
    weights = [draw.floats(gates, number, low=-0.5, high=0.5) for number in (inputs, hidden)]
    biases = [draw.floats(gates) for _ in range(2)] if draw.chance(0.6) else [None, None]
    attributes = dict(draw.among(*[sample.attributes for sample in draw.samples.samples]))
    return sample(
        "", draw.floats(steps, examples, inputs), *states, *weights, *biases, **attributes
    )


@draws("grid_sample_2d")
def _(draw: Draw) -> Sample | None:
    """Points within the image and far beyond it, and more channels than a register has."""
    examples, channels = draw.integer(1, 3), 33 if draw.sort is Sort.LONG else draw.integer(1, 9)
    x = draw.floats(examples, channels, draw.integer(1, 7), draw.integer(1, 7))
    beyond = draw.among(0.9, 1.7, 9.0)
    points = (examples, draw.integer(1, 5), draw.integer(1, 5), 2)
    attributes = dict(draw.among(*[sample.attributes for sample in draw.samples.samples]))
    grid = draw.view(floats(*points, low=-beyond, high=beyond, phase=draw.random.random()))
    return sample("", x, grid, **attributes)
