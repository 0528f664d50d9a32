"""What is particular to torch; that its ops are right is shown by the conformance kit."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import burn
from burn.nn import functional as F
from burn.plugin_api import (
    REGISTRY,
    DeviceId,
    DTypeUsage,
    Tag,
    TensorData,
    float32,
    int64,
    registry,
    resolve,
    uint32,
)
from burn.testing import SAMPLES, Subject, check_sample
from burn_torch.backend import TorchBackend
from burn_torch.index_checks import IndexChecks

CPU = DeviceId(2)
DEVICE = burn.Device("torch/cpu")


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("torch").load(), CPU).backend


def test_a_primitive_is_a_tensor_of_torch():
    x = burn.ones((2, 3), device=DEVICE)
    assert x.primitive.__class__ is torch.Tensor
    assert x.primitive.dtype is torch.float32


def test_one_object_serves_a_device(backend):
    assert backend.for_device(CPU) is backend.for_device(CPU)


def test_parameters_can_be_primitives():
    parameter = torch.nn.Parameter(torch.ones(2, 3), requires_grad=False)
    x = burn.Tensor.from_primitive(parameter, DEVICE)
    for y in (x + 1.0, 1.0 + x, burn.maximum(x, 2.0), x**2.0 + x, burn.where(x < 3.0, 2.0, x)):
        assert y.tolist() == [[2.0] * 3] * 2
        assert y.primitive.__class__ is torch.Tensor
    assert F.softmax(x.astype("float16"), axis=0).tolist() == [[0.5] * 3] * 2
    assert burn.take(x, burn.asarray([0], device=DEVICE), axis=0).shape == (1, 3)


def test_uploaded_memory_is_the_callers_own_again():
    values = np.ones(4, np.float32)
    x = burn.asarray(values, device=DEVICE)
    values[:] = 5.0
    assert x.tolist() == [1.0] * 4


def test_read_only_memory_is_shared_without_a_warning(backend):
    for dtype in ("float32", "bfloat16", "uint16", "bool"):
        values = np.ones((3, 4), burn.DType.of(dtype).numpy)
        values.flags.writeable = False
        shared = backend.share(TensorData(values), CPU)
        assert backend.to_data(shared).array.ctypes.data == values.ctypes.data
        del values
        assert (backend.to_data(shared).array == 1).all()


def test_memory_in_reverse_order_is_not_shared(backend):
    assert backend.share(TensorData(np.ones(4)[::-1]), CPU) is None


def test_random_words_are_those_of_every_other_backend(backend):
    other = burn.Device("cpu").backend
    for offset, count in ((0, 16), (5, 7), (16_383, 40), (16_384, 4), (70_000, 1000), (3, 70_000)):
        words = [
            item.to_data(
                item.random_bits(
                    seed=2**63 + 5, offset=offset, count=count, dtype=uint32, device=at
                )
            ).array
            for item, at in ((backend, CPU), (other, DeviceId(0)))
        ]
        np.testing.assert_array_equal(*words)
    large = {"seed": 9, "offset": 2**70 + 2**32 - 2, "count": 16, "dtype": uint32}
    np.testing.assert_array_equal(
        backend.to_data(backend.random_bits(**large, device=CPU)).array,
        other.to_data(other.random_bits(**large, device=DeviceId(0))).array,
    )


def test_drawn_numbers_are_the_callers_own(backend):
    draw = {"shape": (8,), "low": 0.0, "high": 1.0, "seed": 4, "offset": 0, "dtype": float32}
    first = backend.random_uniform(**draw, device=CPU)
    expected = first.clone()
    first.zero_()
    assert torch.equal(backend.random_uniform(**draw, device=CPU), expected)


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, -1, 0, 1, 7])
def test_no_division_of_integers_ends_the_process(backend, number):
    x = torch.tensor([-(2**63), 2**63 - 1, -1, 0, 5])
    for divisor in (number, torch.full((5,), number)):
        quotient = backend.floor_divide(x, divisor)
        rest = backend.remainder(x, divisor)
        backend.fmod(x, divisor)
        if number == 0:
            assert not quotient.any()
            assert not rest.any()
        else:
            assert torch.equal(quotient * number + rest, x)
    assert backend.floor_divide(-(2**63), torch.tensor([-1])).tolist() == [-(2**63)]


def test_large_unsigned_integers_are_divided_and_compared_exactly(backend):
    numbers = [0, 1, 2, 3, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
    values = np.array(numbers, np.uint64)
    x = backend.from_data(TensorData(values), CPU)
    for divisor in numbers:
        y = backend.full(shape=(), fill_value=divisor, dtype=burn.uint64, device=CPU)
        expected = [number // divisor if divisor else 0 for number in numbers]
        rest = [number % divisor if divisor else 0 for number in numbers]
        for operand in (y, divisor):
            assert backend.to_data(backend.floor_divide(x, operand)).array.tolist() == expected
            assert backend.to_data(backend.remainder(x, operand)).array.tolist() == rest
            assert backend.less(x, operand).tolist() == [number < divisor for number in numbers]
    powers = backend.to_data(backend.pow(x, x)).array.tolist()
    assert powers == [pow(number, number, 2**64) for number in numbers]


@pytest.mark.parametrize(
    "instructions", [pytest.param("default", marks=pytest.mark.exhaustive), "avx2"]
)
def test_special_values_do_not_depend_on_what_the_processor_has(instructions):
    # Which kernels of torch run, it decides when it is imported.
    ops = ("gelu", "pow", "acos", "log*", "tan*")
    options = [f"--op={op}" for op in ops] + ["--quick", "--suite=special_cases"]
    result = subprocess.run(
        [sys.executable, "-m", "burn", "check", "torch/cpu", *options],
        env=os.environ | {"ATEN_CPU_CAPABILITY": instructions},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rest_is_exact_where_the_quotient_is_too_large(backend, dtype):
    info = np.finfo(dtype)
    x = np.array([1.5, -1.5, info.max, np.nan, 7.0], dtype)
    for divisor in (float(info.smallest_subnormal), -float(info.tiny), 3.0, 0.0):
        with np.errstate(all="ignore"):
            rest, sign_of_dividend = np.remainder(x, dtype(divisor)), np.fmod(x, dtype(divisor))
        operand = torch.from_numpy(x)
        np.testing.assert_array_equal(backend.remainder(operand, divisor).numpy(), rest)
        np.testing.assert_array_equal(backend.fmod(operand, divisor).numpy(), sign_of_dividend)


BINARY = (
    *("add", "subtract", "multiply", "divide", "minimum", "maximum", "less", "less_equal"),
    *("equal", "greater", "pow", "floor_divide", "atan2", "hypot", "copysign", "logaddexp"),
)


SEVERAL_KERNELS = {"pow", "atan2", "hypot", "logaddexp"}
"""Ops for which torch's kernels for a number and for a tensor may round differently."""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("number", [-0.0, 0.1, 1e6, -1e6, 1e-46, 65520.0, 1e300, -1e300, np.inf])
def test_a_number_is_rounded_to_the_dtype_that_it_meets(dtype, number):
    values = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 7.0])
    x = burn.asarray(values, device=DEVICE).astype(dtype)
    tensor = burn.full((), number, dtype=dtype, device=DEVICE)
    for name in BINARY:
        function = getattr(burn, name)
        for found, expected in (
            (function(x, number), function(x, tensor)),
            (function(number, x), function(tensor, x)),
        ):
            np.testing.assert_allclose(
                found.astype("float64").numpy(),
                expected.astype("float64").numpy(),
                rtol=burn.finfo(dtype).eps if name in SEVERAL_KERNELS else 0.0,
                err_msg=name,
            )
    chosen = burn.where(x > 1.0, x, number)
    np.testing.assert_array_equal(
        chosen.astype("float64").numpy(),
        burn.where(x > 1.0, x, tensor).astype("float64").numpy(),
    )
    bounded = burn.clip(x, -abs(number), abs(number))
    expected = burn.clip(x, -burn.abs(tensor), burn.abs(tensor))
    np.testing.assert_array_equal(
        bounded.astype("float64").numpy(), expected.astype("float64").numpy()
    )
    x[0] = number
    assert x[0].astype("float64").item() == tensor.astype("float64").item()


