"""Recurrent layers and cells against PyTorch's, and what they refuse."""

import itertools

import numpy as np
import pytest
import torch

import burn
from burn import nn
from burn.ir.cost import cost
from burn.nn import functional as F
from burn.ops import Meta
from crossing import on_devices
from gate import EXAMPLES

DEVICES = [device for device in burn.Device.enumerate() if device.supports_dtype("float64")]
FAST = [device for device in DEVICES if str(device) not in EXAMPLES]
LAYERS = {"RNN": {}, "RNN relu": {"nonlinearity": "relu"}, "LSTM": {}, "GRU": {}}
TOLERANCE = 1e-9
GENERATOR = np.random.default_rng(3)


def class_of(library, name):
    return getattr(library, name.partition(" ")[0])


def numbers(*shape):
    return GENERATOR.normal(size=shape)


def parts(tree):
    """Tensors of nested tuples."""
    return [part for part in tree for part in parts(part)] if isinstance(tree, tuple) else [tree]


def assert_same(found, expected):
    assert found.shape == tuple(expected.shape)
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=0, atol=TOLERANCE)


def assert_like_torch(device, own, reference, arrays, state):
    """Compare outputs and gradients by inputs, states and parameters, with equal parameters."""
    own.load_state_dict(reference.state_dict())
    values = (*arrays, *state)
    leaves = [burn.asarray(value, device=device.autodiff()).require_grad() for value in values]
    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    results = []
    for module, values in ((own, leaves), (reference, tensors)):
        x, *states = values
        given = tuple(states) if len(states) > 1 else (states or [None])[0]
        results.append(parts(module(x, given)))
    weights = [numbers(*tuple(tensor.shape)) for tensor in results[0]]
    for found, expected in zip(*results, strict=True):
        assert_same(found.detach().inner().numpy(), expected)
    pairs = zip(results[0], weights, strict=True)
    total = sum((pair * burn.asarray(weight, device=device)).sum() for pair, weight in pairs)
    gradients = total.backward()
    expected = sum(
        (item * torch.tensor(weight)).sum()
        for item, weight in zip(results[1], weights, strict=True)
    )
    wanted = torch.autograd.grad(expected, [*tensors, *reference.parameters()])
    assert [name for name, _ in own.named_parameters()] == [
        name for name, _ in reference.named_parameters()
    ]
    for leaf, gradient in zip([*leaves, *own.parameters()], wanted, strict=True):
        assert_same(leaf.grad(gradients).numpy(), gradient)


VARIANTS = [
    {"num_layers": layers, "bidirectional": both, "batch_first": first, "bias": bias}
    for layers, both, first, bias in itertools.product((1, 2), *[(False, True)] * 3)
]


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_what_pytorch_gives(name, device, everything):
    some = (0, 5, 15) if device.backend_name == "cpu" else (15,)
    variants = VARIANTS if everything else [VARIANTS[item] for item in some]
    for number, variant in enumerate(variants):
        arguments = {**LAYERS[name], **variant}
        own = class_of(nn, name)(3, 5, **arguments, dtype="float64", device=device.autodiff())
        reference = class_of(torch.nn, name)(3, 5, **arguments, dtype=torch.float64)
        x = numbers(2, 7, 3) if variant["batch_first"] else numbers(7, 2, 3)
        count = variant["num_layers"] * (1 + variant["bidirectional"])
        states = [numbers(count, 2, 5) for _ in range(2 if name == "LSTM" else 1)]
        assert_like_torch(device, own, reference, [x], states if number % 2 == 0 else [])


@pytest.mark.parametrize(("name", "device"), on_devices(LAYERS, DEVICES))
def test_an_example_alone_is_computed_without_the_axis_of_the_batch(name, device):
    own = class_of(nn, name)(3, 4, 2, **LAYERS[name], dtype="float64", device=device.autodiff())
    reference = class_of(torch.nn, name)(3, 4, 2, **LAYERS[name], dtype=torch.float64)
    states = [numbers(2, 4) for _ in range(2 if name == "LSTM" else 1)]
    assert_like_torch(device, own, reference, [numbers(6, 3)], states)


@pytest.mark.parametrize(("name", "device"), on_devices(LAYERS, FAST, ("LSTM", "GRU")))
def test_layers_of_many_values_give_what_pytorch_gives(name, device):
    arguments = {**LAYERS[name], "bidirectional": True}
    own = class_of(nn, name)(33, 70, **arguments, dtype="float64", device=device.autodiff())
    reference = class_of(torch.nn, name)(33, 70, **arguments, dtype=torch.float64)
    assert_like_torch(device, own, reference, [numbers(30, 9, 33)], [])


