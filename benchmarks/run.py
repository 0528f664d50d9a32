"""Where burn stands against its speed budgets, on the CPU: ``python benchmarks/run.py``.

Budgets are ratios measured side by side in one run. With ``--json FILE`` the figures are kept.
Where numba is installed burn-cpu uses it; ``BURN_CPU_JIT=0`` measures NumPy alone.
"""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import burn
from burn.nn import functional as F
from checkpointing import checkpointing_memory, checkpointing_time
from checkpoints import checkpoints
from convolution import SHAPE, SMALL, burn_convolution, torch_convolution
from data_loading import data_loading
from files import files
from harness import READS_MEMORY, Case, Result, measure_commands, measure_memory, report
from models import TINY_MLP, burn_training, models
from programs import programs
from quantized_rows import quantized_rows
from tiny_ops import joined, module_ops, views
from torch_backend import torch_backend
from training import training

CPU = burn.Device("cpu")
TRACKED = CPU.autodiff()


def start_up() -> Iterator[Result]:
    """What a process pays before it computes."""
    yield measure_commands(
        "import burn", ["-c", "import burn"], ["-c", "import numpy"], "import numpy", 1.3
    )
    yield measure_commands(
        "import burn, one op",
        ["-c", "import burn; burn.ones(2, device='cpu') + 1"],
        ["-c", "import numpy; numpy.ones(2) + 1"],
        "NumPy",
        3.0,
    )
    # The budget is half a second; the interpreter's own start makes it a ratio.
    yield measure_commands("burn devices", ["-m", "burn", "devices"], ["-c", ""], "python", 25.0)


def small_ops() -> Iterator[Case]:
    """Ops of 16 elements: the cost of the layers."""
    x, y = burn.ones(16, device=CPU), burn.ones(16, device=CPU)
    a, b = torch.ones(16), torch.ones(16)
    against = "torch eager"
    yield Case("add, 16 elements", lambda: x + y, lambda: a + b, against, 0.6)
    yield Case("multiply by a number", lambda: x * 2.0, lambda: a * 2.0, against, 0.6)
    yield Case("exp", lambda: burn.exp(x), lambda: torch.exp(a), against, 0.6)
    yield Case("less", lambda: x < y, lambda: a < b, against, 0.6)
    yield Case("relu", lambda: F.relu(x), lambda: torch.relu(a), against)
    yield Case("sum", lambda: x.sum(), lambda: a.sum(), against)
    matrix, other = x.reshape((4, 4)), a.reshape(4, 4)
    yield Case("matmul 4x4", lambda: matrix @ matrix, lambda: other @ other, against)
    yield Case("reshape", lambda: x.reshape((4, 4)), lambda: a.reshape((4, 4)), against)


def tracked_ops() -> Iterator[Case]:
    """The same, remembered for gradients."""
    x, y = (burn.ones(16, device=TRACKED).require_grad() for _ in range(2))
    constant = burn.ones(16, device=CPU)
    a, b = (torch.ones(16, requires_grad=True) for _ in range(2))
    other = torch.ones(16)
    against = "torch, requires_grad"
    yield Case("tracked add", lambda: x + y, lambda: a + b, against, 0.9)
    yield Case("tracked multiply", lambda: x * y, lambda: a * b, against, 0.9)
    yield Case("tracked add to a constant", lambda: x + constant, lambda: a + other, against, 0.9)
    yield Case("tracked exp", lambda: burn.exp(x), lambda: torch.exp(a), against, 0.9)
    yield Case(
        "add, sum, backward",
        lambda: (x + y).sum().backward(),
        lambda: (a + b).sum().backward(),
        against,
    )


def router() -> Iterator[Case]:
    """Ops of 16 elements as operations of a router in this process: its cost over the device."""
    against = "cpu directly"
    x = burn.ones(16, device=CPU)
    a = burn.ones(16, device="router/cpu")
    matrix, other = x.reshape((4, 4)), a.reshape((4, 4))
    yield Case("router, add", lambda: a + a, lambda: x + x, against, 2.5)
    yield Case("router, multiply by a number", lambda: a * 2.0, lambda: x * 2.0, against, 2.5)
    yield Case("router, exp", lambda: burn.exp(a), lambda: burn.exp(x), against, 2.5)
    yield Case("router, sum", lambda: a.sum(), lambda: x.sum(), against, 2.5)
    yield Case("router, matmul 4x4", lambda: other @ other, lambda: matrix @ matrix, against, 2.5)
    _, step = burn_training(TINY_MLP, burn.Device("router/cpu"))
    yield Case("router, tiny MLP, Adam step", step, burn_training(TINY_MLP, CPU)[1], against, 2.5)


def random_numbers() -> Iterator[Case]:
    """Random numbers; the budgets are 3 microseconds and 6 milliseconds."""
    yield Case(
        "uniform, 16",
        lambda: burn.random.uniform(16, device=CPU),
        lambda: torch.rand(16),
        "torch",
    )
    yield Case(
        "uniform, 10^6",
        lambda: burn.random.uniform(1_000_000, device=CPU),
        lambda: torch.rand(1_000_000),
        "torch",
    )


