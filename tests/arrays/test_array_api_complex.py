"""Complex operands in every function that the standard (2025.12) gives them to, against NumPy."""

import functools
import inspect

import array_api_strict
import numpy as np
import pytest

import burn

array_api_strict.set_array_api_strict_flags(api_version="2025.12")

RANDOM = np.random.default_rng(5)
DTYPES = {"complex64": "float32", "complex128": "float64"}
TOLERANCES = {"complex64": 2e-5, "complex128": 1e-11}


def complexes(*shape):
    return RANDOM.uniform(-2, 2, shape) + 1j * RANDOM.uniform(-2, 2, shape)


M, N, V = complexes(3, 3), complexes(3, 4), complexes(3)
BATCH = complexes(2, 3, 3)
HERMITIAN = BATCH @ BATCH.conj().swapaxes(-1, -2) + np.eye(3)
REPEATED = np.array([1j, 2 - 1j, 1j, 0, 2 - 1j])

ONE_ARGUMENT = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cos", "cosh", "exp"),
    *("expm1", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "negative"),
    *("positive", "real", "reciprocal", "round", "sign", "sin", "sinh", "sqrt", "square", "tan"),
    *("tanh", "all", "any", "count_nonzero", "flip", "mean", "prod", "sum", "tril", "triu"),
    *("matrix_transpose", "ones_like", "zeros_like", "nonzero"),
)
TWO_ARGUMENTS = (
    *("add", "divide", "equal", "multiply", "not_equal", "pow", "subtract", "matmul", "vecdot"),
    *("broadcast_arrays",),
)

CALLS = {
    **{name: [((M,), {})] for name in ONE_ARGUMENT},
    **{name: [((M, V), {}), ((V, V), {})] for name in TWO_ARGUMENTS},
    "astype": [((M, "complex64"), {}), ((M, "complex128"), {}), ((M, "bool"), {})],
    "broadcast_to": [((V, (2, 3)), {})],
    "concat": [(([M, M],), {"axis": 1})],
    "cumulative_prod": [((N,), {"axis": 1}), ((V,), {"include_initial": True})],
    "cumulative_sum": [((N,), {"axis": 0}), ((V,), {"include_initial": True})],
    "diff": [((N,), {}), ((N,), {"axis": 0, "n": 2}), ((V,), {"append": V})],
    "expand_dims": [((M,), {"axis": 1}), ((M,), {"axis": (0, -1)})],
    "full_like": [((M, 1 - 2j), {})],
    "isin": [((REPEATED, REPEATED[:2]), {}), ((REPEATED, REPEATED[:1]), {"invert": True})],
    "meshgrid": [((V, V), {}), ((V, V), {"indexing": "ij"})],
    "moveaxis": [((BATCH, 0, 2), {}), ((BATCH, (0, 1), (1, 2)), {})],
    "permute_dims": [((BATCH, (2, 0, 1)), {})],
    "repeat": [((V, 2), {}), ((N, 3), {"axis": 0})],
    "reshape": [((N, (2, 6)), {})],
    "roll": [((N, 2), {}), ((N, 1), {"axis": 1})],
    "squeeze": [((M[None],), {"axis": 0})],
    "stack": [(([V, V],), {})],
    "take": [((N, np.array([2, 0])), {"axis": 0})],
    "take_along_axis": [((N, np.array([[0], [2], [1]])), {"axis": 1})],
    "tensordot": [((N, N), {}), ((M, N), {"axes": 1}), ((N, N), {"axes": ((0,), (0,))})],
    "tile": [((V, (2, 2)), {})],
    "unique_all": [((REPEATED,), {})],
    "unique_counts": [((REPEATED,), {})],
    "unique_inverse": [((REPEATED,), {})],
    "unstack": [((N,), {"axis": 1})],
    "where": [((np.array([True, False, True]), M, V), {})],
    "linalg.cholesky": [((HERMITIAN,), {})],
    "linalg.cross": [((M, V), {}), ((N, N * 2), {"axis": -2})],
    "linalg.det": [((M,), {}), ((BATCH,), {})],
    "linalg.diagonal": [((N,), {"offset": 1}), ((BATCH,), {})],
    "linalg.eigvalsh": [((HERMITIAN,), {})],
    "linalg.inv": [((BATCH,), {})],
    "linalg.matmul": [((BATCH, N), {})],
    "linalg.matrix_norm": [
        ((BATCH,), {"ord": order}) for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    ],
    "linalg.matrix_power": [((BATCH, 3), {}), ((BATCH, -2), {}), ((BATCH, 0), {})],
    "linalg.matrix_rank": [((N,), {}), ((BATCH * np.array([1, 0, 1]),), {})],
    "linalg.matrix_transpose": [((BATCH,), {})],
    "linalg.outer": [((V, N[0]), {})],
    "linalg.pinv": [((N,), {}), ((BATCH[..., :2],), {"rtol": 1e-3})],
    "linalg.slogdet": [((BATCH,), {})],
    "linalg.solve": [((BATCH, N), {}), ((M, V), {})],
    "linalg.svdvals": [((BATCH,), {}), ((N,), {})],
    "linalg.tensordot": [((N, N), {})],
    "linalg.trace": [((BATCH,), {}), ((N,), {"offset": 1})],
    "linalg.vecdot": [((M, V), {}), ((N, N), {"axis": -2})],
    "linalg.vector_norm": [
        ((N,), {"ord": order, "axis": 1}) for order in (0, 1, 2, 3, 1.5, -1, np.inf, -np.inf)
    ],
    **{
        f"fft.{name}": [((N,), {}), ((N,), {"norm": "ortho"})]
        for name in ("fft", "fftn", "hfft", "ifft", "ifftn", "irfft")
    },
    "fft.fftshift": [((N,), {})],
    "fft.ifftshift": [((N,), {"axes": 1})],
    "fft.irfftn": [((N,), {"axes": (0, 1)})],
}
"""Operands and keywords for each function; a name of a dtype stands for the dtype."""

