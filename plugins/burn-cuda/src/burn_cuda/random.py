"""Random numbers whose state a captured program reads anew in each run."""

from __future__ import annotations

from typing import Any, Final

import burn.plugin_api as core
from burn.plugin_api import philox_state

__all__ = ["DrawnNumber", "RandomOps"]


class DrawnNumber:
    """The seed, or the offset, of a program: the device reads it, so that each run has its own.

    Parameters
    ----------
    address : int
        Where the device has what `philox_state` gives for the run.
    plus : int
        What is added to the offset here.
    """

    __slots__ = ("address", "plus")

    def __init__(self, address: int, plus: int = 0) -> None:
        self.address: Final = address
        self.plus: Final = plus

    def __add__(self, other: int) -> DrawnNumber:
        return DrawnNumber(self.address, self.plus + other)


class RandomOps(core.RandomOps):
    """Random numbers."""

    def random_state(self, seed: Any, offset: Any) -> tuple[int, int, int, int]:
        """Numbers, and the address of what the device adds to them."""
        if isinstance(offset, DrawnNumber):  # so is the seed
            return *philox_state(0, offset.plus), offset.address
        return *philox_state(seed, offset), 0
