"""Code of other libraries, unchanged, on tensors: the results are tensors, and NumPy's."""

import copy
import pickle
import warnings

import array_api_extra as xpx
import einops
import einops.array_api
import numpy as np
import opt_einsum
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

import burn
from burn.quant_scheme import QDType, QuantScheme

CPU = burn.Device("cpu")
POINTS = np.random.default_rng(0).normal(size=(60, 4)) * [1.0, 2.0, 0.5, 1.5] + [0, 1, 2, 3]
CLASSES = (POINTS[:, 0] + POINTS[:, 1] > 1).astype(np.int64)
VALUES = POINTS @ np.array([1.0, -2.0, 0.5, 0.0]) + 1


def tensor(values):
    return burn.asarray(values, device=CPU)


def same(result, expected, device=CPU):
    assert isinstance(result, burn.Tensor)
    assert result.device is device
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-9, atol=1e-9)


SCIPY = {
    "special.logsumexp": lambda x: scipy.special.logsumexp(x, axis=0),
    "stats.zscore": scipy.stats.zscore,
    "stats.pearsonr": lambda x: scipy.stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "integrate.trapezoid": lambda x: scipy.integrate.trapezoid(x, axis=0),
    "signal.detrend": lambda x: scipy.signal.detrend(x, axis=0),
    "cluster.vq.whiten": scipy.cluster.vq.whiten,
}


@pytest.mark.parametrize("name", SCIPY)
def test_scipy_returns_tensors(name):
    same(SCIPY[name](tensor(POINTS)), SCIPY[name](POINTS))


TRANSFORMS = {
    "fft.fft": lambda x: scipy.fft.fft(x, n=7, axis=0, norm="ortho"),
    "fft.ifftn": scipy.fft.ifftn,
    "fft.rfft2": lambda x: scipy.fft.rfft2(x.real if isinstance(x, np.ndarray) else burn.real(x)),
    "fft.irfft": scipy.fft.irfft,
    "fft.hfft": lambda x: scipy.fft.hfft(x, axis=0),
    "fft.fftshift": scipy.fft.fftshift,
    "signal.fftconvolve": lambda x: scipy.signal.fftconvolve(x, x[:3, :2], mode="same"),
    "signal.oaconvolve": lambda x: scipy.signal.oaconvolve(x, x[:5], axes=0),
    "signal.correlate": lambda x: scipy.signal.correlate(x, x[:2], method="fft"),
    "signal.hilbert2": lambda x: scipy.signal.hilbert2(
        x.real if isinstance(x, np.ndarray) else burn.real(x)
    ),
}


@pytest.mark.parametrize("device", burn.Device.enumerate(dtype="complex128"), ids=str)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_scipy_transforms_tensors_on_their_device(name, device):
    points = POINTS * (1 + 0.3j) ** np.arange(4)
    same(TRANSFORMS[name](burn.asarray(points, device=device)), TRANSFORMS[name](points), device)


@pytest.fixture
def dispatching():
    with sklearn.config_context(array_api_dispatch=True):
        yield


SKLEARN = {
    "StandardScaler": lambda x, y, v: StandardScaler().fit_transform(x),
    "PCA": lambda x, y, v: PCA(2, svd_solver="full").fit_transform(x),
    "Ridge": lambda x, y, v: Ridge(solver="svd").fit(x, v).predict(x),
    "LogisticRegression": lambda x, y, v: LogisticRegression(solver="lbfgs").fit(x, y).predict(x),
    "LinearDiscriminantAnalysis": lambda x, y, v: (
        LinearDiscriminantAnalysis().fit(x, y).decision_function(x)
    ),
    "GaussianNB": lambda x, y, v: GaussianNB().fit(x, y).predict_proba(x),
    "train_test_split": lambda x, y, v: train_test_split(x, y, random_state=0)[0],
}


