"""burn-opencl beside NumPy, and beside tinygrad's OpenCL where that is installed.

Run it as ``python benchmarks/opencl_backend.py [DEVICE]``; the device is ``opencl`` if left out.
Both sides wait until the device is done.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import burn
from harness import Case, measure

__all__ = ["against_numpy", "against_tinygrad"]

Function = Callable[[], object]

SMALL_OP = 60e-6
"""Seconds that an op of 16 elements may take."""

PRODUCT, STREAM = round(1 / 0.8, 2), round(1 / 0.7, 2)
"""Budgets of matrix products, and of ops that go once over memory."""


def against_numpy(device: burn.Device) -> Iterator[Case]:
    """The same work by NumPy, which writes to memory that is there already."""
    numbers = np.random.default_rng(0)
    a = numbers.normal(size=(1024, 1024)).astype(np.float32)
    b = numbers.normal(size=(10_000, 1000)).astype(np.float32)
    row = b[0].copy()
    x, y, line = (burn.asarray(one, device=device) for one in (a, b, row))
    out = np.empty_like(b)

    def done(function: Function) -> Function:
        def call() -> None:
            function()
            device.sync()

        return call

    def softmax() -> object:
        powers = np.exp(np.subtract(b, b.max(axis=1, keepdims=True), out=out), out=out)
        return np.divide(powers, powers.sum(axis=1, keepdims=True), out=out)

    cases: list[tuple[str, Function, Function, float | None]] = [
        ("matmul 1024", lambda: x @ x, lambda: a @ a, PRODUCT),
        ("matmul 1024, transposed", lambda: x @ x.T, lambda: a @ a.T, PRODUCT),
        ("add, 10⁷", lambda: y + y, lambda: np.add(b, b, out=out), STREAM),
        ("add a row, 10⁷", lambda: y + line, lambda: np.add(b, row, out=out), STREAM),
        ("exp, 10⁷", lambda: burn.exp(y), lambda: np.exp(b, out=out), STREAM),
        ("sum of all, 10⁷", lambda: burn.sum(y), lambda: b.sum(), STREAM),
        ("sum of rows, 10⁷", lambda: burn.sum(y, axis=1), lambda: b.sum(axis=1), STREAM),
        ("sum of columns, 10⁷", lambda: burn.sum(y, axis=0), lambda: b.sum(axis=0), STREAM),
        ("softmax, 10⁷", lambda: burn.softmax(y, axis=1), softmax, None),
    ]
    for name, ours, theirs, budget in cases:
        yield Case(name, done(ours), theirs, "NumPy", budget)


def against_tinygrad(device: burn.Device) -> Iterator[Case]:
    """The same work by tinygrad on its OpenCL device, captured by its JIT."""
    os.environ.setdefault("DEV", "CL")
    from tinygrad import Device, Tensor, TinyJit

    numbers = np.random.default_rng(0)
    small = numbers.normal(size=(1024, 1024)).astype(np.float32)
    large = numbers.normal(size=(10_000, 1000)).astype(np.float32)
    x, y = (burn.asarray(one, device=device) for one in (small, large))
    a, b = (Tensor(one).realize() for one in (small, large))
    cases: dict[str, tuple[Function, Callable[..., Any], Any]] = {
        "matmul 1024": (lambda: x @ x, lambda one: one @ one, a),
        "softmax, 10⁷": (lambda: burn.softmax(y, axis=1), lambda one: one.softmax(1), b),
        "sum of rows, 10⁷": (lambda: burn.sum(y, axis=1), lambda one: one.sum(1), b),
        "relu and sum of all, 10⁷": (
            lambda: burn.sum(burn.relu(y)),
            lambda one: one.relu().sum(),
            b,
        ),
    }
    for name, (ours, function, operand) in cases.items():
        captured = TinyJit(lambda one, function=function: function(one).realize())

        def mine(ours: Function = ours) -> None:
            ours()
            device.sync()

        def theirs(captured: Any = captured, operand: Any = operand) -> None:
            captured(operand)
            Device[operand.device].synchronize()

        yield Case(name, mine, theirs, "tinygrad", 1.0)


def main() -> None:
    """Print what was measured."""
    device = burn.Device(sys.argv[1] if len(sys.argv) > 1 else "opencl")
    cases = [*against_numpy(device)]
    if importlib.util.find_spec("tinygrad") is not None:
        cases += against_tinygrad(device)
    print(f"{'':28}{'burn-opencl':>12}{'other':>12}{'ratio':>8}{'budget':>8}")
    for case in cases:
        result = measure(case)
        budget = "" if result.budget is None else f"{result.budget:.2f}"
        print(
            f"{case.name:28}{result.ours * 1e3:9.2f} ms{result.theirs * 1e3:9.2f} ms"
            f"{result.ratio:8.2f}{budget:>8}  {case.against}"
        )
    x = burn.ones(16, device=device)
    small = measure(Case("add, 16 elements", lambda: x + x, lambda: None, "nothing"))
    print(f"{'add, 16 elements':28}{small.ours * 1e6:9.1f} µs; {SMALL_OP * 1e6:.0f} at most")


if __name__ == "__main__":
    main()
