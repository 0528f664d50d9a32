"""Native code of burn-cpu: its kernels against the specification in NumPy, and whole programs."""

import ctypes
import gc
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

import burn
from burn.dtype import DType, bfloat16, bool_, float16, float32, float64, int64
from burn.kernels import Apply, Index, Kernel, Literal, Load, Reduce, Scalar, Store
from burn.kernels.functions import FUNCTIONS
from burn.kernels.layout import generalized
from burn.kernels.parts import divided
from burn.nn import functional as F
from burn.plugin_api import packed
from burn_cpu import compilation, products, workspaces
from burn_cpu.native import machine
from kernel_reference import run_kernel

CPU = burn.Device("cpu")
REAL = [dtype for dtype in DType.members() if dtype.kind in "biuf"]
TOLERANCE = {float64: 1e-10, float32: 1e-5, float16: 2e-3, bfloat16: 2e-2}


def run_native(kernel, inputs, scalars=(), out=None, parts=1):
    """The outputs of a kernel, whose items are computed in some parts."""
    engine, functions = machine().functions([kernel])
    ((text, address),) = functions.values()
    outputs = out or [np.zeros(count, dtype.numpy) for dtype, count in kernel.outputs]
    words = [source.ctypes.data for source in (*inputs, *outputs)]
    words += [int(np.float64(n).view(np.int64)) if isinstance(n, float) else n for n in scalars]
    table = np.array(words, np.int64)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    items = text.items(scalars)
    ends = [items * part // parts for part in range(parts + 1)]
    for start, stop in itertools.pairwise(ends):
        function(table.ctypes.data, start, stop)
    del engine
    return outputs


def check(kernel, inputs, scalars=(), parts=1):
    """Compare native code with the specification, also that for other shapes."""
    expected = [np.zeros(count, dtype.numpy) for dtype, count in kernel.outputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # casts of NaN, by the specification
        run_kernel(kernel, inputs, scalars, expected)
    general, lengths = generalized(kernel)
    for form, numbers in ((kernel, scalars), (general, (*scalars, *lengths))):
        out = [np.zeros(count, dtype.numpy) for dtype, count in kernel.outputs]
        found = run_native(form, inputs, numbers, out, parts=parts)
        for result, other, (dtype, _) in zip(found, expected, kernel.outputs, strict=True):
            if dtype.is_float:
                tolerance = TOLERANCE[dtype]
                wide = result.astype(np.float64), other.astype(np.float64)
                np.testing.assert_allclose(*wide, tolerance, tolerance)
            else:
                np.testing.assert_array_equal(result, other)


def values(dtype, count, generator):
    """Numbers of a dtype, the special ones among them."""
    if dtype is bool_:
        return generator.integers(0, 2, count).astype(bool)
    if dtype.is_float:
        found = generator.normal(size=count) * 3
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1.0, 1.0, 2.0, 80.0, -95.0]
        found[: len(special)] = special
    else:
        limits = np.iinfo(dtype.numpy)
        found = generator.integers(0, 9, count).astype(dtype.numpy)
        special = [0, 1, 2, limits.max, limits.min, limits.max - 1, 0]
        found[: len(special)] = special
    return generator.permutation(found).astype(dtype.numpy)


def calls():
    for name, function in FUNCTIONS.items():
        for dtype in REAL:
            if dtype.kind in function.kinds:
                yield name, dtype


@pytest.mark.together(("name", "dtype"), list(calls()))
def test_each_function_of_each_dtype(name, dtype):
    generator = np.random.default_rng(1)
    count, operands = 61, FUNCTIONS[name].operands
    dtypes = [dtype] * operands
    if name == "where":
        dtypes[0] = bool_
    inputs = [values(dtype, count, generator) for dtype in dtypes]
    if dtype.is_integer and (name == "pow" or "shift" in name):
        least = -3 if name == "pow" and dtype.kind == "i" else 0
        most = 9 if name == "pow" else min(8 * dtype.itemsize + 6, 127)
        inputs[1] = generator.integers(least, most, count).astype(dtype.numpy)
    for target in REAL if name == "cast" else [bool_ if FUNCTIONS[name].gives_bool else dtype]:
        body = [Load(i, 0, (1,), dtype) for i, dtype in enumerate(dtypes)]
        body.append(Apply(name, tuple(range(operands)), target))
        store = Store(0, operands, 0, (1,))
        outputs = ((target, count),)
        check(Kernel((count,), 1, tuple(dtypes), (), outputs, tuple(body), (store,)), inputs)


def softmax(rows, columns, dtype=float32):
    body = (
        Load(0, 0, (columns, 1), dtype),
        Reduce("max", 0, dtype),
        Apply("subtract", (0, 1), dtype),
        Apply("exp", (2,), dtype),
        Reduce("sum", 3, dtype),
        Apply("divide", (3, 4), dtype),
    )
    outputs = ((dtype, rows * columns), (dtype, rows))
    stores = (Store(0, 5, 0, (columns, 1)), Store(1, 4, 0, (1, 0)))
    return Kernel((rows, columns), 1, (dtype,), (), outputs, body, stores)


@pytest.mark.parametrize("columns", [1, 2, 3, 10, 16, 31, 100, 129, 1000, 9000])
@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64])
def test_rows(columns, dtype):
    x = np.random.default_rng(0).normal(size=5 * columns).astype(dtype.numpy)
    check(softmax(5, columns, dtype), [x])
    check(softmax(5, columns, dtype), [x], parts=3)


