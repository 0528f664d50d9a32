"""Quantized models: selection of layers, reports, activations, training, states, figures."""

import copy
import importlib
import pickle
from pathlib import Path

import numpy as np
import pytest

import burn
from burn import nn
from burn.nn import functional as F
from burn.quantization import (
    Calibration,
    QDType,
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    compute_range,
    join_state,
    split_state,
)

EXAMPLES = Path(__file__).parents[2] / "examples"

PLAIN = burn.Device("cpu")
AUTODIFF = PLAIN.autodiff()

BLOCKS = QuantScheme().per_block((1, 32), ScaleDType.F32)
FOUR_BITS = QuantScheme(QuantValue.Q4S).per_block((1, 32), ScaleDType.F16)
ROWS = QuantScheme(QuantValue.Q8S, QuantStore.NATIVE).per_block((1, -1), ScaleDType.F32)
TENSOR = QuantScheme(QuantValue.Q8S, QuantStore.NATIVE)

DEVICES = [
    device
    for device in burn.Device.enumerate()
    if device.backend_name not in ("pure", "strict") and device.supports_dtype(burn.int8)
]
on_each_device = pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)


def restored(weight, scheme):
    """What quantization by MinMax leaves of an array: float32 scales, integer values, one block."""
    low, high = scheme.value.range
    blocks = weight.astype(np.float32).reshape(*weight.shape[:-1], -1, scheme.level.block[-1])
    scales = np.abs(blocks).max(axis=-1, keepdims=True) / np.float32((high - low) / 2)
    codes = np.clip(np.rint(blocks / np.where(scales == 0, 1, scales)), low, high)
    return (codes * scales).reshape(weight.shape)


class Model(nn.Module):
    """A table that is tied to the last layer, a convolution, and layers in a list."""

    def __init__(self, device):
        self.table = nn.Embedding(32, 64, device=device)
        self.body = [nn.Linear(64, 64, device=device), nn.LayerNorm(64, device=device)]
        self.filter = nn.Conv1d(64, 64, 3, padding=1, device=device)
        self.head = nn.Linear(64, 32, bias=False, device=device)
        self.head.weight = self.table.weight

    def forward(self, indices):
        x = self.table(indices)
        for layer in self.body:
            x = layer(x)
        return self.head(F.relu(self.filter(x.mT)).mT)


def model(device=PLAIN, seed=0):
    device.seed(seed)
    return Model(device)


def indices(device=PLAIN):
    return burn.asarray([[3, 0, 31, 7], [1, 1, 2, 30]], device=device)


def inputs(device=PLAIN, shape=(8, 64)):
    device.seed(1)
    return burn.random.normal(shape, device=device)


def linear(device=PLAIN, **options):
    device.seed(2)
    return nn.Linear(64, 32, device=device, **options)


# Weights.


@on_each_device
def test_weights_become_quantized_and_all_else_stays(device):
    net = model(device)
    weight, bias, norm = net.body[0].weight, net.body[0].bias, net.body[1].weight
    before = weight.numpy().copy()
    net.quantize(BLOCKS, only=nn.Linear)
    assert net.body[0].weight is weight
    assert weight.dtype is QDType(BLOCKS)
    assert bias.dtype is norm.dtype is burn.float32
    np.testing.assert_array_equal(weight.dequantize().numpy(), restored(before, BLOCKS))


