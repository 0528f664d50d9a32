"""`burn.custom_vjp` and `burn.checkpoint`: values, gradients, random numbers, memory, refusals."""

import itertools
import threading
import tracemalloc

import numpy as np
import pytest
from test_transforms import assert_no_growth

import burn
from burn.nn import functional as F

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = burn.Device.enumerate()
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)

pytestmark = pytest.mark.usefixtures("no_transform_is_left")


def tensor(values, device=CPU, **options):
    return burn.asarray(values, device=device, **options)


def leaf(values, device=AUTODIFF):
    return tensor(values, device).require_grad()


def custom(function, forward, backward):
    made = burn.custom_vjp(function)
    made.defvjp(forward, backward)
    return made


# custom_vjp.

tripled = custom(lambda x: x * 2, lambda x: (x * 2, None), lambda _, g: (g * 3,))
"""Its gradient is wrong on purpose."""

square = custom(lambda x: x * x, lambda x: (x * x, x), lambda x, g: (g * x * 2,))
"""Its gradient is right, so derivatives of all orders are known."""


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_the_gradient_is_that_of_the_rule(device):
    x = tensor([1.0, 2.0], device)
    assert tripled(x).tolist() == [2.0, 4.0]
    assert burn.grad(lambda x: tripled(x).sum())(x).tolist() == [3.0, 3.0]
    x = leaf([1.0, 2.0], device.autodiff())
    assert x.grad((tripled(x) * x).sum().backward()).tolist() == [2.0 + 3.0, 4.0 + 6.0]
    assert not tripled(x.detach()).is_tracked
    with burn.no_grad():
        assert not tripled(x).is_tracked


def test_derivatives_of_second_order_differentiate_the_rules():
    assert burn.grad(burn.grad(square))(3.0).item() == 2.0
    assert burn.grad(burn.grad(burn.grad(lambda x: square(x) * x)))(3.0).item() == 6.0
    hessian = burn.hessian(lambda x: (square(x) * x).sum())(tensor([1.0, 2.0]))
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    # The derivative of 3 * x + (the forward rule, which is 2 * x).
    assert burn.grad(burn.grad(lambda x: tripled(x) * x))(1.0).item() == 3.0 + 2.0
    assert [item.item() for item in burn.jvp(square, (3.0,), (1.0,))] == [9.0, 6.0]
    weight = leaf([3.0])
    gradient = burn.grad(lambda x: (square(x) * square(weight)).sum())(tensor([2.0]))
    assert weight.grad(gradient.sum().backward()).tolist() == [4.0 * 6.0]


def test_batches_inside_and_outside():
    rows = tensor(ROWS)
    assert burn.vmap(square)(rows).tolist() == (ROWS * ROWS).tolist()
    inside = burn.vmap(burn.grad(lambda x: tripled(x).sum()))
    outside = burn.grad(lambda x: burn.vmap(tripled)(x).sum())
    assert inside(rows).tolist() == outside(rows).tolist() == [[3.0, 3.0]] * 3
    nested = burn.vmap(burn.grad(lambda x: burn.vmap(square)(x).sum()))
    assert nested(rows).tolist() == (2 * ROWS).tolist()
    hessians = burn.vmap(burn.hessian(lambda x: (square(x) * x).sum()))(rows)
    assert hessians.tolist() == [np.diag(6 * row).tolist() for row in ROWS]


def test_an_argument_that_examples_share_gets_the_sum_of_their_gradients():
    product = custom(
        lambda w, x: w * x, lambda w, x: (w * x, (w, x)), lambda kept, g: (g * kept[1], g * kept[0])
    )
    w, rows = tensor([3.0, 4.0]), tensor(ROWS)

    def loss(w, rows):
        return burn.vmap(lambda x: product(w, x).sum())(rows).sum()

    of_w, of_rows = burn.grad(loss, (0, 1))(w, rows)
    assert of_w.tolist() == ROWS.sum(0).tolist()
    assert of_rows.tolist() == [[3.0, 4.0]] * 3
    examples = burn.vmap(burn.grad(lambda w, x: product(w, x).sum(), (0, 1)), in_axes=(None, 0))(
        w, rows
    )
    assert examples[0].tolist() == ROWS.tolist()


