"""The line search of Nocedal and Wright (Numerical Optimization, 2006, algorithms 3.5 and 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

__all__ = ["Point", "strong_wolfe"]

_DECREASE: Final = 1e-4
"""Factor of the slope in the condition of sufficient decrease."""

_CURVATURE: Final = 0.9
"""Factor of the slope in the condition of curvature."""

_MARGIN: Final = 0.1
"""Part of an interval that a trial keeps away from its ends, if the trial before was near one."""


class Point(NamedTuple):
    """A function along a line, at one step from its start.

    Attributes
    ----------
    step : float
        The distance, in lengths of the direction.
    value : float
        Of the function.
    slope : float
        Its derivative along the line.
    found : object
        What else the caller needs of the point.
    """

    step: float
    value: float
    slope: float
    found: Any


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    step: float,
    *,
    most: int,
    length: float,
    tolerance: float,
) -> tuple[Point, int]:
    """A point where the strong Wolfe conditions hold, or the best that was found.

    Parameters
    ----------
    evaluate : callable
        The point of a step.
    start : Point
        That of the step 0, where the slope is negative.
    step : float
        The first step to try.
    most : int
        Largest number of evaluations but the first one.
    length : float
        Largest element of the direction.
    tolerance : float
        Smallest change of an element: a shorter interval is not divided.

    Returns
    -------
    Point, int
        The point, and the number of evaluations.
    """
    before, point = start, evaluate(step)
    count = 1
    while count <= most:
        if _is_too_high(point, start) or (count > 2 and point.value >= before.value):
            break
        if _is_flat(point, start):
            return point, count
        if point.slope >= 0:
            break
        low, high = point.step + 0.01 * (point.step - before.step), point.step * 10
        following = _interpolated(before, point, low, high)
        before, point = point, evaluate(following)
        count += 1
    else:
        before = start
    ends = sorted([before, point], key=_value)
    shortest = tolerance / length
    found, more = _divide(evaluate, start, ends, most=most - count + 1, shortest=shortest)
    return found, count + more


def _divide(
    evaluate: Callable[[float], Point],
    start: Point,
    ends: list[Point],
    *,
    most: int,
    shortest: float,
) -> tuple[Point, int]:
    """The best point in an interval whose ends are given, the lower one first."""
    is_stuck = False
    for count in range(most):
        lowest, other = ends
        low, high = sorted([lowest.step, other.step])
        if high - low < shortest:
            return lowest, count
        trial = _interpolated(lowest, other, low, high)
        margin = _MARGIN * (high - low)
        if min(high - trial, trial - low) >= margin:
            is_stuck = False
        elif is_stuck or trial >= high or trial <= low:
            trial = high - margin if abs(trial - high) < abs(trial - low) else low + margin
            is_stuck = False
        else:
            is_stuck = True
        point = evaluate(trial)
        if _is_too_high(point, start) or point.value >= lowest.value:
            ends = sorted([lowest, point], key=_value)
        elif _is_flat(point, start):
            return point, count + 1
        else:
            ends = [point, lowest if point.slope * (other.step - lowest.step) >= 0 else other]
    return ends[0], max(most, 0)


def _value(point: Point) -> float:
    return point.value


def _is_flat(point: Point, start: Point) -> bool:
    """Whether the condition of curvature holds."""
    return abs(point.slope) <= -_CURVATURE * start.slope


def _is_too_high(point: Point, start: Point) -> bool:
    """Whether the function has not decreased enough."""
    return point.value > start.value + _DECREASE * point.step * start.slope


def _interpolated(first: Point, second: Point, low: float, high: float) -> float:
    """The minimum in an interval of the cubic through two points with their slopes."""
    mixed = (
        first.slope + second.slope - 3.0 * (first.value - second.value) / (first.step - second.step)
    )
    square = mixed * mixed - first.slope * second.slope
    if not square >= 0:  # also where it is NaN
        return (low + high) / 2.0
    root = math.sqrt(square)
    if first.step > second.step:
        first, second = second, first
    part = (second.slope + root - mixed) / (second.slope - first.slope + 2.0 * root)
    return min(max(second.step - (second.step - first.step) * part, low), high)
