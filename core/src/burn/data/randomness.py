"""Random numbers of the code that loads a batch: the same for a seed, whatever the workers."""

from __future__ import annotations

import enum
import random
import sys
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["rng"]

_WORD: Final = (1 << 32) - 1
"""The lower 32 bits of a seed."""

_WORDS: Final = 8
"""Number of 32-bit words that seed each of the global generators."""


class Purpose(enum.IntEnum):
    """What random numbers are for: each has a stream of its own."""

    ORDER = 0
    FETCH = 1
    SOURCE = 2


class Drawing:
    """The generator of a batch, made when it is first asked for; a context in which `rng` gives it.

    Parameters
    ----------
    seed, epoch, batch : int
        What the numbers depend on, each at least 0; the seed is below 2**64.
    purpose : Purpose
        What they are for: the order of an epoch, what an iterable draws, or all else.
    """

    __slots__ = ("_entropy", "_generator", "_token")

    def __init__(self, seed: int, epoch: int, batch: int, purpose: Purpose) -> None:
        # A number of words that does not depend on the values, as NumPy joins the words of all.
        self._entropy = (seed & _WORD, seed >> 32, epoch, batch, int(purpose))
        self._generator: np.random.Generator | None = None
        self._token: Token[Drawing | None] | None = None

    def __enter__(self) -> None:
        self._token = _current.set(self)

    def __exit__(self, *details: object) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def sequence(self) -> np.random.SeedSequence:
        """The seed of all generators of this batch."""
        return np.random.SeedSequence(self._entropy)

    def generator(self) -> np.random.Generator:
        """The generator."""
        if self._generator is None:
            self._generator = np.random.Generator(np.random.Philox(self.sequence()))
        return self._generator

    def seed_global_generators(self) -> None:
        """Seed those of Python, of NumPy and, if it is imported, of torch."""
        words = self.sequence().generate_state(_WORDS)
        number = int.from_bytes(words[:2].tobytes(), "little")
        random.seed(number)
        np.random.seed(words)  # noqa: NPY002 — what users of the global generator draw from
        if torch := _torch():
            torch.default_generator.manual_seed(number)

    @contextmanager
    def global_generators(self) -> Iterator[None]:
        """A context in which the global generators are seeded; after it they are as before."""
        python, numpy, torch = random.getstate(), np.random.get_state(legacy=False), _torch()  # noqa: NPY002 — as above
        tensor = torch.default_generator.get_state() if torch else None
        try:
            self.seed_global_generators()
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002 — as above
            if torch:
                torch.default_generator.set_state(tensor)


_current: Final[ContextVar[Drawing | None]] = ContextVar("burn_data_drawing", default=None)
"""That of the batch which this thread loads."""


def rng() -> np.random.Generator:
    """The random numbers of the batch that is being loaded.

    They depend on the seed of the `DataLoader`, on the epoch and on the index of the batch, so that
    what a dataset, a transform or a collate function draws is the same whatever the number of
    workers, and after a run was resumed.

    Returns
    -------
    numpy.random.Generator
        One for each batch: its examples draw from it one after the other.

    Raises
    ------
    ArgumentError
        If no `DataLoader` is loading a batch in this thread.

    Examples
    --------
    >>> import burn
    >>> from burn.data import DataLoader, rng
    >>> def noisy(x):
    ...     return x + rng().normal()
    >>> loader = DataLoader([1.0, 2.0], transform=noisy, seed=0, device="cpu")
    >>> again = DataLoader([1.0, 2.0], transform=noisy, seed=0, device="cpu")
    >>> [x.item() for x in loader] == [x.item() for x in again]
    True
    """
    drawing = _current.get()
    if drawing is None:
        raise ArgumentError(
            "there are random numbers for code that loads a batch, and no batch is being loaded "
            "in this thread",
            operation="burn.data.rng()",
            hint="Call it in a dataset, a transform or a collate function of a DataLoader; "
            "elsewhere use numpy.random.default_rng(seed)",
        )
    return drawing.generator()


def _torch() -> Any:
    """The module torch, if this process has imported it to the end."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "default_generator") else None
