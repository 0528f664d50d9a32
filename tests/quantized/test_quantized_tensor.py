"""Quantized tensors in every public function, and their schemes, dtypes and settings."""

import copy
import functools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_tracking import FUNCTIONS, OF_TENSORS, TRIED, calls_of, flat, is_float, mapped

import burn
from burn.autodiff import Autodiff
from burn.errors import ArgumentError, BurnError, DTypeError, OperandTypeError, ShapeError
from burn.functions.common import dispatch
from burn.quantization import (
    Calibration,
    CalibrationRange,
    Propagation,
    QDType,
    QParams,
    QuantConfig,
    Quantized,
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    compute_q_params,
    compute_range,
    default_quant_scheme,
    is_quantized,
)

CPU = burn.Device("cpu")
BF16 = ScaleDType.BF16
F16 = ScaleDType.F16

ONE_SCALE = QuantScheme(store=QuantStore.NATIVE)
ROWS = ONE_SCALE.with_level(QuantLevel.per_block(-1))
SCHEMES = {
    "one scale": ONE_SCALE,
    "words": QuantScheme(QuantValue.Q8S),
    "blocks": ROWS,
    "two levels": ROWS.with_scale_dtype(ScaleDType.F16).with_level(QuantLevel.two_level(-1)),
}

QUANTIZED_AGAIN = {
    "diff": "prepend",
    "full_like": "fill_value",
    "nn.functional.multi_margin_loss": "weight",
}
"""Operands that are joined with others, or of which elements are read, and quantized again."""

CALLS = {
    **{
        name: [
            (FUNCTIONS[name], *call)
            for call in calls_of(name, QUANTIZED_AGAIN.get(name), takes_nan=False)
        ]
        for name in TRIED
    },
    **{name: [(function, *arguments)] for name, (function, arguments) in OF_TENSORS.items()},
}

REFUSED = {
    ("full_like", "ones_like", "zeros_like"): "Quantized tensors are not supported",
    ("from_dlpack",): "Export .dequantize()",
    ("meshgrid",): "Convert them with .astype() to one dtype",
}
"""Functions that refuse quantized tensors, and what they say."""

SPLITS = {
    *["a mask", "diagonal", "linalg.diagonal"],
    *["nn.functional.pixel_shuffle", "nn.functional.pixel_unshuffle"],
    *["diag", "linalg.diag", "reshape", "roll", "unfold"],
}
"""Functions that move elements, with calls that would split blocks."""


def quantized(array, scheme, device=CPU):
    """The tensor of an array, quantized if a scheme of such blocks divides it."""
    x = burn.asarray(array, device=device)
    if len(scheme.level.block) > x.ndim:
        return x
    return x.quantize_dynamic(scheme.fitting(x.shape))


def choices(arguments, keywords):
    """Which of the float arrays are quantized: all, and where there are several, each alone."""
    floats = []
    mapped([arguments, keywords], lambda array: floats.append(array) if is_float(array) else None)
    alone = [{number} for number in range(len(floats))] if len(floats) > 1 else []
    return [set(range(len(floats))), *alone] if floats else []


def results(device, function, arguments, keywords, chosen, scheme, change):
    """The tensors that come out where some float arrays are quantized, and then changed."""
    seen = iter(range(1000))

    def tensor(array):
        is_chosen = is_float(array) and next(seen) in chosen
        if is_chosen:
            return change(quantized(array, scheme, device))
        return burn.asarray(array, device=device)

    operands, keywords = mapped([arguments, keywords], tensor)
    device.seed(5)
    with burn.default_device(device):
        return flat(function(*operands, **keywords))


def check_alike(found, expected):
    """See that a result is that of the numbers, or, quantized again, near it."""
    assert found.shape == expected.shape
    array = expected.numpy()
    if is_quantized(found):
        assert expected.dtype.is_float
        most = np.max(np.abs(array), initial=0.0, where=np.isfinite(array))
        np.testing.assert_allclose(found.numpy(), array, atol=most / 100, rtol=0)
    else:
        assert found.dtype is expected.dtype
        np.testing.assert_allclose(found.numpy(), array, rtol=1e-5, atol=1e-6)


def calls_with(name, kind, device=CPU):
    """From a change of the quantized operands to results: of each call, and choice of operands."""
    return [
        functools.partial(results, device, *item, chosen, SCHEMES[kind])
        for item in CALLS[name]
        for chosen in choices(*item[1:])
    ]


