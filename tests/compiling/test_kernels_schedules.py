"""Schedules and languages like C: kernels in C give what the reference of kernels gives."""

import ctypes
import shutil
import subprocess
from typing import ClassVar

import numpy as np
import pytest

import burn
from burn import float32, float64, int8, int32, int64, uint64
from burn.dtype import Kind, bool_
from burn.kernels import Apply, Index, Kernel, Literal, Load, Reduce, Scalar, Store
from burn.kernels.c import CWriter
from burn.kernels.chunks import write_chunks
from burn.kernels.expressions import Nodes, expression
from burn.kernels.groups import write_groups
from burn.kernels.layout import collapsed, generalized, needs_wide_indices
from burn.kernels.parts import divided
from burn.kernels.schedule import kept_of, loops_of
from burn.testing.tolerance import compare
from kernel_reference import run_kernel

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

compiled = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


class PlainWriter(CWriter):
    """C of a host; a group is a call."""

    types: ClassVar = {
        "bool": "unsigned char",
        "int8": "signed char",
        "int16": "short",
        "int32": "int",
        "int64": "long",
        "uint8": "unsigned char",
        "uint16": "unsigned short",
        "uint32": "unsigned int",
        "uint64": "unsigned long",
        "float32": "float",
        "float64": "double",
    }
    preamble = (
        "#include <math.h>\nstatic long group;\nvoid set_group(long number) { group = number; }\n"
    )
    entry = ""
    unrolled = ""
    group = "group"
    lane = "0"
    shared = ""
    fence = ";"


def chunks(writer, kernel):
    return write_chunks(writer, kernel)


def groups(writer, kernel):
    return write_groups(writer, kernel, lanes=1)


def run(kernel, schedule, inputs, scalars, folder, sizes):
    """The outputs of a kernel, written by a schedule and compiled."""
    small = collapsed(kernel)
    writer = PlainWriter(small, wide=needs_wide_indices(small))
    count, lanes = schedule(writer, small)
    assert lanes == 1
    source, library = folder / "kernel.c", folder / f"kernel{len(list(folder.iterdir()))}.so"
    source.write_text(writer.text("generated", lanes))
    subprocess.run(
        [COMPILER, "-O1", "-shared", "-fPIC", "-w", source, "-o", library, "-lm"], check=True
    )
    loaded = ctypes.CDLL(str(library))
    outputs = [
        np.zeros(size, dtype.numpy) for size, (dtype, _) in zip(sizes, kernel.outputs, strict=True)
    ]
    arguments = [ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs)]
    kinds = {int: ctypes.c_long, float: ctypes.c_double}
    arguments += [kinds[kind](scalar) for kind, scalar in zip(kernel.scalars, scalars, strict=True)]
    for number in range(count(scalars)):
        loaded.set_group(ctypes.c_long(number))
        loaded.generated(*arguments)
    return outputs


def check(kernel, inputs, folder, scalars=()):
    expected = [np.zeros(size, dtype.numpy) for dtype, size in kernel.outputs]
    run_kernel(kernel, inputs, scalars, expected)
    general, lengths = generalized(kernel)
    for schedule in (chunks, groups):
        for form, numbers in ((kernel, scalars), (general, (*scalars, *lengths))):
            actual = run(form, schedule, inputs, numbers, folder, [e.size for e in expected])
            for result, wanted, (dtype, _) in zip(actual, expected, kernel.outputs, strict=True):
                wide = wanted.astype(np.float64) if dtype.is_float else wanted
                assert compare(result, wide, dtype).text == "", schedule.__name__


FUNCTIONS = ["add", "subtract", "multiply", "maximum", "minimum"]


