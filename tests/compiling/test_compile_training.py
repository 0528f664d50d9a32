"""Steps of training, written in the ordinary way and compiled, are the eager steps."""

import copy
import functools
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.compiler import decomposition
from burn.ir import Execution, GraphIr, HostNumber, OperationIr, RuntimeNumber, ScalarIr
from burn.nn import functional as F
from burn.optim import schedules
from crossing import on_devices

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import burn_models

CPU = burn.Device("cpu")
TORCH = burn.Device("torch/cpu")
STEPS = 5
VOCABULARY = 11


def same(mine, theirs, tolerance=1e-9):
    """Arrays and numbers by names are equal, but for the order in which kernels round."""
    assert list(mine) == list(theirs)
    for name, value in mine.items():
        np.testing.assert_allclose(value, theirs[name], tolerance, tolerance, err_msg=name)


def values(state):
    return {
        name: x.detach().numpy() if isinstance(x, burn.Tensor) else np.asarray(x)
        for name, x in state.items()
    }


# Models.


def images(generator):
    return generator.normal(size=(4, 1, 8, 8)), generator.integers(0, 10, 4)


def tokens(generator):
    drawn = generator.integers(0, VOCABULARY, (3, 8))
    return drawn[:, :-1].copy(), drawn[:, 1:].copy()


def vectors(generator):
    return generator.normal(size=(6, 4)), generator.integers(0, 3, 6)


MODELS = {
    "MLP": (lambda: burn_models.MLP(4, 8, 3), vectors),
    "CNN with BatchNorm": (lambda: burn_models.CNN(8, (1, 3, 5)), images),
    "GPT": (lambda: burn_models.GPT(VOCABULARY, 7, 12, 2, 2), tokens),
    "LSTM": (lambda: burn_models.LanguageModel(VOCABULARY, 12), tokens),
}


@pytest.fixture(autouse=True)
def _parameters_are_drawn_on_the_cpu():
    with burn.default_device("cpu"):
        yield


DEVICES = [
    device
    for device in burn.Device.enumerate()
    if device.backend_name not in ("pure", "strict") and device.supports_dtype(burn.float64)
]


@functools.cache
def start_of(name):
    CPU.seed(5)
    return MODELS[name][0]().astype("float64").state_dict()


def trained(name, device, wrap):
    """The losses of some steps of a model, its state and that of the optimizer at the end."""
    make, draw = MODELS[name]
    model = make().to(device.autodiff()).astype("float64")
    model.load_state_dict(start_of(name))
    optimizer = optim.AdamW(model, schedules.cosine(0.01, 20), clip_norm=1.0)

    def step(x, y):
        loss = F.cross_entropy(model(x).reshape((y.size, -1)), y.reshape((-1,)))
        optimizer.step(loss.backward())
        return loss

    run = wrap(step)
    losses = []
    for seed in range(STEPS):
        batch = [burn.asarray(item, device=device) for item in draw(np.random.default_rng(seed))]
        losses.append(run(*batch).item())
    return {"loss": losses}, values(model.state_dict()), values(optimizer.state_dict()), run


@pytest.mark.parametrize(("name", "device"), on_devices(MODELS, DEVICES, ["MLP"]))
def test_steps_of_models_are_the_eager_steps(name, device):
    *eager, _ = trained(name, device, lambda step: step)
    *compiled, run = trained(name, device, burn.compile)
    for item, other in zip(compiled, eager, strict=True):
        same(item, other)
    assert run.programs == 1