def large_ops() -> Iterator[Case]:
    """Ops that are bound by the hardware: burn adds nothing to the library underneath."""
    x = burn.random.normal(1_000_000, device=CPU)
    array = x.numpy()
    yield Case("exp, 10^6", lambda: burn.exp(x), lambda: np.exp(array), "NumPy", 1 / 0.95)
    first, second = np.empty_like(array), np.empty_like(array)

    def with_buffers() -> object:
        np.multiply(array, array, out=first)
        return np.add(first, np.float32(1.0), out=second)

    yield Case("x * x + 1, 10^6", lambda: x * x + 1.0, with_buffers, "NumPy with out=", 1.2)
    matrix = burn.random.normal((1024, 1024), device=CPU)
    other = matrix.numpy()
    yield Case("matmul 1024", lambda: matrix @ matrix, lambda: other @ other, "NumPy", 1 / 0.95)


def rows() -> Iterator[Case]:
    """Softmax, normalization and attention, alone and with their gradients."""
    functional = torch.nn.functional
    generator = np.random.default_rng(0)

    def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
        return [generator.normal(size=shape).astype(np.float32) for shape in shapes]

    works = [
        (
            "softmax 4096x1024",
            F.softmax,
            lambda x: functional.softmax(x, -1),
            arrays((4096, 1024)),
            3.0,
        ),
        (
            "layer_norm 4096x1024",
            F.layer_norm,
            lambda x, gamma, beta: functional.layer_norm(x, (1024,), gamma, beta),
            arrays((4096, 1024), (1024,), (1024,)),
            3.0,
        ),
        ("gelu 1024x1024", F.gelu, functional.gelu, arrays((1024, 1024)), None),
        (
            "attention B8 H8 T128 D32",
            F.attention,
            functional.scaled_dot_product_attention,
            arrays(*[(8, 8, 128, 32)] * 3),
            1.2,
        ),
    ]
    for name, ours, theirs, operands, budget in works:
        plain = [burn.asarray(operand, device=CPU) for operand in operands]
        values = [torch.tensor(operand) for operand in operands]
        yield Case(
            name,
            functools.partial(ours, *plain),
            functools.partial(theirs, *values),
            "torch",
            budget,
        )
        leaves = [item.to_device(TRACKED).require_grad() for item in plain]
        tracked = [value.requires_grad_() for value in values]
        (slope,) = arrays(tuple(theirs(*tracked).shape))
        yield Case(
            f"{name} and backward",
            functools.partial(
                lambda f, xs, g: f(*xs).backward(g), ours, leaves, burn.asarray(slope, device=CPU)
            ),
            functools.partial(
                lambda f, xs, g: torch.autograd.grad(f(*xs), xs, g),
                theirs,
                tracked,
                torch.tensor(slope),
            ),
            "torch",
            budget,
        )


def pooling() -> Iterator[Case]:
    """Pooling of images, alone and with its gradient."""
    images = burn.random.normal((32, 64, 56, 56), device=CPU)
    leaf = images.to_device(TRACKED).require_grad()
    values = torch.tensor(images.numpy())
    tracked = values.clone().requires_grad_()
    functional = torch.nn.functional
    for kernel in (2, 3):

        def ours(k: int = kernel) -> object:
            return F.max_pool2d(leaf, k, 2).sum().backward()

        def theirs(k: int = kernel) -> object:
            return torch.autograd.grad(functional.max_pool2d(tracked, k, 2).sum(), tracked)

        yield Case(
            f"max_pool2d {kernel}x{kernel}, 32x64x56x56",
            lambda k=kernel: F.max_pool2d(images, k, 2),
            lambda k=kernel: functional.max_pool2d(values, k, 2),
            "torch",
            3.0,
        )
        yield Case(f"max_pool2d {kernel}x{kernel} and backward", ours, theirs, "torch", 3.0)


def convolution() -> Iterator[Case | Result]:
    """Convolutions of images and of digits, alone and with their gradients."""
    for name, shape in (("conv2d 32x64x28x28, 64 of 3x3", SHAPE), ("conv2d of 64 digits", SMALL)):
        pairs = zip(burn_convolution(shape), torch_convolution(shape), strict=True)
        (ours, theirs), (ours_both, theirs_both) = pairs
        yield Case(name, ours, theirs, "torch", 1.2)
        yield Case(f"{name}, and backward", ours_both, theirs_both, "torch", 1.2)
    script = str(Path(__file__).with_name("convolution.py"))
    if READS_MEMORY:
        yield measure_memory(
            "conv2d and backward, peak memory", [script, "burn"], [script, "torch"], "torch", 3.0
        )


def checkpointing() -> Iterator[Case | Result]:
    """Balanced gradient checkpointing: the memory that it saves, and the time that it takes."""
    yield checkpointing_memory()
    yield checkpointing_time()


SUITES = {
    "start": start_up,
    "small": small_ops,
    "tracked": tracked_ops,
    "views": views,
    "joined": joined,
    "quantized": quantized_rows,
    "modules": module_ops,
    "programs": programs,
    "router": router,
    "random": random_numbers,
    "large": large_ops,
    "rows": rows,
    "pooling": pooling,
    "convolution": convolution,
    "checkpointing": checkpointing,
    "files": files,
    "checkpoints": checkpoints,
    "data": data_loading,
    "training": training,
    "torch": torch_backend,
    "models": models,
}


def main() -> None:
    """Run the suites that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which to run; all")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch and BLAS")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    items = (item for name in options.suites or SUITES for item in SUITES[name]())
    report(items, "burn on the CPU", options.json)


if __name__ == "__main__":
    os.environ.setdefault("BURN_DEVICE", "cpu")
    main()