def test_the_rule_sees_one_example():
    shapes = []

    def backward(x, gradient):
        shapes.append((x.shape, gradient.shape))
        return (gradient * x * 2,)

    rule = custom(lambda x: x * x, lambda x: (x * x, x), backward)
    burn.vmap(burn.grad(lambda x: rule(x).sum()))(tensor(ROWS))
    burn.grad(lambda x: burn.vmap(rule)(x).sum())(tensor(ROWS))
    assert shapes == [((2,), (2,))] * 2


def test_arguments_may_be_containers_and_anything_else():
    def function(tree, name, power=2):
        assert name == "n"
        return tree["a"] * tree["b"][0] ** power

    def forward(tree, name, power=2):
        return function(tree, name, power), (tree, power)

    def backward(kept, g):
        tree, power = kept
        b = tree["b"][0]
        return {"a": g * b**power, "b": [g * tree["a"] * power * b ** (power - 1)]}, None, None

    rule = custom(function, forward, backward)
    tree = {"a": tensor([1.0, 2.0]), "b": [tensor([3.0, 4.0])]}
    gradients = burn.grad(lambda tree: rule(tree, "n").sum())(tree)
    assert gradients["a"].tolist() == [9.0, 16.0]
    assert gradients["b"][0].tolist() == [6.0, 16.0]
    by_keyword = burn.grad(lambda tree: rule(power=3, name="n", tree=tree).sum())(tree)
    assert by_keyword["a"].tolist() == [27.0, 64.0]


def test_none_is_a_gradient_of_zero():
    rule = custom(lambda x, y: x * y, lambda x, y: (x * y, y), lambda y, g: (g * y, None))
    of_x, of_y = burn.grad(lambda x, y: rule(x, y).sum(), (0, 1))(tensor([1.0]), tensor([2.0]))
    assert (of_x.tolist(), of_y.tolist()) == ([2.0], [0.0])


def test_several_results_and_integers():
    received = []

    def function(x):
        return x * 2, {"sum": x.sum(), "index": x.argmax()}

    def backward(_, gradients):
        double, rest = gradients
        received.append((double.tolist(), rest["sum"].item(), rest["index"].item()))
        return (double * 2 + rest["sum"],)

    rule = custom(function, lambda x: (function(x), None), backward)
    x = leaf([1.0, 2.0])
    double, rest = rule(x)
    assert rest["index"].item() == 1
    assert x.grad((double * rest["index"]).sum().backward()).tolist() == [2.0, 2.0]
    assert received == [([1.0, 1.0], 0.0, 0)]
    _, rest = rule(x)
    assert x.grad((rest["sum"] * 5.0).backward()).tolist() == [5.0, 5.0]
    assert received[1] == ([0.0, 0.0], 5.0, 0)


def test_the_functions_may_compute_with_numpy():
    def on_host(x):
        return tensor(np.sin(x.numpy()))

    rule = custom(on_host, lambda x: (on_host(x), x), lambda x, g: (g * burn.cos(x),))
    gradient = burn.grad(lambda x: rule(x).sum())(tensor([0.0, 1.0]))
    np.testing.assert_allclose(gradient.numpy(), np.cos([0.0, 1.0]), rtol=1e-6)


def test_an_argument_may_be_returned_as_it_is():
    reversed_gradient = custom(lambda x: x, lambda x: (x, None), lambda _, g: (-g,))
    x = tensor([1.0, 2.0])
    assert burn.grad(lambda x: reversed_gradient(x).sum())(x).tolist() == [-1.0, -1.0]
    assert burn.vmap(burn.grad(reversed_gradient))(x).tolist() == [-1.0, -1.0]


def test_writes_inside_leave_the_arguments_alone():
    def write(x):
        x[0] = 9.0
        return x * 1

    rule = custom(write, lambda x: (write(x), None), lambda _, g: (g,))
    x = leaf([1.0, 2.0]) * 1
    assert rule(x).tolist() == [9.0, 2.0]
    assert x.tolist() == [1.0, 2.0]


