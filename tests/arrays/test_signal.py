"""burn.signal against NumPy, SciPy and PyTorch; what it refuses."""

import numpy as np
import pytest
import scipy.signal
import torch

import burn
from burn import signal
from burn.dtype import Kind
from burn.functions import patterns
from burn.functions.fourier import windows
from burn.testing import SAMPLES, Subject, check_sample, sample
from burn.testing.arrays import floats

CPU = "cpu"
RANDOM = np.random.default_rng(4)


def normal(*shape):
    return RANDOM.normal(size=shape)


def tensor(array, *, track=False, dtype=None):
    device = burn.Device(CPU).autodiff() if track else burn.Device(CPU)
    x = burn.asarray(array, device=device, dtype=dtype)
    return x.require_grad() if track else x


def complex_of(pair):
    return pair[0].numpy() + 1j * pair[1].numpy()


def assert_close(actual, expected, **tolerances):
    np.testing.assert_allclose(actual, expected, **{"rtol": 1e-10, "atol": 1e-12} | tolerances)


WINDOWS = {
    "hann": signal.hann_window,
    ("general_hamming", 25 / 46): signal.hamming_window,  # as ONNX has it, not 0.54
    "blackman": signal.blackman_window,
}


@pytest.mark.parametrize("name", WINDOWS, ids=str)
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 16, 101])
def test_windows_agree_with_scipy(name, periodic, size):
    expected = scipy.signal.get_window(name, size, fftbins=periodic) if size else np.zeros(0)
    window = WINDOWS[name](size, periodic=periodic, dtype="float64", device=CPU)
    assert_close(window.numpy(), expected)
    single = WINDOWS[name](size, periodic=periodic, device=CPU)
    assert single.dtype is burn.float32
    assert_close(single.numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_window_of_16_bits_is_rounded_once(dtype):
    exact = signal.hann_window(1000, dtype="float64", device=CPU).astype(dtype)
    half = signal.hann_window(1000, dtype=dtype, device=CPU)
    wrong = (half != exact).astype("int32").sum().item()
    assert wrong < 10  # where float32 falls on the other side of a tie


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 1, 6, 9, 12])
@pytest.mark.parametrize("axis", [-1, 0])
def test_transforms_agree_with_numpy(norm, n, axis):
    re, im = normal(7, 8), normal(7, 8)
    options = {"n": n, "axis": axis, "norm": norm}
    spectrum = re + 1j * im
    a, b = tensor(re), tensor(im)
    assert_close(complex_of(signal.rfft(a, **options)), np.fft.rfft(re, **options))
    assert_close(signal.irfft(a, b, **options).numpy(), np.fft.irfft(spectrum, **options))
    assert_close(complex_of(signal.cfft(a, b, **options)), np.fft.fft(spectrum, **options))
    assert_close(complex_of(signal.icfft(a, b, **options)), np.fft.ifft(spectrum, **options))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 64, 97, 120, 128, 257, 1000, 1009])
def test_there_and_back_gives_the_signal(n):
    array = normal(2, n)
    re, im = signal.rfft(tensor(array))
    assert_close(signal.irfft(re, im, n=n).numpy(), array)
    pair = signal.icfft(*signal.cfft(tensor(array), tensor(array[::-1].copy())))
    assert_close(complex_of(pair), array + 1j * array[::-1])


@pytest.mark.parametrize("name", ["rfft", "irfft", "cfft"])
@pytest.mark.parametrize("n", [67 * 71, 64 * 65])
def test_long_transforms_by_the_decomposition_agree_with_the_reference(name, n):
    device = burn.Device(CPU)
    subject = Subject(device.backend, device.id, minimal=True)
    samples = SAMPLES[name]
    signals = [floats(2, 30), floats(2, 30, phase=0.1)][: len(samples.op.operands)]
    one = sample("long", *signals, kinds=Kind.FLOAT, axis=1, n=n)
    for dtype in subject.dtypes(samples, one):
        check_sample(subject, samples, one, dtype)


def test_integers_are_transformed_as_floats():
    re, im = signal.rfft(tensor(np.array([1, 2, 3])))
    assert re.dtype is im.dtype is burn.float32
    assert re.tolist() == [6.0, -1.5]


