"""Errors of compiled functions name the op that the user called, the line, and what to do."""

import functools
import inspect

import pytest

import burn
from burn import nn, optim
from burn.nn import functional as F

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
CALLS = 3  # a device may record the second one, and replay it from the third on

on_each_device = pytest.mark.parametrize("device", ["cpu", "torch/cpu", "opencl", "strict"])


def line_of(function, text):
    """The line of a function with a comment, as errors show it."""
    lines, first = inspect.getsourcelines(function)
    (number,) = [first + index for index, line in enumerate(lines) if line.rstrip().endswith(text)]
    return f"test_compile_errors.py:{number}: "


# Errors of values.


def take(x, indices):
    return burn.take(x * 2.0, indices, axis=0) + 1.0  # the line


def embedding(x, indices):
    return F.embedding(x, indices) * 2.0  # the line


def cross_entropy(x, indices):
    y = x - 1.0
    return F.cross_entropy(y, indices)  # the line


def assign(x, indices):
    y = x + 1.0
    y[indices] = 0.0  # the line
    return y


def in_a_loop(x, indices):
    def body(total, index):
        return total + burn.take(x, index.reshape(1), axis=0), None  # the line

    return burn.scan(body, x[:1], indices)[0]


@on_each_device
@pytest.mark.parametrize(
    ("function", "called"),
    [
        (take, "select(float32[3, 4], int64[3], axis=0) at "),
        (embedding, "embedding(float32[3, 4], int64[3]) at "),
        (cross_entropy, "cross_entropy(float32[3, 4], int64[3], axis=1) at "),
        (assign, "select_assign(float32[3, 4], int64[3], float32[3, 4], axis=0, update='assign')"),
        (in_a_loop, "select(float32[3, 4], int64[1], axis=0) at "),
    ],
)
def test_an_index_out_of_range_names_the_call_and_the_line(device, function, called):
    x = burn.ones((3, 4), device=device)
    right, wrong = (burn.asarray([0, number, 1], device=device) for number in (2, 7))
    compiled = burn.compile(function)
    for _ in range(CALLS):
        with pytest.raises(burn.OutOfRangeError) as failure:
            compiled(x, wrong).tolist()
        message = str(failure.value)
        assert message.startswith(called), message
        assert line_of(function, "# the line") + "index 7 is out of range" in message
        found, expected = compiled(x, right).numpy(), function(x, right).numpy()
        assert found == pytest.approx(expected, rel=1e-6)


@on_each_device
def test_a_value_that_a_public_function_checks_names_that_function(device):
    def loss(x, targets):
        return F.binary_cross_entropy_with_logits(x, targets)  # the line

    x = burn.zeros(3, device=device)
    targets = burn.asarray([0.0, 0.5, 2.0], device=device)
    message = "binary_cross_entropy_with_logits"
    with pytest.raises(burn.OutOfRangeError, match=f"^{message}: a target is not in") as eager:
        loss(x, targets).item()
    with pytest.raises(burn.OutOfRangeError, match=f"^{message} at ") as failure:
        burn.compile(loss)(x, targets).item()
    assert line_of(loss, "# the line") in str(failure.value)
    assert failure.value.rule == eager.value.rule


def test_the_first_index_error_is_the_one_that_opencl_reports():
    device = burn.Device("opencl")
    x, indices = burn.arange(5, device=device), burn.asarray([9, 1], device=device)

    @burn.compile
    def function(x, indices):
        return burn.take(x, burn.take(x * 50, burn.take(x, indices) + 20))

    for _ in range(CALLS):
        with pytest.raises(burn.OutOfRangeError, match="index 9 is out of range"):
            function(x, indices).tolist()


@on_each_device
def test_a_call_that_raises_for_values_has_written_nothing(device):
    count = burn.zeros(3, device=device)

    @burn.compile
    def function(matrix, right):
        count[...] = count + 1
        return burn.linalg.cholesky_solve(right, matrix)

    right = burn.ones((3, 1), device=device)
    for _ in range(CALLS):
        function(burn.eye(3, device=device), right)
    with pytest.raises(burn.ExecutionError, match="singular"):
        function(burn.zeros((3, 3), device=device), right)
    assert count.tolist() == [float(CALLS)] * 3


