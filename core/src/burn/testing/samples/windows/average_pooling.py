"""Samples of the means of windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.windows._windows import Index, each_window, inside

Parts = list[tuple[Index, list[Index], int]]
"""Each window: its index in the result, its indices in the tensor, and its divisor."""


def _plan(
    *kernel: int,
    stride: tuple[int, ...] | None = None,
    padding: tuple[tuple[int, int], ...] | None = None,
    **more: Any,
) -> dict[str, Any]:
    padding = padding or ((0, 0),) * len(kernel)
    return {
        "kernel_size": kernel,
        "stride": stride or kernel,
        "padding": padding,
        "count_include_pad": True,
        "ceil_mode": False,
        **more,
    }


_SAME: Final = ((1, 1), (1, 1))

_CASES: Final[list[tuple[str, tuple[int, ...], dict[str, Any]]]] = [
    ("images", (1, 2, 5, 4), _plan(2, 2)),
    ("signals", (2, 3, 9), _plan(3)),
    ("volumes", (1, 2, 4, 5, 3), _plan(2, 2, 2, stride=(1, 2, 1))),
    ("spatial axes alone", (5, 6), _plan(2, 3)),
    ("overlapping", (6, 5), _plan(3, 3, stride=(2, 1))),
    ("stride larger than the kernel", (7, 6), _plan(2, 1, stride=(3, 4))),
    ("padding counts", (6, 5), _plan(3, 2, stride=(2, 2), padding=_SAME)),
    (
        "padding does not count",
        (6, 5),
        _plan(3, 2, stride=(2, 2), padding=_SAME, count_include_pad=False),
    ),
    ("padding before", (6, 5), _plan(2, 3, stride=(2, 2), padding=((1, 0), (1, 0)))),
    (
        "padding behind does not count",
        (6, 5),
        _plan(2, 3, stride=(2, 2), padding=((0, 1), (0, 1)), count_include_pad=False),
    ),
    ("ceil_mode", (2, 5, 6), _plan(2, 3, stride=(2, 4), ceil_mode=True)),
    ("ceil_mode beyond the padding", (5, 5), _plan(3, 2, padding=_SAME, ceil_mode=True)),
    (
        "ceil_mode, padding does not count",
        (5, 5),
        _plan(3, 2, padding=_SAME, ceil_mode=True, count_include_pad=False),
    ),
    ("ceil_mode, longer than the axis", (2, 5), _plan(6, stride=(2,), ceil_mode=True)),
    ("kernel equal to the input", (2, 2, 3, 4), _plan(3, 4)),
    ("long kernel", (2, 23), _plan(19, stride=(2,))),
    ("one element", (2, 1, 1, 1), _plan(1, 1)),
    ("one element, padded", (1, 1), _plan(2, 2, stride=(1, 1), padding=_SAME)),
    ("empty batch", (0, 3, 4, 4), _plan(2, 2)),
    ("no channels", (2, 0, 4, 4), _plan(3, 3, padding=_SAME)),
]


def _parts(spatial: Index, *, count_include_pad: bool, **plan: Any) -> Parts:
    padded = [length + after for length, (_, after) in zip(spatial, plan["padding"], strict=True)]
    found = []
    for index, window in each_window(spatial, **plan):
        within = [shape for shape in window if inside(shape, spatial)]
        counted = [shape for shape in window if all(map(int.__lt__, shape, padded))]
        found.append((index, within, len(counted if count_include_pad else within)))
    return found


def _adaptive_parts(spatial: Index, output_size: Index) -> Parts:
    def along(length: int, count: int) -> Iterator[tuple[int, range]]:
        for number in range(count):
            first, last = number * length / count, (number + 1) * length / count
            yield number, range(math.floor(first), math.ceil(last))

    axes = [list(along(*lengths)) for lengths in zip(spatial, output_size, strict=True)]
    found = []
    for held in itertools.product(*axes):
        within = list(itertools.product(*[indices for _, indices in held]))
        found.append((tuple(number for number, _ in held), within, len(within)))
    return found


def _pooled(x: Array, parts: Parts, output_size: Index) -> Array:
    lead = x.shape[: x.ndim - len(output_size)]
    result = np.zeros((*lead, *output_size))
    for outer in np.ndindex(lead):
        for index, within, count in parts:
            result[outer + index] = np.sum([x[outer + shape] for shape in within]) / count
    return result


def _shared(g: Array, parts: Parts, input_size: Index) -> Array:
    lead = g.shape[: g.ndim - len(input_size)]
    result = np.zeros((*lead, *input_size))
    for outer in np.ndindex(lead):
        for index, within, count in parts:
            for shape in within:
                result[outer + shape] += g[outer + index] / count
    return result


def _output_size(parts: Parts) -> Index:
    indices = [index for index, _, _ in parts]
    return tuple(1 + max(numbers) for numbers in zip(*indices, strict=True))


def _avg_pool(x: Array, **plan: Any) -> Array:
    parts = _parts(x.shape[x.ndim - len(plan["kernel_size"]) :], **plan)
    return _pooled(x, parts, _output_size(parts))


def _avg_pool_grad(g: Array, *, input_size: Index, **plan: Any) -> Array:
    return _shared(g, _parts(input_size, **plan), input_size)


def _cases() -> Iterator[Sample]:
    for note, shape, plan in _CASES:
        yield sample(note, floats(*shape), **plan)


def _gradient_cases() -> Iterator[Sample]:
    for note, shape, plan in _CASES:
        count = len(plan["kernel_size"])
        spatial = shape[len(shape) - count :]
        pooled = _output_size(_parts(spatial, **plan))
        g = floats(*shape[: len(shape) - count], *pooled)
        yield sample(note, g, input_size=spatial, **plan)


def _errors(x: Array, **more: Any) -> list[Any]:
    def one(note: str, expected: Any, *kernel: int, **options: Any) -> Any:
        return error(note, expected, x, **_plan(*kernel, **options), **more)

    return [
        one("kernel larger than the input", ShapeError, 6, 6),
        one("no spatial axes", ShapeError),
        one("more than half padding", ArgumentError, 2, 3, padding=((0, 0), (0, 2))),
        one("negative padding", ArgumentError, 2, 2, padding=((-1, 0), (0, 0))),
        one("kernel of 0", ArgumentError, 0, 2, stride=(1, 1)),
        one("stride of 0", ArgumentError, 2, 2, stride=(1, 0)),
        one("too few strides", ArgumentError, 2, 2, stride=(1,)),
        one("too much padding", ArgumentError, 2, padding=_SAME),
    ]


_HUGE: Final = np.array([math.nan, 1.0, math.inf, -math.inf, 0.0, 2.0, -1.0, 4.0])

reference(
    "avg_pool",
    samples=[
        *_cases(),
        sample("transposed", transposed(floats(2, 3, 4, 5)), **_plan(2, 2)),
        sample("strided", strided(floats(2, 4, 5)), **_plan(3, 2, stride=(1, 2))),
        sample("reversed", reversed_view(floats(3, 6)), **_plan(2)),
        sample("expanded", expanded(floats(4, 3), 2, 4, 3), **_plan(2, 2)),
        sample("not finite", _HUGE, **_plan(2, stride=(1,), padding=((1, 1),))),
    ],
    errors=[
        *_errors(floats(1, 2, 5, 5)),
        error("empty spatial axis", ShapeError, floats(2, 0, 3), **_plan(1, 1)),
        error("too few axes", ShapeError, floats(3), **_plan(1, 1)),
    ],
    terms=lambda x, **plan: (math.prod(plan["kernel_size"]), _avg_pool(abs(x), **plan)),
)(_avg_pool)

reference(
    "avg_pool_grad",
    samples=[
        *_gradient_cases(),
        sample("layouts", strided(transposed(floats(2, 2, 3))), input_size=(4, 6), **_plan(2, 2)),
        sample("not finite", _HUGE, input_size=(9,), **_plan(2, stride=(1,))),
    ],
    errors=[
        *_errors(floats(1, 2, 2, 2), input_size=(5, 5)),
        error("other windows", ShapeError, floats(2, 3), input_size=(5, 5), **_plan(2, 2)),
        error("empty input", ShapeError, floats(2, 1, 3), input_size=(0, 3), **_plan(1, 1)),
        error("too few axes", ShapeError, floats(3), input_size=(3, 3), **_plan(1, 1)),
    ],
    terms=lambda g, **plan: (math.prod(plan["kernel_size"]), _avg_pool_grad(abs(g), **plan)),
)(_avg_pool_grad)


def _adaptive(x: Array, *, output_size: Index) -> Array:
    spatial = x.shape[x.ndim - len(output_size) :]
    return _pooled(x, _adaptive_parts(spatial, output_size), output_size)


def _adaptive_grad(g: Array, *, input_size: Index) -> Array:
    output_size = g.shape[g.ndim - len(input_size) :]
    return _shared(g, _adaptive_parts(input_size, output_size), input_size)


_ADAPTIVE: Final = [
    ("images", (2, 2), (6, 5), (3, 2)),
    ("signals", (2, 3), (9,), (4,)),
    ("volumes", (1, 2), (4, 5, 3), (2, 3, 3)),
    ("spatial axes alone", (), (5, 7), (3, 5)),
    ("one window", (2, 3), (4, 5), (1, 1)),
    ("as many as elements", (2,), (3, 4), (3, 4)),
    ("more than elements", (2,), (2, 3), (5, 7)),
    ("no windows", (2,), (2, 3), (0, 2)),
    ("one element", (2,), (1, 1), (3, 1)),
    ("long windows", (2,), (47,), (4,)),
    ("empty batch", (0, 2), (4, 5), (2, 2)),
]

reference(
    "adaptive_avg_pool",
    samples=[
        *[
            sample(note, floats(*lead, *spatial), output_size=pooled)
            for note, lead, spatial, pooled in _ADAPTIVE
        ],
        sample("transposed", transposed(floats(2, 3, 4, 5)), output_size=(3, 2)),
        sample("strided", strided(floats(2, 7)), output_size=(3,)),
        sample("not finite", _HUGE, output_size=(5,)),
    ],
    errors=[
        error("negative size", ArgumentError, floats(2, 3), output_size=(-1,)),
        error("no size", ShapeError, floats(2, 3), output_size=()),
        error("too few axes", ShapeError, floats(3), output_size=(1, 1)),
        error("empty spatial axis", ShapeError, floats(2, 0, 3), output_size=(1, 1)),
        error("too many elements", ShapeError, floats(2, 3), output_size=(1 << 63,)),
    ],
    terms=lambda x, *, output_size: (x.size + 1, _adaptive(abs(x), output_size=output_size)),
)(_adaptive)

reference(
    "adaptive_avg_pool_grad",
    samples=[
        *[
            sample(note, floats(*lead, *pooled), input_size=spatial)
            for note, lead, spatial, pooled in _ADAPTIVE
        ],
        sample("layouts", strided(transposed(floats(2, 2, 3))), input_size=(4, 5)),
        sample("not finite", _HUGE, input_size=(11,)),
    ],
    errors=[
        error("no size", ShapeError, floats(2, 3), input_size=()),
        error("too few axes", ShapeError, floats(3), input_size=(3, 3)),
        error("empty input", ShapeError, floats(2, 3), input_size=(0, 3)),
        error("negative input", ShapeError, floats(2, 3), input_size=(-2, 3)),
    ],
    terms=lambda g, *, input_size: (g.size + 1, _adaptive_grad(abs(g), input_size=input_size)),
)(_adaptive_grad)
