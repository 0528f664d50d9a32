"""`burn.vmap`: every public function gives what a loop gives; draws, axes, writes and refusals."""

import copy

import numpy as np
import pytest
from test_tracking import FUNCTIONS, OF_TENSORS, TRIED, calls_of, flat, is_float, mapped

import burn
from burn.devices import transforms
from burn.ops import REGISTRY, FloatOperand, Meta, op
from burn.tensor_data import TensorData

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)

pytestmark = pytest.mark.usefixtures("no_transform_is_left")


def tensor(values, device=CPU, **options):
    return burn.asarray(values, device=device, **options)


def batch_of(array):
    """Three examples that differ, of which the first is the array."""
    return np.stack([array, array * np.float32(0.9), array * np.float32(0.8)])


REFUSED = {
    "allclose": "value for each example",
    "argwhere": "depends on its values",
    "from_dlpack": "value for each example",
    "nonzero": "depends on its values",
    "unique": "depends on its values",
    **{
        f"unique_{name}": "depends on its values"
        for name in ("all", "consecutive", "counts", "inverse", "values")
    },
}
"""Functions whose results depend on values in Python, or in their shape."""

READS_VALUES = {"signal.istft": "window"}
"""Operands whose values a function reads, to check them."""

CALLS = {
    **{
        name: [(FUNCTIONS[name], *call) for call in calls_of(name, READS_VALUES.get(name))]
        for name in TRIED
    },
    **{name: [(function, *arguments)] for name, (function, arguments) in OF_TENSORS.items()},
}


def choices(arguments, keywords):
    """Which of the float arrays are batched: all, and where there are several, each one alone."""
    floats = []
    mapped([arguments, keywords], lambda array: floats.append(array) if is_float(array) else None)
    alone = [{number} for number in range(len(floats))] if len(floats) > 1 else []
    return [set(range(len(floats))), *alone] if floats else []


def split(function, arguments, keywords, batched):
    """A function of the arrays at these numbers, and the batches of them."""
    batches = []
    seen = iter(range(1000))

    def collect(array):
        if is_float(array) and next(seen) in batched:
            batches.append(tensor(batch_of(array)))
            return batches[-1]
        return tensor(array)

    tree = mapped([arguments, keywords], collect)

    def call(*examples):
        by_id = dict(zip(map(id, batches), examples, strict=True))
        args, kwargs = replaced(tree, by_id)
        return flat(function(*args, **kwargs))

    return call, batches


