"""Code: a kernel in a language, ready to be compiled and launched."""

from __future__ import annotations

from dataclasses import dataclass

from burn.kernels.indices import Formula
from burn.kernels.kernel import Extent, Kernel, Length

__all__ = ["Code", "Extent", "Formula", "Kernel", "Length"]


@dataclass(frozen=True)
class Code:
    """What a dialect makes of a kernel (`Backend.dialect`).

    Attributes
    ----------
    kernel : Kernel
        The kernel: it says what a launch reads and writes.
    text : str
        The source.
    entry : str
        Name of the function in it.
    groups : Formula
        Work groups of a launch with some scalars, for a device that has them.
    lanes : int
        Lanes of each.
    """

    kernel: Kernel
    text: str
    entry: str
    groups: Formula
    lanes: int