def test_optimizer_steps_change_no_operand(backend):
    tensors = [torch.full((4,), value) for value in (1.0, 0.5, 0.1, 0.2)]
    before = [tensor.clone() for tensor in tensors]
    lists = [[tensor] for tensor in tensors]
    rates = {"learning_rate": 0.1, "weight_decay": 0.1}
    betas = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "decoupled": False}
    backend.adam_step(*lists, [], step=1, **betas, **rates)
    backend.sgd_step(*lists[:3], momentum=0.9, dampening=0.0, nesterov=True, **rates)
    assert all(map(torch.equal, tensors, before))


class Background(TorchBackend):
    """The code for accelerators, on host memory: indices are recorded, and errors raised later."""

    on_host = property(lambda self: False, lambda self, value: None)

    def for_device(self, device):
        return self

    def dtype_usage(self, device, dtype):
        return DTypeUsage.GENERAL


CHECKING = [name for name, op in REGISTRY.items() if Tag.CHECKS_INDICES in op.tags]


@pytest.mark.parametrize(
    "name", [*CHECKING, "max_pool_with_indices", "sort", "matmul", "adam_step"]
)
def test_the_code_for_accelerators_gives_the_same(name):
    subject = Subject(Background(), CPU)
    samples = SAMPLES[name]
    for sample in samples.samples:
        for dtype in subject.dtypes(samples, sample):
            if dtype.name in ("float64", "int64", "uint32", "bool"):
                check_sample(subject, samples, sample, dtype)


