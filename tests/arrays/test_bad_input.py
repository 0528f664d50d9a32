"""Bad input: an error of burn's that says what was asked, or the defined result."""

import contextlib
import inspect
import math

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn.plugins import BackendSpec, DeviceInfo, registry

CPU = "cpu"


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


@pytest.fixture
def elsewhere():
    """A device that is other hardware than the CPU."""
    spec = BackendSpec(
        name="elsewhere",
        load=lambda: type(registry.entry("cpu").load())(),
        probe=lambda: [DeviceInfo("unit", 0, "a mock")],
        device_types=("unit",),
    )
    registry.register(spec)
    yield burn.Device("elsewhere")
    registry.unregister("elsewhere")


X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x + tensor([1.0, 2.0]), burn.ShapeError, "add(float32[2, 3], float32[2]): "),
        (lambda x: x @ x, burn.ShapeError, "3 columns meet 2 rows"),
        (lambda x: x @ tensor(1.0), burn.ShapeError, "0-d"),
        (lambda x: x.reshape((4, 2)), burn.ShapeError, "6 elements"),
        (lambda x: x.reshape((-1, 4)), burn.ShapeError, "-1"),
        (lambda x: x.reshape((-2, 3)), burn.ShapeError, "negative"),
        (lambda x: x.sum(axis=2), burn.AxisError, "axis 2 is out of range"),
        (lambda x: x.sum(axis=(0, 0)), burn.AxisError, "twice"),
        (lambda x: x.sum(axis="rows"), burn.OperandTypeError, "axis must be an integer"),
        (lambda x: x[2], burn.AxisError, "index 2 is out of range for axis 0 of length 2"),
        (lambda x: x[0, 0, 0], burn.AxisError, "3 indices for a tensor with 2 axes"),
        (lambda x: burn.where(x > 1, [1, 2, 3], [4, 5, 6]), burn.OperandTypeError, "not an object"),
        (lambda x: burn.where(x > 1, np.array(1), 2), burn.OperandTypeError, "ndarray"),
        (lambda x: burn.where(x > 1, "a", "b"), burn.OperandTypeError, "str"),
        (lambda x: burn.where(x > 1, None, None), burn.OperandTypeError, "NoneType"),
        (lambda x: x["a"], burn.OperandTypeError, "no index"),
        (lambda x: x[::0], burn.OperandTypeError, "zero"),
        (lambda x: x + "a", burn.OperandTypeError, "str"),
        (lambda x: x + None, burn.OperandTypeError, "NoneType"),
        (lambda x: burn.exp([1.0]), burn.OperandTypeError, "burn.asarray()"),
        (lambda x: burn.sum([1.0]), burn.OperandTypeError, "burn.asarray()"),
        (lambda x: x & x, burn.DTypeError, "takes bool or int"),
        (lambda x: (x > 0) + (x > 0), burn.DTypeError, "logical"),
        (lambda x: burn.where(x, x, x), burn.DTypeError, "condition takes bool"),
        (lambda x: burn.take(x, x[0], axis=0), burn.DTypeError, "int or uint"),
        (lambda x: burn.concat([]), burn.OperandTypeError, "at least one tensor"),
        (lambda x: burn.concat([x, x[0]]), burn.ShapeError, "does not fit"),
        (lambda x: burn.stack([x, x[0]]), burn.ShapeError, "same shape"),
        (lambda x: burn.squeeze(x, axis=0), burn.ShapeError, "length 1"),
        (lambda x: burn.broadcast_to(x, (3, 3)), burn.ShapeError, "broadcast"),
        (lambda x: burn.permute_dims(x, (0, 0)), burn.AxisError, "permutation"),
        (lambda x: x.astype("float31"), burn.DTypeError, "unknown dtype"),
        (lambda x: float(x), burn.ShapeError, "not one number"),
        (lambda x: bool(x), burn.ShapeError, "not one number"),
        (lambda x: F.softmax(x, axis=5), burn.AxisError, "axis 5"),
        (lambda x: F.gelu(x, approximate="fast"), burn.ArgumentError, "tanh"),
        (lambda x: F.cross_entropy(x, tensor([1])), burn.ShapeError, "do not fit scores"),
        (
            lambda x: F.cross_entropy(x, tensor([0, 1]), reduction="all"),
            burn.ArgumentError,
            "reduction",
        ),
        (lambda x: burn.optim.adam_step(x, x, x, x, step=0), burn.ArgumentError, "from 1"),
        (lambda x: burn.optim.adam_step(x, x[0], x, x, step=1), burn.ShapeError, "parameter"),
    ],
)
def test_what_an_op_refuses_is_an_error_that_names_the_rule(call, error, message):
    with pytest.raises(error) as caught:
        call(tensor(X))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: burn.mask_fill(x > 1, x > 1, 10), burn.DTypeError, "bool does not hold 10"),
        (
            lambda x: burn.mask_fill(x.astype("int8"), x > 1, 1.5),
            burn.DTypeError,
            "int8 does not hold 1.5",
        ),
        (lambda x: burn.eye(3, 1.5, device=x.device), burn.OperandTypeError, "n_cols"),
        (lambda x: burn.eye(3, k=1.5, device=x.device), burn.OperandTypeError, "k must be"),
        (lambda x: burn.cartesian_grid((-5, 3), device=x.device), burn.ShapeError, "(-5, 3)"),
        (
            lambda x: burn.random.permutation((3, 4), device=x.device),
            burn.OperandTypeError,
            "count must be an integer",
        ),
        (
            lambda x: burn.optim.adam_step(x, x, x, x, step=math.nan),
            burn.OperandTypeError,
            "step must be an integer",
        ),
        (
            lambda x: burn.optim.adam_step(x, x, x, x, step=1, beta1=2),
            burn.ArgumentError,
            "beta1 is 2.0. It must be in [0, 1)",
        ),
        (
            lambda x: burn.optim.adam_step(x, x, x, x, step=1, learning_rate=math.nan),
            burn.ArgumentError,
            "learning_rate is nan",
        ),
        (
            lambda x: burn.optim.sgd_step(x, x, x, learning_rate=None),
            burn.OperandTypeError,
            "learning_rate must be a number, not None",
        ),
        (
            lambda x: burn.optim.sgd_step(x, x, x, learning_rate=0.1, momentum=-1.0),
            burn.ArgumentError,
            "momentum is -1.0",
        ),
        (lambda x: burn.fft.fftfreq(3, d=1j), burn.OperandTypeError, "d must be a number"),
        (lambda x: burn.fft.fftfreq(3, d=0), burn.ArgumentError, "d is 0"),
        (lambda x: burn.isclose(x, x, atol=-1), burn.ArgumentError, "atol is -1.0"),
        (lambda x: burn.allclose(x, x, rtol=math.nan), burn.ArgumentError, "rtol is nan"),
        (lambda x: F.hard_shrink(x, lambd=-1), burn.ArgumentError, "lambd is -1.0"),
        (lambda x: F.soft_shrink(x, lambd=math.nan), burn.ArgumentError, "lambd is nan"),
        (lambda x: F.shrink(x, lambd=-0.5), burn.ArgumentError, "lambd is -0.5"),
        (lambda x: F.hardtanh(x, low=2, high=1), burn.ArgumentError, "at least 2"),
        (lambda x: F.softplus(x, beta=math.inf), burn.ArgumentError, "beta is inf"),
        (lambda x: F.celu(x, alpha=0), burn.ArgumentError, "alpha is 0"),
        (lambda x: burn.flip(x, axis=(0, -2)), burn.AxisError, "twice"),
        (lambda x: burn.squeeze(x[:1], axis=(0, 0)), burn.AxisError, "twice"),
        (lambda x: burn.fft.rfftn(x, axes=(1, -1)), burn.AxisError, "twice"),
        (lambda x: burn.fft.fftshift(x, axes=(0, 0)), burn.AxisError, "twice"),
        (lambda x: burn.sum(x, axis=True), burn.OperandTypeError, "axis must be an integer"),
        (
            lambda x: x.sum(axis=0, keepdims="no"),
            burn.OperandTypeError,
            "sum: keepdims must be True or False, not 'no'",
        ),
        (lambda x: burn.sort(x, descending=2), burn.OperandTypeError, "descending must be True"),
        (lambda x: burn.sort(x, stable=None), burn.OperandTypeError, "stable must be True"),
        (lambda x: burn.var(x, correction=math.nan), burn.ArgumentError, "correction is nan"),
        (lambda x: burn.std(x, correction=True), burn.OperandTypeError, "correction must be"),
        (lambda x: burn.cov(x, correction=math.inf), burn.ArgumentError, "correction is inf"),
        (lambda x: F.layer_norm(x, epsilon=-1.0), burn.ArgumentError, "epsilon is -1.0"),
        (lambda x: F.rms_norm(x, epsilon=math.inf), burn.ArgumentError, "epsilon is inf"),
        (
            lambda x: F.batch_norm_training(x, x[0], x[0], momentum=2.0),
            burn.ArgumentError,
            "momentum is 2.0. It must be in [0, 1]",
        ),
        (
            lambda x: F.attention(x, x, x, softcap=math.inf),
            burn.ArgumentError,
            "softcap is inf",
        ),
        (lambda x: F.attention(x, x, x, scale=math.inf), burn.ArgumentError, "scale is inf"),
        (lambda x: burn.linalg.matrix_rank(x, rtol=math.nan), burn.ArgumentError, "rtol is nan"),
        (lambda x: burn.linalg.pinv(x, rtol=-1.0), burn.ArgumentError, "rtol is -1.0"),
        (lambda x: burn.linalg.matrix_norm(x, ord=True), burn.OperandTypeError, "ord must be"),
        (
            lambda x: burn.linalg.cosine_similarity(x, x, eps=math.inf),
            burn.ArgumentError,
            "eps is inf",
        ),
        (lambda x: burn.narrow(x, 0.5, 1, axis=0), burn.OperandTypeError, "start must be"),
        (lambda x: burn.pad(x, True), burn.ShapeError, "how much to pad"),
        (lambda x: burn.pad(x, (True, 1)), burn.ShapeError, "how much to pad"),
        (
            lambda x: burn.pad(x > 0, 1, constant_values=10),
            burn.DTypeError,
            "a tensor of bool does not hold 10",
        ),
        (
            lambda x: burn.pad(x.astype("int32"), 1, constant_values=np.float32(1.5)),
            burn.DTypeError,
            "a tensor of int32 does not hold 1.5",
        ),
        (lambda x: burn.logical_and(x, "a"), burn.OperandTypeError, "logical_and: x2 must be"),
        (lambda x: burn.Tensor.from_inner(1), burn.OperandTypeError, "x must be a tensor"),
        (lambda x: burn.chunk(x, 1.5), burn.OperandTypeError, "chunks must be"),
        (lambda x: burn.topk(x, 1.5), burn.OperandTypeError, "k must be an integer"),
        (lambda x: burn.repeat(x, -1), burn.ArgumentError, "repeats is -1"),
        (lambda x: burn.unfold(x, 1, axis=0, step=None), burn.OperandTypeError, "step must be"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_on_every_device(call, error, message):
    for name in ("cpu", "torch/cpu", "opencl/cpu"):
        try:
            x = burn.asarray(X, device=name)
        except burn.DeviceUnavailableError:
            continue
        with pytest.raises(error) as caught:
            call(x)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tensor([[1, 2], [3]]), burn.ShapeError, "same length"),
        (lambda: tensor(["a"]), burn.OperandTypeError, "numbers"),
        (lambda: tensor([object()]), burn.OperandTypeError, "numbers"),
        (lambda: tensor([300], dtype="uint8"), burn.ScalarRangeError, "0 to 255"),
        (lambda: tensor([1 << 80]), burn.BurnError, ""),
        (lambda: tensor([1], dtype="int31"), burn.DTypeError, "unknown dtype"),
        (lambda: burn.zeros((2, -1), device=CPU), burn.ShapeError, "negative"),
        (lambda: burn.zeros(("a",), device=CPU), burn.ShapeError, "no shape"),
        (lambda: burn.zeros((1 << 40, 1 << 40), device=CPU), burn.ShapeError, "2**63"),
        (lambda: burn.zeros((1 << 50,), device=CPU), burn.ExecutionError, "zeros"),
        (lambda: burn.full(2, "x", device=CPU), burn.OperandTypeError, "number"),
        (lambda: burn.full(2, 1 << 70, device=CPU), burn.ScalarRangeError, "int64"),
        (lambda: burn.arange(0, 1, 0, device=CPU), burn.ArgumentError, "step"),
        (lambda: burn.arange(0, math.inf, device=CPU), burn.ArgumentError, "range"),
        (lambda: burn.arange(0, 1, math.inf, device=CPU), burn.ArgumentError, "finite"),
        (lambda: burn.zeros((2, True), device=CPU), burn.ShapeError, "no shape"),
        (lambda: burn.result_type(burn.int32, None), burn.DTypeError, "unknown dtype None"),
        (lambda: burn.ones(2, device=CPU).astype(None), burn.DTypeError, "unknown dtype None"),
        (lambda: burn.asarray([0.0], device=CPU, copy=False), burn.ArgumentError, "copy"),
        (lambda: burn.ones(1, device="gpu9"), burn.DeviceUnavailableError, "no backend 'gpu9'"),
        (lambda: burn.ones(1, device=3), burn.ArgumentError, "string"),
        (lambda: burn.random.integers(2, 5, 5, device=CPU), burn.ArgumentError, "range"),
        (lambda: burn.random.normal(2, std=-1.0, device=CPU), burn.ArgumentError, "negative"),
        (lambda: burn.random.uniform(2, dtype="int32", device=CPU), burn.DTypeError, "floats"),
        (lambda: burn.random.bernoulli(2, 1.5, device=CPU), burn.ArgumentError, "[0, 1]"),
    ],
)
def test_what_cannot_be_made_is_refused(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_a_number_that_the_dtype_cannot_hold_is_refused():
    x = tensor([1, 2], dtype="uint8")
    for call in (lambda: x + 300, lambda: 300 + x, lambda: x - (-1), lambda: x == 256):
        with pytest.raises(OverflowError, match="uint8"):
            call()


HUGE = 10**400


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x + HUGE, "float32"),
        (lambda x: HUGE - x, "float32"),
        (lambda x: x.clip(HUGE), "float32"),
        (lambda x: burn.where(x > 1, x, HUGE), "float32"),
        (lambda x: x.astype("int32") / HUGE, "float32"),
        (lambda x: x.astype("complex64") * HUGE, "complex64"),
        (lambda x: x.astype("int32") + HUGE, "int32"),
        (lambda x: F.elu(x, alpha=HUGE), "elu: alpha"),
        (lambda x: burn.isclose(x, x, rtol=HUGE), "isclose: rtol"),
        (lambda x: burn.random.uniform((2,), high=HUGE, device=CPU), "uniform: high"),
    ],
)
def test_an_integer_too_large_for_a_float_is_refused_by_name(call, message):
    for device in (burn.Device(CPU), burn.Device(CPU).autodiff()):
        with pytest.raises(burn.ScalarRangeError) as caught:
            call(burn.asarray(X, device=device))
        assert message in str(caught.value)
        assert caught.value.operation