@pytest.mark.parametrize(("name", "device"), on_devices(LAYERS, DEVICES, LAYERS))
def test_cells_give_what_pytorch_gives(name, device):
    cell = f"{name.partition(' ')[0]}Cell"
    for bias, batch in itertools.product((True, False), ((2,), ())):
        arguments = {**LAYERS[name], "bias": bias}
        own = getattr(nn, cell)(3, 5, **arguments, dtype="float64", device=device.autodiff())
        reference = getattr(torch.nn, cell)(3, 5, **arguments, dtype=torch.float64)
        states = [numbers(*batch, 5) for _ in range(2 if name == "LSTM" else 1)]
        assert_like_torch(device, own, reference, [numbers(*batch, 3)], states if bias else [])


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_layer_of_cells_is_a_layer(name):
    layer = getattr(nn, name)(3, 4, dtype="float64", device="cpu")
    cell = getattr(nn, f"{name}Cell")(3, 4, dtype="float64", device="cpu")
    cell.load_state_dict(
        {path.removesuffix("_l0"): value for path, value in layer.state_dict().items()}
    )
    x = burn.asarray(numbers(5, 2, 3), device="cpu")
    output, last = layer(x)
    state = None
    for step in range(5):
        state = cell(x[step], state)
        h = parts(state)[0]
        np.testing.assert_allclose(h.numpy(), output[step].numpy(), rtol=0, atol=TOLERANCE)
    for found, expected in zip(parts(state), parts(last), strict=True):
        np.testing.assert_allclose(found.numpy(), expected[0].numpy(), rtol=0, atol=TOLERANCE)