def test_a_tracked_tensor_that_is_no_argument_is_an_error():
    weight = leaf([1.0, 2.0])
    in_function = custom(lambda x: x * weight, lambda x: (x * weight, None), lambda _, g: (g,))
    for x in (tensor([1.0, 2.0]), weight.detach(), leaf([1.0, 2.0])):
        with pytest.raises(burn.AutodiffError, match="tracked tensor that is no argument"):
            in_function(x)
    in_backward = custom(lambda x: x * 2, lambda x: (x * 2, None), lambda _, g: (g * weight,))
    with pytest.raises(burn.AutodiffError, match="backward function uses a tracked tensor"):
        in_backward(weight).sum().backward()

    def outer(x):
        rule = custom(lambda y: y * x, lambda y: (y * x, None), lambda _, g: (g,))
        return rule(x).sum()

    with pytest.raises(burn.AutodiffError, match="forward function uses a tracked tensor"):
        burn.grad(outer)(tensor([1.0, 2.0]))


WRONG = {
    "shape": (lambda _, g: (g.sum(),), burn.ShapeError, r"arguments\[0\] is float32\[\], and the"),
    "dtype": (lambda _, g: (g.astype("float64"),), burn.DTypeError, "is float64.2., and the arg"),
    "number": (lambda _, g: (g, g), burn.OperandTypeError, "a tuple of 2 for 1 arguments"),
    "no tuple": (lambda _, g: g, burn.OperandTypeError, "returns Tensor for 1 arguments"),
    "no tensor": (lambda _, g: (1.0,), burn.OperandTypeError, "is an object of type float"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_errors(name):
    backward, error, message = WRONG[name]

    def scaled(x):
        return x * 2

    rule = custom(scaled, lambda x: (x * 2, None), backward)
    for call in (
        lambda: burn.grad(lambda x: rule(x).sum())(tensor([1.0, 2.0])),
        lambda: rule(leaf([1.0, 2.0])).sum().backward(),
        lambda: burn.vmap(burn.grad(lambda x: rule(x).sum()))(tensor(ROWS)),
    ):
        with pytest.raises(error, match=message) as caught:
            call()
        assert "scaled" in str(caught.value)


def test_misuses_of_custom_vjp_are_errors():
    x = leaf([1.0, 2.0])
    with pytest.raises(burn.ArgumentError, match=r"has no gradient yet.*defvjp"):
        burn.custom_vjp(lambda x: x)(x)
    with pytest.raises(burn.OperandTypeError, match="takes a function"):
        burn.custom_vjp(3)
    with pytest.raises(burn.OperandTypeError, match="takes two functions"):
        burn.custom_vjp(lambda x: x).defvjp(lambda x: (x, None), None)
    no_pair = custom(lambda x: x * 2, lambda x: x * 2, lambda _, g: (g,))
    with pytest.raises(burn.OperandTypeError, match=r"returns Tensor\. It returns a pair"):
        no_pair(x)
    keyword_only = custom(lambda x, *, y: x, lambda x, *, y: (x, None), lambda _, g: (g,))
    with pytest.raises(burn.ArgumentError, match="keyword-only"):
        keyword_only(x, y=1)
    of_integer = custom(lambda x, n: x * n, lambda x, n: (x * n, n), lambda n, g: (g * n, g))
    with pytest.raises(burn.OperandTypeError, match=r"arguments\[1\], which is no tensor"):
        of_integer(x, 3).sum().backward()
    tree = custom(lambda t: t["a"], lambda t: (t["a"], None), lambda _, g: ({"b": g},))
    with pytest.raises(burn.OperandTypeError, match="a dict of 'b' where a dict of 'a'"):
        tree({"a": x}).sum().backward()


# checkpoint.


def block(x, weight):
    hidden = F.gelu(x @ weight)
    keep = burn.random.bernoulli(hidden.shape, 0.7, device=x.device).astype(x.dtype)
    return F.layer_norm(hidden * keep) + burn.random.normal(hidden.shape, device=x.device)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_values_gradients_and_generators_are_the_same_to_the_bit(device):
    def run(function):
        device.seed(7)
        x = leaf(np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4), device.autodiff())
        weight = leaf(np.cos(np.arange(16, dtype=np.float32)).reshape(4, 4), device.autodiff())
        y = function(function(x, weight), weight)
        gradients = (y * y).sum().backward()
        after = burn.random.uniform((2,), device=device)
        return [
            tensor.numpy()
            for tensor in (y.detach(), x.grad(gradients), weight.grad(gradients), after)
        ]

    for item, other in zip(run(block), run(burn.checkpoint(block)), strict=True):
        np.testing.assert_array_equal(item, other)


def test_the_function_runs_once_and_again_in_the_backward_pass():
    calls = []

    def function(x):
        calls.append(x.is_tracked)
        return burn.sin(x) * x

    x = leaf([1.0, 2.0])
    y = burn.checkpoint(function)(x)
    assert len(calls) == 1
    y.sum().backward()
    assert calls == [False, True]
    burn.checkpoint(function)(x.detach())
    with burn.no_grad():
        assert not burn.checkpoint(function)(x).is_tracked
    assert len(calls) == 4


def same_gradients(function, *arguments):
    """Gradients of a function and of it as a region, of first and second order."""

    def total(function):
        def loss(*arguments):
            results = function(*arguments)
            floats = [leaf for leaf in burn.tree.leaves(results) if leaf.dtype.is_float]
            return sum((burn.sin(number) * number).sum() for number in floats)

        return loss

    region = burn.checkpoint(function)
    for transform in (burn.grad, burn.hessian):
        expected = transform(total(function))(*arguments)
        found = transform(total(region))(*arguments)
        for tensor, other in zip(burn.tree.leaves(found), burn.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-6, atol=1e-6)


def write(x):
    x[0] = 3.0
    return x * x


FUNCTIONS = {
    "several results": lambda x: (burn.sin(x), {"a": burn.exp(x), "b": [x.sum(), None]}),
    "integers": lambda x: (x * x.argmax(), x.argmax()),
    "an argument": lambda x: (x, x * x),
    "the same twice": lambda x: [x * x] * 2,
    "a constant": lambda x: (burn.ones(2, device=CPU), x * x),
    "nested": lambda x: burn.checkpoint(lambda x: burn.checkpoint(burn.exp)(x) * x)(burn.sin(x)),
    "writes": write,
    "views": lambda x: (x[:1], x[::-1], x[1]),
    "a gradient": burn.grad(lambda x: (x**3).sum()),
    "a Hessian": burn.hessian(lambda x: (x**3).sum()),
    "a jvp": lambda x: burn.jvp(burn.sin, (x,), (x * x,)),
    "a pullback": lambda x: burn.vjp(burn.sin, x)[1](x * x),
    "a batch": burn.vmap(lambda x: burn.exp(x) * x),
    "a batch of gradients": burn.vmap(burn.grad(lambda x: x**3)),
    "a rule": lambda x: square(x) * x,
    "two devices": lambda x: burn.exp(x.to_device("torch/cpu") * 2).to_device("cpu") * x,
    "no_grad": lambda x: x * burn.no_grad()(lambda x: x * x)(x),
    "detach": lambda x: x * x.detach(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_the_function(name):
    same_gradients(FUNCTIONS[name], tensor([0.5, 1.5]))


def test_containers_and_keywords_are_arguments():
    def function(tree, *, scale):
        return tree["a"] * tree["b"][0] * scale

    tree = {"a": leaf([1.0, 2.0]), "b": [leaf([3.0, 4.0])]}
    y = burn.checkpoint(function)(tree, scale=leaf([2.0]))
    gradients = y.sum().backward()
    assert tree["a"].grad(gradients).tolist() == [6.0, 8.0]
    assert tree["b"][0].grad(gradients).tolist() == [2.0, 4.0]


def test_tensors_from_elsewhere_get_their_gradients():
    weight, x = leaf([3.0, 4.0]), tensor([1.0, 2.0])
    made = weight * 2
    y, returned = burn.checkpoint(lambda x: (burn.sin(x) * made * weight, weight))(x)
    gradients = (y.sum() + returned.sum()).backward()
    expected = np.sin([1.0, 2.0]) * 4 * np.array([3.0, 4.0]) + 1
    np.testing.assert_allclose(weight.grad(gradients).numpy(), expected, rtol=1e-6)
    gradient = burn.grad(lambda x: burn.checkpoint(lambda x: (x * x * weight).sum())(x))(x)
    assert weight.grad(gradient.sum().backward()).tolist() == [2.0, 4.0]


def test_results_on_another_device_are_tracked():
    x = leaf([1.0, 2.0])
    torch_device = burn.Device("torch/cpu").autodiff()
    here, there = burn.checkpoint(lambda x: (x * x, burn.exp(x.to_device(torch_device))))(x)
    assert there.is_tracked
    gradients = (here.sum() + there.sum().to_device(AUTODIFF)).backward()
    expected = 2 * np.array([1.0, 2.0]) + np.exp([1.0, 2.0])
    np.testing.assert_allclose(x.grad(gradients).numpy(), expected, rtol=1e-6)


def test_the_graph_may_be_retained():
    x = leaf([1.0, 2.0])
    y = burn.checkpoint(lambda x: burn.exp(burn.sin(x)))(x).sum()
    first, second = (x.grad(y.backward(retain_graph=True)).tolist() for _ in range(2))
    assert first == second == x.grad(y.backward()).tolist()
    with pytest.raises(burn.AutodiffError, match="freed"):
        y.backward()


def test_hooks_of_what_a_region_uses_run_once():
    seen = []

    def doubled(gradient):
        seen.append(gradient.tolist())
        return gradient * 2

    x = leaf([1.0, 2.0])
    hidden = x * 1
    for item in (x, hidden):
        item.register_hook(doubled)
    y = burn.checkpoint(lambda x: x * x + x * hidden)(x)
    found = x.grad(y.sum().backward())
    # 2 * (2 * x + hidden) directly, and 2 * 2 * x by way of hidden.
    assert found.tolist() == [2 * 3.0 + 4 * 1.0, 2 * 6.0 + 4 * 2.0]
    assert seen == [[1.0, 2.0], [5.0, 10.0]]


def test_the_arguments_may_be_written_to_after_the_call():
    x = leaf([1.0, 2.0])
    hidden = x * 1
    y = burn.checkpoint(burn.sin)(hidden)
    hidden[:] = 0.0
    np.testing.assert_allclose(x.grad(y.sum().backward()).numpy(), np.cos([1.0, 2.0]), rtol=1e-6)


def test_batches_of_regions_and_regions_of_batches():
    rows = tensor(ROWS)
    region = burn.checkpoint(lambda x: (burn.sin(x) * x).sum())
    expected = np.cos(ROWS) * ROWS + np.sin(ROWS)
    for gradients in (
        burn.vmap(burn.grad(region))(rows),
        burn.grad(lambda x: burn.vmap(region)(x).sum())(rows),
        burn.grad(lambda x: burn.checkpoint(burn.vmap(region))(x).sum())(rows),
    ):
        np.testing.assert_allclose(gradients.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_two_threads_may_run_a_region_of_a_batch_again_at_once():
    calls, kept = itertools.count(), []
    first_runs, second_runs, first_is_done = (threading.Event() for _ in range(3))

    def function(x):
        kept.append(x)
        number = next(calls)
        if number == 1:
            first_runs.set()
            second_runs.wait(10)
        if number == 2:
            second_runs.set()
            first_is_done.wait(10)
        return (x * x).sum()

    x = leaf(ROWS)
    y = burn.vmap(burn.checkpoint(function))(x).sum()
    found = []

    def work():
        found.append(x.grad(y.backward(retain_graph=True)).tolist())
        first_is_done.set()

    threads = [threading.Thread(target=work) for _ in range(2)]
    threads[0].start()
    first_runs.wait(10)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert found == [(2 * ROWS).tolist()] * 2
    for item in kept:
        with pytest.raises(burn.ArgumentError, match="was kept from a call"):
            item * 2


def test_draws_in_a_batch_are_those_of_a_loop():
    def function(x):
        return (x * x * burn.random.uniform(x.shape, device=CPU)).sum()

    rows = tensor(ROWS)
    region = burn.checkpoint(function)
    CPU.seed(3)
    loop = [burn.grad(function)(row).tolist() for row in rows]
    CPU.seed(3)
    assert burn.vmap(burn.grad(region))(rows).tolist() == loop
    CPU.seed(3)
    outside = burn.grad(lambda x: burn.vmap(region)(x).sum())(rows)
    np.testing.assert_allclose(outside.numpy(), loop, rtol=1e-6)


def test_a_region_takes_less_memory():
    def network(x):
        for _ in range(8):
            x = burn.tanh(x * 1.1)
        return x

    def peak(function):
        x = leaf(np.ones(100_000, np.float32))  # 400 kB
        tracemalloc.start()
        try:
            y = x
            for _ in range(4):
                y = function(y)
            y.sum().backward()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    whole, regions = peak(network), peak(burn.checkpoint(network))
    assert whole > 4 * 8 * 400_000
    assert regions < (4 + 2 * 8 + 4) * 400_000


def test_functions_that_change_are_errors():
    x, weight = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    changes = []

    def other_tensors(x):
        return x * (weight if changes else 2)

    def more_results(x):
        return [x * 2] * (2 if changes else 1)

    def other_shape(x):
        return [x * 2 if changes else x.sum()]

    def more_draws(x):
        for _ in range(2 if changes else 1):
            x = x * burn.random.uniform((2,), device=CPU)
        return x

    for function, message in (
        (other_tensors, "used other tracked tensors when it ran again"),
        (more_results, r"returned float32\[2\], float32\[2\] when it ran again"),
        (other_shape, r"at first float32\[\]"),
        (more_draws, "draws more random numbers when it runs again"),
    ):
        changes.clear()
        result = burn.tree.leaves(burn.checkpoint(function)(x))[0].sum()
        changes.append(True)
        with pytest.raises(burn.AutodiffError, match=message):
            result.backward()


def test_misuses_of_checkpoint_are_errors():
    x = leaf([1.0, 2.0])
    with pytest.raises(burn.OperandTypeError, match="takes a function"):
        burn.checkpoint(x)
    with pytest.raises(burn.OperandTypeError, match="result is an object of type float"):
        burn.checkpoint(lambda x: 1.0)(x)
    with pytest.raises(burn.ArgumentError, match="cannot seed the generator"):
        burn.checkpoint(lambda x: [CPU.seed(3), x * 2][1])(x)
    outside = x * 1

    def write_outside(x):
        outside[0] = x[0]
        return x * 1

    with pytest.raises(burn.AutodiffError, match=r"from outside inside of burn\.checkpoint"):
        burn.checkpoint(write_outside)(x)
    assert outside.tolist() == [1.0, 2.0]


def in_region(x):
    return burn.grad(lambda x: burn.checkpoint(lambda x: burn.sin(x) * x)(x))(x)


def with_rule(x):
    return burn.grad(burn.grad(lambda x: square(x) * x))(x)


def in_batch(x):
    return burn.vmap(burn.grad(lambda y: burn.sin(y) * x))(burn.stack([x, x]))


@pytest.mark.parametrize(
    "function",
    [
        with_rule,
        *[pytest.param(item, marks=pytest.mark.exhaustive) for item in (in_region, in_batch)],
    ],
    ids=lambda item: item.__name__,
)
def test_many_steps_leave_nothing_behind(function, many):
    x = tensor(0.5)
    assert_no_growth(lambda: function(x), many)


def test_many_steps_with_regions_leave_nothing_behind(many):
    region = burn.checkpoint(lambda x: burn.sin(x) * x)
    x = leaf([0.5])

    def step():
        x.grad(region(x).sum().backward())

    assert_no_growth(step, many)


@pytest.mark.parametrize("change", ["write", "add", "replace", "derive", "loop"])
def test_a_region_that_meets_other_tracked_tensors_again_is_an_error(change):
    w = burn.asarray([1.0, 2.0], device=burn.Device("cpu").autodiff()).require_grad()
    k = w * 3
    y = burn.checkpoint(lambda t: t * k)(w * 1.0)
    if change == "write":
        k[0] = 50.0
    elif change == "add":
        k += 1
    elif change == "replace":
        k = burn.exp(w)
    elif change == "derive":
        k = k * 2
    else:
        for k in (w * 2, w * 3):
            y = burn.checkpoint(lambda t: t * k)(y)  # noqa: B023 — the mistake that is tested
    with pytest.raises(burn.AutodiffError, match="other tracked tensors when it ran again"):
        y.sum().backward()
