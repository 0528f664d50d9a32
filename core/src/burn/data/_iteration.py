"""One loop over a `DataLoader`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from burn.data._threads import closed
from burn.data.uploading import Uploads
from burn.errors import WorkerError

__all__ = ["Iteration", "Position"]


@dataclass
class Position:
    """Where a loop is.

    Attributes
    ----------
    epoch, batches : int
        The epoch, and how many of its batches the user has received.
    dataset : object
        The state of an iterable that has one.
    has_begun : bool
        Whether there is or was a loop.
    """

    epoch: int = 0
    batches: int = 0
    dataset: Any = None
    has_begun: bool = False


class Iteration:
    """The batches of an epoch, or of the rest of one.

    Parameters
    ----------
    uploads : Uploads
        The batches.
    position : Position
        Where it begins; it is kept up to date.
    states : dict of int to object
        The state of an iterable after each batch, by its index.
    end : callable
        Called with the position at the end of the epoch.
    """

    def __init__(
        self,
        uploads: Uploads,
        position: Position,
        states: dict[int, Any],
        end: Callable[[Position], None],
    ) -> None:
        self._uploads = uploads
        self._position = position
        self._states = states
        self._end = end
        self._next = position.batches
        self._process = os.getpid()
        self._failure: WorkerError | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._failure is not None:
            raise self._failure
        if self._process != os.getpid():
            raise WorkerError(
                "the loop began in the process that this one was forked from",
                operation="DataLoader",
                hint="Begin a new loop over the loader here",
            )
        try:
            batch = next(self._uploads)
        except StopIteration:
            if self._failure is not None:  # closed in another thread
                raise self._failure from None
            self._end(self._position)
            raise
        except Exception:
            self._states.pop(self._next, None)
            self._next += 1
            raise
        except BaseException:  # Ctrl-C: who knows which batch was on its way
            self.close()
            raise
        self._position.dataset = self._states.pop(self._next, None)
        self._next += 1
        self._position.batches = self._next
        return batch

    def close(self) -> None:
        """End the loop: its next batch is an error."""
        self._failure = closed()
        self._uploads.close()
