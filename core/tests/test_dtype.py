"""Dtypes and their promotion, against the table of the array API standard."""

import itertools
import pickle

import numpy as np
import pytest

from burn import dtype as d
from burn.dtype import DType, promote
from burn.errors import DTypeError

SIGNED = [d.int8, d.int16, d.int32, d.int64]
UNSIGNED = [d.uint8, d.uint16, d.uint32, d.uint64]


def within_the_standard(first, second):
    if d.bfloat16 in (first, second):
        return False
    if d.uint64 in (first, second) and (first in SIGNED or second in SIGNED):
        return False  # NumPy gives float64 where the standard has nothing
    return first.is_integer == second.is_integer or d.bool_ in (first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [pair for pair in itertools.product(DType.members(), repeat=2) if within_the_standard(*pair)],
)
def test_promotion_is_numpys_wherever_the_standard_defines_it(first, second):
    expected = np.promote_types(first.numpy, second.numpy)
    assert promote(first, second) is promote(second, first) is DType.of(expected)


@pytest.mark.parametrize("integer", SIGNED + UNSIGNED)
@pytest.mark.parametrize("floating", [d.float16, d.bfloat16, d.float32, d.float64])
def test_an_integer_and_a_float_give_the_float(integer, floating):
    assert promote(integer, floating) is floating


def test_the_two_16_bit_floats_give_float32():
    assert promote(d.float16, d.bfloat16) is d.float32
    assert promote(d.bfloat16, d.float32) is d.float32


@pytest.mark.parametrize("signed", SIGNED)
def test_uint64_and_a_signed_integer_have_no_common_dtype(signed):
    with pytest.raises(DTypeError, match="uint64"):
        promote(signed, d.uint64)


@pytest.mark.parametrize("dtype", DType.members())
def test_a_dtype_is_found_by_name_numpy_dtype_and_scalar_type(dtype):
    assert DType.of(dtype.name) is dtype
    assert DType.of(dtype.numpy) is dtype
    assert DType.of(dtype.numpy.type) is dtype
    assert dtype.numpy.itemsize == dtype.itemsize


@pytest.mark.parametrize("nonsense", ["float31", "object", object, 7])
def test_an_unknown_dtype_is_an_error_that_lists_what_there_is(nonsense):
    with pytest.raises(DTypeError, match="bfloat16"):
        DType.of(nonsense)


def test_a_numpy_scalar_changes_nothing_for_numbers_that_equal_it():
    DType.of(np.float32(2))
    assert DType.of(np.int8(2)) is d.int8
    with pytest.raises(DTypeError, match="unknown dtype 2"):
        DType.of(2)


def test_a_dtype_survives_pickling_as_the_same_object():
    assert pickle.loads(pickle.dumps(d.bfloat16)) is d.bfloat16


@pytest.mark.parametrize("dtype", DType.members())
def test_a_dtype_equals_and_hashes_like_its_name(dtype):
    assert dtype == dtype.name
    assert dtype.name == dtype
    assert not dtype != dtype.name  # noqa: SIM202 — != is a method of its own
    assert {dtype: 1}[dtype.name] == 1
    others = {item for item in DType.members() if item is not dtype}
    assert dtype not in others
    assert dtype.name not in others


@pytest.mark.parametrize("dtype", DType.members())
def test_a_dtype_equals_what_numpy_means_by_it(dtype):
    assert dtype == dtype.numpy
    assert dtype.numpy == dtype
    assert dtype == dtype.numpy.type
    assert np.dtype("datetime64[s]") != dtype


def test_a_dtype_equals_nothing_that_is_no_dtype():
    for other in (None, 4, "float31", object, np.float32(1.0), np.zeros(2, "float32"), ["float32"]):
        assert DType.of("float32") != other
        assert not DType.of("float32") == other  # noqa: SIM201 — == is a method of its own


def test_integer_ranges():
    assert d.int8.integer_range == (-128, 127)
    assert d.uint16.integer_range == (0, 65535)
