"""What rounding each operation costs: compiled functions beside `burn.compile(relaxed=True)`.

    python benchmarks/rounding.py                                   # on cpu
    python benchmarks/rounding.py --device cuda --device opencl/gpu

A ratio above 1 is the cost. What is limited by memory costs nothing; chains of small tensors, which
stay in the caches of a CPU, show the processor.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import burn
import burn_models
from burn.nn import functional as F
from harness import Case, report

_ROW: Final = 100
_SIZES: Final = {"cpu": (10_000, 1_000_000), "gpu": (100_000, 100_000_000)}


def _polynomial(x: Any, y: Any, z: Any) -> Any:
    for _ in range(4):
        z = (z * x + y) * x + z
    return z


def _normalized(rows: Any) -> Any:
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / burn.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)


def _adam(x: Any, g: Any, m: Any) -> Any:
    return x - 0.01 * (0.9 * m + 0.1 * g) / (burn.sqrt(0.001 * (g * g) + 0.999) + 1e-8)


_FLAT: Final[dict[str, Callable[..., Any]]] = {
    "x * y + z": lambda x, y, z: x * y + z,
    "a polynomial of 8 products": _polynomial,
    "gelu(x) * y + z": lambda x, y, z: F.gelu(x) * y + z,
    "a step of Adam": _adam,
    "sum(x * y)": lambda x, y, z: (x * y).sum() + z[0],
}

_ROWS: Final[dict[str, Callable[..., Any]]] = {
    "softmax": lambda rows: F.softmax(rows, axis=1),
    "normalized rows": _normalized,
    "rows / their maximum": lambda rows: rows / burn.max(rows, axis=1, keepdims=True),
}


def _case(name: str, device: burn.Device, function: Callable[..., Any], *given: Any) -> Case:
    strict, relaxed = burn.compile(function), burn.compile(function, relaxed=True)
    return Case(
        f"{name} on {device.name}",
        lambda: strict(*given),
        lambda: relaxed(*given),
        "relaxed",
        wait=device.sync,
    )


def chains(device: burn.Device, kind: str) -> Iterator[Case]:
    """Elementwise work, and rows, of two sizes."""
    generator = np.random.default_rng(0)
    for size in _SIZES[kind]:
        drawn = generator.standard_normal((3, size), np.float32)
        x, y, z = (burn.asarray(item, device=device) for item in drawn)
        for name, function in _FLAT.items():
            yield _case(f"{name}, {size:,} elements", device, function, x, y, z)
        rows = x.reshape((-1, _ROW))
        for name, function in _ROWS.items():
            yield _case(f"{name}, {size // _ROW:,} rows of {_ROW}", device, function, rows)


def models(device: burn.Device, kind: str) -> Iterator[Case]:
    """Steps of training."""
    width, layers = (512, 6) if kind == "gpu" else (64, 2)
    generator = np.random.default_rng(0)
    images = generator.normal(size=(128, 784)).astype(np.float32), generator.integers(0, 10, 128)
    words = generator.integers(0, 1000, (8, 129))
    makers: dict[str, tuple[Callable[[], Any], Any]] = {
        "MLP 784-512-512-10": (lambda: burn_models.MLP(784, 512, 512, 10), images),
        f"GPT {layers}x{width}": (
            lambda: burn_models.GPT(1000, 128, width, layers, 4),
            (words[:, :-1].copy(), words[:, 1:].copy()),
        ),
    }
    for name, (make, data) in makers.items():
        x, y = (burn.asarray(array, device=device) for array in data)
        steps = [_training(make(), x, y, device, relaxed=relaxed) for relaxed in (False, True)]
        what = f"a step of {name} on {device.name}"
        yield Case(what, *steps, "relaxed", wait=device.sync)


def _training(
    model: Any, x: Any, y: Any, device: burn.Device, *, relaxed: bool
) -> Callable[[], object]:
    model = model.to(device.autodiff())
    optimizer = burn.optim.Adam(model, learning_rate=1e-3)

    @burn.compile(relaxed=relaxed)
    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.step(loss.backward())
        return loss.detach()

    return lambda: step(x, y)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", action="append", default=[])
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()

    def cases() -> Iterator[Case]:
        for name in options.device or ["cpu"]:
            device = burn.Device(name)
            kind = "gpu" if "cuda" in device.name or "gpu" in device.name else "cpu"
            yield from chains(device, kind)
            yield from models(device, kind)

    report(cases(), "Compiled, and relaxed", options.json)


if __name__ == "__main__":
    main()
