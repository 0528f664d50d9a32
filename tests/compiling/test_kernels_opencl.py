"""Generated kernels on OpenCL give what the reference of kernels gives in NumPy."""

import numpy as np
import pytest

import burn
from burn import bfloat16, float16, float32, float64, int8, int32, int64, uint8
from burn.dtype import bool_
from burn.kernels import Apply, Index, Kernel, Literal, Load, Reduce, Scalar, Store
from burn.kernels.expressions import Nodes, expression
from burn.kernels.layout import generalized
from burn.kernels.parts import divided
from burn.plugin_api import Kind
from burn.testing.tolerance import compare
from crossing import crossed
from kernel_reference import run_kernel


@pytest.fixture(scope="module")
def device():
    if not burn.Device.enumerate("opencl"):
        pytest.skip("there is no OpenCL device")
    handle = burn.Device("opencl")
    return handle.backend.for_device(handle.id)


def uploaded(device, array):
    return device.from_data(burn.TensorData(array), device.device)


def check(device, kernel, inputs, scalars=(), lanes=256):
    """Run a kernel on the device, also that for other shapes, and compare with the reference."""
    from burn_opencl.dialect import OpenClDialect

    dialect = OpenClDialect(lanes, has_fp64=True, is_cpu=lanes == 1)
    shapes = tuple((count,) for _, count in kernel.outputs)
    primitives = tuple(uploaded(device, source) for source in inputs)
    expected = [np.zeros(count, dtype.numpy) for dtype, count in kernel.outputs]
    run_kernel(kernel, [source.reshape(-1) for source in inputs], scalars, expected)
    general, lengths = generalized(kernel)
    for form, numbers in ((general, (*scalars, *lengths)), (kernel, scalars)):
        launch = device.load_kernel(dialect.source(form), shapes)
        results = launch(primitives, numbers, (None,) * len(shapes))
        for result, wanted, (dtype, _) in zip(results, expected, kernel.outputs, strict=True):
            actual = device.to_data(result).array
            wide = wanted.astype(np.float64) if dtype.is_float else wanted
            assert compare(actual, wide, dtype).text == ""
    return results


def floats(*shape, dtype=float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype.numpy)


def softmax(rows, columns, dtype, strides):
    body = (
        Load(0, 0, strides, dtype),
        Reduce("max", 0, dtype),
        Apply("subtract", (0, 1), dtype),
        Apply("exp", (2,), dtype),
        Reduce("sum", 3, dtype),
        Apply("divide", (3, 4), dtype),
    )
    stores = (Store(0, 5, 0, (columns, 1)), Store(1, 1, 0, (1, 0)))
    outputs = ((dtype, rows * columns), (dtype, rows))
    return Kernel((rows, columns), 1, (dtype,), (), outputs, body, stores)


SIZES = [(1, 1), (5, 7), (130, 10), (3, 1000), (2, 5000), (33, 64)]


@pytest.mark.parametrize(("size", "lanes"), crossed(SIZES, [1, 32, 256]))
def test_rows_are_reduced_and_computed_again(device, size, lanes):
    rows, columns = size
    for strides in ((columns, 1), (1, rows)):
        kernel = softmax(rows, columns, float32, strides)
        check(device, kernel, [floats(rows * columns)], lanes=lanes)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float64], ids=str)
def test_rows_of_other_floats(device, dtype):
    kernel = softmax(6, 40, dtype, (40, 1))
    check(device, kernel, [floats(6, 40, dtype=dtype)])


REDUCTIONS = [
    *crossed([int8, uint8, int32, int64, float32], ["max", "min", "product", "sum"]),
    *[(bool_, kind) for kind in ("max", "min")],
]


@pytest.mark.parametrize(("dtype", "kind"), REDUCTIONS, ids=str)
def test_reductions_of_all_kinds(device, dtype, kind):
    values = np.random.default_rng(1).integers(-3, 4, (9, 70)).astype(dtype.numpy)
    if dtype.is_float:
        values[3, 5] = np.nan
    body = (Load(0, 0, (70, 1), dtype), Reduce(kind, 0, dtype))
    kernel = Kernel((9, 70), 1, (dtype,), (), ((dtype, 9),), body, (Store(0, 1, 0, (1, 0)),))
    for lanes in (1, 32):
        check(device, kernel, [values], lanes=lanes)