def is_refused(error, name, kind):
    """Whether a function may refuse a quantized operand, and says what to do."""
    hints = [hint for names, hint in REFUSED.items() if name in names]
    if SCHEMES[kind].level.block and name in SPLITS:
        hints.append("Call .dequantize()")
    return any(hint in str(error) for hint in hints)


LATER = pytest.mark.exhaustive
OTHERS = [device for device in burn.Device.enumerate() if device != CPU]
KINDS = [
    *[("words", CPU), ("two levels", CPU)],
    *[pytest.param(kind, CPU, marks=LATER) for kind in ("one scale", "blocks")],
    *[pytest.param("words", device, marks=LATER) for device in OTHERS],
]


@pytest.mark.parametrize(("kind", "device"), KINDS, ids=str)
@pytest.mark.together("name", sorted(CALLS))
def test_a_public_function_computes_with_the_numbers(name, kind, device):
    for call in calls_with(name, kind, device):
        try:
            expected = call(burn.Tensor.dequantize)
        except DTypeError:
            assert device is not CPU  # it has no complex dtypes
            continue
        try:
            found = call(lambda x: x)
        except BurnError as error:
            assert is_refused(error, name, kind), f"{name}: {error}"
            continue
        for pair in zip(found, expected, strict=True):
            check_alike(*pair)


@LATER
@pytest.mark.parametrize("kind", SCHEMES)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_public_function_gives_tensors_of_its_shapes_where_they_are_quantized_again(
    name, kind, propagating
):
    for call in calls_with(name, kind):
        expected = call(burn.Tensor.dequantize)
        try:
            found = call(lambda x: x)
        except BurnError as error:
            assert is_refused(error, name, kind), f"{name}: {error}"
            continue
        assert [tensor.shape for tensor in found] == [tensor.shape for tensor in expected]


# Schemes.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: QuantScheme("q8f"), "value must be a QuantValue, not 'q8f'"),
        (lambda: QuantScheme(store="native"), "store must be a QuantStore"),
        (lambda: QuantScheme().per_block((1, 32), "float16"), "must be a ScaleDType"),
        (lambda: QuantScheme().per_block(32, F16), "the lengths of a block are 32"),
        (lambda: QuantScheme().per_block((32,), BF16).per_tensor(), "need no global scale"),
        (lambda: QuantScheme().per_block((32,), F16).per_tensor(F16), "It is float32"),
        (lambda: QuantLevel.per_block(0), "a block of (0,)"),
        (lambda: QuantLevel.per_block(1.5), "Lengths are positive, or -1"),
        (lambda: QuantLevel.per_block(True), "a block of (True,)"),
        (lambda: QuantLevel.per_block(1, 1, 1, 1, 1, 1), "A tuple of 1 to 5 integers"),
        (lambda: QuantLevel.two_level(), "two levels without a block"),
        (lambda: QuantStore("packed"), "there is no store 'packed'"),
        (lambda: QuantStore.packed_u32(0), "It is counted from the end"),
        (lambda: QDType("q8f"), "QuantScheme.parse reads the text of one"),
        (lambda: QuantConfig("q8f"), "scheme must be a QuantScheme"),
        (lambda: QuantConfig(propagation="propagate"), "propagation must be a Propagation"),
        (lambda: CPU.configure(quantization=QuantScheme()), "must be a QuantConfig"),
    ],
)
def test_a_wrong_argument_is_refused(make, message):
    with pytest.raises(ArgumentError) as refused:
        make()
    assert message in str(refused.value)


SOME_SCHEMES = [
    QuantScheme(value, store, level, scale)
    for value in QuantValue
    for store in (QuantStore.NATIVE, QuantStore.packed_u32(-2), QuantStore.packed_native())
    for level in (QuantLevel.TENSOR, QuantLevel.per_block(2, -1, 32), QuantLevel.two_level(16))
    for scale in (ScaleDType.F16, ScaleDType.UE4M3)
]


def test_the_text_of_a_scheme_is_read_back():
    texts = [str(scheme) for scheme in SOME_SCHEMES]
    assert [QuantScheme.parse(text) for text in texts] == SOME_SCHEMES
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        *["", "q8f", "q9(scale=float32, store=native)", "q8f(scale=float33, store=native)"],
        *["q8f(block=0, scale=float32, store=native)", "q8f(scale=float32, store=native@-1)"],
        *["q8f(block=02, scale=float32, store=native)", "q8f(scale=float32, store=packed_u32@1)"],
        *["q8f(block=1x1x1x1x1x1, scale=float32, store=native)", "q8f(scale=float32)"],
        *["q8f(scale=float32, store=native) ", "q8f(block=2, global=float32, scale=float32)", 8],
    ],
)
def test_another_text_is_no_scheme(text):
    with pytest.raises(DTypeError):
        QuantScheme.parse(text)