@pytest.mark.parametrize("device", ["cpu", "torch/cpu", "opencl/cpu"])
@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_a_gaussian_mixture_writes_into_views_of_its_covariances(device, covariance, dispatching):
    try:
        burn.Device(device)
    except burn.DeviceUnavailableError as error:
        pytest.skip(str(error))

    def fit(points):
        model = GaussianMixture(2, covariance_type=covariance, init_params="random_from_data")
        return model.set_params(random_state=0, max_iter=5, tol=1e-9).fit(points)

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        expected, found = fit(POINTS), fit(burn.asarray(POINTS, device=device))
    for name in ("means_", "covariances_", "precisions_cholesky_", "weights_"):
        result = getattr(found, name)
        assert isinstance(result, burn.Tensor)
        np.testing.assert_allclose(result.numpy(), getattr(expected, name), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", SKLEARN)
def test_scikit_learn_returns_tensors(name, dispatching):
    expected = SKLEARN[name](POINTS, CLASSES, VALUES)
    same(SKLEARN[name](tensor(POINTS), tensor(CLASSES), tensor(VALUES)), expected)


def test_scikit_learn_scores_tensors(dispatching):
    guess = CLASSES.copy()
    guess[:6] = 1 - guess[:6]
    assert accuracy_score(tensor(CLASSES), tensor(guess)) == pytest.approx(0.9)


def test_einops_through_the_array_api():
    same(
        einops.array_api.rearrange(tensor(POINTS), "(b c) d -> b (c d)", b=4),
        einops.rearrange(POINTS, "(b c) d -> b (c d)", b=4),
    )
    same(
        einops.array_api.reduce(tensor(POINTS), "(b c) d -> b d", "max", c=6),
        einops.reduce(POINTS, "(b c) d -> b d", "max", c=6),
    )


EINOPS = {
    "rearrange": lambda x: einops.rearrange(x, "(b c) d -> d (b c)", b=4),
    "mean": lambda x: einops.reduce(x, "(b c) d -> b d", "mean", c=6),
    "repeat": lambda x: einops.repeat(x, "a b -> a r b", r=3),
    "stack": lambda x: einops.rearrange([x, x], "n a b -> a (n b)"),
    "pack": lambda x: einops.pack([x, x], "a *")[0],
    "einsum": lambda x: einops.einsum(x, x, "a b, a c -> b c"),
}


@pytest.mark.parametrize(
    "program",
    [
        "import burn, einops; x = burn.ones((2, 3))",
        "import sys, burn; burn.e;assert 'einops' not in sys.modules; import einops; x=burn.eye(2)",
        "import burn, numpy; burn.ones(2); import einops; x = burn.from_dlpack(numpy.eye(3))",
        "import einops, burn; x = burn.random.uniform((2, 3))",
        "import burn, importlib.util as u; x = burn.eye(2); u.find_spec('einops'); import einops",
    ],
)
def test_einops_learns_of_burn_when_a_tensor_is_made(program, run_python):
    use = "; assert einops.rearrange(x, 'a b -> b a').shape == x.shape[::-1]"
    result = run_python("-c", program + use, BURN_DEVICE="cpu")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", EINOPS)
def test_einops_through_a_backend_of_its_own(name):
    same(EINOPS[name](tensor(POINTS)), EINOPS[name](POINTS))


def test_gradients_flow_through_other_peoples_code():
    x = burn.asarray(POINTS, device=CPU.autodiff()).require_grad()
    y = einops.reduce(burn.square(x), "a b -> b", "sum").sum()
    np.testing.assert_allclose(x.grad(y.backward()).numpy(), 2 * POINTS)


@pytest.mark.parametrize("pattern", ["ij,kj->ik", "ij,ij->", "ij,kj,kl->il", "ij->ji"])
def test_opt_einsum_contracts_tensors(pattern):
    count = pattern.count(",") + 1
    expected = np.einsum(pattern, *[POINTS] * count, optimize=True)
    same(opt_einsum.contract(pattern, *[tensor(POINTS)] * count), expected)
    same(burn.einsum(pattern, *[tensor(POINTS)] * count), expected)


EXTRA = {
    "cov": lambda x: xpx.cov(x.T),
    "kron": lambda x: xpx.kron(x[:2, :2], x[:2, :2]),
    "at": lambda x: xpx.at(x)[0].set(1.0),
    "atleast_nd": lambda x: xpx.atleast_nd(x[0], ndim=3),
    "pad": lambda x: xpx.pad(x, 1),
    "create_diagonal": lambda x: xpx.create_diagonal(x[0]),
    "sinc": xpx.sinc,
    "nan_to_num": xpx.nan_to_num,
    "isclose": lambda x: xpx.isclose(x, x + 1e-9),
}


@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra_takes_tensors(name):
    same(EXTRA[name](tensor(POINTS)), EXTRA[name](POINTS))


DTYPES = [*burn.DType.members(), QDType(QuantScheme())]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_dtype_equals_its_name_and_is_no_string(dtype):
    name = str(dtype)
    assert not isinstance(dtype, str)
    assert (dtype == name, name == dtype, dtype != name, dtype != f"{name}?") == (1, 1, 0, 1)
    assert hash(dtype) == hash(name)
    assert {dtype: 1}[name] == {name: 1}[dtype] == 1
    assert f"{dtype}|{dtype:>40}|{dtype!s}" == f"{name}|{name:>40}|{name}"
    assert all(dtype != other for other in DTYPES if other is not dtype)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(dtype, protocol)) is dtype
    assert copy.deepcopy(dtype) is dtype is copy.copy(dtype)


@pytest.mark.parametrize("dtype", burn.DType.members(), ids=str)
def test_numpy_takes_a_dtype_for_one(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.zeros(2, dtype=dtype).dtype == dtype.numpy == np.dtype(dtype)
        assert dtype.numpy == dtype == dtype.numpy.type
        assert np.result_type(dtype, dtype) == dtype.numpy
        # JAX asks NumPy so.
        assert np.result_type(burn.zeros(2, dtype=dtype)) == dtype.numpy


def test_numpy_has_no_dtype_of_quantized_tensors():
    with pytest.raises(burn.DTypeError, match="NumPy has no dtype for"):
        np.zeros(2, dtype=QDType(QuantScheme()))
