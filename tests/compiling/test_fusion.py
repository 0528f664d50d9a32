"""Fusion: what becomes a kernel, and that plans compute what the program does."""

import itertools

import numpy as np
import pytest

import burn
from burn.compiler import KernelCall, Straight, Target, fuses, fusion, lowered, planned
from burn.compiler.memory import arena
from burn.dtype import DType, float32
from burn.ir import Donation, GraphIr, trace
from burn.kernels import Load
from burn.nn import functional as F
from ir_graphs import calls, dtype_for, sample_graph
from kernel_reference import load_reference

TABLE = burn.Device("cpu").ops

ALL = frozenset([dtype for dtype in DType.members() if not dtype.is_complex])


def target(*, keeps=lambda item: False, checks=True, max_product=10_000, **options):
    return Target(ALL, keeps, max_product, checks, **options)


def plan_of(graph, of=None):
    of = of or target()
    return planned(lowered(graph, lambda item: not (fuses(item, of) or of.keeps(item)), TABLE), of)


def parsed(text):
    return GraphIr.from_text(text)


def kernels(plan):
    return [step for step in plan.steps if isinstance(step, KernelCall)]


def called(plan):
    return [step.name for step in plan.steps if not isinstance(step, KernelCall)]


def names(call):
    return [operation.name for operation in call.operations]


def run(plan, *inputs):
    return Straight(plan, TABLE, load_reference).run(inputs)


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def plan_and_compare(function, *arrays, of=None, **close):
    """The plan of a function of tensors, which gives what the function does."""
    tensors = [burn.asarray(array) for array in arrays]
    plan = plan_of(trace(function, *tensors), of)
    expected = function(*tensors)
    found = run(plan, *arrays)
    for item, other in zip(
        expected if isinstance(expected, tuple) else (expected,), found, strict=True
    ):
        reference = np.asarray(item)
        assert (other.shape, other.dtype) == (reference.shape, reference.dtype)
        np.testing.assert_allclose(other, reference, **{"rtol": 2e-5, "atol": 2e-5} | close)
    return plan


# What becomes one kernel.


def test_elementwise_operations_with_broadcasts_are_one_kernel():
    plan = plan_and_compare(lambda x, y: burn.exp(x * y + 1.0) * x, array(8, 16), array(16))
    (call,) = kernels(plan)
    assert call.kernel.space == (8, 16)
    assert call.kernel.rows == 2
    assert [source.shape for source in call.inputs] == [(8, 16), (16,)]
    assert not called(plan)


def test_axes_that_all_tensors_have_alike_are_one_axis():
    plan = plan_and_compare(lambda x, y: x * y, array(4, 5, 6), array(4, 5, 6))
    assert kernels(plan)[0].kernel.space == (120,)


def softmax(x):
    e = burn.exp(x - burn.max(x, axis=-1, keepdims=True))
    return e / burn.sum(e, axis=-1, keepdims=True)


def test_reductions_over_the_same_axes_are_one_kernel_with_what_is_around_them():
    plan = plan_and_compare(softmax, array(8, 16))
    (call,) = kernels(plan)
    assert names(call) == ["max", "subtract", "exp", "sum", "divide"]
    assert (call.kernel.space, call.kernel.rows) == ((8, 16), 1)


def test_a_reduction_over_leading_axes_reads_columns_with_strides():
    plan = plan_and_compare(lambda x: burn.sum(x * 2.0, axis=0), array(6, 8))
    (call,) = kernels(plan)
    assert (call.kernel.space, call.kernel.rows) == ((8, 6), 1)
    assert call.kernel.body[0].strides == (1, 8)