# Optimizers.

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, 0.05),
    "momentum": lambda p: optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.1),
    "nesterov": lambda p: optim.SGD(p, schedules.cosine(0.1, 9), momentum=0.9, nesterov=True),
    "dampening": lambda p: optim.SGD(p, 0.05, momentum=0.9, dampening=0.5),
    "adam": lambda p: optim.Adam(p, 0.01, weight_decay=0.1, clip_value=0.1),
    "amsgrad": lambda p: optim.Adam(p, schedules.exponential(0.1, 0.5), beta2=0.9, amsgrad=True),
    "adamw, groups": lambda p: optim.AdamW(
        p,
        0.01,
        groups={"*bias": {"learning_rate": lambda n: 0.1 / n}, "2.*": {"epsilon": 1e-3}},
        weight_decay_mask="*weight",
        clip_norm=0.5,
    ),
    "adagrad": lambda p: optim.Adagrad(p, 0.05, learning_rate_decay=0.1, initial_total=0.5),
    "rmsprop": lambda p: optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "adan": lambda p: optim.Adan(p, schedules.linear(0.1, 0.0, 8), weight_decay=0.1),
    "lion": lambda p: optim.Lion(p, 0.01, weight_decay=0.1),
    "muon": lambda p: optim.Muon(
        [(path, x) for path, x in p.named_parameters() if x.ndim == 2],
        schedules.warmup(3, 0.02),
        dtype="float64",
    ),
}

FIRST_DIFFERS = ("adan", "dampening")
"""Those whose first step is another program than all others."""


def net_on(device, dtype="float64"):
    CPU.seed(3)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device.autodiff())
    return net.astype(dtype)


def batches(device, count, dtype="float64"):
    drawn = np.random.default_rng(1).normal(size=(count, 6, 4)).astype(dtype)
    return [burn.asarray(item, device=device) for item in drawn]


def loss_at(net, x):
    return (net(x) ** 2).mean()


class Training:
    """A net, an optimizer, and a step of both; some of the attributes are there for tests."""

    def __init__(self, make, wrap, device=CPU, dtype="float64"):
        self.net = net_on(device, dtype)
        self.optimizer = make(self.net)
        self.step = wrap(self._step)

    def _step(self, x):
        loss = loss_at(self.net, x)
        self.optimizer.step(loss.backward())
        return loss

    @property
    def state(self):
        return values(self.net.state_dict()) | values(self.optimizer.state_dict())


def both(make, *args, **options):
    """An eager training and a compiled one, alike otherwise."""
    return Training(make, lambda step: step, *args, **options), Training(
        make, burn.compile, *args, **options
    )


@pytest.mark.parametrize(
    ("name", "device"), on_devices(OPTIMIZERS, [CPU, TORCH], ["nesterov", "adam", "muon"])
)
def test_steps_of_optimizers_are_the_eager_steps(name, device):
    eager, compiled = both(OPTIMIZERS[name], device)
    for x in batches(device, STEPS):
        same({"loss": compiled.step(x).item()}, {"loss": eager.step(x).item()})
    same(compiled.state, eager.state)
    assert compiled.state["step"] == STEPS
    assert compiled.step.programs == 1 + (name in FIRST_DIFFERS)


@pytest.mark.parametrize("name", ["adam", "momentum", "muon"])
def test_steps_in_float32_are_the_eager_steps_on_every_device(name):
    for device in burn.Device.enumerate():
        if device.backend_name in ("pure", "strict"):
            continue
        make = {**OPTIMIZERS, "muon": lambda p: optim.Muon([p[0].weight], dtype="float32")}[name]
        eager, compiled = both(make, device, dtype="float32")
        for x in batches(device, 2, "float32"):
            same({"loss": compiled.step(x).item()}, {"loss": eager.step(x).item()}, 1e-5)
        same(compiled.state, eager.state, 1e-5)


def test_100_steps_under_a_schedule_compile_once():
    rate = schedules.warmup(10, schedules.cosine(0.1, 90))
    eager, compiled = both(lambda p: optim.AdamW(p, rate))
    (x,) = batches(CPU, 1)
    losses = [(compiled.step(x).item(), eager.step(x).item()) for _ in range(100)]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-9)
    assert losses[-1][0] < losses[0][0] / 10
    same(compiled.state, eager.state)
    assert compiled.step.programs == 1


# What changes between calls.


def test_a_learning_rate_that_is_set_between_calls_is_that_of_the_next_step():
    eager, compiled = both(lambda p: optim.Adam(p, 0.1, groups={"*bias": {"learning_rate": 0.5}}))
    rates = [0.1, 0.01, lambda n: 0.2 / n, 0.0]
    for rate, x in zip(rates, batches(CPU, 4), strict=True):
        for item in (eager, compiled):
            item.optimizer.learning_rate = rate
            item.step(x)
        assert compiled.optimizer.learning_rate == eager.optimizer.learning_rate
        same(compiled.state, eager.state)
    assert compiled.step.programs == 1


