"""What is special about burn-pure; the conformance tests try its ops."""

import subprocess
import sys

import numpy as np
import pytest

import burn
from burn.plugin_api import (
    REGISTRY,
    Meta,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int64,
)
from burn.testing import Subject
from burn_pure.buffer import Buffer
from burn_pure.formats import read, round_to_odd, write

DEVICE = burn.Device("pure")
HALVES = [float16, bfloat16]


@pytest.fixture(autouse=True)
def quiet():
    """NumPy, the reference, warns where numbers overflow or are NaN."""
    with np.errstate(all="ignore"):
        yield


def bits(memory):
    return np.array(memory, dtype=np.uint16)


def test_it_has_every_required_op_and_no_other():
    table = Subject(DEVICE.backend, DEVICE.id).table
    own = {name for name, value in REGISTRY.items() if table.origin(value) == "native"}
    assert own == {name for name, value in REGISTRY.items() if value.is_required}


def test_the_plugin_is_listed_without_an_array_library():
    program = "import burn_pure, sys; burn_pure.burn_backends(); print('numpy' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_16_bit_float_is_read_and_written_back(dtype):
    every = np.arange(1 << 16, dtype=np.uint16)
    memory = write([], dtype)
    memory.frombytes(every.tobytes())
    numbers = read(memory, dtype)
    np.testing.assert_array_equal(numbers, every.view(dtype.numpy).astype(np.float64))
    kept = ~np.isnan(numbers)
    np.testing.assert_array_equal(bits(write(numbers, dtype))[kept], every[kept])
    assert np.isnan(read(write(np.array(numbers)[~kept], dtype), dtype)).all()


@pytest.mark.parametrize("dtype", [*HALVES, float32], ids=str)
def test_floats_are_rounded_as_numpy_rounds_them(dtype):
    patterns = np.random.default_rng(5).integers(-(2**63), 2**63, 20000, np.int64)
    near = np.random.default_rng(6).normal(size=20000) * 2.0 ** np.linspace(-160, 140, 20000)
    first, step = (0x3F800000, np.uint32) if dtype is float32 else (0, np.uint16)
    neighbours = np.arange(first, first + (1 << 15), dtype=step).view(dtype.numpy)
    ties = (neighbours[:-1].astype(np.float64) + neighbours[1:].astype(np.float64)) / 2.0
    numbers = np.concatenate([patterns.view(np.float64), near, ties, -ties])
    expected = numbers.astype(dtype.numpy).astype(np.float64)
    np.testing.assert_array_equal(read(write(numbers, dtype), dtype), expected)


def test_integers_are_rounded_to_float32_once():
    wide = np.random.default_rng(7).integers(-(2**63), 2**63, 20000, np.int64)
    # Next to half-way between two numbers of float32.
    odd = np.arange(2**23, 2**23 + 1000) * 2 + 1
    near = np.concatenate([odd * 2**shift + step for shift in (30, 37) for step in (-1, 0, 1)])
    numbers = np.concatenate([wide, near])
    rounded = read(
        write([round_to_odd(int(number), float32) for number in numbers], float32), float32
    )
    np.testing.assert_array_equal(rounded, numbers.astype(np.float32))
    assert round_to_odd(2**53 + 1, float64) == float(2**53 + 1)


def test_integers_wrap_around_and_booleans_stay():
    for dtype in burn.DType.members():
        if dtype.is_integer:
            low, high = dtype.integer_range
            assert read(write([low - 1, high + 1, 5], dtype), dtype) == [high, low, 5]
    assert read(write([True, False], bool_), bool_) == [1, 0]


def test_views_take_no_memory_and_can_be_packed():
    backend = DEVICE.backend
    large = backend.full(shape=(10**6, 10**6), fill_value=1.5, dtype=float32, device=DEVICE.id)
    part = backend.slice(large, slices=((5, 2, -3), (0, 3, 7)))
    assert len(part.memory) == 1
    assert part.numbers() == [1.5] * 6
    rows = Buffer.of(range(6), Meta((2, 3), int64))
    assert backend.permute(rows, axes=(1, 0)).numbers() == [0, 3, 1, 4, 2, 5]
    assert rows.packed() is rows.memory
