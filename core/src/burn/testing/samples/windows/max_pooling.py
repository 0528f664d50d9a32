"""Samples of the largest elements of windows."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.dtype import bool_, float32, int8, int32
from burn.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import expanded, floats, integers, reversed_view, strided, transposed
from burn.testing.op_samples import INDEX_DTYPE, Array, Sample, error, reference, sample
from burn.testing.samples.windows._windows import each_window, inside

_INF: Final = math.inf


def _plan(
    *kernel: int,
    stride: tuple[int, ...] | None = None,
    padding: tuple[tuple[int, int], ...] | None = None,
    dilation: tuple[int, ...] | None = None,
    **more: Any,
) -> dict[str, Any]:
    ones = (1,) * len(kernel)
    return {
        "kernel_size": kernel,
        "stride": stride or kernel,
        "padding": padding or ((0, 0),) * len(kernel),
        "dilation": dilation or ones,
        "ceil_mode": False,
        **more,
    }


_SAME: Final = ((1, 1), (1, 1))


def _samples(**more: Any) -> list[Sample]:
    def one(note: str, x: Array, *kernel: int, **options: Any) -> Sample:
        known = {"differentiable", "gradients"}
        own = {name: value for name, value in options.items() if name in known}
        plan = {name: value for name, value in options.items() if name not in known}
        return sample(note, x, **own, **_plan(*kernel, **plan), **more)

    image = floats(2, 6, 5)
    first = np.zeros((4, 4))
    first[::2, ::2] = 1.0
    return [
        one("images", floats(1, 2, 5, 4), 2, 2),
        one("signals", floats(2, 3, 9), 3),
        one("volumes", floats(1, 2, 4, 5, 3), 2, 2, 2, stride=(1, 2, 1)),
        one("spatial axes alone", floats(5, 6), 2, 3),
        one("many leading axes", floats(2, 1, 2, 3, 4), 3),
        one("overlapping", image, 3, 3, stride=(2, 1)),
        one("stride larger than the kernel", floats(7, 6), 2, 1, stride=(3, 4)),
        one("padding", image, 3, 2, stride=(2, 2), padding=_SAME),
        one("padding on one side", image, 2, 3, stride=(2, 2), padding=((1, 0), (0, 1))),
        one("large padding", floats(2, 3), 7, stride=(2,), padding=((3, 3),)),
        one("dilation", floats(5, 7), 2, 3, stride=(1, 1), dilation=(3, 2)),
        one("dilation and padding", floats(2, 9), 3, stride=(2,), padding=((1, 1),), dilation=(3,)),
        one("dilation steps over the edge", floats(5), 2, padding=((1, 1),), dilation=(3,)),
        one("ceil_mode", floats(2, 5, 6), 2, 3, stride=(2, 4), ceil_mode=True),
        one("ceil_mode, nothing to add", floats(2, 6, 6), 2, 3, ceil_mode=True),
        one("ceil_mode and padding", floats(5, 5), 3, 2, padding=_SAME, ceil_mode=True),
        one("ceil_mode, window in the padding", floats(5), 2, padding=((1, 1),), ceil_mode=True),
        one("ceil_mode, longer than the axis", floats(2, 5), 6, stride=(2,), ceil_mode=True),
        one("kernel equal to the input", floats(2, 2, 3, 4), 3, 4),
        one("kernel of one", floats(2, 3, 3), 1, 1, stride=(2, 1)),
        one("one element", floats(2, 1, 1, 1), 1, 1),
        one("one element, padded", floats(1, 1), 2, 2, stride=(1, 1), padding=_SAME),
        one("empty batch", floats(0, 3, 4, 4), 2, 2),
        one("no channels", floats(2, 0, 4, 4), 3, 3, padding=_SAME),
        one("transposed", transposed(floats(2, 3, 4, 5)), 2, 2),
        one("strided", strided(floats(2, 4, 5)), 3, 2, stride=(1, 2)),
        one("reversed", reversed_view(floats(3, 6)), 2),
        one("expanded", expanded(floats(4, 3), 2, 4, 3), 2, 2, differentiable=False),
        one(
            "of equals the first",
            np.ones((4, 4)),
            2,
            2,
            differentiable=False,
            gradients=(first,),
        ),
        one("NaN", np.array([[1.0, math.nan, 0.0, _INF], [math.nan, 2.0, -_INF, 3.0]]), 2, 2),
        one(
            "several NaN, overlapping",
            np.array([[0.0, math.nan, math.nan, 1.0], [math.nan, 5.0, math.nan, 2.0]]),
            2,
            2,
            stride=(1, 1),
            padding=_SAME,
        ),
        one("nothing above minus infinity", np.full((3, 3), -_INF), 2, 2, padding=_SAME),
        one("integers", integers(2, 5, 5), 3, 2, stride=(2, 1), padding=_SAME),
        one("lowest integers", np.full((4,), -(2**63)), 2, padding=((1, 1),)),
        one("zeros of integers", np.zeros((3, 4), np.int64), 2, 2, padding=_SAME),
        one(
            "larger",
            floats(1, 2, 16, 17),
            5,
            4,
            differentiable=False,
            stride=(3, 2),
            padding=((2, 1), (0, 2)),
        ),
    ]


def _errors(**more: Any) -> list[Any]:
    def one(note: str, expected: Any, x: Array, *kernel: int, **options: Any) -> Any:
        return error(note, expected, x, **_plan(*kernel, **options), **more)

    image = floats(1, 2, 5, 5)
    return [
        one("kernel larger than the input", ShapeError, image, 6, 6),
        one("dilated kernel larger than the input", ShapeError, image, 3, 3, dilation=(3, 3)),
        one("larger even with ceil_mode", ShapeError, image, 9, 9, stride=(1, 1), ceil_mode=True),
        one("nothing but padding", ShapeError, floats(1), 2, padding=((1, 1),), dilation=(2,)),
        one("empty spatial axis", ShapeError, floats(2, 0, 3), 1, 1),
        one("too few axes", ShapeError, floats(3), 1, 1),
        one("no spatial axes", ShapeError, floats(3)),
        one("more than half padding", ArgumentError, image, 2, 3, padding=((0, 0), (0, 2))),
        one("negative padding", ArgumentError, image, 2, 2, padding=((0, 0), (-1, 0))),
        one("kernel of 0", ArgumentError, image, 0, 2, stride=(1, 1)),
        one("stride of 0", ArgumentError, image, 2, 2, stride=(1, 0)),
        one("dilation of 0", ArgumentError, image, 2, 2, dilation=(0, 1)),
        one("too few strides", ArgumentError, image, 2, 2, stride=(1,)),
        one("too much padding", ArgumentError, image, 2, padding=_SAME),
        one("booleans", DTypeError, np.ones((2, 2), np.bool_), 2),
    ]


def _found(x: Array, **plan: Any) -> tuple[Array, Array]:
    """Maxima and their flat indices, window by window."""
    plan.pop("index_dtype", None)
    count = len(plan["kernel_size"])
    lead, spatial = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    held = list(each_window(spatial, **plan))
    shape = (*lead, *(1 + max(index[axis] for index, _ in held) for axis in range(count)))
    values, indices = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    for outer in np.ndindex(lead):
        for index, window in held:
            within = [shape for shape in window if inside(shape, spatial)]
            numbers = [x[outer + shape] for shape in within]
            best = 0
            for number, value in enumerate(numbers):
                if value > numbers[best] or (np.isnan(value) and not np.isnan(numbers[best])):
                    best = number
            values[outer + index] = numbers[best]
            indices[outer + index] = np.ravel_multi_index(within[best], spatial)
    return values, indices


@reference("max_pool", samples=_samples(), errors=_errors(), exact=True)
def _(x: Array, **plan: Any) -> Array:
    return _found(x, **plan)[0]


reference(
    "max_pool_with_indices",
    samples=[
        *_samples(index_dtype=INDEX_DTYPE),
        sample("other indices", floats(2, 4, 4), **_plan(2, 2), index_dtype=int32),
    ],
    errors=[
        *_errors(index_dtype=int32),
        error("boolean indices", DTypeError, floats(4), **_plan(2), index_dtype=bool_),
        error("float indices", DTypeError, floats(4), **_plan(2), index_dtype=float32),
        error("too many positions", DTypeError, floats(129), **_plan(2), index_dtype=int8),
    ],
    exact=True,
)(_found)


def _scattered(g: Array, indices: Array, *, input_size: tuple[int, ...]) -> Array:
    lead = g.shape[: g.ndim - len(input_size)]
    result = np.zeros((*lead, *input_size))
    for position in np.ndindex(g.shape):
        index = int(indices[position]) % max(math.prod(input_size), 1)
        target = np.unravel_index(index, input_size)
        result[position[: len(lead)] + target] += g[position]
    return result


def _scattered_terms(g: Array, indices: Array, *, input_size: tuple[int, ...]) -> Any:
    ones = _scattered(np.ones(g.shape), indices, input_size=input_size)
    return np.maximum(ones, 1.0), _scattered(np.abs(g), indices, input_size=input_size)


def _indices(*shape: int, count: int, phase: float = 0.3) -> Array:
    return integers(*shape, low=0, high=count, phase=phase)


reference(
    "max_pool_grad",
    samples=[
        sample("images", floats(2, 3, 2, 2), _indices(2, 3, 2, 2, count=20), input_size=(4, 5)),
        sample("signals", floats(2, 3), _indices(2, 3, count=7), input_size=(7,)),
        sample("volumes", floats(1, 2, 1, 2), _indices(1, 2, 1, 2, count=12), input_size=(2, 3, 2)),
        sample("indices that repeat", floats(2, 9), _indices(2, 9, count=3), input_size=(3,)),
        sample("from the end", floats(2, 3), np.array([[-1, 0, -4], [3, -2, -1]]), input_size=(4,)),
        sample("spatial axes alone", floats(2, 2), _indices(2, 2, count=9), input_size=(3, 3)),
        sample("empty batch", floats(0, 2, 2), _indices(0, 2, 2, count=9), input_size=(3, 3)),
        sample("no windows", floats(2, 0), _indices(2, 0, count=9), input_size=(9,)),
        sample(
            "layouts",
            transposed(floats(2, 3, 4)),
            strided(_indices(2, 3, 4, count=9)),
            input_size=(3, 3),
        ),
        sample(
            "special floats",
            np.array([math.nan, _INF, -_INF, 1.0, -0.0]),
            np.array([0, 2, 2, 4, 5]),
            input_size=(6,),
        ),
    ],
    errors=[
        error("shapes differ", ShapeError, floats(2, 3), _indices(2, 2, count=4), input_size=(4,)),
        error("broadcasting", ShapeError, floats(2, 3), _indices(1, 3, count=4), input_size=(4,)),
        error("no spatial axes", ShapeError, floats(3), _indices(3, count=3), input_size=()),
        error("too few axes", ShapeError, floats(3), _indices(3, count=3), input_size=(3, 3)),
        error("empty input", ShapeError, floats(0), _indices(0, count=1), input_size=(0,)),
        error("negative input", ShapeError, floats(1), _indices(1, count=1), input_size=(-1,)),
        error(
            "index out of range",
            OutOfRangeError,
            floats(2, 2),
            np.array([[0, 1], [9, 0]]),
            input_size=(3, 3),
            in_data=True,
        ),
        error(
            "index before the first",
            OutOfRangeError,
            floats(2, 2),
            np.array([[0, 1], [-10, 0]]),
            input_size=(3, 3),
            in_data=True,
        ),
    ],
    terms=_scattered_terms,
)(_scattered)
