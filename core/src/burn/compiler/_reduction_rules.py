"""Rules for reductions."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from burn.compiler._rewriting import Builder, made_by, rewrites
from burn.dtype import float32
from burn.ir import OperationIr, TensorIr
from burn.ops import REGISTRY

_COMBINED: Final = {name: op.combines for name, op in REGISTRY.items() if op.combines}
"""Reductions whose results for parts of the elements make that for all."""


@rewrites(*_COMBINED)
def _of_one_element(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A reduction over axes of length 1: the elements themselves."""
    x: Any = operation.inputs[0]
    output = operation.outputs[0]
    if any(x.shape[axis] != 1 for axis in operation.attributes["axis"]):
        return None
    same = program.call("reshape", x, shape=output.shape)
    return program.call("cast", same, dtype=output.dtype)


@rewrites(*[name for name, kind in _COMBINED.items() if kind != "product"])
def _of_repeated_elements(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A reduction over axes along which elements are repeated; a sum over them is a product."""
    x: Any = operation.inputs[0]
    inner = made_by(program, x, "expand")
    if inner is None or 0 in x.shape:
        return None
    below: Any = inner.inputs[0]
    lengths = (1,) * (len(x.shape) - len(below.shape)) + below.shape
    axes: Any = operation.attributes["axis"]
    repeated = {axis for axis in axes if lengths[axis] != x.shape[axis]}
    count = prod([x.shape[axis] for axis in repeated])
    if not repeated or (operation.name == "sum" and not _is_number_of(operation, count)):
        return None
    once = program.call("reshape", below, shape=lengths)
    # Axes that stay are expanded as before, so that the result has all of its elements.
    kept = [lengths[axis] if axis in repeated else length for axis, length in enumerate(x.shape)]
    reduced = program.call(
        operation.name,
        program.call("expand", once, shape=tuple(kept)),
        **operation.attributes,
    )
    return reduced if operation.name != "sum" else program.call("multiply", reduced, count)


def _is_number_of(operation: OperationIr, count: int) -> bool:
    """Whether a product with a number can be the sum of as many equal elements."""
    dtype = operation.outputs[0].dtype
    if dtype.is_integer:
        return count <= dtype.integer_range[1]
    return dtype.is_float and dtype.itemsize >= float32.itemsize


@rewrites("sum")
def _sum_of_sum(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A sum over some axes of a sum over others, of the same dtype."""
    inner = made_by(program, operation.inputs[0], "sum")
    if inner is None:
        return None
    below: Any = inner.inputs[0]
    output = operation.outputs[0]
    if not below.dtype is inner.outputs[0].dtype is output.dtype:
        return None
    first = inner.attributes["axis"]
    kept = range(len(below.shape))
    if not inner.attributes.get("keepdims", False):
        kept = [axis for axis in kept if axis not in first]  # type: ignore[assignment]  # axes too
    axes = sorted({*first, *[kept[axis] for axis in operation.attributes["axis"]]})
    total = program.call("sum", below, axis=tuple(axes), keepdims=False, dtype=output.dtype)
    return program.call("reshape", total, shape=output.shape)