NOT_UNIQUE = (
    *("linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.qr", "linalg.svd", "unique_values"),
)
"""What may have another sign or order; the tests of it are below."""

MADE = (
    *("arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "linspace"),
    *("ones", "zeros"),
)
"""Functions that make arrays; the tests of it are below."""

OF_DTYPES = (
    *("broadcast_shapes", "can_cast", "finfo", "iinfo", "isdtype", "result_type"),
    *("fft.fftfreq", "fft.rfftfreq"),
)
"""Functions of dtypes, shapes and lengths."""

REAL_ONLY = (
    *("argmax", "argmin", "argsort", "atan2", "ceil", "clip", "copysign", "floor", "floor_divide"),
    *("greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp", "max", "maximum"),
    *("min", "minimum", "nextafter", "remainder", "searchsorted", "signbit", "sort", "std"),
    *("trunc", "var", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or"),
    *("bitwise_right_shift", "bitwise_xor", "fft.rfft", "fft.rfftn", "fft.ihfft"),
)
"""What the standard has for real numbers, or integers only."""

OF_TRUTHS = ("logical_and", "logical_not", "logical_or", "logical_xor")
"""What it has for booleans, and burn for whatever is 0 or not."""

STRICT = array_api_strict


def find(namespace, name):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def converted(value, dtype, convert, namespace):
    """Complex arrays in a dtype and all arrays of a library; names of dtypes as its dtypes."""
    if isinstance(value, np.ndarray):
        return convert(value.astype(dtype) if value.dtype.kind == "c" else value)
    if isinstance(value, list):
        return [converted(part, dtype, convert, namespace) for part in value]
    if isinstance(value, str) and hasattr(namespace, value):
        return getattr(namespace, value)
    return value


def tensor(array):
    return burn.asarray(array, device="cpu")


def call(namespace, name, dtype, convert, args, kwargs):
    args = [converted(argument, dtype, convert, namespace) for argument in args]
    kwargs = {key: converted(value, dtype, convert, namespace) for key, value in kwargs.items()}
    result = find(namespace, name)(*args, **kwargs)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def test_every_function_of_the_standard_is_in_one_of_the_lists():
    names = {name for name in dir(STRICT) if inspect.isfunction(getattr(STRICT, name))}
    names -= {name for name in names if name.startswith(("_", "set_", "get_", "reset_"))}
    for extension in ("linalg", "fft"):
        names |= {f"{extension}.{name}" for name in getattr(STRICT, extension).__all__}
    listed = [*CALLS, *NOT_UNIQUE, *MADE, *OF_DTYPES, *REAL_ONLY, *OF_TRUTHS]
    assert sorted(listed) == sorted(names | {"linalg.eig", "linalg.eigvals"})


def devices():
    """Each device with each dtype; the gate tries the CPU, and complex64 on our own kernels."""
    for dtype in DTYPES:
        for device in burn.Device.enumerate(dtype=dtype):
            own = device.backend_name in ("cuda", "opencl") and dtype == "complex64"
            marks = () if own or device.name == "cpu:0" else pytest.mark.exhaustive
            yield pytest.param(device, dtype, id=f"{dtype}-{device}", marks=marks)


@pytest.mark.parametrize(("device", "dtype"), list(devices()))
@pytest.mark.parametrize("name", CALLS)
def test_a_function_takes_complex_numbers_and_gives_what_numpy_gives(name, dtype, device):
    upload = functools.partial(burn.asarray, device=device)
    for args, kwargs in CALLS[name]:
        ours = call(burn, name, dtype, upload, args, kwargs)
        numpys = call(np, name, dtype, np.asarray, args, kwargs)
        assert len(ours) == len(numpys)
        for actual, expected in zip(ours, numpys, strict=True):
            assert actual.device is device
            assert actual.dtype.numpy == expected.dtype
            assert actual.shape == expected.shape
            tolerance = TOLERANCES[dtype]
            np.testing.assert_allclose(actual.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", REAL_ONLY)
def test_what_is_for_real_numbers_only_refuses_complex_ones(name):
    function = find(STRICT, name)
    parameters = inspect.signature(function).parameters.values()
    count = sum(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters)
    bounds = (0, 1) if name == "clip" else ()
    with pytest.raises(TypeError):  # so it is for real numbers only
        function(*[STRICT.asarray([1j, 2.0])] * count, *bounds)
    with pytest.raises(burn.DTypeError):
        find(burn, name)(*[tensor(np.array([1j, 2.0]))] * count, *bounds)


@pytest.mark.parametrize("name", OF_TRUTHS)
def test_what_is_not_0_is_true(name):
    array = np.array([1j, 2.0, 0j])
    expected = getattr(np, name)(*[array] * (1 if name == "logical_not" else 2))
    count = 1 if name == "logical_not" else 2
    assert getattr(burn, name)(*[tensor(array)] * count).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_distinct_complex_numbers_come_once(dtype):
    values = burn.unique_values(tensor(REPEATED.astype(dtype)))
    assert values.dtype.name == dtype
    assert np.sort(values.numpy()).tolist() == [0, 1j, 2 - 1j]


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_of_complex_matrices_give_them_back(dtype):
    tolerance = TOLERANCES[dtype]

    def same(actual, expected):
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)

    def adjoint(array):
        return array.conj().swapaxes(-1, -2)

    for given in (M, N, BATCH, BATCH[..., :2], N[:0], HERMITIAN):
        array = given.astype(dtype)
        count = min(array.shape[-2:])
        for mode in ("reduced", "complete"):
            q, r = burn.linalg.qr(tensor(array), mode=mode)
            assert q.dtype.name == r.dtype.name == dtype
            q, r = q.numpy(), r.numpy()
            same(q @ r, array)
            unit = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2))
            same(adjoint(q) @ q, unit)
            diagonal = np.diagonal(r, axis1=-2, axis2=-1)
            assert (diagonal.real >= 0.0).all()
            assert not diagonal.imag.any()
        for full_matrices in (True, False):
            u, s, vh = burn.linalg.svd(tensor(array), full_matrices=full_matrices)
            assert (u.dtype.name, s.dtype.name, vh.dtype.name) == (dtype, DTYPES[dtype], dtype)
            u, s, vh = u.numpy(), s.numpy(), vh.numpy()
            same((u[..., :count] * s[..., None, :]) @ vh[..., :count, :], array)
    values, vectors = burn.linalg.eigh(tensor(HERMITIAN.astype(dtype)))
    assert (values.dtype.name, vectors.dtype.name) == (DTYPES[dtype], dtype)
    values, vectors = values.numpy(), vectors.numpy()
    same((vectors * values[..., None, :]) @ adjoint(vectors), HERMITIAN)
    upper = burn.linalg.cholesky(tensor(HERMITIAN.astype(dtype)), upper=True).numpy()
    same(adjoint(upper) @ upper, HERMITIAN)
    same(upper, np.triu(upper))


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors_are_turned_by_nothing(dtype, kind):
    for given in (M, BATCH, HERMITIAN, np.eye(2) + 0j, BATCH[:0], M[:0, :0]):
        array = given.astype(dtype) if kind == "complex" else given.real.astype(DTYPES[dtype])
        result = burn.linalg.eig(tensor(array))
        assert result._fields == ("eigenvalues", "eigenvectors")
        assert {tensor.dtype.name for tensor in result} == {dtype}
        values, vectors = (tensor.numpy() for tensor in result)
        tolerance = 20 * TOLERANCES[dtype]
        turned = vectors * values[..., None, :]
        np.testing.assert_allclose(array @ vectors, turned, rtol=tolerance, atol=tolerance)
        lengths = np.linalg.norm(vectors, axis=-2)
        np.testing.assert_allclose(lengths, np.ones(lengths.shape), rtol=tolerance)
        alone = burn.linalg.eigvals(tensor(array))
        assert alone.dtype.name == dtype
        expected = np.sort_complex(np.linalg.eigvals(array.astype(np.complex128)))
        for found in (values, alone.numpy()):
            order = np.sort_complex(found)
            np.testing.assert_allclose(order, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_complex_arrays_can_be_made(dtype):
    made = getattr(burn, dtype)
    values = [[1 + 2j, 3], [0, -1j]]
    array = np.asarray(values, dtype)
    for x in (
        burn.asarray(values, dtype=made, device="cpu"),
        burn.asarray(array, device="cpu"),
        burn.from_dlpack(array, device="cpu"),
    ):
        assert x.dtype is made
        assert x.tolist() == values
    assert burn.eye(2, 3, k=1, dtype=made, device="cpu").tolist() == np.eye(2, 3, k=1).tolist()
    for name in ("empty", "ones", "zeros"):
        assert getattr(burn, name)((2, 0), dtype=made, device="cpu").dtype is made
    assert burn.empty_like(tensor(array)).dtype is made
    assert burn.full(2, 1j, dtype=made, device="cpu").tolist() == [1j, 1j]
    assert np.from_dlpack(tensor(array)).tolist() == values
    expected = np.linspace(1j, 2 - 1j, 5, dtype=dtype)
    line = burn.linspace(1j, 2 - 1j, 5, dtype=made, device="cpu")
    np.testing.assert_allclose(line.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("vecdot", lambda x, z: burn.vecdot(x, z)),
        ("solve", lambda x, z: burn.linalg.solve(x, z)),
        ("eig", lambda x, z: burn.linalg.eig(x)),
        ("eigvals", lambda x, z: burn.linalg.eigvals(x)),
    ],
)
def test_a_tracked_matrix_has_no_complex_result(name, call):
    device = burn.Device("cpu").autodiff()
    x = burn.asarray(M.real, device=device).require_grad()
    z = burn.asarray(M, device=device)
    with pytest.raises(burn.UnsupportedOpError, match="not differentiable"):
        call(x, z)
    call(x.detach(), z)
    with burn.no_grad():
        call(x, z)


