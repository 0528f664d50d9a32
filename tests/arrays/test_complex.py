"""Complex tensors, and what they are not."""

import cmath
import math

import numpy as np
import pytest

import burn
from burn.nn import functional as F

CPU = "cpu"
WITH_COMPLEX = burn.Device.enumerate(dtype=burn.complex64)


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


def wide(array, device):
    """A tensor of 64 or 128 bits, on a device that has them."""
    if not device.supports_dtype("complex128"):
        pytest.skip(f"{device} has no complex128")
    return burn.asarray(array, device=device)


Z = [[1 + 2j, -0.5j, 3.0], [0.0, -1 - 1j, 2 - 3j]]


def test_python_numbers_become_the_default_complex_dtype():
    z = tensor(Z)
    assert z.dtype is burn.complex64
    assert z.tolist() == Z
    assert z[0, 0].item() == 1 + 2j
    assert complex(z[0, 0]) == 1 + 2j
    assert tensor(Z, dtype="complex128").dtype is burn.complex128
    assert burn.full(2, 1j, device=CPU).tolist() == [1j, 1j]
    assert burn.zeros(2, dtype="complex64", device=CPU).tolist() == [0j, 0j]
    assert burn.ones((), dtype="complex128", device=CPU).item() == 1
    assert burn.eye(2, dtype="complex64", device=CPU).tolist() == [[1, 0], [0, 1]]
    assert burn.full_like(z, 2j).tolist() == [[2j] * 3] * 2


def test_the_repr_shows_both_parts():
    assert repr(tensor([1 + 2j, 3])) == "Tensor([1.+2.j, 3.+0.j], device='cpu:0')"
    assert "complex128" in repr(tensor([1j], dtype="complex128"))


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [
        ((("float32",), 1j), "complex64"),
        ((("float64",), 1j), "complex128"),
        ((("float16",), 1j), "complex64"),
        ((("int64",), 1j), "complex64"),
        ((("bool",), 1j), "complex64"),
        ((("complex64",), 2.0), "complex64"),
        ((("complex64",), 2), "complex64"),
        ((("complex64",), ("float32",)), "complex64"),
        ((("complex64",), ("float64",)), "complex128"),
        ((("complex64",), ("complex128",)), "complex128"),
        ((("int8",), ("complex64",)), "complex64"),
    ],
)
def test_complex_numbers_promote(operands, dtype):
    made = [
        tensor([1], dtype=operand[0]) if isinstance(operand, tuple) else operand
        for operand in operands
    ]
    for pair in (made, made[::-1]):
        assert (pair[0] * pair[1]).dtype is burn.DType.of(dtype)
        assert burn.result_type(*pair) is burn.DType.of(dtype)


def test_parts_and_what_is_made_of_them():
    z = tensor(Z)
    assert burn.real(z).dtype is burn.float32
    assert burn.imag(z).tolist() == [[2.0, -0.5, 0.0], [0.0, -1.0, -3.0]]
    assert burn.conj(z).tolist() == np.conj(Z).tolist()
    assert burn.abs(z).dtype is burn.float32
    assert burn.equal(burn.complex(burn.real(z), burn.imag(z)), z).all()
    assert np.allclose(burn.angle(z).numpy(), np.angle(np.asarray(Z)), rtol=1e-6)
    x = tensor([1.5, -2.0])
    assert burn.real(x).tolist() == burn.conj(x).tolist() == x.tolist()
    assert burn.imag(x).tolist() == [0.0, 0.0]
    parts = burn.complex(tensor([math.inf, 1.0]), tensor([1.0, -math.inf]))
    assert parts.tolist() == [complex(math.inf, 1), complex(1, -math.inf)]


def test_complex_arithmetic_is_pythons():
    z = tensor([1 + 2j, -3j, 2.0], dtype="complex128")
    values = z.tolist()
    assert (z * z + 1).tolist() == [value * value + 1 for value in values]
    assert (1j / z).tolist() == pytest.approx([1j / value for value in values])
    assert burn.exp(z).tolist() == pytest.approx([cmath.exp(value) for value in values])
    assert (z**2).tolist() == pytest.approx([value**2 for value in values])
    assert (z == 2).tolist() == [False, False, True]
    assert z.sum().item() == sum(values)
    assert burn.mean(z).item() == pytest.approx(sum(values) / 3)
    assert burn.cumulative_prod(z).tolist()[-1] == pytest.approx(math.prod(values))
    assert (z @ z).item() == pytest.approx(sum(value * value for value in values))
    assert burn.where(tensor([True, False, True]), z, 0).tolist() == [values[0], 0, values[2]]
    assert (-z).tolist() == [-value for value in values]


