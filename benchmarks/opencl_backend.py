"""burn-opencl: on a CPU beside NumPy and tinygrad, on a GPU beside its bandwidth and torch.

Run it as ``python benchmarks/opencl_backend.py [DEVICE]``; the device is ``opencl`` if left out.
Both sides wait until the device is done.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import burn
from burn.nn import functional as F
from burn_models import MLP
from harness import Case, measure

__all__ = ["against_bandwidth", "against_numpy", "against_tinygrad", "against_torch"]

Function = Callable[[], object]

SMALL_OP = 60e-6
"""Seconds that an op of 16 elements may take."""

PRODUCT, STREAM = round(1 / 0.8, 2), round(1 / 0.7, 2)
"""Budgets of matrix products, and of ops that go once over memory."""

GPU_PRODUCT = round(1 / 0.6, 2)
"""Budget of a product of large matrices on a GPU, beside the vendor's library."""

SHARE = 0.7
"""Share of the bandwidth of a copy that an op on a GPU is to reach."""

WIDTHS = (784, 512, 512, 10)
BATCH = 128


def against_numpy(device: burn.Device) -> Iterator[Case]:
    """The same work by NumPy, which writes to memory that is there already."""
    numbers = np.random.default_rng(0)
    # Two matrices: of a matrix times its own transpose NumPy computes one half.
    a, c = numbers.normal(size=(2, 1024, 1024)).astype(np.float32)
    b = numbers.normal(size=(10_000, 1000)).astype(np.float32)
    row = b[0].copy()
    x, z, y, line = (burn.asarray(item, device=device) for item in (a, c, b, row))
    out, flat = np.empty_like(b), burn.reshape(y, (-1,))

    def softmax() -> object:
        powers = np.exp(np.subtract(b, b.max(axis=1, keepdims=True), out=out), out=out)
        return np.divide(powers, powers.sum(axis=1, keepdims=True), out=out)

    cases: list[tuple[str, Function, Function, float | None]] = [
        ("matmul 1024", lambda: x @ z, lambda: a @ c, PRODUCT),
        ("matmul 1024, transposed", lambda: x @ z.T, lambda: a @ c.T, PRODUCT),
        ("add, 10⁷", lambda: y + y, lambda: np.add(b, b, out=out), STREAM),
        ("add a row, 10⁷", lambda: y + line, lambda: np.add(b, row, out=out), STREAM),
        ("exp, 10⁷", lambda: burn.exp(y), lambda: np.exp(b, out=out), STREAM),
        ("sum of all, 10⁷", lambda: burn.sum(y), lambda: b.sum(), STREAM),
        ("sum of rows, 10⁷", lambda: burn.sum(y, axis=1), lambda: b.sum(axis=1), STREAM),
        ("sum of columns, 10⁷", lambda: burn.sum(y, axis=0), lambda: b.sum(axis=0), STREAM),
        ("softmax, 10⁷", lambda: F.softmax(y, axis=1), softmax, None),
        ("sort, 10⁷", lambda: burn.sort(flat), lambda: np.sort(b.ravel()), 5.0),
        ("argsort, 10⁷", lambda: burn.argsort(flat), lambda: b.ravel().argsort(kind="stable"), 1.0),
    ]
    for name, ours, theirs, budget in cases:
        yield Case(name, done(ours, device), theirs, "NumPy", budget)