def test_statistics_of_channels_are_one_kernel():
    def normalized(x, gamma):
        mean = burn.mean(x, axis=(0, 2, 3), keepdims=True)
        rest = x - mean
        variance = burn.mean(rest * rest, axis=(0, 2, 3), keepdims=True)
        return rest / burn.sqrt(variance + 1e-5) * burn.reshape(gamma, (1, -1, 1, 1))

    plan = plan_and_compare(normalized, array(4, 3, 5, 5), array(3))
    (call,) = kernels(plan)
    assert (call.kernel.space, call.kernel.rows) == ((3, 4, 25), 1)


def test_reductions_over_other_axes_are_kernels_of_their_own():
    plan = plan_and_compare(lambda x: (burn.sum(x, axis=0), burn.sum(x, axis=1)), array(6, 8))
    assert len(kernels(plan)) == 2


def test_what_reads_the_same_tensor_is_one_kernel_with_several_outputs():
    plan = plan_and_compare(lambda x: (burn.exp(x), burn.sin(x)), array(6, 8))
    (call,) = kernels(plan)
    assert len(call.inputs) == 1
    assert len(call.outputs) == 2


def test_a_small_product_is_a_kernel_with_what_follows():
    def layer(x, w, b):
        return burn.maximum(x @ w + b, 0.0)

    plan = plan_and_compare(layer, array(8, 4), array(4, 16), array(16))
    (call,) = kernels(plan)
    assert (call.kernel.space, call.kernel.rows) == ((8, 16, 4), 2)
    plan = plan_and_compare(
        layer, array(8, 4), array(4, 16), array(16), of=target(max_product=8 * 4 * 16 - 1)
    )
    assert called(plan) == ["matmul"]
    assert list(plan.reasons.values()) == ["it is a large matrix product"]


def test_batched_products_read_permuted_operands_with_strides():
    def scores(x):
        heads = burn.reshape(x, (2, 8, 2, 4))
        query = burn.permute_dims(heads, (0, 2, 1, 3))
        key = burn.permute_dims(heads, (0, 2, 3, 1))
        return query @ key

    plan = plan_and_compare(scores, array(2, 8, 8))
    assert len(kernels(plan)) == 1
    assert not called(plan)


def test_a_product_does_not_compute_its_operands_again_for_each_element():
    plan = plan_and_compare(lambda x, w: (x * 2.0 + 1.0) @ w, array(8, 4), array(4, 16))
    assert [names(kernel) for kernel in kernels(plan)] == [["multiply", "add"], ["matmul"]]


def test_a_product_of_one_column_is_no_reduction():
    plan = plan_and_compare(
        lambda x, w: (x @ w, burn.sum(x @ w, axis=0)), array(16, 1), array(1, 8)
    )
    assert not called(plan)
    plan_and_compare(lambda x: burn.sum(burn.sum(x, axis=1) * 2.0, axis=0), array(16, 1))


# Views.


def test_views_are_strides_of_loads():
    plan = plan_and_compare(lambda x: burn.flip(x[:, :6].T, axis=0) * x[:, 1:7], array(6, 8))
    (call,) = kernels(plan)
    loads = [item for item in call.kernel.body if isinstance(item, Load)]
    assert {load.strides for load in loads} == {(-1, 8), (8, 1)}
    assert not called(plan)


def test_a_view_of_what_is_computed_is_computed_where_it_is_read():
    plan = plan_and_compare(
        lambda x, y: burn.permute_dims(x + 1.0, (1, 0)) * y, array(6, 8), array(8, 6)
    )
    assert len(kernels(plan)) == 1


def test_a_permuted_result_is_stored_in_its_order():
    def moved(x):
        return burn.reshape(burn.permute_dims(burn.exp(burn.sin(burn.cos(x))), (1, 0)), (-1,))

    plan = plan_and_compare(moved, array(6, 8))
    (call,) = kernels(plan)
    assert call.kernel.stores[0].strides in {(1, 6), (6, 1)}
    assert not called(plan)