@pytest.mark.parametrize(
    "call",
    [
        lambda z: z < 2,
        lambda z: z >= 1,
        lambda z: z // 2,
        lambda z: z % 2,
        lambda z: burn.max(z),
        lambda z: burn.argmin(z),
        lambda z: burn.maximum(z, z),
        lambda z: burn.floor(z),
        lambda z: burn.atan2(z, z),
        lambda z: burn.argsort(z, axis=0),
        lambda z: burn.clip(z, 0, 1),
        lambda z: burn.erf(z),
        lambda z: z.astype("float32"),
        lambda z: z & z,
        lambda z: burn.complex(z, z),
        lambda z: burn.fft.rfft(z),
    ],
)
def test_what_complex_numbers_do_not_have_is_a_dtype_error(call):
    with pytest.raises(burn.DTypeError):
        call(tensor(Z))


def assigned(key, value):
    def call(z):
        x = burn.ones(2, device=z.device)
        x[key(z) if callable(key) else key] = value(z)

    return call


DROPS_IMAGINARY_PARTS = {
    "astype": lambda z: z.astype("float32"),
    "astype of an integer": lambda z: z.astype("int64"),
    "asarray": lambda z: burn.asarray(z, dtype="float32"),
    "asarray of numbers": lambda z: burn.asarray([1j, 2], dtype="float32", device=z.device),
    "asarray of an array": lambda z: burn.asarray(np.ones(1, complex), dtype="int8"),
    "full": lambda z: burn.full(2, 1j, dtype="float32", device=z.device),
    "full_like": lambda z: burn.full_like(burn.ones(2, device=z.device), np.complex64(1j)),
    "sum": lambda z: burn.sum(z, dtype="float32"),
    "prod": lambda z: burn.prod(z, dtype="int64"),
    "cumulative_sum": lambda z: burn.cumulative_sum(z, dtype="float32"),
    "cumulative_prod": lambda z: burn.cumulative_prod(z, dtype="float32"),
    "trace": lambda z: burn.linalg.trace(burn.stack([z, z]), dtype="float64"),
    "cov": lambda z: burn.cov(burn.stack([z, z])),
    "median": lambda z: burn.median(z),
    "put_along_axis": lambda z: burn.put_along_axis(
        burn.ones(2, device=z.device), burn.asarray([1, 0], device=z.device), z, axis=0
    ),
    "binary_cross_entropy_with_logits": lambda z: F.binary_cross_entropy_with_logits(
        burn.ones(2, device=z.device), z
    ),
    "kl_div": lambda z: F.kl_div(burn.zeros(2, device=z.device), z),
    "assignment to an element": assigned(0, lambda z: z[0]),
    "assignment of a number": assigned(0, lambda _: 1j),
    "assignment to a slice": assigned(slice(None), lambda z: z),
    "assignment by a mask": assigned(lambda z: z != 0, lambda z: z[0]),
    "assignment by indices": assigned(
        lambda z: burn.asarray([1], device=z.device), lambda z: z[:1]
    ),
    "addition in place": lambda z: burn.ones(2, device=z.device).__iadd__(z),
}


@pytest.mark.parametrize("device", WITH_COMPLEX, ids=str)
@pytest.mark.parametrize("name", DROPS_IMAGINARY_PARTS)
@pytest.mark.filterwarnings("ignore")  # a warning of NumPy's is not what refuses it
def test_imaginary_parts_are_never_dropped(name, device):
    with pytest.raises(burn.BurnError) as caught:
        DROPS_IMAGINARY_PARTS[name](burn.asarray([1 + 2j, 3 - 1j], device=device))
    assert isinstance(caught.value, TypeError)
    assert "complex" in str(caught.value)


def test_a_complex_number_is_no_real_one():
    z = tensor(1 + 2j)
    for function in (float, int):
        with pytest.raises(burn.OperandTypeError, match=r"burn\.real"):
            function(z)
    with pytest.raises(burn.OperandTypeError, match="complex"):
        burn.full(2, 1j, dtype="float32", device=CPU)
    with pytest.raises(burn.ArgumentError, match="complex64"):
        burn.arange(3, dtype="complex64", device=CPU)


TO_COMPLEX = [
    lambda x: x * 1j,
    lambda x: 1j - x,
    lambda x: x.astype("complex64"),
    lambda x: x + burn.asarray([1j, 2], device=x.device),
    lambda x: burn.complex(x, x),
    lambda x: burn.complex(burn.zeros_like(x), x),
    lambda x: burn.sum(x, dtype="complex64"),
    lambda x: burn.concat([x, burn.asarray([1j], device=x.device)]),
    lambda x: burn.where(burn.asarray([True, False], device=x.device), x, 1j),
    lambda x: burn.fft.fft(x),
    lambda x: burn.fft.rfft(x),
]


