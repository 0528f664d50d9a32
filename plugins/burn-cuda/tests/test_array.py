"""Views of arrays: shapes, strides and addresses are those of NumPy."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

from burn_cuda.array import Array

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated


@pytest.fixture
def runtime():
    return emulated.Runtime(0)


def expect_view(x, expected, base):
    assert (x.shape, x.size) == (expected.shape, expected.size)
    assert (x.ndim, x.nbytes, x.dtype) == (expected.ndim, expected.nbytes, expected.dtype)
    assert x.is_dense == expected.flags.c_contiguous
    if x.size:
        assert x.strides == expected.strides
        assert x.address - base[0].address == expected.ctypes.data - base[1].ctypes.data
        np.testing.assert_array_equal(emulated.host(x), expected)


SHAPES = [(), (0,), (1,), (6,), (3, 4), (1, 5, 1), (2, 3, 4), (4, 0, 3), (2, 1, 3, 4)]
KEYS = [..., (), (0,), (-1,), slice(None, None, -1), slice(1, None), (..., slice(0, 1)), (0, 0)]


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", SHAPES)
def test_views_are_those_of_numpy(runtime, shape, dtype):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x = runtime.upload(values)
    base = x, values
    expect_view(x, values, base)
    turned = tuple(range(len(shape)))[::-1]
    for view, expected in (
        (x, values),
        (x.transpose(), values.T),
        (x.transpose(turned), values.T),
        (x.expand((2, *shape)), np.broadcast_to(values, (2, *shape))),
    ):
        expect_view(view, expected, base)
        for key in KEYS:
            try:
                items = np.index_exp[key]
                part = expected[items if ... in items else (*items, ...)]
            except IndexError:
                with pytest.raises(IndexError):
                    view[key]
            else:
                expect_view(view[key], part, base)
    for wanted in ((-1,), (1, values.size), (values.size, 1, 1)):
        expect_view(x.reshape(wanted), values.reshape(wanted), base)
    expect_view(x.reshape(values.size), values.reshape(-1), base)


def test_a_reshape_that_needs_a_copy_is_refused(runtime):
    values = np.zeros((3, 4), np.float32)
    x = runtime.upload(values)
    with pytest.raises(ValueError, match="copy"):
        x.transpose().reshape(12)
    with pytest.raises(ValueError, match="reshape"):
        x.reshape(5, 2)
    expect_view(x[:, :1].reshape(3), values[:, 0], (x, values))


def test_slices_reach_no_further_than_the_array(runtime):
    values = np.arange(12, dtype=np.int64).reshape(3, 4)
    x = runtime.upload(values)
    expect_view(x.slice(((2, 3, -1), (1, 2, 2))), values[::-1, 1::2], (x, values))
    expect_view(x.at(1, 3), values[:, 3], (x, values))
    for slices in (((0, 4, 1), (0, 4, 1)), ((-1, 1, 1), (0, 4, 1))):
        with pytest.raises(IndexError):
            x.slice(slices)
    for axis, index in ((0, 3), (0, -1), (2, 0)):
        with pytest.raises(IndexError):
            x.at(axis, index)


def test_dense_elements_are_read_as_another_dtype(runtime):
    values = np.arange(6, dtype=np.complex64).reshape(2, 3)
    x = runtime.upload(values)
    expect_view(x.view(np.dtype(np.float32)), values.view(np.float32), (x, values))
    expect_view(x.view(np.dtype(np.int64)), values.view(np.int64), (x, values))
    with pytest.raises(ValueError, match="not dense"):
        x.transpose().view(np.dtype(np.float32))


def test_a_view_keeps_the_memory_and_refers_to_the_array(runtime):
    x = runtime.upload(np.arange(4.0))
    alone = runtime.references(x)
    view = x[1:][1:]
    assert view.memory is x
    assert runtime.references(x) != alone
    assert runtime.references(view) == ()
    del view
    assert runtime.references(x) == alone
    view = x[2:]
    del x
    gc.collect()
    assert isinstance(view, Array)
    np.testing.assert_array_equal(runtime.download(view), [2.0, 3.0])