def test_a_view_that_no_strides_express_is_copied():
    def digits(x):
        return burn.permute_dims(burn.reshape(burn.permute_dims(x, (1, 0)), (2, 24)), (1, 0)) * 2.0

    (call,) = kernels(plan_and_compare(digits, array(6, 8)))
    assert call.kernel.space == (4, 12)  # a reshape of a permuted tensor has strides of digits

    def disagreeing(x):
        return burn.reshape(x[:, :5], (10, 3))[:, :2] * 2.0

    assert len(kernels(plan_and_compare(disagreeing, array(6, 8)))) == 2


def test_views_for_calls_are_calls_without_a_copy():
    plan = plan_and_compare(
        lambda x, w: (x @ w.T) + 1.0, array(8, 4), array(16, 4), of=target(max_product=0)
    )
    assert called(plan) == ["permute", "matmul"]


def test_a_permuted_view_of_a_copy_is_no_copy():
    def products(x, w):
        rows = burn.reshape(
            burn.permute_dims(burn.reshape(burn.exp(x), (2, 3, 4)), (1, 0, 2)), (6, 4)
        )
        return rows.T @ w, rows @ w.T

    plan = plan_and_compare(products, array(6, 4), array(6, 4), of=target(max_product=0), atol=1e-4)
    (call,) = kernels(plan)
    assert [output.shape for output in call.outputs] == [(6, 4)]
    assert sorted(called(plan)) == ["matmul", "matmul", "permute", "permute"]


def test_operands_that_a_call_would_copy_are_stored_densely():
    def product(x, y):
        z = x @ y + 1.0
        return burn.permute_dims(z[:, :4], (1, 0)) @ z[:, 4:]

    arrays = array(6, 3), array(3, 8)
    plan = plan_and_compare(product, *arrays, of=target(max_product=0))
    assert called(plan) == ["matmul", "slice", "permute", "slice", "matmul"]
    copying = target(max_product=0, copies=lambda item: item.name == "matmul")
    plan = plan_and_compare(product, *arrays, of=copying)
    assert called(plan) == ["matmul", "matmul"]
    assert sum(len(kernel.outputs) for kernel in kernels(plan)) == 2


def test_parts_of_tensors_are_loads_with_guards():
    def parts(x, y):
        z = burn.concat([x, y * 2.0], axis=1)
        return burn.concat([z[:, 3:], z[:, :3]], axis=1)

    plan = plan_and_compare(parts, array(6, 4), array(6, 5))
    assert not called(plan)
    guarded = [
        item for call in kernels(plan) for item in call.kernel.body if getattr(item, "guard", None)
    ]
    assert guarded


def test_the_gradient_of_a_slice_is_no_copy():
    graph = parsed("""
        input %0: float32[4, 8]
        input %1: float32[4, 3]
        %2: float32[4, 8] = slice_assign(%0, %1, slices=((0, 4, 1), (2, 3, 1)))
        %3: float32[4, 8] = slice_assign(%2, 5.0, slices=((1, 2, 1), (7, 1, 1)))
        output %3
    """)
    plan = planned(graph, target())
    assert len(kernels(plan)) == 1
    x, part = array(4, 8), array(4, 3, seed=1)
    expected = x.copy()
    expected[:, 2:5] = part
    expected[1:3, 7] = 5.0
    np.testing.assert_array_equal(run(plan, x, part)[0], expected)


# Indices.


def test_the_label_of_each_row_is_read_in_the_kernel_of_the_loss():
    def loss(x, y):
        return F.cross_entropy(x, y)

    x, y = array(8, 5), np.arange(8) % 5
    plan = plan_and_compare(loss, x, y)
    assert not called(plan)
    for strange in (5, -1):
        with pytest.raises(
            burn.errors.OutOfRangeError, match="out of range for an axis of length 5"
        ):
            run(plan, x, np.full(8, strange))


