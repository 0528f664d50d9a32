"""Channels that become pixels and back, against PyTorch; what they refuse."""

import numpy as np
import pytest
import torch

import burn
from burn.nn import functional as F

CPU = burn.Device("cpu")


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3)])
def test_pixels_are_shuffled_as_in_torch(factor, lead, device):
    array = np.random.default_rng(2).normal(size=(*lead, 2 * factor**2, 3, 4))
    x = burn.asarray(array, device=device.autodiff()).require_grad()
    twin = torch.tensor(array, requires_grad=True)
    found, expected = F.pixel_shuffle(x, factor), torch.nn.functional.pixel_shuffle(twin, factor)
    assert np.array_equal(found.inner().numpy(), expected.detach().numpy())
    back = F.pixel_unshuffle(found * found, factor)
    squares = torch.nn.functional.pixel_unshuffle(expected * expected, factor)
    assert np.array_equal(back.inner().numpy(), squares.detach().numpy())
    (squares * squares).sum().backward()
    gradient = x.grad((back * back).sum().backward()).numpy()
    np.testing.assert_allclose(gradient, twin.grad.numpy(), rtol=1e-13)


@pytest.mark.parametrize("factor", [1, 2])
def test_shuffled_pixels_are_no_view(factor):
    x = burn.ones((4, 2, 2), device=CPU)
    for function in (F.pixel_shuffle, F.pixel_unshuffle):
        function(x, factor)[0] = 5.0
    assert (x == 1.0).all()


@pytest.mark.parametrize("factor", [1, 2])
def test_pixels_are_shuffled_in_traces_and_batches(factor):
    x = burn.asarray(np.arange(72.0).reshape(3, 4, 2, 3), device=CPU)
    expected = F.pixel_shuffle(x, factor).numpy()
    assert np.array_equal(
        burn.vmap(lambda item: F.pixel_shuffle(item, factor))(x).numpy(), expected
    )
    program = burn.ir.trace(lambda item: F.pixel_shuffle(item, factor), x)
    assert np.array_equal(program(x).numpy(), expected)


def test_pixels_that_do_not_divide_are_refused():
    x = burn.ones((3, 3, 4), device=CPU)
    with pytest.raises(burn.ShapeError, match=r"pixel_shuffle: .* 3 channels, no multiple of 4"):
        F.pixel_shuffle(x, 2)
    with pytest.raises(burn.ShapeError, match=r"pixel_unshuffle: .* 3 rows and 4 columns"):
        F.pixel_unshuffle(x, 2)
    for function in (F.pixel_shuffle, F.pixel_unshuffle):
        with pytest.raises(burn.ArgumentError, match="factor is 0"):
            function(x, 0)
        with pytest.raises(burn.ShapeError, match="Images have the shape"):
            function(x[0], 1)
