"""burn-torch beside torch called directly: small ops and large ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import burn
from burn.nn import functional as F
from harness import Case

__all__ = ["torch_backend"]

AGAINST = "torch itself"

MICROSECONDS = 0.5
"""What burn may add to a small op."""


def torch_backend() -> Iterator[Case]:
    """All cases."""
    device = burn.Device("torch/cpu")
    yield from _small(device)
    yield from _large(device)


def _small(device: burn.Device) -> Iterator[Case]:
    """Ops of 16 elements: the budget is a time, and so a ratio that depends on the op."""
    x, y = burn.ones(16, device=device), burn.ones(16, device=device)
    a, b = x.primitive, y.primitive
    yield _within("add, 16 elements", lambda: x + y, lambda: a + b)
    yield _within("multiply by a number", lambda: x * 2.0, lambda: a * 2.0)
    yield _within("exp", lambda: burn.exp(x), lambda: torch.exp(a))
    yield _within("less", lambda: x < y, lambda: torch.lt(a, b))
    yield _within("maximum", lambda: burn.maximum(x, y), lambda: torch.maximum(a, b))
    yield _within("relu", lambda: F.relu(x), lambda: torch.relu(a))
    yield _within("matmul 4x4", *_products(device, 4))


def _within(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> Case:
    """A case whose budget is what torch needs, as measured here, and half a microsecond."""
    best = min(_seconds(theirs) for _ in range(20))
    return Case(name, ours, theirs, AGAINST, round(1.0 + MICROSECONDS * 1e-6 / best, 2))


def _seconds(function: Callable[[], object], repeats: int = 500) -> float:
    import timeit

    return timeit.timeit(function, number=repeats) / repeats


def _products(device: burn.Device, n: int) -> tuple[Callable[[], object], Callable[[], object]]:
    x = burn.random.uniform((n, n), device=device)
    a = x.primitive
    return lambda: x @ x, lambda: a @ a


def _large(device: burn.Device) -> Iterator[Case]:
    """Ops for which only torch's time counts: at most 1 / 0.95 of it."""
    functional: Any = torch.nn.functional
    budget = round(1.0 / 0.95, 3)

    def tensor(*shape: int) -> tuple[burn.Tensor, torch.Tensor]:
        x = burn.random.uniform(shape, device=device)
        return x, x.primitive

    x, a = tensor(10_000, 1000)
    rows, lines = tensor(4096, 1024)
    images, pictures = tensor(32, 64, 28, 28)
    weight, kernel = tensor(64, 64, 3, 3)
    gamma, beta = burn.ones(1024, device=device), burn.zeros(1024, device=device)
    scale, shift = gamma.primitive, beta.primitive
    query, heads = tensor(4, 8, 256, 64)
    positions = burn.asarray(np.random.default_rng(0).integers(0, 10_000, 40_000), device=device)
    indices = positions.primitive
    cases: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "add, 10⁷": (lambda: x + x, lambda: a + a),
        "exp, 10⁷": (lambda: burn.exp(x), lambda: torch.exp(a)),
        "sum of rows, 10⁷": (lambda: burn.sum(x, axis=1), lambda: torch.sum(a, 1)),
        "matmul 512": _products(device, 512),
        "softmax, 4096 rows of 1024": (
            lambda: F.softmax(rows, axis=1),
            lambda: torch.softmax(lines, 1),
        ),
        "layer_norm, 4096 rows of 1024": (
            lambda: F.layer_norm(rows, gamma, beta),
            lambda: functional.layer_norm(lines, (1024,), scale, shift),
        ),
        "gelu, 4096 rows of 1024": (lambda: F.gelu(rows), lambda: functional.gelu(lines)),
        "sort, 4096 rows of 1024": (
            lambda: burn.sort(rows),
            lambda: torch.sort(lines, stable=True),
        ),
        "conv2d 32x64x28x28, 64 of 3x3": (
            lambda: F.conv2d(images, weight, padding=1),
            lambda: functional.conv2d(pictures, kernel, padding=1),
        ),
        "max_pool2d 2x2, 32x64x28x28": (
            lambda: F.max_pool2d(images, 2, 2),
            lambda: functional.max_pool2d(pictures, 2, 2),
        ),
        "attention, 32 heads of 256x64": (
            lambda: F.attention(query, query, query),
            lambda: functional.scaled_dot_product_attention(heads, heads, heads),
        ),
        "40,000 rows of a table": (
            lambda: burn.take(x, positions, axis=0),
            lambda: torch.index_select(a, 0, indices),
        ),
    }
    for name, (ours, theirs) in cases.items():
        yield Case(name, ours, theirs, AGAINST, budget)