@on_each_device
@pytest.mark.parametrize("scheme", [BLOCKS, FOUR_BITS, QuantScheme()], ids=str)
def test_a_quantized_model_computes_with_the_restored_weights(device, scheme):
    net, other = model(device), model(device)
    net.quantize(scheme)
    layers = dict(other.named_modules())
    for path, layer in net.named_modules():
        if isinstance(layer, (nn.Linear, nn.Embedding, nn.Conv1d)):
            layers[path].weight.assign(layer.weight.dequantize())
    expected = other(indices(device)).numpy()
    np.testing.assert_allclose(net(indices(device)).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_tied_weights_remain_one_tensor():
    net = model()
    report = net.quantize(BLOCKS)
    assert net.head.weight is net.table.weight
    assert [row.path for row in report.rows] == ["table", "body.0", "filter"]


def test_a_table_that_is_tied_to_a_selected_layer_keeps_its_dtype():
    net = model().astype("bfloat16")
    net.quantize(BLOCKS, only="head")
    assert net.table(indices()).dtype is burn.bfloat16
    nn.prepare_qat(other := model(AUTODIFF), BLOCKS)
    other.quantize()
    assert type(other.table.quantization) is nn.QuantizedEmbeddingTable
    assert not hasattr(other.head, "quantization")


def test_a_weight_whose_last_axis_is_not_divisible_is_packed_along_another():
    scheme = QuantScheme(QuantValue.Q4F).with_level(QuantLevel.per_block(1, -1, -1))
    layer = nn.Conv1d(16, 8, 3, device=PLAIN)
    expected = layer.weight.numpy()
    layer.quantize(scheme, calibration=Calibration.MIN_MAX)
    assert layer.weight.dtype.scheme.store == QuantStore.packed_u32(-2)
    error = np.abs(layer.weight.dequantize().numpy() - expected).max(axis=(1, 2))
    assert (error <= np.abs(expected).max(axis=(1, 2)) / 7.5).all()


def test_a_weight_that_the_blocks_do_not_divide_stays_float_and_the_report_says_so():
    net = nn.Sequential(nn.Linear(64, 8), nn.Linear(8, 4)).to("cpu")
    report = net.quantize(BLOCKS)
    assert [row.scheme for row in report.rows] == [BLOCKS, None]
    assert report.rows[1].note.startswith("stays float32: blocks of (1, 32) do not divide")
    assert net[1].weight.dtype is burn.float32


def test_a_scheme_that_fits_no_weight_is_an_error_and_changes_nothing():
    net = nn.Sequential(nn.Linear(8, 4), nn.ReLU()).to("cpu")
    with pytest.raises(burn.ShapeError, match="no weight was quantized: 0 stays float32: blocks"):
        net.quantize(BLOCKS)
    with pytest.raises(burn.ShapeError, match="the scheme fits no weight; 0: blocks"):
        nn.prepare_qat(net, BLOCKS)
    assert net[0].weight.dtype is burn.float32


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (None, ["0", "1.0", "1.1", "2"]),
        ("1.*", ["1.0", "1.1"]),
        (["0", "2"], ["0", "2"]),
        (nn.Conv1d, ["1.1"]),
        ((nn.Conv1d, "0"), ["0", "1.1"]),
        (nn.Sequential, ["0", "1.0", "1.1", "2"]),
        (lambda path, layer: path != "2" and isinstance(layer, nn.Linear), ["0", "1.0"]),
    ],
)
def test_only_selects_layers(only, expected):
    net = nn.Sequential(
        nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Conv1d(8, 8, 4)), nn.Linear(8, 8)
    ).to("cpu")
    assert [row.path for row in net.quantize(TENSOR, only=only).rows] == expected


def test_only_of_a_class_means_the_layers_below_its_modules():
    attention = nn.MultiHeadAttention(32, 4, device="cpu")
    net = nn.Sequential(nn.Linear(32, 32, device="cpu"), attention)
    paths = [row.path for row in net.quantize(only=nn.MultiHeadAttention).rows]
    assert paths == ["1.query", "1.key", "1.value", "1.output"]
    x = inputs(shape=(2, 5, 32))
    assert net(x).shape == (2, 5, 32)


@pytest.mark.parametrize(
    ("only", "error", "message"),
    [
        ("head", burn.ArgumentError, "fits 'head'. There are 0, 1$"),
        (nn.Embedding, burn.ArgumentError, "fits Embedding"),
        (3, burn.OperandTypeError, "only is an object of type int"),
    ],
)
def test_what_fits_no_layer_is_an_error(only, error, message):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    with pytest.raises(error, match=message):
        net.quantize(only=only)


def test_a_model_without_such_layers_is_an_error():
    with pytest.raises(burn.ArgumentError, match="ReLU has no layer whose weights"):
        nn.ReLU().quantize()


def test_a_scheme_is_checked():
    with pytest.raises(burn.OperandTypeError, match="scheme is an object of type str"):
        linear().quantize("int8")


def test_a_model_that_is_quantized_already_stays_as_it_is():
    layer = linear()
    layer.quantize(BLOCKS)
    with pytest.raises(burn.ArgumentError, match="quantized already"):
        layer.quantize(FOUR_BITS)
    assert layer.weight.dtype is QDType(BLOCKS)


