"""Arrays, and the comparison of a function with that of PyTorch, for tests of windows."""

import numpy as np
import torch
from torch.nn import functional

import burn

CPU = burn.Device("cpu")
TRACKED = CPU.autodiff()
RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.normal(size=shape)


def assert_close(actual, expected, **tolerances):
    np.testing.assert_allclose(actual, expected, **{"rtol": 1e-10, "atol": 1e-11} | tolerances)


def compare(ours, theirs, *arrays):
    """Values, and gradients by every array, of one function in both libraries."""
    tracked = [burn.asarray(array, device=TRACKED).require_grad() for array in arrays]
    twins = [torch.from_numpy(array).requires_grad_() for array in arrays]
    output, expected = ours(*tracked), theirs(*twins)
    assert output.shape == tuple(expected.shape)
    assert_close(output.inner().numpy(), expected.detach().numpy())
    untracked = ours(*[burn.asarray(array, device=CPU) for array in arrays])
    assert_close(untracked.numpy(), expected.detach().numpy())
    weights = normal(*output.shape)
    gradients = (output * burn.asarray(weights, device=CPU)).sum().backward()
    (expected * torch.from_numpy(weights)).sum().backward()
    for item, twin in zip(tracked, twins, strict=True):
        assert_close(item.grad(gradients).numpy(), twin.grad.numpy())


def zeros_around(x, padding):
    """Padding in PyTorch's order: the last axis first."""
    return functional.pad(x, [count for pair in reversed(padding) for count in pair])


def ones(*shape):
    return burn.ones(shape, device=CPU)
