"""What a generated kernel computes, in NumPy: the specification of `burn.kernels.kernel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burn.dtype import DType
from burn.kernels.kernel import Apply, Index, Kernel, Literal, Load, Reduce, Scalar


def run_kernel(
    kernel: Kernel, inputs: Sequence[Any], scalars: Sequence[float], out: Sequence[Any]
) -> None:
    """Write the outputs of a kernel into flat arrays, from flat arrays."""
    grid = np.indices(kernel.space, sparse=False).reshape(len(kernel.space), *kernel.space)
    columns = tuple(range(kernel.rows, len(kernel.space)))
    values: list[Any] = []

    def address(offset: int, strides: Sequence[int]) -> Any:
        total = np.full(kernel.space, offset, np.int64)
        for axis, stride in enumerate(strides):
            total += grid[axis] * stride
        return total

    with np.errstate(all="ignore"):
        for node in kernel.body:
            if isinstance(node, Load):
                index = address(node.offset, node.strides)
                for one, stride in node.gathers:
                    index = index + values[one].astype(np.int64) * stride
                if node.guard is not None:
                    index = np.where(values[node.guard], index, 0)
                assert (index >= 0).all()
                value = inputs[node.input][index]
                if node.guard is not None:
                    value = np.where(values[node.guard], value, np.zeros((), value.dtype))
                values.append(value.astype(_held(node.dtype)))
            elif isinstance(node, Index):
                values.append(grid[node.axis].astype(node.dtype.numpy))
            elif isinstance(node, Literal):
                values.append(np.full(kernel.space, node.value, _held(node.dtype)))
            elif isinstance(node, Scalar):
                values.append(np.full(kernel.space, scalars[node.number], _held(node.dtype)))
            elif isinstance(node, Apply):
                values.append(_applied(node, [values[one] for one in node.operands]))
            else:
                values.append(_reduced(node, values[node.operand], columns))
    for store in kernel.stores:
        index = address(store.offset, store.strides)
        value = np.broadcast_to(values[store.node], kernel.space)
        if kernel.is_row_level[store.node]:
            first = (..., *[0] * len(columns))
            index, value = index[first], value[first]
        assert len(np.unique(index)) == index.size
        out[store.output][index] = value.astype(kernel.outputs[store.output][0].numpy)


def _held(dtype: DType) -> Any:
    """The NumPy dtype in which values of a dtype are held."""
    return np.float32 if dtype.is_float and dtype.itemsize < 4 else dtype.numpy


def _reduced(node: Reduce, value: Any, columns: tuple[int, ...]) -> Any:
    function = {
        "sum": np.add,
        "product": np.multiply,
        "max": np.logical_or if node.dtype.is_bool else np.maximum,
        "min": np.logical_and if node.dtype.is_bool else np.minimum,
    }[node.kind]
    result = function.reduce(value, axis=columns, keepdims=True, dtype=value.dtype)
    return np.broadcast_to(result, value.shape)


def _applied(node: Apply, operands: list[Any]) -> Any:
    if node.function == "cast":
        return _cast(operands[0], node.dtype)
    result = _FUNCTIONS[node.function](*operands)
    return np.asarray(result).astype(_held(node.dtype))


def _cast(value: Any, dtype: DType) -> Any:
    if dtype.is_bool:
        return value != 0
    if value.dtype.kind == "f" and dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        whole = np.trunc(np.nan_to_num(value.astype(np.float64), posinf=np.inf, neginf=-np.inf))
        result = np.clip(whole, float(limits.min), float(limits.max))
        top = whole >= float(limits.max)
        return np.where(top, limits.max, np.where(top, 0, result).astype(dtype.numpy))
    return value.astype(dtype.numpy).astype(_held(dtype))


def _by_zero(function: Callable[..., Any]) -> Callable[..., Any]:
    """A division of integers, which gives 0 where the divisor is 0."""

    def divide(x: Any, y: Any) -> Any:
        if x.dtype.kind == "f":
            return function(x, y)
        return np.where(y == 0, 0, function(x, np.where(y == 0, 1, y)))

    return divide


_erf = np.vectorize(__import__("math").erf, otypes=[np.float64])

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "remainder": _by_zero(np.remainder),
    "fmod": _by_zero(np.fmod),
    "floor_divide": _by_zero(np.floor_divide),
    "pow": np.power,
    "where": np.where,
    "bitwise_not": np.invert,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "atan2": np.arctan2,
    "round": np.rint,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
}
for _name in (
    "add subtract multiply divide negative abs maximum minimum equal not_equal less less_equal "
    "greater greater_equal bitwise_and bitwise_or bitwise_xor copysign hypot floor ceil trunc sqrt "
    "exp expm1 log log1p log2 log10 sin cos tan sinh cosh tanh"
).split():
    _FUNCTIONS[_name] = getattr(np, _name)