@pytest.mark.parametrize("kind", ["sum", "product", "max", "min"])
@pytest.mark.together("shape", [(7, 3), (100, 70), (33, 16), (2, 500)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [float32, float64, bfloat16, int64, bool_], ids=str)
def test_reductions_of_rows_and_of_columns(kind, shape, axis, dtype):
    if dtype is bool_ and kind in {"sum", "product"}:
        pytest.skip("bool has no sum")
    strides = (shape[1], 1)
    x = np.random.default_rng(2).uniform(0.9, 1.1, size=shape).astype(dtype.numpy)
    kept, reduced = 1 - axis, axis
    body = (Load(0, 0, (strides[kept], strides[reduced]), dtype), Reduce(kind, 0, dtype))
    space = (shape[kept], shape[reduced])
    store = Store(0, 1, 0, (1, 0))
    kernel = Kernel(space, 1, (dtype,), (), ((dtype, shape[kept]),), body, (store,))
    check(kernel, [x.ravel()])
    check(kernel, [x.ravel()], parts=2)


@pytest.mark.parametrize(
    "dtype", [float32, float64, float16, int64, bool_, DType.of("int8")], ids=str
)
@pytest.mark.together("columns", [1, 2, 3, 7, 16, 33, 100])
def test_elements_at_every_other_index_and_in_reverse_order(dtype, columns):
    rows, wide = 4, 2 * columns - 1
    x = values(dtype, max(rows * wide, 11), np.random.default_rng(7))[: rows * wide]
    y = values(dtype, max(rows * columns, 11), np.random.default_rng(8))[: rows * columns]
    body = (
        Load(0, 0, (wide, 2), dtype),
        Load(1, columns - 1, (columns, -1), dtype),
        Index(1, int64),
        Literal(columns // 2, int64),
        Apply("less", (2, 3), bool_),
        Load(0, 1, (wide, 2), dtype, guard=4),
        Load(1, columns - 1, (columns, -1), dtype, guard=4),
    )
    stores = tuple(Store(n, node, 0, (columns, 1)) for n, node in enumerate((0, 1, 5, 6)))
    outputs = ((dtype, rows * columns),) * 4
    check(Kernel((rows, columns), 2, (dtype, dtype), (), outputs, body, stores), [x, y])


def sums_and_largest(rows, columns, dtype, axis):
    """The sum of squares and the largest element along the first or the last axis."""
    strides = (1, rows) if axis == 0 else (columns, 1)
    body = (
        Load(0, 0, strides, dtype),
        Apply("multiply", (0, 0), dtype),
        Reduce("sum", 1, dtype),
        Reduce("max", 0, dtype),
        Load(1, 0, (1, 0), dtype),
        Apply("multiply", (2, 4), dtype),
    )
    outputs = ((dtype, rows), (dtype, rows))
    stores = (Store(0, 5, 0, (1, 0)), Store(1, 3, 0, (1, 0)))
    return Kernel((rows, columns), 1, (dtype, dtype), (), outputs, body, stores)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [float32, float16, int64], ids=str)
@pytest.mark.together("shape", [(1, 1000), (1, 7), (3, 4099), (70, 333), (2, 256)])
def test_reductions_in_parts(shape, dtype, axis):
    generator = np.random.default_rng(5)
    x, y = [generator.normal(size=n) for n in (shape[0] * shape[1], shape[0])]
    inputs = [x.astype(dtype.numpy), y.astype(dtype.numpy)]
    kernel = sums_and_largest(*shape, dtype, axis)
    for columns in (64, 100):
        partial, final = divided(kernel, columns)
        check(partial, inputs)
        wide = [np.zeros(count, dtype.numpy) for dtype, count in partial.outputs]
        run_kernel(partial, inputs, (), wide)
        check(final, [*inputs, *wide])
        expected = [np.zeros(count, dtype.numpy) for dtype, count in kernel.outputs]
        run_kernel(kernel, inputs, (), expected)
        for result, other in zip(run_native(final, [*inputs, *wide]), expected, strict=True):
            np.testing.assert_allclose(result, other, 1e-2 if dtype is float16 else 1e-4)


def test_sums_have_the_same_bits_on_any_number_of_threads():
    x = np.random.default_rng(6).normal(size=50_021).astype(np.float32)
    for shape, axis in (((1, 50_021), 1), ((50, 1000), 1), ((1000, 50), 0), ((10, 5000), 0)):
        kernel = sums_and_largest(*shape, float32, axis)
        for form in (kernel, *divided(kernel, 512)[:1]):
            general, lengths = generalized(form)
            inputs, sizes = [x, x], [count for _, count in form.outputs]
            results = []
            for parts in (1, 2, 16):
                out = [np.zeros(size, np.float32) for size in sizes]
                results.append(run_native(general, inputs, lengths, out, parts=parts))
            for result in results[1:]:
                for array, expected in zip(result, results[0], strict=True):
                    np.testing.assert_array_equal(array, expected)


def test_nan_among_many_columns_is_the_largest_and_the_smallest():
    for kind in ("max", "min"):
        x = np.arange(300, dtype=np.float32)
        x[137] = np.nan
        body = (Load(0, 0, (1,), float32), Reduce(kind, 0, float32))
        kernel = Kernel((300,), 0, (float32,), (), ((float32, 1),), body, (Store(0, 1, 0, (0,)),))
        assert np.isnan(run_native(kernel, [x])[0][0])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", [(8, 4, 16), (3, 5, 2), (33, 17, 19), (5, 1, 70), (64, 64, 64)])
def test_products(sizes, transposed):
    m, k, n = sizes
    generator = np.random.default_rng(3)
    inputs = [generator.normal(size=count).astype(np.float32) for count in (m * k, k * n, n)]
    body = (
        Load(0, 0, (k, 0, 1), float32),
        Load(1, 0, (0, k, 1) if transposed else (0, 1, n), float32),
        Apply("multiply", (0, 1), float32),
        Reduce("sum", 2, float32),
        Load(2, 0, (0, 1, 0), float32),
        Apply("add", (3, 4), float32),
    )
    outputs, stores = ((float32, m * n),), (Store(0, 5, 0, (n, 1, 0)),)
    kernel = Kernel((m, n, k), 2, (float32,) * 3, (), outputs, body, stores)
    check(kernel, inputs)
    check(kernel, inputs, parts=2)


def test_gathers_guards_indices_and_scalars():
    generator = np.random.default_rng(4)
    table = generator.normal(size=20 * 7).astype(np.float32)
    rows = generator.integers(0, 20, 9)
    body = (
        Load(0, 0, (1, 0), int64),
        Index(1, int64),
        Literal(5, int64),
        Apply("less", (1, 2), bool_),
        Load(1, 0, (0, 1), float32, ((0, 7),), 3),
        Scalar(0, float32),
        Apply("multiply", (4, 5), float32),
        Scalar(1, int64),
        Apply("add", (0, 7), int64),
    )
    stores = (Store(0, 6, 0, (7, 1)), Store(1, 8, 0, (7, 1)))
    outputs = ((float32, 63), (int64, 63))
    kernel = Kernel((9, 7), 2, (int64, float32), (float, int), outputs, body, stores)
    check(kernel, [rows, table], (0.5, 3))


def test_a_row_value_stored_in_each_column():
    body = (Load(0, 0, (6, 1), float32), Reduce("sum", 0, float32))
    outputs, stores = ((float32, 24),), (Store(0, 1, 0, (6, 1)),)
    kernel = Kernel((4, 6), 1, (float32,), (), outputs, body, stores)
    x = np.arange(24, dtype=np.float32)
    expected = np.repeat(x.reshape(4, 6).sum(1), 6)
    np.testing.assert_array_equal(run_native(kernel, [x])[0], expected)


def test_an_output_over_an_input():
    x = np.arange(1000, dtype=np.float32)
    body = (Load(0, 0, (1,), float32), Literal(2.0, float32), Apply("multiply", (0, 1), float32))
    outputs, stores = ((float32, 1000),), (Store(0, 2, 0, (1,)),)
    kernel = Kernel((1000,), 1, (float32,), (), outputs, body, stores, ((0, 0),))
    run_native(kernel, [x], out=[x])
    np.testing.assert_array_equal(x, np.arange(1000) * 2)


@pytest.mark.parametrize("exponent", [-140, -126, -100, 0, 100, 126])
def test_quotients_of_rows_hold_for_divisors_of_any_size(exponent):
    """They are products with the inverse of what each row has once."""
    x = np.array([2.0, 1.0, 0.5, 0.0] * 10, np.float32) * np.float32(2.0**exponent)
    body = (Load(0, 0, (1,), float32), Reduce("max", 0, float32), Apply("divide", (0, 1), float32))
    outputs, stores = ((float32, 40),), (Store(0, 2, 0, (1,)),)
    kernel = Kernel((40,), 0, (float32,), (), outputs, body, stores)
    np.testing.assert_allclose(run_native(kernel, [x])[0], [1.0, 0.5, 0.25, 0.0] * 10, 1e-6)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 500)), max_size=30))
