"""A run of training that is killed at random moments, again and again, and always goes on.

``checkpoint_writer.py folder kills steps seed`` trains without interruption once, and writes down
the bits of each step. Then it trains the same in processes that it kills with SIGKILL, each of
which goes on from the newest checkpoint, and compares what they restore. It prints the numbers of
killed processes, of states that were compared, and of kills that left a file of a save. An error
ends it. The processes are forked, so that none of them has to import anything.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np

import burn
from burn import nn
from burn.data import Arrays, DataLoader
from burn.generator import get_state
from burn.nn import functional as F
from burn.optim import schedules
from burn.store import Checkpoints

_RECORD = struct.Struct("<q32s")
"""A step, and the hash of all that the run consists of after it."""


class Run:
    """A model with all that may have a state, from its first step on."""

    def __init__(self, device: burn.Device) -> None:
        device.seed(0)
        random.seed(1)
        np.random.seed(2)  # noqa: NPY002 — one of the generators that are saved
        self.draws = np.random.default_rng(3)
        self.device = device
        self.net = nn.Sequential(
            nn.Linear(6, 32),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(32, 3),
        ).to(device)
        self.optimizer = burn.optim.AdamW(self.net, schedules.cosine(0.01, 1000))
        self.average = burn.optim.ExponentialMovingAverage(self.net, decay=0.9)
        self.scaler = burn.optim.LossScaler(1024.0, interval=5)
        data = Arrays(np.random.default_rng(4).normal(size=(40, 6)).astype(np.float32))
        self.loader = DataLoader(data, batch_size=8, shuffle=True, seed=5, device=device.inner())
        self.best = {"loss": float("inf"), "steps": [0]}

    @property
    def parts(self) -> dict[str, object]:
        return {
            "net": self.net,
            "optimizer": self.optimizer,
            "average": self.average,
            "scaler": self.scaler,
            "loader": self.loader,
            "draws": self.draws,
            "best": self.best,
        }

    def batches(self):
        while True:
            yield from self.loader

    def step(self, x: burn.Tensor) -> None:
        noise = self.draws.normal() + random.random() + np.random.rand()  # noqa: NPY002 — likewise
        targets = burn.random.integers(len(x), 0, 3, device=self.device)
        loss = F.cross_entropy(self.net(x + noise), targets)
        self.scaler.step(self.optimizer, self.scaler.scale(loss).backward())
        self.average.update()
        self.best["loss"] = min(self.best["loss"], loss.item())
        self.best["steps"] = [*self.best["steps"][-2:], self.optimizer.state_dict()["step"]]

    def digest(self) -> bytes:
        """A hash of the bits of all states."""
        found = hashlib.sha256()
        for name, part in self.parts.items():
            if name == "draws":
                state = part.bit_generator.state
            else:
                state = part.state_dict() if hasattr(part, "state_dict") else part
            for key, value in sorted(state.items()):
                found.update(key.encode())
                is_tensor = isinstance(value, burn.Tensor)
                found.update(value.numpy().tobytes() if is_tensor else repr(value).encode())
        found.update(repr((random.getstate(), np.random.get_state()[1:])).encode())  # noqa: NPY002 — likewise
        found.update(repr(get_state(self.device.generator)).encode())
        return found.digest()


def train(folder: Path, steps: int, report: int) -> None:
    """Train up to a step, save after each one, and report what is restored and done."""
    run = Run(burn.Device("cpu").autodiff())
    with Checkpoints(folder, keep=2) as checkpoints:
        found = checkpoints.restore(**run.parts)
        first = 0
        if found is not None:
            first = found.step
            run.best = found.values["best"]
            os.write(report, _RECORD.pack(-first, run.digest()))  # restored
        batches = run.batches()
        for step in range(first + 1, steps + 1):
            run.step(next(batches))
            checkpoints.save(step, **run.parts)
            if step % 3 == 0:  # replaces it
                checkpoints.save(step, **run.parts)
            os.write(report, _RECORD.pack(step - 1, bytes(32)))  # the one before is on the disk
        checkpoints.wait()
        os.write(report, _RECORD.pack(-steps, run.digest()))


def plain(steps: int, report: int) -> None:
    """Train without checkpoints, and report the bits after each step."""
    run = Run(burn.Device("cpu").autodiff())
    batches = run.batches()
    for step in range(1, steps + 1):
        run.step(next(batches))
        os.write(report, _RECORD.pack(-step, run.digest()))


def forked(function, *arguments: object) -> tuple[int, int]:
    """Run a function in a child; its process, and a pipe of what it reports."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        function(*arguments, writing)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        raise
    finally:
        sys.stderr.flush()
        os._exit(status)


def records(
    pipe: int, child: int = 0, draw: random.Random | None = None
) -> list[tuple[int, bytes]]:
    """What a child reports until it ends: by itself, or at a random moment after some steps."""
    content = b""
    kill_after = draw.randrange(1, 5) * _RECORD.size if draw is not None else sys.maxsize
    while more := os.read(pipe, 1 << 16):
        content += more
        if draw is not None and len(content) >= kill_after:
            time.sleep(draw.uniform(0.0, 0.02))
            os.kill(child, signal.SIGKILL)
            draw = None
    os.close(pipe)
    whole = len(content) // _RECORD.size * _RECORD.size
    return list(_RECORD.iter_unpack(content[:whole]))


def main(folder: Path, kills: int, steps: int, seed: int) -> None:
    burn.set_default_device("cpu")  # which a forked process may use
    with Path(os.devnull).open("wb") as nothing:
        train(folder.with_name("first"), 2, nothing.fileno())  # imports what the children need
    draw = random.Random(seed)
    child, pipe = forked(plain, steps)
    expected = {-step: digest for step, digest in records(pipe)}
    assert os.waitpid(child, 0)[1] == 0
    assert len(expected) == steps
    left, killed, restored, furthest, remains = kills, 0, 0, 0, 0
    while left or furthest < steps:
        child, pipe = forked(train, folder, steps)
        told = records(pipe, child, draw if left else None)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), status
        killed += status != 0
        left = max(left - 1, 0)
        remains += any(path.suffix != "" for path in folder.iterdir())
        for number, digest in told:
            if number < 0:  # what a process restored, and what it had in the end
                assert -number >= furthest, (number, furthest)
                assert digest == expected[-number], number
                restored += 1
            furthest = max(furthest, abs(number))
        if furthest == steps and left:  # once more from the beginning
            for path in folder.iterdir():
                path.rename(folder.with_name(f"{path.name}.{left}"))
            furthest = 0
    sys.stdout.write(f"{killed} {restored} {remains}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