PLANS = [
    {"n_fft": 16},
    {"n_fft": 16, "hop_length": 5},
    {"n_fft": 15, "hop_length": 4, "win_length": 10},
    {"n_fft": 16, "normalized": True},
    {"n_fft": 16, "onesided": False},
    {"n_fft": 12, "hop_length": 3, "onesided": False, "normalized": True},
    {"n_fft": 16, "center": False, "hop_length": 4},
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("shape", [(60,), (2, 64)])
def test_spectra_over_time_agree_with_torch_and_lead_back(plan, shape):
    array = normal(*shape)
    length = plan.get("win_length", plan["n_fft"])
    window = scipy.signal.get_window("hamming", length)
    expected = torch.stft(
        torch.from_numpy(array),
        window=torch.from_numpy(window),
        return_complex=True,
        pad_mode="reflect",
        **plan,
    )
    pair = signal.stft(tensor(array), window=tensor(window), **plan)
    assert_close(complex_of(pair), expected.numpy())
    back = signal.istft(*pair, window=tensor(window), length=shape[-1], **plan).numpy()
    theirs = torch.istft(
        expected, window=torch.from_numpy(window), length=shape[-1], **plan
    ).numpy()
    assert_close(back, theirs)
    known = signal.istft(*pair, window=tensor(window), **plan).shape[-1]
    assert known == torch.istft(expected, window=torch.from_numpy(window), **plan).shape[-1]
    assert_close(back[..., :known], array[..., :known])


def test_spectra_without_a_window_agree_with_torch():
    array = normal(50)
    with pytest.warns(UserWarning, match="window"):
        expected = torch.stft(torch.from_numpy(array), 8, return_complex=True)
    pair = signal.stft(tensor(array), n_fft=8)
    assert_close(complex_of(pair), expected.numpy())
    assert_close(signal.istft(*pair, n_fft=8, length=50).numpy(), array)


def test_spectra_agree_with_scipy():
    array = normal(64)
    window = scipy.signal.get_window("hann", 16)
    plan = scipy.signal.ShortTimeFFT(window, hop=4, fs=1.0, phase_shift=None)
    expected = plan.stft(array, p0=2, p1=15)  # the parts that lie within the signal
    pair = signal.stft(tensor(array), n_fft=16, window=tensor(window), center=False)
    assert_close(complex_of(pair), expected)


def test_gradients_flow_through_spectra_over_time():
    array, window = normal(2, 40), scipy.signal.get_window("hann", 8)
    plan = {"n_fft": 8, "hop_length": 3}
    x, w = tensor(array, track=True), tensor(window, track=True)
    re, im = signal.stft(x, window=w, **plan)
    y = signal.istft(re * re, im * 0.5, window=w, **plan)
    gradients = (y * y).sum().backward()
    twin = torch.from_numpy(array).requires_grad_()
    shape = torch.from_numpy(window).requires_grad_()
    spectrum = torch.stft(twin, window=shape, return_complex=True, **plan)
    changed = torch.complex(spectrum.real**2, spectrum.imag * 0.5)
    torch.istft(changed, window=shape, **plan).square().sum().backward()
    assert_close(x.grad(gradients).numpy(), twin.grad.numpy(), rtol=1e-8, atol=1e-9)
    assert_close(w.grad(gradients).numpy(), shape.grad.numpy(), rtol=1e-8, atol=1e-9)


X = np.ones(20)
S = np.ones((5, 3))

REFUSED = [
    (lambda: signal.hann_window(-1, device=CPU), burn.ArgumentError, "hann_window"),
    (lambda: signal.hann_window(2.5, device=CPU), burn.OperandTypeError, "hann_window"),
    (lambda: signal.blackman_window(3, dtype="int32", device=CPU), burn.ArgumentError, "blackman"),
    (lambda: signal.rfft(X), burn.OperandTypeError, "rfft"),
    (lambda: signal.rfft(tensor(X), n=0), burn.ArgumentError, "rfft"),
    (lambda: signal.rfft(tensor(X), n="2"), burn.OperandTypeError, "rfft"),
    (lambda: signal.rfft(tensor(X), axis=1), burn.AxisError, "rfft"),
    (lambda: signal.rfft(tensor(X), norm="unit"), burn.ArgumentError, "rfft"),
    (lambda: signal.rfft(tensor(np.array(1.0))), burn.AxisError, "rfft"),
    (lambda: signal.rfft(tensor(np.ones((2, 0)))), burn.ArgumentError, "rfft"),
    (lambda: signal.irfft(tensor(X[:1]), tensor(X[:1])), burn.ArgumentError, "irfft"),
    (lambda: signal.irfft(tensor(X), tensor(X[:3])), burn.ShapeError, "irfft"),
    (lambda: signal.cfft(tensor(X), tensor(S)), burn.ShapeError, "cfft"),
    (lambda: signal.stft(tensor(np.array(1.0)), n_fft=4), burn.ShapeError, "stft"),
    (lambda: signal.stft(tensor(X), n_fft=64), burn.ShapeError, "stft"),
    (lambda: signal.stft(tensor(X), n_fft=64, center=False), burn.ShapeError, "stft"),
    (lambda: signal.stft(tensor(X), n_fft=0), burn.ArgumentError, "stft"),
    (lambda: signal.stft(tensor(X), n_fft=4, hop_length=0), burn.ArgumentError, "stft"),
    (lambda: signal.stft(tensor(X), n_fft=4, win_length=5), burn.ArgumentError, "stft"),
    (lambda: signal.stft(tensor(X), n_fft=4, window=tensor(X)), burn.ShapeError, "stft"),
    (lambda: signal.istft(tensor(X), tensor(X), n_fft=8), burn.ShapeError, "istft"),
    (lambda: signal.istft(tensor(S), tensor(S), n_fft=4), burn.ShapeError, "istft"),
    (
        lambda: signal.istft(tensor(S), tensor(S), n_fft=8, hop_length=9, center=False),
        burn.ArgumentError,
        "istft",
    ),
]


@pytest.mark.parametrize(("call", "error", "name"), REFUSED)
def test_what_is_refused_is_an_error_that_names_the_function(call, error, name):
    with pytest.raises(error) as caught:
        call()
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "name", ["hann", "blackman", "bartlett", "cosine", "exponential", "gaussian", "kaiser"]
)
def test_a_long_window_is_computed_in_parts(name, monkeypatch):
    window = getattr(signal, f"{name}_window")
    whole = window(11, dtype="float64", device=CPU)
    monkeypatch.setattr(windows, "_PART", 4)
    counted = []
    monkeypatch.setattr(
        windows, "minimum", lambda x, y: counted.append(x.size) or burn.minimum(x, y)
    )
    assert_close(window(11, dtype="float64", device=CPU).numpy(), whole.numpy())
    assert counted == [4, 4, 3]