def against_tinygrad(device: burn.Device) -> Iterator[Case]:
    """The same work by tinygrad on its OpenCL device, captured by its JIT."""
    os.environ.setdefault("DEV", "CL")
    from tinygrad import Device, Tensor, TinyJit

    numbers = np.random.default_rng(0)
    small = numbers.normal(size=(1024, 1024)).astype(np.float32)
    large = numbers.normal(size=(10_000, 1000)).astype(np.float32)
    x, y = (burn.asarray(item, device=device) for item in (small, large))
    a, b = (Tensor(item).realize() for item in (small, large))

    def waiting(captured: Any, *operands: Any) -> Function:
        def call() -> None:
            captured(*operands)
            Device[a.device].synchronize()

        return call

    cases: dict[str, tuple[Function, Callable[..., Any], Any]] = {
        "matmul 1024": (lambda: x @ x, lambda item: item @ item, a),
        "softmax, 10⁷": (lambda: F.softmax(y, axis=1), lambda item: item.softmax(1), b),
        "sum of rows, 10⁷": (lambda: burn.sum(y, axis=1), lambda item: item.sum(1), b),
        "relu and sum of all, 10⁷": (
            lambda: burn.sum(F.relu(y)),
            lambda item: item.relu().sum(),
            b,
        ),
    }
    for name, (ours, function, operand) in cases.items():
        captured = TinyJit(lambda item, function=function: function(item).realize())
        # tinygrad fuses these two ops; burn launches a kernel for each.
        budget = None if name.startswith("relu") else 1.0
        yield Case(name, done(ours, device), waiting(captured, operand), "tinygrad", budget)
    step = TinyJit(tinygrad_trainer())
    name = "MLP step"
    yield Case(name, done(burn_trainer(device), device), waiting(step), "tinygrad", 1.0)


def against_bandwidth(device: burn.Device) -> Iterator[tuple[str, Function, int]]:
    """Work on a GPU, and how many times it goes over 256 MiB."""
    numbers = np.random.default_rng(0)
    values = numbers.normal(size=(8192, 8192)).astype(np.float32)
    x, y = burn.asarray(values, device=device), burn.asarray(values[:1], device=device)
    z = x * 2
    yield "add", lambda: x + z, 3
    yield "add a row", lambda: x + y, 2
    yield "relu", lambda: F.relu(x), 2
    yield "exp", lambda: burn.exp(x), 2
    yield "sum of all", lambda: burn.sum(x), 1
    yield "sum of rows", lambda: burn.sum(x, axis=1), 1
    yield "max of rows", lambda: burn.max(x, axis=1), 1
    yield "sum of columns", lambda: burn.sum(x, axis=0), 1
    yield "softmax of rows", lambda: F.softmax(x, axis=1), 2
    yield "layer_norm of rows", lambda: F.layer_norm(x), 2


