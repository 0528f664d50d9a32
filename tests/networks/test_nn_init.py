"""First values of parameters: their distributions, as in torch, and the same on every backend."""

import math

import numpy as np
import pytest
import torch

import burn
from burn import nn
from burn.nn import init

CPU = burn.Device("cpu")
DEVICES = [device for device in burn.Device.enumerate() if device.supports_dtype(burn.float32)]

SHAPES = [(30, 20), (16, 8, 3), (12, 6, 3, 3), (4, 6, 3, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fans_are_those_of_torch(shape):
    assert init.fans(shape) == torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(shape))


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
@pytest.mark.parametrize("function", [init.kaiming_uniform, init.xavier_normal, init.orthogonal])
def test_a_weight_has_two_axes_at_least(function, shape):
    with pytest.raises(burn.ShapeError, match="no axes of inputs and outputs"):
        function(shape)


@pytest.mark.parametrize("name", ["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"])
def test_gains_are_those_of_torch(name):
    options = (0.3,) if name == "leaky_relu" else ()
    assert init.gain(name, *options) == torch.nn.init.calculate_gain(name, *options)


def test_an_unknown_nonlinearity_or_mode_is_an_error():
    with pytest.raises(burn.ArgumentError, match=r"'swish'.*leaky_relu"):
        init.gain("swish")
    with pytest.raises(burn.ArgumentError, match=r"mode is 'fan'.*fan_out"):
        init.kaiming_normal((3, 4), mode="fan", device=CPU)


UNIFORM = {
    "kaiming": (
        lambda shape, **o: init.kaiming_uniform(shape, math.sqrt(5), **o),
        lambda x: torch.nn.init.kaiming_uniform_(x, math.sqrt(5)),
    ),
    "kaiming by outputs": (
        lambda shape, **o: init.kaiming_uniform(shape, 0.0, "fan_out", "relu", **o),
        lambda x: torch.nn.init.kaiming_uniform_(x, 0.0, "fan_out", "relu"),
    ),
    "xavier": (
        lambda shape, **o: init.xavier_uniform(shape, 1.5, **o),
        lambda x: torch.nn.init.xavier_uniform_(x, 1.5),
    ),
    "uniform": (
        lambda shape, **o: init.uniform(shape, -0.25, 0.25, **o),
        lambda x: torch.nn.init.uniform_(x, -0.25, 0.25),
    ),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_numbers_fill_the_range_of_torch(name):
    ours, theirs = UNIFORM[name]
    CPU.seed(0)
    torch.manual_seed(0)
    found = ours((100, 20, 5, 5), device=CPU).numpy()
    expected = theirs(torch.empty(100, 20, 5, 5)).numpy()
    # Extremes of 50,000 numbers come within 1e-3 of the bounds.
    for function in (np.min, np.max, np.std):
        assert math.isclose(function(found), function(expected), rel_tol=5e-3)


NORMAL = {
    "kaiming": (
        lambda shape, **o: init.kaiming_normal(shape, 0.3, "fan_out", **o),
        lambda x: torch.nn.init.kaiming_normal_(x, 0.3, "fan_out"),
    ),
    "xavier": (
        lambda shape, **o: init.xavier_normal(shape, 1.5, **o),
        lambda x: torch.nn.init.xavier_normal_(x, 1.5),
    ),
    "normal": (
        lambda shape, **o: init.normal(shape, 0.0, 0.02, **o),
        lambda x: torch.nn.init.normal_(x, 0.0, 0.02),
    ),
    "truncated": (
        lambda shape, **o: init.truncated_normal(shape, 0.0, 0.02, -0.03, 0.03, **o),
        lambda x: torch.nn.init.trunc_normal_(x, 0.0, 0.02, -0.03, 0.03),
    ),
}


@pytest.mark.parametrize("name", NORMAL)
def test_normal_numbers_have_the_deviation_of_torch(name):
    ours, theirs = NORMAL[name]
    CPU.seed(0)
    torch.manual_seed(0)
    found = ours((100, 20, 5, 5), device=CPU).numpy()
    expected = theirs(torch.empty(100, 20, 5, 5)).numpy()
    # Both estimates have a deviation of 0.3 percent.
    assert math.isclose(found.std(), expected.std(), rel_tol=0.015)
    assert abs(found.mean()) < 0.02 * found.std()
    kurtosis = [np.mean((item / item.std()) ** 4) for item in (found, expected)]
    assert math.isclose(*kurtosis, rel_tol=0.05)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (4, 3, 3)], ids=str)
def test_orthogonal_rows_or_columns_are_orthonormal(shape, dtype):
    CPU.seed(0)
    x = init.orthogonal(shape, 2.0, dtype=dtype, device=CPU)
    assert x.shape == shape
    assert x.dtype is burn.DType.of(dtype)
    matrix = x.astype("float64").numpy().reshape(shape[0], -1)
    if matrix.shape[0] > matrix.shape[1]:
        matrix = matrix.T
    tolerance = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(matrix @ matrix.T, 4.0 * np.eye(len(matrix)), atol=tolerance)


