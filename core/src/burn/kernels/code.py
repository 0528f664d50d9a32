"""Code: a kernel in a language, ready to be compiled and launched."""

from __future__ import annotations

from dataclasses import dataclass

from burn.kernels.kernel import Kernel

__all__ = ["Code", "Kernel"]


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
    groups, lanes : int
        Work groups of a launch, and lanes of each, for a device that has them.
    """

    kernel: Kernel
    text: str
    entry: str
    groups: int = 1
    lanes: int = 1