def against_torch(device: burn.Device) -> Iterator[Case]:
    """The same work by torch on the same GPU through CUDA."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    numbers = np.random.default_rng(0)

    def pair(*shape: int) -> tuple[burn.Tensor, Any]:
        values = numbers.normal(size=shape).astype(np.float32)
        return burn.asarray(values, device=device), torch.tensor(values, device="cuda")

    def waiting(function: Function) -> Function:
        def call() -> None:
            function()
            torch.cuda.synchronize()

        return call

    x, a = pair(4096, 4096)
    v, b = pair(10_000_000)
    s, c = pair(16)
    indices = numbers.integers(0, 10_000_000, 10_000_000)
    index, where = burn.asarray(indices, device=device), torch.tensor(indices, device="cuda")
    cases: list[tuple[str, Function, Function, float | None]] = [
        ("matmul 4096", lambda: x @ x, lambda: a @ a, GPU_PRODUCT),
        ("matmul 4096, transposed", lambda: x @ x.T, lambda: a @ a.T, GPU_PRODUCT),
        ("cumulative sum of rows, 4096²", lambda: burn.cumulative_sum(x, axis=1),
         lambda: a.cumsum(1), None),
        ("transposed copy, 4096²", lambda: burn.permute_dims(x, (1, 0)) + 0.0,
         lambda: a.T.contiguous(), None),
        ("sort, 10⁷", lambda: burn.sort(v), lambda: torch.sort(b, stable=True), None),
        ("10 largest, 10⁷", lambda: burn.topk(v, 10), lambda: torch.topk(b, 10), None),
        ("scatter add, 10⁷", lambda: burn.scatter(v, index, v, axis=0, update="add"),
         lambda: b.scatter_add(0, where, b), None),
        ("add, 16 elements", lambda: s + s, lambda: c + c, None),
    ]  # fmt: skip
    for name, ours, theirs, budget in cases:
        yield Case(name, done(ours, device), waiting(theirs), "torch CUDA", budget)


def burn_trainer(device: burn.Device) -> Function:
    """One step of Adam of a dense network."""
    model = MLP(*WIDTHS).to(device.autodiff())
    optimizer = burn.optim.Adam(model)
    images = burn.random.normal((BATCH, 784), device=device)
    labels = burn.random.integers(BATCH, 0, 10, device=device)
    return lambda: optimizer.step(F.cross_entropy(model(images), labels).backward())


def tinygrad_trainer() -> Function:
    """The same in tinygrad, with its own optimizer."""
    from tinygrad import Tensor, nn
    from tinygrad.helpers import Context

    layers = [nn.Linear(*pair) for pair in itertools.pairwise(WIDTHS)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=1e-3)
    images = Tensor.randn(BATCH, 784).realize()
    labels = Tensor.randint(BATCH, high=10).realize()

    def step() -> object:
        x = images
        for layer in layers[:-1]:
            x = layer(x).relu()
        optimizer.zero_grad()
        loss = layers[-1](x).sparse_categorical_crossentropy(labels).backward()
        with Context(TRAINING=1):
            return loss.realize(*optimizer.schedule_step())

    return step


def done(function: Function, device: burn.Device) -> Function:
    """The same, and a wait until the device is done."""

    def call() -> None:
        function()
        device.sync()

    return call


def seconds(function: Function, device: burn.Device, repeats: int = 20) -> float:
    """Seconds per call, of calls that are queued one after the other."""
    taken = []
    for _ in range(7):
        device.sync()
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        device.sync()
        taken.append((time.perf_counter() - start) / repeats)
    return statistics.median(taken[1:])


def print_bandwidth(device: burn.Device) -> None:
    """Print what share of the bandwidth of a copy each op reaches."""
    size = 8192 * 8192 * 4
    launcher = device.backend.for_device(device.id).launcher  # type: ignore[attr-defined]  # it is burn-opencl's
    values = burn.ones((8192, 8192), device=device).primitive
    copy = 2 * size / seconds(lambda: launcher.copied(values), device)
    print(f"{'copy, 256 MiB':32}{copy / 1e12:8.2f} TB/s")
    for name, function, times in against_bandwidth(device):
        rate = times * size / seconds(function, device)
        print(f"{name:32}{rate / 1e12:8.2f} TB/s{rate / copy:8.2f} of a copy; {SHARE} at least")


def print_cases(cases: Iterator[Case]) -> None:
    """Print what was measured of each."""
    print(f"{'':32}{'burn-opencl':>12}{'other':>12}{'ratio':>8}{'budget':>8}")
    for case in cases:
        result = measure(case)
        budget = "" if result.budget is None else f"{result.budget:.2f}"
        print(
            f"{case.name:32}{result.ours * 1e3:9.2f} ms{result.theirs * 1e3:9.2f} ms"
            f"{result.ratio:8.2f}{budget:>8}  {case.against}"
        )


def main() -> None:
    """Print what was measured."""
    device = burn.Device(sys.argv[1] if len(sys.argv) > 1 else "opencl")
    if "gpu" in str(device):
        print_bandwidth(device)
        if importlib.util.find_spec("torch") is not None:
            print_cases(against_torch(device))
    else:
        print_cases(against_numpy(device))
        if importlib.util.find_spec("tinygrad") is not None:
            print_cases(against_tinygrad(device))
    x = burn.ones(16, device=device)
    small = measure(Case("add, 16 elements", done(lambda: x + x, device), lambda: None, "nothing"))
    print(f"{'add, 16 elements':32}{small.ours * 1e6:9.1f} µs; {SMALL_OP * 1e6:.0f} at most")


if __name__ == "__main__":
    main()
