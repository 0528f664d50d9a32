"""Suite ``rounding``: a compiled function rounds where the function does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from burn import namespace as burn
from burn.dtype import DType, float32
from burn.functions.common import dispatch
from burn.testing._check import Check, Failure
from burn.testing.op_samples import Array, OpSamples
from burn.testing.subject import Subject
from burn.testing.suites.expectations import expect, expect_values
from burn.testing.suites.suite import Suite, named_check

__all__ = ["SUITES"]

Function: TypeAlias = Callable[..., dict[str, Any]]

_CALLS: Final = 3
"""Calls of a function: a device may record the second one, and replay it from the third on."""

_SHAPE: Final = (13, 61)
"""No multiple of the lanes of a vector."""

_SCALE_STEPS: Final = 255.0
"""Steps of a quantization by 8 bits."""

_LAST_CODE: Final = 155.0
"""The largest of the numbers that are quantized, in steps."""

_BINS: Final = 37

_CAPABILITY: Final = "`Backend.rounds_each_operation`"


def _products(x: Any, same: Any, y: Any, z: Any, grid: Any) -> dict[str, Any]:
    del grid
    return {
        "sqrt(x * x - y * y) for y equal to x": burn.sqrt(x * x - same * same),
        "x * y - x * y": x * y - same * y,
        "x * y + z": x * y + z,
        "x * y - z": x * y - z,
        "z - x * y": z - x * y,
        "x * y + z * x": x * y + z * x,
        "x - 0.1 * y": x - 0.1 * y,
        "x * y * z + x": x * y * z + x,
        "-(x * y) + z": -(x * y) + z,
        "square(x) + y": burn.square(x) + y,
    }


def _quotients(x: Any, same: Any, y: Any, z: Any, grid: Any) -> dict[str, Any]:
    del grid
    largest = burn.max(x, axis=1, keepdims=True)
    scale = burn.max(burn.abs(y), axis=1, keepdims=True)
    return {
        "x / max(x)": same / largest,
        "floor(x / max(x))": burn.floor(same / largest),
        "x / s for a number s of each row": x / scale,
        "x / s for a number s": x / burn.max(burn.abs(z)),
        "x / 3": x / 3.0,
        "x / y": x / y,
        "1 / x": 1.0 / x,
        "x / sqrt(s)": x / burn.sqrt(scale),
        "(x - m) / s": (x - largest) / scale,
    }


def _roundings(x: Any, same: Any, y: Any, z: Any, grid: Any) -> dict[str, Any]:
    smallest = burn.max(grid, axis=1, keepdims=True) / _LAST_CODE
    scale = burn.max(burn.abs(y), axis=1, keepdims=True)
    return {
        "floor(10 * x + y)": burn.floor(10.0 * x + y),
        "ceil(x / s)": burn.ceil(x / scale),
        "round(x * y / s)": burn.round(x * y / scale),
        "trunc(x * y - z)": burn.trunc(x * y - z),
        "int32(100 * x + y)": burn.astype(100.0 * x + y, burn.int32),
        "x * y > z * x": x * y > z * x,
        "x * y - x * y == 0": x * y - same * y == 0.0,
        "x / s >= 1": y / scale >= 1.0,
        "round(x / s) of halves": burn.round(grid / smallest),
    }


def _quantized(x: Any, same: Any, y: Any, z: Any, grid: Any) -> dict[str, Any]:
    """As ONNX defines DynamicQuantizeLinear, each row by itself."""
    del x, same, y, z
    low = burn.minimum(burn.min(grid, axis=1, keepdims=True), 0.0)
    high = burn.maximum(burn.max(grid, axis=1, keepdims=True), 0.0)
    scale = (high - low) / _SCALE_STEPS
    zero = burn.round(-low / scale)
    codes = burn.clip(burn.round(grid / scale) + zero, 0.0, _SCALE_STEPS)
    return {"the scale": scale, "the zero point": zero, "the codes": codes}


def _histogram(x: Any, same: Any, y: Any, z: Any, grid: Any) -> dict[str, Any]:
    del same, y, z, grid
    low, high = burn.min(x), burn.max(x)
    return {
        "histogram(x)": burn.histogram(x, bins=_BINS)[0],
        "the bins of x": burn.floor((x - low) / (high - low) * _BINS),
    }


def _single(x: Any, same: Any, y: Any, z: Any, grid: Any) -> dict[str, Any]:
    """Of 16 bits what is rounded once, at the end, as chains stay in float32."""
    return {
        "x + y": x + y,
        "x - y": x - y,
        "x * y": x * y,
        "x / y": x / y,
        "sqrt(z)": burn.sqrt(burn.abs(z)),
        "x * y - x * y": x * y - same * y,
        "x / max(x)": x / burn.max(x, axis=1, keepdims=True),
        "x > y": x > y,
        "round(x)": burn.round(grid),
    }


_FUNCTIONS: Final[dict[str, Function]] = {
    "products and sums": _products,
    "quotients": _quotients,
    "roundings, casts and comparisons": _roundings,
    "dynamic quantization": _quantized,
    "histogram": _histogram,
}


def _checks(subject: Subject, table: Sequence[OpSamples]) -> Iterator[Check]:
    del table
    if not subject.backend.rounds_each_operation:
        return
    for dtype in DType.members():
        if not dtype.is_float or not subject.supports(dtype):
            continue
        is_wide = dtype.itemsize >= float32.itemsize
        functions = _FUNCTIONS if is_wide else {"single operations": _single}
        for note, function in functions.items():
            yield named_check(subject, "rounding", "", dtype, note, _has_its_bits, function, dtype)
        if is_wide:
            note = "relaxed"
            yield named_check(subject, "rounding", "", dtype, note, _is_near, dtype)


def _operands(subject: Subject, dtype: DType) -> list[Any]:
    """Normal numbers, the first two the same; and halves times a number of each row."""
    x, y, z = np.random.default_rng(0).normal(size=(3, *_SHAPE))
    rows, columns = _SHAPE
    grid = np.arange(columns) * 3 - 89.5
    grid[:2] = _LAST_CODE - _SCALE_STEPS, _LAST_CODE
    factors = (np.arange(rows) * 2 + 3) / 8
    arrays = (x, x, y, z, factors[:, None] * grid)
    return [burn.asarray(array.astype(dtype.numpy), device=subject.handle) for array in arrays]


def _has_its_bits(subject: Subject, function: Function, dtype: DType) -> None:
    operands = _operands(subject, dtype)
    expected = _arrays(function(*operands))
    compiled = burn.compile(function)
    for number in range(_CALLS):
        for what, found in _arrays(compiled(*operands)).items():
            differs = _bits(found) != _bits(expected[what])
            if differs.any():
                index = tuple(np.argwhere(differs)[0].tolist())
                raise Failure(
                    f"call {number} of a compiled function gives {what} = {found[index]} at "
                    f"{index} where the function gives {expected[what][index]}, and other bits at "
                    f"{differs.sum()} of {differs.size} indices. See {_CAPABILITY}"
                )


def _is_near(subject: Subject, dtype: DType) -> None:
    """A relaxed program has tolerances, as any operation."""

    def function(x: Any, y: Any, z: Any) -> list[Any]:
        return [x * y + 3.0 * z, x / burn.max(burn.abs(y), axis=1, keepdims=True)]

    operands = _operands(subject, dtype)[1:4]
    expected = function(*operands)
    compiled = burn.compile(function, relaxed=True)
    for _ in range(_CALLS):
        for found, other in zip(compiled(*operands), expected, strict=True):
            expect_values("a result of a relaxed program", found, other.numpy(), exact=False)
    expect(compiled.graph.relaxed, "the graph of a relaxed program does not say so")


def _arrays(results: dict[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(dispatch.to_data(result).array) for name, result in results.items()}


def _bits(x: Array) -> Array:
    """The bits of numbers; NaN has one form."""
    if x.dtype.kind in "biu":
        return x
    one_form = np.where(np.isnan(x), x.dtype.type(np.nan), x)
    return one_form.view(f"u{x.dtype.itemsize}")


SUITES: Final = [
    Suite(
        "rounding",
        "a compiled function rounds where the function does: the bits of + - * / sqrt, casts, ...",
        _checks,
        of_devices=True,
        compiles=True,
    )
]
