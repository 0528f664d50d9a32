"""What a compiled function read and changed when it was traced before."""

from __future__ import annotations

import warnings
from typing import Any, Final

from burn.transforms._checks import Check
from burn.transforms._reads import Reads

__all__ = ["History"]

_MAX_CHANGES: Final = 8
"""Times that what is no number may change before it is told: a cache has all it needs by then."""


class History:
    """What a function read and changed in its traces so far.

    Parameters
    ----------
    name : str
        How the warning names the function.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: dict[Any, int] = {}
        self._changes: dict[str, int] = {}

    def moving(self, reads: Reads) -> dict[int, Check]:
        """Tensors that are inputs by what holds them, by their ids: it held others before.

        Those which the function reaches in another way as well are not.
        """
        held = [
            tensor
            for key, tensor in reads.tensors().items()
            if self._held.setdefault(key, id(tensor.value)) != id(tensor.value)
        ]
        if not held:
            return {}
        counts = reads.counts()
        return {id(check.value): check for check in held if counts[id(check.value)] == 1}

    def is_traced_again(self, check: Check) -> bool:
        """Whether the next call traces the function again, as it has changed what it reads.

        It does once for a number, and some times for what may be a cache. Then a warning says that
        later calls see no change.
        """
        times = self._changes.get(check.name, 0)
        self._changes[check.name] = times + 1
        limit = 1 if check.is_value else _MAX_CHANGES
        if times == limit:
            warnings.warn(
                f"burn.compile: {self._name} reads {check.name} and changes it at each call, but "
                "its Python code runs while it is traced: later calls compute with what was there "
                "then. Make it a tensor, as burn.asarray(0), or change it outside of the function",
                stacklevel=6,
            )
        return times < limit
