"""Samples of casts, and of ops that rearrange elements."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.aliases import Shape
from burn.dtype import DType, Kind, bool_, float64, int8
from burn.errors import ArgumentError, AxisError, DTypeError, OperandTypeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    SPECIAL,
    booleans,
    expanded,
    floats,
    integers,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import (
    SAME_SIZE_INTEGER,
    TESTED_DTYPE,
    Array,
    Sample,
    error,
    reference,
    sample,
)
from burn.testing.samples.elementwise.elementwise_samples import each

_REAL: Final = [dtype for dtype in DType.members() if dtype.kind in Kind.REAL]

# Halves to truncate, and both sides of the limits of every integer dtype.
_NUMBERS: Final = np.array(
    [
        *SPECIAL,
        *(0.9, -0.9, 1.5, -1.5, 100.75, -100.75),
        *(127.5, 128.0, 255.5, 256.0, -128.5, -129.0, 300.0, -300.0),
        *(32767.0, 32768.0, -32768.0, -40000.0, 65535.0, 65536.0),
        *(2.0**31 - 128, 2.0**31, -(2.0**31), 2.0**32, 2.0**40, -(2.0**40)),
        *(2.0**63 - 1024, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30),
    ]
)


# Half-way between two numbers of bfloat16, float16 or float32, next to an even and to an odd one;
# where float16 and bfloat16 end; and a NaN that an addition carries over into another number.
_ROUNDED: Final = np.array(
    [
        *(1 + odd * 2.0**-bits for bits in (8, 11, 24) for odd in (1, 3)),
        *(-1 - odd * 2.0**-bits for bits in (8, 11, 24) for odd in (1, 3)),
        *(65504.0, 65519.0, 65520.0, -65519.0, -65520.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25),
        *(255 * 2.0**120, 255.25 * 2.0**120, 255.5 * 2.0**120, -255.5 * 2.0**120),
        *np.array([2**63 - 1, -1]).view(np.float64),
    ]
)

# The same for integers; one more than half-way, which float64 cannot say.
_WIDE: Final = np.array([2**60 + 2**36 + 1, 2**60 + 2**36, 2**60 + 3 * 2**36 - 1, 2**24 + 1])


def _cast_samples(dtype: DType) -> list[Sample]:
    whole = dtype is float64
    return [
        sample(f"floats to {dtype}", _NUMBERS, dtype=dtype, differentiable=whole),
        sample(f"float matrix to {dtype}", floats(2, 3), dtype=dtype, differentiable=whole),
        sample(f"floats to be rounded to {dtype}", _ROUNDED, dtype=dtype, differentiable=whole),
        sample(f"integer limits to {dtype}", LIMITS, dtype=dtype),
        sample(f"integers to be rounded to {dtype}", _WIDE, dtype=dtype),
        sample(f"booleans to {dtype}", booleans(5), dtype=dtype),
    ]


def _saturated(number: float, dtype: DType) -> int:
    low, high = dtype.integer_range
    if math.isnan(number):
        return 0
    return (
        math.trunc(min(max(number, low), high))
        if math.isfinite(number)
        else (high if number > 0 else low)
    )


@reference(
    "cast",
    samples=[
        *[cast_sample for dtype in _REAL for cast_sample in _cast_samples(dtype)],
        sample("0-d", floats(), dtype=float64),
        sample("empty", floats(0, 3), dtype=float64),
        sample("transposed", transposed(floats(3, 4)), dtype=float64),
        sample("strided integers", strided(integers(3, 4)), dtype=DType.of("int32")),
    ],
    exact=True,
)
def _(x: Array, *, dtype: DType) -> Array:
    if dtype.is_bool:
        return np.asarray(x != 0)
    if dtype.is_integer and x.dtype.kind == "f":
        return np.asarray(each(lambda number: _saturated(number, dtype))(x))
    return x


def each_layout(**attributes: Any) -> list[Sample]:
    """A (3, 4) tensor of each kind and layout."""
    return [
        sample("floats", floats(3, 4), **attributes),
        sample("integers", integers(3, 4), **attributes),
        sample("booleans", booleans(3, 4), **attributes),
        sample("transposed", transposed(floats(3, 4)), **attributes),
        sample("strided", strided(floats(3, 4)), **attributes),
        sample("reversed", reversed_view(integers(3, 4)), **attributes),
        sample("expanded", expanded(floats(4), 3, 4), **attributes),
        sample("special floats", np.resize(SPECIAL, (3, 4)), **attributes),
    ]


@reference(
    "reshape",
    samples=[
        *each_layout(shape=(2, 6)),
        sample("to one axis", transposed(floats(2, 3, 2)), shape=(12,)),
        sample("0-d to matrix", floats(), shape=(1, 1)),
        sample("to 0-d", floats(1, 1), shape=()),
        sample("same shape", floats(2, 3), shape=(2, 3)),
        sample("empty", floats(0, 3), shape=(2, 0, 5)),
    ],
    errors=[
        error("another size", ShapeError, floats(2, 3), shape=(4, 2)),
        error("negative length", ShapeError, floats(2, 3), shape=(-2, -3)),
        error("empty to 0-d", ShapeError, floats(0), shape=()),
    ],
)
def _(x: Array, *, shape: Shape) -> Array:
    return np.array(x.reshape(-1).tolist(), x.dtype).reshape(shape)


@reference(
    "permute",
    samples=[
        *each_layout(axes=(1, 0)),
        sample("three axes", floats(2, 3, 4), axes=(2, 0, 1)),
        sample("as it is", floats(2, 3), axes=(0, 1)),
        sample("0-d", floats(), axes=()),
        sample("empty", floats(2, 0, 3), axes=(1, 2, 0)),
    ],
    errors=[
        error("an axis twice", AxisError, floats(2, 3), axes=(0, 0)),
        error("an axis too few", AxisError, floats(2, 3), axes=(0,)),
        error("axis out of range", AxisError, floats(2, 3), axes=(0, 2)),
        error("negative axis", AxisError, floats(2, 3), axes=(-1, 0), lenient=True),
    ],
)
def _(x: Array, *, axes: tuple[int, ...]) -> Array:
    result = np.empty([x.shape[axis] for axis in axes], x.dtype)
    for position in np.ndindex(result.shape):
        result[position] = x[tuple(position[axes.index(axis)] for axis in range(x.ndim))]
    return result


@reference(
    "expand",
    samples=[
        *each_layout(shape=(2, 3, 4)),
        sample("axes of length 1", floats(3, 1), shape=(2, 3, 4)),
        sample("0-d", floats(), shape=(2, 3)),
        sample("integers, 0-d", integers(), shape=(2,)),
        sample("to length 0", floats(1, 3), shape=(0, 3)),
        sample("empty", floats(0, 1), shape=(0, 2)),
        sample("same shape", floats(2, 3), shape=(2, 3)),
    ],
    errors=[
        error("length that is not 1", ShapeError, floats(3), shape=(4,)),
        error("fewer axes", ShapeError, floats(1, 3), shape=(3,)),
        error("fewer axes for one element", ShapeError, floats(1, 1), shape=(3,)),
        error("to length 1", ShapeError, floats(3), shape=(1,)),
        error("negative length", ShapeError, floats(1), shape=(-1,)),
    ],
)
def _(x: Array, *, shape: Shape) -> Array:
    return np.zeros(shape, x.dtype) | x if x.dtype.kind == "b" else np.ones(shape, x.dtype) * x


@reference(
    "concat",
    samples=[
        sample("two", [floats(2, 3), floats(2, 3, phase=0.1)], axis=0),
        sample("three of different lengths", [floats(2, 1), floats(2, 3), floats(2, 2)], axis=1),
        sample("vectors", [floats(2), floats(3)], axis=0),
        sample("one", [floats(2, 3)], axis=1),
        sample("the same twice", [floats(2, 3), floats(2, 3)], axis=0),
        sample("with an empty one", [floats(0, 3), floats(2, 3)], axis=0),
        sample("all empty", [floats(0, 3), floats(0, 3)], axis=0),
        sample("middle axis", [floats(2, 1, 3), floats(2, 2, 3)], axis=1),
        sample(
            "layouts",
            [transposed(floats(2, 3)), strided(floats(2, 3)), expanded(floats(3), 2, 3)],
            axis=0,
        ),
        sample("special floats", [SPECIAL, SPECIAL[::-1]], axis=0),
        sample("integers", [integers(2, 3), integers(1, 3)], axis=0),
        sample("integer limits", [LIMITS, reversed_view(LIMITS)], axis=0),
        sample("booleans", [booleans(2), booleans(3)], axis=0),
    ],
    errors=[
        error("no tensors", OperandTypeError, [], axis=0),
        error("rank differs", ShapeError, [floats(2), floats(2, 1)], axis=0),
        error("other lengths differ", ShapeError, [floats(2, 3), floats(2, 4)], axis=0),
        error("axis out of range", AxisError, [floats(2), floats(2)], axis=1),
        error("0-d", AxisError, [floats(), floats()], axis=0),
    ],
    exact=True,
)
def _(tensors: list[Array], *, axis: int) -> Array:
    lines = [line for tensor in tensors for line in np.moveaxis(tensor, axis, 0)]
    if not lines:
        return tensors[0]
    return np.moveaxis(np.array(lines, tensors[0].dtype), 0, axis)


_MODES: Final = ("edge", "reflect", "symmetric", "wrap")


def _padded(mode: str) -> list[Sample]:
    return [
        sample(f"{mode}, vector", floats(4), padding=((2, 3),), mode=mode),
        sample(f"{mode}, matrix", floats(3, 4), padding=((1, 0), (2, 3)), mode=mode),
        sample(f"{mode}, more than there are", floats(3), padding=((7, 8),), mode=mode),
        sample(f"{mode}, one element", floats(1, 2), padding=((2, 3), (0, 1)), mode=mode),
        sample(f"{mode}, nothing", floats(3, 4), padding=((0, 0), (0, 0)), mode=mode),
        sample(f"{mode}, empty other axis", floats(0, 3), padding=((0, 0), (1, 2)), mode=mode),
        sample(
            f"{mode}, transposed", transposed(floats(3, 4)), padding=((1, 1), (1, 0)), mode=mode
        ),
        sample(f"{mode}, integers", integers(3, 4), padding=((0, 2), (1, 0)), mode=mode),
        sample(f"{mode}, booleans", booleans(5), padding=((3, 3),), mode=mode),
    ]


@reference(
    "pad",
    samples=[
        sample("zeros", floats(3, 4), padding=((1, 2), (0, 3))),
        sample("a number", floats(3), padding=((2, 1),), value=-1.5),
        sample("minus zero", floats(3), padding=((2, 1),), value=-0.0),
        sample("infinity", floats(3), padding=((2, 1),), value=-math.inf),
        sample("0-d", floats(), padding=()),
        sample("of nothing", floats(0, 2), padding=((1, 1), (0, 1)), value=2.0),
        sample("strided", strided(floats(3, 4)), padding=((1, 1), (1, 0))),
        sample("integers, a number", integers(3), padding=((2, 1),), value=7),
        sample("booleans, true", booleans(3), padding=((2, 1),), value=True),
        *[sample for mode in _MODES for sample in _padded(mode)],
    ],
    errors=[
        error("too few pairs", ShapeError, floats(2, 3), padding=((1, 1),)),
        error("negative", ShapeError, floats(3), padding=((-1, 1),)),
        error("negative after", ShapeError, floats(3), padding=((1, -1),), mode="edge"),
        error("another mode", ArgumentError, floats(3), padding=((1, 1),), mode="mean"),
        *[
            error(f"{mode} of nothing", ShapeError, floats(0), padding=((1, 0),), mode=mode)
            for mode in _MODES
        ],
    ],
    exact=True,
)
def _(
    x: Array, *, padding: tuple[tuple[int, int], ...], mode: str = "constant", value: Any = 0
) -> Array:
    if not x.ndim:
        return x
    if mode == "constant":
        return np.pad(x, padding, constant_values=value)
    return np.pad(x, padding, mode=mode)  # type: ignore[call-overload, no-any-return]  # of _MODES


@reference(
    "unfold",
    samples=[
        *each_layout(axis=1, size=2),
        *[
            sample(f"size {size}, step {step}", floats(7), axis=0, size=size, step=step)
            for size in (1, 3, 7)
            for step in (1, 2, 9)
        ],
        sample("first axis", floats(5, 2), axis=0, size=3, step=2),
        sample("middle axis", integers(2, 6, 3), axis=1, size=4, step=2),
        sample("empty other axis", floats(0, 4), axis=1, size=2),
    ],
    errors=[
        error("axis out of range", AxisError, floats(3), axis=1, size=1),
        error("0-d", AxisError, floats(), axis=0, size=1),
        error("too large", ShapeError, floats(3), axis=0, size=4),
        error("size 0", ShapeError, floats(3), axis=0, size=0),
        error("step 0", ArgumentError, floats(3), axis=0, size=1, step=0),
    ],
    exact=True,
)
def _(x: Array, *, axis: int, size: int, step: int = 1) -> Array:
    starts = range(0, x.shape[axis] - size + 1, step)
    windows = [np.moveaxis(x, axis, 0)[start : start + size] for start in starts]
    return np.moveaxis(np.stack(windows), (0, 1), (axis, -1))


@reference(
    "bitcast",
    samples=[
        sample("floats to themselves", floats(20), dtype=TESTED_DTYPE),
        sample("integers to themselves", LIMITS, dtype=TESTED_DTYPE),
        *[
            sample(f"{note} to integers", array, dtype=SAME_SIZE_INTEGER)
            for note, array in {
                "floats": floats(20),
                "special floats": np.append(SPECIAL[1:], [1e-310, 6e-8, 1.0, -1.5]),
                "float 0-d": floats(),
                "floats, transposed": transposed(floats(3, 4)),
                "floats, strided": strided(floats(3, 4)),
                "floats, reversed": reversed_view(floats(3, 4)),
                "floats, expanded": expanded(floats(4), 3, 4),
                "floats, empty": floats(0, 3),
                "integer limits": LIMITS,
            }.items()
        ],
    ],
    errors=[
        error("another size", DTypeError, floats(3), dtype=int8),
        error("to bool", DTypeError, np.zeros(3, np.int8), dtype=bool_),
        error("booleans", DTypeError, booleans(3), dtype=int8),
    ],
    exact=True,
    widens=False,
)
def _(x: Array, *, dtype: DType) -> Array:
    return x.view(dtype.numpy)
