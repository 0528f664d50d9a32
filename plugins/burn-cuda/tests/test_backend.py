"""What is particular to the backend beside the values of its ops, on emulated devices."""

import contextlib
import sys
from pathlib import Path

import numpy as np
import pytest

from burn.data import TensorData
from burn.device_id import DeviceId
from burn.dtype import bfloat16, float32, int64
from burn.errors import OutOfRangeError
from burn_cuda.backend import CudaBackend

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

pytestmark = pytest.mark.skipif(
    emulated.COMPILER is None, reason="there is no C++ compiler to emulate a GPU with"
)

FIRST, SECOND = DeviceId(0, 0), DeviceId(0, 1)


def upload(backend, array, device=FIRST):
    return backend.for_device(device).from_data(TensorData(np.asarray(array)), device)


@pytest.fixture
def backend():
    return CudaBackend(emulated.Driver, lambda: 1)


def test_each_device_has_an_object_of_its_own_that_stays_the_same():
    backend = CudaBackend(emulated.Driver, lambda: 2)
    other = backend.for_device(SECOND)
    assert backend.for_device(FIRST) is backend
    assert other is not backend
    assert other is backend.for_device(SECOND) is other.for_device(SECOND)
    assert other.for_device(FIRST) is backend
    assert other.driver.index == 1


def test_ops_run_on_their_device_whatever_the_current_one_is():
    entered = []

    class Elsewhere(emulated.Driver):
        def is_current(self):
            return False

        @contextlib.contextmanager
        def current(self):
            entered.append(self.index)
            yield

    backend = CudaBackend(Elsewhere, lambda: 2)
    other = backend.for_device(SECOND)
    x = upload(backend, np.ones(4, np.float32), SECOND)
    entered.clear()
    y = other.add(x, x)
    other.sum(y, axis=(0,), dtype=float32)
    other.to_data(y)
    assert entered
    assert set(entered) == {1}


def test_an_index_out_of_range_is_told_once_by_the_next_read(backend):
    x = upload(backend, np.arange(3.0))
    places = upload(backend, np.array([0, 7]))
    y = backend.select(x, places, axis=0)
    with pytest.raises(OutOfRangeError, match=r"select\(\.\.\.\): index 7 .* length 3"):
        backend.to_data(x)  # of something else: the flag is that of the device
    assert backend.to_data(y).array[0] == 0.0
    backend.sync(FIRST)


def test_an_index_out_of_range_names_the_op_that_was_called(backend):
    weight = upload(backend, np.ones((3, 2), np.float32))
    backend.embedding(weight, upload(backend, np.array([[-4]])))
    with pytest.raises(OutOfRangeError, match="embedding"):
        backend.sync(FIRST)
    logits = upload(backend, np.zeros((1, 3), np.float32))
    backend.cross_entropy(logits, upload(backend, np.array([3])), axis=1)
    with pytest.raises(OutOfRangeError, match="cross_entropy"):
        backend.sync(FIRST)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((130, 257), (1, 0)),
        ((4, 70, 90), (0, 2, 1)),
        ((70, 4, 90), (2, 1, 0)),
        ((3, 40, 5, 60), (0, 3, 2, 1)),
        ((40, 5, 60, 7), (2, 3, 1, 0)),
    ],
)
def test_what_lies_transposed_is_copied_in_tiles(backend, shape, axes):
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    moved = backend.permute(upload(backend, array), axes=axes)
    dense = backend.reshape(moved, shape=(array.size,))
    np.testing.assert_array_equal(dense, array.transpose(axes).reshape(-1))
    np.testing.assert_array_equal(backend.add(moved, moved), 2 * array.transpose(axes))


@pytest.mark.parametrize("length", [1, 31, 4096, 4097, 50_000])
def test_scans_go_over_the_ends_of_warps_blocks_and_parts(backend, length):
    array = np.random.default_rng(0).integers(-5, 6, length)
    x = upload(backend, array)
    np.testing.assert_array_equal(backend.cumsum(x, axis=0), array.cumsum())
    np.testing.assert_array_equal(backend.cummax(x, axis=0), np.maximum.accumulate(array))


@pytest.mark.parametrize(("rows", "columns"), [(1, 20_000), (3, 5000), (300, 7), (70, 1030)])
def test_reductions_of_long_and_of_many_rows(backend, rows, columns):
    array = np.random.default_rng(0).permutation(rows * columns).reshape(rows, columns)
    x = upload(backend, array)
    for axis in (0, 1):
        total = backend.sum(x, axis=(axis,), dtype=int64)
        np.testing.assert_array_equal(total, array.sum(axis))
        place = backend.argmax(x, axis=axis, dtype=int64)
        np.testing.assert_array_equal(place, array.argmax(axis))
    # The same shape, laid out otherwise: what was remembered of the first must not be used.
    moved = backend.permute(upload(backend, array.T.copy()), axes=(1, 0))
    total = backend.sum(moved, axis=(0,), dtype=int64)
    np.testing.assert_array_equal(total, array.sum(0))


def test_bfloat16_is_rounded_to_the_nearest_even(backend):
    numbers = np.array([1.0, 1.00390625, 1.01171875, -3.4e38, np.inf, np.nan, 1e-40], np.float32)
    x = backend.cast(upload(backend, numbers), dtype=bfloat16)
    expected = numbers.astype(bfloat16.numpy)
    np.testing.assert_array_equal(x.astype(np.float32), expected.astype(np.float32))