def test_absolute_means_as_ranges():
    layer = linear()
    weight = layer.weight.numpy()
    scheme = QuantScheme(QuantValue.Q2S, QuantStore.NATIVE)
    layer.quantize(scheme, calibration=Calibration.ABS_MEAN)
    scale = np.abs(weight, dtype=np.float64).mean()
    expected = np.clip(np.rint(weight / scale), -1, 1) * scale
    np.testing.assert_allclose(layer.weight.dequantize().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("value", [QuantValue.Q2S, QuantValue.Q4F, QuantValue.E2M1])
def test_ranges_of_least_error_have_less_error(value):
    scheme = QuantScheme(value, QuantStore.NATIVE).per_block((1, 32), ScaleDType.F32)
    errors = {}
    for calibration in Calibration:
        (row,) = linear().quantize(scheme, calibration=calibration).rows
        errors[calibration] = row.relative_error
    assert errors[Calibration.MIN_ERROR] < 0.96 * errors[Calibration.MIN_MAX]
    assert errors[Calibration.MIN_ERROR] < errors[Calibration.ABS_MEAN]


def test_ranges_of_least_error_are_shares_of_the_largest_magnitude():
    weight = linear().weight
    scheme = QuantScheme(QuantValue.Q4S, QuantStore.NATIVE).per_block((1, 32), ScaleDType.F32)
    found = compute_range(scheme, weight, Calibration.MIN_ERROR)
    blocks = weight.numpy().astype(np.float64).reshape(32, 2, 32)
    shares = np.arange(100, 39, -2)[:, None, None, None] / 100
    scales = np.abs(blocks).max(axis=-1, keepdims=True) * shares / 7
    errors = (np.clip(np.rint(blocks / scales), -7, 7) * scales - blocks) ** 2
    best = 7 * np.take_along_axis(scales[..., 0], errors.sum(axis=-1).argmin(axis=0)[None], 0)[0]
    np.testing.assert_allclose(found.max.numpy(), best, rtol=1e-6)
    np.testing.assert_array_equal(found.min.numpy(), -found.max.numpy())


def test_ranges_are_by_default_of_least_error_for_fewer_than_8_bits():
    four = FOUR_BITS.with_scale_dtype(ScaleDType.F32)
    for scheme, expected in ((BLOCKS, Calibration.MIN_MAX), (four, Calibration.MIN_ERROR)):
        layer, other = linear(), linear()
        layer.quantize(scheme)
        other.quantize(scheme, calibration=expected)
        np.testing.assert_array_equal(layer.weight.numpy(), other.weight.numpy())


# Reports.


def test_the_report_has_the_error_of_each_layer_and_the_bytes():
    net = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 16, bias=False)).to("cpu")
    weights = [layer.weight.numpy().copy() for layer in net]
    report = net.quantize(BLOCKS)
    for weight, row in zip(weights, report.rows, strict=True):
        difference = restored(weight, BLOCKS) - weight
        error = np.linalg.norm(difference) / np.linalg.norm(weight)
        assert row.relative_error == pytest.approx(error, rel=1e-4)
        assert row.largest_error == pytest.approx(np.abs(difference).max(), rel=1e-5)
        assert row.bytes_before == 4 * weight.size
        assert row.bytes_after == weight.size + 4 * weight.size // 32
    assert report.bytes_before == 4 * (64 * 32 + 32 + 32 * 16)
    lines = str(report).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("0: Linear(64, 32)")
    assert str(BLOCKS) in lines[2]
    assert lines[3].split()[-2:] == ["10,368", "3,008"]


@pytest.mark.parametrize(
    ("scheme", "bits"),
    [
        (QuantScheme(), 8),
        (BLOCKS, 8 + 32 / 32),
        (FOUR_BITS, 4 + 16 / 32),
        (QuantScheme(QuantValue.Q2S), 2),
        (QuantScheme(QuantValue.E2M1).per_block((1, 32), ScaleDType.UE4M3), 4 + 8 / 32),
    ],
    ids=str,
)
def test_a_quantized_model_takes_the_memory_of_its_bits(scheme, bits):
    layer = nn.Linear(512, 512, bias=False, device="cpu")
    report = layer.quantize(scheme)
    assert report.bytes_after == pytest.approx(512 * 512 * bits / 8, rel=0.001)
    assert len(pickle.dumps(layer)) == pytest.approx(512 * 512 * bits / 8, rel=0.05)


def test_a_weight_of_zeros_has_no_error():
    layer = linear()
    layer.weight.assign(burn.zeros_like(layer.weight))
    (row,) = layer.quantize(BLOCKS).rows
    assert (row.relative_error, row.largest_error) == (0.0, 0.0)


# Dtypes.


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_layers_keep_the_dtype_that_they_computed_in(dtype):
    net = model().astype(dtype)
    assert net(indices()).dtype.name == dtype
    net.quantize(BLOCKS)
    assert net(indices()).dtype.name == dtype
    assert net.astype("float32")(indices()).dtype is burn.float32


