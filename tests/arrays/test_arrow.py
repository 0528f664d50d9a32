"""Columns of pyarrow and polars: made of tensors, and tensors of them."""

import math

import polars as pl
import pyarrow as pa
import pytest

import burn

CPU = burn.Device("cpu")


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


ARROW_DTYPES = [
    dtype.name
    for dtype in burn.DType.members()
    if not dtype.is_complex and dtype is not burn.bfloat16
]


@pytest.mark.parametrize("dtype", ARROW_DTYPES)
@pytest.mark.parametrize("shape", [(0,), (5,), (2, 3), (0, 2), (2, 1, 3)])
def test_pyarrow_and_polars_make_columns_of_tensors(dtype, shape):
    x = burn.reshape(burn.arange(math.prod(shape), device=CPU), shape).astype(dtype)
    array, series = pa.array(x), pl.Series(x)
    array.validate(full=True)
    assert array.to_pylist() == series.to_list() == x.tolist()
    if len(shape) == 1:
        for column in (array, series):
            back = burn.asarray(column, device=CPU)
            assert back.dtype == dtype
            assert back.tolist() == x.tolist()


def test_a_column_shares_the_memory_of_a_tensor():
    x = burn.arange(1000, device=CPU)
    assert pa.array(x).buffers()[1].address == x.numpy().ctypes.data


def test_tensors_are_columns_of_tables():
    x, y = tensor([1.0, 2.0]), tensor([True, False])
    for table in (pa.table({"x": x, "y": y}), pl.DataFrame({"x": x, "y": y}).to_arrow()):
        assert table.to_pylist() == [{"x": 1.0, "y": True}, {"x": 2.0, "y": False}]
    assert pa.array(x, type=pa.float32()).type == pa.float32()


@pytest.mark.parametrize("library", [pa.array, pl.Series])
def test_what_arrow_cannot_hold_is_refused(library):
    for x, message in (
        (tensor([1j]), "no complex64"),
        (tensor([1.0]).astype("bfloat16"), "no bfloat16"),
        (tensor(1.0), "a 0-d tensor is no column"),
        (burn.ones((2, 0), device=CPU), "no elements"),
        (burn.ones(2, device=CPU.autodiff()).require_grad(), "drop its gradient"),
    ):
        with pytest.raises(burn.BurnError, match=message):
            library(x)


def test_the_stream_of_a_tensor_is_made_by_pyarrow_where_there_is_no_polars(run_python):
    program = """
import burn, pyarrow, sys
x = burn.ones((2, 3), device="cpu")
assert pyarrow.chunked_array(x).to_pylist() == x.tolist()
assert "polars" not in sys.modules
sys.modules["pyarrow"] = None
try:
    x.__arrow_c_stream__()
except burn.ExportError as error:
    assert "pip install pyarrow" in str(error)
else:
    raise SystemExit("no error")
"""
    result = run_python("-c", program)
    assert result.returncode == 0, result.stderr
