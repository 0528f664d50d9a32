r"""Models beside torch eager, on one device: steps of training, and the memory that these take.

    python benchmarks/models.py                                  # on cpu and torch/cpu
    python benchmarks/models.py --device cuda --device torch/cuda
    python benchmarks/models.py --model GPT --model LSTM         # those whose name has it
    BURN_CPU_JIT=0 python benchmarks/models.py --device cpu      # without numba
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 \
        python benchmarks/models.py --threads 1

The models are written twice, in burn_models.py and torch_models.py, with the same names. A step is
a forward pass, a backward pass and Adam; torch's Adam is the default one, and where the table says
so the fused one. All is float32. What is timed waits for the device at the end of each round.

The peak memory of three steps, parameters and moments included, is what the allocators of a GPU
count, and on the CPU the growth of a process, which is read from Linux and says nothing of small
models. The large models are for GPUs, unless ``--model`` names them.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import burn
import burn_models
import torch_models
from burn.nn import functional as F
from harness import READS_MEMORY, Case, Result, measure_memory, memory_growth, report

__all__ = ["MLP", "TINY_MLP", "burn_training", "models", "torch_training"]

Way = Callable[[], object]
Arrays = tuple[np.ndarray, np.ndarray]

STEPS = 3
"""Number of steps whose memory is measured."""


@dataclass(frozen=True)
class Work:
    """A model to be trained.

    Attributes
    ----------
    name : str
        What the model is, and its batches.
    model : callable
        Makes it, of the module burn_models or torch_models.
    data : callable
        Inputs and targets, of a generator of random numbers.
    loss : str
        A function of both libraries.
    hardware : str
        ``"gpu"`` or ``"cpu"`` for sizes that are meant for these.
    budgets : dict
        For devices that have one for a step.
    parts : dict
        For devices that have some: those of the forward pass, of the forward and backward pass, and
        of a step beside torch's fused Adam.
    is_small : bool
        Whether what is around the kernels takes the time. Then the forward pass alone, and with
        the backward pass, are measured too, and torch's fused Adam.
    """

    name: str
    model: Callable[[Any], Any]
    data: Callable[[np.random.Generator], Arrays]
    loss: Literal["cross_entropy", "mse_loss"] = "cross_entropy"
    hardware: Literal["any", "cpu", "gpu"] = "any"
    budgets: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    is_small: bool = False

    def arrays(self) -> Arrays:
        """The same inputs and targets for each way."""
        return self.data(np.random.default_rng(0))


def classified(*shape: int, classes: int) -> Callable[[np.random.Generator], Arrays]:
    """Random numbers, and a class for each example."""

    def draw(generator: np.random.Generator) -> Arrays:
        inputs = generator.normal(size=shape).astype(np.float32)
        return inputs, generator.integers(0, classes, shape[0])

    return draw


def texts(batch: int, length: int, vocabulary: int) -> Callable[[np.random.Generator], Arrays]:
    """Random tokens, and those that follow them."""

    def draw(generator: np.random.Generator) -> Arrays:
        tokens = generator.integers(0, vocabulary, (batch, length + 1))
        return tokens[:, :-1].copy(), tokens[:, 1:].copy()

    return draw


def vectors(*shape: int) -> Callable[[np.random.Generator], Arrays]:
    """Random inputs and targets."""

    def draw(generator: np.random.Generator) -> Arrays:
        inputs, targets = generator.normal(size=(2, *shape)).astype(np.float32)
        return inputs, targets

    return draw


TINY_MLP = Work(
    "MLP 4-16-2, batch 8",
    lambda models: models.MLP(4, 16, 2),
    classified(8, 4, classes=2),
    budgets={"cpu:0": 0.6},
    is_small=True,
)

MLP = Work(
    "MLP 784-512-512-10, batch 128",
    lambda models: models.MLP(784, 512, 512, 10),
    classified(128, 784, classes=10),
    budgets={"torch/cpu:0": 1.25, "cuda:0": 1.0, "torch/cuda:0": 1.25},
)

WORKS = [
    TINY_MLP,
    MLP,
    Work(
        "CNN 1-32-64, 64 of 28x28",
        lambda models: models.CNN(28),
        classified(64, 1, 28, 28, classes=10),
        budgets={"cuda:0": 1.0, "torch/cuda:0": 1.25, "cpu:0": 2.0},
    ),
    Work(
        "ResNet-18, 8 of 3x32x32",
        lambda models: models.ResNet18(10),
        classified(8, 3, 32, 32, classes=10),
        hardware="cpu",
    ),
    Work(
        "ResNet-18, 64 of 3x64x64",
        lambda models: models.ResNet18(10),
        classified(64, 3, 64, 64, classes=10),
        hardware="gpu",
        budgets={"cuda:0": 1.0, "torch/cuda:0": 1.25},
    ),
    Work(
        "GPT 6x16, 2x8 tokens",
        lambda models: models.GPT(64, 8, 16, 6, 2),
        texts(2, 8, 64),
        budgets={"cpu:0": 0.6, "torch/cpu:0": 1.1},
        parts={"cpu:0": (0.8, 0.8, 1.0), "torch/cpu:0": (1.5, 1.3, None)},
        is_small=True,
    ),
    Work(
        "GPT 6x512, 16x256 tokens",
        lambda models: models.GPT(8192, 256, 512, 6, 8),
        texts(16, 256, 8192),
        hardware="gpu",
        budgets={"cuda:0": 1.0, "torch/cuda:0": 1.25},
    ),
    Work(
        "transformer block 256, 8x128 vectors",
        lambda models: models.Block(256, 8),
        vectors(8, 128, 256),
        "mse_loss",
        budgets={"cpu:0": 2.0},
    ),
    Work(
        "LSTM 128, 32x32 tokens",
        lambda models: models.LanguageModel(64, 128),
        texts(32, 32, 64),
        budgets={"cuda:0": 1.0, "torch/cuda:0": 1.25},
    ),
    Work(
        "ViT 4x128, 8 of 3x32x32",
        lambda models: models.ViT(32, 4, 128, 4, 4, 10),
        classified(8, 3, 32, 32, classes=10),
        hardware="cpu",
    ),
    Work(
        "ViT 12x384, 32 of 3x224x224",
        lambda models: models.ViT(224, 16, 384, 12, 6, 1000),
        classified(32, 3, 224, 224, classes=1000),
        hardware="gpu",
    ),
]


def burn_training(work: Work, device: burn.Device) -> tuple[Way, Way]:
    """The gradients of a model, and a step of training, in burn."""
    model = work.model(burn_models).to(device.autodiff())
    optimizer = burn.optim.Adam(model)
    x, y = (burn.asarray(array, device=device) for array in work.arrays())
    loss = getattr(F, work.loss)

    def gradients() -> burn.Gradients:
        return loss(model(x), y).backward()

    return gradients, lambda: optimizer.step(gradients())


def torch_training(work: Work, device: str, *, fused: bool = False) -> tuple[Way, Way]:
    """The same in torch."""
    model = work.model(torch_models).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=fused or None)
    x, y = (torch.tensor(array, device=device) for array in work.arrays())
    loss = getattr(torch.nn.functional, work.loss)
    has_steps = work.loss == "cross_entropy" and y.ndim == 2  # torch's classes are the second axis

    def gradients() -> None:
        optimizer.zero_grad()
        scores = model(x)
        (loss(scores.flatten(0, 1), y.flatten()) if has_steps else loss(scores, y)).backward()

    def step() -> None:
        gradients()
        optimizer.step()

    return gradients, step


def burn_inference(work: Work, device: burn.Device) -> Way:
    """The forward pass alone, in burn."""
    model = work.model(burn_models).to(device)
    x = burn.asarray(work.arrays()[0], device=device)
    return lambda: model(x)


def torch_inference(work: Work, device: str) -> Way:
    """The same in torch."""
    model = work.model(torch_models).to(device).eval()
    x = torch.tensor(work.arrays()[0], device=device)

    def forward() -> object:
        with torch.no_grad():
            return model(x)

    return forward


def times(work: Work, device: burn.Device) -> Iterator[Case]:
    """What is timed of a model."""
    there = _torch_device(device)
    name = f"{work.name} on {device.name}"
    wait = torch.cuda.synchronize if there == "cuda" else device.sync
    gradients, step = burn_training(work, device)
    their_gradients, their_step = torch_training(work, there)
    parts = work.parts.get(device.name, (None, None, None))
    if work.is_small:
        ours, theirs = burn_inference(work, device), torch_inference(work, there)
        yield Case(f"{name}: forward", ours, theirs, "torch", parts[0], wait)
        yield Case(
            f"{name}: forward and backward", gradients, their_gradients, "torch", parts[1], wait
        )
    yield Case(f"{name}: step", step, their_step, "torch", work.budgets.get(device.name), wait)
    if work.is_small:
        _, fused = torch_training(work, there, fused=True)
        yield Case(f"{name}: step", step, fused, "torch, fused Adam", parts[2], wait)


def memory(work: Work, device: burn.Device) -> Result:
    """The peak memory of some steps."""
    name = f"{work.name} on {device.name}: memory of {STEPS} steps"
    if _torch_device(device) == "cuda":
        ours, theirs = (_allocated(work, device, side) for side in ("burn", "torch"))
        return Result(name, "torch", ours, theirs, 1.0, "B")
    command = [__file__, "--model", work.name, "--device", device.name, "--memory"]
    return measure_memory(name, [*command, "burn"], [*command, "torch"], "torch", 1.0)


def _torch_device(device: burn.Device) -> str:
    """Where torch computes what it is compared with."""
    return "cuda" if "cuda" in device.name else "cpu"


def _train(work: Work, device: burn.Device, side: str) -> None:
    if side == "burn":
        _, step = burn_training(work, device)
    else:
        _, step = torch_training(work, _torch_device(device))
    for _ in range(STEPS):
        step()
    device.sync()


def _grown(work: Work, device: burn.Device, side: str) -> int:
    """Bytes by which this process grows."""
    _train(work, device, side)  # whatever is loaded or set up once does not count
    device.memory_cleanup()
    return memory_growth(lambda: _train(work, device, side))


def _allocated(work: Work, device: burn.Device, side: str) -> int:
    """Bytes of a GPU that are in use at most."""
    _train(work, device, side)
    gc.collect()
    if side == "burn" and device.backend_name == "cuda":
        return _allocated_by_cupy(lambda: _train(work, device, side))
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    _train(work, device, side)
    return torch.cuda.max_memory_allocated() - before


def _allocated_by_cupy(function: Callable[[], object]) -> int:
    from cupy.cuda import MemoryHook

    class Count(MemoryHook):
        """Adds up what is in use."""

        name = "Count"
        used = peak = 0

        def malloc_postprocess(self, **call: int) -> None:
            self.used += call["mem_size"]
            self.peak = max(self.peak, self.used)

        def free_postprocess(self, **call: int) -> None:
            self.used -= call["mem_size"]

    with Count() as count:
        function()
    return count.peak


def models(
    devices: tuple[str, ...] = ("cpu", "torch/cpu"), names: tuple[str, ...] = ()
) -> Iterator[Case | Result]:
    """Times and memory, of the models whose name contains one of some names."""
    for name in devices:
        device = burn.Device(name)
        kind = "gpu" if _torch_device(device) == "cuda" else "cpu"
        for work in WORKS:
            if any(name in work.name for name in names) or (
                not names and work.hardware in ("any", kind)
            ):
                yield from times(work, device)
                if kind == "gpu" or (READS_MEMORY and not work.is_small):
                    yield memory(work, device)


def main() -> None:
    """Measure the models and devices that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", action="append", help="cpu and torch/cpu, unless given")
    parser.add_argument("--model", action="append", help="part of a name; all, unless given")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--memory", choices=["burn", "torch"], help="print bytes of this side only")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    devices, names = options.device or ("cpu", "torch/cpu"), options.model or ()
    if options.memory:
        (work,) = [work for work in WORKS if work.name in names]
        print(_grown(work, burn.Device(devices[0]), options.memory))
    else:
        report(models(tuple(devices), tuple(names)), "models", options.json)


if __name__ == "__main__":
    main()