def test_a_precision_holds_for_a_quantized_model():
    net = model()
    net.quantize(BLOCKS)
    expected = net(indices()).numpy()
    net.set_precision(nn.Precision(compute="bfloat16", output=None))
    assert net.table(indices()).dtype is burn.float32
    found = net(indices())
    assert found.dtype is burn.bfloat16
    np.testing.assert_allclose(found.astype("float32").numpy(), expected, rtol=0.1, atol=0.1)


# Activations.


@on_each_device
@pytest.mark.parametrize("scheme", [ROWS, TENSOR], ids=str)
def test_inputs_are_quantized_in_each_call(device, scheme):
    layer, x = linear(device), inputs(device)
    expected_weight = restored(layer.weight.numpy(), BLOCKS)
    layer.quantize(BLOCKS, activations=scheme)
    block = scheme.per_block((64,), ScaleDType.F32) if scheme is ROWS else None
    codes = (
        restored(x.numpy(), block)
        if block
        else restored(x.numpy().reshape(1, -1), TENSOR.per_block((512,), ScaleDType.F32))
    )
    expected = codes.reshape(8, 64).astype(np.float64) @ expected_weight.T + layer.bias.numpy()
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(layer(x=x).numpy(), layer(x).numpy(), rtol=1e-5, atol=1e-6)


