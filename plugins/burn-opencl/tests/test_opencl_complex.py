"""Complex numbers as pairs: products, parts near their limits, views of parts, zeros, many axes."""

import math

import numpy as np
import pytest

import burn
from burn_opencl.icd_loader import found_devices

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

RANDOM = np.random.default_rng(0)
LARGEST = {"complex64": 3e38, "complex128": 1.7e308}
SMALLEST = {"complex64": 1.2e-38, "complex128": 2.3e-308}  # subnormal ones may be flushed


def complexes(*shape):
    return RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)


@pytest.fixture(params=LARGEST)
def dtype(request):
    if not burn.Device("opencl").supports_dtype(request.param):
        pytest.skip(f"the device has no {request.param}")
    return request.param


def upload(values, dtype):
    return burn.asarray(np.asarray(values, dtype), device="opencl")


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("size", [5, 70])
def test_a_matrix_times_its_adjoint_is_hermitian_to_the_last_bit(with_kernels, kind, size, dtype):
    x = upload(complexes(size, 2 * size), dtype)
    with with_kernels(kind):
        product = (x @ burn.matrix_transpose(burn.conj(x))).numpy()
    assert np.array_equal(product, product.conj().T)
    assert not np.diagonal(product).imag.any()


@pytest.mark.parametrize(
    "shapes", [((2, 1, 3, 4), (5, 4, 2)), ((7, 3, 4), (4, 6)), ((3, 0), (0, 2)), ((0, 3), (3, 2))]
)
def test_products_broadcast_over_any_strides(shapes, dtype):
    left, right = (complexes(*shape).astype(dtype) for shape in shapes)
    x, y = upload(left, dtype), upload(right, dtype)
    for found, expected in (
        (x @ y, left @ right),
        (burn.flip(x, axis=-1) @ burn.flip(y, axis=-2), left @ right),
        (y.mT @ x.mT, right.swapaxes(-1, -2) @ left.swapaxes(-1, -2)),
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_parts_near_their_limits_do_not_overflow(dtype):
    large, small = LARGEST[dtype], SMALLEST[dtype]
    x = upload([complex(0.5 * large, 0.5 * large), complex(small, -small)], dtype)
    assert np.isfinite(burn.abs(x).numpy()).all()
    assert (x / x).tolist() == [1, 1]
    np.testing.assert_allclose((x / (1 + 1j)).numpy()[0], 0.5 * large, rtol=1e-6)
    np.testing.assert_allclose(np.abs(burn.sign(x).numpy()), 1, rtol=1e-6)
    root = burn.sqrt(x).numpy().astype(np.complex128)
    expected = np.sqrt(x.numpy().astype(np.clongdouble)).astype(np.complex128)
    np.testing.assert_allclose(root, expected, rtol=1e-6)
    expected = np.log(x.numpy().astype(np.clongdouble)).astype(np.complex128)
    np.testing.assert_allclose(burn.log(x).numpy(), expected, rtol=1e-6)
    exponent = complex(math.log(large) + 0.3, math.pi / 4)
    expected = np.exp(upload([exponent], dtype).numpy().astype(np.clongdouble))
    np.testing.assert_allclose(burn.exp(upload([exponent], dtype)).numpy(), expected, rtol=1e-4)


def test_writes_do_not_reach_from_numbers_to_their_parts_or_back(dtype):
    z = upload([1 + 2j, 3 - 1j], dtype)
    re, im = burn.real(z), burn.imag(z)
    z[0] = 5
    assert (re.tolist(), im.tolist()) == ([1, 3], [2, -1])
    re[1] = 9
    re += 1
    im *= 2
    assert z.tolist() == [5, 3 - 1j]
    assert (re.tolist(), im.tolist()) == ([2, 10], [4, -2])


def test_numbers_keep_the_signs_of_their_zeros(dtype):
    z, mask = upload([1j, 1j], dtype), burn.asarray([True, False], device="opencl")
    for zero in (complex(0.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0)):
        found = burn.where(mask, zero, z).numpy()[0]
        assert math.copysign(1, found.real) == math.copysign(1, zero.real)
        assert math.copysign(1, found.imag) == math.copysign(1, zero.imag)


def test_there_may_be_more_axes_than_a_kernel_takes(dtype):
    array = complexes(*(2,) * 10).astype(dtype)
    axes = (8, 1, 6, 3, 0, 5, 2, 9, 7, 4)
    x, moved = upload(array, dtype), array.transpose(axes)
    mask = RANDOM.random(moved.shape) < 0.5
    y = burn.permute_dims(x, axes)
    assert np.array_equal(burn.concat([y, y], axis=3).numpy(), np.concatenate([moved] * 2, 3))
    assert np.array_equal((y + y).numpy(), moved + moved)
    chosen = burn.where(burn.asarray(mask, device="opencl"), y, 2j)
    assert np.array_equal(chosen.numpy(), np.where(mask, moved, np.asarray(2j, dtype)))