def test_rows_are_read_at_indices():
    plan = plan_and_compare(
        lambda w, i: burn.take(w, i, axis=0) * 2.0,
        array(7, 4),
        np.array([1, 6, 0, -1, 1]),
    )
    (call, *_) = [kernel for kernel in kernels(plan) if not kernel.checks]
    assert any(getattr(item, "gathers", ()) for item in call.kernel.body)
    with pytest.raises(burn.errors.OutOfRangeError, match="index 7 is out of range"):
        run(plan, array(7, 4), np.array([1, 7, 0, 0, 1]))
    with pytest.raises(burn.errors.OutOfRangeError, match="index -8"):
        run(plan, array(7, 4), np.array([1, -8, 0, 0, 1]))


def test_without_checks_indices_are_calls():
    plan = plan_and_compare(
        lambda w, i: burn.take(w, i, axis=0) * 2.0,
        array(7, 4),
        np.array([1, 6, 0, -1, 1]),
        of=target(checks=False),
    )
    assert "gather" in called(plan)


def test_equal_kernels_compute_the_same():
    def of(line):
        graph = parsed(f"input %0: float32[4]\n%1: {line}\noutput %1")
        return kernels(planned(graph, target()))[0].kernel

    zero, negative, again = [of(f"float32[4] = add(%0, {text})") for text in ("0.0", "-0.0", "0.0")]
    assert zero == again
    assert hash(zero) == hash(again)
    assert zero != negative
    filled = of("int64[4] = full(shape=(4,), fill_value=0, dtype=int64)")
    counted = of("int64[4] = arange(start=0, step=1, length=4, dtype=int64)")
    assert filled != counted


# What is computed again, and what is stored.


def test_cheap_results_are_computed_where_they_are_read():
    def both(x):
        y = x * 2.0
        return burn.sum(y, axis=0), burn.sum(y, axis=1)

    plan = plan_and_compare(both, array(6, 8))
    assert [names(kernel) for kernel in kernels(plan)] == [["multiply", "sum"]] * 2


def test_expensive_results_are_stored_once():
    def both(x):
        y = burn.exp(burn.sin(x))
        return burn.sum(y, axis=0), burn.sum(y, axis=1)

    plan = plan_and_compare(both, array(6, 8))
    assert sorted(name for kernel in kernels(plan) for name in names(kernel)) == [
        "exp",
        "sin",
        "sum",
        "sum",
    ]