def test_an_index_out_of_range_in_a_tensor_is_an_index_error():
    x = tensor(X)
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"index {index} is out of range") as caught:
            burn.take(x, tensor([0, index]), axis=0)
        assert isinstance(caught.value, burn.ExecutionError)
    assert burn.take(x, tensor([-1, -2]), axis=0).tolist() == X[::-1]
    with pytest.raises(burn.OutOfRangeError, match="index 5"):
        F.cross_entropy(x, tensor([0, 5]))


BINARY = [
    burn.add,
    burn.subtract,
    burn.multiply,
    burn.divide,
    burn.floor_divide,
    burn.remainder,
    burn.pow,
    burn.maximum,
    burn.minimum,
    burn.equal,
    burn.less,
    burn.matmul,
    lambda a, b: burn.concat([a, b]),
    lambda a, b: burn.stack([a, b]),
    lambda a, b: burn.where(a > 0, a, b),
    lambda a, b: burn.take(a, b[0].astype("int64"), axis=0),
]


@pytest.mark.parametrize("function", BINARY)
def test_tensors_on_different_hardware_do_not_mix(function, elsewhere):
    here, there = tensor(X), burn.asarray(X, device=elsewhere)
    with pytest.raises(burn.DeviceMismatchError) as caught:
        function(here, there)
    message = str(caught.value)
    assert "cpu:0" in message
    assert "elsewhere:0" in message
    assert ".to_device(" in message


