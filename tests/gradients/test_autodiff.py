"""Gradients through the public namespace: leaves, graphs, what is freed and what is refused."""

import gc
import threading
import weakref

import numpy as np
import pytest

import burn
from burn.functions.common import dispatch
from burn.nn import functional as F

CPU = burn.Device("cpu")
TRACKED = CPU.autodiff()


def leaf(values, **options):
    return burn.asarray(values, device=TRACKED, **options).require_grad()


def test_a_gradient_is_a_tensor_of_the_inner_device():
    x = leaf([1.0, 2.0])
    gradients = (x * x).sum().backward()
    gradient = x.grad(gradients)
    assert gradient.tolist() == [2.0, 4.0]
    assert gradient.device is CPU
    assert gradient.dtype is x.dtype


def test_require_grad_gives_a_new_leaf_and_leaves_its_tensor_alone():
    x = burn.asarray([1.0], device=TRACKED)
    y = x.require_grad()
    assert y is not x
    assert y.is_require_grad
    assert not x.is_require_grad
    assert y.require_grad().is_require_grad


def test_only_a_float_leaf_on_an_autodiff_device_can_require_a_gradient():
    x = leaf([1.0])
    with pytest.raises(burn.AutodiffError, match="computed from"):
        (x * 2).require_grad()
    with pytest.raises(burn.OperandTypeError, match="does not track"):
        burn.asarray([1.0], device=CPU).require_grad()
    with pytest.raises(burn.DTypeError, match="only float"):
        burn.asarray([1], device=TRACKED).require_grad()


def test_a_tensor_used_twice_adds_up_its_gradients():
    x = leaf([3.0])
    y = x * x
    assert x.grad((y + y * x + x).sum().backward()).tolist() == [2 * 3 + 3 * 9 + 1]


def test_broadcast_operands_get_gradients_of_their_own_shape():
    a, b = leaf(np.ones((2, 1, 3), "float32")), leaf(np.ones((4, 1), "float32"))
    gradients = (a * b).sum().backward()
    assert a.grad(gradients).shape == (2, 1, 3)
    assert b.grad(gradients).shape == (4, 1)
    assert a.grad(gradients).tolist() == np.full((2, 1, 3), 4.0).tolist()


def test_an_untracked_tensor_is_a_constant_wherever_it_lives():
    x = leaf([1.0, 2.0])
    for constant in (
        burn.asarray([3.0, 4.0], device=CPU),
        burn.asarray([3.0, 4.0], device=TRACKED),
    ):
        y = x * constant
        assert y.device is TRACKED
        assert y.is_tracked
        assert (constant * x).is_tracked
        assert x.grad(y.sum().backward()).tolist() == [3.0, 4.0]


def test_a_leaf_that_the_output_ignores_has_no_gradient():
    x, y = leaf([1.0]), leaf([1.0])
    gradients = (x * 2).sum().backward()
    assert y.grad(gradients) is None


def test_gradients_are_read_removed_and_replaced():
    x = leaf([1.0, 2.0])
    gradients = x.sum().backward()
    x.grad_replace(gradients, burn.asarray([5.0, 6.0], device=CPU))
    assert x.grad(gradients).tolist() == [5.0, 6.0]
    assert x.grad_remove(gradients).tolist() == [5.0, 6.0]
    assert x.grad(gradients) is None
    with pytest.raises(burn.ShapeError, match="gradient of shape"):
        x.grad_replace(gradients, burn.asarray([5.0], device=CPU))
    for dtype in ("float64", "bfloat16", "int32"):
        with pytest.raises(burn.DTypeError, match="for a tensor of float32"):
            x.grad_replace(gradients, burn.asarray([5, 6], device=CPU, dtype=dtype))
    with pytest.raises(burn.AutodiffError, match="a gradient is tracked"):
        x.grad_replace(gradients, x * 2)
    with pytest.raises(burn.AutodiffError, match="a cotangent is tracked"):
        (x * 2).backward(x)
    with pytest.raises(burn.AutodiffError, match="no leaf"):
        (x * 2).grad(gradients)


def test_an_output_of_several_elements_needs_a_cotangent():
    x = leaf([1.0, 2.0])
    with pytest.raises(burn.ShapeError, match="cotangent"):
        (x * x).backward()
    gradients = (x * x).backward(burn.asarray([10.0, 1.0], device=CPU))
    assert x.grad(gradients).tolist() == [20.0, 4.0]
    with pytest.raises(burn.ShapeError, match="cotangent of shape"):
        (x * x).backward(burn.asarray([10.0], device=CPU))


def test_backward_needs_a_tracked_tensor_and_frees_the_graph():
    x = leaf([2.0])
    with pytest.raises(burn.AutodiffError, match="depends on no leaf"):
        burn.asarray([1.0], device=TRACKED).backward()
    with pytest.raises(burn.OperandTypeError, match="does not track"):
        burn.asarray([1.0], device=CPU).backward()
    shared = x * x
    first, second = shared.sum(), (shared * 2).sum()
    first.backward()
    with pytest.raises(burn.AutodiffError, match="freed"):
        first.backward()
    with pytest.raises(burn.AutodiffError, match="freed"):
        second.backward()


