"""Products with quantized weights on one GPU against torch: ``python benchmarks/quantized.py``.

Device time alone: both sides run in CUDA graphs, each of which goes through so many weights of
4096 x 4096 that no cache holds them. The measure is torch's product in bfloat16. With ``--json
FILE`` the figures are kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import burn
from burn.plugin_api import QuantScheme, QuantStore, QuantValue, ScaleDType, bfloat16

SIDE = 4096
TURN_BYTES = 500 << 20
ROUNDS = 9
NATIVE = QuantStore.NATIVE
GPU = burn.Device("cuda")
burn.zeros(1, device=GPU)  # opens it
OPS = GPU.backend.for_device(GPU.id)

INT8 = QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, -1), ScaleDType.BF16)
INT8_BLOCKS = QuantScheme(QuantValue.Q8F, NATIVE).per_block((1, 32), ScaleDType.BF16)
INT4 = QuantScheme(QuantValue.Q4F).per_block((1, 32), ScaleDType.BF16)
INT2 = QuantScheme(QuantValue.Q2F).per_block((1, 64), ScaleDType.BF16)
FLOAT8 = QuantScheme(QuantValue.E4M3, NATIVE).per_block((1, -1), ScaleDType.BF16)

Launch = Callable[[], None]


class Result(NamedTuple):
    """Microseconds of a product, and the limit of their ratio."""

    name: str
    ours: float
    theirs: float
    budget: float | None
    error: float

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours / self.theirs


def turns(nbytes: int) -> int:
    """Number of weights of so many bytes that no cache holds."""
    return -(-TURN_BYTES // nbytes)


def primitive(x: torch.Tensor) -> Any:
    """The array of the backend in the memory of a tensor of torch."""
    return OPS.from_dlpack(x, GPU.id)


def double(x: Any) -> torch.Tensor:
    """A float64 tensor of torch of an array of bfloat16."""
    return torch.from_dlpack(x.view(np.dtype(np.int16)).to_cupy()).view(torch.bfloat16).double()


def ours(products: Sequence[Callable[[], object]]) -> tuple[Launch, int]:
    """A graph of products of burn, as of a compiled program, and how many it has."""
    with OPS.runtime.tuned_products():
        for product in products[:2]:
            product()  # compiles, and chooses algorithms
        launch, _ = OPS.runtime.capture(lambda: [product() for product in products] and None)
    return launch, len(products)


def theirs(products: Sequence[Callable[[], object]]) -> tuple[Launch, int]:
    """A graph of products of torch, and how many it has."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for product in products[:2]:
            product()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for product in products:
            product()
    return graph.replay, len(products)


