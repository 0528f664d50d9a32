"""Samples of dense layers."""

from __future__ import annotations

import math

import numpy as np

from burn.errors import DTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import expanded, floats, integers, strided, transposed
from burn.testing.op_samples import Array, error, reference, sample

_WEIGHT = floats(3, 4, phase=0.1)
_BIAS = floats(4, phase=0.2)


def linear_terms(
    x: Array, weight: Array, bias: Array | None, *, transposed: bool = False
) -> tuple[int, Array]:
    """The terms of `linear_reference`: see `burn.testing.op_samples.Terms`."""
    magnitude = linear_reference(
        np.abs(x),
        np.abs(weight),
        None if bias is None else np.abs(bias),
        transposed=transposed,
    )
    return x.shape[-1] + 1, magnitude


@reference(
    "linear",
    samples=[
        sample("matrix", floats(2, 3), _WEIGHT, _BIAS),
        sample("without bias", floats(2, 3), _WEIGHT, None),
        sample("vector", floats(3), _WEIGHT, _BIAS),
        sample("vector without bias", floats(3), _WEIGHT, None),
        sample("batch", floats(2, 5, 3), _WEIGHT, _BIAS),
        sample("two axes of batch", floats(2, 1, 2, 3), _WEIGHT, _BIAS),
        sample("many features", floats(3, 100), floats(100, 2, phase=0.1), floats(2)),
        sample("one output", floats(2, 3), floats(3, 1, phase=0.1), floats(1)),
        sample("no examples", floats(0, 3), _WEIGHT, _BIAS),
        sample("no inputs", floats(2, 0), floats(0, 4), _BIAS),
        sample("no outputs", floats(2, 3), floats(3, 0), floats(0)),
        sample("transposed", transposed(floats(2, 3)), transposed(_WEIGHT), strided(_BIAS)),
        sample("expanded", expanded(floats(3), 2, 3), strided(_WEIGHT), _BIAS),
        sample("transposed batch", transposed(floats(2, 5, 3)), _WEIGHT, _BIAS),
        sample("(out, in)", floats(2, 3), floats(4, 3), _BIAS, transposed=True),
        sample("(out, in), without bias", floats(2, 3), floats(4, 3), None, transposed=True),
        sample("(out, in), square", floats(2, 3), floats(3, 3), floats(3), transposed=True),
        sample("(out, in), vector", floats(3), floats(4, 3), _BIAS, transposed=True),
        sample("(out, in), batch", floats(2, 5, 3), floats(4, 3), _BIAS, transposed=True),
        sample("(out, in), no examples", floats(0, 3), floats(4, 3), _BIAS, transposed=True),
        sample("(out, in), no inputs", floats(2, 0), floats(4, 0), _BIAS, transposed=True),
        sample("(out, in), no outputs", floats(2, 3), floats(0, 3), floats(0), transposed=True),
        sample(
            "(out, in), layouts",
            transposed(floats(2, 5, 3)),
            transposed(floats(4, 3)),
            strided(_BIAS),
            transposed=True,
        ),
    ],
    errors=[
        error("weight of shape (out, in)", ShapeError, floats(2, 3), floats(4, 3), None),
        error("weight with one axis", ShapeError, floats(2, 3), floats(3), None),
        error("weights in a batch", ShapeError, floats(2, 3), floats(2, 3, 4), None),
        error("bias of another length", ShapeError, floats(2, 3), floats(3, 4), floats(3)),
        error("bias that would broadcast", ShapeError, floats(2, 3), floats(3, 4), floats(1)),
        error("0-d", ShapeError, floats(), floats(3, 4), None),
        error(
            "weight of shape (in, out) as transposed",
            ShapeError,
            floats(2, 3),
            floats(3, 4),
            None,
            transposed=True,
        ),
        error(
            "bias of the inputs",
            ShapeError,
            floats(2, 3),
            floats(4, 3),
            floats(3),
            transposed=True,
        ),
    ],
    terms=linear_terms,
)
def linear_reference(
    x: Array, weight: Array, bias: Array | None, *, transposed: bool = False
) -> Array:
    """``x @ weight + bias`` over the last axis of `x`, rounded once."""
    weight = weight.T if transposed else weight
    result = np.empty((*x.shape[:-1], weight.shape[1]))
    for index in np.ndindex(result.shape):
        terms = x[index[:-1]] * weight[:, index[-1]]
        result[index] = math.fsum(terms.tolist()) + (0.0 if bias is None else bias[index[-1]])
    return result


