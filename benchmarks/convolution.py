"""A convolution of images, forward and with its gradients, in burn and in torch.

As a program, ``python benchmarks/convolution.py burn`` (or ``torch``), it prints by how many bytes
the memory of its process grows at most while both are computed. That is read from Linux.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from burn.nn import functional as F
from harness import memory_growth

__all__ = ["SHAPE", "SMALL", "burn_convolution", "torch_convolution"]

Shape = tuple[int, int, int, int]
Work = Callable[[], object]

SHAPE: Shape = (32, 64, 28, 64)
"""Images, channels, height and width, output channels."""

SMALL: Shape = (64, 1, 8, 16)
"""A batch of digits."""


def arrays(shape: Shape) -> list[np.ndarray]:
    """Images, a weight of 3x3, a bias, and a gradient of the output."""
    images, channels, size, outputs = shape
    generator = np.random.default_rng(0)
    shapes = [
        (images, channels, size, size),
        (outputs, channels, 3, 3),
        (outputs,),
        (images, outputs, size, size),
    ]
    return [generator.normal(size=shape).astype(np.float32) for shape in shapes]


def burn_convolution(shape: Shape) -> tuple[Work, Work]:
    """The convolution with a padding of 1, and the same with its gradients."""
    import burn

    device = burn.Device("cpu")
    *operands, slope = [burn.asarray(array, device=device) for array in arrays(shape)]
    leaves = [operand.to_device(device.autodiff()).require_grad() for operand in operands]

    def forward() -> object:
        return F.conv2d(*operands, padding=1)

    def both() -> object:
        gradients = F.conv2d(*leaves, padding=1).backward(slope)
        return [leaf.grad(gradients) for leaf in leaves]

    return forward, both


def torch_convolution(shape: Shape) -> tuple[Work, Work]:
    """The same in torch."""
    import torch
    from torch.nn import functional

    *operands, slope = [torch.tensor(array) for array in arrays(shape)]
    leaves = [operand.clone().requires_grad_() for operand in operands]

    def forward() -> object:
        return functional.conv2d(*operands, padding=1)

    def both() -> object:
        return torch.autograd.grad(functional.conv2d(*leaves, padding=1), leaves, slope)

    return forward, both


def peak(make: Callable[[Shape], tuple[Work, Work]]) -> int:
    """Bytes by which the memory of the process grows for a convolution and its gradients."""
    make(SMALL)[1]()  # whatever is loaded or set up once does not count
    _, both = make(SHAPE)
    return memory_growth(both)


if __name__ == "__main__":
    print(peak({"burn": burn_convolution, "torch": torch_convolution}[sys.argv[1]]))
