"""A program whose operations are decomposed gives what it gave, for each sample of each op."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn.compiler import compiled, lowered, simplified
from burn.dtype import DType
from burn.errors import BurnError
from burn.ir import Execution, GraphIr
from burn.ops import REGISTRY, Role, Tag
from burn.tensor_data import TensorData
from ir_graphs import calls, dtype_for, sample_graph

TABLE = burn.Device("cpu").ops

CALLS = [
    (known, call)
    for known, call in calls()
    if known.op.default is not None
    and not known.op.tags & (Tag.RANDOM | Tag.DATA_DEPENDENT)
    and not any(attribute.role is Role.GRAPH for attribute in known.op.attributes.values())
    and not dtype_for(call.kinds).is_complex  # for which defaults do not hold
]


def arrays(known, one):
    """The tensors of a sample, in order."""
    tested = dtype_for(one.kinds)
    for spec, operand in zip(known.op.operands.values(), one.operands, strict=True):
        for array in operand if spec.is_list else [operand]:
            if isinstance(array, np.ndarray):
                promoted = spec.promotes or spec.is_list
                dtype = tested if promoted else DType.of(array.dtype)
                with np.errstate(all="ignore"):
                    yield np.array(array, order="C").astype(dtype.numpy)


def primitives(values):
    return [TABLE.backend.from_data(TensorData(value), TABLE.device) for value in values]


def results(graph, inputs):
    return [TABLE.backend.to_data(item).array for item in Execution(graph, TABLE).run(inputs)]


def is_derived(operation):
    return REGISTRY[operation.name].default is not None


@pytest.mark.parametrize(("dtype", "name"), [("float32", "divide"), ("complex64", "reciprocal")])
def test_operations_of_complex_numbers_that_the_device_has_stay(dtype, name):
    graph = GraphIr.from_text(f"""
        input %0: {dtype}[3]
        %1: {dtype}[3] = reciprocal(%0)
        output %1
    """)
    made = lowered(graph, lambda item: item.name == "reciprocal", TABLE)
    assert [operation.name for operation in made.operations] == [name]


def test_decompositions_of_samples_give_what_the_ops_give(everything):
    for known, item in CALLS if everything else CALLS[::11]:
        graph = sample_graph(known, item)
        inputs = primitives(arrays(known, item))
        try:
            expected = results(graph, inputs)
        except BurnError:
            continue  # cpu does not have it
        made = lowered(simplified(graph, TABLE), is_derived, TABLE)
        note = f"{known.op.name}: {item.note}"
        stays = known.op.name == "complex"  # its decomposition computes on the host
        assert (known.op.name in {call.name for call in made.operations}) is stays, note
        for found, wanted in zip(results(made, inputs), expected, strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), note
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=note)


_UNARY = ("exp", "tanh", "abs", "negative", "square", "sigmoid", "relu", "silu")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


@st.composite
def programs(draw):
    """Random programs: elementwise work, broadcasts, views, reductions, shared operands."""
    shapes = [(2, 3), (3,), (1, 3), (2, 1), ()]
    lines, tensors = [], []

    def made(shape, call):
        id = len(tensors)
        lines.append(f"%{id}: float32[{', '.join(map(str, shape))}] = {call}")
        tensors.append(shape)

    for shape in shapes[: draw(st.integers(1, 5))]:
        id = len(tensors)
        lines.append(f"input %{id}: float32[{', '.join(map(str, shape))}]")
        tensors.append(shape)
    for _ in range(draw(st.integers(1, 40))):
        x = draw(st.integers(0, len(tensors) - 1))
        shape = tensors[x]
        kind = draw(st.sampled_from(["unary", "binary", "number", "view", "reduce", "full"]))
        if kind == "unary":
            made(shape, f"{draw(st.sampled_from(_UNARY))}(%{x})")
        elif kind == "binary":
            y = draw(st.integers(0, len(tensors) - 1))
            try:
                both = np.broadcast_shapes(shape, tensors[y])
            except ValueError:
                continue
            made(both, f"{draw(st.sampled_from(_BINARY))}(%{x}, %{y})")
        elif kind == "number":
            number = draw(st.sampled_from(["0.0", "-0.0", "1.0", "2.0", "-1.0", "0.5"]))
            made(shape, f"{draw(st.sampled_from(_BINARY))}(%{x}, {number})")
        elif kind == "full":
            number = draw(st.sampled_from(["0.0", "1.0", "0.5"]))
            made(shape, f"full(shape={shape}, fill_value={number}, dtype=float32)")
        elif kind == "view":
            _view(draw, made, x, shape)
        else:
            _reduction(draw, made, x, shape)
    outputs = draw(st.lists(st.integers(0, len(tensors) - 1), min_size=1, max_size=4))
    lines += [f"output %{id}" for id in [*outputs, len(tensors) - 1]]
    return GraphIr.from_text("\n".join(lines))


def _reduction(draw, made, x, shape):
    axes = draw(st.sets(st.sampled_from(range(len(shape))))) if shape else set()
    keepdims = draw(st.booleans())
    name = draw(st.sampled_from(["sum", "mean", "max"]))
    reduced = [1 if i in axes else n for i, n in enumerate(shape)]
    if not keepdims:
        reduced = [n for i, n in enumerate(shape) if i not in axes]
    dtype = ", dtype=float32" if name == "sum" else ""
    axis = tuple(sorted(axes))
    made(tuple(reduced), f"{name}(%{x}, axis={axis}, keepdims={keepdims}{dtype})")


def _view(draw, made, x, shape):
    kind = draw(st.sampled_from(["reshape", "permute", "expand", "slice", "flip"]))
    rank = len(shape)
    if kind == "reshape":
        other = draw(st.sampled_from([(math.prod(shape),), (1, *shape), (*shape, 1)]))
        made(other, f"reshape(%{x}, shape={other})")
    elif kind == "permute":
        axes = tuple(draw(st.permutations(range(rank))))
        made(tuple([shape[axis] for axis in axes]), f"permute(%{x}, axes={axes})")
    elif kind == "expand" and math.prod(shape) < 100:
        other = (2, *[3 if n == 1 else n for n in shape])
        made(other, f"expand(%{x}, shape={other})")
    elif kind == "slice":
        slices = tuple(
            [(n - 1, n, -1) if draw(st.booleans()) else (0, max(n - 1, 1), 1) for n in shape]
        )
        made(tuple([length for _, length, _ in slices]), f"slice(%{x}, slices={slices})")
    elif kind == "flip":
        axes = tuple(sorted(draw(st.sets(st.sampled_from(range(rank)))) if rank else set()))
        made(shape, f"flip(%{x}, axes={axes})")


@pytest.mark.parametrize("run", ["passes", "cpu"])
@settings(deadline=None)
@given(graph=programs(), seed=st.integers(0, 5))
def test_random_programs_give_what_they_gave(run, graph, seed):
    rng = np.random.default_rng(seed)
    inputs = primitives(
        [rng.uniform(-1, 1, source.shape).astype(np.float32) for source in graph.inputs]
    )
    with np.errstate(all="ignore"):
        expected = results(graph, inputs)
        if run == "passes":
            small = simplified(graph, TABLE)
            small.check()
            made = lowered(small, is_derived, TABLE)
            made.check()
            found = results(made, inputs)
        else:
            outputs = compiled(graph, TABLE).run(inputs)
            found = [TABLE.backend.to_data(output).array for output in outputs]
    for item, wanted in zip(found, expected, strict=True):
        # Squares of squares are infinite soon, and differences of large sums are not exact.
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(wanted), initial=1.0, where=np.isfinite(wanted))
        if scale < 1e4:
            np.testing.assert_allclose(item, wanted, rtol=1e-4, atol=1e-4)
