"""Times methods of a backend beside generated kernels of the same ops.

    .venv/bin/python benchmarks/own_methods.py cpu
    .venv/bin/python benchmarks/own_methods.py opencl

A line for each op that has a method and may be generated: CPU seconds of the method, and those of
generated kernels over them. Each is the least of several in turns. `docs/bodies.py` quotes them.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

import burn
from burn.ops import REGISTRY

ROUNDS: Final = 5
SECONDS: Final = 0.02
"""How long the calls of a round take, about."""

RANDOM: Final = np.random.default_rng(0)

PAIRS: Final = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}


def floats(*shape: int) -> Any:
    """An array of float32."""
    return RANDOM.normal(size=shape).astype(np.float32)


def calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """An op, its operands and its attributes."""
    for x in (floats(16), floats(1000, 1000)):
        axis = x.ndim - 1
        for name in ("add", "greater", "atan2"):
            yield name, (x, x), {}
        yield "exp", (x,), {}
        yield "sum", (x,), {"axis": (axis,), "dtype": burn.float32}
        yield "max", (x,), {"axis": (axis,)}
        yield "argmax", (x,), {"axis": axis, "dtype": burn.int64}
        yield "cumsum", (x,), {"axis": axis}
        yield "softmax", (x,), {"axis": axis}
        yield "layer_norm", (x, floats(x.shape[axis]), None), {"epsilon": 1e-5}
    yield "rfft", (floats(64, 1024),), {"axis": 1, "n": 1024}
    yield "conv", (floats(4, 16, 28, 28), floats(16, 16, 3, 3), None), {**PAIRS, "groups": 1}
    yield "unfold4d", (floats(4, 16, 28, 28),), {**PAIRS, "kernel_size": (3, 3)}
    windows = {**PAIRS, "kernel_size": (2, 2), "stride": (2, 2), "ceil_mode": False}
    yield "max_pool", (floats(8, 32, 28, 28),), windows


def main() -> None:
    """Time the methods of a device."""
    device = burn.Device(sys.argv[1])
    table = device.ops

    def timed(call: Callable[[], Any], count: int) -> float:
        start = time.process_time()
        for _ in range(count):
            call()
        device.sync()
        return (time.process_time() - start) / count

    for name, arrays, attributes in calls():
        generated = table.generated(name)
        if table.origin(REGISTRY[name]) != "native" or generated is None:
            continue
        operands = [
            array if array is None else table.backend.from_data(burn.TensorData(array), device.id)
            for array in arrays
        ]
        ways = [
            functools.partial(function, *operands, **attributes)
            for function in (getattr(table, name), generated)
        ]
        count = max(1, int(SECONDS / max(timed(way, 2) for way in ways)))
        pairs = [[timed(way, count) for way in ways] for _ in range(ROUNDS)]
        mine, other = map(min, zip(*pairs, strict=True))
        shape = "x".join(map(str, arrays[0].shape))
        print(f"{name:15} {shape:12} {mine * 1e6:9.1f} us, generated {other / mine:6.2f} x")


if __name__ == "__main__":
    main()
