"""Calls of methods and operators of tensors, of transforms, and of ``burn.quantization``."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from burn import namespace as burn
from burn.dtype import int8
from burn.functions.elementwise import add
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import call, function_calls
from burn.testing.reference_backend import other_device

_X: Final = floats(2, 3)
_OTHER: Final = floats(2, 3, phase=0.7)
_POSITIVE: Final = floats(2, 3, low=1.0, high=3.0)

for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _operator in (f"__{_name}__", f"__r{_name}__"):
        function_calls(
            f"Tensor.{_operator}",
            call("matrices", _POSITIVE, _POSITIVE),
            call("a number", _POSITIVE, 2),
        )
    function_calls(f"Tensor.__i{_name}__", call("matrices", _POSITIVE, _POSITIVE), transforms=False)
for _name in ("and", "or", "xor", "lshift", "rshift"):
    for _operator in (f"__{_name}__", f"__r{_name}__"):
        function_calls(
            f"Tensor.{_operator}", call("integers", integers(4, low=0), integers(4, low=0, high=5))
        )
    function_calls(
        f"Tensor.__i{_name}__",
        call("integers", integers(4, low=0), integers(4, low=0, high=5)),
        transforms=False,
    )
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    function_calls(f"Tensor.__{_name}__", call("matrices", _X, _OTHER), call("a number", _X, 0.5))
for _name in ("__matmul__", "__rmatmul__", "__imatmul__"):
    function_calls(f"Tensor.{_name}", call("square", floats(3, 3), floats(3, 3, phase=0.7)))
for _name in ("__abs__", "__neg__", "__pos__"):
    function_calls(f"Tensor.{_name}", call("a matrix", _X))
function_calls("Tensor.__invert__", call("booleans", booleans(4)), call("integers", integers(4)))
for _name in ("__bool__", "__float__", "__complex__", "item"):
    function_calls(f"Tensor.{_name}", call("one element", floats(1)), transforms=False)
for _name in ("__int__", "__index__"):
    function_calls(f"Tensor.{_name}", call("an integer", np.array(3)), transforms=False)
for _name in ("__len__", "__hash__", "__iter__", "tolist", "__copy__", "detach"):
    if _name != "__hash__":
        function_calls(f"Tensor.{_name}", call("a matrix", _X), transforms=False)
function_calls("Tensor.to_device", call("another device", _X, other_device()), transforms=False)
function_calls("Tensor.assign", call("a matrix", _X, _OTHER), transforms=False)


def _sum_of_squares(x: Any) -> Any:
    return burn.sum(x * x)


def _step(carry: Any, x: Any) -> Any:
    return carry + x, carry * x


for _name in ("grad", "value_and_grad", "hessian", "jacobian"):
    function_calls(
        _name,
        call("a function", _sum_of_squares),
        call("two arguments", operator.mul, (0, 1)),
        transforms=False,
    )
function_calls("vjp", call("one argument", _sum_of_squares, _X), transforms=False)
function_calls("jvp", call("one argument", _sum_of_squares, (_X,), (_OTHER,)), transforms=False)
function_calls("vmap", call("axes", operator.add, (0, None)), transforms=False)
function_calls("checkpoint", call("a function", _sum_of_squares), transforms=False)
function_calls("compile", call("a function", _sum_of_squares), transforms=False)
function_calls("eval_shape", call("one argument", _sum_of_squares, _X), transforms=False)
function_calls("scan", call("rows", _step, floats(3), _X), transforms=False)
function_calls(
    "fori_loop", call("twice", 0, 2, lambda index, x: x * 0.5 + index, _X), transforms=False
)
function_calls(
    "while_loop",
    call("halves", lambda x: burn.sum(x) > 1.0, lambda x: x * 0.5, _POSITIVE),
    transforms=False,
)
function_calls(
    "cond",
    call("of a tensor", booleans(), operator.neg, operator.pos, _X),
    transforms=False,
)

function_calls("tree.flatten", call("a dict", {"a": _X, "b": [_OTHER]}), transforms=False)
function_calls("tree.leaves", call("a dict", {"a": _X, "b": [_OTHER]}), transforms=False)
function_calls("tree.map", call("two", add, [_X], [_OTHER]), transforms=False)

function_calls(
    "quantization.quantize_dynamic", call("defaults", floats(4, 8)), transforms=False, needs=(int8,)
)
function_calls("quantization.is_quantized", call("floats", _X), transforms=False)
function_calls("quantization.default_quant_scheme", call("a device"), transforms=False)
function_calls("quantization.dequantize", call("floats", _X), transforms=False)