def test_steps_may_be_compiled_and_eager_in_turn():
    eager, mixed = both(OPTIMIZERS["adam"])
    for number, x in enumerate(batches(CPU, 6)):
        eager.step(x)
        (mixed.step if number % 3 else mixed._step)(x)
    same(mixed.state, eager.state)
    assert mixed.step.programs == 1


@pytest.mark.parametrize("name", ["adam", "adan", "rmsprop"])
def test_a_state_that_is_loaded_between_calls_is_gone_on_from(name):
    x, *others = batches(CPU, 4)
    eager, compiled = both(OPTIMIZERS[name])
    before = [eager.optimizer.state_dict(), eager.net.state_dict()]
    for other in others:
        compiled.step(other)
        eager.step(other)
    saved = compiled.optimizer.state_dict()
    kept = values(saved)
    compiled.step(x)
    same(values(saved), kept, 0.0)
    states = [(saved, eager.net.state_dict()), before]
    for optimizer_state, net_state in states:
        for item in (eager, compiled):
            item.optimizer.load_state_dict(optimizer_state)
            item.net.load_state_dict(net_state)
            item.step(x)
        same(compiled.state, eager.state)
    assert compiled.state["step"] == 1
    assert compiled.step.programs == 1 + (name == "adan")


def test_frozen_parameters_stay_and_count_no_steps():
    eager, compiled = both(OPTIMIZERS["adam"])
    for number, x in enumerate(batches(CPU, 6)):
        for item in (eager, compiled):
            if number == 2:
                item.net[0].freeze()
            if number == 4:
                item.net[0].unfreeze()
            item.step(x)
        same(compiled.state, eager.state)
    assert compiled.state["0.weight.step"] == 4
    assert compiled.state["2.weight.step"] == 6


def test_parameters_with_other_numbers_of_steps_are_not_updated_as_one():
    eager, compiled = both(OPTIMIZERS["adam"])
    first, second, third = batches(CPU, 3)
    for item in (eager, compiled):
        item.step(first)
        gradients = {"0.weight": burn.ones((8, 4), dtype="float64", device=CPU)}
        item.optimizer.step(gradients)  # the others have one step less from here on
        item.step(second)
        item.step(third)
    same(compiled.state, eager.state)
    assert compiled.step.programs == 2


def test_a_step_of_some_after_one_of_all_in_the_same_function():
    eager, compiled = both(OPTIMIZERS["adam"])

    def step(training, x):
        gradients = burn.grad(loss_at)(training.net, x)
        training.optimizer.step(gradients)
        some = {"0.weight": gradients[0].weight.detach(), "2.bias": gradients[2].bias.detach()}
        for _ in range(2):
            training.optimizer.step(some)

    run = burn.compile(lambda x: step(compiled, x))
    for x in batches(CPU, 4):
        run(x)
        step(eager, x)
        same(compiled.state, eager.state)
    assert (compiled.state["0.bias.step"], compiled.state["2.bias.step"]) == (4, 12)
    assert run.programs == 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_an_optimizer_counts_for_itself(copied):
    training = Training(OPTIMIZERS["adan"], lambda step: step)
    first, second, third = batches(CPU, 3)
    run = burn.compile(lambda x, training: training._step(x))
    run(first, training)
    run(second, training)
    other = Training(OPTIMIZERS["adan"], lambda step: step)
    other.net, other.optimizer = copied((training.net, training.optimizer))
    same(other.state, training.state, 0.0)
    run(third, other)
    assert (other.state["step"], training.state["step"]) == (3, 2)
    run(third, training)
    same(training.state, other.state)


def test_states_follow_a_module_to_another_dtype_and_device_and_back():
    eager, compiled = both(OPTIMIZERS["rmsprop"])
    moves = [
        (CPU, "float64", 1e-9),
        (CPU, "float32", 1e-5),
        (TORCH, "float32", 1e-5),
        (CPU, "float64", 1e-5),  # as the float32 before
    ]
    for device, dtype, tolerance in moves:
        for item in (eager, compiled):
            for x in item.net.parameters():
                moved = x.detach().to_device(device.autodiff()).astype(dtype)
                x.assign(moved, require_grad=True)
        for x in batches(device, 3, dtype):
            for item in (eager, compiled):
                item.step(x)
        same(compiled.state, eager.state, tolerance)
        assert compiled.net[0].weight.device == device.autodiff()
    assert compiled.step.programs == 4


