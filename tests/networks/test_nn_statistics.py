"""Running statistics of normalization: what moves them, and what does not."""

import numpy as np
import pytest

import burn
from burn import nn

CPU = burn.Device("cpu")


def normalized(device=CPU, momentum=0.1):
    """A model with running statistics, and an input."""
    burn.random.seed(0, device=device)
    model = nn.Sequential(
        nn.Linear(3, 4, device=device), nn.BatchNorm1d(4, momentum=momentum, device=device)
    )
    return model, burn.asarray(
        np.random.default_rng(0).normal(size=(6, 3)), dtype="float32", device=CPU
    )


def after_a_step(momentum=0.1, steps=1):
    """The running statistics after steps of training."""
    model, x = normalized(CPU.autodiff(), momentum)
    for _ in range(steps):
        model(x)
    return statistics(model)


def statistics(model):
    return [buffer.numpy().tolist() for _, buffer in model.named_buffers()]


def test_a_checkpointed_function_updates_running_statistics_once():
    expected = after_a_step()
    model, x = normalized(CPU.autodiff())
    gradients = model(x).sum().backward()
    again, _ = normalized(CPU.autodiff())
    regions = burn.checkpoint(lambda x: burn.checkpoint(again)(x))  # one in another
    found = regions(x).sum().backward()
    assert statistics(again) == expected
    for item, other in zip(model.parameters(), again.parameters(), strict=True):
        assert (item.grad(gradients) == other.grad(found)).all()


@pytest.mark.parametrize("device", [CPU, CPU.autodiff()], ids=str)
def test_statistics_move_in_a_function_of_grad_on_every_device(device):
    model, x = normalized(device)
    burn.grad(lambda model: model(x).sum())(model)
    assert statistics(model) == after_a_step()


def test_statistics_move_when_a_trace_is_replayed():
    for momentum in 0.1, None:
        model, x = normalized(CPU.autodiff(), momentum)
        program = burn.ir.trace(lambda x, model=model: model(x).sum(), x)
        assert statistics(model)[0] == [0.0] * 4
        program(x), program(x)
        assert statistics(model) == after_a_step(momentum, steps=2)
    assert statistics(model)[2] == 2


def test_summaries_and_shapes_leave_statistics_as_they_are():
    model, x = normalized(CPU.autodiff())
    model.summary(x)
    burn.eval_shape(model, x)
    assert statistics(model)[0] == [0.0] * 4


def test_statistics_do_not_move_inside_of_vmap():
    model, x = normalized(CPU.autodiff())
    with pytest.raises(burn.AutodiffError, match=r"nn.BatchNorm1d: .*burn\.vmap.*eval\(\)"):
        burn.vmap(lambda item: model(item[None]))(x)
    assert statistics(model)[0] == [0.0] * 4
    model.eval()
    found = burn.vmap(lambda item: model(item[None])[0])(x)
    np.testing.assert_allclose(found.detach().numpy(), model(x).detach().numpy(), rtol=1e-6)


def test_statistics_stay_in_their_dtype_in_mixed_precision():
    model, x = normalized(CPU.autodiff())
    model.set_precision(nn.Precision(compute="bfloat16", output=None))
    assert model(x).dtype is burn.bfloat16
    assert model.eval()(x).dtype is burn.bfloat16
    assert model[1].running_mean.dtype is burn.float32
    np.testing.assert_allclose(statistics(model)[0], after_a_step()[0], rtol=0.02)


def test_a_batch_has_two_elements_of_each_channel():
    for options in {}, {"track_running_stats": False}:
        layer = nn.BatchNorm1d(3, **options, device=CPU.autodiff())
        with pytest.raises(burn.ShapeError, match="needs two at least"):
            layer(burn.ones((1, 3), device=CPU))