def test_a_tensor_moves_to_other_hardware_and_back(elsewhere):
    x = tensor(X)
    there = x.to_device(elsewhere)
    assert there.device is elsewhere
    assert there.to_device("cpu").tolist() == X


def test_nan_goes_where_it_should():
    nan = math.nan
    x = tensor([1.0, nan, 3.0])
    assert math.isnan(float(x.max()))
    assert math.isnan(float(x.min()))
    assert int(x.argmax()) == 1
    assert int(x.argmin()) == 1
    assert x.argsort().tolist() == [0, 2, 1]
    assert burn.equal(x, x).tolist() == [True, False, True]
    assert math.isnan(burn.sign(x).tolist()[1])
    assert math.isnan(F.relu(x).tolist()[1])
    assert x.astype("int32").tolist() == [1, 0, 3]


def test_empty_tensors_have_defined_results():
    x = burn.zeros((0, 3), device=CPU)
    assert x.sum().item() == 0.0
    assert x.prod().item() == 1.0
    assert math.isnan(x.mean().item())
    assert x.sum(axis=0).tolist() == [0.0, 0.0, 0.0]
    assert (x @ burn.zeros((3, 2), device=CPU)).shape == (0, 2)
    assert (burn.zeros((2, 0), device=CPU) @ burn.zeros((0, 2), device=CPU)).tolist() == [
        [0.0, 0.0],
        [0.0, 0.0],
    ]
    assert not x.any()
    assert x.all()
    assert F.softmax(x, axis=0).shape == (0, 3)
    assert burn.concat([x, x]).shape == (0, 3)
    assert burn.random.normal((0, 2), device=CPU).shape == (0, 2)
    for function in (burn.max, burn.min, burn.argmax):
        with pytest.raises(burn.ShapeError, match="no elements"):
            function(x, axis=0)


