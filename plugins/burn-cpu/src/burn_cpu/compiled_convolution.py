"""Convolutions that numba compiles: products of windows, which stay where they are in the images.

The images of a few examples at a time are copied to a canvas with their padding. A window is where
it starts there, and its elements are at the same offsets from there, the taps; so the matrix of
windows is two tables, of starts and of taps. The other matrix is a weight or a gradient in panels
of as many columns as a tile has.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from burn_cpu.base import Array
from burn_cpu.compiled_base import ZERO, compiled_exactly
from burn_cpu.compiled_tiles import (
    NARROW_COLUMNS,
    NARROW_ROWS,
    WIDE_COLUMNS,
    WIDE_ROWS,
    add_narrow_tile,
    add_wide_tile,
    turn,
)

ROWS_BY_COLUMNS: Final = {NARROW_COLUMNS: NARROW_ROWS, WIDE_COLUMNS: WIDE_ROWS}
"""The rows of a tile, by its columns: a narrow one and a wide one."""

_WINDOWS: Final = 480
"""Windows whose sums are in the cache: whole tiles of both kinds."""

_TERMS: Final = 768
"""Rows of a panel that are in the cache."""

_TOGETHER: Final = 48
"""Windows whose sums are turned at a time."""


@compiled_exactly
def _add_products(
    x: Array,
    rows: Array,
    first_row: int,
    end_row: int,
    terms: Array,
    first_term: int,
    panel: Array,
    first: int,
    count: int,
    out: Array,
    columns: int,
) -> None:
    """Add to rows of `out`, from the first on, products of rows of a table and `count` terms."""
    if columns == WIDE_COLUMNS:
        for row in range(first_row, end_row, WIDE_ROWS):
            start = row - first_row
            add_wide_tile(x, rows, row, terms, first_term, panel, first, count, out, start)
    else:
        for row in range(first_row, end_row, NARROW_ROWS):
            start = row - first_row
            add_narrow_tile(x, rows, row, terms, first_term, panel, first, count, out, start)


@compiled_exactly
def _fill_canvas(x: Array, first: int, last: int, before: Array, canvas: Array) -> None:
    """Copy images (N, C, D, H, W) to the inside of a canvas (images, C, D, H, W)."""
    depth, height, width = before[0], before[1], before[2]
    for image in range(first, last):
        for channel in range(x.shape[1]):
            for d in range(x.shape[2]):
                for h in range(x.shape[3]):
                    line = canvas[image - first, channel, d + depth, h + height]
                    source = x[image, channel, d, h]
                    for w in range(x.shape[4]):
                        line[w + width] = source[w]


@compiled_exactly
def pack_by_outputs(weight: Array, panels: Array) -> None:
    """Arrange a weight (O, terms) as panels (panels, terms, columns) of outputs; others are 0."""
    columns, (outputs, terms) = panels.shape[2], weight.shape
    source, target = weight.reshape(-1), panels.reshape(-1)
    for number in range(len(panels)):
        first = number * columns
        if first + columns > outputs:
            panels[number] = ZERO
        count = min(columns, outputs - first)
        start = number * terms * columns
        turn(source, first * terms, terms, target, start, columns, count, terms)


@compiled_exactly
def pack_by_inputs(weight: Array, taps: Array, panels: Array) -> None:
    """Arrange some taps of a weight (O, C, taps) as panels (panels, O * taps, columns)."""
    columns = panels.shape[2]
    for number in range(len(panels)):
        first = number * columns
        count = min(columns, weight.shape[1] - first)
        for output in range(weight.shape[0]):
            for index in range(len(taps)):
                line = panels[number, output * len(taps) + index]
                for column in range(count):
                    line[column] = weight[output, first + column, taps[index]]
                for column in range(count, columns):
                    line[column] = ZERO


@compiled_exactly
def unpack(sums: Array, weight: Array) -> None:
    """Write sums (panels, terms, columns) to a weight (O, terms)."""
    columns, (outputs, terms) = sums.shape[2], weight.shape
    source, target = sums.reshape(-1), weight.reshape(-1)
    for number in range(len(sums)):
        first = number * columns
        count = min(columns, outputs - first)
        start = number * sums.shape[1] * columns
        turn(source, start, columns, target, first * terms, terms, terms, count)


@compiled_exactly
def _scatter(sums: Array, row: int, rows: int, columns: int, targets: Array, out: Array) -> None:
    """Write rows of sums to columns of `out` that `targets` says."""
    for column in range(len(out)):
        line = out[column]
        for index in range(rows):
            line[targets[index]] = sums[(row + index) * columns + column]


@compiled_exactly
def convolve(
    x: Array,
    before: Array,
    canvas: Array,
    starts: Array,
    targets: Array,
    taps: Array,
    panels: Array,
    bias: Array,
    out: Array,
    first_image: int,
    last_image: int,
) -> None:
    """Multiply windows of images by panels, and add a bias.

    Parameters
    ----------
    x : array, shape (N, C, D, H, W)
        The images.
    before : array, shape (3,)
        Where they begin in the canvas.
    canvas : array, shape (images, C, D, H, W)
        Zeros outside of the images.
    starts : array
        Where the windows of all images of a canvas start, then zeros for a whole tile.
    targets : array
        For each window of an image where its result is.
    taps : array
        Offsets of the elements of a window.
    panels : array, shape (panels, taps, columns)
        The weight.
    bias : array
        For each column of all panels.
    out : array, shape (N, O, windows)
        The results.
    first_image, last_image : int
        The range of images.
    """
    columns, outputs, count = panels.shape[2], out.shape[1], len(targets)
    flat, panel = canvas.reshape(-1), panels.reshape(-1)
    is_dense, result = count == out.shape[2], out.reshape(-1)
    sums = np.empty((_WINDOWS + 8) * columns, np.float32)
    for first in range(first_image, last_image, len(canvas)):
        last = min(first + len(canvas), last_image)
        _fill_canvas(x, first, last, before, canvas)
        every = (last - first) * count
        for begin in range(0, every, _WINDOWS):
            end = min(begin + _WINDOWS, every)
            for number in range(len(panels)):
                shift = bias[number * columns : (number + 1) * columns]
                for row in range(end - begin):
                    for column in range(columns):
                        sums[row * columns + column] = shift[column]
                for term in range(0, len(taps), _TERMS):
                    terms = min(_TERMS, len(taps) - term)
                    line = number * len(taps) + term
                    _add_products(
                        flat, starts, begin, end, taps, term, panel, line, terms, sums, columns
                    )
                wanted = min(columns, outputs - number * columns)
                start = begin
                while start < end:  # windows of one image, as many as are turned at a time
                    image, window = start // count, start % count
                    stop = min(start + _TOGETHER, end, (image + 1) * count)
                    row = start - begin
                    channel = number * columns
                    if is_dense:
                        position = ((first + image) * outputs + channel) * count + window
                        turn(
                            sums,
                            row * columns,
                            columns,
                            result,
                            position,
                            count,
                            stop - start,
                            wanted,
                        )
                    else:
                        lines = out[first + image, channel : channel + wanted]
                        _scatter(sums, row, stop - start, columns, targets[window:], lines)
                    start = stop


@compiled_exactly
def weigh(
    x: Array,
    before: Array,
    canvas: Array,
    starts: Array,
    taps: Array,
    g: Array,
    sums: Array,
    first_image: int,
    last_image: int,
) -> None:
    """Add up products of windows and the gradients of their results; see `convolve`.

    Parameters
    ----------
    taps : array
        As many as `sums` has rows.
    g : array, shape (N, O, windows)
        The gradients.
    sums : array, shape (panels, taps, columns)
        Where they are added.
    """
    columns, outputs, count = sums.shape[2], g.shape[1], g.shape[2]
    flat, gradients = canvas.reshape(-1), g.reshape(-1)
    slopes = np.zeros(_WINDOWS * columns, np.float32)
    for first in range(first_image, last_image, len(canvas)):
        last = min(first + len(canvas), last_image)
        _fill_canvas(x, first, last, before, canvas)
        every = (last - first) * count
        for begin in range(0, every, _WINDOWS):
            end = min(begin + _WINDOWS, every)
            for number in range(len(sums)):
                wanted = min(columns, outputs - number * columns)
                start = begin
                while start < end:
                    image, window = start // count, start % count
                    stop = min(start + _TOGETHER, end, (image + 1) * count)
                    position = ((first + image) * outputs + number * columns) * count + window
                    line = (start - begin) * columns
                    turn(gradients, position, count, slopes, line, columns, wanted, stop - start)
                    start = stop
                result = sums[number].reshape(-1)
                _add_products(
                    flat, taps, 0, len(taps), starts, begin, slopes, 0, end - begin, result, columns
                )