@on_each_device
@pytest.mark.parametrize(
    "function",
    [
        lambda table, index: F.embedding(table[:, :0], index),
        lambda table, index: burn.sum(burn.take(table[:, :0], index, axis=0)),
        lambda table, index: (burn.take(table, index, axis=0), table + 1)[1],
        lambda table, index: burn.zeros_like(burn.take(table, index, axis=0)),
    ],
    ids=["no columns", "sum of none", "unused", "shape alone"],
)
def test_an_index_is_checked_though_no_value_is_read(device, function):
    compiled = burn.compile(function)
    table, wrong = burn.ones((2, 3), device=device), burn.asarray([2], device=device)

    def finish(call):
        call(table, wrong)
        burn.Device(device).sync()

    for call in (function, compiled, compiled):
        with pytest.raises(burn.OutOfRangeError, match="index 2 is out of range"):
            finish(call)


@on_each_device
def test_a_wrong_call_after_right_ones_is_refused_as_without_compile(device):
    def function(x, y):
        return x @ y

    compiled = burn.compile(function)
    x, y = (burn.ones(shape, device=device) for shape in ((2, 3), (3, 4)))
    wrong = [
        (x, x),
        (x, y.reshape((2, 6))),
        (x, burn.ones((), device=device)),
        (x, "y"),
        (x,),
    ]
    for item in wrong:
        compiled(x, y)
        with pytest.raises(Exception) as eager:  # noqa: PT011 — of several classes
            function(*item)
        with pytest.raises(eager.type) as failure:
            compiled(*item)
        assert str(failure.value) == str(eager.value)
        assert compiled(x, y).tolist() == [[3.0] * 4] * 2


# Tensors that have no value.


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x.sum() > 0.0 else -x,
        lambda x: x * x.sum().item(),
        lambda x: x * float(x[0]),
        lambda x: [0.0, 1.0][x[0].astype("int32")],
        lambda x: list(range(x[0].astype("int32"))),
        lambda x: len(burn.nonzero(x)[0]),
        lambda x: x[x > 0.0],
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: max(x[0], 1.0),
        lambda x: not x[0],
        lambda x: x[: x[0].astype("int32")],
        lambda x: f"{x[0]:.3f}",
        lambda x: x[0] in [2.0, 1.0],
    ],
)
def test_a_value_that_is_needed_is_an_error_with_the_line_and_an_alternative(function):
    with pytest.raises(burn.TraceError, match=r"test_compile_errors.py:\d+.*burn\.where"):
        burn.compile(function)(burn.asarray([1.0, 2.0], device=CPU))


class Kept:
    pass


def keep_in_attribute(x, kept):
    kept.y = x * 2.0  # kept
    return x


def keep_in_closure(x, kept):
    kept.function = functools.partial(keep_in_attribute, x * 2.0)  # kept
    return x


def return_a_generator(x, kept):
    return (row * 2.0 for row in x.reshape((1, 2)))  # kept


@pytest.mark.parametrize(
    ("function", "holder"),
    [
        (keep_in_attribute, "the attribute 'y' of an object of type Kept"),
        (keep_in_closure, "the attribute 'function' of an object of type Kept"),
        (return_a_generator, "a part of its result that is no container"),
    ],
)
def test_a_tensor_that_is_kept_is_an_error_that_names_the_holder_and_the_line(function, holder):
    kept = Kept()
    with pytest.raises(burn.TraceError) as failure:
        burn.compile(functools.partial(function, kept=kept))(burn.ones(2, device=CPU))
    message = str(failure.value)
    assert f"in {holder}: it has no value there" in message
    assert line_of(function, "# kept").rstrip(": ") in message


def test_a_tensor_in_the_default_of_a_parameter_is_an_error_that_names_it():
    def function(x, items=[]):  # noqa: B006 — the case
        items.append(x * 2.0)
        return x

    with pytest.raises(burn.TraceError, match=r"in the default of a parameter of test_.*function:"):
        burn.compile(function)(burn.ones(2, device=CPU))


def test_a_tensor_that_a_failed_call_left_is_an_error_that_says_so():
    kept = Kept()
    kept.y = burn.ones(2, device=CPU)

    @burn.compile
    def function(x):
        kept.y = kept.y + x
        return x

    x = burn.ones(2, device=CPU)
    with pytest.raises(burn.TraceError, match="attribute 'y'"):
        function(x)
    with pytest.raises(burn.TraceError, match=r"trace that has ended.*assign another one"):
        function(x)
    kept.y = burn.ones(2, device=CPU)
    with pytest.raises(burn.TraceError, match="attribute 'y'"):
        function(x)
    kept.y = None


# Bodies of control flow.


def scan(body, x):
    return burn.scan(lambda total, _: (total + body(x), None), burn.zeros(()), length=2)[0]


