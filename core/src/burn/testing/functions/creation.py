"""Calls of functions that make tensors: filled, counted, drawn, initial weights, windows."""

from __future__ import annotations

import numpy as np

from burn.dtype import Kind
from burn.errors import (
    ArgumentError,
    DTypeError,
    OutOfRangeError,
    ScalarRangeError,
    ShapeError,
)
from burn.testing.arrays import floats, integers
from burn.testing.function_samples import call, function_calls, function_reference, wrong
from burn.testing.op_samples import TESTED_DTYPE, Array

for _name in ("zeros", "ones", "nn.init.zeros", "nn.init.ones"):
    function_calls(
        _name,
        call("a shape", (2, 3)),
        call("a length", 4, dtype="int32"),
        call("each dtype", (2,), dtype=TESTED_DTYPE, kinds=Kind.REAL),
        errors=[wrong("a negative length", ShapeError, (2, -1))],
    )
for _name in ("zeros_like", "ones_like"):
    function_calls(
        _name, call("floats", floats(2, 3)), call("another dtype", integers(3), dtype="float32")
    )
function_calls(
    "full",
    call("a float", (2, 3), 1.5),
    call("an integer", 4, 7, dtype="int32"),
    call("a tensor", (2, 3), floats()),
    errors=[wrong("out of range", ScalarRangeError, 2, 300, dtype="uint8")],
)
function_calls(
    "full_like",
    call("floats", floats(2, 3), 2.5),
    call("a tensor", floats(2, 3), floats()),
)
function_calls("nn.init.constant", call("a shape", (2, 3), 1.5))
function_calls(
    "arange",
    call("a stop", 5),
    call("a step", 1, 9, 3),
    call("floats", 0.0, 1.0, 0.25),
    call("a dtype", 4, dtype="float32"),
)
function_calls(
    "linspace",
    call("five", 0.0, 1.0, 5),
    call("without the end", 0.0, 1.0, 4, endpoint=False),
    call("none", 0.0, 1.0, 0),
)


@function_reference(
    "logspace",
    samples=[
        call("four", 0.0, 3.0, 4),
        call("without the end", -1.0, 1.5, 5, endpoint=False),
        call("another base", -2, 3, 6, base=2.0),
        call("none", 0.0, 1.0, 0),
    ],
    errors=[
        wrong("an infinite exponent", ArgumentError, 0.0, np.inf, 3),
        wrong("a negative base", ArgumentError, 0.0, 1.0, 3, base=-2.0),
    ],
)
def _(start: float, stop: float, num: int, *, base: float = 10.0, endpoint: bool = True) -> Array:
    return np.logspace(start, stop, num, endpoint, base)


@function_reference(
    "geomspace",
    samples=[
        call("four", 1.0, 8.0, 4),
        call("without the end", -3.0, -0.5, 5, endpoint=False),
        call("one", 2.5, 3.0, 1),
        call("none", 0.5, 1.0, 0),
    ],
    errors=[
        wrong("from 0", ArgumentError, 0.0, 1.0, 3),
        wrong("from below to above 0", ArgumentError, -1.0, 1.0, 3),
    ],
)
def _(start: float, stop: float, num: int, *, endpoint: bool = True) -> Array:
    return np.geomspace(start, stop, num, endpoint)


function_calls(
    "eye",
    call("square", 3),
    call("a diagonal above", 2, 4, k=1),
    call("integers", 2, dtype="int32"),
)
function_calls("meshgrid", call("two", floats(2), floats(3)), call("ij", floats(2), indexing="ij"))
function_calls("cartesian_grid", call("a matrix", (2, 3)))
for _name in ("diag_mask", "tril_mask", "triu_mask"):
    function_calls(_name, call("a matrix", (3, 4)), call("a diagonal above", (3, 3), k=1))
function_calls(
    "asarray",
    call("numbers", [1.0, 2.0]),
    call("a tensor", floats(3)),
    call("tensors", [floats(3), floats(3, phase=0.7)]),
    call("a dtype", floats(3), dtype="float32", copy=True),
    transforms=False,
)
function_calls(
    "one_hot",
    call("classes", np.array([0, 2, 1]), 3),
    call("an axis", np.array([[0, 2], [1, 1]]), 3, axis=1, dtype="float32"),
)
function_calls("one_hot_fill", call("classes", np.array([0, 2, 1]), 3, 1.0, -1.0))

for _name in ("hann_window", "hamming_window", "blackman_window"):
    function_calls(f"signal.{_name}", call("periodic", 8), call("symmetric", 5, periodic=False))

for _name in ("random.uniform", "nn.init.uniform"):
    function_calls(_name, call("a shape", (2, 3)), call("bounds", (4,), -1.0, 2.0, dtype="float32"))
for _name in ("random.normal", "nn.init.normal"):
    function_calls(_name, call("a shape", (2, 3)), call("parameters", (4,), 1.0, 2.0))
for _name in ("random.truncated_normal", "nn.init.truncated_normal"):
    function_calls(_name, call("a shape", (2, 3)), call("bounds", (4,), 0.0, 1.0, -1.0, 1.5))
function_calls("random.integers", call("a shape", (2, 3), 0, 9), call("bits", 4, dtype="int32"))
function_calls("random.bernoulli", call("a shape", (2, 3), 0.3))
function_calls("random.permutation", call("a few", 5))
function_calls("random.seed", call("a number", 3))
function_calls(
    "random.categorical",
    call("weights", np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]), 4),
    transforms=False,
)
function_calls(
    "random.choice",
    call("of a number", 9, (2, 3)),
    call("of rows, each once", floats(4, 3), 3, replace=False),
    call("with weights", 4, 5, p=np.array([0.25, 0.5, 0.0, 0.25])),
    call("each once with weights", 4, 3, replace=False, p=np.array([0.25, 0.5, 0.125, 0.125])),
    errors=[
        wrong("too many", ArgumentError, 3, 4, replace=False),
        wrong("of nothing", ArgumentError, floats(0), 1),
        wrong("weights of another length", ShapeError, 3, p=floats(2, low=0.0)),
        wrong("integer weights", DTypeError, 2, p=np.array([1, 2])),
        wrong("a negative weight", OutOfRangeError, 2, p=np.array([-1.0, 2.0]), in_data=True),
        wrong(
            "too few weights",
            OutOfRangeError,
            3,
            2,
            replace=False,
            p=np.array([0.0, 2.0, 0.0]),
            in_data=True,
        ),
    ],
    transforms=False,
)
for _name in ("kaiming_normal", "kaiming_uniform"):
    function_calls(
        f"nn.init.{_name}",
        call("a matrix", (4, 3)),
        call("relu", (4, 3, 2), mode="fan_out", nonlinearity="relu"),
    )
for _name in ("xavier_normal", "xavier_uniform", "orthogonal"):
    function_calls(f"nn.init.{_name}", call("a matrix", (4, 3)), call("a gain", (3, 3), 2.0))
function_calls("nn.init.fans", call("a matrix", (4, 3)))
function_calls("nn.init.gain", call("relu", "relu"), call("a slope", "leaky_relu", 0.1))
