"""Schemes, calibration, products and gradients as the Rust framework burn tries them."""

import math

import numpy as np
import pytest

import burn
from burn.errors import BurnError
from burn.quantization import (
    Calibration,
    CalibrationRange,
    QParams,
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    compute_q_params,
    compute_range,
    default_quant_scheme,
)
from burn.tensor_data import TensorData
from burn.testing import assert_close, quantization_reference as reference

CPU = burn.Device("cpu")
INT8 = QuantScheme(QuantValue.Q8S, QuantStore.NATIVE)
INT8_BLOCK = INT8.per_block((16,), ScaleDType.F32)

WEIGHT = [
    [0.5, -1.0, 0.25, 2.0],
    [1.5, 0.0, -0.75, 1.0],
    [-2.0, 0.5, 1.25, -0.5],
    [0.75, -1.5, 0.0, 1.75],
]
ROWS = [[1.0, -2.0, 0.5, 1.5], [0.0, 1.0, -1.0, 2.0]]


def devices():
    for device in burn.Device.enumerate():
        yield pytest.param(
            device, id=device.name, marks=() if device.name == "cpu:0" else pytest.mark.exhaustive
        )


on_devices = pytest.mark.parametrize("device", list(devices()))


def tensor(values, device=CPU):
    return burn.asarray(np.array(values, np.float32), device=device)


def quantized(values, scheme=INT8, device=CPU):
    return tensor(values, device).quantize_dynamic(scheme)


def counted(*shape, divisor=1.0):
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape) / np.float32(divisor)


def blocks_by_hand(x, size, high=127.0):
    """Runs of elements with a scale each, quantized and restored by float64."""
    runs = x.astype(np.float64).reshape(-1, size)
    scales = np.abs(runs).max(1, keepdims=True) / high
    return (np.rint(runs / scales) * scales).reshape(x.shape)


# Quantizing.


@on_devices
def test_a_tensor_is_quantized_with_a_given_scale(device):
    x = tensor([-1.8, -1.0, 0.0, 0.5], device)
    q = x.quantize(INT8, QParams(tensor([0.014173228], device)))
    data = q.data()
    assert data == TensorData.quantized([-127, -71, 0, 35], [4], INT8, [0.014173228])
    assert data.codes.tolist() == [-127, -71, 0, 35]
    assert data.scales.tolist() == [np.float32(0.014173228)]
    assert_close(q.dequantize(), x, atol=0.1, rtol=0.01)


@on_devices
def test_a_tensor_is_quantized_by_its_range(device):
    data = quantized([5.0, 0.0, 4.0, -12.7], device=device).data()
    assert data == TensorData.quantized([50, 0, 40, -127], [4], INT8, [0.1])


@on_devices
def test_a_product_with_a_number_is_that_of_the_restored_numbers(device):
    x = counted(32)
    expected = blocks_by_hand(x, 32) * 10
    assert_close(quantized(x, device=device) * 10, expected, rtol=1e-5)


@on_devices
@pytest.mark.parametrize("store", [QuantStore.NATIVE, QuantStore.packed_u32()])
def test_a_matrix_with_one_scale_is_restored(device, store):
    x = counted(16, 16)
    q = quantized(x, INT8.with_store(store), device)
    assert_close(q.dequantize(), blocks_by_hand(x, 256), rtol=1e-5)


@on_devices
@pytest.mark.parametrize("store", [QuantStore.NATIVE, QuantStore.packed_u32()])
def test_a_matrix_in_blocks_is_restored(device, store):
    x = counted(16, 16)
    scheme = INT8.with_store(store).with_level(QuantLevel.per_block(2, 16))
    assert_close(quantized(x, scheme, device).dequantize(), blocks_by_hand(x, 32), rtol=1e-5)


@on_devices
@pytest.mark.parametrize("store", [QuantStore.NATIVE, QuantStore.packed_u32()])
@pytest.mark.parametrize(
    ("shape", "block"), [((8, 32), ()), ((48, 64), ()), ((32, 64), (32,))], ids=str
)
def test_a_transposed_tensor_is_quantized(shape, block, store, device):
    x = tensor(counted(*shape, divisor=math.prod(shape)), device)
    scheme = INT8.with_store(store).with_level(QuantLevel(block))
    assert_close(x.T.quantize_dynamic(scheme).dequantize().T, x, rtol=0.01, atol=0.01)


