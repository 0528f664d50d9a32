"""What `burn.train.fit` costs over a bare loop that calls the same step."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn import nn
from burn.nn import functional as F
from harness import Case

STEPS = 200
"""Steps of one run: the work that is measured."""


class Terminal:
    """A terminal without a screen, so that bars are drawn."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._file = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 — until the end

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, text: str) -> int:
        return self._file.write(text)

    def flush(self) -> None:
        self._file.flush()


def sleeping(seconds: float) -> Callable[[Any], object]:
    """A step that waits as for a device, and has a loss."""
    loss = burn.ones((), device="cpu")

    def step(_batch: object) -> object:
        time.sleep(seconds)
        return {"loss": loss, "learning_rate": 0.1}

    return step


def busy(seconds: float) -> Callable[[Any], object]:
    """A step that computes on the host, and has a loss."""
    loss = burn.ones((), device="cpu")

    def step(_batch: object) -> object:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
        return {"loss": loss, "learning_rate": 0.1}

    return step


def model_step(batches: list[Any], width: int) -> Callable[[Any], object]:
    """A step of a dense network with Adam."""
    device = burn.Device("cpu").autodiff()
    net = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    ).to(device)
    optimizer = burn.optim.Adam(net)
    rng = np.random.default_rng(0)
    images = rng.normal(size=(128, 64)).astype("float32")
    labels = rng.integers(0, 10, 128)
    batches[:] = [(burn.asarray(images, device=device), burn.asarray(labels, device=device))]
    batches *= STEPS

    def step(batch: Any) -> object:
        images, labels = batch
        loss = F.cross_entropy(net(images), labels)
        optimizer.step(loss.backward())
        return {"loss": loss, "learning_rate": optimizer.learning_rate}

    return step


def training() -> Iterator[Case]:
    """Runs with bars, a log and values that are added up, and the loop alone."""
    folder = Path(tempfile.mkdtemp())
    images: list[Any] = []
    dense = model_step(images, 720)  # about 5 ms a step
    arrays = [np.zeros((32, 8))] * STEPS
    works = [
        ("sleeps 5 ms", sleeping(5e-3), arrays, 1.02),
        ("computes for 5 ms", busy(5e-3), arrays, 1.02),
        ("dense network, Adam", dense, images, 1.02),
        ("computes for 0.2 ms", busy(2e-4), arrays, None),
    ]

    def fitted(step: Callable[[Any], object], batches: list[Any]) -> None:
        with contextlib.redirect_stderr(Terminal()):  # type: ignore[type-var]
            burn.train.fit(step, batches, epochs=1, log=folder / "run.jsonl", log_every=20)

    def bare(step: Callable[[Any], object], batches: list[Any]) -> None:
        for batch in batches:
            step(batch)

    for name, step, batches, budget in works:
        yield Case(
            f"{STEPS} steps, each {name}",
            lambda step=step, batches=batches: fitted(step, batches),
            lambda step=step, batches=batches: bare(step, batches),
            "a bare loop",
            budget,
        )
