"""Tables: what kernels look up, computed once on the host and kept on the device."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from burn.data import TensorData
from burn_opencl.buffers import Buffer

__all__ = ["Tables"]

_KEPT: Final = 128


class Tables:
    """Tables of one device, those that were used last.

    Parameters
    ----------
    owner : object
        The backend's object for the device.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._found: OrderedDict[Hashable, list[Buffer]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Hashable, make: Callable[[], Sequence[np.ndarray[Any, Any]]]) -> list[Buffer]:
        """The arrays that `make` gives for a key."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found
        own = self._owner
        made = [own.from_data(TensorData(np.ascontiguousarray(one)), own.device) for one in make()]
        with self._lock:
            self._found[key] = made
            while len(self._found) > _KEPT:
                self._found.popitem(last=False)
        return made

    def release(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._found.clear()
