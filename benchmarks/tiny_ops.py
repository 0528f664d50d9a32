"""Views, joined tensors and the ops of modules, of tiny operands: the cost around the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import burn
from burn.nn import functional as F
from harness import Case

__all__ = ["joined", "module_ops", "views"]

CPU = burn.Device("cpu")
TRACKED = CPU.autodiff()
FT = torch.nn.functional


def views() -> Iterator[Case]:
    """Views of 16 elements, untracked and tracked."""
    works: list[tuple[str, Callable[[Any], object], Callable[[Any], object]]] = [
        ("reshape", lambda x: x.reshape((2, 8)), lambda x: x.reshape((2, 8))),
        ("permute", lambda x: x.permute_dims((1, 0)), lambda x: x.permute((1, 0))),
        ("slice", lambda x: x[1:3], lambda x: x[1:3]),
        ("row", lambda x: x[0], lambda x: x[0]),
        ("column", lambda x: x[:, 1], lambda x: x[:, 1]),
    ]
    plain, other = burn.ones((4, 4), device=CPU), torch.ones(4, 4)
    leaf = burn.ones((4, 4), device=TRACKED).require_grad()
    theirs_leaf = torch.ones(4, 4, requires_grad=True)
    for name, ours, theirs in works:
        for kind, x, y in (("", plain, other), (", tracked", leaf, theirs_leaf)):
            yield Case(
                f"{name} of 16 elements{kind}",
                lambda f=ours, x=x: f(x),
                lambda f=theirs, y=y: f(y),
                "torch",
                0.8,
            )


def joined() -> Iterator[Case]:
    """Tensors of 16 elements taken apart and put together."""
    x, y = burn.ones((4, 4), device=CPU), torch.ones(4, 4)
    indices, numbers = burn.asarray([2, 0], device=CPU), torch.tensor([2, 0])
    against = "torch"
    yield Case(
        "take of 16 elements",
        lambda: burn.take(x, indices, axis=0),
        lambda: torch.index_select(y, 0, numbers),
        against,
        1.0,
    )
    yield Case(
        "concat of 16 elements",
        lambda: burn.concat([x, x]),
        lambda: torch.cat([y, y]),
        against,
        1.0,
    )
    yield Case(
        "stack of 16 elements",
        lambda: burn.stack([x, x]),
        lambda: torch.stack([y, y]),
        against,
        1.0,
    )
    yield Case(
        "unstack of 16 elements", lambda: burn.unstack(x), lambda: torch.unbind(y), against, 1.0
    )


def module_ops() -> Iterator[Case]:
    """What layers call, of operands as in a tiny model."""
    generator = np.random.default_rng(0)

    def pair(*shape: int) -> tuple[burn.Tensor, torch.Tensor]:
        values = generator.normal(size=shape).astype(np.float32)
        return burn.asarray(values, device=CPU), torch.tensor(values)

    x, a = pair(2, 8, 16)
    weight, b = pair(16, 16)
    bias, c = pair(16)
    heads, d = pair(2, 2, 8, 8)
    images, e = pair(2, 3, 8, 8)
    kernel, f = pair(4, 3, 3, 3)
    scores, g = pair(16, 64)
    tokens = generator.integers(0, 16, (2, 8))
    classes = generator.integers(0, 64, 16)
    indices, numbers = burn.asarray(tokens, device=CPU), torch.tensor(tokens)
    targets, labels = burn.asarray(classes, device=CPU), torch.tensor(classes)
    works: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        (
            "linear 2x8x16",
            lambda: F.linear(x, weight, bias, transposed=True),
            lambda: FT.linear(a, b, c),
        ),
        (
            "layer_norm 2x8x16",
            lambda: F.layer_norm(x, bias, bias),
            lambda: FT.layer_norm(a, (16,), c, c),
        ),
        (
            "attention 2x2x8x8, causal",
            lambda: F.attention(heads, heads, heads, is_causal=True),
            lambda: FT.scaled_dot_product_attention(d, d, d, is_causal=True),
        ),
        ("gelu 2x8x16", lambda: F.gelu(x), lambda: FT.gelu(a)),
        (
            "embedding 2x8 of 16",
            lambda: F.embedding(weight, indices),
            lambda: FT.embedding(numbers, b),
        ),
        ("conv2d 2x3x8x8, 4 of 3x3", lambda: F.conv2d(images, kernel), lambda: FT.conv2d(e, f)),
        ("max_pool2d 2x3x8x8", lambda: F.max_pool2d(images, 2), lambda: FT.max_pool2d(e, 2)),
        (
            "cross_entropy 16x64",
            lambda: F.cross_entropy(scores, targets),
            lambda: FT.cross_entropy(g, labels),
        ),
    ]
    for name, ours, theirs in works:
        yield Case(name, ours, theirs, "torch", 1.0)