def test_a_call_that_fails_counts_no_step():
    training = Training(OPTIMIZERS["adam"], lambda step: step)

    @burn.compile
    def step(x, is_right):
        loss = training._step(x)
        if not is_right:
            raise RuntimeError("stop")
        return loss

    x, y = batches(CPU, 2)
    step(x, True)
    before = training.state
    with pytest.raises(RuntimeError, match="stop"):
        step(y, False)
    same(training.state, before, 0.0)
    step(y, True)
    eager = Training(OPTIMIZERS["adam"], lambda step: step)
    eager.step(x)
    eager.step(y)
    same(training.state, eager.state)


# What is around a step.


class Variants:
    """Functions of training beside the plain step, which end with numbers for tests."""

    def __init__(self, wrap):
        self.net = net_on(CPU)
        self.optimizer = optim.Adam(self.net, schedules.cosine(0.1, 50))
        self.second = optim.SGD(self.net[2], 0.1, momentum=0.9)
        self.average = optim.ExponentialMovingAverage(self.net, lambda n: min(0.9, n / (n + 3)))
        self.scaler = optim.LossScaler(1024.0, interval=2)
        self.accumulator = optim.GradientAccumulator()
        self.run = {name: wrap(getattr(self, name)) for name in VARIANTS}

    def averaged(self, x):
        loss = loss_at(self.net, x)
        self.optimizer.step(loss.backward())
        self.average.update()
        with self.average.applied():
            return loss, loss_at(self.net, x).detach()

    def scaled(self, x):
        loss = loss_at(self.net, x)
        self.scaler.step(self.optimizer, self.scaler.scale(loss).backward())
        return loss

    def accumulated(self, x):
        for part in (x[:3], x[3:]):
            self.accumulator.add(loss_at(self.net, part).backward())
        self.optimizer.step(self.accumulator.take())

    def twice(self, x):
        losses = []
        for _ in range(2):
            losses.append(loss_at(self.net, x))
            self.optimizer.step(losses[-1].backward())
            self.average.update()
        return losses

    def two_optimizers(self, x):
        loss = loss_at(self.net, x)
        gradients = loss.backward()
        self.optimizer.step(gradients)
        self.second.step(loss_at(self.net, x).backward())
        return loss

    def where(self, x):
        loss = loss_at(self.net, x)
        self.optimizer.step(loss.backward(), where=loss < 0.5)
        return loss

    def by_paths(self, x):
        value, gradients = burn.value_and_grad(loss_at)(self.net, x)
        self.optimizer.step(gradients)
        return value.detach()

    def given(self, x):
        loss = loss_at(self.net, x)
        gradients = loss.backward()
        rate = self.optimizer.learning_rate
        bias = self.net[0].bias
        moved, _ = optim.sgd_step(bias.inner(), bias.grad(gradients), None, learning_rate=rate)
        self.optimizer.step(gradients)
        bias.assign(moved)
        return loss

    @property
    def state(self):
        return {
            f"{kind}.{name}": value
            for kind in ("net", "optimizer", "second", "average", "scaler")
            for name, value in values(getattr(self, kind).state_dict()).items()
        }


VARIANTS = (
    "averaged", "scaled", "accumulated", "twice", "two_optimizers", "where", "by_paths", "given",
)  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_functions_of_training_are_the_eager_ones(name):
    eager, compiled = pair = Variants(lambda f: f), Variants(burn.compile)
    for x in batches(CPU, STEPS):
        results = [[y.item() for y in burn.tree.leaves(part.run[name](x))] for part in pair]
        np.testing.assert_allclose(*results, rtol=1e-9)
        same(compiled.state, eager.state)
    assert compiled.run[name].programs == 1