def replaced(tree, by_id):
    if isinstance(tree, dict):
        return {key: replaced(part, by_id) for key, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(replaced(part, by_id) for part in tree)
    return by_id.get(id(tree), tree)


@pytest.mark.together("name", sorted(CALLS))
def test_a_public_function_gives_what_a_loop_gives(name):
    for function, arguments, keywords in CALLS[name]:
        for chosen in choices(arguments, keywords):
            call, batches = split(function, arguments, keywords, chosen)
            if name in REFUSED:
                with pytest.raises(burn.BurnError, match=REFUSED[name]):
                    burn.vmap(call)(*batches)
                continue
            CPU.seed(5)
            results = burn.vmap(call)(*batches)
            CPU.seed(5)
            loop = [call(*[batch[index] for batch in batches]) for index in range(3)]
            for result, *examples in zip(results, *loop, strict=True):
                expected = np.stack([example.numpy() for example in examples])
                assert result.dtype is examples[0].dtype
                np.testing.assert_allclose(result.numpy(), expected, rtol=2e-5, atol=2e-6)


GRADIENTS = ["F.attention", "F.conv2d", "F.cross_entropy", "F.layer_norm", "F.max_pool2d", "sort"]
GRADIENTS += ["linalg.cholesky", "linalg.solve", "take", "where", "cumulative_prod", "signal.rfft"]


@pytest.mark.parametrize("name", [item.replace("F.", "nn.functional.") for item in GRADIENTS])
def test_gradients_inside_and_outside_are_those_of_a_loop(name):
    for function, arguments, keywords in CALLS[name]:
        for chosen in choices(arguments, keywords)[:1]:
            call, batches = split(function, arguments, keywords, chosen)

            def loss(*examples, call=call):
                floats = [tensor for tensor in call(*examples) if tensor.dtype.is_float]
                return sum((number * number).sum() for number in floats)

            def total(*batches, loss=loss):
                return burn.vmap(loss)(*batches).sum()

            everything = tuple(range(len(batches)))
            inside = burn.vmap(burn.grad(loss, everything))(*batches)
            outside = burn.grad(total, everything)(*batches)
            for index in range(3):
                expected = burn.grad(loss, everything)(*[batch[index] for batch in batches])
                for item, other, third in zip(inside, outside, expected, strict=True):
                    for found in (item, other):
                        np.testing.assert_allclose(
                            found[index].numpy(), third.numpy(), rtol=1e-4, atol=1e-5
                        )


# Axes.


def scaled(x, y):
    return x * 2 + y


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_batch_axes_of_arguments_and_results_are_where_they_are_said_to_be(axis):
    values = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    mapped_over = burn.vmap(lambda x: burn.permute_dims(x, (1, 0)) * 2, in_axes=axis, out_axes=axis)
    examples = [item.T * 2 for item in np.moveaxis(values, axis, 0)]
    np.testing.assert_array_equal(mapped_over(tensor(values)).numpy(), np.stack(examples, axis))


def test_axes_of_arguments_are_a_number_or_a_prefix_of_the_containers():
    x, y = tensor(ROWS), tensor([1.0, 2.0])
    expected = (ROWS * 2 + np.float32([1, 2])).tolist()
    assert burn.vmap(scaled, in_axes=(0, None))(x, y).tolist() == expected
    assert burn.vmap(scaled, in_axes=[0, None])(x, y).tolist() == expected
    assert (
        burn.vmap(lambda p: scaled(p["x"], p["y"]), in_axes=({"x": 0, "y": None},))(
            {"x": x, "y": y}
        ).tolist()
        == expected
    )
    assert burn.vmap(lambda p: scaled(*p), in_axes=((0, None),))((x, y)).tolist() == expected
    by_column = burn.vmap(lambda pair: pair[0] + pair[1]["b"], in_axes=1)((x, {"b": x}))
    np.testing.assert_array_equal(by_column.numpy(), (ROWS * 2).T)


def test_keyword_arguments_and_objects_without_an_axis_are_the_same_for_all_examples():
    x = tensor(ROWS)
    result = burn.vmap(lambda x, how, *, y: how(x) * y, in_axes=(0, None))(x, burn.sum, y=x)
    np.testing.assert_array_equal(result.numpy(), ROWS.sum(1)[:, None, None] * ROWS)


def test_results_may_be_containers_with_axes_of_their_own():
    first, rest = burn.vmap(lambda x: (x, {"double": x * 2, "none": None}), out_axes=(0, 1))(
        tensor(ROWS)
    )
    assert first.tolist() == ROWS.tolist()
    assert rest["double"].tolist() == (ROWS * 2).T.tolist()
    assert rest["none"] is None


def test_results_that_are_the_same_for_all_examples_are_repeated():
    same, made = burn.vmap(lambda x: (tensor([7.0]), burn.zeros(2, device=CPU)))(tensor(ROWS))
    assert same.tolist() == [[7.0]] * 3
    assert made.tolist() == [[0.0, 0.0]] * 3


def test_a_batch_may_be_empty():
    result = burn.vmap(lambda x: (x @ x, burn.linalg.inv(burn.eye(2, device=CPU) * x[0])))(
        burn.zeros((0, 3), device=CPU)
    )
    assert [tensor.shape for tensor in result] == [(0,), (0, 2, 2)]


def test_the_function_sees_one_example():
    seen = []

    def function(x):
        seen.append((x.shape, x.ndim, x.size, len(x), repr(x)))
        return copy.deepcopy(x)

    assert burn.vmap(function)(tensor(ROWS)).tolist() == ROWS.tolist()
    ((shape, rank, size, length, shown),) = seen  # it runs once
    assert (shape, rank, size, length) == ((2,), 1, 2, 2)
    assert "batch=(3,)" in shown


# Devices.


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_results_are_on_the_device_of_the_arguments(device):
    for item in (device, device.autodiff(), device.autodiff().gradient_checkpointing()):
        x = burn.asarray(ROWS, device=item)
        result = burn.vmap(lambda x: burn.tanh(x).sum())(x)
        assert str(result.device) == str(item)
        np.testing.assert_allclose(result.numpy(), np.tanh(ROWS).sum(1), rtol=1e-5)


def test_arguments_of_two_devices_are_batched_together():
    x, y = tensor(ROWS), tensor(ROWS, device="torch/cpu")
    first, second = burn.vmap(lambda x, y: (x.sum(), y.sum() + x.to_device("torch/cpu").sum()))(
        x, y
    )
    assert (first.device.name, second.device.name) == ("cpu:0", "torch/cpu:0")
    assert second.tolist() == (2 * ROWS.sum(1)).tolist()


def test_gradients_of_leaves_outside_are_those_of_the_sum_over_examples():
    weight = tensor([1.0, 2.0], device=AUTODIFF).require_grad()
    losses = burn.vmap(lambda x: (weight * weight * x).sum())(tensor(ROWS))
    expected = 2 * np.float32([1, 2]) * ROWS.sum(0)
    assert weight.grad(losses.sum().backward()).tolist() == expected.tolist()
    rows = tensor(ROWS, device=AUTODIFF).require_grad()
    losses = burn.vmap(lambda x: (x * x).sum())(rows)
    assert rows.grad(losses.sum().backward()).tolist() == (2 * ROWS).tolist()


# Random numbers.


def draw(x):
    noise = burn.random.uniform((3,), device=CPU) + burn.random.normal((3,), device=CPU)
    more = burn.random.integers((2,), 0, 1000, device=CPU).astype(x.dtype)
    keep = burn.random.bernoulli(x.shape, 0.5, device=CPU).astype(x.dtype)
    return burn.concat([noise, more, x * keep])


def seeded(function, *arguments):
    """The result, and the random number that comes after."""
    CPU.seed(11)
    result = function(*arguments)
    return result.tolist(), burn.random.uniform((2,), device=CPU).tolist()


def test_draws_are_those_of_a_loop():
    x = tensor(ROWS)
    loop = seeded(lambda x: burn.stack([draw(row) for row in x]), x)
    assert seeded(burn.vmap(draw), x) == loop


def test_nested_draws_are_those_of_nested_loops():
    x = tensor(np.arange(12, dtype=np.float32).reshape(2, 3, 2))

    def inner_loop(rows):
        return burn.stack([draw(row) for row in rows])

    loop = seeded(lambda x: burn.stack([inner_loop(rows) for rows in x]), x)
    assert seeded(burn.vmap(burn.vmap(draw)), x) == loop
    assert seeded(burn.vmap(inner_loop), x) == loop


def test_no_example_draws_nothing():
    result, after = seeded(burn.vmap(draw), burn.zeros((0, 2), device=CPU))
    CPU.seed(11)
    assert result == []
    assert after == burn.random.uniform((2,), device=CPU).tolist()


def test_the_run_that_counts_draws_writes_to_no_argument():
    def function(x, shared, *, keyword):
        x *= 2
        noise = burn.random.uniform((2,), device=CPU)
        x += 1
        shared += 1
        keyword += 1
        return x + 0 * noise

    rows, shared, keyword = tensor(ROWS), burn.zeros(2, device=CPU), burn.zeros(2, device=CPU)
    result = burn.vmap(function, in_axes=(0, None))(rows, shared, keyword=keyword)
    assert result.tolist() == (ROWS * 2 + 1).tolist()
    assert rows.tolist() == ROWS.tolist()
    assert shared.tolist() == keyword.tolist() == [1.0, 1.0]  # by the run of all examples


def test_the_function_cannot_seed_what_it_draws_from():
    def function(x):
        CPU.seed(3)
        return x * burn.random.uniform(x.shape, device=CPU)

    with pytest.raises(burn.ArgumentError, match="cannot seed the generator"):
        burn.vmap(function)(tensor(ROWS))


def test_draws_under_a_gradient_and_dropout_are_those_of_a_loop():
    def loss(x):
        keep = burn.random.bernoulli(x.shape, 0.5, device=CPU).astype(x.dtype)
        return (x * x * keep).sum() * burn.random.uniform((), device=CPU)

    x = tensor(ROWS)
    loop = seeded(lambda x: burn.stack([burn.grad(loss)(row) for row in x]), x)
    assert seeded(burn.vmap(burn.grad(loss)), x) == loop
    batch = seeded(burn.grad(lambda x: burn.vmap(loss)(x).sum()), x)
    np.testing.assert_allclose(batch[0], loop[0], rtol=1e-6)
    assert batch[1] == loop[1]


# Nesting.


def test_nested_batches_may_close_over_each_other():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0, 5.0])
    table = burn.vmap(lambda x: burn.vmap(lambda y: x * y + burn.sin(x))(y))(x)
    expected = np.outer([1, 2], [3, 4, 5]) + np.sin([[1], [2]])
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-6)


