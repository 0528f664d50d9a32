"""Host data: conversions, comparisons, bytes."""

import math
import pickle

import numpy as np
import pytest
import torch

import burn
from burn import TensorData

FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("dtype", burn.DType.members(), ids=str)
def test_bytes_give_the_same_data_back(dtype):
    data = TensorData.of([[0, 1, 1], [1, 0, 1]], dtype)
    for buffer in (data.tobytes(), bytearray(data.tobytes()), memoryview(data.tobytes())):
        again = TensorData.frombuffer(buffer, data.shape, dtype)
        assert again == data
        assert again.dtype is dtype
        assert (again.shape, again.ndim, again.size) == ((2, 3), 2, 6)
    assert TensorData.frombuffer(b"", (0, 3), dtype).shape == (0, 3)
    assert pickle.loads(pickle.dumps(data)) == data
    turned = TensorData(data.array.T)
    assert TensorData.frombuffer(turned.tobytes(), (3, 2), dtype).tolist() == turned.tolist()


def test_a_buffer_is_shared():
    memory = bytearray(8)
    data = TensorData.frombuffer(memory, 2, "float32")
    memory[:4] = np.float32(1.5).tobytes()
    assert data.tolist() == [1.5, 0.0]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((b"123", (1,), "float32"), burn.ShapeError, "3 bytes for float32 of shape (1,), which"),
        ((b"1234", (-1,), "float32"), burn.ShapeError, "not negative"),
        ((b"1234", (1.0,), "float32"), burn.ShapeError, "integers"),
        ((b"1234", None, "float32"), burn.ShapeError, "integers"),
        ((b"\2", (1,), "bool"), burn.ArgumentError, "Each byte is 0 or 1"),
        (("1234", (1,), "float32"), burn.OperandTypeError, "type str is no contiguous buffer"),
        ((np.ones((3, 2)).T, (6,), "float64"), burn.OperandTypeError, "no contiguous buffer"),
        ((b"1234", (1,), "float31"), burn.DTypeError, "unknown dtype"),
    ],
)
def test_a_buffer_that_does_not_fit_is_refused(arguments, error, says):
    with pytest.raises(error) as caught:
        TensorData.frombuffer(*arguments)
    assert says in str(caught.value)


def test_nested_lists_of_different_lengths_are_no_data():
    with pytest.raises(burn.ShapeError, match="its sequences have different lengths"):
        TensorData.of([[1], [2, 3]])


def test_numbers_in_nested_lists_are_data_of_any_dtype():
    assert TensorData.of([[1, 2], [3, 4]], "float32").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert list(TensorData.of([[1, 2], [3, 4]]).flat) == [1, 2, 3, 4]
    assert TensorData.of(2**64 - 1, "uint64").tolist() == 2**64 - 1
    assert TensorData.of(3.7, "int8").tolist() == 3
    assert TensorData.of([], "int8").tolist() == []
    data = TensorData.of([1.0])
    assert data.astype("float64") is data
    for values, dtype in (
        ([300], "uint8"),
        (np.array([-1]), "uint64"),
        ([math.nan], "int32"),
        ([1e30], "int64"),
    ):
        with pytest.raises(burn.ScalarRangeError, match=r"^TensorData\.of: .* does not fit "):
            TensorData.of(values, dtype)
    with pytest.raises(burn.DTypeError, match="imaginary"):
        TensorData.of([1j], "float32")
    with pytest.raises(burn.OperandTypeError, match=r"of type list.*TensorData\.of\(\)"):
        TensorData([1, 2])


def test_data_are_equal_if_all_bits_are():
    data = TensorData.of([1.0, math.nan, 0.0])
    assert data == TensorData.of([1.0, math.nan, 0.0])
    assert data != TensorData.of([1.0, math.nan, -0.0])
    assert data != data.astype("float32")
    assert data != TensorData.of([[1.0, math.nan, 0.0]])
    assert data != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(data)


def differs(x, expected, **tolerances):
    method = x.assert_allclose if tolerances else x.assert_equal
    with pytest.raises(AssertionError) as caught:
        method(expected, **tolerances)
    return str(caught.value)


def test_a_comparison_says_where_numbers_differ_most():
    x = TensorData.of([[1.0, 2.0], [3.0, math.nan]])
    x.assert_equal([[1.0, 2.0], [3.0, math.nan]])
    x.assert_equal(TensorData.of(x.array))
    assert differs(x, [[1.0, 2.5], [4.0, math.nan]]) == (
        "2 of 4 elements differ: at (1, 0) it is 3.0, not 4.0"
    )
    assert "at (1, 1) it is nan" in differs(x, [[1.5, 2.0], [3.0, 4.0]])
    assert "shape=(2, 2)" in differs(x, [1.0, 2.0])
    assert "float32" in differs(x, x.astype("float32"))
    TensorData.of([0.0]).assert_equal([-0.0])
    TensorData.of([0.1], "float16").assert_equal([0.1])
    assert "it is 1, not 1.5" in differs(TensorData.of([1]), [1.5])
    large = TensorData.of([2**63], "uint64")
    assert "1 of 1" in differs(large, [2**63 - 1])
    assert "it is True" in differs(TensorData.of([True, False]), [False, False])
    codes = burn.arange(32, dtype="float32", device="cpu").quantize_dynamic().data()
    codes.assert_equal(codes)
    assert "shape and dtype" in differs(codes, x)
    with pytest.raises(burn.UnsupportedOpError, match="dequantize"):
        codes.tolist()


def test_infinities_are_close_to_themselves_alone():
    x = TensorData.of([math.inf, 1.0])
    x.assert_allclose([math.inf, 1.0], rtol=0.1, atol=math.inf)
    assert "1 of 2" in differs(x, [-math.inf, 1.0], rtol=1.0)
    assert "1 of 2" in differs(x, [1e300, 1.0], rtol=1.0)
    for bound in (-1.0, math.nan, "1"):
        with pytest.raises(burn.ArgumentError, match="a tolerance is"):
            x.assert_allclose(x, rtol=bound)


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128", "int64"])
def test_tolerances_are_those_of_torch(dtype):
    for scale in (1.0, 1e-5, 1000.0):
        for step in np.logspace(-9, -1, 33):
            x = TensorData.of([scale], dtype)
            y = TensorData.of([scale * (1 + step)], dtype)
            try:
                torch.testing.assert_close(burn_to_torch(x), burn_to_torch(y))
            except AssertionError:
                differs(x, y, rtol=None)
            else:
                x.assert_allclose(y)


def burn_to_torch(data):
    wide = torch.from_numpy(data.array.astype("float64" if "f" in data.dtype.kind else data.dtype))
    return wide.to(getattr(torch, data.dtype.name))
