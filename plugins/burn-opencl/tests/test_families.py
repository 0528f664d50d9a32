"""Kernels on tensors that are larger than the samples of the kit, beside burn-cpu's results.

Each once as a processor runs it and once as a GPU does, with the kernels for large tensors.
"""

from collections import Counter

import numpy as np
import pytest

import burn
from burn.plugin_api import TensorData, complex64, complex128, float32, int64, resolve
from burn_opencl.backend import OpenClDevice
from burn_opencl.icd_loader import found_devices

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

NUMBERS = np.random.default_rng(0)


def floats(*shape):
    return NUMBERS.normal(size=shape).astype(np.float32)


def complexes(*shape):
    return floats(*shape).astype(np.float64) + 1j * floats(*shape)


def singles(*shape):
    return complexes(*shape).astype(np.complex64)


def units(*shape):
    """Numbers of magnitude 1, whose products have it too."""
    return np.exp(1j * floats(*shape)).astype(np.complex64)


def channels(*shape):
    x = floats(*shape) + 3.0
    axes = (0, *range(2, len(shape)))
    return x, floats(shape[1]), floats(shape[1]), x.mean(axes), x.var(axes)


def normalized(*shape):
    x, gamma, beta, mean, variance = channels(*shape)
    return {
        "batch_norm": ([x, gamma, beta, mean, variance], {"epsilon": 1e-5}),
        "batch_norm_training": ([x, gamma, None], {"epsilon": 1e-5}),
        "batch_norm_grad": ([x, gamma, mean, variance, floats(*shape)], {"epsilon": 1e-5}),
    }


QUERY, KEY, VALUE = floats(2, 3, 70, 8), floats(2, 3, 150, 8), floats(2, 3, 150, 5)
MASK, BIAS = NUMBERS.random((2, 1, 70, 150)) < 0.3, floats(3, 1, 150)
SCORES = {"scale": 0.3, "softcap": None, "is_causal": False}
ATTENDED = {
    "masked": ([QUERY, KEY, VALUE, MASK, BIAS], {**SCORES, "softcap": 2.0}),
    "plain": ([QUERY, KEY, VALUE, None, None], SCORES),
    "causal": ([QUERY, KEY, VALUE, None, None], {**SCORES, "is_causal": True}),
}
IMAGES = floats(3, 4, 33, 40)
POOLING = {"kernel_size": (3, 2), "stride": (2, 2), "padding": ((1, 1), (0, 1))}
WINDOWS = {"dilation": (2, 1), **POOLING}
POOLED_INDICES = NUMBERS.integers(0, 33 * 40, (3, 4, 16, 20))
SPREAD = floats(3, 4 * 6, 15 * 20)
RESIZING = {"align_corners": False, "scale": None}