def test_orthogonal_matrices_have_no_preferred_direction():
    CPU.seed(0)
    found = np.stack([init.orthogonal((2, 2), device=CPU).numpy() for _ in range(400)])
    # Without the correction of signs QR gives a diagonal of one sign.
    assert (np.abs(found.mean(axis=0)) < 0.15).all()
    determinants = np.linalg.det(found)
    assert 120 < (determinants > 0.0).sum() < 280


def test_constants_are_filled_in():
    assert init.constant((2, 2), 0.5, device=CPU).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert init.zeros(2, dtype="float64", device=CPU).dtype is burn.float64
    assert init.ones((1, 2), device=CPU).tolist() == [[1.0, 1.0]]


EXACT = {
    "Linear": lambda **o: nn.Linear(20, 30, **o),
    "Bilinear": lambda **o: nn.Bilinear(4, 5, 6, **o),
    "Conv2d": lambda **o: nn.Conv2d(4, 6, 3, groups=2, **o),
    "ConvTranspose2d": lambda **o: nn.ConvTranspose2d(4, 6, 3, groups=2, **o),
    "DeformConv2d": lambda **o: nn.DeformConv2d(4, 6, 3, **o),
    "orthogonal": lambda **o: init.orthogonal((5, 7), **o),
    "kaiming_uniform": lambda **o: init.kaiming_uniform((5, 7), **o),
    "xavier_uniform": lambda **o: init.xavier_uniform((5, 7), **o),
}
NEAR = {
    "Embedding": lambda **o: nn.Embedding(20, 30, padding_idx=3, **o),
    "normal": lambda **o: init.normal((20, 30), **o),
    "truncated_normal": lambda **o: init.truncated_normal((20, 30), **o),
    "kaiming_normal": lambda **o: init.kaiming_normal((20, 30), **o),
}


def numbers(make, device):
    device.seed(7)
    made = make(device=device)
    tensors = made.parameters() if isinstance(made, nn.Module) else [made]
    return [tensor.detach().inner().numpy() for tensor in tensors]


@pytest.mark.parametrize("device", [item for item in DEVICES if item != CPU], ids=str)
@pytest.mark.parametrize("name", [*EXACT, *NEAR])
def test_a_seed_makes_the_same_parameters_on_every_backend(name, device):
    make = (EXACT | NEAR)[name]
    # What is uniform is equal in all bits; logarithms and cosines of normal numbers may differ in
    # the last one.
    tolerance = 0.0 if name in EXACT else 1e-5
    for target in device, device.autodiff():
        pairs = zip(numbers(make, target), numbers(make, CPU), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "code",
    [
        "Linear(20, 300)",
        "Linear(20, 300, bias=False)",
        "Bilinear(9, 40, 50)",
        "Conv1d(8, 64, 5, groups=2)",
        "Conv2d(8, 64, 3)",
        "Conv3d(4, 64, 2)",
        "ConvTranspose1d(64, 8, 5, groups=2)",
        "ConvTranspose2d(64, 8, 3)",
        "Embedding(200, 30)",
    ],
)
def test_layers_start_with_the_distributions_of_torch(code):
    CPU.seed(0)
    torch.manual_seed(0)
    ours = eval(code, {item: getattr(nn, item) for item in dir(nn)})  # noqa: S307 — of the table
    theirs = eval(code, vars(torch.nn))  # noqa: S307 — of the table
    expected = dict(theirs.named_parameters())
    assert dict(ours.named_parameters()).keys() == expected.keys()
    for name, parameter in ours.named_parameters():
        found, other = parameter.numpy(), expected[name].detach().numpy()
        if "Embedding" in code:
            assert abs(found.std() - 1.0) < 0.05
            assert abs(found.mean()) < 0.05
            continue
        bound = np.abs(other).max()
        assert math.isclose(np.abs(found).max(), bound, rel_tol=0.1 if name == "bias" else 0.01)
        # A uniform distribution of this bound has this deviation.
        assert math.isclose(found.std(), bound / math.sqrt(3.0), rel_tol=0.3 / found.size**0.25)


def test_a_dtype_and_a_device_are_those_of_all_parameters():
    device = burn.Device("cpu").autodiff()
    for layer in (
        nn.Linear(2, 3, dtype="float64", device=device),
        nn.Conv2d(2, 3, 1, dtype="float64", device=device),
        nn.BatchNorm2d(3, dtype="float64", device=device),
        nn.Embedding(2, 3, padding_idx=1, dtype="float64", device=device),
        nn.PReLU(dtype="float64", device=device),
        nn.SwiGLU(2, 3, dtype="float64", device=device),
    ):
        tensors = layer.parameters() + [
            buffer for _, buffer in layer.named_buffers() if buffer.ndim
        ]
        assert {(tensor.dtype, tensor.device) for tensor in tensors} == {(burn.float64, device)}
        assert all(parameter.is_require_grad for parameter in layer.parameters())


def test_a_layer_follows_the_default_device():
    with burn.default_device(burn.Device("cpu").autodiff()):
        assert nn.Linear(2, 3).weight.device == burn.Device("cpu").autodiff()
        assert nn.BatchNorm1d(3).running_mean.device == burn.Device("cpu").autodiff()