def random_kernel(seed):
    """A kernel of two axes of rows and one or two of columns, whose loads have any strides."""
    random = np.random.default_rng(seed)
    space = tuple(int(random.integers(1, most)) for most in (6, 6, 6, 40))
    rows = int(random.integers(2, 4))
    dtype = [float32, float64, int32][int(random.integers(3))]
    nodes, inputs = Nodes(), []
    for number in range(2):
        order = random.permutation(4)
        strides, step = [0] * 4, 1
        for axis in order:
            if random.random() < 0.75:
                strides[axis], step = step, step * space[axis]
        values = random.integers(-4, 5, step) if dtype.is_integer else random.normal(size=step)
        inputs.append(np.ascontiguousarray(values.astype(dtype.numpy)))
        nodes.add(Load(number, 0, tuple(strides), dtype))
    for _ in range(int(random.integers(1, 4))):
        for _ in range(2):
            pair = tuple(int(integer) for integer in random.integers(0, len(nodes.body), 2))
            nodes.apply(FUNCTIONS[int(random.integers(5))], pair, dtype, dtype)
        kind = ["sum", "max", "min"][int(random.integers(3))]
        nodes.add(Reduce(kind, len(nodes.body) - 1, dtype))
    last = len(nodes.body) - 1
    mixed = nodes.apply("subtract", (int(random.integers(last)), last), dtype, dtype)
    whole = tuple(int(np.prod(space[axis + 1 :])) for axis in range(4))
    counts = int(np.prod(space)), int(np.prod(space[:rows]))
    of_rows = tuple(int(np.prod(space[axis + 1 : rows])) if axis < rows else 0 for axis in range(4))
    stores = (Store(0, mixed, 0, whole), Store(1, last, 0, of_rows))
    outputs = ((dtype, counts[0]), (dtype, counts[1]))
    kernel = Kernel(space, rows, (dtype, dtype), (), outputs, tuple(nodes.body), stores)
    return kernel, inputs


@compiled
@pytest.mark.parametrize("seed", range(6))
def test_a_random_kernel_gives_what_its_reference_gives(seed, tmp_path):
    kernel, inputs = random_kernel(seed)
    check(kernel, inputs, tmp_path)


@compiled
@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(6, 150))
def test_more_random_kernels_give_what_their_references_give(seed, tmp_path):
    kernel, inputs = random_kernel(seed)
    check(kernel, inputs, tmp_path)


@compiled
@pytest.mark.parametrize(
    "dtype",
    [int8, *[pytest.param(item, marks=pytest.mark.exhaustive) for item in (int32, uint64)], int64],
    ids=str,
)
def test_functions_of_integers_in_c(dtype, tmp_path):
    limits = np.iinfo(dtype.numpy)
    some = np.array([limits.min, limits.max, 0, 1, 2, 7, 8, 63, 64, 100], dtype.numpy)
    if dtype.kind is Kind.INT:
        some = np.append(some, np.array([-1, -2, -7], dtype.numpy))
    x, y = [np.ascontiguousarray(item.reshape(-1)) for item in np.meshgrid(some, some)]
    nodes = Nodes()
    pair = (nodes.add(Load(0, 0, (1,), dtype)), nodes.add(Load(1, 0, (1,), dtype)))
    names = ["add", "subtract", "multiply", "floor_divide", "remainder", "fmod", "maximum"]
    names += ["bitwise_and", "bitwise_or", "bitwise_xor"]
    results = [nodes.apply(name, pair, dtype, dtype) for name in names]
    results += [nodes.apply(name, pair[:1], dtype, dtype) for name in ("negative", "abs")]
    stores = tuple(Store(number, result, 0, (1,)) for number, result in enumerate(results))
    outputs = ((dtype, x.size),) * len(results)
    kernel = Kernel((x.size,), 1, (dtype,) * 2, (), outputs, tuple(nodes.body), stores)
    check(kernel, [x, y], tmp_path)


@compiled
def test_numbers_of_a_launch_indices_and_guards_in_c(tmp_path):
    body = (
        Index(1, int64),
        Literal(3, int64),
        Apply("less", (0, 1), bool_),
        Load(0, 0, (5, 1), float32, guard=2),
        Scalar(0, float32),
        Apply("multiply", (3, 4), float32),
        Scalar(1, int32),
        Apply("cast", (6,), float32),
        Apply("add", (5, 7), float32),
    )
    stores = (Store(0, 8, 0, (5, 1)),)
    kernel = Kernel((4, 5), 2, (float32,), (float, int), ((float32, 20),), body, stores)
    check(kernel, [np.arange(20, dtype=np.float32)], tmp_path, scalars=(0.5, -3))