def test_backward_of_a_leaf_is_one():
    x = leaf([2.0])
    assert x.grad(x.backward()).tolist() == [1.0]


def test_no_grad_leaves_no_trace_and_ends():
    x = leaf([1.0])
    with burn.no_grad():
        assert not (x * 2).is_tracked
        with burn.no_grad():
            pass
        assert not F.softmax(x).is_tracked
        assert x.is_require_grad
    assert (x * 2).is_tracked

    @burn.no_grad()
    def scaled(n):
        return scaled(n - 1) if n else x * 3

    assert not scaled(3).is_tracked
    assert (x * 2).is_tracked


def test_no_grad_is_of_one_thread():
    x = leaf([1.0])
    seen = []
    with burn.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).is_tracked))
        thread.start()
        thread.join()
    assert seen == [True]


def test_integers_and_booleans_carry_no_gradient():
    x = leaf([1.0, -2.0])
    assert not (x > 0).is_tracked
    assert not x.argmax().is_tracked
    assert not x.astype("int32").is_tracked
    y = burn.where(x > 0, x, 0.0)
    assert x.grad(y.sum().backward()).tolist() == [1.0, 0.0]


def test_what_where_does_not_choose_has_no_influence_on_gradients():
    x = leaf([0.0, 4.0])
    y = burn.where(x > 0, burn.sqrt(x), 0.0)
    gradient = x.grad(y.sum().backward()).tolist()
    assert np.isfinite(gradient[1])
    assert gradient[1] == 0.25


def test_a_cast_brings_the_gradient_back_to_the_dtype_of_its_operand():
    x = leaf([1.5], dtype="float16")
    y = x.astype("float64") * 2
    gradient = x.grad(y.sum().backward())
    assert gradient.dtype is burn.float16
    assert gradient.tolist() == [2.0]


def test_assignment_rebinds_a_tensor_and_keeps_the_graph_of_others():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y
    saved = y * y
    y += 1
    assert z is y
    assert z.tolist() == [3.0, 5.0]
    y[0] = 10.0
    assert saved.tolist() == [4.0, 16.0]
    assert x.grad((y + saved).sum().backward()).tolist() == [8.0, 18.0]
    with pytest.raises(burn.AutodiffError, match="cannot write to a leaf"):
        x += 1
    with pytest.raises(burn.AutodiffError, match="cannot write to a leaf"):
        x[0] = 1.0


def test_leaving_the_graph_is_said_out_loud():
    x = leaf([1.0])
    y = x * 2
    assert not y.detach().is_tracked
    assert y.detach().device is TRACKED
    assert y.inner().device is CPU
    for call in (y.numpy, lambda: y.to_device("cpu")):
        with pytest.raises(burn.AutodiffError, match=r"\.inner\(\)"):
            call()
    assert burn.Tensor.from_inner(y.inner()).device is TRACKED


def test_a_graph_is_freed_with_its_tensors_without_the_collector():
    class Marked(np.ndarray):
        """An array that can be watched."""

    array = np.ones(4).view(Marked)
    watched = weakref.ref(array)
    gc.disable()
    try:
        x = burn.Tensor.from_inner(dispatch.wrap(array, CPU.tensor_type(burn.float64)))
        del array
        y = x.require_grad() * 2
        y = y * y + burn.exp(y)
        assert watched() is not None
        del x, y
        assert watched() is None
    finally:
        gc.enable()


def test_a_deep_graph_needs_no_recursion():
    x = leaf([1.0])
    y = x
    for _ in range(100_000):
        y = y + 1
    assert x.grad(y.sum().backward()).tolist() == [1.0]
    y = x
    for _ in range(100_000):
        y = y + 1
    del y


def test_backward_runs_from_any_thread():
    results = []

    def work(number):
        x = leaf([float(number)])
        results.extend(
            x.grad((x * x).sum().backward()).tolist() == [2.0 * number] for _ in range(50)
        )

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 400
    assert all(results)


def test_a_step_of_an_optimizer_can_be_differentiated():
    x = leaf([1.0], dtype="float64")
    rate = leaf([0.5], dtype="float64")
    zero = burn.zeros_like(x.inner())
    moved, _ = burn.optim.sgd_step(x, rate * x, zero, learning_rate=0.1)
    gradients = (moved * moved).sum().backward()
    # moved = x - 0.1 r x, so d(moved**2)/dr = -0.2 x moved
    assert rate.grad(gradients).tolist() == pytest.approx([-0.2 * 0.95])


def test_distributed_parameters_are_marked_on_leaves():
    x = leaf([1.0])
    assert not dispatch.is_distributed(x)
    dispatch.set_distributed_params(x, 7)
    assert dispatch.is_distributed(x)
    assert dispatch.distributed_params(x).param_id == 7