def test_derivatives_inside_and_outside_of_batches():
    x = tensor(ROWS + 1)

    def cube(x):
        return (x**3).sum()

    def total(x):
        return burn.vmap(cube)(x).sum()

    np.testing.assert_allclose(burn.vmap(burn.grad(cube))(x).numpy(), 3 * (ROWS + 1) ** 2)
    np.testing.assert_allclose(burn.grad(total)(x).numpy(), 3 * (ROWS + 1) ** 2)
    hessians = burn.vmap(burn.hessian(cube))(x).numpy()
    np.testing.assert_allclose(hessians, [np.diag(6 * row) for row in ROWS + 1])
    jacobian = burn.jacobian(burn.vmap(cube))(x).numpy()
    np.testing.assert_allclose(np.einsum("iij->ij", jacobian), 3 * (ROWS + 1) ** 2)
    second = burn.grad(lambda x: burn.vmap(burn.grad(cube))(x).sum())(x)
    np.testing.assert_allclose(second.numpy(), 6 * (ROWS + 1))


def test_a_pullback_from_outside_takes_batches_of_gradients():
    x = tensor([1.0, 2.0])
    _, pullback = burn.vjp(lambda x: x * x, x)
    (rows,) = burn.vmap(pullback)(tensor(ROWS))
    np.testing.assert_array_equal(rows.numpy(), 2 * np.float32([1, 2]) * ROWS)
    (columns,) = burn.vmap(pullback, in_axes=1)(tensor(ROWS.T))
    np.testing.assert_array_equal(columns.numpy(), rows.numpy())
    inside = burn.vmap(lambda x, g: burn.vjp(lambda x: x * x, x)[1](g)[0])(
        tensor(ROWS), tensor(ROWS)
    )
    np.testing.assert_array_equal(inside.numpy(), 2 * ROWS * ROWS)