def test_an_index_out_of_range_is_reported_at_the_next_read_and_once():
    table = resolve(Background(), CPU)
    ops = table.backend
    x, indices = torch.arange(3.0), torch.tensor([1, 3])
    found = table.gather(x, indices, axis=0)
    assert found.shape == (2,)
    with pytest.raises(
        IndexError, match=r"gather\(float32\[3\], int64\[2\], axis=0\): index 3 is out of range"
    ):
        ops.to_data(found)
    assert ops.to_data(x).array.tolist() == [0.0, 1.0, 2.0]
    assert ops.to_data(ops.gather(x, torch.tensor([-1, -3]), axis=0)).array.tolist() == [2.0, 0.0]


def test_of_many_calls_the_first_wrong_one_is_reported():
    checks = IndexChecks()
    for number in range(1000):
        wrong = number in (700, 900)
        indices = torch.tensor([0, number if wrong else 2])
        recorded = checks.named("select", checks.recorded)(indices, 3)
        assert recorded.tolist() == [0, number % 3 if wrong else 2]
    with pytest.raises(IndexError, match=r"select.*index 700"):
        checks.raise_errors()
    checks.raise_errors()


def test_indices_of_every_integer_dtype_are_taken(backend):
    x = torch.arange(4.0)
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        indices = backend.full(shape=(2,), fill_value=3, dtype=burn.DType.of(dtype), device=CPU)
        assert backend.gather(x, indices, axis=0).tolist() == [3.0, 3.0]
        assert backend.select(x, indices, axis=0).tolist() == [3.0, 3.0]
    beyond = backend.full(shape=(1,), fill_value=2**64 - 1, dtype=burn.uint64, device=CPU)
    with pytest.raises(IndexError):
        backend.gather(x, beyond, axis=0)


def test_usage_of_a_gpu_follows_from_its_compute_capability(backend, monkeypatch):
    half, brain = burn.float16, burn.bfloat16
    for capability, expected in (((6, 1), ()), ((7, 5), (half,)), ((9, 0), (half, brain))):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index, c=capability: c)
        for dtype in (half, brain, float32, int64):
            usage = backend.dtype_usage(DeviceId(0), dtype)
            assert DTypeUsage.GENERAL in usage
            assert (DTypeUsage.ACCELERATED in usage) == (dtype in expected)
    assert not backend.dtype_usage(DeviceId(1), burn.float64)


def test_host_memory_has_no_direct_copy_to_other_devices(backend):
    assert backend.to_device(torch.ones(2), CPU) is None
    assert backend.to_device(torch.ones(2), DeviceId(0)) is None


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two CUDA devices")
def test_a_tensor_goes_from_gpu_to_gpu_without_the_host(monkeypatch):
    near, far = burn.Device("torch/cuda:0"), burn.Device("torch/cuda:1")
    values = np.arange(24.0).reshape(4, 6)
    x = burn.asarray(values, device=near.autodiff()).require_grad()
    with monkeypatch.context() as patch:
        patch.setattr(TorchBackend, "to_data", lambda self, x: pytest.fail("it was read"))
        there = x.T[::2].to_device(far.autodiff())
        gradient = x.grad((there * there).sum().backward())
    assert there.inner().primitive.device.index == 1
    np.testing.assert_array_equal(there.inner().numpy(), values.T[::2])
    expected = np.zeros((4, 6))
    expected[:, ::2] = 2 * values[:, ::2]
    np.testing.assert_array_equal(gradient.numpy(), expected)
    wrong = burn.take(burn.arange(3, device=near), burn.asarray([5], device=near))
    with pytest.raises(IndexError, match="index 5"):
        wrong.to_device(far).numpy()


def test_the_code_in_the_readme_runs():
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(code, found := {})  # noqa: S102 — the README's own code
    assert found["x"].device is DEVICE
