"""Where burn-torch chooses between kernels of torch: each choice computes the same."""

import numpy as np
import pytest
import torch

import burn
from burn.nn import functional as F
from burn.plugin_api import DeviceId, registry, resolve

DEVICE = burn.Device("torch/cpu")


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("torch").load(), DeviceId(2)).backend


def normal(*shape):
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(3, 5), (1, 7), (40,), (150, 128), (20000,), (2, 90, 128)])
@pytest.mark.parametrize("is_finite", [True, False])
def test_gelu_and_its_gradient_of_few_and_of_many_elements(backend, shape, is_finite):
    x, g = (torch.tensor(item) for item in (normal(*shape), normal(*shape)[..., ::-1].copy()))
    if not is_finite:
        x.view(-1)[:3] = torch.tensor([torch.inf, -torch.inf, torch.nan])
    wide = x.double().requires_grad_()
    expected = 0.5 * wide * (1.0 + torch.erf(wide / 2**0.5))
    torch.testing.assert_close(backend.gelu(x), expected.detach().float(), equal_nan=True)
    for operand in (x, x.mT.contiguous().mT) if x.dim() > 1 else (x,):
        found = backend.gelu_grad(operand, g)[x.isfinite()]
        expected.backward(g.double(), retain_graph=True)
        torch.testing.assert_close(found, wide.grad.float()[x.isfinite()])
        wide.grad = None


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("layout", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)])
@pytest.mark.parametrize("rank", [3, 4])
def test_gradients_of_attention_in_each_layout(layout, rank, is_causal):
    shape = [(2, 3, 6, 4)[axis] for axis in np.argsort(layout)]
    operands = [normal(*shape).transpose(layout) + number for number in range(4)]
    if rank == 3:
        operands = [operand[0] for operand in operands]
    tracked = [burn.asarray(operand, device=DEVICE.autodiff()) for operand in operands]
    query, key, value = (item.require_grad() for item in tracked[:3])
    output = F.attention(query, key, value, is_causal=is_causal)
    gradients = (output * tracked[3]).sum().backward()
    theirs = [
        torch.tensor(operand, dtype=torch.float64, requires_grad=True) for operand in operands[:3]
    ]
    expected = torch.nn.functional.scaled_dot_product_attention(*theirs, is_causal=is_causal)
    expected.backward(torch.tensor(operands[3], dtype=torch.float64))
    np.testing.assert_allclose(output.detach().numpy(), expected.detach(), 1e-4, 1e-5)
    for item, other in zip((query, key, value), theirs, strict=True):
        np.testing.assert_allclose(item.grad(gradients).numpy(), other.grad, 2e-3, 1e-4)


@pytest.mark.parametrize("shape", [(2, 3, 6, 8), (6, 8), (3, 6, 8), (2, 1, 3, 6, 8)])
def test_the_largest_element_of_a_window_is_its_first_nan(backend, shape):
    x = normal(*shape)
    x[..., 1, 2:4] = np.nan
    attributes = {
        "kernel_size": (2, 2),
        "stride": (2, 2),
        "padding": ((0, 0), (0, 0)),
        "dilation": (1, 1),
        "ceil_mode": False,
    }
    for operand in (
        torch.tensor(x),
        torch.tensor(x).transpose(0, -1).contiguous().transpose(0, -1),
    ):
        output, indices = backend.max_pool_with_indices(
            operand, index_dtype=burn.int64, **attributes
        )
        assert output.shape == indices.shape == (*shape[:-2], 3, 4)
        assert torch.isnan(output[..., 0, 1]).all()
        assert (indices[..., 0, 1] == 8 + 2).all()
        assert not torch.isnan(output[..., 1:, :]).any()
        torch.testing.assert_close(backend.max_pool(operand, **attributes), output, equal_nan=True)


def adam(*, steps=0):
    model = burn.nn.Linear(300, 20).to(DEVICE.autodiff())
    optimizer = burn.optim.Adam(model, learning_rate=0.1)
    x = burn.asarray(normal(8, 300), device=DEVICE)

    def step():
        optimizer.step((model(x) ** 2).sum().backward())

    for _ in range(steps):
        step()
    return model, optimizer, step


def memory_of(model, optimizer):
    return [
        tensor.primitive.data_ptr()
        for slot in optimizer._slots
        for tensor in (slot.tensor.inner(), *slot.states)
    ]


def test_a_step_of_adam_overwrites_parameters_and_moments():
    model, optimizer, step = adam(steps=1)
    before = memory_of(model, optimizer)
    step()
    assert memory_of(model, optimizer) == before


def test_a_step_of_adam_does_not_overwrite_what_a_user_refers_to():
    model, optimizer, step = adam(steps=1)
    weight, moment = model.weight.inner(), optimizer._slots[0].states[0].primitive
    view = model.bias.inner().primitive[2:]
    copies = weight.numpy().copy(), moment.clone(), view.clone()
    step()
    assert weight.numpy().tolist() == copies[0].tolist()
    assert torch.equal(moment, copies[1])
    assert torch.equal(view, copies[2])
    assert not np.array_equal(model.weight.inner().numpy(), copies[0])
