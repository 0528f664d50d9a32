"""What docstrings of functions of images say for signals and for volumes."""

from __future__ import annotations

from typing import Final

__all__ = ["SIGNALS", "VOLUMES"]

SIGNALS: Final = {
    "Images": "Signals",
    "images": "signals",
    "image": "signal",
    "H, W": "L",
    "kernel height, kernel width": "kernel",
    "Height and width of a window": "Length of a window",
    "Number of rows and columns": "Number of windows",
    "rows, columns": "windows",
    "``row * W + column``": "those along the last axis",
    "2d": "1d",
}
"""Of one axis: the words of `documented_as`."""

VOLUMES: Final = {
    "Images": "Volumes",
    "images": "volumes",
    "image": "volume",
    "H, W": "D, H, W",
    "kernel height, kernel width": "kernel depth, kernel height, kernel width",
    "Height and width of a window": "Depth, height and width of a window",
    "Number of rows and columns": "Number of planes, rows and columns",
    "rows, columns": "planes, rows, columns",
    "``row * W + column``": "``(plane * H + row) * W + column``",
    "2d": "3d",
}
"""Of three axes."""