@pytest.mark.parametrize("mode", ["raise", "warn", "ignore"])
def test_neither_numpys_error_state_nor_warning_filters_change_a_result(mode):
    x = tensor([0.0, 1.0, -1.0])
    integers = tensor([7, 8, 9], dtype="int8")
    with np.errstate(all=mode):
        assert (1.0 / x).tolist() == [math.inf, 1.0, -1.0]
        assert burn.log(x).tolist()[:2] == [-math.inf, 0.0]
        assert math.isnan(burn.sqrt(x).tolist()[2])
        assert (integers // 0).tolist() == [0, 0, 0]
        assert (integers % 0).tolist() == [0, 0, 0]
        assert burn.exp(x * 1000).tolist()[1] == math.inf
        tracked = burn.asarray([0.0], device=burn.Device(CPU).autodiff()).require_grad()
        gradient = tracked.grad(burn.log(tracked).sum().backward())
        assert gradient.tolist() == [math.inf]
        assert np.geterr()["divide"] == mode


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w, _: (w * w).backward(True), "cotangent must be a tensor"),
        (lambda w, _: (w * w).backward([1.0]), "cotangent must be a tensor"),
        (lambda w, gradients: w.grad_replace(gradients, None), "grad must be a tensor"),
        (lambda w, gradients: w.grad_replace(gradients, 1.0), "grad must be a tensor"),
        (lambda w, _: w.grad(None), "gradients must be what backward() returned"),
        (lambda w, _: w.grad_remove(w), "gradients must be what backward() returned"),
        (lambda w, _: w.grad_replace(w, w.detach()), "gradients must be what backward() returned"),
    ],
)
def test_what_is_no_gradient_is_refused(call, message):
    w = burn.asarray([1.0], device=burn.Device("cpu").autodiff()).require_grad()
    with pytest.raises(burn.OperandTypeError) as caught:
        call(w, (w * w).backward())
    assert message in str(caught.value)


