"""Calls of functions that arrange, join, split, index and write elements."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.errors import AxisError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import call, function_calls, wrong

_X: Final = floats(2, 3, 4)
_M: Final = floats(3, 4)
_INDICES: Final = np.array([2, 0])

function_calls("reshape", call("two axes", _X, (6, 4)), call("the rest", _X, (2, -1), copy=True))
function_calls("flatten", call("all", _X), call("two axes", _X, 1, 2))
function_calls("permute_dims", call("all axes", _X, (2, 0, 1)))
function_calls("transpose", call("backwards", _X), call("as said", _X, (0, 2, 1)))
function_calls("matrix_transpose", call("matrices", _X))
function_calls("swapaxes", call("two", _X, 0, -1))
function_calls("moveaxis", call("one", _X, 0, 2), call("two", _X, (0, 1), (2, 0)))
function_calls("expand_dims", call("the first", _M), call("two", _M, (0, 2)))
function_calls("squeeze", call("all", floats(1, 3, 1)), call("one", floats(1, 3, 1), 0))
function_calls("broadcast_to", call("rows", floats(4), (3, 4)))
function_calls("broadcast_arrays", call("two", floats(4), floats(3, 1)))
function_calls("broadcast_shapes", call("two", (3, 1), (4,)))
function_calls("flip", call("all", _M), call("an axis", _M, axis=1))
function_calls("roll", call("all", _M, 2), call("axes", _M, (1, -1), axis=(0, 1)))
function_calls("tile", call("rows", _M, (2, 1)), call("a number", floats(3), 2))
function_calls(
    "repeat",
    call("each", _M, 2, axis=0),
    call("of all", floats(3), 3),
    call("counted", _M, [1, 2, 0], axis=0),
)
function_calls("concat", call("rows", [_M, _M[:1]]), call("all", [_M, floats(2)], axis=None))
function_calls("stack", call("two", [_M, _M]), call("the last", [_M, _M], axis=-1))
function_calls("unstack", call("rows", _M), call("columns", _M, axis=1))
function_calls("split", call("parts", _M, 2, axis=1), call("indices", _M, [1, 2]))
function_calls("split_with_sizes", call("two", _M, [1, 3], axis=1))
function_calls("chunk", call("two", _M, 2))
function_calls(
    "narrow",
    call("rows", _M, 1, 2, axis=0),
    errors=[wrong("beyond the end", AxisError, _M, 2, 2, axis=0)],
)
function_calls("pad", call("zeros", _M, ((1, 0), (0, 2))), call("edges", _M, 1, "edge"))
function_calls("unfold", call("windows", _M, 2, axis=1, step=2))
for _name in ("tril", "triu"):
    function_calls(_name, call("matrices", _X), call("a diagonal above", _M, k=1))
for _name in ("linalg.diag", "linalg.diagonal", "linalg.trace"):
    function_calls(_name, call("a matrix", _M), call("a diagonal above", _M, offset=1))

function_calls("take_along_axis", call("rows", _M, np.array([[0, 2, 1, 0]]), axis=0))
function_calls(
    "put_along_axis",
    call("rows", _M, np.array([[0, 2, 1, 0]]), floats(1, 4), axis=0),
    call("a number", _M, np.array([[0, 2, 1, 0]]), 0.5, axis=0),
)
function_calls("scatter_nd", call("rows", _M, np.array([[0], [2]]), floats(2, 4), update="add"))
function_calls("select_add", call("rows", _M, _INDICES, floats(2, 4), axis=0))
function_calls("select_assign", call("rows", _M, _INDICES, floats(2, 4), axis=0, update="add"))
function_calls(
    "mask_fill",
    call("a number", _M, booleans(3, 4), -1.0),
    call("a tensor", _M, booleans(3, 4), np.array(0.5)),
)
function_calls(
    "Tensor.__getitem__",
    call("a slice", _M, slice(0, 2)),
    call("an index", _M, -1),
    call("both", _M, (slice(None, None, 2), 1)),
    call("indices", _M, _INDICES),
    call("a mask", floats(4), booleans(4)),
    transforms=False,
    errors=[wrong("out of range", AxisError, _M, 3)],
)
function_calls("Tensor.__setitem__", call("a number", _M, (0, slice(1, 3)), 1.0), transforms=False)
function_calls("apply_op", call("an op", "relu", _M))
function_calls("result_type", call("a tensor and a number", floats(2), integers(2), 1.5))
function_calls("can_cast", call("dtypes", "int32", "int64"), call("a tensor", floats(2), "float64"))
function_calls("isdtype", call("a kind", "int32", "integral"))
function_calls("finfo", call("a name", "float32"))
function_calls("iinfo", call("a name", "int16"))
function_calls("einsum", call("a product", "ij,jk->ik", _M, floats(4, 2)))
