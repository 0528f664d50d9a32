"""IndexMap: which element of one tensor each element of another one is, for views and broadcasts.

Elements are numbered in row-major order, so a reshape changes no number, and every view and every
broadcast is a function from the numbers of its elements to those of the tensor below it. Such a
function is an `IndexMap`: mixed-radix digits of the number, each with the elements from one value
of the digit to the next.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from burn.ops.shapes import size

__all__ = [
    "IndexMap",
    "along_axis",
    "broadcast_map",
    "chain",
    "composed",
    "cuts",
    "dense_strides",
    "has_strides",
    "identity",
    "inverse",
    "normal",
    "reduction_map",
    "spans",
    "strides",
    "view_map",
    "without_repeats",
    "zeros",
]


class IndexMap(NamedTuple):
    """A function from numbers below ``size(lengths)`` to integers.

    Attributes
    ----------
    offset : int
        What it gives for 0.
    digits : tuple of (int, int)
        Length and stride of each digit of the number, the most significant one first; none of
        length 1, and none that could be one with the next.
    """

    offset: int
    digits: tuple[tuple[int, int], ...]


def normal(offset: int, digits: Iterable[tuple[int, int]]) -> IndexMap:
    """The map with these digits, of which some may be of length 1, or one with the next."""
    merged: list[tuple[int, int]] = []
    for length, stride in digits:
        if length == 1:
            continue
        if merged and merged[-1][1] == stride * length:
            merged[-1] = (merged[-1][0] * length, stride)
        else:
            merged.append((length, stride))
    return IndexMap(offset, tuple(merged))


@functools.lru_cache(4096)
def identity(count: int) -> IndexMap:
    """The map from each number below `count` to itself."""
    return normal(0, [(count, 1)])


def dense_strides(shape: Sequence[int]) -> list[int]:
    """The strides of a tensor in row-major order."""
    result, step = [], 1
    for length in reversed(shape):
        result.append(step)
        step *= length
    return result[::-1]


def along_axis(shape: Sequence[int], axis: int) -> IndexMap:
    """From the elements of a shape to the index along an axis."""
    return normal(0, [(length, int(number == axis)) for number, length in enumerate(shape)])


@functools.lru_cache(4096)
def broadcast_map(shape: tuple[int, ...], target: tuple[int, ...]) -> IndexMap:
    """From the elements of `target` to those of a tensor of `shape` that broadcasts to it."""
    lead = len(target) - len(shape)
    steps = [0] * lead + [
        0 if length == 1 else step for length, step in zip(shape, dense_strides(shape), strict=True)
    ]
    return normal(0, zip(target, steps, strict=True))


@functools.lru_cache(4096)
def reduction_map(shape: tuple[int, ...], axes: tuple[int, ...]) -> IndexMap:
    """From the elements of an operand to those of its reduction over some axes."""
    kept = dense_strides([1 if axis in axes else length for axis, length in enumerate(shape)])
    return normal(
        0,
        [
            (length, 0 if axis in axes else step)
            for axis, (length, step) in enumerate(zip(shape, kept, strict=True))
        ],
    )


def without_repeats(map: IndexMap) -> IndexMap:
    """The map without the digits along which it repeats: it gives the same integers."""
    return normal(map.offset, [digit for digit in map.digits if digit[1]])


def view_map(name: str, attributes: Any, shape: tuple[int, ...]) -> IndexMap:
    """From the elements of the output of a view op to those of its operand of `shape`."""
    steps = dense_strides(shape)
    match name:
        case "reshape":
            return identity(size(shape))
        case "permute":
            axes = attributes["axes"]
            return normal(0, [(shape[axis], steps[axis]) for axis in axes])
        case "expand":
            return broadcast_map(shape, tuple(attributes["shape"]))
        case "flip":
            axes = attributes["axes"]
            slices = [
                (length - 1, length, -1) if axis in axes else (0, length, 1)
                for axis, length in enumerate(shape)
            ]
        case "unfold":
            axis, width, step = attributes["axis"], attributes["size"], attributes.get("step", 1)
            digits = list(zip(shape, steps, strict=True))
            digits[axis] = ((shape[axis] - width) // step + 1, steps[axis] * step)
            return normal(0, [*digits, (width, steps[axis])])
        case _:
            slices = attributes["slices"]
    offset = sum([bounds[0] * step for bounds, step in zip(slices, steps, strict=True)])
    digits = [(bounds[1], bounds[2] * step) for bounds, step in zip(slices, steps, strict=True)]
    return normal(offset, digits)


@functools.lru_cache(1 << 14)
def composed(outer: IndexMap, inner: IndexMap) -> IndexMap | None:
    """The map that applies `inner` and then `outer`; None if it has no digits.

    It has some if no sum of the digits of `inner` carries from one digit of `outer` to the next.
    """
    units: list[tuple[int, int, int]] = []  # of outer, the least significant first
    unit = 1
    for length, stride in reversed(outer.digits):
        units.append((unit, length, stride))
        unit *= length
    offset, rest = outer.offset, inner.offset
    highest = [0] * len(units)
    for number in reversed(range(len(units))):
        unit, _, stride = units[number]
        highest[number], rest = divmod(rest, unit)
        offset += highest[number] * stride
    lowest = highest.copy()
    digits: list[tuple[int, int]] = []
    for length, step in inner.digits:
        pieces = [(length, 0)] if step == 0 else _pieces(units, length, step, lowest, highest)
        if pieces is None:
            return None
        digits += reversed(pieces)
    carries = [top >= length for (_, length, _), top in zip(units, highest, strict=True)]
    if rest or any(carries) or min(lowest, default=0) < 0:
        return None
    return normal(offset, digits)


def _pieces(
    units: list[tuple[int, int, int]], length: int, step: int, lowest: list[int], highest: list[int]
) -> list[tuple[int, int]] | None:
    """A digit of the inner map split at the digits of the outer one, least significant first."""
    sign = -1 if step < 0 else 1
    step = abs(step)
    pieces: list[tuple[int, int]] = []
    for number, (unit, room, stride) in enumerate(units):
        if step >= unit * room:
            continue
        if step % unit:
            return None
        steps = step // unit
        count = length
        if (length - 1) * steps >= room:
            count, beyond = divmod(room, steps)
            if beyond or length % count:
                return None
        if sign > 0:
            highest[number] += (count - 1) * steps
        else:
            lowest[number] -= (count - 1) * steps
        pieces.append((count, sign * stride * steps))
        length //= count
        step *= count
        if length == 1:
            return pieces
    return None


@functools.lru_cache(4096)
def inverse(map: IndexMap) -> IndexMap | None:
    """The inverse of a map that rearranges the digits of a number; None for another map."""
    unit = 1
    found: list[tuple[int, int, int]] = []
    for length, stride in reversed(map.digits):
        found.append((stride, length, unit))
        unit *= length
    found.sort(reverse=True)
    expected = 1
    for stride, length, _ in reversed(found):
        if stride != expected:
            return None
        expected *= length
    return None if map.offset else normal(0, [(length, unit) for _, length, unit in found])


@functools.lru_cache(4096)
def cuts(map: IndexMap) -> tuple[int, ...]:
    """The numbers at which a digit of the map begins, in rising order, without 1."""
    found, unit = [], 1
    for length, _ in reversed(map.digits[1:]):
        unit *= length
        found.append(unit)
    return tuple(found)


@functools.lru_cache(4096)
def zeros(map: IndexMap) -> tuple[tuple[int, int], ...]:
    """From where to where, in numbers, the digits lie along which a map repeats."""
    found, unit = [], 1
    for length, stride in reversed(map.digits):
        if stride == 0:
            found.append((unit, unit * length))
        unit *= length
    return tuple(found)


def chain(some: tuple[int, ...], *others: tuple[int, ...]) -> tuple[int, ...] | None:
    """The cuts of several maps together; None if no digits have all of them."""
    more = set().union(*others).difference(some)
    if not more:
        return some
    found = sorted(more.union(some))
    if any(high % low for low, high in itertools.pairwise(found)):
        return None
    return tuple(found)


def strides(map: IndexMap, units: Sequence[tuple[int, int]]) -> list[int]:
    """The stride of a map along each of some finer digits: (length, where it begins) of each."""
    result = []
    spans, unit = [], 1
    for length, stride in reversed(map.digits):
        spans.append((unit, unit * length, stride))
        unit *= length
    for _, begin in units:
        for low, high, stride in spans:
            if low <= begin < high:
                result.append(stride * (begin // low))
                break
        else:
            result.append(0)
    return result


def spans(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Of each axis its length, and where the digit of its index begins."""
    return list(zip(shape, dense_strides(shape), strict=True))


def has_strides(map: IndexMap, shape: Sequence[int]) -> bool:
    """Whether a view of a shape is an array with one stride for each axis."""
    return set(dense_strides(shape)).issuperset(cuts(map))