@compiled
@pytest.mark.parametrize("strides", [(45, 1), (1, 3)])
def test_reductions_in_parts_in_c(strides, tmp_path):
    body = (
        Load(0, 0, strides, float32),
        Reduce("sum", 0, float32),
        Literal(0.0, float32),
        Apply("less", (0, 2), bool_),
        Index(1, int32),
        Literal(44, int32),
        Apply("where", (3, 4, 5), int32),
        Reduce("min", 6, int32),
    )
    stores = (Store(0, 1, 0, (1, 0)), Store(1, 7, 0, (1, 0)))
    kernel = Kernel((3, 45), 1, (float32,), (), ((float32, 3), (int32, 3)), body, stores)
    inputs = [np.random.default_rng(0).normal(size=135).astype(np.float32)]
    partial, final = divided(kernel, 20)
    assert (partial.space, partial.ragged, final.space) == ((3, 3, 20), 45, (3, 3))
    check(partial, inputs, tmp_path)
    parts = [np.zeros(count, dtype.numpy) for dtype, count in partial.outputs]
    run_kernel(partial, inputs, (), parts)
    check(final, [*inputs, *parts], tmp_path)
    results, wanted = [[np.zeros(3, np.float32), np.zeros(3, np.int32)] for _ in range(2)]
    run_kernel(final, [*inputs, *parts], (), results)
    run_kernel(kernel, inputs, (), wanted)
    np.testing.assert_allclose(results[0], wanted[0], 1e-5)
    np.testing.assert_array_equal(results[1], wanted[1])


def test_what_cannot_be_divided_is_left_alone():
    load, store = Load(0, 0, (45, 1), float32), Store(0, 0, 0, (45, 1))
    outputs = ((float32, 135),)
    assert divided(Kernel((3, 45), 1, (float32,), (), outputs, (load,), (store,)), 20) is None
    body = (load, Reduce("max", 0, float32), Apply("subtract", (0, 1), float32))
    body = (*body, Reduce("sum", 2, float32))
    stores = (Store(0, 3, 0, (1, 0)),)
    assert divided(Kernel((3, 45), 1, (float32,), (), outputs, body, stores), 20) is None


def test_equal_structures_are_one_kernel():
    body = (Load(0, 0, (30, 5, 1), float32), Load(1, 0, (0, 1, 0), float32))
    stores = (Store(0, 1, 0, (30, 5, 1)),)

    def kernel(a, b, c):
        scaled = (body[0]._replace(strides=(b * c, c, 1)), body[1])
        whole = (stores[0]._replace(strides=(b * c, c, 1)),)
        return Kernel((a, b, c), 3, (float32,) * 2, (), ((float32, a * b * c),), scaled, whole)

    first, lengths = generalized(kernel(4, 6, 5))
    assert lengths == (4, 6, 5, 30, 5)
    assert first.scalars == (int,) * 5
    assert generalized(kernel(40, 60, 13)) == (first, (40, 60, 13, 780, 13))
    assert generalized(kernel(4, 6, 500))[0] != first  # vectors along a long axis
    assert generalized(kernel(4, 8, 16))[0] != first  # whole vectors
    with pytest.raises(TypeError):
        first.space[0] * 2
    with pytest.raises(TypeError, match="only a launch knows"):
        first.row_count  # noqa: B018 — it raises


def test_literals_of_c_are_exact():
    writer = PlainWriter()
    assert writer.literal(0.1, float32) == "(0.100000001f)"
    assert writer.literal(1.0, float32) == "(1.0f)"
    assert writer.literal(0.1, float64) == "(0.1)"
    assert writer.literal(1e300, float32) == "(float)(1.0f / 0.0f)"
    assert writer.literal(float("-inf"), float64) == "(double)(-1.0f / 0.0f)"
    assert writer.literal(float("nan"), float32) == "(float)(0.0f / 0.0f)"
    assert writer.literal(-(1 << 63), int64) == "(long)(-9223372036854775807 - 1)"
    assert writer.literal((1 << 64) - 1, uint64) == "(unsigned long)18446744073709551615u"
    assert writer.literal(True, bool_) == "1"


def test_equal_constants_of_a_block_are_one_and_variables_are_read_anew():
    writer = PlainWriter()
    first = writer.apply("exp", ("x0",), float32, float32)
    assert writer.apply("exp", ("x0",), float32, float32) == first
    variable = writer.variable(first, float32)
    before = writer.get(variable)
    writer.set(variable, "x0")
    assert writer.get(variable) != before
    with writer.block("if (x0 > 0)"):
        inner = writer.apply("log", ("x0",), float32, float32)
    assert writer.apply("log", ("x0",), float32, float32) != inner


