"""Compiled functions that read and write what is around them: modules, views, donations."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.nn import functional as F
from burn.optim import schedules
from burn.testing import MockDevice, mock_backend

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = ["cpu", "torch/cpu", "opencl"]

pytestmark = pytest.mark.usefixtures("no_transform_is_left")


def tensor(*values, device=CPU, **options):
    return burn.asarray(values, device=device, **options)


def leaf(*values, device=AUTODIFF):
    return tensor(*values, device=device).require_grad()


def counting(function):
    """A function that lists its calls, and the list."""
    calls = []

    def counted(*args, **keywords):
        calls.append(None)
        return function(*args, **keywords)

    return counted, calls


def data(*shape, seed=0, device=CPU):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return burn.asarray(values, device=device)


# Tensors from outside.


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_from_outside_are_read_and_rebound(device):
    total, weight = burn.zeros(2, device=device), tensor(2.0, 3.0, device=device)

    def add(x):
        nonlocal total
        total += x * weight
        return burn.sum(total)

    function, calls = counting(add)
    step = burn.compile(function)
    one = burn.ones(2, device=device)
    assert [step(one).item() for _ in range(3)] == [5.0, 10.0, 15.0]
    weight += 1.0
    assert step(one).item() == 22.0
    total.assign(burn.zeros(2, device=device))
    assert step(one).item() == 7.0
    assert total.tolist() == [3.0, 4.0]
    assert len(calls) == 1


def test_a_tensor_from_outside_of_another_kind_traces_anew():
    x = tensor(1.0, 2.0)
    function, calls = counting(lambda: x * 2.0)
    step = burn.compile(function)
    step()
    x.assign(tensor(1.0, 2.0, dtype="float64"), require_grad=False)
    assert (step().dtype, len(calls)) == (burn.float64, 2)
    x.assign(tensor(1.0, 2.0, device=AUTODIFF), require_grad=True)
    assert (step().is_tracked, len(calls)) == (True, 3)
    x.assign(tensor(3.0, 4.0, device=AUTODIFF), require_grad=False)
    assert (step().is_tracked, len(calls)) == (False, 4)
    x.assign(tensor(3.0, 4.0, device="torch/cpu"), require_grad=False)
    assert (step().device, len(calls)) == (burn.Device("torch/cpu"), 5)
    x.assign(tensor(1.0, 2.0), require_grad=False)
    assert (step().tolist(), len(calls)) == ([2.0, 4.0], 5)


def test_views_show_what_is_rebound():
    x = tensor(1.0, 2.0, 3.0)
    head, reverse = x[:2], burn.flip(x)

    def double():
        x[...] = x * 2.0
        return head + 0.0

    step = burn.compile(double)
    assert step().tolist() == [2.0, 4.0]
    assert step().tolist() == [4.0, 8.0]
    assert (head.tolist(), reverse.tolist()) == ([4.0, 8.0], [12.0, 8.0, 4.0])
    x[0] = 100.0
    assert head.tolist() == [100.0, 8.0]
    late = x[1:]
    step()
    assert late.tolist() == [16.0, 24.0]


def test_a_write_to_a_view_from_outside_changes_its_root():
    x = tensor(1.0, 2.0, 3.0)
    tail = x[1:]

    @burn.compile
    def step():
        tail[...] = tail * 10.0

    for _ in range(2):
        step()
    assert (x.tolist(), tail.tolist()) == ([1.0, 200.0, 300.0], [200.0, 300.0])


def test_arguments_are_rebound():
    def add(x, y):
        x += y
        y[0] = 7.0
        return x

    function, calls = counting(add)
    step = burn.compile(function)
    x, y = tensor(1.0, 2.0), tensor(10.0, 20.0)
    assert step(x, y) is x
    assert (x.tolist(), y.tolist()) == ([11.0, 22.0], [7.0, 20.0])
    other = tensor(0.0, 0.0)
    step(other, y)
    assert (other.tolist(), x.tolist(), len(calls)) == ([7.0, 20.0], [11.0, 22.0], 1)


def test_live_views_of_an_argument_that_is_rebound_show_it():
    @burn.compile
    def step(x, *others):
        x += 1.0
        return [other * 1.0 for other in others]

    x = tensor(1.0, 2.0)
    step(x)
    view = x[:1]
    step(x)
    assert (x.tolist(), view.tolist()) == ([3.0, 4.0], [3.0])
    for arguments in ((view,), (x, view)):
        with pytest.raises(burn.BurnError, match="writes to x, which shares elements"):
            step(*arguments)
    assert (x.tolist(), view.tolist()) == ([3.0, 4.0], [3.0])


VIEWS = {
    "index": lambda x: x[1],
    "slice": lambda x: x[1:],
    "step": lambda x: x[:, ::2],
    "all": lambda x: x[...],
    "reshape": lambda x: x.reshape((3, 2)),
    "permute": burn.matrix_transpose,
    "flip": burn.flip,
    "new axis": lambda x: x[:, None],
    "squeeze": lambda x: burn.squeeze(x[1:2], 0),
    "views of views": lambda x: burn.flip(x.reshape((3, 2))[1:])[0],
}
HELD = {"held": None}


def views_of_results(x, w, view):
    """What shares elements: with arguments, tensors from outside, other results, and itself."""
    made = x * 2.0
    hidden, alone = x - 1.0, x + w
    return {
        "argument": view(x),
        "outside": (view(w), view(burn.flip(w))),
        "held": view(HELD["held"]),
        "made": [view(made), made, view(made)],
        "hidden": [view(hidden), hidden[0]],
        "alone": view(alone),
        "same": x,
    }


@pytest.mark.parametrize("kind", VIEWS)
def test_results_share_elements_as_those_of_the_function_do(kind):
    found = []
    for wrap in (lambda function: function, burn.compile):
        x, w, other = (tensor([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) * n for n in (1.0, 10.0, 100.0))
        HELD["held"] = w[:, :] if kind == "slice" else other
        call = wrap(lambda x, w=w, view=VIEWS[kind]: views_of_results(x, w, view))
        call(x)
        seen = []
        for round in range(2):
            HELD["held"] = other if round else HELD["held"]
            results = burn.tree.leaves(call(x))
            for number, result in enumerate(results):
                result[...] = result * 0.5 + float(number)
                seen += [each.tolist() for each in (x, w, other, *results)]
        found.append(seen)
    assert found[0] == found[1]


def test_views_that_a_compiled_function_returns_have_gradients():
    x = leaf(1.0, 2.0, 3.0)

    def function(x):
        made = x * x
        with burn.no_grad():
            hidden = x[1:]
        return x[0], made[:2], made[1:], hidden

    for call in (function, burn.compile(function)):
        first, head, tail, hidden = call(x)
        assert [item.is_tracked for item in (first, head, tail, hidden)] == [
            True,
            True,
            True,
            False,
        ]
        total = first * 10.0 + burn.sum(head) + burn.sum(tail) * 100.0
        assert x.grad(total.backward()).tolist() == [12.0, 404.0, 600.0]
        head[1] = 0.0
        assert tail.tolist() == [0.0, 9.0]


def test_a_view_of_a_donated_argument_keeps_it():
    step = burn.compile(lambda x: (x[:1], x * 2.0), donate=0)
    x = tensor(1.0, 2.0)
    for _ in range(3):
        part, double = step(x)
        part[0] = 5.0
        assert x.tolist() == [5.0, 2.0]
        assert double.tolist() in ([2.0, 4.0], [10.0, 4.0])


def test_a_rebound_tensor_from_outside_that_is_passed_too():
    x = tensor(1.0, 2.0)

    def function(y):
        nonlocal x
        x += 1.0
        return y * 1.0

    step = burn.compile(function)
    assert step(tensor(5.0, 6.0)).tolist() == [5.0, 6.0]
    assert step(x).tolist() == [3.0, 4.0]
    assert step(x).tolist() == [4.0, 5.0]
    assert step(tensor(5.0, 6.0)).tolist() == [5.0, 6.0]
    view = x[:]
    with pytest.raises(burn.BurnError, match="shares elements"):
        step(view)


RATE = 2.0
WEIGHT = None


def scaled(x):
    return RATE * x


@pytest.mark.parametrize("values", [(2.0, 3.0), (True, 1), (0.0, -0.0), (None, 4.0)])
def test_a_variable_around_a_function_that_gets_another_number_traces_anew(values):
    number = values[0]

    def function(x):
        return x if number is None else x / number

    step = burn.compile(function)
    for value in (*values, *values):
        number = value
        assert step(tensor(1.0)).tolist() == function(tensor(1.0)).tolist()
    assert step.programs == 2


def test_a_variable_that_gets_another_tensor_traces_anew():
    weight = tensor(1.0, 2.0)
    step = burn.compile(lambda x: burn.vmap(lambda item: weight * item)(x))
    first = weight
    assert step(tensor([1.0, 1.0])).tolist() == [[1.0, 2.0]]
    weight = tensor(3.0, 4.0)
    assert step(tensor([1.0, 1.0])).tolist() == [[3.0, 4.0]]
    weight = first
    assert step(tensor([1.0, 1.0])).tolist() == [[1.0, 2.0]]
    assert step.programs == 2


def test_a_variable_that_gets_another_module_and_optimizer_trains_that():
    def make():
        net = nn.Linear(2, 1, device=burn.Device("cpu").autodiff())
        return net, burn.optim.SGD(net, learning_rate=0.125)

    net, optimizer = make()

    @burn.compile
    def step(x):
        optimizer.step((net(x) ** 2).sum().backward())

    x = burn.ones((1, 2), device="cpu")
    step(x)
    old, before = net, net.weight.tolist()
    net, optimizer = make()
    untrained = net.weight.tolist()
    step(x)
    assert old.weight.tolist() == before
    assert net.weight.tolist() != untrained


def test_global_variables_of_functions_that_are_called_are_looked_at(monkeypatch):
    step = burn.compile(lambda x: scaled(x) + burn.grad(lambda y: scaled(y).sum())(x))
    assert step(tensor(1.0)).tolist() == [4.0]
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert step(tensor(1.0)).tolist() == [10.0]
    monkeypatch.setitem(globals(), "scaled", lambda x: 7.0 * x)
    assert step(tensor(1.0)).tolist() == [14.0]


def test_variables_of_functions_in_transforms_are_looked_at():
    number = 2.0
    slope = burn.grad(burn.grad(lambda x: number * x**3))
    step = burn.compile(slope)
    other = burn.compile(lambda x: burn.vmap(slope)(x))
    assert step(burn.ones(())).item() == 12.0
    assert other(burn.ones(1)).item() == 12.0
    number = 3.0
    assert step(burn.ones(())).item() == 18.0
    assert other(burn.ones(1)).item() == 18.0


@pytest.mark.parametrize(
    ("file", "expected"),
    [("elsewhere/functions.py", 3.0), ("lib/site-packages/elsewhere/functions.py", 2.0)],
    ids=["the user's", "installed"],
)
def test_a_function_of_another_package_is_looked_through_unless_it_is_installed(
    monkeypatch, file, expected
):
    names = {"__name__": "elsewhere", "FACTOR": 2.0}
    exec(compile("def scaled(x): return FACTOR * x", file, "exec"), names)  # noqa: S102 — a package of its own
    monkeypatch.setitem(globals(), "scaled", names["scaled"])
    step = burn.compile(lambda x: scaled(x))
    assert step(tensor(1.0)).tolist() == [2.0]
    names["FACTOR"] = 3.0
    assert step(tensor(1.0)).tolist() == [expected]
    monkeypatch.setitem(globals(), "scaled", lambda x: 4.0 * x)
    assert step(tensor(1.0)).tolist() == [4.0]


def test_variables_of_a_function_with_many_results():
    number = 2.0
    step = burn.compile(lambda x: [x + number * index for index in range(40)])
    assert [item.item() for item in step(burn.ones(()))] == [
        1.0 + 2.0 * index for index in range(40)
    ]
    number = 3.0
    assert [item.item() for item in step(burn.ones(()))] == [
        1.0 + 3.0 * index for index in range(40)
    ]


def test_a_variable_that_loses_its_value_traces_anew():
    def make():
        factor = 2.0

        def step(x):
            try:
                return factor * x
            except NameError:
                return x

        yield burn.compile(step)
        del factor
        yield

    steps = make()
    step = next(steps)
    assert step(tensor(1.0)).tolist() == [2.0]
    next(steps)
    assert step(tensor(1.0)).tolist() == [1.0]


def test_a_variable_without_a_value_gets_one():
    def make():
        def step(x):
            return offset + x if x.shape == (1,) else x

        yield burn.compile(step)
        offset = 3.0
        yield

    steps = make()
    step = next(steps)
    assert step(tensor(1.0, 2.0)).tolist() == [1.0, 2.0]
    assert step(tensor(1.0, 2.0)).tolist() == [1.0, 2.0]
    next(steps)
    assert step(tensor(1.0)).tolist() == [4.0]


def test_a_number_that_the_function_itself_changes_does_not_trace_anew():
    calls = 0

    @burn.compile
    def step(x):
        nonlocal calls
        calls += 1
        return x + 1.0

    for _ in range(3):
        step(tensor(1.0))
    assert (calls, step.programs) == (1, 1)


def test_a_warning_names_the_variable_that_changes():
    number = 0.0
    step = burn.compile(lambda x: x * number)
    for value in range(8):
        number = float(value)
        step(tensor(1.0))
    number = 8.0
    with pytest.warns(UserWarning, match="differ: the variable 'number' around .*<lambda>"):
        step(tensor(1.0))


def test_an_exception_leaves_all_as_it_is():
    net = nn.BatchNorm1d(2, device=AUTODIFF)
    optimizer = optim.SGD(net, learning_rate=0.1, momentum=0.9)
    total = burn.zeros((), device=CPU)

    @burn.compile
    def step(x, matrix):
        total[...] = total + 1.0
        loss = (net(x) ** 2).mean() + burn.linalg.inv(matrix).sum()
        optimizer.step(loss.backward())
        return loss.detach()

    x, matrix = data(4, 2), burn.eye(2, device=CPU)
    step(x, matrix)

    def state():
        return [tensor.tolist() for tensor in net.state_dict().values()], total.item()

    before = state()
    with pytest.raises(burn.BurnError, match="singular"):
        step(x, matrix * 0.0)
    assert state() == before
    step(x, matrix)
    assert state() != before
    assert total.item() == 2.0


@pytest.mark.parametrize("device", ["cpu", "torch/cpu"])  # others find it when they are read
def test_an_index_out_of_range_leaves_all_as_it_is(device):
    on = burn.Device(device).autodiff()
    table = nn.Embedding(4, 3, device=on)
    optimizer = optim.SGD(table, learning_rate=0.1)
    calls = burn.zeros((), device=device)

    @burn.compile
    def step(indices, target):
        calls[...] = calls + 1.0
        loss = ((table(indices) - target) ** 2).mean()
        optimizer.step(loss.backward())
        return loss.detach()

    good, bad = burn.asarray([0, 3, 1], device=device), burn.asarray([0, 9, 1], device=device)
    target = burn.ones((3, 3), device=device)
    for _ in range(3):
        step(good, target)
    before = table.weight.tolist()
    with pytest.raises(burn.BurnError, match="9"):
        step(bad, target)
    assert (table.weight.tolist(), calls.item()) == (before, 3.0)
    step(good, target)
    assert calls.item() == 4.0


def test_a_copy_of_an_input_for_which_there_is_no_memory_leaves_all_as_it_is():
    with burn.registered(mock_backend("tiny", [MockDevice(memory=9000)])):
        kept = burn.zeros(500, device="tiny")
        step = burn.compile(lambda x: kept.__setitem__(..., kept + x))
        x = burn.ones(500, device="tiny")
        step(x)
        others = burn.ones(900, device="tiny")
        with pytest.raises(
            burn.OutOfMemoryError, match=r"copying float32\[500\].* too little memory"
        ):
            step(x)
        assert kept.tolist() == [1.0] * 500
        del others
        step(x)
        assert kept.tolist() == [2.0] * 500


# Modules.


class Network(nn.Module):
    """Layers in a list, one after the other."""

    def __init__(self, layers):
        self.layers = layers

    def __getitem__(self, index):
        return self.layers[index]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def network(device=AUTODIFF):
    burn.Device(device).seed(1)
    return Network(
        [
            nn.Linear(4, 8, bias=False, device=device),  # the mean has any
            nn.BatchNorm1d(8, device=device),
            nn.Tanh(),
            nn.Dropout(0.5),
            nn.Linear(8, 1, device=device),
        ]
    )


def bits(module):
    return {name: value.tolist() for name, value in module.state_dict().items()}


def trained(compiles, steps=6):
    """A network after some steps, with the losses, modes and running statistics."""
    net = network()
    optimizer = optim.Adam(net, learning_rate=schedules.cosine(0.1, 10))
    average = optim.ExponentialMovingAverage(net, decay=0.9)
    x, y = data(16, 4), data(16, 1, seed=1)

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        optimizer.step(loss.backward())
        average.update()
        return loss.detach()

    def evaluate(x):
        with burn.no_grad():
            return net(x)

    if compiles:
        step, evaluate = burn.compile(step), burn.compile(evaluate)
    found = []
    CPU.seed(5)
    for _ in range(steps):
        found.append(step(x, y).item())
        net.eval()
        found.append(evaluate(x).tolist())
        net.train()
    return found, bits(net), step, evaluate


def test_training_with_statistics_dropout_a_schedule_and_an_average_is_the_eager_one():
    found, state, step, evaluate = trained(compiles=True)
    expected, wanted, _, _ = trained(compiles=False)
    np.testing.assert_allclose(found[0::2], expected[0::2], 1e-5)
    for item, other in zip(found[1::2], expected[1::2], strict=True):
        np.testing.assert_allclose(item, other, 1e-4, 1e-5)
    assert list(state) == list(wanted)
    for name, value in state.items():
        np.testing.assert_allclose(value, wanted[name], 1e-4, 1e-5, err_msg=name)
    assert (step.programs, evaluate.programs) == (1, 1)


@pytest.mark.parametrize("passes", [False, True], ids=["closed over", "passed"])
@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.eval(),
        lambda net: net.set_precision(nn.Precision(compute="bfloat16")),
        lambda net: setattr(net[3], "p", 0.25),
        lambda net: setattr(net[4], "bias", None),
        lambda net: net.layers.pop(2),
        lambda net: net.freeze("layers.0.*"),
    ],
    ids=["mode", "precision", "attribute", "parameter", "container", "frozen"],
)
def test_a_module_that_changes_traces_anew(change, passes):
    net, x = network(), data(16, 4)

    def run(net, x):
        CPU.seed(3)  # outside of the trace alone
        return (step(net, x) if passes else step(x)).detach().tolist()

    function, calls = counting((lambda net, x: net(x)) if passes else lambda x: net(x))
    step = burn.compile(function)

    def eager():
        CPU.seed(3)
        return net(x).detach().tolist()

    first = run(net, x)
    np.testing.assert_allclose(first, eager(), 1e-2, 1e-2)
    run(net, x)
    assert len(calls) == 1
    change(net)
    np.testing.assert_allclose(run(net, x), eager(), 1e-2, 1e-2)
    assert len(calls) == 2
    run(net, x)
    assert len(calls) == 2


def test_modes_back_and_forth_compile_once_each():
    net, x = network(), data(16, 4)
    function, calls = counting(lambda x: net(x).detach())
    step = burn.compile(function)
    for _ in range(3):
        net.train()
        step(x)
        net.eval()
        step(x)
    assert (len(calls), step.programs) == (2, 2)


def test_a_module_is_compiled_itself():
    net, x = network().eval(), data(16, 4)
    step = burn.compile(net)
    np.testing.assert_allclose(step(x).detach().tolist(), net(x).detach().tolist(), 1e-5, 1e-6)
    assert step.__wrapped__ is net
    bound = burn.compile(net.forward)
    np.testing.assert_allclose(bound(x).detach().tolist(), net(x).detach().tolist(), 1e-5, 1e-6)


def test_other_code_of_a_module_does_not_trace_anew():
    net, other, x = network().eval(), network(), data(16, 4)
    function, calls = counting(lambda x: net(x).detach())
    step = burn.compile(function)
    step(x)
    other.extra = 3
    other.eval()
    nn.Linear(2, 2)
    net.eval()
    net[3].p = 0.5
    step(x)
    assert len(calls) == 1


class Recurrent(nn.Module):
    """Keeps a state among its buffers, and shares a weight."""

    buffers = ("state",)

    def __init__(self, device):
        self.weight = data(3, 3, device=device) * 0.1
        self.tied = self.weight
        self.state = burn.zeros(3, device=device)

    def forward(self, x):
        y = burn.tanh(self.tied.T @ (self.weight @ x + self.state))
        self.state.assign(y.detach())
        return y


def test_buffers_and_shared_parameters():
    def losses(compiles):
        net = Recurrent(AUTODIFF)
        optimizer = optim.SGD(net, learning_rate=0.1)

        def step(x):
            loss = (net(x) ** 2).sum()
            optimizer.step(loss.backward())
            return loss.detach()

        step = burn.compile(step) if compiles else step
        found = [step(data(3)).item() for _ in range(5)]
        assert net.tied is net.weight
        assert net.weight.is_require_grad
        return found, net.state.tolist(), net.weight.tolist()

    for item, other in zip(losses(True), losses(False), strict=True):
        np.testing.assert_allclose(item, other, 1e-5)


def test_a_module_and_its_optimizer_as_arguments():
    def training(net, optimizer, x, y):
        loss = F.mse_loss(net(x), y)
        optimizer.step(loss.backward())
        return loss.detach()

    def losses(call):
        CPU.seed(2)
        models = [nn.Linear(4, 1, device=AUTODIFF) for _ in range(2)]
        optimizers = [optim.Adam(model, learning_rate=0.1) for model in models]
        x, y = data(16, 4), data(16, 1, seed=1)
        return [
            call(net, optimizer, x, y).item()
            for _ in range(4)
            for net, optimizer in zip(models, optimizers, strict=True)
        ]

    function, _ = counting(training)
    np.testing.assert_allclose(losses(burn.compile(function)), losses(training), 1e-5)


def test_modules_are_returned():
    """As in a library without state: each call gets a new module and returns another one."""

    def step(net, x, y):
        gradients = burn.grad(lambda net: F.mse_loss(net(x), y))(net)
        return burn.tree.map(lambda p, g: p - 0.1 * g, net, gradients), x

    def after(call, steps=6):
        CPU.seed(2)
        net = nn.Sequential(nn.Linear(4, 3, device=CPU), nn.Tanh(), nn.Linear(3, 1, device=CPU))
        start = bits(net)
        x, y = data(16, 4), data(16, 1, seed=1)
        other = net
        for _ in range(steps):
            other, same = call(other, x, y)
            assert same is x
        assert bits(net) == start
        assert isinstance(other, nn.Sequential)
        return bits(other)

    function, calls = counting(step)
    for name, value in after(burn.compile(function)).items():
        np.testing.assert_allclose(value, after(step)[name], 1e-5, err_msg=name)
    assert len(calls) == 2  # for the first module, and for any


def test_a_module_that_is_returned_as_it_came_is_the_same_object():
    net = network()
    step = burn.compile(lambda net, x: (net, net(x)))
    for _ in range(2):
        assert step(net, data(16, 4))[0] is net


def test_any_module_of_one_structure_is_one_signature():
    function, calls = counting(lambda net, x: net(x) * 2.0)
    step = burn.compile(function)
    models = [nn.Linear(4, 1, device=CPU) for _ in range(5)]
    x = data(3, 4)
    for net in [*models, *models]:
        np.testing.assert_allclose(step(net, x).tolist(), (net(x) * 2.0).tolist(), 1e-5, 1e-6)
    assert len(calls) == 2
    models[0].weight.assign(models[1].weight)
    np.testing.assert_allclose(
        step(models[0], x).tolist(), (models[0](x) * 2.0).tolist(), 1e-5, 1e-6
    )
    assert len(calls) == 2


def test_a_tensor_that_is_passed_and_used_from_outside_is_one():
    weight = leaf(1.0, 2.0)

    def function(w, x):
        return ((w + weight) * x).sum().backward()[weight]

    step = burn.compile(function)
    x = tensor(3.0, 4.0)
    for _ in range(2):
        assert step(weight, x).tolist() == [6.0, 8.0]
    assert step(tensor(1.0, 1.0, device=AUTODIFF), x).tolist() == [3.0, 4.0]

    def writing(w):
        weight.assign(weight.detach() * 2.0)
        return w.detach() * 1.0

    step = burn.compile(writing)
    assert step(weight).tolist() == [2.0, 4.0]
    assert step(weight).tolist() == [4.0, 8.0]


# Donations.


def test_a_donated_argument_cannot_be_used_any_more():
    step = burn.compile(lambda x, state: state + x, donate="state")
    x, state = tensor(1.0, 2.0), tensor(10.0, 20.0)
    for _ in range(3):
        old, state = state, step(x, state)
    assert state.tolist() == [13.0, 26.0]
    for use in (
        lambda: old + 1.0,
        lambda: x + old,
        lambda: old.tolist(),
        lambda: old.shape,
        lambda: old.dtype,
        lambda: old.device,
        lambda: old == x,
        lambda: old[0],
        lambda: step(x, old),
        lambda: repr(old),
        lambda: burn.sum(old),
        lambda: burn.concat([x, old]),
        lambda: np.asarray(old),
    ):
        with pytest.raises(burn.ArgumentError, match="was donated to a compiled function as state"):
            use()
    assert x.tolist() == [1.0, 2.0]


def test_donations_by_position_and_in_containers():
    step = burn.compile(lambda x, state: {"a": state["a"] + x}, donate=[-1])
    x, state = tensor(1.0), {"a": tensor(2.0), "unused": tensor(3.0)}
    assert step(x, state)["a"].tolist() == [3.0]
    for item in state.values():
        with pytest.raises(burn.ArgumentError, match="donated"):
            item.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_a_donated_argument_that_is_returned_stays(device):
    step = burn.compile(lambda x, y: (y, x, x * 2.0, x[:2]), donate=(0, 1))
    for _ in range(6):
        x, y = burn.full(100, 1.0, device=device), burn.full(100, 5.0, device=device)
        found = step(x, y)
        assert found[0] is y
        assert found[1] is x
        assert [item[0].item() for item in found] == [5.0, 1.0, 2.0, 1.0]


def test_memory_that_others_refer_to_is_not_overwritten():
    host = np.array([1.0, 2.0], np.float32)
    shared = burn.asarray(host, device=CPU, copy=False)
    weight = tensor(1.0, 2.0)
    alias, view = weight.detach(), weight[:1]

    @burn.compile(donate="x")
    def step(x):
        weight[...] = weight * 2.0
        return x * 3.0

    assert step(shared).tolist() == [3.0, 6.0]
    assert host.tolist() == [1.0, 2.0]
    assert (alias.tolist(), view.tolist(), weight.tolist()) == ([1.0, 2.0], [2.0], [2.0, 4.0])
    del view
    y = tensor(5.0, 6.0)
    kept = y.detach()
    step(y)
    assert kept.tolist() == [5.0, 6.0]
    assert (alias.tolist(), weight.tolist()) == ([1.0, 2.0], [4.0, 8.0])
    graph = leaf(1.0, 1.0) * weight
    step(tensor(1.0, 1.0))
    found = graph.sum().backward()
    assert [tensor.tolist() for tensor in found.values()] == [[4.0, 8.0]]


def test_a_program_forgets_its_tensors():
    held = [tensor(1.0, 2.0)]
    step = burn.compile(lambda x: x * held[0])
    step(tensor(3.0, 4.0))
    reference = weakref.ref(held.pop())
    gc.collect()
    assert reference() is not None
    step.clear()
    gc.collect()
    assert reference() is None


def test_threads_train_one_after_the_other():
    net = nn.Linear(4, 1, device=AUTODIFF)
    optimizer = optim.Adam(net, learning_rate=0.01)
    x, y = data(16, 4), data(16, 1, seed=1)

    @burn.compile
    def step(x, y):
        loss = F.mse_loss(net(x), y)
        optimizer.step(loss.backward())
        return loss.detach()

    threads = [threading.Thread(target=lambda: [step(x, y) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threaded = bits(net)
    assert step.programs == 1
    CPU.seed(0)
    assert optimizer.state_dict()
    assert all(np.isfinite(np.asarray(value)).all() for value in threaded.values())


def test_memory_that_nothing_else_refers_to_is_used_again():
    pytest.importorskip("llvmlite")
    weight, moment = leaf(*[1.0] * 1000), burn.zeros(1000, device=CPU)

    @burn.compile
    def step(x):
        moment.assign(moment * 0.5 + x)
        weight.assign(weight.detach() - moment * 0.1)

    def addresses():
        return [item.detach().primitive.ctypes.data for item in (weight, moment)]

    x = burn.ones(1000, device=CPU)
    step(x)
    before = addresses()
    for _ in range(5):
        step(x)
        assert addresses() == before
    alias = weight.detach()
    values = alias.tolist()
    step(x)
    assert alias.tolist() == values != weight.tolist()
    assert addresses()[0] != before[0]
    assert addresses()[1] == before[1]
    assert weight.is_require_grad
    before = addresses()
    step(x)
    assert addresses() == before
    expected = 1.0
    rest = 0.0
    for _ in range(8):
        rest = rest * 0.5 + 1.0
        expected -= rest * 0.1
    np.testing.assert_allclose(weight.tolist(), [expected] * 1000, 1e-5)


def test_an_input_that_something_refers_to_is_asked_about_alone():
    pytest.importorskip("llvmlite")
    first, second = burn.zeros(1000, device=CPU), leaf(*[0.0] * 1000)

    @burn.compile
    def step(x):
        first.assign(first * 0.5 + x)
        second.assign(second.detach() * 0.5 + x)

    x = burn.ones(1000, device=CPU)

    def questions():
        asked = []

        def note(frame, event, _):
            if event == "call" and frame.f_code.co_name == "can_write":
                asked.append(frame.f_lineno)

        sys.setprofile(note)
        try:
            step(x)
        finally:
            sys.setprofile(None)
        return len(asked)

    assert [questions() for _ in range(4)][1:] == [0] * 3
    kept = first.detach()
    values = kept.tolist()
    assert [questions() for _ in range(3)] == [1, 1, 0]  # of what is held, and of its copy
    assert kept.tolist() == values != first.tolist()
    assert first.tolist() == second.tolist()


def test_a_donated_argument_gives_its_memory_to_a_result():
    pytest.importorskip("llvmlite")
    step = burn.compile(lambda x, state: state * 2.0 + x, donate="state")
    x, state = burn.ones(1000, device=CPU), burn.ones(1000, device=CPU)
    state = step(x, state)
    address = state.primitive.ctypes.data
    for _ in range(4):
        state = step(x, state)
        assert state.primitive.ctypes.data == address
    kept = state.detach()
    values = kept.tolist()
    assert step(x, state).tolist() == [value * 2.0 + 1.0 for value in values]
    assert kept.tolist() == values


class Counting(nn.Module):
    """Counts its calls, and scales what it gets."""

    def __init__(self):
        self.calls = 0
        self.scale = tensor(2.0)

    def forward(self, x):
        self.calls += 1
        return x * self.scale


def test_what_a_function_changes_of_a_module_does_not_trace_anew():
    net = Counting()
    function, calls = counting(lambda x: net(x))
    step = burn.compile(function)
    for _ in range(3):
        for length in (1, 2):
            assert step(burn.ones(length, device=CPU)).tolist() == [2.0] * length
    assert (len(calls), net.calls) == (2, 2)


def test_a_tensor_that_a_module_has_instead_of_another_traces_anew():
    net = Counting()
    for step in (burn.compile(lambda x: net(x)), burn.compile(lambda x: x * net.scale)):
        net.scale = tensor(2.0)
        assert step(tensor(1.0)).tolist() == [2.0]
        net.scale = tensor(3.0)
        assert step(tensor(1.0)).tolist() == [3.0]
        assert step.programs == 2