CASES = [
    *[
        (name, *case)
        for shape in ((4, 3, 60, 50), (3000, 7), (8, 90, 13))
        for name, case in normalized(*shape).items()
    ],
    *[("attention", *case) for case in ATTENDED.values()],
    *[
        ("attention_grad", [*operands, floats(2, 3, 70, 5)], attributes)
        for operands, attributes in ATTENDED.values()
    ],
    ("max_pool", [IMAGES], {**WINDOWS, "ceil_mode": False}),
    ("max_pool_with_indices", [IMAGES], {**WINDOWS, "ceil_mode": False, "index_dtype": int64}),
    ("max_pool_grad", [floats(3, 4, 16, 20), POOLED_INDICES], {"input_size": (33, 40)}),
    ("avg_pool", [IMAGES], {**POOLING, "count_include_pad": True, "ceil_mode": False}),
    ("unfold4d", [IMAGES], WINDOWS),
    ("fold4d", [SPREAD], {"output_size": (31, 40), **WINDOWS}),
    ("conv", [IMAGES, floats(6, 2, 3, 2), floats(6)], {
        "stride": (2, 1), "padding": ((1, 0), (2, 1)), "dilation": (1, 2), "groups": 2,
    }),
    ("interpolate", [IMAGES], {"output_size": (50, 21), "mode": "cubic", **RESIZING}),
    ("interpolate_grad", [IMAGES], {"input_size": (50, 21), "mode": "linear", **RESIZING}),
    ("adaptive_avg_pool", [IMAGES], {"output_size": (7, 9)}),
    ("adaptive_avg_pool_grad", [IMAGES], {"input_size": (100, 81)}),
    ("grid_sample_2d", [IMAGES, floats(3, 60, 30, 2)], {"padding_mode": "reflection"}),
    ("grid_sample_2d", [IMAGES, floats(3, 60, 30, 2)], {"mode": "bicubic"}),
    *[("rfft", [floats(20, n - 3)], {"axis": 1, "n": n}) for n in (512, 600, 997, 211)],
    ("cfft", [floats(600, 20), floats(600, 20)], {"axis": 0, "n": 480, "inverse": True}),
    ("irfft", [floats(30, 200), floats(30, 200)], {"axis": 1, "n": 399}),
    ("searchsorted", [np.sort(floats(5000)), floats(90, 100)], {"dtype": int64}),
    ("argwhere", [NUMBERS.random((30, 40, 20)) < 0.3], {"dtype": int64}),
    ("gather_nd", [IMAGES, NUMBERS.integers(-3, 3, (4000, 2))], {}),
    ("random_normal", [], {
        "shape": (30_001,), "mean": 1.0, "std": 2.0, "seed": 3, "offset": 5, "dtype": float32,
    }),
    ("random_integers", [], {
        "shape": (30_001,), "low": -5, "high": 1 << 40, "seed": 3, "offset": 5, "dtype": int64,
    }),
    ("multiply", [singles(90, 1, 11), singles(100, 11)], {}),
    ("multiply", [complexes(90, 1, 11), complexes(100, 11)], {}),
    ("tanh", [singles(90, 100)], {}),
    ("abs", [complexes(90, 100)], {}),
    ("isnan", [complexes(90, 100)], {}),
    ("complex", [floats(9000), floats(9000)], {}),
    ("cast", [floats(90, 100)], {"dtype": complex128}),
    ("where", [NUMBERS.random((90, 1)) < 0.5, complexes(100), complexes(90, 100)], {}),
    ("concat", [[complexes(90, 50), complexes(90, 60)]], {"axis": 1}),
    ("sum", [singles(60, 70, 5)], {"axis": (0, 2), "dtype": complex64}),
    ("sum", [complexes(30_000)], {"axis": (0,), "dtype": complex128}),
    ("prod", [units(333, 30)], {"axis": (0,), "dtype": complex64}),
    ("cumsum", [complexes(3, 4000)], {"axis": 1}),
    ("cumprod", [units(333, 30)], {"axis": 0}),
    ("gather", [complexes(90, 100), NUMBERS.integers(-90, 90, (120, 100))], {"axis": 0}),
    ("scatter", [complexes(9, 100), NUMBERS.integers(0, 9, (90, 100)), complexes(90, 100)], {
        "axis": 0, "update": "add",
    }),
    ("matmul", [singles(70, 90), singles(90, 80)], {}),
    ("matmul", [complexes(4, 1, 30, 40), complexes(3, 40, 50)], {}),
]  # fmt: skip


@pytest.fixture(scope="module", params=["processor", "gpu"])
def own(request):
    """The device, or it with the kernels that a GPU gets."""
    device = burn.Device("opencl")
    found = OpenClDevice(device.backend, device.id)
    if request.param == "gpu":
        found.launcher.runtime.is_cpu = False
        found.launcher.specialized_group_items = 256
    before = device.ops.backend  # the device of users' tensors, restored at the end
    devices = device.backend._devices
    devices[device.id] = found
    yield found
    devices[device.id] = before


def params():
    """The cases, of which the gate tries every second of an op."""
    counts = Counter()
    for number, case in enumerate(CASES):
        marks = pytest.mark.exhaustive if counts[case[0]] % 2 else ()
        yield pytest.param(case, id=f"{number}-{case[0]}", marks=marks)
        counts[case[0]] += 1


@pytest.mark.parametrize("case", list(params()))
def test_large_tensors_give_what_burn_cpu_gives(own, case):
    name, operands, attributes = case
    cpu = burn.Device("cpu")
    table = resolve(cpu.backend, cpu.id)

    def computed(backend, device, ops):
        def upload(one):
            if isinstance(one, list):
                return [upload(part) for part in one]
            return None if one is None else backend.from_data(TensorData(one), device)

        uploaded = [upload(operand) for operand in operands]
        result = getattr(ops, name)(*uploaded, **attributes)
        outputs = result if isinstance(result, tuple) else (result,)
        return [backend.to_data(output).array for output in outputs]

    found = computed(own, own.device, resolve(own, own.device))
    for tensor, other in zip(found, computed(cpu.backend, cpu.id, table), strict=True):
        assert tensor.dtype == other.dtype
        largest = np.abs(other.astype(np.complex128)).max(initial=1.0)
        np.testing.assert_allclose(tensor, other, rtol=1e-4, atol=2e-5 * largest)