def test_a_reduction_of_two_axes_of_which_one_is_kept_between_them(device):
    body = (Load(0, 0, (7, 105, 1), float32), Reduce("sum", 0, float32))
    stores = (Store(0, 1, 0, (1, 0, 0)),)
    kernel = Kernel((15, 4, 7), 1, (float32,), (), ((float32, 15),), body, stores)
    for lanes in (1, 64):
        check(device, kernel, [floats(4, 15, 7)], lanes=lanes)


@pytest.mark.parametrize("lanes", [1, 32, 256])
def test_reductions_in_parts(device, lanes):
    for strides, columns in (((1000, 1), 300), ((1, 3), 64), ((1000, 1), 1000)):
        body = (Load(0, 0, strides, float32), Reduce("sum", 0, float32), Reduce("max", 0, float32))
        stores = (Store(0, 1, 0, (1, 0)), Store(1, 2, 0, (1, 0)))
        kernel = Kernel((3, 1000), 1, (float32,), (), ((float32, 3),) * 2, body, stores)
        partial, final = divided(kernel, columns)
        values = floats(3000)
        parts = check(device, partial, [values], lanes=lanes)
        check(device, final, [values, *[device.to_data(x).array for x in parts]], lanes=lanes)


@pytest.mark.parametrize("lanes", [1, 32, 256])
def test_a_product_with_a_bias_and_a_rectifier(device, lanes):
    m, n, k = 17, 33, 20
    body = (
        Load(0, 0, (k, 0, 1), float32),
        Load(1, 0, (0, 1, n), float32),
        Apply("multiply", (0, 1), float32),
        Reduce("sum", 2, float32),
        Load(2, 0, (0, 1, 0), float32),
        Apply("add", (3, 4), float32),
        Literal(0.0, float32),
        Apply("maximum", (5, 6), float32),
    )
    stores = (Store(0, 7, 0, (n, 1, 0)),)
    kernel = Kernel((m, n, k), 2, (float32,) * 3, (), ((float32, m * n),), body, stores)
    check(device, kernel, [floats(m, k), floats(k, n), floats(n)], lanes=lanes)


@pytest.mark.parametrize(("columns", "lanes"), crossed([1, 7, 12, 64, 10000], [1, 64]))
def test_elementwise_work_broadcasts_and_steps_through_memory(device, columns, lanes):
    nodes = Nodes()
    dense = nodes.add(Load(0, 0, (columns, 1), float32))
    row = nodes.add(Load(1, 0, (0, 1), float32))
    column = nodes.add(Load(2, 0, (1, 0), float32))
    turned = nodes.add(Load(0, 6 * columns - 1, (-columns, -1), float32))
    total = nodes.apply("add", (dense, row), float32, float32)
    total = nodes.apply("multiply", (total, column), float32, float32)
    gelu = expression("gelu", Kind.FLOAT).write(nodes, {"x": total}, float32)
    mixed = nodes.apply("subtract", (gelu, turned), float32, float32)
    stores = (Store(0, gelu, 0, (columns, 1)), Store(1, mixed, 0, (1, 6)))
    outputs = ((float32, 6 * columns),) * 2
    for kept, used in (((stores[0],), outputs[:1]), (stores, outputs)):
        kernel = Kernel((6, columns), 2, (float32,) * 3, (), used, tuple(nodes.body), kept)
        check(device, kernel, [floats(6, columns), floats(columns), floats(6)], lanes=lanes)


@pytest.mark.parametrize("dtype", [bool_, int8, uint8, int32, int64, float16, bfloat16], ids=str)
def test_vectors_of_neighbours_have_all_dtypes(device, dtype):
    values = np.random.default_rng(2).integers(0, 2 if dtype.is_bool else 100, 64)
    body = (Load(0, 0, (1,), dtype), Apply("cast", (0,), float32), Apply("cast", (1,), dtype))
    outputs = ((float32, 64), (dtype, 64))
    stores = (Store(0, 1, 0, (1,)), Store(1, 2, 0, (1,)))
    kernel = Kernel((64,), 1, (dtype,), (), outputs, body, stores)
    check(device, kernel, [values.astype(dtype.numpy)])


