"""The networks of burn_models.py as a user of JAX writes them: functions of dicts of parameters.

They need JAX alone. Adam is written out as ``torch.optim.Adam`` computes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["convolutions", "cross_entropy", "gpt", "mlp", "training"]

Parameters = dict[str, Any]
Forward = Callable[[Parameters, Any], Any]


def _linear(generator: np.random.Generator, inputs: int, outputs: int) -> Parameters:
    limit = inputs**-0.5
    return {
        "weight": generator.uniform(-limit, limit, (inputs, outputs)).astype(np.float32),
        "bias": generator.uniform(-limit, limit, outputs).astype(np.float32),
    }


def _apply(layer: Parameters, x: Any) -> Any:
    return x @ layer["weight"] + layer["bias"]


def mlp(*widths: int) -> tuple[Parameters, Forward]:
    """Linear layers of some widths, with ReLU between them."""
    generator = np.random.default_rng(1)
    parameters = {
        str(index): _linear(generator, *pair)
        for index, pair in enumerate(itertools.pairwise(widths))
    }

    def forward(parameters: Parameters, x: Any) -> Any:
        for index in range(len(widths) - 2):
            x = jax.nn.relu(_apply(parameters[str(index)], x))
        return _apply(parameters[str(len(widths) - 2)], x)

    return parameters, forward


def convolutions(size: int, channels: tuple[int, ...] = (1, 32, 64)) -> tuple[Parameters, Forward]:
    """Two of convolution, ReLU and pooling, and a linear layer."""
    generator = np.random.default_rng(1)
    parameters: Parameters = {}
    for index, (before, after) in enumerate(itertools.pairwise(channels)):
        limit = (9 * before) ** -0.5
        weight = generator.uniform(-limit, limit, (after, before, 3, 3)).astype(np.float32)
        parameters[str(index)] = {"weight": weight, "bias": np.zeros(after, np.float32)}
    parameters["head"] = _linear(generator, channels[-1] * (size // 4) ** 2, 10)

    def forward(parameters: Parameters, x: Any) -> Any:
        for index in range(len(channels) - 1):
            layer = parameters[str(index)]
            x = jax.lax.conv_general_dilated(x, layer["weight"], (1, 1), "SAME")
            x = jax.nn.relu(x + layer["bias"][:, None, None])
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return _apply(parameters["head"], x.reshape(len(x), -1))

    return parameters, forward


def gpt(vocabulary: int, length: int, width: int, layers: int, heads: int) -> tuple[Any, Forward]:
    """A decoder of tokens, as GPT-2."""
    generator = np.random.default_rng(1)

    def norm() -> Parameters:
        return {"weight": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}

    def block() -> Parameters:
        return {
            "norm1": norm(),
            "joined": _linear(generator, width, 3 * width),
            "out": _linear(generator, width, width),
            "norm2": norm(),
            "up": _linear(generator, width, 4 * width),
            "down": _linear(generator, 4 * width, width),
        }

    parameters = {
        "tokens": generator.normal(size=(vocabulary, width)).astype(np.float32),
        "positions": generator.normal(size=(length, width)).astype(np.float32),
        "blocks": [block() for _ in range(layers)],
        "norm": norm(),
        "head": _linear(generator, width, vocabulary)["weight"],
    }

    def normalized(layer: Parameters, x: Any) -> Any:
        wide = x.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        variance = jnp.square(wide - mean).mean(-1, keepdims=True)
        scaled = (wide - mean) * jax.lax.rsqrt(variance + 1e-5)
        return scaled.astype(x.dtype) * layer["weight"] + layer["bias"]

    def forward(parameters: Parameters, tokens: Any) -> Any:
        batch, count = tokens.shape
        x = parameters["tokens"][tokens] + parameters["positions"][jnp.arange(count)]
        for layer in parameters["blocks"]:
            split = _apply(layer["joined"], normalized(layer["norm1"], x))
            query, key, value = jnp.moveaxis(
                split.reshape(batch, count, 3, heads, width // heads), 2, 0
            )
            mixed = jax.nn.dot_product_attention(query, key, value, is_causal=True)
            x = x + _apply(layer["out"], mixed.reshape(batch, count, width))
            inner = _apply(layer["up"], normalized(layer["norm2"], x))
            x = x + _apply(layer["down"], jax.nn.gelu(inner, approximate=False))
        return normalized(parameters["norm"], x) @ parameters["head"]

    return parameters, forward


def cross_entropy(scores: Any, labels: Any) -> Any:
    """The mean cross entropy of scores, the last axis of which are classes."""
    logarithms = jax.nn.log_softmax(scores.astype(jnp.float32))
    return -jnp.take_along_axis(logarithms, labels[..., None], -1).mean()


def training(
    model: tuple[Parameters, Forward], x: np.ndarray, y: np.ndarray, dtype: str = "float32"
) -> tuple[Callable[[], Any], Callable[[], object]]:
    """A step of training with Adam under `jax.jit`, and what waits for the last one."""
    parameters, forward = model
    parameters = jax.tree.map(lambda parameter: jnp.asarray(parameter, dtype), parameters)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    state = parameters, zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros((), jnp.int32)
    inputs = jnp.asarray(x, dtype if x.dtype == np.float32 else None)
    labels = jnp.asarray(y)

    def update(state: Any, x: Any, y: Any) -> Any:
        parameters, first, second, count = state
        loss, gradients = jax.value_and_grad(lambda p: cross_entropy(forward(p, x), y))(parameters)
        count += 1
        rate = 1e-3 / (1 - 0.9**count)
        factor = 1 / jnp.sqrt(1 - 0.999**count)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        parameters = jax.tree.map(
            lambda p, m, v: (p - rate * m / (jnp.sqrt(v) * factor + 1e-8)).astype(p.dtype),
            parameters,
            first,
            second,
        )
        first, second = (
            jax.tree.map(lambda new, old: new.astype(old.dtype), item, parameters)
            for item in (first, second)
        )
        return (parameters, first, second, count), loss

    compiled = jax.jit(update, donate_argnums=0)
    last: list[Any] = [state, None]

    def step() -> Any:
        last[0], last[1] = compiled(last[0], inputs, labels)
        return last[1]

    return step, lambda: jax.block_until_ready(last[1])