def _linear_grad_terms(x: Array, g: Array, *, transposed: bool = False) -> tuple[int, float]:
    """One bound for both outputs."""
    both = _linear_grad(np.abs(x), np.abs(g), transposed=transposed)
    return math.prod(x.shape[:-1]) or 1, max([float(item.max(initial=0.0)) for item in both])


@reference(
    "linear_grad",
    samples=[
        sample("matrix", floats(5, 3), floats(5, 4, phase=0.3)),
        sample("vector", floats(3), floats(4, phase=0.3)),
        sample("batch", floats(2, 5, 3), floats(2, 5, 4, phase=0.3)),
        sample("many examples", floats(40, 5, 3), floats(40, 5, 2, phase=0.3)),
        sample("one output", floats(6, 3), floats(6, 1, phase=0.3)),
        sample("no examples", floats(0, 3), floats(0, 4)),
        sample("no examples in a batch", floats(2, 0, 3), floats(2, 0, 4)),
        sample("no inputs", floats(2, 0), floats(2, 4)),
        sample("no outputs", floats(2, 3), floats(2, 0)),
        sample("layouts", transposed(floats(5, 3)), strided(floats(5, 4, phase=0.3))),
        sample("layouts of a batch", strided(floats(2, 5, 3)), transposed(floats(2, 5, 4))),
        sample("expanded", expanded(floats(3), 5, 3), expanded(floats(1), 5, 4)),
        sample("(out, in)", floats(5, 3), floats(5, 4, phase=0.3), transposed=True),
        sample("(out, in), vector", floats(3), floats(4, phase=0.3), transposed=True),
        sample("(out, in), batch", floats(2, 5, 3), floats(2, 5, 4, phase=0.3), transposed=True),
        sample("(out, in), no examples", floats(0, 3), floats(0, 4), transposed=True),
        sample("(out, in), layouts", transposed(floats(5, 3)), floats(5, 4), transposed=True),
    ],
    errors=[
        error("other examples", ShapeError, floats(5, 3), floats(4, 3)),
        error("another number of axes", ShapeError, floats(2, 5, 3), floats(10, 4)),
        error("0-d", ShapeError, floats(), floats()),
    ],
    terms=_linear_grad_terms,
)
def _linear_grad(x: Array, g: Array, *, transposed: bool = False) -> tuple[Array, Array]:
    rows = math.prod(x.shape[:-1])
    x, g = x.reshape(rows, x.shape[-1]), g.reshape(rows, g.shape[-1])
    weight = np.empty((x.shape[1], g.shape[1]))
    for row, column in np.ndindex(weight.shape):
        weight[row, column] = math.fsum((x[:, row] * g[:, column]).tolist())
    bias = np.array([math.fsum(column.tolist()) for column in g.T])
    return weight.T if transposed else weight, bias


