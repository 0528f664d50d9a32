"""What a generated kernel computes, in NumPy: the specification of `burn.kernels.kernel`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn.compiler import KernelCall
from burn.dtype import DType
from burn.kernels.kernel import (
    Apply,
    Index,
    Kernel,
    Length,
    Literal,
    Load,
    Node,
    Reduce,
    Scalar,
    Store,
)
from kernel_functions import NUMPY


def run_kernel(
    kernel: Kernel, inputs: Sequence[Any], scalars: Sequence[float], out: Sequence[Any]
) -> None:
    """Write the outputs of a kernel into flat arrays, from flat arrays."""
    kernel = fixed(kernel, scalars)
    grid = np.indices(kernel.space, sparse=False).reshape(len(kernel.space), *kernel.space)
    columns = tuple(range(kernel.rows, len(kernel.space)))
    values: list[Any] = []

    def address(offset: int, strides: Sequence[int]) -> Any:
        total = np.full(kernel.space, offset, np.int64)
        for axis, stride in enumerate(strides):
            total += grid[axis] * stride
        return total

    valid = np.full(kernel.space, True)
    if kernel.ragged is not None:
        valid = grid[0] * kernel.space[-1] + grid[-1] < kernel.ragged
    with np.errstate(all="ignore"):
        for node in kernel.body:
            values.append(_value(node, values, address, grid, inputs, scalars, columns, valid))
    for store in kernel.stores:
        index = address(store.offset, store.strides)
        value = np.broadcast_to(values[store.node], kernel.space)
        if kernel.is_of_rows(store):
            first = (..., *[0] * len(columns))
            index, value = index[first], value[first]
        else:
            index, value = index[valid], value[valid]
        assert len(np.unique(index)) == index.size
        out[store.output][index] = value.astype(kernel.outputs[store.output][0].numpy)


def fixed(kernel: Kernel, scalars: Sequence[float]) -> Kernel:
    """A kernel with the lengths of a launch."""

    def number(extent: Any) -> Any:
        return scalars[extent.number] if isinstance(extent, Length) else extent

    def access(node: Any) -> Any:
        if not isinstance(node, Load | Store):
            return node
        strides = tuple(map(number, node.strides))
        node = node._replace(offset=number(node.offset), strides=strides)
        if isinstance(node, Store):
            return node
        return node._replace(
            gathers=tuple([(gather, number(step)) for gather, step in node.gathers])
        )

    return dataclasses.replace(
        kernel,
        space=tuple(map(number, kernel.space)),
        body=tuple(map(access, kernel.body)),
        stores=tuple(map(access, kernel.stores)),
        ragged=number(kernel.ragged),
    )


def _value(
    node: Node,
    values: list[Any],
    address: Any,
    grid: Any,
    inputs: Sequence[Any],
    scalars: Sequence[float],
    columns: tuple[int, ...],
    valid: Any,
) -> Any:
    """The values of a node, an array over the space."""
    shape = grid.shape[1:]
    match node:
        case Load():
            index = np.where(valid, address(node.offset, node.strides), 0)
            return _loaded(node, values, index, inputs[node.input])
        case Index(axis, dtype):
            return grid[axis].astype(dtype.numpy)
        case Literal(value, dtype):
            return np.full(shape, value, _held(dtype))
        case Scalar(number, dtype):
            return np.full(shape, scalars[number], _held(dtype))
        case Apply():
            return _applied(node, [values[operand] for operand in node.operands])
    return _reduced(node, values[node.operand], columns, valid)


def _loaded(node: Load, values: list[Any], index: Any, given: Any) -> Any:
    for gather, stride in node.gathers:
        index = index + values[gather].astype(np.int64) * stride
    if node.guard is None:
        assert (index >= 0).all()
        return given[index].astype(_held(node.dtype))
    index = np.where(values[node.guard], index, 0)
    assert (index >= 0).all()
    value = np.where(values[node.guard], given[index], np.zeros((), given.dtype))
    return value.astype(_held(node.dtype))


def _held(dtype: DType) -> Any:
    """The NumPy dtype in which values of a dtype are held."""
    return np.float32 if dtype.is_float and dtype.itemsize < 4 else dtype.numpy


def _reduced(node: Reduce, value: Any, columns: tuple[int, ...], valid: Any) -> Any:
    function = {
        "sum": np.add,
        "product": np.multiply,
        "max": np.logical_or if node.dtype.is_bool else np.maximum,
        "min": np.logical_and if node.dtype.is_bool else np.minimum,
    }[node.kind]
    if not valid.all():
        neutral = {"sum": 0, "product": 1, "max": -np.inf, "min": np.inf}[node.kind]
        if value.dtype.kind != "f" and node.kind in {"max", "min"}:
            limits = np.iinfo(value.dtype)
            neutral = limits.min if node.kind == "max" else limits.max
        value = np.where(valid, value, np.array(neutral, value.dtype))
    result = function.reduce(value, axis=columns, keepdims=True, dtype=value.dtype)
    return np.broadcast_to(result, value.shape)


def _applied(node: Apply, operands: list[Any]) -> Any:
    if node.function == "cast":
        return _cast(operands[0], node.dtype)
    return np.asarray(NUMPY[node.function](*operands)).astype(_held(node.dtype))


def _cast(value: Any, dtype: DType) -> Any:
    if dtype.is_bool:
        return value != 0
    if value.dtype.kind == "f" and dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        wide = np.where(np.isnan(value), 0, value).astype(np.float64)
        low, high = wide <= float(limits.min), wide >= float(limits.max)
        inside = np.where(low | high, 0, wide).astype(dtype.numpy)
        return np.where(low, limits.min, np.where(high, limits.max, inside)).astype(dtype.numpy)
    return value.astype(dtype.numpy).astype(_held(dtype))


def load_reference(call: KernelCall) -> Any:
    """What launches a kernel on arrays: for `burn.compiler.Straight`."""
    kernel = call.kernel

    def launch(inputs: Any, scalars: Any, out: Any) -> Any:
        for given, tensor in zip(inputs, call.inputs, strict=True):
            assert (given.shape, given.dtype) == (tensor.shape, tensor.dtype.numpy)
        made = []
        for item, tensor in zip(out, call.outputs, strict=True):
            assert item is None or item.flags.c_contiguous
            made.append(
                np.full(tensor.shape, 77).astype(tensor.dtype.numpy) if item is None else item
            )
        flat = [
            np.array(source).reshape(-1) for source in inputs
        ]  # read before anything is written
        run_kernel(kernel, flat, scalars, [item.reshape(-1) for item in made])
        return tuple(made)

    return launch