def test_a_step_of_adam_is_one_kernel_for_each_parameter():
    lists = [[f"%{4 * i + j}" for i in range(2)] for j in range(4)]
    text = [f"input %{number}: float32[{4 + number // 4}, 3]" for number in range(8)]
    text += ["input $0: int", "input $1: float"]
    operands = ", ".join(f"[{', '.join(item)}]" for item in [*lists, []])
    made = ", ".join(f"%{8 + i}: float32[{4 + i % 2}, 3]" for i in range(6))
    text.append(
        f"{made} = adam_step({operands}, step=$0, learning_rate=$1, beta1=0.9, beta2=0.999, "
        "epsilon=1e-08, weight_decay=0.0, decoupled=False)"
    )
    text += [f"output %{8 + i}" for i in range(6)]
    graph = parsed("\n".join(text))
    plan = plan_of(graph)
    assert len(kernels(plan)) == 2
    arrays = [abs(array(4 + number // 4, 3, seed=number)) for number in range(8)]
    expected = TABLE.adam_step(
        *[arrays[j::4] for j in range(4)],
        [],
        step=3,
        learning_rate=0.1,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        weight_decay=0.0,
        decoupled=False,
    )
    for item, other in zip(run(plan, *arrays, 3, 0.1), expected, strict=True):
        np.testing.assert_allclose(item, other, rtol=1e-5)


def test_a_reduction_to_few_rows_is_one_of_partial_results():
    plan = plan_and_compare(lambda x: burn.mean(burn.square(x - 1.0)), array(300, 400))
    first, second = kernels(plan)
    assert first.kernel.row_count == 64
    assert second.kernel.space == (64,)
    plan = plan_and_compare(
        lambda x: burn.sum(x.astype("float16"), axis=0), array(9000, 2) / 100, atol=0.1
    )
    assert [kernel.outputs[0].dtype.name for kernel in kernels(plan)] == ["float32", "float16"]


def test_a_prime_number_of_columns_is_reduced_by_one_kernel():
    plan = plan_and_compare(burn.sum, array(10007))
    assert len(kernels(plan)) == 1


# Numbers, constants, and what has few elements.


def test_tensors_of_one_number_are_no_memory():
    def filled(x):
        return x * burn.full((4, 1), 2.0) + burn.arange(8, dtype="float32")

    plan = plan_and_compare(filled, array(4, 8))
    assert [source.shape for source in kernels(plan)[0].inputs] == [(4, 8)]
    plan = plan_and_compare(lambda x: (burn.zeros((3,)), burn.arange(5), x), array(1))
    assert sum(len(kernel.outputs) for kernel in kernels(plan)) == 2


def test_one_element_and_none():
    plan_and_compare(lambda x: (burn.exp(x), burn.sum(x), burn.reshape(x, (1, 1)) * 2.0), array())
    plan = plan_and_compare(lambda x: (burn.exp(x), burn.sum(x + 1.0)), array(0, 3))
    assert "a tensor has no elements" in plan.reasons[0]


def test_dtypes_without_kernels_are_calls():
    floats = Target(frozenset([float32]), lambda item: False, 1000)
    plan = plan_and_compare(lambda x: (x * 2.0).astype("int64") + 1, array(5), of=floats)
    assert called(plan) == ["cast", "add"]
    assert "int64" in plan.reasons[1]


def test_what_the_device_keeps_is_a_call():
    plan = plan_and_compare(softmax, array(4, 5), of=target(keeps=lambda item: item.name == "exp"))
    assert called(plan) == ["exp"]
    assert list(plan.reasons.values()) == ["the device has a kernel of its own"]


def test_outputs_that_are_inputs_or_twice_the_same():
    def same(x):
        y = x * 2.0
        return x, y, y, burn.reshape(y, (-1,)), burn.permute_dims(x, (1, 0))

    plan_and_compare(same, array(3, 4))


# Memory.


def test_donated_inputs_become_outputs():
    graph = parsed("""
        input %0: float32[4, 3]
        input %1: float32[3]
        %2: float32[4, 3] = multiply(%0, 2.0)
        %3: float32[4, 3] = add(%2, %1)
        output %3
        donate input 0 to output 0
    """)
    plan = planned(graph, target())
    x = array(4, 3)
    expected = x * 2 + 1
    (found,) = run(plan, x, np.ones(3, np.float32))
    assert found is x
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "use",
    [
        "%3: float32[4, 4] = multiply(%2, %1)\n%4: float32[4, 4] = add(%3, %0)",  # read later
        "%3: float32[4, 4] = permute(%0, axes=(1, 0))\n%4: float32[4, 4] = add(%2, %3)",
    ],
)
def test_what_is_read_again_is_not_overwritten(use):
    graph = parsed(f"""
        input %0: float32[4, 4]
        input %1: float32[4, 4]
        %2: float32[4, 4] = exp(%0)
        {use}
        output %2
        output %4
        donate input 0 to output 0
    """)
    x, y = array(4, 4), array(4, 4, seed=1)
    expected = [
        np.copy(item)
        for item in Straight(
            planned(graph, target(keeps=lambda _: True)), TABLE, load_reference
        ).run((x.copy(), y))
    ]
    for item, other in zip(run(planned(graph, target()), x, y), expected, strict=True):
        np.testing.assert_allclose(item, other, rtol=1e-6)


def test_a_donated_input_with_a_view_among_the_outputs_stays():
    graph = parsed("""
        input %0: float32[4, 3]
        %1: float32[4, 3] = exp(%0)
        %2: float32[12] = reshape(%0, shape=(12,))
        output %1
        output %2
    """)
    graph = GraphIr(
        graph.inputs, graph.constants, graph.operations, graph.outputs, None, (Donation(0, 0),)
    )
    assert [kernel.over for kernel in kernels(planned(graph, target()))] == [(None,)]


STEP_AND_CHECK = """
    input %0: float32[4]
    input %1: float32[6]
    input %2: int64[4]
    %3: float32[4] = exp(%0)
    %4: float32[6] = cumsum(%1, axis=0)
    %5: float32[4] = gather(%4, %2, axis=0)
    output %3
    output %5
    donate input 0 to output 0
"""


@pytest.mark.parametrize(
    ("options", "overwrites"),
    [
        ({"checks": True}, False),
        ({"checks": False}, False),
        ({"checks": True, "reports_late": True}, True),
        ({"checks": False, "reports_late": True}, True),
    ],
)
def test_an_input_is_not_overwritten_before_a_step_that_may_raise(options, overwrites):
    plan = planned(parsed(STEP_AND_CHECK), target(**options))
    (step,) = [kernel for kernel in kernels(plan) if names(kernel) == ["exp"]]
    assert step.over == ((0,) if overwrites else (None,))


def test_indices_that_a_kernel_has_checked_raise_no_more():
    graph = parsed("""
        input %0: float32[4, 1]
        input %1: float32[6, 1]
        input %2: int64[4, 1]
        %3: float32[4, 1] = gather(%1, %2, axis=0)
        %4: float32[6, 1] = cumsum(%1, axis=0)
        %5: float32[6, 1] = slice(%4, slices=((0, 6, 1), (0, 1, 1)))
        %6: float32[4, 1] = slice(%5, slices=((0, 4, 1), (0, 1, 1)))
        %7: float32[4, 1] = multiply(%0, %6)
        %8: float32[6, 1] = scatter_add(%1, %2, %3, axis=0)
        output %7
        output %8
        donate input 0 to output 0
    """)
    plan = planned(graph, target())
    assert called(plan) == ["cumsum", "scatter_add"]
    assert any(0 in kernel.over for kernel in kernels(plan))


def transformer(x, w, v):
    for _ in range(4):
        y = softmax(x @ w) @ v
        x = x + burn.tanh(y) * burn.mean(y, axis=-1, keepdims=True)
        x = x - burn.mean(x, axis=0)
    return x


def lifetimes(plan, tensors):
    """The first and the last step that names each tensor, or one that has its memory."""
    same = {}
    found = {}
    for index, step in enumerate(plan.steps):
        if isinstance(step, KernelCall):
            for output, number in zip(step.outputs, step.over, strict=True):
                if number is not None:
                    same[output.id] = same.get(step.inputs[number].id, step.inputs[number].id)
        elif step.name in {"reshape", "permute", "expand", "slice"}:
            same[step.outputs[0].id] = same.get(step.inputs[0].id, step.inputs[0].id)
        inputs = step.inputs if isinstance(step, KernelCall) else list(step.inputs)
        for tensor in [*inputs, *step.outputs]:
            id = same.get(tensor.id, tensor.id)
            first = found.get(id, (index, index))[0]
            found[id] = (first, index)
    return {id: found[same.get(id, id)] for id in tensors}, same


@pytest.mark.parametrize("max_product", [0, 1 << 20])
def test_no_two_tensors_overlap_in_the_arena(max_product):
    plan = plan_and_compare(
        transformer,
        array(16, 32),
        array(32, 16) / 5,
        array(16, 32) / 5,
        of=target(max_product=max_product),
        rtol=1e-3,
        atol=1e-3,
    )
    block = arena(plan, lambda item: item.name == "matmul")
    tensors = {output.id: output for step in plan.steps for output in step.outputs}
    times, same = lifetimes(plan, block.offsets)
    spans = [
        (times[id], offset, offset + 4 * int(np.prod(tensors[id].shape)), same.get(id, id))
        for id, offset in block.offsets.items()
    ]
    peak = 0
    for (start, stop), low, high, root in spans:
        assert low % 64 == 0
        assert high <= block.size
        for (other_start, other_stop), other_low, other_high, other_root in spans:
            if root != other_root and start <= other_stop and other_start <= stop:
                assert high <= other_low or other_high <= low
    for step in range(len(plan.steps)):
        alive = {root: high - low for (a, b), low, high, root in spans if a <= step <= b}
        peak = max(peak, sum(alive.values()))
    assert peak <= block.size <= 1.5 * peak


# All ops, and random programs.


def test_samples_of_the_kit_give_what_their_ops_give(everything):
    count = 0
    for known, item in itertools.islice(calls(), None, None, 1 if everything else 7):
        graph = sample_graph(known, item)
        if not all(output.dtype in ALL and None not in output.shape for output in graph.outputs):
            continue
        plan = plan_of(graph, target(keeps=lambda element: element.name.startswith("random")))
        if not kernels(plan):
            continue
        inputs = []
        tested = dtype_for(item.kinds)
        for spec, operand in zip(known.op.operands.values(), item.operands, strict=True):
            for value in operand if spec.is_list else [operand]:
                if isinstance(value, np.ndarray):
                    wanted = tested if spec.promotes or spec.is_list else DType.of(value.dtype)
                    with np.errstate(all="ignore"):
                        inputs.append(value.astype(wanted.numpy))
        with np.errstate(all="ignore"):
            expected = Straight(
                planned(graph, target(keeps=lambda _: True)), TABLE, load_reference
            ).run([np.copy(value) for value in inputs])
            found = run(plan, *inputs)
        for output, other in zip(found, expected, strict=True):
            assert (output.shape, output.dtype) == (other.shape, other.dtype), known.op.name
            np.testing.assert_allclose(
                output.astype(np.float64),
                other.astype(np.float64),
                rtol=2e-4,
                atol=2e-4,
                err_msg=known.op.name,
            )
        count += 1
    assert count > (300 if everything else 40)


@pytest.mark.parametrize("count", [500, 2000])
def test_the_work_is_linear_in_the_number_of_operations(count, monkeypatch):
    lines = ["input %0: float32[8, 16]", "input %1: float32[16]"]
    for number in range(2, count + 2):
        before = max(0, number - 1 - number % 3)
        op = ("exp(%{0})", "multiply(%{0}, %1)", "sin(%{0})", "add(%{0}, 1.0)")[number % 4]
        lines.append(f"%{number}: float32[8, 16] = {op.format(before if before != 1 else 0)}")
    lines.append(f"output %{count + 1}")
    tries = 0
    join = fusion.join

    def counted(*args, **options):
        nonlocal tries
        tries += 1
        return join(*args, **options)

    monkeypatch.setattr(fusion, "join", counted)
    planned(parsed("\n".join(lines)), target())
    assert tries <= 8 * count


def test_kernels_are_events_of_a_profile():
    x = burn.asarray(array(4, 8))
    plan = plan_of(trace(lambda x: softmax(x) @ softmax(x).T, x), target(max_product=0))
    straight = Straight(plan, TABLE, load_reference)
    with burn.profile() as profile:
        straight(array(4, 8))
    straight(array(4, 8))
    assert [event.describe() for event in profile.events] == [
        "kernel of max, subtract, exp, sum, divide(float32[4, 8])",
        "permute(float32[4, 8], axes=(1, 0))",
        "matmul(float32[4, 8], float32[8, 4])",
    ]


def test_an_error_names_the_operation_of_a_call():
    plan = plan_of(
        trace(
            lambda w, i: burn.take(w * 2.0, i, axis=0), burn.asarray(array(7, 4)), burn.asarray([1])
        ),
        target(checks=False),
    )
    with pytest.raises(burn.errors.OutOfRangeError, match=r"^select.* at .*test_fusion.py:\d+"):
        run(plan, array(7, 4), np.array([7]))