def elementwise(strides, space=(4, 6, 5)):
    body = tuple(Load(number, 0, stride, float32) for number, stride in enumerate(strides))
    count = int(np.prod(space))
    stores = (Store(0, 0, 0, (30, 5, 1)),)
    inputs = (float32,) * len(strides)
    return Kernel(space, 3, inputs, (), ((float32, count),), body, stores)


def test_axes_are_merged_where_all_loads_and_stores_step_through_them_as_through_one():
    assert collapsed(elementwise([(30, 5, 1), (30, 5, 1)])).space == (120,)
    assert collapsed(elementwise([(30, 5, 1), (0, 5, 1)])).space == (4, 30)
    assert collapsed(elementwise([(30, 5, 1), (30, 5, 0)])).space == (24, 5)
    alone = elementwise([(1, 4, 24)])
    assert collapsed(alone) is alone


def test_axes_of_length_one_are_left_out_unless_their_index_is_used():
    load = Load(0, 0, (7, 3, 1), float32)
    stores = (Store(0, 0, 0, (3, 3, 1)),)
    kernel = Kernel((2, 1, 3), 2, (float32,), (), ((float32, 6),), (load,), stores)
    assert (collapsed(kernel).space, collapsed(kernel).rows) == ((2, 3), 1)
    body = (load, Index(1, int64))
    assert collapsed(Kernel((2, 1, 3), 2, (float32,), (), ((float32, 6),), body, stores)).rows == 2


def test_rows_and_columns_are_not_merged():
    body = (Load(0, 0, (5, 1), float32), Reduce("sum", 0, float32))
    kernel = Kernel((4, 5), 1, (float32,), (), ((float32, 4),), body, (Store(0, 1, 0, (1, 0)),))
    assert collapsed(kernel) is kernel


def test_indices_are_wide_where_32_bits_may_not_do():
    assert not needs_wide_indices(elementwise([(30, 5, 1)]))
    assert needs_wide_indices(elementwise([(1 << 30, 5, 1)]))
    body = (Load(0, 0, (0,), int64), Load(1, 0, (0,), float32, gathers=((0, 1),)))
    stores = (Store(0, 1, 0, (1,)),)
    kernel = Kernel((3,), 1, (int64, float32), (), ((float32, 3),), body, stores)
    assert needs_wide_indices(kernel)


def test_a_softmax_takes_three_loops_and_keeps_what_a_later_one_needs():
    body = (
        Load(0, 0, (8, 1), float32),
        Reduce("max", 0, float32),
        Apply("subtract", (0, 1), float32),
        Apply("exp", (2,), float32),
        Reduce("sum", 3, float32),
        Apply("divide", (3, 4), float32),
    )
    stores = (Store(0, 5, 0, (8, 1)),)
    kernel = Kernel((4, 8), 1, (float32,), (), ((float32, 32),), body, stores)
    loops = loops_of(kernel)
    assert [loop.reductions for loop in loops] == [(1,), (4,), ()]
    kept, first = kept_of(kernel, loops)
    assert kept == [0, 3]
    assert first == {0: 0, 2: 1, 3: 1, 5: 2}


def test_the_loops_of_many_shared_nodes_are_found_in_linear_time():
    nodes = Nodes()
    x = nodes.add(Load(0, 0, (8, 1), burn.float32))
    for _ in range(200):
        x = nodes.apply("add", (x, x), float32, float32)
    x = nodes.add(Reduce("sum", x, float32))
    stores = (Store(0, x, 0, (1, 0)),)
    kernel = Kernel((4, 8), 1, (float32,), (), ((float32, 4),), tuple(nodes.body), stores)
    assert len(kept_of(kernel, loops_of(kernel))[1]) == 201


def test_an_expression_is_written_in_c():
    writer = PlainWriter()
    form = expression("softplus", Kind.FLOAT)
    assert form.write(writer, {"x": "x0"}, float32) == "v6"
    assert "log1p" in writer.body
    assert "beta" not in writer.body