@pytest.mark.parametrize(
    ("dtype", "source"),
    crossed([bool_, int8, uint8, int32, int64, float16, bfloat16], [float32, float64, int64]),
    ids=str,
)
def test_casts_saturate_and_round(device, source, dtype):
    values = [0.0, -0.0, 1.5, -2.5, 127.9, -128.9, 255.5, 300.0, -1.0, 3e9, -3e9, 1e19, -1e19]
    values += [np.inf, -np.inf, np.nan] if source.is_float else []
    with np.errstate(all="ignore"):
        array = np.array(values).astype(source.numpy)
    body = (Load(0, 0, (1,), source), Apply("cast", (0,), dtype))
    count = len(values)
    kernel = Kernel((count,), 1, (source,), (), ((dtype, count),), body, (Store(0, 1, 0, (1,)),))
    check(device, kernel, [array])


def test_gathers_guards_indices_and_numbers_of_a_launch(device):
    body = (
        Load(0, 0, (1, 0), int64),
        Load(1, 0, (0, 1), float32, gathers=((0, 8),)),
        Index(1, int64),
        Literal(5, int64),
        Apply("less", (2, 3), bool_),
        Load(2, 0, (8, 1), float32, guard=4),
        Apply("add", (1, 5), float32),
        Scalar(0, float32),
        Apply("multiply", (6, 7), float32),
        Scalar(1, int64),
        Apply("add", (2, 9), int64),
        Apply("cast", (10,), float32),
        Apply("add", (8, 11), float32),
    )
    inputs = (int64, float32, float32)
    stores = (Store(0, 12, 0, (8, 1)),)
    kernel = Kernel((4, 8), 2, inputs, (float, int), ((float32, 32),), body, stores)
    arrays = [np.array([2, 0, 1, 2]), floats(3, 8), floats(4, 8, seed=1)]
    for lanes in (1, 64):
        check(device, kernel, arrays, scalars=(0.3, -7), lanes=lanes)


def test_a_launch_sets_what_changes_alone_and_writes_where_it_is_told(device):
    body = (Load(0, 0, (1,), float32), Scalar(0, float32), Apply("multiply", (0, 1), float32))
    stores = (Store(0, 2, 0, (1,)),)
    kernel = Kernel((8,), 1, (float32,), (float,), ((float32, 8),), body, stores, ((0, 0),))
    launch = device.load_kernel(device.dialect.source(kernel), ((2, 4),))
    x = uploaded(device, np.arange(8, dtype=np.float32))
    y = uploaded(device, np.ones(8, np.float32))
    for source, factor in ((x, 2.0), (x, 3.0), (y, 3.0), (x, 1e300)):
        (result,) = launch((source,), (factor,), (None,))
        assert result.shape == (2, 4)
        with np.errstate(all="ignore"):
            wanted = device.to_data(source).array * np.float32(factor)
        np.testing.assert_array_equal(device.to_data(result).array.reshape(-1), wanted)
    (same,) = launch((x,), (10.0,), (x,))
    assert same is x
    assert device.to_data(x).array.tolist() == [10.0 * index for index in range(8)]


def test_inputs_of_any_layout_are_copied(device):
    body = (Load(0, 0, (1,), float32),)
    kernel = Kernel((6,), 1, (float32,), (), ((float32, 6),), body, (Store(0, 0, 0, (1,)),))
    launch = device.load_kernel(device.dialect.source(kernel), ((6,),))
    whole = uploaded(device, np.arange(8, dtype=np.float32).reshape(4, 2))
    for view, wanted in (
        (whole.sliced(((1, 3, 1), (0, 2, 1))), [2, 3, 4, 5, 6, 7]),
        (whole.sliced(((0, 3, 1), (0, 2, 1))).permuted((1, 0)), [0, 2, 4, 1, 3, 5]),
    ):
        (result,) = launch((view,), (), (None,))
        assert device.to_data(result).array.tolist() == wanted


def test_a_kernel_without_elements_is_not_launched(device):
    body = (Load(0, 0, (1,), float32),)
    kernel = Kernel((0,), 1, (float32,), (), ((float32, 0),), body, (Store(0, 0, 0, (1,)),))
    check(device, kernel, [floats(0)])