@on_devices
def test_a_permuted_tensor_is_quantized(device):
    x = tensor(counted(2, 4, 8, 32, divisor=2048.0), device)
    q = burn.permute_dims(x, (1, 2, 0, 3)).quantize_dynamic(INT8)
    assert_close(burn.permute_dims(q.dequantize(), (2, 0, 1, 3)), x, rtol=0.01, atol=0.01)


@pytest.mark.parametrize(
    ("values", "atol"),
    [
        ([10.0], 0.2),
        ([5.0, 10.0, 15.0], 0.3),
        ([1.0, 2.0, 3.0, 4.0], 0.1),
        ([1.5, 2.5, 3.5, 4.5, 5.5], 0.1),
        ([-10.0, -5.0, 0.0, 5.0, 10.0], 0.15),
        ([0.0, 0.0, 0.0], 1e-5),
        ([1000.0], 10.0),
    ],
)
def test_what_is_quantized_is_restored(values, atol):
    assert_close(quantized(values).dequantize(), values, atol=atol, rtol=0.0)


# Host data.


@on_devices
@pytest.mark.parametrize("store", [QuantStore.NATIVE, QuantStore.packed_u32()])
def test_host_data_comes_back_to_the_bit(store, device):
    codes = [-127, -71, 0, 35, -127, -71, 0, 35, -32, -63, -95, -127, -32, -63, -95, -127]
    one = TensorData.quantized(codes[:4], [4], INT8.with_store(store), [0.014173228])
    scheme = INT8.with_store(store).with_level(QuantLevel.per_block(8))
    two = TensorData.quantized(codes, [16], scheme, [0.014173228, 0.00031496])
    for data in one, two:
        x = burn.asarray(data, device=device)
        assert x.data() == data
        assert burn.asarray(x.data(), device=device).data() == data


# Calibration.


@on_devices
def test_the_range_of_a_tensor(device):
    found = compute_range(INT8, tensor([-1.8, -1.0, 0.0, 0.5], device), Calibration.MIN_MAX)
    np.testing.assert_array_equal(found.min.numpy(), np.array([-1.8], np.float32))
    np.testing.assert_array_equal(found.max.numpy(), np.array([0.5], np.float32))


@on_devices
def test_the_ranges_of_blocks(device):
    x = [
        [-1.8, -1.0, 0.0, 0.5],
        [1.8, 1.0, 0.0, -0.5],
        [0.01, 0.02, 0.03, 0.04],
        [-0.01, -0.02, -0.03, -0.04],
    ]
    scheme = INT8.with_level(QuantLevel.per_block(4))
    found = compute_range(scheme, tensor(x, device), Calibration.MIN_MAX)
    low, high = [[-1.8], [-0.5], [0.01], [-0.04]], [[0.5], [1.8], [0.04], [-0.01]]
    np.testing.assert_array_equal(found.min.numpy(), np.array(low, np.float32))
    np.testing.assert_array_equal(found.max.numpy(), np.array(high, np.float32))


@on_devices
def test_the_range_of_the_mean_of_magnitudes(device):
    scheme = INT8.with_value(QuantValue.Q2S)
    x = tensor([[-0.9, -0.3, 0.0, 0.6], [0.1, 0.2, 0.3, 0.4]], device)
    found = compute_range(scheme, x[0], Calibration.ABS_MEAN)
    assert_close(found.min, [-0.45])
    assert_close(found.max, [0.45])
    found = compute_range(scheme.with_level(QuantLevel.per_block(4)), x, Calibration.ABS_MEAN)
    assert_close(found.min, [[-0.45], [-0.25]])
    assert_close(found.max, [[0.45], [0.25]])


def test_the_mean_of_magnitudes_is_for_one_level():
    scheme = INT8.with_value(QuantValue.Q2S).with_scale_dtype(ScaleDType.F16)
    scheme = scheme.with_level(QuantLevel.two_level(4))
    with pytest.raises(BurnError, match="two levels"):
        compute_range(scheme, tensor([1.0, 2.0, 3.0, 4.0]), Calibration.ABS_MEAN)


@on_devices
def test_scales_of_ranges(device):
    ends = CalibrationRange(tensor([0.5], device), tensor([1.8], device))
    assert_close(compute_q_params(INT8, ends).scales, [0.01417323])
    low, high = [-1.8, -0.5, 0.01, -0.04], [0.5, 1.8, 0.04, -0.01]
    ends = CalibrationRange(tensor(low, device), tensor(high, device))
    scheme = INT8.per_block((4,), ScaleDType.F32)
    expected = [0.01417323, 0.01417323, 0.00031496, 0.00031496]
    assert_close(compute_q_params(scheme, ends).scales, expected, rtol=2e-5)