def timed(launch: Launch, count: int) -> float:
    """Microseconds of each product of a graph."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    launch()
    start.record()
    launch()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3 / count


def compared(first: tuple[Launch, int], second: tuple[Launch, int]) -> tuple[float, float]:
    """Medians of rounds in turn."""
    times = [(timed(*first), timed(*second)) for _ in range(ROUNDS)]
    return statistics.median([time for time, _ in times]), statistics.median(
        [two for _, two in times]
    )


def random(*shape: int) -> torch.Tensor:
    """Normal numbers in bfloat16."""
    return torch.randn(*shape, device="cuda").to(torch.bfloat16)


def restored(codes: Any, scales: Any, scheme: QuantScheme) -> torch.Tensor:
    """The numbers of codes, as a tensor of torch."""
    found = OPS.dequantize_values(codes, scales, None, scheme=scheme, dtype=burn.float32)
    return torch.from_dlpack(found.to_cupy()).double()


def error(found: Any, x: torch.Tensor, weight: torch.Tensor) -> float:
    """The difference of a product from that in float64, over its norm."""
    exact = x @ weight.T
    return float((double(found) - exact).norm() / exact.norm())


def graph_of_torch(rows: int) -> tuple[Launch, int]:
    """Products of torch in bfloat16."""
    x = random(rows, SIDE)
    weights = [random(SIDE, SIDE) for _ in range(turns(2 * SIDE * SIDE))]
    return theirs([lambda w=w: torch.nn.functional.linear(x, w) for w in weights])


def weight_only(
    rows: int, schemes: dict[str, tuple[QuantScheme, float | None]]
) -> Iterator[Result]:
    """Products of rows of bfloat16 with weights of few bits."""
    measure = graph_of_torch(rows)
    x = random(rows, SIDE)
    own = primitive(x)
    for name, (scheme, budget) in schemes.items():
        count = turns(scheme.nbytes((SIDE, SIDE)))
        weights = [
            OPS.quantize_dynamic(primitive(random(SIDE, SIDE)), scheme=scheme) for _ in range(count)
        ]
        products = [
            lambda w=w, scheme=scheme: OPS.quantized_linear(
                own, *w, None, None, scheme=scheme, transposed=True
            )
            for w in weights
        ]
        wrong = error(products[0](), x.double(), restored(*weights[0], scheme))
        yield Result(f"{name}, {rows} rows", *compared(ours(products), measure), budget, wrong)
        del weights, products
        GPU.memory_cleanup()


def both(rows: int, schemes: dict[str, tuple[QuantScheme, float | None]]) -> Iterator[Result]:
    """Products of rows that are quantized first, and of codes alone."""
    measure = graph_of_torch(rows)
    x = random(rows, SIDE)
    own = primitive(x)
    for name, (scheme, budget) in schemes.items():
        count = turns(scheme.nbytes((SIDE, SIDE)))
        weights = [
            OPS.quantize_dynamic(primitive(random(SIDE, SIDE)), scheme=scheme) for _ in range(count)
        ]
        codes = OPS.quantize_dynamic(own, scheme=scheme)

        def product(a: Any, w: Any, scheme: QuantScheme = scheme) -> Any:
            return OPS.quantized_product(
                *(*a, *w, None), a_scheme=scheme, b_scheme=scheme, dtype=bfloat16, transposed=True
            )

        def quantized(scheme: QuantScheme = scheme) -> Any:
            return OPS.quantize_dynamic(own, scheme=scheme)

        wrong = error(
            product(codes, weights[0]), restored(*codes, scheme), restored(*weights[0], scheme)
        )
        whole = [lambda w=w: product(quantized(), w) for w in weights]
        parts = {"product alone": [lambda w=w, a=codes: product(a, w) for w in weights]}
        parts["quantizing alone"] = [quantized] * count
        yield Result(f"{name}, {rows} rows", *compared(ours(whole), measure), budget, wrong)
        for part, products in parts.items():
            yield Result(f"  {part}", *compared(ours(products), measure), None, 0.0)
        del weights, whole, parts
        GPU.memory_cleanup()


def results() -> Iterator[Result]:
    """All that is measured."""
    for rows in (1, 8):
        yield from weight_only(
            rows,
            {
                "int8": (INT8, 0.6),
                "int8 in blocks of 32": (INT8_BLOCKS, 0.6),
                "int4 in blocks of 32": (INT4, 0.4),
                "int2 in blocks of 64": (INT2, None),
                "E4M3": (FLOAT8, None),
            },
        )
    for rows in (16, 32, 128):
        yield from weight_only(rows, {"int8": (INT8, None), "int4": (INT4, None)})
    of_rows = {
        value: QuantScheme(value, NATIVE).per_block((1, -1), ScaleDType.F32)
        for value in (QuantValue.Q8S, QuantValue.E4M3)
    }
    yield from both(
        1024,
        {
            "E4M3 by rows": (of_rows[QuantValue.E4M3], 0.75),
            "E4M3 by tensors": (QuantScheme(QuantValue.E4M3, NATIVE), None),
            "int8 by rows": (of_rows[QuantValue.Q8S], 1.0),
            "int8 by tensors": (QuantScheme(QuantValue.Q8S, NATIVE), None),
        },
    )


def main() -> int:
    """Measure, and print a table; the exit status is 1 where a budget is passed."""
    parser = argparse.ArgumentParser(description="Quantized products of burn-cuda against torch.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    table = Table(title=f"{torch.cuda.get_device_name()}, weights of {SIDE} x {SIDE}")
    for column in ("product", "burn µs", "torch bf16 µs", "ratio", "budget", "error"):
        table.add_column(column, justify="left" if column == "product" else "right")
    found = []
    for result in results():
        found.append(result)
        table.add_row(
            result.name,
            f"{result.ours:.2f}",
            f"{result.theirs:.2f}",
            f"{result.ratio:.2f}",
            "" if result.budget is None else f"{result.budget:.2f}",
            f"{result.error:.1e}" if result.error else "",
        )
    Console(width=100).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps([item._asdict() for item in found], indent=1))
    return int(any(item.budget is not None and item.ratio > item.budget for item in found))


if __name__ == "__main__":
    sys.exit(main())