def test_memory_that_is_used_at_a_time_does_not_overlap(spans):
    spans = [(first, first + more, size, n) for n, (first, more, size) in enumerate(spans)]
    block = packed(spans)
    offsets, total = block.offsets, block.size
    for first, last, size, span in spans:
        assert offsets[span] % 64 == 0
        assert offsets[span] + size <= total
        for other_first, other_last, other_size, other in spans:
            if span != other and first <= other_last and other_first <= last and size:
                begin, end = offsets[other], offsets[other] + max(other_size, 1)
                assert offsets[span] >= end or offsets[span] + size <= begin


def layouts():
    base = np.random.default_rng(5).normal(size=(2, 3, 40, 40)).astype(np.float32)
    yield base[0, 0], base[0, 1]
    yield base[0, 0].T, base[0, 1].T
    yield base[0, 0, :5], base[0, 1, :, 3:7]
    yield base, base[0, 0]
    yield base, base
    yield base.transpose(0, 2, 1, 3), base.transpose(0, 2, 3, 1)[:, :, :, :3]
    yield np.broadcast_to(base[0, 0], (4, 40, 40)), base[0, 0].reshape(1, 40, 40)
    yield base[0, 0, :1], base[0, 1, :, :1]
    yield base[..., :1], base[..., :1, :]
    yield base.astype(np.float64), base.astype(np.float64)