# Dtypes.


def test_a_scheme_has_one_dtype():
    dtype = QDType(QuantScheme())
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: [QDType(item) for item in SOME_SCHEMES], range(8)))
    assert all(first is other for row in made for first, other in zip(made[0], row, strict=True))
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert burn.DType.of(str(dtype)) is dtype
    assert repr(dtype) == f"burn.{QuantScheme()}"


def test_a_quantized_dtype_takes_no_part_in_promotion():
    dtype = QDType(QuantScheme())
    assert dtype not in burn.DType.members()
    assert dtype.name not in burn.__array_namespace_info__().dtypes()
    assert dtype not in CPU.dtypes()
    assert CPU.supports_dtype(dtype)
    kinds = ("real floating", "numeric", "integral", burn.float32)
    assert not burn.isdtype(dtype, kinds)
    assert burn.isdtype(dtype, str(dtype))
    assert burn.can_cast(dtype, dtype)
    assert not burn.can_cast(dtype, burn.float32)
    assert not burn.can_cast(burn.int8, dtype)
    for call in (burn.finfo, burn.iinfo, lambda item: burn.result_type(item, burn.float32)):
        with pytest.raises(DTypeError, match="q8f"):
            call(dtype)


def test_a_quantized_tensor_stands_for_floats_of_the_dtype_of_others():
    q = quantized(np.ones(4, np.float32), ONE_SCALE)
    x = burn.ones(4, dtype="float16", device=CPU)
    assert burn.result_type(q) is burn.float32
    assert burn.result_type(q, x) is (q + x).dtype is burn.asarray([q, x]).dtype is burn.float16
    assert burn.result_type(q, 1j) is (q + 1j).dtype is burn.complex64
    assert burn.result_type(q, x.astype("int32")) is burn.float32
    assert is_quantized(burn.asarray([q, q]))


@pytest.mark.parametrize(
    "make",
    [
        *[burn.zeros, burn.ones, burn.empty, burn.arange, burn.eye, burn.random.normal],
        lambda count, **options: burn.full(count, 0.5, **options),
        lambda count, **options: burn.linspace(0.0, 1.0, count, **options),
        lambda count, **options: burn.asarray([0.5] * count, **options),
    ],
)
def test_a_quantized_tensor_is_made_of_floats(make):
    with pytest.raises(DTypeError, match="quantize_dynamic"):
        make(4, dtype=QDType(ONE_SCALE), device=CPU)
    assert is_quantized(make(4, device=CPU).astype("float32").astype(str(ONE_SCALE)))


# Calibration and settings.


X = burn.asarray([[1.0, -2.0, 3.0, 4.0]], device=CPU)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: X.quantize_dynamic("q8f"), OperandTypeError, "must be a QuantScheme, not str"),
        (lambda: X.quantize_dynamic(calibration="absmean"), OperandTypeError, "must be a Calibr"),
        (lambda: X.astype("int32").quantize_dynamic(), DTypeError, "takes floats, got int32"),
        (lambda: X.quantize_dynamic(ROWS.per_block((3,), F16)), ShapeError, "do not divide"),
        (lambda: X[0].quantize_dynamic(ROWS.per_block((1, 1), F16)), ShapeError, "of 2 axes"),
        (lambda: X[:, :2].quantize_dynamic(QuantScheme()), ShapeError, "is packed, 4 codes"),
        (lambda: X.quantize(ONE_SCALE, X), OperandTypeError, "must be a QParams, not Tensor"),
        (lambda: X.quantize(ONE_SCALE, QParams(1.0)), OperandTypeError, "scales must be a tensor"),
        (lambda: X.quantize(ONE_SCALE, QParams(X)), ShapeError, "have shape (1,), got (1, 4)"),
        (lambda: X.quantize_dynamic().dequantize("int8"), DTypeError, "not for int8"),
        (lambda: X.quantize_dynamic().dequantize(QDType(ROWS)), DTypeError, "not for q8f"),
        (lambda: compute_range(ROWS, 1.0), OperandTypeError, "x must be a tensor"),
        (lambda: compute_range(ROWS, X, "minmax"), OperandTypeError, "One of Calibration.MIN_MAX"),
        (lambda: compute_q_params(ROWS, X), OperandTypeError, "must be a CalibrationRange"),
        (lambda: compute_q_params(ROWS, CalibrationRange(1, 2)), OperandTypeError, "a tensor"),
        (lambda: X.quantize_dynamic().require_grad(), BurnError, "gradient"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, error, message):
    with pytest.raises(error) as refused:
        call()
    assert message in str(refused.value)
    assert "failed with" not in str(refused.value)