@reference(
    "embedding",
    samples=[
        sample("sentence", floats(5, 3), np.array([1, 4, 0])),
        sample("batch", floats(5, 3), integers(2, 4, low=0, high=5)),
        sample("a row several times", floats(3, 2), np.array([[1, 1], [1, 2]])),
        sample("one index", floats(4, 3), np.array(2)),
        sample("no indices", floats(4, 3), np.zeros((2, 0), np.int64)),
        sample("empty rows", floats(4, 0), np.array([1, 2])),
        sample("layouts", transposed(floats(4, 3)), strided(integers(3, 2, low=0, high=4))),
        sample("indices of uint8", floats(4, 3), np.array([3, 0], np.uint8)),
        sample("indices of int32", floats(4, 3), np.array([3, 0], np.int32)),
    ],
    errors=[
        error("weight with one axis", ShapeError, floats(4), np.array([0])),
        error("weight with three axes", ShapeError, floats(4, 1, 1), np.array([0])),
        error("float indices", DTypeError, floats(4, 3), floats(2)),
        error("index n", OutOfRangeError, floats(4, 3), np.array([0, 4]), in_data=True),
        error("index -1", OutOfRangeError, floats(4, 3), np.array([2, -1]), in_data=True),
        error("index -n", OutOfRangeError, floats(4, 3), np.array([[-4]]), in_data=True),
        error("index -n-1", OutOfRangeError, floats(4, 3), np.array([-5]), in_data=True),
        error("index n of empty rows", OutOfRangeError, floats(3, 0), np.array([3]), in_data=True),
    ],
    exact=True,
)
def _(weight: Array, indices: Array) -> Array:
    result = np.empty((*indices.shape, weight.shape[1]))
    for index in np.ndindex(indices.shape):
        result[index] = weight[int(indices[index])]
    return result


def _embedding_grad_terms(g: Array, indices: Array, *, count: int) -> tuple[int, Array]:
    return max(indices.size, 1), _embedding_grad(np.abs(g), indices, count=count)


@reference(
    "embedding_grad",
    samples=[
        sample("sentence", floats(3, 2), np.array([1, 4, 0]), count=5),
        sample("batch", floats(2, 4, 3), integers(2, 4, low=0, high=5), count=5),
        sample("a row several times", floats(2, 2, 2), np.array([[1, 1], [1, 2]]), count=3),
        sample("many of few rows", floats(125, 8), integers(125, low=0, high=7), count=7),
        sample("long rows", floats(3, 257), np.array([1, 2, 1]), count=3),
        sample("one index", floats(3), np.array(2), count=4),
        sample("no indices", floats(2, 0, 3), np.zeros((2, 0), np.int64), count=4),
        sample("empty rows", floats(2, 0), np.array([1, 2]), count=4),
        sample("no rows", floats(0, 3), np.zeros(0, np.int64), count=0),
        sample(
            "layouts",
            transposed(floats(3, 2, 4)),
            strided(integers(3, 2, low=0, high=4)),
            count=4,
        ),
        sample("expanded", expanded(floats(1), 3, 2), np.array([1, 1, 0]), count=2),
        sample("indices of uint8", floats(2, 3), np.array([3, 0], np.uint8), count=4),
        sample("indices of int32", floats(2, 3), np.array([3, 0], np.int32), count=4),
    ],
    errors=[
        error("other indices", ShapeError, floats(2, 3), np.array([0]), count=4),
        error("0-d", ShapeError, floats(), np.array(0), count=4),
        error("float indices", DTypeError, floats(2, 3), floats(2), count=4),
        error("fewer than no rows", ShapeError, floats(2, 3), np.array([0, 0]), count=-1),
        error("index n", OutOfRangeError, floats(2, 3), np.array([0, 4]), count=4, in_data=True),
        error("index -1", OutOfRangeError, floats(2, 3), np.array([2, -1]), count=4, in_data=True),
        error("index -n", OutOfRangeError, floats(1, 3), np.array([-4]), count=4, in_data=True),
        error(
            "index n of empty rows",
            OutOfRangeError,
            floats(1, 0),
            np.array([4]),
            count=4,
            in_data=True,
        ),
    ],
    terms=_embedding_grad_terms,
)
def _embedding_grad(g: Array, indices: Array, *, count: int) -> Array:
    result = np.zeros((count, g.shape[-1]))
    for index in np.ndindex(indices.shape):
        result[int(indices[index])] += g[index]
    return result