@on_devices
def test_a_scale_beyond_its_dtype_is_the_largest_and_values_are_clamped(device):
    x = tensor([[1e7, 1.0, -2e7, 4.0]], device)
    scheme = INT8.per_block((4,), ScaleDType.F16)
    expected = [[127 * 65504.0, 0.0, -127 * 65504.0, 0.0]]
    assert burn.quantization.quantize_dynamic(x, scheme).dequantize().tolist() == expected
    ends = CalibrationRange(tensor([-2e7], device), tensor([1e7], device))
    assert compute_q_params(scheme, ends).scales.tolist() == [65504.0]


@on_devices
def test_scales_of_two_levels(device):
    low, high = [-1.8, -0.5, 0.01, -0.04], [0.5, 1.8, 0.04, -0.01]
    ends = CalibrationRange(tensor(low, device), tensor(high, device))
    one = INT8.per_block((4,), ScaleDType.F32)
    two = INT8.per_block((4,), ScaleDType.UE4M3).per_tensor(ScaleDType.F32)
    found = compute_q_params(two, ends)
    assert burn.max(found.scales).item() == 448.0
    expected = compute_q_params(one, ends).scales
    # Rounded up to 4 bits of significand.
    ratio = (found.scales * found.global_ / expected).numpy()
    assert (ratio > 1 - 1e-6).all()
    assert (ratio < 1 + 2**-3).all()


@on_devices
def test_scales_of_two_levels_of_zeros_are_finite(device):
    zeros = tensor([0.0, 0.0, 0.0, 0.0], device)
    scheme = INT8.per_block((4,), ScaleDType.UE4M3).per_tensor(ScaleDType.F32)
    found = compute_q_params(scheme, CalibrationRange(zeros, zeros))
    assert found.global_.item() > 0.0
    assert np.isfinite(found.scales.numpy()).all()
    q = zeros.quantize_dynamic(scheme)
    np.testing.assert_array_equal(q.dequantize().numpy(), np.zeros(4, np.float32))


def test_arithmetic_gives_floats_by_default():
    x = quantized([[1.0, 6.35, 0.0, 0.0], [2.0, 3.0, 0.0, 0.0], [1.0, 3.0, 0.0, 0.0]])
    assert (x + 1.0).dtype is burn.float32
    assert default_quant_scheme(CPU) == CPU.settings.quantization.scheme


# Errors by the bits of a scheme.


def normal_numbers(scale):
    """Normal numbers of 64 rows, by Box and Muller from multiples of the golden ratio."""
    u, v = (np.arange(1, 4097) * step % 1.0 for step in (0.6180339887498949, 0.7548776662466927))
    x = np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v) * scale
    return x.reshape(64, 64).astype(np.float32)


def relative_error(x, scheme):
    restored = quantized(x, scheme).dequantize().numpy()
    return np.linalg.norm(restored - x) / np.linalg.norm(x)


def of_blocks(scale_dtype):
    return INT8.per_block((32,), scale_dtype)


def test_scales_of_8_bits_alone_are_too_coarse_for_small_weights():
    x = normal_numbers(0.02)
    exact = relative_error(x, of_blocks(ScaleDType.F32))
    assert relative_error(x, of_blocks(ScaleDType.UE4M3)) > 2.0 * exact
    two_levels = of_blocks(ScaleDType.UE4M3).per_tensor(ScaleDType.F32)
    assert relative_error(x, two_levels) < 1.3 * exact


def test_the_error_follows_from_the_dtype_of_scales():
    x = normal_numbers(1.0)
    exact = relative_error(x, of_blocks(ScaleDType.F32))
    assert abs(relative_error(x, of_blocks(ScaleDType.F16)) - exact) < 0.2 * exact
    assert exact < relative_error(x, of_blocks(ScaleDType.UE4M3)) < 1.3 * exact


@pytest.mark.parametrize("scale", [ScaleDType.F32, ScaleDType.F16, ScaleDType.BF16])
def test_no_number_is_further_from_its_code_than_half_a_step(scale):
    x = normal_numbers(1.0)
    for value in (QuantValue.Q8S, QuantValue.Q4S, QuantValue.Q2S):
        scheme = INT8.with_value(value).per_block((16,), scale)
        q = quantized(x, scheme)
        steps = reference.scale_numbers_at(q.data().scales, scale)
        error = np.abs(q.dequantize().numpy() - x).reshape(64, 4, 16)
        assert (error <= steps[..., None] * (0.5 + 1e-6)).all()