@pytest.mark.parametrize("size", [1 << 45, 1 << 70])
@pytest.mark.parametrize("name", ["hann", "bartlett", "exponential"])
def test_a_window_that_no_memory_holds_is_refused_before_its_first_part(name, size, monkeypatch):
    monkeypatch.setattr(windows, "minimum", None)
    with pytest.raises((burn.ShapeError, burn.OutOfMemoryError), match=f"{name}_window"):
        getattr(signal, f"{name}_window")(size, device=CPU)


def test_powers_are_computed_in_parts(monkeypatch):
    monkeypatch.setattr(patterns, "_PART", 3)
    assert_close(
        burn.logspace(0.0, 6.0, 7, base=2.0, dtype="float64", device=CPU).numpy(),
        2.0 ** np.arange(7.0),
    )
    assert_close(
        burn.geomspace(-1.0, -64.0, 7, dtype="float64", device=CPU).numpy(),
        -(2.0 ** np.arange(7.0)),
    )


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft", "fftn", "rfftn"])
def test_a_complex_result_of_a_tracked_tensor_names_what_has_gradients(name):
    x = burn.ones(8, device=burn.Device("cpu").autodiff()).require_grad()
    with pytest.raises(burn.UnsupportedOpError, match=rf"{name}: .*burn\.signal\.rfft, cfft"):
        getattr(burn.fft, name)(x)
