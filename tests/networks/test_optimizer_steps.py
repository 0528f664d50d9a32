"""Steps of optimizers on lists of parameters: torch's numbers, single calls, programs, errors."""

import numpy as np
import pytest
import torch

import burn
from burn.ir import RuntimeNumber
from crossing import on_devices

STEPS = 50
SHAPES = [(3, 4), (), (7,), (2, 1, 3), (5,)]
RATE = 0.02
DEVICES = burn.Device.enumerate()
each_device = pytest.mark.parametrize("device", DEVICES, ids=str)


def values(number):
    """Arrays of the shapes, of any sign."""
    generator = np.random.default_rng(number)
    return [generator.normal(size=shape) for shape in SHAPES]


def trained(device, step, states, dtype="float64"):
    """Parameters after steps that all get other gradients."""

    def tensors(arrays):
        return [burn.asarray(array, device=device).astype(dtype) for array in arrays]

    parameters = tensors(values(0))
    kept = [[burn.zeros_like(parameter) for parameter in parameters] for _ in range(states)]
    for number in range(1, STEPS + 1):
        parameters, *kept = step(number, parameters, tensors(values(number)), *kept)
    return [parameter.numpy() for parameter in parameters]


def trained_by_torch(make_optimizer):
    parameters = [torch.tensor(value, requires_grad=True) for value in values(0)]
    optimizer = make_optimizer(parameters, lr=RATE)
    for number in range(1, STEPS + 1):
        for parameter, gradient in zip(parameters, values(number), strict=True):
            parameter.grad = torch.tensor(gradient)
        optimizer.step()
    return [parameter.detach().numpy() for parameter in parameters]


def made(optimizer, **options):
    return lambda parameters, lr: optimizer(parameters, lr=lr, **options)


def sgd(**options):
    """PyTorch begins with the gradient as the velocity: its first step has no dampening."""
    dampening = options.pop("dampening", 0.0)

    def step(number, *lists):
        return burn.optim.sgd_step(
            *lists, learning_rate=RATE, dampening=dampening if number > 1 else 0.0, **options
        )

    return step


def rmsprop(*, centered=False, **options):
    def step(number, parameters, gradients, second_moments, *others):
        velocities = others[0] if "momentum" in options else None
        first_moments = others[-1] if centered else None
        found = burn.optim.rmsprop_step(
            parameters,
            gradients,
            second_moments,
            velocities,
            first_moments,
            learning_rate=RATE,
            **options,
        )
        return [item for item in found if item is not None]

    return step


def counted(name, **options):
    function = getattr(burn.optim, name)
    return lambda number, *lists: function(*lists, step=number, learning_rate=RATE, **options)


