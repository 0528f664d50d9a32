"""What loads a batch, in this process or in a worker: from indices to nested arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from burn.data.randomness import Drawing, Purpose
from burn.errors import ArgumentError

__all__ = ["Fetcher", "Job"]


class Job(NamedTuple):
    """A batch to load.

    Attributes
    ----------
    seed, epoch, batch : int
        What its random numbers depend on.
    indices : sequence of int
        Of its examples, in the dataset or in what an iterable has given.
    examples : list or None
        Those of an iterable.
    """

    seed: int
    epoch: int
    batch: int
    indices: Sequence[int]
    examples: list[Any] | None = None


@dataclass(frozen=True)
class Fetcher:
    """Loads batches.

    Attributes
    ----------
    dataset : object
        Has ``__getitem__``, or ``__getitems__`` for many; None for an iterable, whose examples come
        with the jobs.
    transform : callable or None
        Of an example.
    collate : callable or None
        Makes a batch of examples; None for `burn.data.collate`.
    """

    dataset: Any
    transform: Callable[[Any], Any] | None
    collate: Callable[[Any], Any] | None

    @cached_property
    def may_draw(self) -> bool:
        """Whether code of the user's runs, which may draw from the global generators."""
        has_functions = self.transform is not None or self.collate is not None
        return has_functions or not (self.dataset is None or _is_plain(self.dataset))

    def __call__(self, job: Job, *, seeds: str = "") -> Any:
        """Load a batch.

        Parameters
        ----------
        job : Job
            Which.
        seeds : str
            ``"once"`` to seed the global generators of this process, ``"back"`` to have them after
            it as they are now, ``""`` to leave them alone, as threads have to.

        Returns
        -------
        object
            What `collate` returns.
        """
        drawing = Drawing(job.seed, job.epoch, job.batch, Purpose.FETCH)
        if not self.may_draw:
            seeds = ""  # most of the time that a small batch takes
        if seeds == "once":
            drawing.seed_global_generators()
        with drawing, drawing.global_generators() if seeds == "back" else nullcontext():
            try:
                return self._collated(self._examples(job))
            except StopIteration as error:  # would end the loop of the caller without a word
                raise RuntimeError(
                    f"StopIteration was raised while batch {job.batch} of epoch {job.epoch} was "
                    "loaded"
                ) from error

    def _examples(self, job: Job) -> Any:
        examples: Any = job.examples
        if examples is None and hasattr(self.dataset, "__getitems__"):
            examples = self.dataset.__getitems__(list(job.indices))
            if not hasattr(examples, "__len__"):
                examples = list(examples)
            if len(examples) != len(job.indices):
                raise ArgumentError(
                    f"__getitems__ of {type(self.dataset).__name__} gave {len(examples)} examples "
                    f"for {len(job.indices)} indices",
                    operation="DataLoader",
                    hint="Let it return a list with one example for each index",
                )
        elif examples is None:
            examples = []
            with _named(job.indices, examples):
                for index in job.indices:  # no map(): it would take a StopIteration for its own
                    examples.append(self.dataset[index])
        if self.transform is None:
            return examples
        transformed: list[Any] = []
        with _named(job.indices, transformed):
            for example in examples:
                transformed.append(self.transform(example))  # noqa: PERF401 — as above
        return transformed

    def _collated(self, examples: Any) -> Any:
        if self.collate is not None:
            return self.collate(examples if isinstance(examples, list) else list(examples))
        from burn.data.collating import collate

        return collate(examples)


def _is_plain(dataset: Any) -> bool:
    """Whether what gives the examples of a dataset is known to draw no random numbers."""
    from burn.data.datasets import Arrays, Concatenated, Subset, Windows

    kind = type(dataset)  # a class that is derived from these may do anything
    if kind is Subset:
        return _is_plain(dataset._dataset)
    if kind is Concatenated:
        return all(map(_is_plain, dataset._datasets))
    return kind in (Arrays, Windows, list, tuple, range, np.ndarray)


@contextmanager
def _named(indices: Sequence[int], loaded: list[Any]) -> Iterator[None]:
    """Add to an exception which example it is about: the one after those that are loaded."""
    try:
        yield
    except Exception as error:
        if len(loaded) < len(indices):
            error.add_note(f"Example {indices[len(loaded)]} was being loaded.")
        raise
