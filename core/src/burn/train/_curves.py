"""Curves of a run, drawn by matplotlib without a display and without its global state."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.errors import ArgumentError, StoreError
from burn.train._inputs import as_path
from burn.train._values import EVALUATION, RESERVED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from burn.train.history import History

__all__ = ["check", "draw"]

COLUMNS: Final = 3
PANEL: Final = (4.4, 3.2)
"""Width and height of one plot, in inches."""

LOGARITHMIC: Final = 30.0
"""From this ratio of the largest to the smallest value on, the axis is logarithmic."""


def check(path: str | os.PathLike[str]) -> None:
    """Refuse a picture that could not be drawn: without matplotlib, or in an unknown format."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(
            "a picture of curves needs matplotlib",
            hint='pip install "burn-core[train]"',
            operation="History.draw",
        ) from error
    ending = as_path(path, "path", "History.draw").suffix.removeprefix(".").lower()
    known = Figure().canvas.get_supported_filetypes()
    if ending not in known:
        raise ArgumentError(
            f"the picture {os.fspath(path)!r} ends with {ending!r}",
            hint=f"It must end with one of {', '.join(sorted(known))}",
            operation="History.draw",
        )


def draw(history: History, path: str | os.PathLike[str]) -> None:
    """Save a plot for each name, see `History.draw`."""
    check(path)
    from matplotlib.figure import Figure

    names = [*dict.fromkeys(name.removeprefix(EVALUATION) for name in _scalars(history))]
    if not names:
        raise ArgumentError(
            "the history has no numbers",
            hint="Train first; the step or the evaluation returns what is drawn",
            operation="History.draw",
        )
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    epochs = _Epochs(history.records)
    for axes, name in zip(grid, names, strict=False):
        _plot(axes, history, name, epochs)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise StoreError(
            f"the picture {os.fspath(path)!r} cannot be written: {error.strerror or error}",
            operation="History.draw",
        ) from error


def _scalars(history: History) -> Iterable[str]:
    """Names of values that are numbers: of steps and epochs, then of evaluations."""
    records = [*history.records, *history.steps]
    names = dict.fromkeys(
        name
        for record in records
        for name, value in record.items()
        if name not in RESERVED and isinstance(value, (int, float))
    )
    return sorted(names, key=lambda name: name.startswith(EVALUATION))


class _Epochs:
    """Steps as epochs, by the steps at which these ended; of a single epoch as they are."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        ends = {record["epoch"]: record["step"] for record in records}
        self.are_shown = len(ends) > 1
        self._epochs, self._steps = [0, *ends], [0, *ends.values()]
        self.label = "epoch" if self.are_shown else "step"

    def of(self, steps: list[int]) -> np.ndarray[Any, Any]:
        """Where steps stand on the axis."""
        if not self.are_shown:
            return np.asarray(steps)
        return np.asarray(np.interp(steps, self._steps, self._epochs))


def _plot(axes: Axes, history: History, name: str, epochs: _Epochs) -> None:
    from matplotlib.ticker import MaxNLocator

    values: list[float] = []

    def line(records: list[dict[str, Any]], key: str, **style: Any) -> None:
        points = [(record["step"], _number(record[key])) for record in records if key in record]
        if points:
            steps, heights = map(list, zip(*points, strict=True))
            marker = "o" if len(points) <= 20 and "alpha" not in style else None
            axes.plot(epochs.of(steps), heights, marker=marker, markersize=3, **style)
            values.extend(heights)

    if len(history.steps) > len(history.records):  # fewer show less than the means do
        line(history.steps, name, color="tab:blue", alpha=0.35, linewidth=0.8)
    line(history.records, name, color="tab:blue", label="training")
    line(history.records, EVALUATION + name, color="tab:orange", label="evaluation")
    finite = np.asarray(values)[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() / finite.min() >= LOGARITHMIC:
        axes.set_yscale("log")
    axes.set(title=name.replace("_", " "), xlabel=epochs.label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(which="both", alpha=0.2)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend()


def _number(value: Any) -> float:
    """A number to draw; what is not finite is a gap in the line."""
    is_number = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if is_number else math.nan