# Products.


@on_devices
def test_a_product_of_floats_and_a_quantized_matrix(device):
    x = tensor([[1.0, 6.35, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0], [1.0, 3.0, 5.0, 7.0]], device)
    weight = [
        [4.0, 8.0, 12.7, 1.6],
        [2.0, 3.0, 6.0, 4.0],
        [1.0, 5.0, 9.0, 2.5],
        [3.0, 7.0, 11.0, 0.5],
    ]
    found = x @ quantized(weight, device=device)
    assert found.dtype.is_float
    expected = [[27.7, 58.05, 101.8, 33.5], [33.0, 80.0, 134.4, 27.7], [36.0, 91.0, 152.7, 29.6]]
    assert_close(found, expected, rtol=1e-4)


@on_devices
def test_a_product_of_floats_and_a_matrix_in_blocks(device):
    x = tensor([[1.0, 6.35, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0], [1.0, 3.0, 5.0, 7.0]], device)
    weight = (np.arange(64) * 0.6180339887 % 1.0 * 10.0).reshape(4, 16).astype(np.float32)
    found = x @ quantized(weight, INT8_BLOCK, device)
    assert found.dtype.is_float
    assert_close(found, x.numpy() @ quantized(weight, INT8_BLOCK).numpy(), rtol=1e-4)
    half_a_step = 0.5 * 10.0 / 127.0
    assert_close(found, x.numpy() @ weight, rtol=0.0, atol=half_a_step * 16.0)


@on_devices
def test_a_product_with_ternary_weights(device):
    x = tensor([[0.5, -1.2, 0.3, 2.0], [1.0, 0.0, -0.7, 0.4], [-2.0, 1.5, 0.1, -0.3]], device)
    weight = [[0.9, -0.2, 0.5], [-0.8, 0.1, 0.7], [0.0, 0.6, -0.4], [0.3, -0.9, 0.2]]
    q = quantized(weight, INT8.with_value(QuantValue.Q2S), device)
    assert_close(x @ q, x @ q.dequantize())
    zeros = quantized(np.zeros((4, 1)), INT8.with_value(QuantValue.Q2S), device)
    assert_close(x @ zeros, np.zeros((3, 1), np.float32))


# Gradients.


@on_devices
def test_gradients_pass_a_restored_weight_by(device):
    tracked = device.autodiff()
    w = quantized(WEIGHT, device=tracked).dequantize()
    a = [[0.5, -0.25], [1.0, 0.75], [-0.5, 0.25], [0.25, 1.0]]
    b = [[1.0, 0.5, -0.5, 0.25], [-0.25, 1.5, 0.75, -1.0]]
    found = []
    for base in w, tensor(w.numpy(), tracked):
        leaves = [tensor(item, tracked).require_grad() for item in (ROWS, a, b)]
        x, left, right = leaves
        gradients = burn.sum(x @ (base + left @ right)).backward()
        found.append([leaf.grad(gradients).numpy() for leaf in leaves])
        assert base.grad(gradients) is None
    for item, other in zip(*found, strict=True):
        assert_close(item, other)


@on_devices
def test_the_gradient_of_a_product_with_a_quantized_weight(device):
    tracked = device.autodiff()
    w = quantized(WEIGHT, device=tracked)
    x = tensor(ROWS, tracked).require_grad()
    gradient = x.grad(burn.sum(x @ w).backward())
    expected = np.ones((2, 4)) @ w.dequantize().numpy().T
    assert_close(gradient, expected.astype(np.float32))


@on_devices
def test_quantizing_leaves_the_graph(device):
    x = tensor([[-1.8, -1.0, 0.0, 0.5], [0.25, 1.0, 1.5, -0.75]], device.autodiff())
    restored = x.require_grad().quantize_dynamic(INT8).dequantize()
    assert not restored.is_tracked
    assert_close(restored, x, rtol=0.1, atol=0.1)


def test_the_lengths_of_a_block_are_arguments_or_one_sequence():
    assert (
        QuantLevel.per_block((2, 4)) == QuantLevel.per_block([2, 4]) == QuantLevel.per_block(2, 4)
    )
    assert QuantLevel.two_level([4]) == QuantLevel.two_level(4)