def test_quantizing_is_range_scales_and_codes():
    for scheme in SCHEMES.values():
        parameters = compute_q_params(scheme, compute_range(scheme, X, Calibration.MIN_MAX))
        assert X.quantize(scheme, parameters).data() == X.quantize_dynamic(scheme).data()


@pytest.fixture
def propagating():
    """The device quantizes results of arithmetic again."""
    before = CPU.settings.quantization
    CPU.configure(quantization=QuantConfig(ROWS, Propagation.PROPAGATE))
    yield
    CPU.configure(quantization=before)


def test_a_device_has_a_scheme_and_says_what_arithmetic_gives(propagating):
    q = X.quantize_dynamic()
    assert default_quant_scheme(CPU) == q.dtype.scheme == ROWS
    assert dispatch.default_quant_scheme(CPU.dispatch_id) == ROWS
    assert CPU.backend.default_quant_scheme(CPU.id) == ONE_SCALE
    assert is_quantized(q * 2.0)
    assert is_quantized(burn.sum(q, axis=0))
    assert burn.sum(q, dtype="float64").dtype is burn.float64
    assert not is_quantized(q[0, 0] + burn.asarray(1.0, device=CPU.autodiff()).require_grad())
    CPU.configure(quantization=QuantConfig())
    assert not is_quantized(q * 2.0)


def test_a_device_needs_what_quantized_tensors_are_made_of():
    devices = [burn.testing.MockDevice("npu", without=("uint32", "uint8"))]
    with burn.registered(burn.testing.mock_backend("acme", devices)):
        device = burn.Device("acme")
        assert device.supports_dtype(QDType(ONE_SCALE))
        assert not device.supports_dtype(QDType(QuantScheme()))
        with pytest.raises(DTypeError, match="has no uint32"):
            burn.ones(4, device=device).quantize_dynamic(QuantScheme())


# Layers of devices.


def test_a_quantized_tensor_is_a_constant_of_autodiff():
    q = X.quantize_dynamic()
    backend = Quantized(Autodiff(CPU.backend))
    assert backend.q_from_inner(q.primitive) is backend.q_inner(q.primitive) is q.primitive
    on_autodiff = burn.Tensor.from_inner(q)
    assert on_autodiff.device is CPU.autodiff()
    assert on_autodiff.inner().data() == on_autodiff.detach().data() == q.data()
    assert not (on_autodiff * 2.0).is_tracked
    x = burn.ones((2, 4), device=CPU.autodiff()).require_grad()
    gradient = x.grad((x @ on_autodiff.mT).sum().backward())
    assert gradient.tolist() == [q.tolist()[0]] * 2


def test_one_element_of_a_tensor_in_blocks_keeps_its_bits():
    for scheme in SCHEMES.values():
        q = X.quantize_dynamic(scheme)
        numbers = q.tolist()[0]
        assert [q[0, index].item() for index in range(4)] == numbers
        assert [float(item) for item in q[0]] == numbers
        assert f"{q[0, 1]:.1f}" == "-2.0"
        assert f"dtype={q.dtype}" in repr(q)


@pytest.mark.parametrize("device", burn.Device.enumerate())
def test_finite_numbers_are_restored_as_finite_ones_and_alike_on_every_device(device):
    row = [3.4e38, 1.0, -3.4028234e38, 1.7e38, -2.6e38, 3e38, 0.0, -1.0]
    stores = [
        (QuantLevel.per_block(1, 8), ScaleDType.F32),
        (QuantLevel.per_block(1, 8), ScaleDType.UE8M0),
        (QuantLevel.two_level(1, 8), ScaleDType.UE4M3),
    ]
    for rows in (4, 400):
        values = np.array([row] * rows, np.float32)
        for value in QuantValue:
            for level, kind in stores:
                scheme = QuantScheme(value, QuantStore.NATIVE, level, kind)
                q = burn.asarray(values, device=device).quantize_dynamic(scheme)
                expected = burn.asarray(values, device=CPU).quantize_dynamic(scheme)
                assert burn.all(burn.isfinite(q.dequantize()))
                assert q.data() == expected.data()
