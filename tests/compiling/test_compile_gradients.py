"""Compiled functions whose results are differentiated, and those that take gradients inside."""

import gc
import weakref

import numpy as np
import pytest

import burn
from burn import nn
from burn.nn import functional as F

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
CHECKPOINTING = AUTODIFF.gradient_checkpointing()
DEVICES = ["cpu", "torch/cpu", "opencl"]

pytestmark = pytest.mark.usefixtures("no_transform_is_left")


def leaf(*values, device=AUTODIFF):
    return burn.asarray(values, device=device).require_grad()


def data(*shape, seed=0, device=CPU, dtype="float32"):
    values = np.random.default_rng(seed).normal(size=shape)
    return burn.asarray(values, device=device, dtype=dtype)


def mixed(x, w):
    """Products, reductions, a tensor that is used twice, and indices among the results."""
    y = burn.tanh(x @ w)
    return (y * y).sum(axis=0), y.max() * burn.exp(-y).mean(), burn.argmax(y, axis=1)


def gradients_of(function, x, w):
    first, second, indices = function(x, w)
    assert first.is_tracked
    assert second.is_tracked
    assert not indices.is_tracked
    found = ((first * first).sum() + second).backward()
    return [tensor.tolist() for tensor in (first, second, indices, found[x], found[w])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("checkpoints", [False, True])
def test_results_are_differentiated_by_what_is_passed(device, checkpoints):
    on = burn.Device(device).autodiff()
    on = on.gradient_checkpointing() if checkpoints else on
    x, w = data(4, 3, device=on).require_grad(), data(3, 2, device=on, seed=1).require_grad()
    step = burn.compile(mixed)
    for _ in range(3):
        found, expected = gradients_of(step, x, w), gradients_of(mixed, x, w)
        for item, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(item, other, 1e-5, 1e-6)
    assert step.programs == 1


def test_one_result_of_several_is_differentiated():
    x, w = data(4, 3, device=AUTODIFF).require_grad(), data(3, 2, seed=1)
    for index in (0, 1):
        found = burn.compile(mixed)(x, w)[index].sum().backward()
        expected = mixed(x, w)[index].sum().backward()
        np.testing.assert_allclose(found[x].tolist(), expected[x].tolist(), 1e-5, 1e-6)


def test_what_is_from_outside_gets_gradients():
    weight, unused = leaf(2.0, 3.0), leaf(1.0)
    step = burn.compile(lambda x: (burn.sin(weight) * x).sum())
    x = burn.asarray([1.0, 4.0], device=CPU)
    for _ in range(2):
        found = step(x).backward()
        assert list(found) == [weight]
        assert unused not in found
        np.testing.assert_allclose(
            found[weight].tolist(), (burn.cos(weight.detach()) * x).tolist(), 1e-6
        )
        weight.assign(weight.detach() + 1.0)
    assert step.programs == 1


def test_a_compiled_model_trains_with_an_eager_optimizer():
    def losses(compiles):
        CPU.seed(1)
        net = nn.Sequential(
            nn.Linear(4, 8, bias=False, device=AUTODIFF),  # the mean has any
            nn.BatchNorm1d(8, device=AUTODIFF),
            nn.Dropout(0.25),
            nn.Linear(8, 1, device=AUTODIFF),
        )
        optimizer = burn.optim.Adam(net, learning_rate=0.05)
        model = burn.compile(net) if compiles else net
        x, y = data(16, 4), data(16, 1, seed=1)
        found = []
        for _ in range(6):
            loss = F.mse_loss(model(x), y)
            optimizer.step(loss.backward())
            found.append(loss.item())
        return found, net.state_dict()["1.running_mean"].tolist()

    for item, other in zip(losses(True), losses(False), strict=True):
        np.testing.assert_allclose(item, other, 1e-4)


def test_what_was_computed_outside_goes_on():
    x = leaf(0.5, 1.5)
    first, second = burn.compile(lambda x: burn.sin(x * 2.0)), burn.compile(lambda y: y * y + 1.0)
    for _ in range(2):
        found = second(burn.exp(first(x))).sum().backward()[x]
        expected = (burn.exp(burn.sin(x * 2.0)) ** 2).sum().backward()[x]
        np.testing.assert_allclose(found.tolist(), expected.tolist(), 1e-5)
    closed = x * 3.0
    third = burn.compile(lambda: closed * closed)
    assert third().sum().backward(retain_graph=True)[x].tolist() == [9.0, 27.0]
    assert third().sum().backward(retain_graph=True)[x].tolist() == [9.0, 27.0]


def test_backward_inside_of_what_was_computed_outside_is_refused():
    x = leaf(1.0, 2.0)
    step = burn.compile(lambda y: len((y * y).sum().backward()))
    with pytest.raises(burn.TraceError, match="computed from leaves"):
        step(x * 2.0)


def test_a_graph_is_freed_as_that_of_ops():
    x = leaf(1.0, 2.0)
    step = burn.compile(lambda x: (x * x).sum())
    loss = step(x)
    assert loss.backward(retain_graph=True)[x].tolist() == [2.0, 4.0]
    assert loss.backward()[x].tolist() == [2.0, 4.0]
    with pytest.raises(burn.AutodiffError, match="freed by an earlier backward pass"):
        loss.backward()


def test_saved_tensors_go_with_the_graph():
    x = leaf(1.0, 2.0)
    step = burn.compile(lambda x: burn.exp(x) * 2.0)
    y = step(x)
    kept = weakref.ref(y)
    y.sum().backward()
    del y
    gc.collect()
    assert kept() is None


def test_inputs_that_are_rebound_keep_their_values_for_the_gradient():
    x, scale = leaf(1.0, 2.0), burn.asarray([3.0, 5.0], device=CPU)

    def function(x):
        y = x * scale
        scale[...] = scale + 1.0
        return y

    step = burn.compile(function)
    first, second = step(x), step(x)
    assert first.sum().backward()[x].tolist() == [3.0, 5.0]
    assert second.sum().backward()[x].tolist() == [4.0, 6.0]
    assert scale.tolist() == [5.0, 7.0]


def test_random_numbers_of_the_backward_pass_are_those_of_the_call():
    x = leaf(1.0, 2.0, 3.0, 4.0)

    def function(x):
        return F.dropout(x, 0.5) * x

    step = burn.compile(function)
    for seed in range(3):
        CPU.seed(seed)
        found = step(x).sum().backward()[x].tolist()
        CPU.seed(seed)
        assert found == function(x).sum().backward()[x].tolist()
    assert step.programs == 1


def test_hooks_of_leaves_run_once():
    x = leaf(1.0, 2.0)
    seen = []
    handle = x.register_hook(lambda gradient: (seen.append(None), gradient * 10.0)[1])
    step = burn.compile(lambda x: (x * x).sum())
    assert step(x).backward()[x].tolist() == [20.0, 40.0]
    assert len(seen) == 1
    handle.remove()
    assert step(x).backward()[x].tolist() == [2.0, 4.0]


def test_hooks_are_part_of_a_program_that_takes_gradients():
    x = leaf(1.0, 2.0)
    step = burn.compile(lambda: (x * x).sum().backward()[x])
    assert step().tolist() == [2.0, 4.0]
    handle = x.register_hook(lambda gradient: gradient * 10.0)
    assert step().tolist() == [20.0, 40.0]
    handle.remove()
    assert step().tolist() == [2.0, 4.0]


def test_gradients_inside():
    net = nn.Linear(3, 1, device=AUTODIFF)
    x, y = data(5, 3), data(5, 1, seed=1)

    def loss_of(net):
        return F.mse_loss(net(x), y)

    def by_backward():
        loss = loss_of(net)
        found = loss.backward()
        return loss.detach(), found[net.weight], found[net.bias]

    for function in (by_backward, lambda: burn.value_and_grad(loss_of)(net)[0]):
        step = burn.compile(function)
        for _ in range(2):
            for tensor, other in zip(
                burn.tree.leaves(step()), burn.tree.leaves(function()), strict=True
            ):
                np.testing.assert_allclose(tensor.tolist(), other.tolist(), 1e-5, 1e-6)
                assert tensor.is_tracked == other.is_tracked


def test_a_function_makes_leaves():
    step = burn.compile(lambda x: (x * 2.0).require_grad())
    for _ in range(2):
        y = step(burn.asarray([1.0, 2.0], device=AUTODIFF))
        assert y.is_require_grad
        assert (y * y).sum().backward()[y].tolist() == [4.0, 8.0]


def test_a_result_that_is_consumed_inside_is_not_tracked():
    x = leaf(1.0, 2.0)

    def function():
        loss = (x * x).sum()
        gradient = loss.backward()[x]
        return loss, gradient

    loss, gradient = burn.compile(function)()
    assert not loss.is_tracked
    assert gradient.tolist() == [2.0, 4.0]


def test_results_under_a_transform_are_those_of_the_function():
    x, w = data(4, 3), data(3, 2, seed=1)
    step = burn.compile(lambda x, w: (burn.tanh(x @ w) ** 3).sum())
    plain = step.__wrapped__
    step(x, w)
    for transformed in (
        lambda f: burn.grad(f, argnums=(0, 1))(x, w),
        lambda f: burn.jvp(f, (x, w), (x, w)),
        lambda f: burn.grad(lambda x: burn.grad(f)(x, w).sum())(x),
        lambda f: burn.vmap(burn.grad(f), in_axes=(0, None))(burn.stack([x, x * 2.0]), w),
    ):
        for tensor, other in zip(
            burn.tree.leaves(transformed(step)), burn.tree.leaves(transformed(plain)), strict=True
        ):
            assert tensor.tolist() == other.tolist()


def test_many_backward_passes_leave_nothing_behind():
    x = leaf(1.0, 2.0)
    step = burn.compile(lambda x: (burn.exp(x) * x).sum())
    for _ in range(50):
        step(x).backward()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        step(x).backward()
    gc.collect()
    assert len(gc.get_objects()) <= before + 10
