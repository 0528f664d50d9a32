r"""Where the time of a step of training goes, by the layers of burn.

    python benchmarks/layers.py                                     # the small GPT on cpu
    python benchmarks/layers.py --device torch/cpu --model "MLP 4"
    PYTHONPATH=old/core/src:old/plugins/burn-cpu/src python benchmarks/layers.py   # of a checkout

A timer interrupts the program a thousand times a second of its own time, and the function that
runs then says the layer. So nothing is added to the calls themselves, which a profiler of calls
would make longer, those of short functions above all. What a library computes counts for the method
of the backend that called it. A GPU computes beside the host: there the table is of the host's time
alone.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from rich.console import Console
from rich.table import Table

import burn
from models import WORKS, burn_inference, burn_training

__all__ = ["profile"]

LAYERS: Final = (
    ("the model itself", ("burn_models.py", "models.py", "layers.py")),
    ("modules", ("burn/nn/",)),
    ("public functions and tensors", ("burn/functions/", "burn/tensor/", "<string>")),
    ("dispatch", ("burn/dispatch/", "<burn.dispatch>", "burn/devices/")),
    ("recording", ("burn/autodiff/recording", "burn/autodiff/_recorders", "<burn.autodiff>")),
    ("backward pass", ("burn/autodiff/",)),
    ("definitions of ops: gradient rules, defaults, checks", ("burn/ops/",)),
    ("optimizer", ("burn/optim/",)),
    ("backend and its library", ("burn_cpu/", "burn_torch/", "burn_cuda/", "burn_opencl/")),
)
"""The layers, and parts of the names of their files; the first that fits counts."""

SECONDS: Final = 6.0
INTERVAL: Final = 0.001


def _layer_of(frame: FrameType | None) -> str:
    """The layer of the innermost function that is one of burn's; libraries count for it."""
    while frame is not None:
        name = frame.f_code.co_filename.replace("\\", "/")
        for layer, parts in LAYERS:
            if any(part in name for part in parts):
                return layer
        frame = frame.f_back
    return "other"


def profile(function: Callable[[], object]) -> tuple[float, dict[str, float]]:
    """Seconds of process time of a call, and the share of each layer in it."""
    for _ in range(5):
        function()
    found: Counter[str] = Counter()

    def look(number: int, frame: FrameType | None) -> None:
        del number
        found[_layer_of(frame)] += 1

    gc.disable()
    before = signal.signal(signal.SIGPROF, look)
    calls, start, end = 0, time.process_time(), time.perf_counter() + SECONDS
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    try:
        while time.perf_counter() < end:
            function()
            calls += 1
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
        gc.enable()
    taken = (time.process_time() - start) / calls
    return taken, {layer: count / found.total() for layer, count in found.items()}


def _show(title: str, columns: Iterable[tuple[str, tuple[float, dict[str, float]]]]) -> None:
    columns = list(columns)
    table = Table(title=title)
    table.add_column("layer")
    for name, _ in columns:
        table.add_column(f"{name}, µs", justify="right")
        table.add_column("share", justify="right")
    for layer in [*[name for name, _ in LAYERS], "other"]:
        cells = []
        for _, (taken, shares) in columns:
            share = shares.get(layer, 0.0)
            cells += [f"{taken * share * 1e6:,.0f}", f"{share:.0%}"]
        table.add_row(layer, *cells)
    table.add_section()
    table.add_row(
        "all", *[item for _, (taken, _) in columns for item in (f"{taken * 1e6:,.0f}", "")]
    )
    Console(width=120).print(table)


def main() -> None:
    """Profile the model and device that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="GPT 6x16", help="part of a name in models.py")
    options = parser.parse_args()
    device: Any = burn.Device(options.device)
    (work,) = [item for item in WORKS if options.model in item.name]
    gradients, step = burn_training(work, device)
    parts = [("forward", burn_inference(work, device)), ("and backward", gradients), ("step", step)]
    source = Path(burn.__file__).parents[2]
    title = f"{work.name} on {device.name}, Python {sys.version.split()[0]}, {source}"
    _show(title, [(name, profile(function)) for name, function in parts])


if __name__ == "__main__":
    main()