def test_a_compiled_step_of_a_scaled_loss_leaves_out_what_is_not_finite():
    eager, compiled = Variants(lambda f: f), Variants(burn.compile)
    first, spoiled, last = batches(CPU, 3)
    spoiled[0, 0] = float("inf")
    for x in (first, spoiled, last):
        for item in (eager, compiled):
            item.run["scaled"](x)
        same(compiled.state, eager.state)
    assert (compiled.scaler.factor, compiled.scaler.skipped) == (512.0, 1)
    for item in (eager, compiled):
        item.scaler.load_state_dict({"scale": 8.0, "finite_steps": 1, "skipped": 3})
        item.run["scaled"](first)
    same(compiled.state, eager.state)
    assert (compiled.scaler.factor, compiled.scaler.skipped) == (16.0, 3)
    assert compiled.run["scaled"].programs == 1


def test_an_average_reads_its_decay_and_a_state_at_each_call():
    eager, compiled = Variants(lambda f: f), Variants(burn.compile)
    first, second, third = batches(CPU, 3)
    saved = eager.average.state_dict()
    for item in (eager, compiled):
        item.run["averaged"](first)
        item.average.decay = 0.25
        item.run["averaged"](second)
        item.average.load_state_dict(saved)
        item.run["averaged"](third)
    same(compiled.state, eager.state)
    assert compiled.run["averaged"].programs == 1


def test_lbfgs_takes_a_compiled_loss():
    found = []
    for wrap in (lambda f: f, burn.compile):
        x = burn.asarray([-1.5, 2.0], dtype="float64", device=CPU.autodiff()).require_grad()
        loss = wrap(lambda x=x: (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2)
        optimizer = optim.LBFGS([x], line_search="strong_wolfe")
        for _ in range(3):
            optimizer.step(loss)
        found.append(x.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)


# Errors.


def test_what_a_compiled_function_cannot_do_says_why():
    net = net_on(CPU)
    optimizer, average = optim.Adam(net), optim.ExponentialMovingAverage(net)
    accumulator, lbfgs = optim.GradientAccumulator(), optim.LBFGS(net)
    (x,) = batches(CPU, 1)
    outside = loss_at(net, x).backward()
    accumulator.add(outside)

    def set_rate():
        optimizer.learning_rate = 0.1

    for function, message in [
        (lambda: optimizer.step(outside), r"computed outside .* Call backward\(\) inside"),
        (lambda: lbfgs.step(lambda: loss_at(net, x)), r"LBFGS.step: .*burn.compile\(loss\)"),
        (
            set_rate,
            "learning_rate: the learning rate is set in a compiled function.*Set it between",
        ),
        (optimizer.state_dict, "Adam.state_dict: the state is saved in a compiled"),
        (lambda: optimizer.load_state_dict({}), "Adam.load_state_dict: a state is loaded"),
        (average.state_dict, "ExponentialMovingAverage.state_dict: the state is saved"),
        (lambda: average.load_state_dict({}), "ExponentialMovingAverage.load_state_dict: a state"),
        (lambda: optim.LossScaler().load_state_dict({}), "LossScaler.load_state_dict: a state"),
        (accumulator.take, "take: gradients were added outside of the function"),
        (lambda: accumulator.add(loss_at(net, x).backward()), "add: gradients were added outside"),
        (lambda: optimizer.learning_rate, "the result is a runtime number"),
        (lambda: optimizer.learning_rate * 2.0, "runtime number has no value"),
    ]:
        with pytest.raises(burn.BurnError, match=f"(?s){message}"):
            burn.compile(function)()
    optimizer.step(accumulator.take())
    assert optimizer.state_dict()["step"] == 1


def test_gradients_that_a_compiled_function_does_not_take_are_an_error_and_forgotten():
    net, accumulator = net_on(CPU), optim.GradientAccumulator()
    (x,) = batches(CPU, 1)

    def add(x):
        accumulator.add(loss_at(net, x).backward())

    with pytest.raises(burn.TraceError, match="GradientAccumulator"):
        burn.compile(add)(x)
    add(x)
    assert len(accumulator) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda net, x: optim.Adam(net).step(loss_at(net, x).backward()),
        lambda net, x: optim.ExponentialMovingAverage(net).update(),
    ],
)
def test_programs_name_what_counts_at_each_call(use):
    net, (x,) = net_on(CPU), batches(CPU, 1)
    net.parameters()
    with pytest.raises(burn.TraceError, match=r"burn\.compile"):
        burn.ir.trace(lambda x: use(net, x), x)