@on_each_device
def test_scales_of_inputs_are_those_of_the_batches(device):
    net = nn.Sequential(linear(device), nn.ReLU(), nn.Linear(32, 8, device=device))
    batches = [0.5 * inputs(device), inputs(device)]
    hidden = net[:2](inputs(device)).numpy()
    net.quantize(TENSOR, activations=TENSOR, batches=batches)
    scales = [net[index].quantization.scales.numpy() for index in (0, 2)]
    assert scales[0].shape == (1,)
    np.testing.assert_array_equal(
        scales[0], np.abs(batches[1].numpy()).max(keepdims=True)[0] / np.float32(127)
    )
    np.testing.assert_allclose(scales[1], [hidden.max() / 127], rtol=1e-6)
    x = 3.0 * inputs(device)  # beyond the range: clamped
    codes = np.clip(np.rint(x.numpy() / scales[0]), -127, 127) * scales[0]
    weight = net[0].weight.dequantize().numpy()
    expected = codes.astype(np.float64) @ weight.T.astype(np.float64) + net[0].bias.numpy()
    np.testing.assert_allclose(net[0](x).numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batches", [None, [inputs()]], ids=["dynamic", "fixed"])
@pytest.mark.parametrize("scheme", [TENSOR, TENSOR.with_value(QuantValue.E4M3)], ids=str)
def test_products_of_codes_have_the_dtype_of_the_input(scheme, batches):
    for is_biased in (True, False):
        layer = linear(bias=is_biased)
        layer.quantize(ROWS.with_value(scheme.value), activations=scheme, batches=batches)
        expected = layer(inputs())
        for dtype in ("bfloat16", "float64"):
            found = layer.astype(dtype)(inputs().astype(dtype))
            assert found.dtype.name == dtype
            np.testing.assert_allclose(
                found.astype("float32").numpy(), expected.numpy(), rtol=0.05, atol=0.05
            )


def test_one_row_of_inputs_may_be_a_vector():
    layer = linear()
    layer.quantize(BLOCKS, activations=ROWS)
    rows = layer(inputs()).numpy()
    np.testing.assert_allclose(layer(inputs()[3]).numpy(), rows[3], rtol=1e-5, atol=1e-6)
    nn.prepare_qat(other := linear(), BLOCKS, activations=ROWS)
    assert other(inputs()[3]).shape == (32,)


def test_a_layer_with_a_float_weight_rounds_its_inputs():
    layer = linear()
    layer.quantize(BLOCKS, activations=ROWS)
    layer.weight.assign(layer.weight.dequantize())
    expected = F.linear(F.fake_quantize(inputs(), ROWS), layer.weight, layer.bias, transposed=True)
    np.testing.assert_allclose(layer(inputs()).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_batches_are_tensors_or_tuples_or_dicts_of_arguments():
    class Sum(nn.Module):
        def __init__(self):
            self.first, self.second = linear(), linear()

        def forward(self, x, y):
            return self.first(x) + self.second(y)

    x = inputs()
    for batch in [(x, x + 1), {"x": x, "y": x + 1}]:
        net = Sum()
        net.quantize(TENSOR, activations=TENSOR, batches=[batch])
        assert net.second.quantization.scales.item() > net.first.quantization.scales.item()


def test_calibration_and_training_hold_in_another_precision():
    net = nn.Sequential(linear(AUTODIFF), nn.ReLU(), nn.Linear(32, 8, device=AUTODIFF))
    net.set_precision(nn.Precision(compute="bfloat16"))
    nn.prepare_qat(net, BLOCKS, activations=TENSOR)
    gradients = (net(inputs(AUTODIFF)) ** 2).mean().backward()
    assert net[0].weight.grad(gradients).dtype is burn.float32
    net.quantize(batches=[inputs(AUTODIFF)])
    scales = [net[index].quantization.scales for index in (0, 2)]
    assert all(scale.dtype is burn.float32 for scale in scales)
    assert scales[0].item() == pytest.approx(np.abs(inputs().numpy()).max() / 127, rel=0.005)
    assert net(inputs(AUTODIFF)).dtype is burn.float32


def test_calibration_infers_and_leaves_no_trace():
    net = nn.Sequential(linear(AUTODIFF), nn.BatchNorm1d(32, device=AUTODIFF), nn.Dropout(0.5))
    mean = net[1].running_mean.numpy().copy()
    net.quantize(TENSOR, activations=TENSOR, batches=[inputs(AUTODIFF)])
    np.testing.assert_array_equal(net[1].running_mean.numpy(), mean)
    assert net.training
    assert type(net[0].quantization) is nn.QuantizedInputs


@pytest.mark.parametrize(
    ("activations", "batches", "message"),
    [
        (None, [1], "batches without a scheme of activations"),
        (ROWS, [1], "Blocks of an input differ from batch to batch"),
        (TENSOR, [], "batches are empty"),
        (TENSOR, [burn.full((2, 64), float("nan"), device="cpu")], "range from nan to nan"),
    ],
)
def test_what_cannot_be_calibrated_is_an_error_and_changes_nothing(activations, batches, message):
    layer = linear()
    with pytest.raises(burn.ArgumentError, match=message):
        layer.quantize(TENSOR, activations=activations, batches=batches)
    assert layer.weight.dtype is burn.float32
    assert not hasattr(layer, "quantization")


def test_a_layer_that_no_batch_reaches_is_an_error():
    class Half(nn.Module):
        def __init__(self):
            self.used, self.other = linear(), linear()

        def forward(self, x):
            return self.used(x)

    with pytest.raises(burn.ArgumentError, match="no batch reached the layer other"):
        Half().quantize(TENSOR, activations=TENSOR, batches=[inputs()])


def test_activations_can_be_added_to_quantized_weights():
    layer = linear()
    layer.quantize(BLOCKS)
    before = layer(inputs()).numpy()
    report = layer.quantize(activations=ROWS)
    assert report.rows[0].note == "is quantized already"
    after = layer(inputs()).numpy()
    assert 0 < np.abs(after - before).max() < 0.05
    del layer.quantization
    np.testing.assert_allclose(layer(inputs()).numpy(), before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        nn.BatchNorm1d(64, device=PLAIN),
        nn.LayerNorm(64, device=PLAIN),
        nn.RMSNorm(64, epsilon=None, device=PLAIN),
        nn.LSTMCell(64, 8, device=PLAIN),
        nn.GRU(64, 8, device=PLAIN),
        nn.Sequential(nn.GaussianNoise(0.1), nn.GELU(), nn.Linear(64, 8, device=PLAIN)),
        nn.SinusoidalEncoding(64, 8),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_take_quantized_inputs_as_the_numbers_they_stand_for(layer):
    codes = inputs().quantize_dynamic(BLOCKS)
    leaves = [burn.tree.leaves(layer(x)) for x in (codes, codes.dequantize())]
    for found, expected in zip(*leaves, strict=True):
        assert found.dtype is burn.float32
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_a_layer_that_quantizes_inputs_takes_quantized_ones():
    layer = linear()
    layer.quantize(BLOCKS, activations=ROWS)
    codes = inputs().quantize_dynamic(ROWS)
    assert layer(codes).dtype is burn.float32
    np.testing.assert_allclose(
        layer(codes).numpy(), layer(codes.dequantize()).numpy(), rtol=1e-4, atol=1e-4
    )


# Gradients and training.


@on_each_device
@pytest.mark.parametrize("activations", [None, ROWS], ids=str)
def test_gradients_pass_quantized_layers(device, activations):
    device = device.autodiff()
    layer = linear(device)
    layer.quantize(BLOCKS, activations=activations)
    x = inputs(device).require_grad()
    gradients = layer(x).sum().backward()
    expected = np.broadcast_to(layer.weight.dequantize().numpy().sum(axis=0), x.shape)
    np.testing.assert_allclose(x.grad(gradients).numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.bias.grad(gradients).numpy(), np.full(32, 8.0))
    assert [path for path, _ in layer.named_parameters()] == ["bias"]


def test_prepared_layers_compute_with_rounded_weights_and_have_gradients():
    net, other = linear(AUTODIFF), linear(AUTODIFF)
    x = inputs(AUTODIFF)
    assert nn.prepare_qat(net, FOUR_BITS) is net
    other.weight = F.fake_quantize(other.weight.detach(), FOUR_BITS)
    np.testing.assert_allclose(
        net(x).detach().numpy(), other(x).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    target = burn.ones((8, 32), device=AUTODIFF)
    found = net.weight.grad(((net(x) - target) ** 2).sum().backward())
    expected = other.weight.grad(((other(x) - target) ** 2).sum().backward())
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activations", [None, ROWS], ids=str)
def test_quantize_after_training_gives_what_was_trained(activations):
    net = nn.Sequential(linear(AUTODIFF), nn.ReLU(), nn.Linear(32, 32, device=AUTODIFF))
    optimizer = burn.optim.Adam(
        nn.prepare_qat(net, FOUR_BITS, activations=activations), learning_rate=0.01
    )
    x, target = inputs(AUTODIFF), burn.sin(inputs(AUTODIFF)[:, :32])
    losses = []
    for _ in range(40):
        loss = ((net(x) - target) ** 2).mean()
        optimizer.step(loss.backward())
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    expected = net(x).detach().numpy()
    report = net.quantize()
    assert {row.scheme for row in report.rows} == {FOUR_BITS}
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-3, atol=1e-3)
    plain = net.to(PLAIN)(inputs())
    np.testing.assert_allclose(plain.numpy(), expected, rtol=1e-3, atol=1e-3)


def test_training_for_two_bits_beats_rounding_afterwards():
    scheme = QuantScheme(QuantValue.Q2S, QuantStore.NATIVE).per_block((1, 32), ScaleDType.F32)
    losses = {}
    for is_prepared in (False, True):
        net = nn.Sequential(linear(AUTODIFF), nn.ReLU(), nn.Linear(32, 1, device=AUTODIFF))
        if is_prepared:
            nn.prepare_qat(net, scheme, calibration=Calibration.ABS_MEAN)
        optimizer = burn.optim.Adam(net, learning_rate=0.01)
        x = inputs(AUTODIFF, (64, 64))
        target = burn.sin(x[:, :1]) + x[:, 1:2]
        for _ in range(100):
            optimizer.step(((net(x) - target) ** 2).mean().backward())
        net.quantize(scheme)
        losses[is_prepared] = ((net(x) - target) ** 2).mean().item()
    assert losses[True] < 0.5 * losses[False]


def test_fake_quantization_takes_floats_and_quantized_tensors_and_a_scheme():
    codes = inputs().quantize_dynamic(ROWS)
    np.testing.assert_allclose(F.fake_quantize(codes, ROWS).numpy(), codes.numpy(), rtol=1e-6)
    with pytest.raises(burn.OperandTypeError, match="scheme must be a QuantScheme, not str"):
        F.fake_quantize(inputs(), "int8")
    with pytest.raises(burn.ShapeError, match="do not divide"):
        F.fake_quantize(inputs(shape=(8, 4)), BLOCKS)


def test_fake_quantization_is_rounding_whose_gradient_is_one():
    x = inputs(AUTODIFF).require_grad()
    y = F.fake_quantize(x, BLOCKS)
    np.testing.assert_array_equal(y.detach().numpy(), restored(x.detach().numpy(), BLOCKS))
    weight = burn.arange(64, dtype="float32", device=AUTODIFF)
    np.testing.assert_array_equal(
        x.grad((y * weight).sum().backward()).numpy(), np.broadcast_to(np.arange(64.0), (8, 64))
    )
    assert not F.fake_quantize(inputs(), BLOCKS).is_tracked
    gradient = burn.grad(lambda x: (F.fake_quantize(x, BLOCKS) * weight.inner()).sum())(inputs())
    np.testing.assert_array_equal(gradient.numpy(), np.broadcast_to(np.arange(64.0), (8, 64)))


# What modules do.


def test_a_state_has_the_quantized_tensors_and_loads():
    net, other = model(), model(seed=3)
    net.quantize(FOUR_BITS)
    state = net.state_dict()
    assert state["body.0.weight"].dtype is QDType(FOUR_BITS)
    expected = net(indices()).numpy()
    other.quantize(FOUR_BITS)
    assert not other.load_state_dict(state)
    np.testing.assert_allclose(other(indices()).numpy(), expected, rtol=1e-5, atol=1e-6)
    floats = model(seed=4)
    assert not floats.load_state_dict(state)
    assert floats.body[0].weight.dtype is burn.float32
    np.testing.assert_allclose(floats(indices()).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_state_of_floats_is_quantized_as_the_module_is():
    net, other = model(), model(seed=3)
    other.quantize(FOUR_BITS)
    other.load_state_dict(net.state_dict())
    net.quantize(FOUR_BITS, calibration=Calibration.MIN_MAX)
    np.testing.assert_allclose(
        other(indices()).numpy(), net(indices()).numpy(), rtol=1e-5, atol=1e-6
    )
    other.load_state_dict({path: x.numpy() for path, x in model().state_dict().items()})
    np.testing.assert_allclose(
        other(indices()).numpy(), net(indices()).numpy(), rtol=1e-5, atol=1e-6
    )


def test_a_state_in_parts_loads():
    net, other = model(), model(seed=3)
    net.quantize(FOUR_BITS)
    other.quantize(FOUR_BITS)
    tensors, schemes = split_state(net.state_dict())
    assert set(schemes) == {"table.weight", "body.0.weight", "head.weight"}
    arrays = {path: value.numpy() for path, value in tensors.items()}
    other.load_state_dict(join_state(arrays, schemes))
    np.testing.assert_allclose(
        other(indices()).numpy(), net(indices()).numpy(), rtol=1e-5, atol=1e-6
    )


def test_fixed_scales_are_in_the_state():
    net, other = linear(), linear()
    net.quantize(TENSOR, activations=TENSOR, batches=[inputs()])
    other.quantize(TENSOR, activations=TENSOR, batches=[5.0 * inputs()])
    assert "quantization.scales" in net.state_dict()
    other.load_state_dict(net.state_dict())
    np.testing.assert_allclose(other(inputs()).numpy(), net(inputs()).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_independent(copied):
    net = model()
    net.quantize(FOUR_BITS, activations=ROWS)
    expected = net(indices()).numpy()
    other = copied(net)
    assert other.head.weight is other.table.weight
    net.body[0].weight.assign(burn.zeros((64, 64), device=PLAIN))
    np.testing.assert_allclose(other(indices()).numpy(), expected, rtol=1e-5, atol=1e-6)


@on_each_device
def test_a_quantized_model_moves_to_another_device_by_its_bits(device):
    net = model()
    net.quantize(FOUR_BITS)
    expected = net(indices()).numpy()
    weight = net.body[0].weight.dequantize().numpy()
    net.to(device)
    assert net.body[0].weight.device == device
    np.testing.assert_array_equal(net.body[0].weight.dequantize().numpy(), weight)
    np.testing.assert_allclose(net(indices(device)).numpy(), expected, rtol=1e-4, atol=1e-4)
    assert net.to(device.autodiff()).body[0].weight.dtype is QDType(FOUR_BITS)
    assert net(indices(device)).is_tracked


def test_numbers_of_parameters_and_summaries_count_quantized_weights():
    net, other = model(), model()
    net.quantize(FOUR_BITS)
    assert net.num_parameters == other.num_parameters
    rows = {row.path: row for row in net.summary(indices()).rows}
    expected = {row.path: row for row in other.summary(indices()).rows}
    assert rows["body.0"].parameters == expected["body.0"].parameters
    assert rows["body.0"].outputs == expected["body.0"].outputs == ("float32[2, 4, 64]",)
    assert rows["body.0"].bytes < expected["body.0"].bytes


def test_the_representation_says_what_is_quantized():
    net = nn.Sequential(linear(), nn.ReLU(), nn.Linear(32, 4, device=PLAIN))
    net.quantize(FOUR_BITS, only="0")
    assert repr(net).splitlines() == [
        "Sequential(",
        "    Linear(64, 32),  # q4s",
        "    ReLU(),",
        "    Linear(32, 4),",
        ")",
    ]


def test_freezing_and_conversion_leave_quantized_weights():
    net = nn.Sequential(linear(AUTODIFF), nn.Linear(32, 4, device=AUTODIFF))
    net.quantize(FOUR_BITS, only="0")
    net.freeze().unfreeze("1.*").train().astype("float64")
    assert net[0].weight.dtype is QDType(FOUR_BITS)
    assert [path for path, x in net.named_parameters() if x.is_require_grad] == [
        "1.weight",
        "1.bias",
    ]
    doubled = net.map(lambda path, x: 2 * x)
    assert doubled[0].weight.dtype is QDType(FOUR_BITS)


@pytest.mark.parametrize("activations", [None, ROWS, TENSOR], ids=str)
def test_a_quantized_model_compiles(activations):
    net = model()
    net.quantize(BLOCKS, activations=activations)
    expected = net(indices()).numpy()
    compiled = burn.compile(net)
    np.testing.assert_allclose(compiled(indices()).numpy(), expected, rtol=1e-5, atol=1e-5)
    values = [burn.zeros((64, 64), device=PLAIN), inputs(shape=(64, 64))]
    for value in (values[1].quantize_dynamic(BLOCKS), *values):
        net.body[0].weight.assign(value)
        np.testing.assert_allclose(
            compiled(indices()).numpy(), net(indices()).numpy(), rtol=1e-5, atol=1e-5
        )


def test_a_prepared_model_trains_compiled():
    net = nn.Sequential(linear(AUTODIFF), nn.ReLU(), nn.Linear(32, 32, device=AUTODIFF))
    other = copy.deepcopy(net)
    x = inputs(AUTODIFF)
    found = []
    for function in (net, other):
        optimizer = burn.optim.SGD(nn.prepare_qat(function, FOUR_BITS), learning_rate=0.1)

        def step(x, one=function, optimizer=optimizer):
            loss = (one(x) ** 2).mean()
            optimizer.step(loss.backward())
            return loss.detach()

        run = burn.compile(step) if function is other else step
        found.append([run(x).item() for _ in range(3)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_a_quantized_model_is_a_constant_of_transforms():
    net = nn.Sequential(linear(), nn.Linear(32, 1, device=PLAIN))
    net.quantize(BLOCKS, only="0")
    gradient = burn.grad(lambda net, x: net(x).sum())(net, inputs())
    assert gradient[1].weight.shape == (1, 32)
    rows = burn.vmap(net)(inputs())
    np.testing.assert_allclose(rows.numpy(), net(inputs()).numpy(), rtol=1e-5, atol=1e-5)


# Figures.


def test_a_network_that_reads_digits_reads_as_many_in_8_and_4_bits(monkeypatch, everything):
    monkeypatch.syspath_prepend(EXAMPLES)
    digits = importlib.import_module("digits")
    AUTODIFF.seed(0)
    data = digits.load_data(AUTODIFF, "float32")
    net = digits.dense("float32", AUTODIFF)
    digits.train(net, data[0], digits.EPOCHS["dense"] if everything else 6)
    expected = [digits.accuracy(net, array) for array in data]
    for scheme, lost in ((BLOCKS, 0.002), (FOUR_BITS, 0.01)):
        other = copy.deepcopy(net)
        report = other.quantize(scheme)
        assert all(row.scheme == scheme for row in report.rows)
        found = [digits.accuracy(other, array) for array in data]
        assert all(item >= best - lost for item, best in zip(found, expected, strict=True))


def test_a_transformer_writes_as_well_in_8_and_4_bits(monkeypatch, everything, tmp_path):
    monkeypatch.syspath_prepend(EXAMPLES)
    characters = importlib.import_module("characters")
    AUTODIFF.seed(0)
    text = characters.Text(characters.TEXT)
    net = characters.Transformer(len(text.alphabet), AUTODIFF)
    characters.train(net, text, 1200 if everything else 12, 0, tmp_path)
    _, held_out = text.pieces()
    loader = burn.data.DataLoader(held_out, 64, device=AUTODIFF)
    batches = [(x[:, :-1], x[:, 1:]) for x in loader][: None if everything else 2]

    @burn.no_grad()
    def loss_of(net):
        return sum(F.cross_entropy(net(x), y).item() for x, y in batches) / len(batches)

    expected = loss_of(net)
    for scheme, lost in ((BLOCKS, 0.01), (FOUR_BITS, 0.05)):
        other = copy.deepcopy(net)
        report = other.quantize(scheme)
        assert all(row.scheme == scheme for row in report.rows)
        assert loss_of(other) <= expected + lost