LAYERS = {
    **dict.fromkeys(
        ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "DeformConv2d"),
        (2, 4, 3),
    ),
    **dict.fromkeys(("Linear", "GroupNorm", "Embedding"), (2, 4)),
    "MultiHeadAttention": (4, 2),
    **dict.fromkeys(("ZeroPad1d", "ReflectionPad2d", "CircularPad3d", "LayerNorm"), (2,)),
    "Bilinear": (2, 3, 4),
    "RotaryEncoding": (4, 8),
    "LSTM": (2, 4),
    "TransformerEncoderLayer": (4, 2, 8),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_gets_no_number_says_so(name):
    layer, arguments = getattr(burn.nn, name), LAYERS[name]
    parameters = list(inspect.signature(layer).parameters.values())
    layer(*arguments)
    for wrong in (None, object(), "wrong"):
        for index in range(len(arguments)):
            given = [*arguments[:index], wrong, *arguments[index + 1 :]]
            with pytest.raises(burn.BurnError):
                layer(*given)
        for parameter in parameters[len(arguments) :]:
            with contextlib.suppress(burn.BurnError):
                layer(*arguments, **{parameter.name: wrong})


def test_muon_takes_coefficients_alone():
    with pytest.raises(burn.BurnError, match="a coefficient must be a number"):
        burn.optim.Muon(coefficients=None)
