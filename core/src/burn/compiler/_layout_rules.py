"""Rules for casts, and for ops that rearrange elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from burn.compiler._rewriting import Builder, made_by, rewrites
from burn.dtype import DType
from burn.ir import OperationIr, TensorIr


@rewrites("reshape", "expand")
def _identity(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A view of all elements as they are."""
    del program
    x: Any = operation.inputs[0]
    return x if x.shape == operation.outputs[0].shape else None


@rewrites("reshape")
def _reshape_of_reshape(program: Builder, operation: OperationIr) -> TensorIr | None:
    inner = made_by(program, operation.inputs[0], "reshape")
    if inner is None:
        return None
    return program.call("reshape", inner.inputs[0], shape=operation.outputs[0].shape)


@rewrites("permute")
def _permute(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A permutation of a permutation; one of axes of length 1 alone is a reshape."""
    x: Any = operation.inputs[0]
    axes: Any = operation.attributes["axes"]
    longer = [axis for axis in axes if x.shape[axis] != 1]
    if longer == sorted(longer):
        return program.call("reshape", x, shape=operation.outputs[0].shape)
    inner = made_by(program, x, "permute")
    if inner is None:
        return None
    first = inner.attributes["axes"]
    return program.call("permute", inner.inputs[0], axes=tuple([first[axis] for axis in axes]))


@rewrites("expand")
def _expand(program: Builder, operation: OperationIr) -> TensorIr | None:
    """An expansion of an expansion, or of a reshape that adds axes before all others."""
    x: Any = operation.inputs[0]
    shape = operation.outputs[0].shape
    inner = program.maker(x)
    if inner is None or inner.name not in {"expand", "reshape"}:
        return None
    below: Any = inner.inputs[0]
    added = len(x.shape) - len(below.shape)
    if inner.name == "reshape" and x.shape != (1,) * added + below.shape:
        return None
    return program.call("expand", below, shape=shape)


@rewrites("slice")
def _slice(program: Builder, operation: OperationIr) -> TensorIr | None:
    """All elements in order, or a slice of a slice."""
    x: Any = operation.inputs[0]
    slices: Any = operation.attributes["slices"]
    if all(
        start == 0 and length == extent and (step == 1 or length == 1)
        for (start, length, step), extent in zip(slices, x.shape, strict=True)
    ):
        return x  # type: ignore[no-any-return]  # a tensor
    inner = made_by(program, x, "slice")
    if inner is None:
        return None
    whole = [
        (first + start * stride, length, stride * step)
        for (first, _, stride), (start, length, step) in zip(
            inner.attributes["slices"], slices, strict=True
        )
    ]
    return program.call("slice", inner.inputs[0], slices=tuple(whole))


@rewrites("index_axis")
def _index_axis(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A slice, and a reshape: for these there are rules."""
    x: Any = operation.inputs[0]
    if None in x.shape:
        return None
    slices = [(0, length, 1) for length in x.shape]
    slices[operation.attributes["axis"]] = (operation.attributes["index"], 1, 1)
    part = program.call("slice", x, slices=tuple(slices))
    return program.call("reshape", part, shape=operation.outputs[0].shape)


@rewrites("flip")
def _flip(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A reversal of axes of length 1 alone, or of a reversal of the same axes."""
    x: Any = operation.inputs[0]
    axes = {axis for axis in operation.attributes["axes"] if x.shape[axis] != 1}
    if not axes:
        return x  # type: ignore[no-any-return]  # a tensor
    inner = made_by(program, x, "flip")
    if inner is None or set(inner.attributes["axes"]) != axes:
        return None
    return inner.inputs[0]  # type: ignore[return-value]  # the operand of flip is a tensor


@rewrites("slice_assign")
def _slice_assign(program: Builder, operation: OperationIr) -> TensorIr | None:
    """An assignment to all elements."""
    del program
    x, value = operation.inputs
    if value.__class__ is not TensorIr or value.shape != x.shape:  # type: ignore[union-attr]  # x is a tensor
        return None
    slices = operation.attributes["slices"]
    return value if all(step == 1 or length == 1 for _, length, step in slices) else None


@rewrites("concat")
def _concat(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A concatenation of one tensor; those without elements do not count."""
    del program
    parts: Any = operation.inputs[0]
    shape = operation.outputs[0].shape
    return next((part for part in parts if part.shape == shape), None)


@rewrites("cast")
def _cast(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A cast to the same dtype, or of a cast that keeps each value."""
    x: Any = operation.inputs[0]
    dtype: DType = operation.outputs[0].dtype
    if x.dtype is dtype:
        return x  # type: ignore[no-any-return]  # a tensor
    inner = made_by(program, x, "cast")
    if inner is None:
        return None
    below: Any = inner.inputs[0]
    if not _keeps_values(below.dtype, x.dtype):
        return None
    if below.dtype is dtype:
        return below  # type: ignore[no-any-return]  # a tensor
    # Floats become integers by other rules than integers of another width do.
    if below.dtype.is_float is not x.dtype.is_float and not dtype.is_float:
        return None
    return program.call("cast", below, dtype=dtype)


_SIGNIFICANDS: Final[Mapping[str, tuple[int, int]]] = {
    "float16": (11, 5),
    "bfloat16": (8, 8),
    "float32": (24, 8),
    "float64": (53, 11),
}
"""Bits of the significands and of the exponents of floats."""


def _keeps_values(source: DType, target: DType) -> bool:
    """Whether each value of a dtype is one of another."""
    if source.is_complex or target.is_complex or target.is_bool:
        return False
    if source.is_bool:
        return True
    if source.is_float:
        if not target.is_float:
            return False
        pairs = zip(_SIGNIFICANDS[source.name], _SIGNIFICANDS[target.name], strict=True)
        return all(narrow <= wide for narrow, wide in pairs)
    low, high = source.integer_range
    if target.is_float:
        return max(-low, high) <= 1 << _SIGNIFICANDS[target.name][0] and target.name != "float16"
    lowest, highest = target.integer_range
    return lowest <= low and high <= highest


@rewrites("linear")
def _linear_of_transpose(program: Builder, operation: OperationIr) -> TensorIr | None:
    """A linear layer with a transposed weight."""
    x, weight, bias = operation.inputs
    inner = made_by(program, weight, "permute")
    if inner is None:
        return None
    transposed = not operation.attributes.get("transposed", False)
    return program.call("linear", x, inner.inputs[0], bias, transposed=transposed)
