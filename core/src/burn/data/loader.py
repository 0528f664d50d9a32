"""Batches of a dataset as tensors: `DataLoader`."""

from __future__ import annotations

import secrets
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from burn.data._fetching import Fetcher, Job
from burn.data._iteration import Iteration, Position
from burn.data._order import batch_count, batches_of_indices
from burn.data._processes import ProcessPool
from burn.data._sources import Ahead, Direct, Stream, StreamedAhead
from burn.data._threads import Pool, ThreadPool
from burn.data.uploading import Source, upload
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.normalize import as_flag, find_device
from burn.locks import new_lock
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.functions.common import DeviceLike

__all__ = ["DataLoader"]

_SEEDS: Final = 1 << 64
"""Seeds are taken modulo this number, as those of devices."""


class DataLoader:
    """Batches of a dataset, as tensors on a device.

    A ``for`` loop over it is an epoch. What the batches are follows from the dataset and the seed
    alone: order and content are the same for any number of workers. Each loop that begins is the
    next epoch, also after one that was left by ``break``; after `load_state_dict` it is the rest of
    the epoch that was saved.

    Parameters
    ----------
    dataset : object
        Examples: an object with ``__len__`` and ``__getitem__`` (lists, arrays, datasets of PyTorch
        and Hugging Face), of which ``__getitems__``, where it is there, takes a list of indices; or
        an iterable, whose examples come in its order.
    batch_size : int
        Number of examples of a batch, at least 1.
    shuffle : bool
        Whether each epoch has a random order of its own. An iterable has to shuffle itself.
    seed : int, optional
        What the orders and all random numbers of loading depend on, modulo 2**64. One is drawn if
        it is left out.
    workers : int
        Number of processes, or threads, that load batches beside the program; with 0 the loop loads
        them itself. Processes start with the first loop, and live until `close`, or until the
        loader is collected as garbage.
    drop_last : bool
        Whether a last batch of fewer examples is left out.
    device : Device or str, optional
        Of the tensors; the default device if left out.
    collate : callable, optional
        Makes a batch of a list of examples; its arrays become tensors. `burn.data.collate` if left
        out.
    transform : callable, optional
        Of each example.
    threads : bool
        Whether the workers are threads.
    prefetch : int
        Number of batches that each worker is ahead, at least 1.

    Raises
    ------
    ArgumentError
        If a number is out of range, or an iterable is to be shuffled.
    OperandTypeError
        If an argument is of another type; if there are worker processes, and the dataset, transform
        or collate cannot be pickled.
    WorkerError
        In a loop: if a worker process ends or cannot start.

    Notes
    -----
    What is raised as a batch is loaded arrives in the loop with its type, and with notes that name
    the example, the worker and its traceback. The batch is left out; ``next`` of the same iterator
    gives the one after it.

    Processes are spawned, and get the dataset, `transform` and `collate` by pickle, once: these are
    defined in a module, or in a script whose main part stands below
    ``if __name__ == "__main__":``. Large arrays of the dataset are in memory once for all of them.

    Python's `random`, NumPy's global generator and torch's are seeded for each batch, by the seed,
    the epoch and the index of the batch; with ``workers=0`` they are put back afterwards. Threads
    cannot have them: there, and best everywhere, draw from `burn.data.rng`.

    An iterable is iterated in the main process, with workers by a thread ahead of use; the workers
    run `transform` and `collate`. So costly work belongs into `transform`.

    Examples
    --------
    >>> import burn
    >>> from burn.data import DataLoader
    >>> loader = DataLoader(range(5), batch_size=2, device="cpu")
    >>> for batch in loader:
    ...     print(batch.tolist())
    [0, 1]
    [2, 3]
    [4]
    >>> len(loader), loader.epoch
    (3, 1)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        workers: int = 0,
        drop_last: bool = False,
        device: DeviceLike | None = None,
        collate: Callable[[Any], Any] | None = None,
        transform: Callable[[Any], Any] | None = None,
        threads: bool = False,
        prefetch: int = 2,
    ) -> None:
        self._dataset = dataset
        self._is_stream = _is_stream(dataset)
        self._batch_size = as_integer(batch_size, "batch_size", "DataLoader", least=1)
        self._shuffle = as_flag(shuffle, "shuffle", "DataLoader")
        self._drop_last = as_flag(drop_last, "drop_last", "DataLoader")
        self._threads = as_flag(threads, "threads", "DataLoader")
        self._workers = as_integer(workers, "workers", "DataLoader", least=0)
        self._prefetch = as_integer(prefetch, "prefetch", "DataLoader", least=1)
        self._device = device if device is None else find_device(device, "DataLoader")
        for name, function in (("collate", collate), ("transform", transform)):
            if function is not None and not callable(function):
                raise OperandTypeError(
                    f"{name} must be a function, not {function!r}", operation="DataLoader"
                )
        if self._is_stream and self._shuffle:
            raise ArgumentError(
                f"shuffle=True needs the length of a dataset and its examples by index, and "
                f"{type(dataset).__name__} is an iterable",
                operation="DataLoader",
                hint="Shuffle where the examples come from (streams of Hugging Face have "
                ".shuffle(seed, buffer_size)), or make a list of them",
            )
        self._seed_was_given = seed is not None
        self._seed = (
            secrets.randbits(63)
            if seed is None
            else as_integer(seed, "seed", "DataLoader") % _SEEDS
        )
        self._fetch = Fetcher(None if self._is_stream else dataset, transform, collate)
        self._has_ended = False
        self._position = Position()
        self._pool: Pool | None = None
        self._lock = new_lock()
        self._iterations: weakref.WeakSet[Iteration] = weakref.WeakSet()

    def __repr__(self) -> str:
        name = type(self._dataset).__name__
        shown = {
            "shuffle": self._shuffle,
            "workers": self._workers,
            "threads": self._threads,
            "drop_last": self._drop_last,
        }
        options = "".join(f", {key}={value}" for key, value in shown.items() if value)
        return f"DataLoader({name}, batch_size={self._batch_size}, seed={self._seed}{options})"

    def __len__(self) -> int:
        length = self._length()
        if length is None:
            raise OperandTypeError(
                f"{type(self._dataset).__name__} is an iterable that does not say how many "
                "examples it has, so the number of batches is unknown",
                operation="len(DataLoader)",
                hint="Count the batches in a loop, or give the dataset a method __len__",
            )
        return batch_count(length, self._batch_size, drop_last=self._drop_last)

    def __iter__(self) -> Iterator[Any]:
        position = self._next_position()
        device = find_device(self._device, "DataLoader")
        jobs = self._stream(position) if self._is_stream else self._jobs(position)
        states = jobs.states if isinstance(jobs, Stream) else {}
        source = self._source(jobs)
        is_owned = self._fetch.collate is None or (self._workers > 0 and not self._threads)
        uploads = upload(source, device, self._prefetch if self._workers else 0, owned=is_owned)
        self._position = position
        iteration = Iteration(uploads, position, states, self._end)
        self._iterations.add(iteration)
        return iteration

    def __reduce__(self) -> NoReturn:
        raise OperandTypeError(
            "a DataLoader has workers and loops of its own, so it cannot be copied or pickled",
            operation="DataLoader",
            hint="Make another one of the same dataset, and load_state_dict() of what "
            "state_dict() of this one gives",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def epoch(self) -> int:
        """The number of the epoch that is going on, or of the next one; the first is 0."""
        return self._position.epoch

    def close(self) -> None:
        """End the workers, and all loops over the loader. A new loop starts workers again.

        Examples
        --------
        >>> from burn.data import DataLoader
        >>> loader = DataLoader(range(4), workers=1, threads=True, device="cpu")
        >>> len(list(loader))
        4
        >>> loader.close()
        """
        for iteration in list(self._iterations):
            iteration.close()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def state_dict(self) -> dict[str, Any]:
        """The position: after the last batch that a loop has received.

        Returns
        -------
        dict of str to object
            The epoch, the number of its batches that were received, and what the loader was made
            with, for `load_state_dict`. An iterable that has ``state_dict`` itself adds its own.

        Examples
        --------
        >>> from burn.data import DataLoader
        >>> loader = DataLoader(range(5), batch_size=2, seed=0, device="cpu")
        >>> for batch in loader:
        ...     break
        >>> loader.state_dict()["epoch"], loader.state_dict()["batches"]
        (0, 1)
        """
        position = self._position
        state = {"epoch": position.epoch, "batches": position.batches, **self._made_with()}
        if position.dataset is not None:
            state["dataset"] = position.dataset
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next loop begin where another loader was.

        What that loop leaves out is not loaded, but for iterables without a state of their own.

        Parameters
        ----------
        state : mapping of str to object
            What `state_dict` gave. The number of workers may have been another one.

        Raises
        ------
        ArgumentError
            If the loader was made with other data, another batch size or seed, or the state is
            damaged.

        Examples
        --------
        >>> from burn.data import DataLoader
        >>> loader = DataLoader(range(5), batch_size=2, seed=0, device="cpu")
        >>> for batch in loader:
        ...     state = loader.state_dict()
        ...     break
        >>> loader.load_state_dict(state)
        >>> [batch.tolist() for batch in loader]
        [[2, 3], [4]]
        """
        operation = "DataLoader.load_state_dict"
        expected = self._made_with()
        if not isinstance(state, Mapping) or not {"epoch", "batches", *expected} <= set(state):
            raise ArgumentError(
                f"{state!r:.200} is no state of a DataLoader",
                operation=operation,
                hint="Give it what state_dict() of a DataLoader gave",
            )
        for name in ("epoch", "batches", "seed"):
            as_integer(state[name], name, operation, least=0)
        for name, value in expected.items():
            if state[name] != value and (name != "seed" or self._seed_was_given):
                raise ArgumentError(
                    f"{name} is {state[name]!r} in the state, and {value!r} here, so the batches "
                    "would be others",
                    operation=operation,
                    hint="Make the loader with the same dataset and arguments; a seed that is left "
                    "out is taken from the state",
                )
        if expected["length"] is not None and state["batches"] > len(self):
            raise ArgumentError(
                f"the state is after batch {state['batches']} of an epoch of {len(self)}",
                operation=operation,
                hint="Give it what state_dict() of a DataLoader gave",
            )
        self._seed = int(state["seed"])
        self._position = Position(int(state["epoch"]), int(state["batches"]), state.get("dataset"))

    def _made_with(self) -> dict[str, Any]:
        return {
            "seed": self._seed,
            "shuffle": self._shuffle,
            "batch_size": self._batch_size,
            "drop_last": self._drop_last,
            "length": self._length(),
        }

    def _length(self) -> int | None:
        return len(self._dataset) if hasattr(self._dataset, "__len__") else None

    def _next_position(self) -> Position:
        """Where a new iteration begins."""
        old = self._position
        if old.has_begun:
            return Position(old.epoch + 1, has_begun=True)
        return Position(old.epoch, old.batches, old.dataset, has_begun=True)

    def _jobs(self, position: Position) -> Iterator[Job]:
        """The batches of an epoch from a position on."""
        batches = batches_of_indices(
            len(self._dataset),
            self._batch_size,
            drop_last=self._drop_last,
            order=(self._seed, position.epoch) if self._shuffle else None,
            start=position.batches,
        )
        for batch, indices in enumerate(batches, position.batches):
            yield Job(self._seed, position.epoch, batch, indices)

    def _stream(self, position: Position) -> Stream:
        """The examples of an iterable from a position on."""
        dataset = self._dataset
        if self._has_ended and iter(dataset) is dataset:
            raise ArgumentError(
                f"{type(dataset).__name__} is an iterator, which gives its examples once, and an "
                "epoch has reached its end",
                operation="DataLoader",
                hint="Take an object whose __iter__ begins anew, or a list of the examples",
            )
        if hasattr(dataset, "set_epoch"):
            dataset.set_epoch(position.epoch)
        has_state = position.dataset is not None and hasattr(dataset, "load_state_dict")
        if has_state:
            dataset.load_state_dict(position.dataset)
        return Stream(
            dataset,
            self._batch_size,
            drop_last=self._drop_last,
            seed=self._seed,
            epoch=position.epoch,
            start=position.batches,
            skip=not has_state,
        )

    def _source(self, jobs: Stream | Iterator[Job]) -> Source:
        if not self._workers:
            return Direct(self._fetch, iter(jobs))
        ahead = self._workers * self._prefetch
        if isinstance(jobs, Stream):
            return StreamedAhead(self._usable_pool(), jobs, ahead)
        return Ahead(self._usable_pool(), jobs, ahead)

    def _usable_pool(self) -> Pool:
        """The workers; new ones if there are none, or one has ended, or this process is a fork."""
        with self._lock:
            if self._pool is None or not self._pool.is_usable:
                if self._pool is not None:
                    self._pool.close()
                make = ThreadPool if self._threads else ProcessPool
                self._pool = make(self._fetch, self._workers)
            return self._pool

    def _end(self, position: Position) -> None:
        """An iteration has reached the end of its epoch."""
        self._has_ended = True
        if self._position is position:
            self._position = Position(position.epoch + 1)


def _is_stream(dataset: Any) -> bool:
    """Whether a dataset has no examples by index."""
    torch = sys.modules.get("torch.utils.data")
    if torch is not None and isinstance(dataset, torch.IterableDataset):
        return True  # it inherits a __getitem__ that only raises
    what = "neither a sequence nor an iterable"
    if getattr(dataset, "shape", None) == ():
        what = "an array of no axis"
    elif isinstance(dataset, Mapping):
        what = "a mapping"
    elif hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return False
    elif isinstance(dataset, Iterable):
        return True
    raise OperandTypeError(
        f"the dataset is a {type(dataset).__name__}, which is {what}",
        operation="DataLoader",
        hint="Give it __len__ and __getitem__ of an index, or __iter__; burn.data.Arrays takes "
        "arrays by their names",
    )
