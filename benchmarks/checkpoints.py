"""What a checkpoint of a model with 256 MB of weights takes from the training."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator

import burn
from burn import nn
from burn.store import Checkpoints
from harness import Result

__all__ = ["checkpoints"]

LAYERS, WIDTH, REPEATS = 16, 2048, 7
"""16 matrices of 16 MB in float32; the median of 7 saves counts."""


def checkpoints() -> Iterator[Result]:
    """The time that `save` blocks, and the time until the files are on the disk."""
    layers = [nn.Linear(WIDTH, WIDTH, bias=False, device="cpu") for _ in range(LAYERS)]
    net = nn.Sequential(*layers)
    blocked, written, copied, plain = [], [], [], []
    with tempfile.TemporaryDirectory() as folder, Checkpoints(folder, keep=1) as saved:
        for step in range(REPEATS):
            start = time.perf_counter()
            saved.save(step, net=net)
            blocked.append(time.perf_counter() - start)
            saved.wait()
            written.append(time.perf_counter() - start)
            start = time.perf_counter()
            copies = [x.numpy().copy() for x in net.state_dict().values()]
            copied.append(time.perf_counter() - start)
            del copies
            start = time.perf_counter()
            burn.store.save(net, f"{folder}/net.safetensors")
            plain.append(time.perf_counter() - start)
    middle = statistics.median
    yield Result("checkpoint: save() blocks", "a copy", middle(blocked), middle(copied), 0.5)
    yield Result("checkpoint: files are there", "store.save", middle(written), middle(plain), None)