@pytest.mark.parametrize("call", TO_COMPLEX)
def test_a_tracked_tensor_never_becomes_complex(call):
    device = burn.Device(CPU).autodiff()
    x = burn.asarray([1.0, 2.0], device=device).require_grad()
    for tracked in (x, x * 2):
        with pytest.raises(burn.UnsupportedOpError, match="not differentiable"):
            call(tracked)
    assert call(x.detach()).dtype is burn.complex64
    with burn.no_grad():
        assert call(x).dtype is burn.complex64


def test_real_parts_of_a_tracked_tensor_have_its_gradient():
    x = burn.asarray([1.0, -2.0], device=burn.Device(CPU).autodiff()).require_grad()
    total = (burn.real(x) * 2 + burn.conj(x) + burn.imag(x)).sum()
    assert x.grad(total.backward()).tolist() == [3.0, 3.0]
    with pytest.raises(burn.DTypeError, match="float"):
        burn.asarray([1j], device=burn.Device(CPU).autodiff()).require_grad()


SIGNALS = [
    np.linspace(-1, 2, 12).reshape(3, 4) ** 2,
    np.linspace(-1, 2, 15).reshape(3, 5) * (1 + 0.5j) ** np.arange(5),
]


@pytest.mark.parametrize("device", WITH_COMPLEX, ids=str)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("signal", SIGNALS, ids=["real", "complex"])
@pytest.mark.together("name", ["fft", "ifft", "irfft", "hfft", "rfft", "ihfft"])
def test_transforms_are_numpys(name, signal, norm, device):
    if name in ("rfft", "ihfft") and np.iscomplexobj(signal):
        return
    for options in ({}, {"axis": 0}, {"n": 3}, {"n": 7, "axis": -1}):
        ours = getattr(burn.fft, name)(wide(signal, device), norm=norm, **options)
        numpys = getattr(np.fft, name)(signal, norm=norm, **options)
        assert ours.shape == numpys.shape
        assert ours.device is device
        assert ours.dtype.numpy == numpys.dtype
        assert np.allclose(ours.numpy(), numpys, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("device", WITH_COMPLEX, ids=str)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("signal", SIGNALS, ids=["real", "complex"])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_several_axes_are_numpys(name, signal, norm, device):
    if name == "rfftn" and np.iscomplexobj(signal):
        return
    for options in ({}, {"axes": (0,)}, {"s": (4, 6), "axes": (0, 1)}, {"axes": (1, 0)}):
        ours = getattr(burn.fft, name)(wide(signal, device), norm=norm, **options)
        numpys = getattr(np.fft, name)(signal, norm=norm, **options)
        assert ours.dtype.numpy == numpys.dtype
        assert np.allclose(ours.numpy(), numpys, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("device", WITH_COMPLEX, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transforms_solve_the_equation_of_poisson(dtype, device):
    """By ``-(k**2 + l**2)`` times the spectrum, which is exact for waves with whole k and l."""
    if not device.supports_dtype(dtype):
        pytest.skip(f"{device} has no {dtype}")
    n, m = 30, 32
    x, y = np.meshgrid(*[np.arange(k) * (2 * np.pi / k) for k in (n, m)], indexing="ij")
    wave, swell = np.sin(3 * x) * np.cos(5 * y), np.cos(2 * x + 7 * y)
    right = burn.asarray(-34 * wave - 53 * swell, dtype=dtype, device=device)
    k = burn.fft.fftfreq(n, d=1 / n, dtype=dtype, device=device)[:, None]
    for spectrum, inverse, frequencies in (
        (burn.fft.fftn, burn.fft.ifftn, burn.fft.fftfreq),
        (burn.fft.rfftn, burn.fft.irfftn, burn.fft.rfftfreq),
    ):
        squares = k**2 + frequencies(m, d=1 / m, dtype=dtype, device=device) ** 2
        squares[0, 0] = 1.0  # the mean is free

        def solve(x, *, spectrum=spectrum, inverse=inverse, squares=squares):
            return burn.real(inverse(-spectrum(x) / squares))

        tolerance = 2e-6 if dtype == "float32" else 1e-14
        for call in (solve, burn.compile(solve)):
            np.testing.assert_allclose(call(right).numpy(), wave + swell, atol=tolerance)


def test_transforms_keep_the_precision_of_the_dtype():
    assert burn.fft.fft(tensor([1.0, 2.0])).dtype is burn.complex64
    assert burn.fft.irfft(tensor([1 + 0j, 2])).dtype is burn.float32
    assert burn.fft.rfft(tensor([1, 2])).dtype is burn.complex64


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts_are_numpys(n):
    assert np.allclose(burn.fft.fftfreq(n, d=0.5, device=CPU).numpy(), np.fft.fftfreq(n, 0.5))
    assert np.allclose(burn.fft.rfftfreq(n, device=CPU).numpy(), np.fft.rfftfreq(n))
    assert burn.fft.fftfreq(n, dtype="float64", device=CPU).dtype is burn.float64
    array = np.arange(3 * n).reshape(3, n)
    for axes in (None, 0, (1,), (0, 1)):
        shifted = burn.fft.fftshift(tensor(array), axes=axes)
        assert shifted.tolist() == np.fft.fftshift(array, axes).tolist()
        assert burn.fft.ifftshift(shifted, axes=axes).tolist() == array.tolist()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: burn.fft.fft(x, n=0), burn.ShapeError),
        (lambda x: burn.fft.fft(x, n=1.5), burn.OperandTypeError),
        (lambda x: burn.fft.fft(x, axis=3), burn.AxisError),
        (lambda x: burn.fft.fft(x, norm="none"), burn.ArgumentError),
        (lambda x: burn.fft.hfft(x, norm="none"), burn.ArgumentError),
        (lambda x: burn.fft.fftn(x, s=(1, 2), axes=(0,)), burn.ArgumentError),
        (lambda x: burn.fft.fft([1.0]), burn.OperandTypeError),
        (lambda x: burn.fft.fft(x[0, 0]), burn.AxisError),
        (lambda x: burn.fft.fftfreq(0, device=CPU), burn.ShapeError),
        (lambda x: burn.fft.fftfreq(2, dtype="int32", device=CPU), burn.DTypeError),
    ],
)
def test_transforms_refuse_what_they_cannot_do(call, error):
    with pytest.raises(error):
        call(tensor(Z))