@pytest.mark.parametrize(("a", "b"), list(layouts()))
def test_products_of_matrices_in_any_layout(a, b):
    c = np.zeros(np.matmul(a, b).shape, a.dtype)
    found = products.products_of([a, b, c], [a, b, c])
    assert found is not None
    kind = "float32" if a.dtype == np.float32 else "float64"
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        machine().products[kind]
    )
    for product in found:
        starts = [
            item.ctypes.data + offset
            for item, offset in zip((a, b, c), product.offsets, strict=True)
        ]
        table = np.array([*starts, *product.words], np.int64)
        for item in range(product.items):
            function(table.ctypes.data, item, item + 1)
    np.testing.assert_allclose(c, np.matmul(a, b), 1e-4, 1e-4)


def mixed(x, w, labels):
    hidden = F.relu(x @ w)
    loss = F.cross_entropy(hidden, labels)
    order = burn.sort(hidden, axis=-1)  # a call between native steps
    return (
        loss,
        F.softmax(order * 2.0, axis=-1),
        hidden.T,
        burn.argmax(hidden, axis=1),
    )


def data(rows=6):
    generator = np.random.default_rng(6)
    x, w = generator.normal(size=(rows, 4)), generator.normal(size=(4, 5))
    labels = burn.asarray(generator.integers(0, 5, rows), device=CPU)
    return [burn.asarray(item.astype(np.float32), device=CPU) for item in (x, w)] + [labels]


def assert_same(found, expected):
    for tensor, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(tensor.numpy(), other.numpy(), 1e-5, 1e-6)


def test_a_program_with_calls_between_native_steps():
    function = burn.compile(mixed)
    arguments = data()
    for _ in range(3):
        assert_same(function(*arguments), mixed(*arguments))
    assert "kernel" in function.explain()
    assert any("define" in text for text in function.kernels.values())


def test_results_of_earlier_calls_stay():
    function = burn.compile(mixed)
    x, w, labels = data()
    first = function(x, w, labels)
    kept = [tensor.numpy().copy() for tensor in first]
    function(x + 1.0, w * 2.0, labels)
    for tensor, other in zip(first, kept, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), other)


