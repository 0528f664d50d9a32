"""`burn.data.DataLoader` beside `torch.utils.data.DataLoader`: waiting, overhead, throughput.

Both load the same datasets, with as many workers that are as far ahead; torch's are spawned, too.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

import burn
from burn.data import Arrays, DataLoader
from harness import Case, Result

__all__ = ["data_loading"]

SOURCE, STEP = 0.015, 0.020
"""Seconds that a batch takes to load, and a step."""

STEPS = 300
WORKERS = 2
LATE = 1e-3
"""Seconds: a step that waits longer is late; one in a hundred may be."""

IMAGES = 200
"""Batches of a loop that measures throughput."""


class Sleeping:
    """Batches of one example that take as long to load as a device computes."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> np.ndarray:
        if not 0 <= index < self._length:
            raise IndexError(index)
        time.sleep(SOURCE)
        return np.full(16, index, np.float32)


class Images:
    """Pictures of 3 x 64 x 64 float32 numbers, 48 KiB each."""

    def __len__(self) -> int:
        return 32 * IMAGES

    def __getitem__(self, index: int) -> np.ndarray:
        return np.full((3, 64, 64), index, np.float32)


def burn_loader(dataset: Any, batch_size: int, workers: int) -> DataLoader:
    """Ours."""
    return DataLoader(dataset, batch_size, workers=workers, device="cpu")


def torch_loader(dataset: Any, batch_size: int, workers: int) -> Iterable[Any]:
    """Torch's, as its workers are spawned."""
    spawned = {
        "num_workers": workers,
        "multiprocessing_context": "spawn",
        "persistent_workers": True,
        "prefetch_factor": 2,
    }
    return torch.utils.data.DataLoader(
        dataset,
        batch_size,
        **spawned if workers else {},  # type: ignore[arg-type]  # of many types
    )


def waits(loader: Iterable[Any], step: Callable[[], object]) -> list[float]:
    """Seconds that each step waits for its batch, but the first, for which workers start."""
    batches = iter(loader)
    next(batches)
    found = []
    while True:
        step()
        start = time.perf_counter()
        if next(batches, None) is None:
            return found
        found.append(time.perf_counter() - start)


def waiting() -> Iterator[Result]:
    """Steps of 20 ms over batches of 15 ms: what the slowest hundredth of them waits."""
    sleep = functools.partial(time.sleep, STEP)
    sources: dict[str, Callable[[], Any]] = {
        "dataset": lambda: Sleeping(STEPS),
        "iterable": lambda: iter(Sleeping(STEPS)),  # type: ignore[call-overload]  # by its indices
    }

    def compute() -> None:
        start = time.perf_counter()
        while time.perf_counter() - start < STEP:
            pass

    for kind, step in (("sleeps", sleep), ("computes in Python", compute)):
        theirs = waits(torch_loader(Sleeping(STEPS), 1, WORKERS), step)
        for name, make in sources.items():
            with burn_loader(make(), 1, WORKERS) as loader:
                ours = waits(loader, step)
            title = f"{name}, step {kind}: "
            wait, other = (float(np.quantile(found, 0.99)) for found in (ours, theirs))
            budget = LATE / other if step is sleep else None  # else the system's turns count
            yield Result(f"{title}wait of 99 in 100", "torch", wait, other, budget)
            late, other = (float(np.mean(np.array(found) > LATE)) for found in (ours, theirs))
            yield Result(f"{title}share > 1 ms", "torch", late, other or 0.01, None, "")


def epoch(loader: Iterable[Any]) -> Callable[[], None]:
    """Go through a loader."""

    def loop() -> None:
        for _ in loader:
            pass

    return loop


def data_loading() -> Iterator[Case | Result]:
    """All of it."""
    yield from waiting()

    rows = [np.full(16, index, np.float32) for index in range(3200)]

    def bare() -> None:
        for start in range(0, len(rows), 32):
            burn.asarray(np.stack(rows[start : start + 32]), device="cpu")

    ours = burn_loader(rows, 32, 0)
    yield Case("100 batches of 32 rows, workers=0", epoch(ours), bare, "a loop with np.stack")
    theirs = torch_loader(rows, 32, 0)
    yield Case("100 batches of 32 rows, workers=0", epoch(ours), epoch(theirs), "torch")

    x, y = np.zeros((3200, 16), np.float32), np.zeros(3200, np.int64)
    ours = burn_loader(Arrays(x, y), 32, 0)
    theirs = torch_loader(torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y)), 32, 0)

    def sliced() -> None:
        for start in range(0, len(x), 32):
            burn.asarray(x[start : start + 32], device="cpu")
            burn.asarray(y[start : start + 32], device="cpu")

    yield Case("100 batches of Arrays, workers=0", epoch(ours), sliced, "a loop with slices")
    yield Case(
        "100 batches of Arrays, workers=0", epoch(ours), epoch(theirs), "torch, TensorDataset"
    )

    with burn_loader(rows, 32, WORKERS) as ours:
        theirs = torch_loader(rows, 32, WORKERS)
        yield Case("100 small batches, workers=2", epoch(ours), epoch(theirs), "torch")
    with burn_loader(Images(), 32, WORKERS) as ours:
        theirs = torch_loader(Images(), 32, WORKERS)
        yield Case(f"{IMAGES} batches of 1.5 MiB, workers=2", epoch(ours), epoch(theirs), "torch")

    def started(make: Callable[..., Any]) -> float:
        start = time.perf_counter()
        loader = make(rows, 32, WORKERS)
        next(iter(loader))
        return time.perf_counter() - start

    yield Result(
        "first batch of 2 workers", "torch", started(burn_loader), started(torch_loader), None
    )