def fori_loop(body, x):
    return burn.fori_loop(0, 2, lambda _, total: total + body(x), burn.zeros(()))


def while_loop(body, x):
    return burn.while_loop(lambda total: total < 1.0, lambda total: total + body(x), burn.zeros(()))


def cond(body, x):
    return burn.cond(x.sum() > 0.0, body, lambda x: x.sum(), x)


@pytest.fixture(params=[scan, fori_loop, while_loop, cond])
def flow(request):
    with burn.default_device(CPU):
        yield request.param


def network():
    net = nn.Linear(2, 2, device=AUTODIFF)
    return net, (lambda x: (net(x) ** 2).mean())


def test_backward_by_leaves_from_outside_of_a_body_is_refused_with_what_to_do(flow):
    net, loss = network()

    def body(x):
        return net.weight.grad(loss(x).backward()).sum()

    message = f"^backward: .* body of burn.{flow.__name__}, .*burn.value_and_grad"
    with pytest.raises(burn.AutodiffError, match=message):
        burn.compile(functools.partial(flow, body))(burn.ones((3, 2)))


def test_gradients_are_taken_in_a_body_as_the_message_says(flow):
    net, _ = network()

    def body(x):
        value, gradients = burn.value_and_grad(lambda net: (net(x) ** 2).mean())(net)
        return 1.0 + value + (gradients.weight**2).sum()  # the loop of while_loop ends

    def function(x):
        with burn.no_grad():
            return flow(body, x)

    x = burn.ones((3, 2))
    assert burn.compile(function)(x).item() == pytest.approx(function(x).item(), rel=1e-5)


def test_a_step_in_a_body_is_refused_with_what_to_do(flow):
    net, loss = network()
    optimizer = optim.Adam(net, 0.1)

    def function(x):
        gradients = loss(x).backward()

        def body(x):
            optimizer.step(gradients)
            return x.sum()

        return flow(body, x)

    message = rf"^Adam\.step: .* body of burn\.{flow.__name__} .* for loop"
    with pytest.raises(burn.TraceError, match=message):
        burn.compile(function)(burn.ones((3, 2)))


def test_the_state_of_an_optimizer_is_neither_read_nor_set_in_a_body(flow):
    net, _ = network()
    optimizer, average = optim.SGD(net, 0.1), optim.ExponentialMovingAverage(net, 0.9)

    def read(x):
        return x.sum() * 1.0 + optimizer.learning_rate

    def update(x):
        average.update()
        return x.sum()

    for body in (read, update):
        with pytest.raises(
            burn.TraceError, match=f"Do so in the function around burn.{flow.__name__}"
        ):
            burn.compile(functools.partial(flow, body))(burn.ones((3, 2)))

    def set_rate(x):
        optimizer.learning_rate = 0.5
        return x.sum()

    with pytest.raises(burn.TraceError, match="learning rate is set in a compiled function"):
        burn.compile(functools.partial(flow, set_rate))(burn.ones((3, 2)))
    assert optimizer.learning_rate == 0.1


def test_a_module_that_a_body_uses_may_change_between_calls(flow):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        def forward(self, x):
            return (x * self.factor).sum() + (1.0 if self.is_training(x) else 0.0)

    net = Net()
    function = functools.partial(flow, net)
    compiled = burn.compile(function)
    x = burn.ones((3, 2), device=AUTODIFF)

    def check():
        assert compiled(x).item() == function(x).item()

    check()
    net.factor = 3.0
    check()
    net.eval()
    check()
    net.factor = 2.0
    check()
    assert compiled.programs == 4
    net.train()
    check()
    assert compiled.programs == 4


# What cannot be compiled.


def generator(x):
    yield x


async def coroutine(x):
    return x


@pytest.mark.parametrize(
    ("function", "kind"), [(generator, "a generator function"), (coroutine, "a coroutine function")]
)
def test_a_function_whose_call_computes_nothing_is_refused(function, kind):
    with pytest.raises(burn.OperandTypeError, match=f"{function.__name__} is {kind}"):
        burn.compile(function)


def test_an_accumulator_whose_sum_is_not_taken_is_named():
    net, accumulator = nn.Linear(2, 1, device=AUTODIFF), optim.GradientAccumulator()

    @burn.compile
    def add(x):
        accumulator.add((net(x) ** 2).mean().backward())

    with pytest.raises(burn.TraceError, match=r"in a GradientAccumulator whose sum .* take\(\)"):
        add(burn.ones((3, 2), device=CPU))