def test_arguments_in_any_layout_and_numbers_of_numpy():
    function = burn.compile(lambda x, y: burn.exp(x) * y)
    dense = np.random.default_rng(7).normal(size=(6, 8)).astype(np.float32)
    y = burn.asarray(dense.sum(), device=CPU)
    function(burn.asarray(dense, device=CPU), y)
    for x in (dense.T.copy().T, np.repeat(dense, 2, 1)[:, ::2], dense[::-1].copy()[::-1]):
        tensor = burn.asarray(x, device=CPU, copy=False)
        np.testing.assert_allclose(function(tensor, y).numpy(), np.exp(dense) * dense.sum(), 1e-5)
    assert function.programs == 1


def test_an_index_out_of_range_names_the_op_and_the_line():
    function = burn.compile(lambda x, w, labels: mixed(x, w, labels)[0])
    x, w, labels = data()
    function(x, w, labels)
    with pytest.raises(burn.BurnError, match=r"^cross_entropy\(.*test_cpu_native.py:\d+: .* 9 "):
        function(x, w, burn.asarray([0, 1, 9, 0, 1, 2], device=CPU))
    assert_same([function(x, w, labels)], [mixed(x, w, labels)[0]])


def test_without_the_compiler_programs_run_op_by_op(monkeypatch):
    monkeypatch.setenv("BURN_CPU_JIT", "0")
    compilation.compiler.cache_clear()
    try:
        function = burn.compile(mixed)
        assert_same(function(*data()), mixed(*data()))
        assert not function.kernels
    finally:
        compilation.compiler.cache_clear()


PARALLEL = """
    import os, threading
    import numpy as np
    import burn
    from burn_cpu.native import machine

    device = burn.Device("cpu")
    x = burn.asarray(np.random.default_rng(0).normal(size=(700, 700)).astype(np.float32))

    def f(x):
        return burn.sum(burn.exp(x * 0.1), axis=0), x @ x + 1.0, burn.tanh(x)

    g = burn.compile(f)
    expected = [one.numpy() for one in f(x)]

    def check(count):
        for _ in range(count):
            for one, other in zip(g(x), expected):
                np.testing.assert_allclose(one.numpy(), other, 1e-4, 1e-3)

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    helpers = min(2, usable) - 1  # of the two threads one is the caller's
    check(5)
    assert machine().workers._count == helpers
"""


def run_parallel(code):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    program = textwrap.dedent(PARALLEL) + textwrap.dedent(code)
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=100)


def test_programs_of_several_threads_share_the_workers():
    run_parallel("""
        threads = [threading.Thread(target=check, args=(5,)) for _ in range(3)]
        [one.start() for one in threads]
        [one.join() for one in threads]
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_has_workers_of_its_own():
    run_parallel("""
        child = os.fork()
        if not child:
            check(5)
            os._exit(0 if machine().workers._count == helpers else 1)
        check(5)
        assert os.waitpid(child, 0)[1] == 0
    """)


def test_a_second_thread_waits_its_turn():
    function = burn.compile(mixed)
    arguments = data(300)
    expected = mixed(*arguments)
    failures = []

    def work():
        try:
            for _ in range(20):
                assert_same(function(*arguments), expected)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_programs_share_a_workspace(monkeypatch):
    monkeypatch.setattr(workspaces, "_shared", weakref.WeakValueDictionary())

    def function(x):
        return burn.sum(burn.exp(x @ x) @ x + 1.0)

    step = burn.compile(function)
    shapes = [200, 300, 250, 400]
    made = [burn.full((n, n), 1 / n, device=CPU) for n in shapes]
    for _ in range(2):
        for x in made:
            assert abs(step(x).item() / function(x).item() - 1.0) < 1e-5
    shared = workspaces.Workspaces.shared()
    (workspace,) = shared.free
    assert step.programs == len(shapes)
    assert 400 * 400 * 4 <= workspace.nbytes <= 2 * 400 * 400 * 4
    freed = weakref.ref(shared)
    del shared, step
    gc.collect()
    assert freed() is None


def test_a_program_inside_of_another_one_has_another_workspace():
    x = burn.full((200, 200), 1 / 200, device=CPU)

    def function(x):
        before = burn.exp(x @ x)
        for _ in range(2):
            x = burn.while_loop(lambda y: burn.sum(y) < 1e4, lambda y: burn.exp(y @ y) + y, x)
        return burn.sum(before @ x + before)

    expected = function(x).item()
    step = burn.compile(function)
    with ThreadPoolExecutor(4) as pool:
        found = [item.item() for item in pool.map(step, [x] * 8)]
    assert all(abs(item / expected - 1.0) < 1e-5 for item in found)