def test_a_device_without_complex_numbers_says_so():
    class RealOnly:
        """The CPU as a device that has real numbers only."""

        def __init__(self, backend):
            self._backend = backend

        def __getattr__(self, name):
            return getattr(self._backend, name)

        def dtype_usage(self, device, dtype):
            usage = self._backend.dtype_usage(device, dtype)
            return burn.DTypeUsage.NONE if dtype.is_complex else usage

    from burn.ops import OpTable

    device = burn.Device("cpu")
    table = OpTable(RealOnly(device.backend), device.id)
    for name in ("eig", "eigvals"):
        with pytest.raises(burn.UnsupportedOpError, match="complex128"):
            getattr(table, name)(M.real)


def test_products_conjugate_the_first_vector_alone_where_the_standard_says_so():
    x, y = tensor(V), tensor(N[:, 0])
    assert burn.vecdot(x, y).item() == pytest.approx(np.vdot(V, N[:, 0]))
    assert burn.vecdot(x, tensor(V.real)).item() == pytest.approx(np.vdot(V, V.real))
    for product in (burn.linalg.dot(x, y), burn.matmul(x, y), burn.tensordot(x, y, axes=1)):
        assert product.item() == pytest.approx(V @ N[:, 0])
    similarity = burn.linalg.cosine_similarity(x, y).item()
    lengths = np.linalg.norm(V) * np.linalg.norm(N[:, 0])
    assert similarity == pytest.approx(np.vdot(V, N[:, 0]) / lengths)
    assert burn.linalg.l2_norm(burn.linalg.vector_normalize(x)).item() == pytest.approx(1.0)


def test_complex_matrices_have_triangles_too():
    for array in (M, N, BATCH[..., :2]):
        p, lower, upper = burn.linalg.lu(tensor(array))
        np.testing.assert_allclose((p @ lower @ upper).numpy(), array, rtol=1e-12)


def test_a_tolerance_for_each_matrix_serves_complex_ones():
    array = np.stack([np.diag([1, 0.5j, 1e-3]), np.diag([2j, 1, 0.1])])
    rtol = np.array([1e-2, 0.3])
    assert burn.linalg.matrix_rank(tensor(array), rtol=tensor(rtol)).tolist() == [2, 2]
    found = burn.linalg.pinv(tensor(array), rtol=tensor(rtol))
    np.testing.assert_allclose(found.numpy(), np.linalg.pinv(array, rcond=rtol), atol=1e-12)