OF_TORCH = {
    "sgd": (sgd(weight_decay=0.1), 0, made(torch.optim.SGD, weight_decay=0.1)),
    "momentum": (
        sgd(momentum=0.9, dampening=0.25, weight_decay=0.1),
        1,
        made(torch.optim.SGD, momentum=0.9, dampening=0.25, weight_decay=0.1),
    ),
    "nesterov": (
        sgd(momentum=0.9, nesterov=True),
        1,
        made(torch.optim.SGD, momentum=0.9, nesterov=True),
    ),
    "adam": (
        counted("adam_step", weight_decay=0.1, decoupled=False),
        2,
        made(torch.optim.Adam, weight_decay=0.1),
    ),
    "adamw": (
        counted("adam_step", beta1=0.8, beta2=0.95, epsilon=1e-3, weight_decay=0.1),
        2,
        made(torch.optim.AdamW, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    ),
    "amsgrad": (
        counted("amsgrad_step", beta2=0.5),
        3,
        made(torch.optim.Adam, amsgrad=True, betas=(0.9, 0.5)),
    ),
    "amsgradw": (
        counted("amsgrad_step", weight_decay=0.1),
        3,
        made(torch.optim.AdamW, amsgrad=True, weight_decay=0.1),
    ),
    "adagrad": (
        counted("adagrad_step", learning_rate_decay=0.1, weight_decay=0.1),
        1,
        made(torch.optim.Adagrad, lr_decay=0.1, weight_decay=0.1),
    ),
    "rmsprop": (rmsprop(weight_decay=0.1), 1, made(torch.optim.RMSprop, weight_decay=0.1)),
    "rmsprop with momentum": (
        rmsprop(momentum=0.9, alpha=0.9),
        2,
        made(torch.optim.RMSprop, momentum=0.9, alpha=0.9),
    ),
    "rmsprop, centered": (
        rmsprop(centered=True, momentum=0.5),
        3,
        made(torch.optim.RMSprop, centered=True, momentum=0.5),
    ),
    "rmsprop, centered without momentum": (
        rmsprop(centered=True, epsilon=1e-3),
        2,
        made(torch.optim.RMSprop, centered=True, eps=1e-3),
    ),
}


EVERYWHERE = ("nesterov", "amsgradw", "rmsprop, centered")
"""Those that the gate tries on more devices than ``cpu:0``: the kit has each op on each device."""


@pytest.mark.parametrize(("name", "device"), on_devices(OF_TORCH, DEVICES, EVERYWHERE))
def test_parameters_after_50_steps_in_float64_are_those_of_torch(name, device):
    if not device.supports_dtype(burn.float64):
        pytest.skip(f"{device} has no float64")
    step, states, make_optimizer = OF_TORCH[name]
    expected = trained_by_torch(make_optimizer)
    for mine, other in zip(trained(device, step, states), expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-12)


def adan_as_in_the_paper(proximal):
    """Algorithm 1 of arXiv:2208.06677, where a factor is that of what is new, unbiased."""
    b1, b2, b3 = 0.02, 0.08, 0.01
    decay, epsilon = 0.1, 1e-8
    results = []
    for index, first in enumerate(values(0)):
        x = first
        m, v, n = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        for number in range(1, STEPS + 1):
            g = values(number)[index]
            difference = g - values(number - 1)[index] if number > 1 else 0 * g
            m = (1 - b1) * m + b1 * g
            v = (1 - b2) * v + b2 * difference
            n = (1 - b3) * n + b3 * (g + (1 - b2) * difference) ** 2
            unbiased = [item / (1 - (1 - b) ** number) for item, b in ((m, b1), (v, b2), (n, b3))]
            change = RATE * (unbiased[0] + (1 - b2) * unbiased[1])
            change = change / (np.sqrt(unbiased[2]) + epsilon)
            moved = (x - change) / (1 + RATE * decay)
            x = moved if proximal else (1 - RATE * decay) * x - change
        results.append(x)
    return results


@pytest.mark.parametrize(("proximal", "device"), on_devices([True, False], DEVICES, [True]))
def test_adan_is_that_of_the_paper(proximal, device):
    if not device.supports_dtype(burn.float64):
        pytest.skip(f"{device} has no float64")
    previous = []

    def step(number, parameters, gradients, *states):
        before = previous[-1] if previous else gradients
        previous.append(gradients)
        return burn.optim.adan_step(
            parameters,
            gradients,
            before,
            *states,
            step=number,
            learning_rate=RATE,
            weight_decay=0.1,
            proximal=proximal,
        )

    found = trained(device, step, 3)
    for mine, other in zip(found, adan_as_in_the_paper(proximal), strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-12)


@each_device
def test_lion_is_that_of_the_paper(device):
    if not device.supports_dtype(burn.float64):
        pytest.skip(f"{device} has no float64")

    def step(number, *lists):
        return burn.optim.lion_step(*lists, learning_rate=RATE, weight_decay=0.1)

    for index, mine in enumerate(trained(device, step, 1)):
        x, m = values(0)[index], 0.0
        for number in range(1, STEPS + 1):
            g = values(number)[index]
            c = 0.9 * m + 0.1 * g
            x = x - RATE * (np.sign(c) + 0.1 * x)
            m = 0.99 * m + 0.01 * g
        np.testing.assert_allclose(mine, x, rtol=0, atol=1e-12)


FUNCTIONS = {
    "adagrad_step": (3, {"step": 3, "weight_decay": 0.1}),
    "adam_step": (4, {"step": 3, "weight_decay": 0.1}),
    "adan_step": (6, {"step": 3, "weight_decay": 0.1}),
    "amsgrad_step": (5, {"step": 3, "weight_decay": 0.1, "decoupled": False}),
    "lion_step": (3, {"weight_decay": 0.1}),
    "rmsprop_step": (5, {"momentum": 0.9, "weight_decay": 0.1}),
    "sgd_step": (3, {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
}


def lists_of(device, count):
    """Lists of operands, of which the states are positive, in float32."""
    return [
        [
            burn.asarray(value if index < 2 else np.abs(value) + 2.0, device=device).astype(
                "float32"
            )
            for value in values(index)
        ]
        for index in range(count)
    ]


@pytest.mark.parametrize(
    ("name", "device"), on_devices(FUNCTIONS, DEVICES, ("adam_step", "sgd_step"))
)
def test_a_list_is_updated_as_its_parameters_one_by_one(name, device):
    count, options = FUNCTIONS[name]
    function = getattr(burn.optim, name)
    lists = lists_of(device, count)
    together = function(*lists, learning_rate=RATE, **options)
    for index in range(len(SHAPES)):
        alone = function(*[operand[index] for operand in lists], learning_rate=RATE, **options)
        for outputs, expected in zip(together, alone, strict=True):
            assert isinstance(outputs, list)
            np.testing.assert_array_equal(outputs[index].numpy(), expected.numpy())


@each_device
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_of_a_step_gives_the_bits_of_the_call(device, name):
    count, options = FUNCTIONS[name]
    function = getattr(burn.optim, name)
    lists = lists_of(device, count)

    def step(lists, rate, number):
        counts = {"step": number} if "step" in options else {}
        return function(*lists, **(options | counts), learning_rate=rate)

    program = burn.ir.trace(step, lists, RuntimeNumber(RATE), RuntimeNumber(3))
    assert [operation.name for operation in program.operations].count(
        name.replace("amsgrad", "adam")
    ) == 1
    for rate, number in ((RATE, 3), (0.3, 7)):
        found, expected = program(lists, rate, number), step(lists, rate, number)
        for mine, other in zip(found, expected, strict=True):
            for tensor, two in zip(mine, other, strict=True):
                assert tensor.numpy().tobytes() == two.numpy().tobytes()


def test_a_state_that_is_none_stays_none():
    x = [burn.ones(3, device="cpu"), burn.ones(2, device="cpu")]
    parameters, velocities = burn.optim.sgd_step(x, x, learning_rate=0.5)
    assert [parameter.tolist() for parameter in parameters] == [[0.5] * 3, [0.5] * 2]
    assert velocities is None
    moved, second, velocity, first = burn.optim.rmsprop_step(x[0], x[0], x[0], None, x[0])
    assert velocity is None
    assert moved.shape == second.shape == first.shape == (3,)


def test_gradients_go_through_a_step_of_a_list():
    device = burn.Device("cpu").autodiff()
    rate = burn.asarray(2.0, device=device).require_grad()
    x = [burn.ones(3, device=device), burn.ones((2, 2), device=device)]
    moved, _ = burn.optim.sgd_step(x, [rate * item for item in x], learning_rate=0.5)
    gradients = (burn.sum(moved[0]) + burn.sum(moved[1])).backward()
    assert rate.grad(gradients).item() == -0.5 * 7


X, Y = burn.ones(3, device="cpu"), burn.ones(2, device="cpu")
REFUSED = {
    "no parameters": (lambda f: f([], [], [], []), burn.OperandTypeError, "no parameters"),
    "a list and a tensor": (lambda f: f([X], X, [X], [X]), burn.OperandTypeError, "some operands"),
    "a gradient too few": (
        lambda f: f([X, Y], [X], [X, Y], [X, Y]),
        burn.OperandTypeError,
        "there are 2 parameters, but 1 gradients or states",
    ),
    "a shape": (
        lambda f: f([X, Y], [X, X], [X, Y], [X, Y]),
        burn.ShapeError,
        r"parameter 1 has shape \(2,\), but its gradient or state \(3,\)",
    ),
    "dtypes": (
        lambda f: f(*[[X, Y.astype("float64")]] * 4),
        burn.DTypeError,
        "several dtypes: float32, float64",
    ),
    "no tensor": (lambda f: f([X, None], *[[X, Y]] * 3), burn.BurnError, "adam_step"),
    "devices": (
        lambda f: f([X, Y], [X, Y.to_device("pure")], [X, Y], [X, Y]),
        burn.DeviceMismatchError,
        "meet",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_lists_that_do_not_fit_are_refused(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as caught:
        call(lambda *lists: burn.optim.adam_step(*lists, step=1))
    assert "adam_step" in str(caught.value)


def test_momentum_needs_velocities():
    with pytest.raises(burn.OperandTypeError, match="momentum needs velocities"):
        burn.optim.sgd_step([X], [X], learning_rate=0.1, momentum=0.9)
    with pytest.raises(burn.OperandTypeError, match="momentum needs velocities"):
        burn.optim.rmsprop_step(X, X, X, momentum=0.9)


def test_an_error_of_many_parameters_shows_a_few():
    many = [X] * 100
    with pytest.raises(burn.ShapeError, match=r"\.\.\. 92 more") as caught:
        burn.optim.adam_step(many, [*many[:-1], Y], many, many, step=1)
    assert "parameter 99" in str(caught.value)
    assert len(str(caught.value)) < 1000


@each_device
@pytest.mark.parametrize("rate", [0.0, 1e-39, 1e-31])
def test_a_step_of_the_smallest_learning_rate_changes_nothing(device, rate):
    parameters, gradients, zeros = (
        [burn.asarray(item, device=device, dtype="float32")]
        for item in ([2.0, 3.0], [0.0, 1.0], [0.0, 0.0])
    )
    found, *_ = burn.optim.adam_step(
        parameters, gradients, zeros, zeros, step=1, learning_rate=rate
    )
    assert found[0].tolist() == [2.0, 3.0]
