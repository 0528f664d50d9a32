"""Where burn-cuda stands against PyTorch on one GPU: ``python benchmarks/cuda_backend.py``.

Both compute on the same GPU in the same process, in turn; medians of several rounds are compared. A
round queues work for some milliseconds and waits for it, so that of small operations the launches
are measured, and of large ones the kernels. With ``--json FILE`` the figures are kept.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import burn
from burn.nn import functional as F
from harness import Case, Result
from models import MLP, burn_training, torch_training

ROUNDS = 11
SECONDS_PER_ROUND = 0.03
GPU = burn.Device("cuda")
TRACKED = GPU.autodiff()
EAGER = "torch eager"


def pair(*shape: int, dtype: str = "float32") -> tuple[burn.Tensor, torch.Tensor]:
    """The same random numbers as a tensor of both."""
    theirs = torch.randn(*shape, device="cuda").to(getattr(torch, dtype))
    return shared(theirs), theirs


def shared(theirs: torch.Tensor) -> burn.Tensor:
    """A tensor in the memory of theirs, of burn-cuda also where burn-torch is installed."""
    return burn.from_dlpack(theirs, device=GPU)


def measure(case: Case) -> Result:
    """Time both ways in turn."""
    ways = [(way, _repeats(way)) for way in (case.ours, case.theirs)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for (way, repeats), taken in zip(ways, times, strict=True):
            taken.append(_time(way, repeats))
    ours, theirs = map(statistics.median, times)
    return Result(case.name, case.against, ours, theirs, case.budget)


def _repeats(way: Callable[[], object]) -> int:
    for _ in range(3):
        way()  # whatever is done once is not measured
    repeats = 1
    while (taken := _time(way, repeats) * repeats) < SECONDS_PER_ROUND / 4:
        repeats *= 2
    return max(1, round(repeats * SECONDS_PER_ROUND / taken))


def _time(way: Callable[[], object], repeats: int) -> float:
    """Seconds per call, until the last one is done."""
    gc.disable()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        way()
    torch.cuda.synchronize()
    taken = time.perf_counter() - start
    gc.enable()
    return taken / repeats


def small_ops() -> Iterator[Case]:
    """Operations of 16 elements: the cost of a launch."""
    import cupy

    x, a = pair(16)
    y, b = pair(16)
    c, d = cupy.from_dlpack(a), cupy.from_dlpack(b)
    yield Case("add, 16 elements", lambda: x + y, lambda: a + b, EAGER, 1.25)
    yield Case("add, 16 elements", lambda: x + y, lambda: c + d, "CuPy", 1.0)
    yield Case("multiply by a number", lambda: x * 2.0, lambda: a * 2.0, EAGER, 1.25)
    yield Case("exp", lambda: burn.exp(x), lambda: torch.exp(a), EAGER, 1.25)
    yield Case("sum", lambda: x.sum(), lambda: a.sum(), EAGER)


def bandwidth() -> Iterator[Case]:
    """Operations that move memory."""
    x, a = pair(1 << 28)
    y, b = pair(1 << 28)
    yield Case("add 2^28", lambda: x + y, lambda: a + b, EAGER, 1.1)
    yield Case("exp 2^28", lambda: burn.exp(x), lambda: torch.exp(a), EAGER, 1.1)
    yield Case("gelu 2^28", lambda: F.gelu(x), lambda: torch.nn.functional.gelu(a), EAGER)
    yield Case("sum 2^28", lambda: x.sum(), lambda: a.sum(), EAGER, 1.1)
    m, n = pair(8192, 8192)
    row, vector = pair(8192)
    yield Case("add of a row, 8192^2", lambda: m + row, lambda: n + vector, EAGER)
    yield Case("sum of columns, 8192^2", lambda: burn.sum(m, axis=0), lambda: n.sum(0), EAGER)
    yield Case("sum of rows, 8192^2", lambda: burn.sum(m, axis=1), lambda: n.sum(1), EAGER)
    yield Case(
        "variance of rows, 8192^2",
        lambda: burn.var(m, axis=1),
        lambda: n.var(1, correction=0),
        EAGER,
    )
    yield Case("argmax of rows, 8192^2", lambda: burn.argmax(m, axis=1), lambda: n.argmax(1), EAGER)
    yield Case(
        "softmax 8192^2", lambda: F.softmax(m, axis=1), lambda: torch.softmax(n, 1), EAGER, 1.1
    )
    gamma, weight = pair(8192)
    yield Case(
        "layer_norm 8192^2",
        lambda: F.layer_norm(m, gamma, gamma),
        lambda: torch.nn.functional.layer_norm(n, (8192,), weight, weight),
        EAGER,
    )
    half, narrow = pair(8192, 8192, dtype="bfloat16")
    yield Case(
        "softmax 8192^2 bfloat16",
        lambda: F.softmax(half, axis=1),
        lambda: torch.softmax(narrow, 1),
        EAGER,
        1.1,
    )
    factor, factor_there = pair(8192, dtype="bfloat16")
    yield Case(
        "layer_norm 8192^2 bfloat16",
        lambda: F.layer_norm(half, factor, factor),
        lambda: torch.nn.functional.layer_norm(narrow, (8192,), factor_there, factor_there),
        EAGER,
    )
    moved = burn.permute_dims(m, (1, 0))
    yield Case(
        "transposed copy 8192^2",
        lambda: burn.reshape(moved, (-1,)),
        lambda: n.T.reshape(-1),
        EAGER,
    )
    yield Case("exp of a transposed 8192^2", lambda: burn.exp(moved), lambda: torch.exp(n.T), EAGER)
    yield Case(
        "random normal 10^8",
        lambda: burn.random.normal((10**8,), device=GPU),
        lambda: torch.randn(10**8, device="cuda"),
        EAGER,
    )


def order_and_indices() -> Iterator[Case]:
    """Sorts, scans, gathers and scatters."""
    x, a = pair(10**7)
    yield Case("sort 10^7", lambda: burn.sort(x), lambda: torch.sort(a, stable=True), EAGER, 1.1)
    indices = torch.randint(0, 10**7, (10**7,), device="cuda")
    index = shared(indices)
    yield Case("gather 10^7", lambda: burn.take(x, index), lambda: a[indices], EAGER, 1.1)
    yield Case(
        "scatter add 10^7",
        lambda: burn.scatter(x, index, x, axis=0, update="add"),
        lambda: a.scatter_add(0, indices, a),
        EAGER,
        1.1,
    )
    y, b = pair(10**8)
    yield Case(
        "cumsum 10^8", lambda: burn.cumulative_sum(y), lambda: torch.cumsum(b, 0), EAGER, 1.1
    )
    m, n = pair(4096, 4096)
    yield Case(
        "cumsum of rows 4096^2",
        lambda: burn.cumulative_sum(m, axis=1),
        lambda: torch.cumsum(n, 1),
        EAGER,
    )


def products() -> Iterator[Case]:
    """Matrix products."""
    for name in ("float32", "float16", "bfloat16"):
        x, a = pair(8192, 8192, dtype=name)
        yield Case(f"matmul 8192 {name}", lambda x=x: x @ x, lambda a=a: a @ a, EAGER, 1.1)
    x, a = pair(8192, 8192)
    runtime = GPU.backend.for_device(GPU.id).runtime

    def ours() -> object:
        runtime.tf32 = True
        try:
            return x @ x
        finally:
            runtime.tf32 = False

    def theirs() -> object:
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return a @ a
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    yield Case("matmul 8192 tf32", ours, theirs, EAGER, 1.1)


def networks() -> Iterator[Case]:
    """A training step, a convolution, and attention."""
    _, ours = burn_training(MLP, GPU)
    _, theirs = torch_training(MLP, "cuda")
    yield Case("MLP 784-512-512-10, Adam step", ours, theirs, EAGER, 1.3)
    x, a = pair(64, 128, 56, 56)
    weight, kernel = pair(128, 128, 3, 3)
    conv = torch.nn.functional.conv2d
    yield Case(
        "conv2d 64x128x56x56 3x3",
        lambda: F.conv2d(x, weight, padding=1),
        lambda: conv(a, kernel, padding=1),
        EAGER,
        2.0,
    )
    image, filters = (tensor.to_device(TRACKED).require_grad() for tensor in (x, weight))
    slope, cotangent = pair(64, 128, 56, 56)
    leaves = [item.clone().requires_grad_() for item in (a, kernel)]
    yield Case(
        "the same with gradients",
        lambda: F.conv2d(image, filters, padding=1).backward(slope),
        lambda: torch.autograd.grad(conv(*leaves, padding=1), leaves, cotangent),
        EAGER,
        2.0,
    )
    q, query = pair(16, 8, 512, 64)
    attend = torch.nn.functional.scaled_dot_product_attention
    yield Case(
        "attention 16x8x512x64",
        lambda: F.attention(q, q, q),
        lambda: attend(query, query, query),
        EAGER,
        2.0,
    )
    for name in ("float16", "bfloat16"):
        h, half = pair(16, 8, 512, 64, dtype=name)
        yield Case(
            f"the same in {name}",
            lambda h=h: F.attention(h, h, h),
            lambda half=half: attend(half, half, half),
            EAGER,
            2.0,
        )
    for name in ("float32", "bfloat16"):
        h, half = pair(16, 8, 512, 64, dtype=name)
        slope, cotangent = pair(16, 8, 512, 64, dtype=name)
        own = [h.to_device(TRACKED).require_grad() for _ in range(3)]
        leaves = [half.clone().requires_grad_() for _ in range(3)]
        yield Case(
            f"attention {name} with gradients",
            lambda own=own, slope=slope: F.attention(*own).backward(slope),
            lambda leaves=leaves, cotangent=cotangent: torch.autograd.grad(
                attend(*leaves), leaves, cotangent
            ),
            EAGER,
        )


def images() -> Iterator[Case]:
    """Pooling, interpolation, sampling and batch normalization, with and without gradients."""
    x, a = pair(64, 64, 112, 112)
    tracked, leaf = x.to_device(TRACKED).require_grad(), a.clone().requires_grad_()
    functional = torch.nn.functional
    mean, variance = torch.zeros(64, device="cuda"), torch.ones(64, device="cuda")
    zeros, ones = shared(mean.clone()), shared(variance.clone())
    ways: dict[str, tuple[Callable[..., burn.Tensor], Callable[..., torch.Tensor]]] = {
        "max_pool2d 3x3": (
            lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
            lambda a: functional.max_pool2d(a, 3, 2, 1),
        ),
        "avg_pool2d 3x3": (
            lambda x: F.avg_pool2d(x, 3, stride=2, padding=1),
            lambda a: functional.avg_pool2d(a, 3, 2, 1),
        ),
        "adaptive_avg_pool2d 1x1": (
            lambda x: F.adaptive_avg_pool2d(x, 1),
            lambda a: functional.adaptive_avg_pool2d(a, 1),
        ),
        "interpolate bilinear x2": (
            lambda x: F.interpolate(x, (224, 224), mode="linear"),
            lambda a: functional.interpolate(a, size=(224, 224), mode="bilinear"),
        ),
        "interpolate bicubic x2": (
            lambda x: F.interpolate(x, (224, 224), mode="cubic"),
            lambda a: functional.interpolate(a, size=(224, 224), mode="bicubic"),
        ),
        "batch_norm in training": (
            lambda x: F.batch_norm_training(x, zeros, ones).output,
            lambda a: functional.batch_norm(a, mean, variance, training=True),
        ),
    }
    for name, (ours, theirs) in ways.items():
        yield Case(name, lambda ours=ours: ours(x), lambda theirs=theirs: theirs(a), EAGER)
        slope = torch.randn_like(theirs(a))
        cotangent = shared(slope)
        yield Case(
            f"{name} with gradients",
            lambda ours=ours, cotangent=cotangent: ours(tracked).backward(cotangent),
            lambda theirs=theirs, slope=slope: torch.autograd.grad(theirs(leaf), leaf, slope),
            EAGER,
        )
    grid = torch.rand(64, 112, 112, 2, device="cuda") * 2 - 1
    indices = shared(grid)
    yield Case(
        "grid_sample_2d bilinear",
        lambda: F.grid_sample_2d(x, indices),
        lambda: functional.grid_sample(a, grid, align_corners=False),
        EAGER,
    )


SUITES: dict[str, Callable[[], Iterator[Case]]] = {
    "small": small_ops,
    "bandwidth": bandwidth,
    "indices": order_and_indices,
    "products": products,
    "networks": networks,
    "images": images,
}


def main() -> int:
    """Measure, and print a table; the exit status is 1 where a budget is passed."""
    parser = argparse.ArgumentParser(description="burn-cuda against PyTorch on one GPU.")
    parser.add_argument("--suite", choices=SUITES, action="append")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    results: list[Result] = []
    table = Table(title=torch.cuda.get_device_name())
    for column in ("work", "against", "burn µs", "theirs µs", "ratio", "budget"):
        table.add_column(column, justify="left" if column in ("work", "against") else "right")
    for suite in arguments.suite or SUITES:
        for case in SUITES[suite]():
            result = measure(case)
            results.append(result)
            table.add_row(
                result.name,
                result.against,
                f"{result.ours * 1e6:.1f}",
                f"{result.theirs * 1e6:.1f}",
                f"{result.ratio:.2f}",
                "" if result.budget is None else f"{result.budget:.2f}",
            )
        GPU.memory_cleanup()
    Console(width=100).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps([vars(result) for result in results], indent=1))
    return int(
        any(result.budget is not None and result.ratio > result.budget for result in results)
    )


if __name__ == "__main__":
    sys.exit(main())
