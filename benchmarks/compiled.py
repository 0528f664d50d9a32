r"""Compiled programs beside `jax.jit`, `torch.compile` and eager burn, on one device.

    python benchmarks/compiled.py                           # on cpu: needs jax, and g++ for torch
    python benchmarks/compiled.py --device cuda             # on a GPU
    python benchmarks/compiled.py --case MLP --case chain   # those whose name has it

Each side is written as its users write it: a step of training is an ordinary function under
`burn.compile`, and a pure function of its state under `jax.jit` with the state donated. Matrix
products have the highest precision on all sides. A call is timed with all of its Python; what is
timed waits for the device at the end of each round. First calls are timed in processes of their
own, without caches on disk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np
import torch

import burn
import burn_models
import jax_models
from burn import nn
from burn.nn import functional as F
from harness import Case, Result, report

__all__ = ["WORKS", "Work"]

jax.config.update("jax_default_matmul_precision", "highest")


class Convolutions(nn.Sequential):
    """Two of convolution, ReLU and pooling, and a linear layer."""

    def __init__(self, size: int) -> None:
        super().__init__(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64 * (size // 4) ** 2, 10),
        )


@dataclass(frozen=True)
class Work:
    """A model that is trained.

    Attributes
    ----------
    name : str
        What it is.
    ours, theirs : callable
        Make the model for burn, and for JAX.
    data : callable
        Inputs and labels.
    hardware : str
        ``"cpu"`` or ``"gpu"``.
    budget : float
        Time of a step as a multiple of that of `jax.jit`.
    dtype : str
        Of the parameters.
    """

    name: str
    ours: Callable[[], nn.Module]
    theirs: Callable[[], Any]
    data: Callable[[], tuple[np.ndarray, np.ndarray]]
    hardware: str
    budget: float
    dtype: str = "float32"


def _classified(*shape: int, classes: int = 10) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def draw() -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(0)
        inputs = generator.normal(size=shape).astype(np.float32)
        return inputs, generator.integers(0, classes, shape[0])

    return draw


def _texts(batch: int, length: int, words: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def draw() -> tuple[np.ndarray, np.ndarray]:
        tokens = np.random.default_rng(0).integers(0, words, (batch, length + 1))
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()

    return draw


def _mlp(name: str, widths: tuple[int, ...], batch: int, hardware: str, budget: float) -> Work:
    return Work(
        f"MLP {name}, batch {batch}",
        lambda: burn_models.MLP(*widths),
        lambda: jax_models.mlp(*widths),
        _classified(batch, widths[0], classes=widths[-1]),
        hardware,
        budget,
    )


def _gpt(
    layers: int,
    width: int,
    heads: int,
    texts: tuple[int, int, int],
    hardware: str,
    dtype: str = "float32",
) -> Work:
    batch, length, words = texts
    shape = words, length, width, layers, heads
    return Work(
        f"GPT {layers}x{width}, {batch}x{length} tokens, {dtype}",
        lambda: burn_models.GPT(*shape),
        lambda: jax_models.gpt(*shape),
        _texts(*texts),
        hardware,
        1.0,
        dtype,
    )


WORKS = [
    _mlp("4-16-2", (4, 16, 2), 8, "cpu", 0.5),
    _mlp("784-512-512-10", (784, 512, 512, 10), 128, "cpu", 1.0),
    _gpt(6, 64, 4, (2, 32, 64), "cpu"),
    _mlp("784-512-512-10", (784, 512, 512, 10), 128, "gpu", 0.7),
    Work(
        "two convolutions, 128 of 28x28",
        lambda: Convolutions(28),
        lambda: jax_models.convolutions(28),
        _classified(128, 1, 28, 28),
        "gpu",
        0.9,
    ),
    *[
        _gpt(layers, 512, 8, (16, 256, 256), "gpu", dtype)
        for dtype in ("float32", "bfloat16")
        for layers in (1, 6)
    ],
]


def burn_training(work: Work, device: burn.Device, *, compiles: bool = True) -> Any:
    """A step of training as a user writes it."""
    model = work.ours().to(device.autodiff())
    if work.dtype != "float32":
        model = model.astype(work.dtype)
    optimizer = burn.optim.Adam(model)
    x, y = (burn.asarray(array, device=device) for array in work.data())
    if x.dtype is burn.float32:
        x = x.astype(work.dtype)

    def step(x: burn.Tensor, y: burn.Tensor) -> burn.Tensor:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(loss.backward())
        return loss.detach()

    function = burn.compile(step) if compiles else step
    return lambda: function(x, y)


def steps(work: Work, device: burn.Device) -> Iterator[Case]:
    """Steps beside those of JAX, and of eager burn."""
    ours = burn_training(work, device)
    eager = burn_training(work, device, compiles=False)
    theirs, wait = jax_models.training(work.theirs(), *work.data(), work.dtype)

    def waits() -> None:
        device.sync()
        wait()

    name = f"{work.name} on {device.name}: step"
    theirs()
    yield Case(name, ours, theirs, "jax.jit", work.budget, waits)
    yield Case(name, ours, eager, "burn, eager", None, device.sync)


def chains(device: burn.Device, kind: str) -> Iterator[Case]:
    """Elementwise work and rows, beside what torch makes of them, and beside a copy of memory."""
    there = "cuda" if kind == "gpu" else "cpu"
    wait = torch.cuda.synchronize if kind == "gpu" else device.sync
    shape = (1 << 28,) if kind == "gpu" else (1_000_000,)
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=shape).astype(np.float32) for _ in range(2))
    x, y = (burn.asarray(tensor, device=device) for tensor in (a, b))
    p, q = (torch.tensor(tensor, device=there) for tensor in (a, b))

    def chain(x: Any, y: Any, library: Any) -> Any:
        return library.sqrt(library.abs(library.tanh(x * y + 0.5) * x + y - 1.0))

    own = burn.compile(lambda x, y: chain(x, y, burn))
    other = torch.compile(lambda x, y: chain(x, y, torch))
    name = f"sqrt(abs(tanh(x*y+0.5)*x+y-1)), {shape[0]} elements on {device.name}"
    yield Case(name, lambda: own(x, y), lambda: other(p, q), "torch.compile", 1.0, wait)
    if kind == "gpu":
        out = torch.empty_like(p)
        limit = lambda: torch.add(p, q, out=out)  # noqa: E731 — reads and writes as much memory
        yield Case(name, lambda: own(x, y), limit, "torch.add, out=", 1.1, wait)
    square = burn.compile(lambda x: x * x + 1.0)
    their_square = torch.compile(lambda x: x * x + 1.0)
    name = f"x*x+1, {shape[0]} elements on {device.name}"
    yield Case(name, lambda: square(x), lambda: their_square(p), "torch.compile", 1.0, wait)

    rows = (8192, 8192) if kind == "gpu" else (1024, 1024)
    c = generator.normal(size=rows).astype(np.float32)
    z, r = burn.asarray(c, device=device), torch.tensor(c, device=there)
    scale, factor = burn.ones(rows[1], device=device), torch.ones(rows[1], device=there)
    ours = burn.compile(lambda x: F.gelu(F.layer_norm(F.softmax(x, axis=-1), scale)))
    functional = torch.nn.functional
    theirs = torch.compile(
        lambda x: functional.gelu(functional.layer_norm(torch.softmax(x, -1), (rows[1],), factor))
    )
    name = f"gelu(layer_norm(softmax(x))), {rows[0]}x{rows[1]} on {device.name}"
    yield Case(name, lambda: ours(z), lambda: theirs(r), "torch.compile", 1.0, wait)


def first_calls(device: burn.Device, works: Sequence[Work]) -> Iterator[Result]:
    """The first call of a compiled step: trace, passes and code, without caches on disk."""
    for work in works:
        ours, theirs, tracing = (
            _seconds_of_first_call(work, device, side) for side in ("burn", "jax", "trace")
        )
        name = f"{work.name} on {device.name}: first call"
        yield Result(name, "jax.jit", ours, theirs, 1.0)
        name = f"{work.name} on {device.name}: tracing"
        eager = _seconds_of_first_call(work, device, "eager")
        yield Result(name, "an eager step", tracing, eager, 3.0)


def _seconds_of_first_call(work: Work, device: burn.Device, side: str) -> float:
    index = str(WORKS.index(work))
    environment = os.environ | {"BURN_CACHE": "0", "BURN_OPENCL_CACHE": ""}
    command = [sys.executable, __file__, "--device", device.name, "--first", side, index]
    output = subprocess.check_output(command, encoding="ascii", env=environment)  # noqa: S603 — our own command
    return float(output.split()[-1])


def print_first_call(work: Work, device: burn.Device, side: str) -> None:
    """Print the seconds of a first call in this process, after both libraries have warmed up."""
    warm = WORKS[0]
    if side == "jax":
        step, wait = jax_models.training(warm.theirs(), *warm.data())
        step()
        wait()
        step, wait = jax_models.training(work.theirs(), *work.data(), work.dtype)
    else:
        compiles = side == "burn"
        wait = device.sync
        warm_step = burn_training(warm, device, compiles=compiles)
        warm_step()
        warm_step()
        step = burn_training(work, device, compiles=compiles)
        if side in ("eager", "trace"):  # the first step makes the moments
            for _ in range(3):
                step()
        if side == "trace":
            _tracing(warm, device)()
            step = _tracing(work, device)
    wait()
    start = time.perf_counter()
    step()
    wait()
    print(time.perf_counter() - start)


def _tracing(work: Work, device: burn.Device) -> Callable[[], object]:
    """The tracing of a step, without what follows; of gradients alone, as `ir.trace` takes them."""
    model = work.ours().to(device.autodiff())
    if work.dtype != "float32":
        model = model.astype(work.dtype)
    x, y = (burn.asarray(array, device=device) for array in work.data())
    if x.dtype is burn.float32:
        x = x.astype(work.dtype)
    parameters = list(model.parameters())

    def gradients(x: burn.Tensor, y: burn.Tensor) -> list[burn.Tensor]:
        found = F.cross_entropy(model(x), y).backward()
        return [found[parameter] for parameter in parameters]

    return lambda: burn.ir.trace(gradients, x, y)


def cases(device: burn.Device, names: Sequence[str]) -> Iterator[Case | Result]:
    """All that is measured on a device, of names that contain one of some."""
    kind = "gpu" if "cuda" in device.name or "gpu" in device.name else "cpu"
    works = [
        work
        for work in WORKS
        if work.hardware == kind and (not names or any(name in work.name for name in names))
    ]
    for work in works:
        yield from steps(work, device)
    if not names or "chain" in names:
        yield from chains(device, kind)
    if not names or "first" in names:
        yield from first_calls(device, works)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--case", action="append", default=[], help="part of a name")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--first", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = burn.Device(options.device)
    if options.first:
        print_first_call(WORKS[int(options.first[1])], device, options.first[0])
        return
    report(cases(device, options.case), "Compiled programs", options.json)


if __name__ == "__main__":
    main()