# Loops over examples.


@pytest.fixture
def host_sum():
    """An op without a batching rule or a decomposition, for the length of a test."""

    @op()
    def host_sum(x: FloatOperand) -> Meta:
        """The sum of all elements, computed by NumPy."""
        return Meta((), x.dtype)

    @host_sum.on_host
    def _(ops, x):
        total = np.asarray(ops.backend.to_data(x).array.sum())
        return ops.backend.from_data(TensorData(total), ops.device)

    yield host_sum
    del REGISTRY["host_sum"]


def test_ops_without_a_rule_run_in_a_loop_that_is_counted_and_may_be_refused(host_sum):
    def function(x):
        return burn.apply_op(host_sum, x) * x

    looped = burn.vmap(function)
    assert looped.fallbacks == {}
    for times in (1, 2):
        expected = ROWS.sum(1, keepdims=True) * ROWS
        np.testing.assert_array_equal(looped(tensor(ROWS)).numpy(), expected)
        assert looped.fallbacks == {"host_sum": times}
    refused = burn.vmap(function, fallback=False)
    with pytest.raises(burn.UnsupportedOpError, match=r"host_sum has no batching rule"):
        refused(tensor(ROWS))
    assert refused.fallbacks == {}


# Refusals.

READS = {
    "item": lambda x: x.item(),
    "float": float,
    "if": lambda x: x if x > 0 else -x,
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "array": np.asarray,
    "index": lambda x: [1, 2][burn.astype(x, burn.int64)],
    "dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("name", READS)
def test_reading_a_value_is_an_error(name):
    with pytest.raises(burn.BurnError, match="has a value for each example"):
        burn.vmap(READS[name])(tensor([1.0, 2.0]))


def test_a_shape_that_depends_on_values_is_an_error():
    with pytest.raises(burn.UnsupportedOpError, match=r"depends on its values\. Use a mask"):
        burn.vmap(lambda x: x[x > 1])(tensor(ROWS))


def test_backward_and_leaves_inside_are_errors():
    for function in (
        lambda x: (x * x).sum().backward(),
        lambda x: x.require_grad(),
        lambda x: tensor([1.0], device=AUTODIFF).require_grad() * x,
    ):
        with pytest.raises(burn.AutodiffError, match=r"burn\.grad"):
            burn.vmap(function)(tensor(ROWS))


def test_writes_stay_inside():
    outside = burn.zeros(2, device=CPU)

    def write(x):
        outside[0] = x
        return x

    def add(x):
        y = outside
        y += x
        return y

    def write_to_argument(x, y):
        y[0] = x
        return y

    x = tensor([1.0, 2.0])
    for function, arguments, axes in (
        (write, (x,), 0),
        (add, (x,), 0),
        (write_to_argument, (x, outside), (0, None)),
    ):
        with pytest.raises(burn.AutodiffError, match="from outside of its function"):
            burn.vmap(function, in_axes=axes)(*arguments)
    assert outside.tolist() == [0.0, 0.0]

    def allowed(row):
        made = burn.zeros(3, device=CPU)
        made[1] = row[0]
        row[0] = 9.0
        return made, row

    rows = tensor(ROWS)
    made, written = burn.vmap(allowed)(rows)
    assert made.tolist() == [[0.0, row[0], 0.0] for row in ROWS.tolist()]
    assert written.tolist() == [[9.0, row[1]] for row in ROWS.tolist()]
    assert rows.tolist() == ROWS.tolist()


def test_a_tensor_that_is_kept_is_an_error_later():
    kept = []
    burn.vmap(lambda x: kept.append(x) or x)(tensor(ROWS))
    for use in (
        lambda: kept[0] * 2,
        lambda: burn.vmap(lambda x: x + kept[0])(tensor(ROWS)),
        lambda: burn.grad(lambda x: (x * kept[0]).sum())(tensor([1.0, 2.0])),
        lambda: kept[0].tolist(),
    ):
        with pytest.raises(burn.BurnError):
            use()
    assert "batch=(3,)" in repr(kept[0])


def test_exceptions_of_the_function_come_out():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        burn.vmap(fail)(tensor(ROWS))
    assert transforms() == ()


MISUSES = {
    "no function": (lambda x: burn.vmap(x), "takes a function"),
    "no axis": (lambda x: burn.vmap(burn.sin, in_axes=None)(x), "no argument has a batch axis"),
    "no such axis": (
        lambda x: burn.vmap(burn.sin, in_axes=2)(x),
        r"\[0\] of shape \(3, 2\) has no",
    ),
    "a name": (lambda x: burn.vmap(burn.sin, in_axes="0")(x), "has no axis '0'"),
    "a bool": (lambda x: burn.vmap(burn.sin, in_axes=True)(x), "has no axis True"),
    "too many axes": (lambda x: burn.vmap(burn.sin, in_axes=(0, 0))(x), "2 entries for 1 arg"),
    "other containers": (
        lambda x: burn.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": x}),
        "in_axes: a dict of 'b' where a dict of 'a'",
    ),
    "other containers of results": (
        lambda x: burn.vmap(lambda x: (x, x), out_axes=[0, 0])(x),
        "out_axes: a list of 2 where a tuple of 2",
    ),
    "no such axis of a result": (lambda x: burn.vmap(burn.sin, out_axes=2)(x), "out_axes says"),
    "no axis of a result": (lambda x: burn.vmap(burn.sin, out_axes=None)(x), "out_axes says"),
    "lengths": (lambda x: burn.vmap(scaled)(x, x.T), r"3 of arguments\[0\], 2 of arguments\[1\]"),
    "a number": (lambda x: burn.vmap(scaled)(x, 2.0), "None in in_axes"),
    "an array": (lambda x: burn.vmap(burn.sin)(x.numpy()), "type ndarray, which has no batch axis"),
    "a scalar": (lambda x: burn.vmap(burn.sin)(x.sum()), r"shape \(\) has no axis 0"),
    "a float result": (lambda x: burn.vmap(lambda x: 1.0)(x), "result is an object of type float"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_errors_say_what_is_wrong(name):
    function, message = MISUSES[name]
    with pytest.raises(burn.BurnError, match=message) as caught:
        function(tensor(ROWS))
    assert "vmap: " in str(caught.value)