# Decompositions compute with numbers of a run as with others.


def drawn(*, is_positive=False):
    array = np.random.default_rng(is_positive).normal(size=(2, 3))
    return burn.asarray(np.abs(array) if is_positive else array, device="pure")


STEP_FUNCTIONS = {
    "sgd": lambda x, m, v, n, r: optim.sgd_step(
        x, m, m, learning_rate=r, momentum=r, dampening=r, weight_decay=0.1, nesterov=True
    ),
    "adam": lambda x, m, v, n, r: optim.adam_step(
        x, m, m, v, step=n, learning_rate=r, weight_decay=0.1, decoupled=True
    ),
    "amsgrad": lambda x, m, v, n, r: optim.amsgrad_step(
        x, m, m, v, v, step=n + 1, learning_rate=r, weight_decay=0.1
    ),
    "adagrad": lambda x, m, v, n, r: optim.adagrad_step(
        x, m, v, step=n, learning_rate=r, learning_rate_decay=0.1
    ),
    "rmsprop": lambda x, m, v, n, r: optim.rmsprop_step(x, m, v, m, None, learning_rate=r),
    "adan": lambda x, m, v, n, r: optim.adan_step(
        x, m, x, m, x, v, step=n, learning_rate=r, weight_decay=0.1, proximal=True
    ),
    "adan, decoupled": lambda x, m, v, n, r: optim.adan_step(
        x, m, x, m, x, v, step=n, learning_rate=r, weight_decay=0.1, proximal=False
    ),
    "lion": lambda x, m, v, n, r: optim.lion_step(x, m, m, learning_rate=r, weight_decay=0.1),
}


@pytest.mark.parametrize("name", STEP_FUNCTIONS)
def test_decompositions_with_numbers_of_a_run_give_the_bits_of_those_with_numbers(name):
    step, table = STEP_FUNCTIONS[name], burn.Device("pure").ops
    tensors = drawn(), drawn(), drawn(is_positive=True)
    program = burn.ir.trace(step, *tensors, RuntimeNumber(1), RuntimeNumber(0.5))
    graph = decomposition.decomposition(program, lambda item: item.name.endswith("_step"), table)
    assert not any(operation.name.endswith("_step") for operation in graph.operations)
    scalars = [f"s{source.id}" for source in graph.inputs if isinstance(source, ScalarIr)]
    for numbers in ((1, 0.25), (9, 0.01)):
        run = Execution(with_numbers(graph, dict(zip(scalars, numbers, strict=True))), table).run
        found = run([x.primitive for x in tensors])
        expected = burn.tree.leaves(step(*tensors, *numbers))
        for item, other in zip(found, expected, strict=True):
            assert table.backend.to_data(item).array.tobytes() == other.numpy().tobytes()


def with_numbers(graph, scalars):
    """A graph for one run, whose scalars have these numbers."""

    def number(operand):
        is_of_run = isinstance(operand, HostNumber)
        return eval(operand.text, {}, scalars) if is_of_run else operand  # noqa: S307 — of ours

    operations = [
        operation._replace(inputs=tuple(map(number, operation.inputs)))
        if isinstance(operation, OperationIr)
        else operation
        for operation in graph.operations
    ]
    inputs = [source for source in graph.inputs if not isinstance(source, ScalarIr)]
    return GraphIr(tuple(inputs), graph.constants, tuple(operations), graph.outputs)


def test_gradients_that_are_added_before_a_later_call_are_an_error():
    net, accumulator = net_on(CPU), optim.GradientAccumulator()
    optimizer = optim.SGD(net, learning_rate=0.1)
    (x,) = batches(CPU, 1)

    @burn.compile
    def step(x):
        accumulator.add(loss_at(net, x).backward())
        optimizer.step(accumulator.take())

    step(x)
    step(x)
    assert step.programs == 1
    accumulator.add(loss_at(net, x).backward())
    with pytest.raises(burn.TraceError, match="gradients were added outside"):
        step(x)
    accumulator.take()
    step(x)
    assert step.programs == 1