def test_a_sequence_in_two_parts_is_one_sequence():
    layer = nn.LSTM(3, 4, 2, dtype="float64", device="cpu")
    x = burn.asarray(numbers(6, 2, 3), device="cpu")
    whole, last = layer(x)
    first, state = layer(x[:4])
    second, state = layer(x[4:], state)
    both = np.concatenate([first.numpy(), second.numpy()])
    np.testing.assert_allclose(both, whole.numpy(), rtol=0, atol=TOLERANCE)
    for found, expected in zip(state, last, strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("reset_after", [True, False])
def test_the_reset_gate_comes_after_the_product_or_before_it(reset_after):
    layer = nn.GRU(3, 4, reset_after=reset_after, dtype="float64", device="cpu")
    x, h = numbers(1, 2, 3), numbers(1, 2, 4)
    weight_ih, weight_hh, bias_ih, bias_hh = (parameter.numpy() for parameter in layer.parameters())
    a = np.split(x[0] @ weight_ih.T + bias_ih, 3, axis=1)
    b = np.split(h[0] @ weight_hh.T + bias_hh, 3, axis=1)
    r, z = (1 / (1 + np.exp(-a[gate] - b[gate])) for gate in (0, 1))
    product = r * b[2] if reset_after else (r * h[0]) @ weight_hh[8:].T + bias_hh[8:]
    expected = (1 - z) * np.tanh(a[2] + product) + z * h[0]
    output, last = layer(*(burn.asarray(item, device="cpu") for item in (x, h)))
    np.testing.assert_allclose(output[0].numpy(), expected, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(last[0].numpy(), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(("op", "gates", "states"), [("rnn", 1, 1), ("gru", 3, 1), ("lstm", 4, 2)])
def test_the_cost_is_that_of_the_products(op, gates, states):
    def metas(*shapes):
        return [Meta(shape, burn.float32) for shape in shapes]

    rows = gates * 7
    operands = metas((5, 2, 3), *[(2, 7)] * states, (rows, 3), (rows, 7), (rows,), (rows,))
    attributes = {"nonlinearity": "tanh"} if op == "rnn" else {}
    inputs, hidden = 2 * 5 * 2 * rows * 3, 2 * 5 * 2 * rows * 7
    assert cost(op, operands, attributes).flops == inputs + hidden
    operands += metas((5, 2, 7), *[(2, 7)] * states)
    assert cost(f"{op}_grad", operands, attributes).flops == 3 * (inputs + hidden)
    without = {**attributes, "needs_x": False}
    assert cost(f"{op}_grad", operands, without).flops == 2 * inputs + 3 * hidden


def test_training_drops_elements_between_layers_but_not_of_the_last():
    device = burn.Device("cpu").autodiff()
    device.seed(5)
    layer = nn.RNN(3, 64, 2, nonlinearity="relu", dropout=0.25, bias=False, device=device)
    # The first layer gives ones, and the second copies what is left of them.
    identity = np.eye(64)
    zeros = np.zeros((64, 64))
    layer.load_state_dict(
        {
            "weight_ih_l0": np.ones((64, 3)) / 3,
            "weight_hh_l0": zeros,
            "weight_ih_l1": identity,
            "weight_hh_l1": zeros,
        }
    )
    x = burn.ones((50, 8, 3), device=device)
    output = layer(x)[0].detach().inner().numpy()
    dropped = output == 0
    assert abs(dropped.mean() - 0.25) < 0.02
    np.testing.assert_allclose(output[~dropped], 1 / 0.75, rtol=1e-5)
    np.testing.assert_allclose(layer.eval()(x)[0].detach().inner().numpy(), 1.0, rtol=1e-5)


def test_the_first_values_are_uniform_within_the_bound_of_pytorch():
    layer = nn.GRU(10, 25, device="cpu")
    for parameter in layer.parameters():
        values = parameter.numpy()
        assert 0.17 < np.abs(values).max() < 0.2
        assert abs(values.mean()) < 0.03


def test_the_representation_is_the_call_that_makes_the_layer():
    assert repr(nn.LSTM(3, 4, 2, bias=False, batch_first=True)) == (
        "LSTM(3, 4, num_layers=2, bias=False, batch_first=True)"
    )
    assert repr(nn.RNN(3, 4, nonlinearity="relu")) == "RNN(3, 4, nonlinearity='relu')"
    assert repr(nn.GRUCell(3, 4, bias=False)) == "GRUCell(3, 4, bias=False)"


def test_a_layer_maps_over_examples():
    layer = nn.LSTM(3, 4, 2, bidirectional=True, dtype="float64", device="cpu")
    x = burn.asarray(numbers(5, 6, 2, 3), device="cpu")
    outputs = burn.vmap(lambda item: layer(item)[0])(x)
    for example in range(5):
        expected = layer(x[example])[0].numpy()
        np.testing.assert_allclose(outputs[example].numpy(), expected, rtol=0, atol=TOLERANCE)


def test_gradients_of_each_example_are_those_of_a_loop():
    layer = nn.LSTM(3, 4, dtype="float64", device="cpu")
    x = burn.asarray(numbers(5, 6, 2, 3), device="cpu")

    def loss(module, one):
        return (module(one)[0] ** 2).sum()

    each = burn.vmap(burn.grad(loss), in_axes=(None, 0))(layer, x)
    for example in range(5):
        alone = burn.grad(loss)(layer, x[example])
        for found, expected in zip(each.parameters(), alone.parameters(), strict=True):
            np.testing.assert_allclose(
                found[example].numpy(), expected.numpy(), rtol=0, atol=TOLERANCE
            )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nn.LSTM(4, 5, device="cpu")(x), "an input of shape"),
        (lambda x: nn.LSTM(3, 5, device="cpu")(x[0, 0]), "an input of shape"),
        (lambda x: nn.LSTM(3, 5, device="cpu")(x[:0]), "one step or more"),
        (lambda x: nn.RNN(3, 5, 2, device="cpu")(x, x[:1]), r"h has shape .* \(2, 2, 5\)"),
        (lambda x: nn.GRUCell(3, 5, device="cpu")(x[0], x[0]), r"h has shape .* \(2, 5\)"),
        (lambda x: F.rnn(x, x[0], x[0, :, :2], x[0, :, :2]), "weight_ih has shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(call, message):
    with pytest.raises(burn.ShapeError, match=message):
        call(burn.ones((4, 2, 3), device="cpu"))


@pytest.mark.parametrize(
    "arguments", [{"hidden_size": 0}, {"num_layers": 0}, {"dropout": 1.5}, {"dropout": -0.1}]
)
def test_sizes_out_of_range_are_refused(arguments):
    with pytest.raises(burn.ArgumentError, match=r"nn\.LSTM"):
        nn.LSTM(**{"input_size": 3, "hidden_size": 4, **arguments})


def test_an_unknown_nonlinearity_is_refused():
    x = burn.ones((4, 2, 3), device="cpu")
    with pytest.raises(burn.ArgumentError, match="sigmoid"):
        nn.RNN(3, 5, nonlinearity="sigmoid", device="cpu")(x)


def test_dropout_of_one_layer_is_refused():
    with pytest.raises(burn.ArgumentError, match="there is one layer"):
        nn.LSTM(3, 4, dropout=0.5, device="cpu")
