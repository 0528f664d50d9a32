"""Where the boxes of a picture go: rows from top to bottom, few crossings, short lines.

After K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system
structures" (1981): a line over several rows has a point in each, rows are ordered by the mean of
their neighbours, and every box is put as near to that mean as the widths allow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["Layout"]

_GAP: Final = 18.0
"""Least distance of two neighbours in a row."""

_POINT_WIDTH: Final = 4.0
_POINT_WEIGHT: Final = 8.0
"""How much more a point counts than a box when a row is placed: long lines are straight."""

_ORDERING_SWEEPS: Final = 8
_PLACING_SWEEPS: Final = 8


class Layout:
    """Positions of boxes in rows, and the lines between them.

    Parameters
    ----------
    widths : sequence of float
        Width of each box.
    rows : sequence of int
        Row of each box, from 0.
    edges : iterable of (int, int)
        Pairs of boxes, the second in a later row. Boxes below one box share a line as far down as
        it goes.

    Attributes
    ----------
    x : list of float
        Middle of each box, and then of each point of a line.
    row : list of int
        Row of each box and point.
    segments : list of list of int
        For each box and point the boxes and points in the next row to which a line goes.
    source : list of int
        For each box itself, for a point the box where its line begins.
    width : float
        Width of the whole.
    """

    def __init__(
        self, widths: Sequence[float], rows: Sequence[int], edges: Iterable[tuple[int, int]]
    ) -> None:
        self.count = len(widths)
        self.row = list(rows)
        self.source = list(range(self.count))
        self.segments: list[list[int]] = [[] for _ in widths]
        self._above: list[list[int]] = [[] for _ in widths]
        self._half = [width / 2.0 for width in widths]
        lines: list[list[int]] = [[] for _ in widths]
        for start, end in edges:
            line = lines[start]
            points = self.row[end] - self.row[start] - 1
            while len(line) < points:
                line.append(self._point_below(line[-1] if line else start))
            self._connect(line[points - 1] if points else start, end)
        self._rows: list[list[int]] = [[] for _ in range(max(self.row, default=-1) + 1)]
        for number, row in enumerate(self.row):
            self._rows[row].append(number)
        self.x = [0.0] * len(self.row)
        self._arrange()
        left = min([x - half for x, half in zip(self.x, self._half, strict=True)], default=0.0)
        self.x = [x - left for x in self.x]
        ends = [x + half for x, half in zip(self.x, self._half, strict=True)]
        self.width = max(ends, default=0.0)

    def _point_below(self, number: int) -> int:
        """A new point in the next row, on the line that goes through a box or point."""
        point = len(self.row)
        self.row.append(self.row[number] + 1)
        self.source.append(self.source[number])
        self.segments.append([])
        self._above.append([])
        self._half.append(_POINT_WIDTH / 2.0)
        self._connect(number, point)
        return point

    def _connect(self, above: int, below: int) -> None:
        self.segments[above].append(below)
        self._above[below].append(above)

    def _arrange(self) -> None:
        for row in self._rows:
            self._put(row, [0.0] * len(row))
            for left, right in itertools.pairwise(row):
                if not self._above[right] and not self.segments[right]:
                    self._above[right].append(left)  # a box without lines stays beside another
        best = math.inf
        for sweep in range(_ORDERING_SWEEPS):
            down = sweep % 2 == 0
            neighbours = self._above if down else self.segments
            for row in self._rows if down else reversed(self._rows):
                wanted = self._means(row, neighbours)
                order = sorted(range(len(row)), key=wanted.__getitem__)
                row[:] = [row[index] for index in order]
                self._put(row, [wanted[index] for index in order])
            length = self._length()
            if length < best:
                best, x, rows = length, self.x.copy(), [row.copy() for row in self._rows]
        self.x, self._rows = x, rows
        both = [[*up, *down] for up, down in zip(self._above, self.segments, strict=True)]
        for sweep in range(_PLACING_SWEEPS):
            lines = self._lines()
            for row in self._rows if sweep % 2 == 0 else reversed(self._rows):
                means = self._means(row, both)
                self._put(row, [lines.get(*pair) for pair in zip(row, means, strict=True)])

    def _length(self) -> float:
        """Length of all lines, across."""
        x = self.x
        return sum(
            abs(x[index] - x[end]) for index, ends in enumerate(self.segments) for end in ends
        )

    def _lines(self) -> dict[int, float]:
        """For each point the mean position of its line, which then is straight."""
        points = range(self.count, len(self.x))
        lines: dict[int, list[float]] = {}
        for point in points:
            lines.setdefault(self.source[point], []).append(self.x[point])
        means = {start: sum(x) / len(x) for start, x in lines.items()}
        return {point: means[self.source[point]] for point in points}

    def _means(self, row: list[int], neighbours: list[list[int]]) -> list[float]:
        """For each of a row the mean position of its neighbours, or its own without any."""
        x = self.x
        return [
            sum([x[number] for number in neighbours[number]]) / len(neighbours[number])
            if neighbours[number]
            else x[number]
            for number in row
        ]

    def _put(self, row: list[int], wanted: list[float]) -> None:
        """Put a row, in its order, as near as possible to the positions that it wants.

        That is an isotonic regression of the positions without the widths, by pooling (M. Ayer et
        al., "An empirical distribution function for sampling with incomplete information", 1955).
        """
        offsets, offset, half = [], 0.0, 0.0
        pools: list[tuple[float, float, int]] = []  # mean, weight, number of members
        for index, number in enumerate(row):
            if index:
                offset += half + self._half[number] + _GAP
            half = self._half[number]
            offsets.append(offset)
            mean, weight, members = wanted[index] - offset, 1.0, 1
            if number >= self.count:
                weight = _POINT_WEIGHT
            while pools and pools[-1][0] > mean:
                other, other_weight, other_members = pools.pop()
                total = weight + other_weight
                mean = (mean * weight + other * other_weight) / total
                weight, members = total, members + other_members
            pools.append((mean, weight, members))
        index = 0
        for mean, _, members in pools:
            for _ in range(members):
                self.x[row[index]] = mean + offsets[index]
                index += 1