WITHOUT_COMPLEX = [device for device in burn.Device.enumerate() if device not in WITH_COMPLEX]
TO_SPECTRUM = ["fft", "ifft", "fftn", "ifftn", "rfft", "rfftn", "ihfft"]


@pytest.mark.parametrize("device", WITHOUT_COMPLEX, ids=str)
@pytest.mark.parametrize("name", TO_SPECTRUM)
def test_a_transform_on_a_device_without_complex_numbers_names_itself(name, device):
    with pytest.raises(burn.DTypeError, match=rf"^{name}: .*complex64"):
        getattr(burn.fft, name)(burn.ones((2, 4), device=device))


@pytest.mark.parametrize("name", TO_SPECTRUM)
def test_a_transform_of_a_tracked_tensor_names_itself(name):
    x = burn.ones((2, 4), device=burn.Device(CPU).autodiff()).require_grad()
    with pytest.raises(burn.UnsupportedOpError, match=rf"^{name}: .*not differentiable"):
        getattr(burn.fft, name)(x)


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
@pytest.mark.parametrize("name", ["irfft", "hfft", "irfftn"])
def test_a_real_result_of_a_real_tensor_needs_no_complex_numbers(name, device):
    x = np.linspace(-1, 2, 8, dtype=np.float32).reshape(2, 4)
    ours = getattr(burn.fft, name)(burn.asarray(x, device=device))
    np.testing.assert_allclose(ours.numpy(), getattr(np.fft, name)(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["irfft", "hfft", "irfftn"])
def test_a_real_result_of_a_real_tensor_has_a_gradient(name):
    function = getattr(burn.fft, name)
    x = burn.asarray([0.5, -1.0, 2.0], device=burn.Device(CPU).autodiff(), dtype="float64")
    x = x.require_grad()
    weights = burn.asarray([1.0, -2.0, 3.0, 0.5], device=CPU, dtype="float64")
    gradient = x.grad((function(x) * weights).sum().backward())
    for i in range(3):
        unit = burn.asarray([float(i == j) for j in range(3)], device=CPU, dtype="float64")
        assert gradient[i].item() == pytest.approx((function(unit) * weights).sum().item())


def test_complex_numbers_are_close_by_their_distance():
    x = burn.asarray([1 + 1j, 2j, complex("nan")], device="cpu")
    assert burn.isclose(x, x + 1e-9, equal_nan=True).tolist() == [True, True, True]
    assert burn.isclose(x, 1 + 1j).tolist() == [True, False, False]
    assert burn.isclose(burn.ones(1, device="cpu"), 1 + 1j).tolist() == [False]


def test_check_closeness_looks_at_imaginary_parts():
    x = burn.asarray([1.0 + 2.0j, 3.0 - 4.0j], device="cpu")
    assert burn.check_closeness(x, x.astype("complex128")).largest == 0.0
    assert burn.check_closeness(x, burn.conj(x)).largest == 8.0
    assert burn.check_closeness(x, burn.real(x)).largest == 4.0
