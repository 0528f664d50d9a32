"""Passes over programs: what each changes, what it leaves, and that results stay the same."""

import math
import sys

import numpy as np
import pytest

import burn
from burn.compiler import lowered, simplified
from burn.compiler.algebra import algebra
from burn.compiler.common_subexpressions import common_subexpressions
from burn.compiler.constants import constants
from burn.compiler.dead_code import dead_code
from burn.compiler.decomposition import decomposition
from burn.compiler.inner_programs import inner_programs
from burn.dtype import bool_, float32, int32, int64
from burn.ir import (
    Donation,
    Execution,
    GraphIr,
    HostNumber,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
)
from burn.ops import REGISTRY
from burn.tensor_data import TensorData

TABLE = burn.Device("cpu").ops


def parsed(text):
    return GraphIr.from_text(text)


def calls(graph):
    """The names of the operations."""
    return [operation.name for operation in graph.operations]


def always(operation):
    return True


# Decomposition.


def test_decomposition_replaces_what_is_wanted_through_several_levels():
    graph = parsed("""
        input %0: float32[3]
        %1: float32[3] = silu(%0)    # a.py:1
        output %1
    """)
    once = decomposition(graph, lambda item: item.name == "silu", TABLE)
    assert calls(once) == ["sigmoid", "multiply"]
    assert {operation.source for operation in once.operations} == {"a.py:1 (silu)"}
    for operation in decomposition(graph, always, TABLE).operations:
        assert REGISTRY[operation.name].default is None
        assert operation.source == "a.py:1 (silu)"


def test_equal_calls_are_decomposed_once(monkeypatch):
    count = 0
    default = REGISTRY["layer_norm"].default

    def counted(*args, **attributes):
        nonlocal count
        count += 1
        return default(*args, **attributes)

    monkeypatch.setattr(REGISTRY["layer_norm"], "default", counted)
    lines = ["input %0: float32[3, 8]", "input %1: float32[8]"]
    lines += [
        f"%{i + 2}: float32[3, 8] = layer_norm(%{i and i + 1}, %1, %1, epsilon=1e-05)"
        for i in range(6)
    ]
    graph = decomposition(
        parsed("\n".join([*lines, "output %7"])), lambda item: item.name == "layer_norm", TABLE
    )
    assert count == 1
    assert len(graph.operations) % 6 == 0
    graph.check()


def test_numbers_of_a_run_become_expressions_of_them():
    scalar = ScalarIr(0, float)
    parameter, gradient, made = (TensorIr(id, (3,), float32) for id in range(3))
    step = OperationIr(
        "sgd_step",
        ((parameter,), (gradient,), ()),
        {
            "learning_rate": scalar,
            "momentum": 0.0,
            "dampening": 0.0,
            "weight_decay": 0.0,
            "nesterov": False,
        },
        (made._replace(status=Status.NOT_INIT),),
    )
    graph = decomposition(
        GraphIr((parameter, gradient, scalar), (), (step,), (made,)), always, TABLE
    )
    assert calls(graph) == ["multiply", "subtract"]
    assert graph.operations[0].inputs[1] == HostNumber("s0", float)


def test_a_runtime_number_that_is_passed_on_stays_a_scalar():
    attributes = "shape=(4,), low=0.0, high=1.0, seed=$0, offset=$1 + 2, dtype=float32"
    graph = parsed(f"""
        draw 4 words: seed $0, offset $1
        %0: float32[4] = random_uniform({attributes})
        output %0
    """)
    made = decomposition(graph, always, TABLE)
    bits = made.operations[0]
    assert bits.name == "random_bits"
    assert bits.attributes["seed"] == ScalarIr(0, int)
    assert bits.attributes["offset"] == ScalarIr(1, int, 2)
    made.check()


def test_an_operation_whose_decomposition_needs_values_stays():
    graph = parsed("""
        draw 4 words: seed $0, offset $1
        %0: uint32[4] = random_bits(count=4, seed=$0, offset=$1, dtype=uint32)
        output %0
    """)
    assert calls(decomposition(graph, always, TABLE)) == ["random_bits"]


def test_constants_of_a_decomposition_are_shared_by_equal_calls():
    attributes = "output_size=(7, 7), mode='linear', align_corners=False, scale=None"
    graph = parsed(f"""
        input %0: float32[1, 1, 4, 4]
        %1: float32[1, 1, 7, 7] = interpolate(%0, {attributes})
        %2: float32[1, 1, 7, 7] = interpolate(%0, {attributes})
        output %1
        output %2
    """)
    one = parsed(graph.to_text().replace("output %2", ""))
    made = decomposition(graph, always, TABLE)
    made.check()
    assert len(made.constants) == len(decomposition(one, always, TABLE).constants) > 0
    assert {constant.data.dtype for constant in made.constants} <= {float32, int64, bool_, int32}


# Dead code.


def test_what_no_output_depends_on_goes():
    graph = parsed("""
        input %0: float32[3]
        input %9: float32[3]
        constant %1: float32[3] = [1.0, 2.0, 3.0]
        constant %2: float32[3] = [4.0, 5.0, 6.0]
        %3: float32[3] = add(%0, %1)
        %4: float32[3] = add(%0, %2)
        %5: float32[3] = exp(%4)
        output %3
    """)
    made = dead_code(graph)
    assert calls(made) == ["add"]
    assert [constant.tensor.id for constant in made.constants] == [1]
    assert len(made.inputs) == 2


def test_an_operation_with_one_output_that_is_used_stays():
    graph = parsed("""
        input %0: float32[3, 3]
        %1: float32[3, 3], %2: float32[3, 3] = qr(%0, complete=False)
        output %2
    """)
    assert calls(dead_code(graph)) == ["qr"]


def test_what_may_raise_stays_though_nothing_uses_it():
    graph = parsed("""
        input %0: float32[3, 3]
        input %1: int64[2]
        %2: float32[2, 3] = select(%0, %1, axis=0)
        %3: float32[3, 3] = inv(%0)
        %4: float32[3, 3] = exp(%0)
        output %4
    """)
    assert calls(dead_code(graph)) == ["select", "inv", "exp"]


def test_an_unused_read_at_indices_goes_where_a_later_one_checks_the_same():
    graph = parsed("""
        input %0: float32[2, 2]
        input %1: int64[2]
        input %2: float32[2]
        %3: float32[2] = cross_entropy(%0, %1, axis=1)
        %4: float32[2] = cross_entropy(%0, %1, axis=0)
        %5: float32[2, 2] = cross_entropy_grad(%0, %1, %2, axis=1)
        output %5
    """)
    kept = dead_code(graph).operations
    assert [(item.name, item.attributes["axis"]) for item in kept] == [
        ("cross_entropy", 0),
        ("cross_entropy_grad", 1),
    ]


def test_random_numbers_are_reserved_though_nothing_draws_them():
    graph = parsed("""
        input %1: float32[3]
        draw 4 words: seed $0, offset $1
        %0: uint32[4] = random_bits(count=4, seed=$0, offset=$1, dtype=uint32)
        output %1
    """)
    made = dead_code(graph)
    assert made.draw == graph.draw
    assert not made.operations


# Common subexpressions.


def once(*lines, outputs):
    """The calls that stay of some lines on three inputs."""
    inputs = ["input %0: float32[3]", "input %1: float32[3]", "input %2: int64[2]"]
    text = "\n".join([*inputs, *lines, *[f"output %{id}" for id in outputs]])
    made = common_subexpressions(parsed(text))
    made.check()
    return made


def test_equal_operations_run_once_and_so_do_those_that_they_make_equal():
    made = once(
        "%3: float32[3] = exp(%0)",
        "%4: float32[3] = exp(%0)",
        "%5: float32[3] = add(%3, %1)",
        "%6: float32[3] = add(%4, %1)",
        outputs=(5, 6),
    )
    assert calls(made) == ["exp", "add"]
    assert [output.id for output in made.outputs] == [5, 5]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("add(%0, %1)", "add(%1, %0)"),
        ("add(%0, 0.0)", "add(%0, -0.0)"),
        ("add(%0, 1.0)", "add(%0, 1)"),
        ("add(%0, True)", "add(%0, 1)"),
        ("hardtanh(%0, low=0.0, high=1.0)", "hardtanh(%0, low=-0.0, high=1.0)"),
        ("softplus(%0, beta=1)", "softplus(%0, beta=1.0)"),
        (
            "elu(%0, alpha=1.0, scale=1.0, input_scale=2.0)",
            "elu(%0, alpha=1.0, scale=2.0, input_scale=1.0)",
        ),
    ],
)
def test_operations_that_differ_stay(first, second):
    made = once(f"%3: float32[3] = {first}", f"%4: float32[3] = {second}", outputs=(3, 4))
    assert len(made.operations) == 2


def test_numbers_of_numpy_differ_as_those_of_python_do():
    numbers = [np.float32(0.0), np.float32(-0.0), np.float64(0.0), 0.0, 0, np.int64(0)]
    x, *made = (TensorIr(id, (3,), float32) for id in range(2 * len(numbers) + 1))
    operations = [
        OperationIr("shrink", (x,), {"lambd": number, "bias": 0.0}, (item,))
        for number, item in zip(numbers * 2, made, strict=True)
    ]
    graph = GraphIr((x,), (), tuple(operations), tuple(made))
    assert len(common_subexpressions(graph).operations) == len(numbers)


def test_random_numbers_of_one_offset_are_drawn_once():
    text = """
        draw 8 words: seed $0, offset $1
        %0: uint32[4] = random_bits(count=4, seed=$0, offset=$1, dtype=uint32)
        %1: uint32[4] = random_bits(count=4, seed=$0, offset=$1, dtype=uint32)
        %2: uint32[4] = random_bits(count=4, seed=$0, offset=$1 + 1, dtype=uint32)
        output %0
        output %1
        output %2
    """
    assert [output.id for output in common_subexpressions(parsed(text)).outputs] == [0, 0, 2]


def test_equal_constants_are_one():
    made = common_subexpressions(
        parsed("""
        constant %0: float32[2] = [0.0, nan]
        constant %1: float32[2] = [0.0, nan]
        constant %2: float32[2] = [-0.0, nan]
        constant %3: float64[2] = [0.0, nan]
        output %0
        output %1
        output %2
        output %3
    """)
    )
    assert [output.id for output in made.outputs] == [0, 0, 2, 3]
    assert len(made.constants) == 3


def test_a_large_tensor_of_one_value_is_made_where_it_is_used():
    lines = [
        f"%{id}: float32[64, 64] = full(shape=(64, 64), fill_value=0.0, dtype=float32)"
        for id in (3, 4)
    ]
    assert len(once(*lines, outputs=(3, 4)).operations) == 2


# Constants.


def folded(text):
    made = dead_code(constants(parsed(text), TABLE))
    made.check()
    return made


def test_a_tensor_of_one_value_is_computed_as_a_number():
    made = folded("""
        input %9: float32[4, 4]
        %0: float32[] = full(shape=(), fill_value=1.0, dtype=float32)
        %1: float32[] = divide(%0, 3.0)
        %2: float32[1, 1] = reshape(%1, shape=(1, 1))
        %3: float32[4, 4] = expand(%2, shape=(4, 4))
        %4: float32[4, 4] = add(%9, %3)
        output %4
    """)
    assert calls(made) == ["full", "add"]
    assert made.operations[0].attributes["fill_value"] == float(np.float32(1.0) / np.float32(3.0))


def test_other_small_tensors_become_constants_of_the_program():
    made = folded("""
        input %9: float32[3, 3]
        %0: int32[3] = arange(start=0, step=1, length=3, dtype=int32)
        %1: int32[3, 1] = reshape(%0, shape=(3, 1))
        %2: bool[3, 3] = less(%0, %1)
        %3: float32[3, 3] = where(%2, %9, 0.0)
        output %3
    """)
    assert calls(made) == ["where"]
    (constant,) = made.constants
    assert constant.data.array.tolist() == np.tri(3, k=-1).astype(bool).tolist()


@pytest.mark.parametrize(
    "line",
    [
        "%0: float32[4] = arange(start=0, step=1, length=4, dtype=float32)",
        "%0: float32[4] = full(shape=(4,), fill_value=2.0, dtype=float32)",
    ],
)
def test_what_costs_nothing_to_make_stays_an_operation(line):
    graph = parsed(f"input %9: float32[4]\n{line}\n%1: float32[4] = add(%9, %0)\noutput %1")
    assert constants(graph, TABLE) == graph


def test_random_numbers_and_large_tensors_are_no_constants():
    made = folded("""
        draw 4 words: seed $0, offset $1
        %0: uint32[4] = random_bits(count=4, seed=$0, offset=$1, dtype=uint32)
        %1: uint32[4] = add(%0, 1)
        %2: float32[100000] = arange(start=0, step=1, length=100000, dtype=float32)
        %3: float32[100000] = exp(%2)
        output %1
        output %3
    """)
    assert calls(made) == ["random_bits", "add", "arange", "exp"]
    assert not made.constants


def test_random_numbers_of_a_seed_that_is_a_number_stay_random():
    made = folded("""
        %0: uint32[4] = random_bits(count=4, seed=3, offset=0, dtype=uint32)
        output %0
    """)
    assert calls(made) == ["random_bits"]


def test_an_error_of_a_constant_part_is_left_to_a_run():
    graph = parsed("""
        constant %0: float32[3] = [1.0, 2.0, 3.0]
        constant %1: int64[1] = [7]
        %2: float32[1] = select(%0, %1, axis=0)
        output %2
    """)
    assert constants(graph, TABLE) == graph


# Algebra.


def simpler(*lines, inputs=("%0: float32[2, 3]", "%1: float32[2, 3]")):
    """The calls of some lines, the last of which makes the output, after they were simplified."""
    text = "\n".join([*[f"input {source}" for source in inputs], *lines])
    graph = parsed(f"{text}\noutput {lines[-1].partition(':')[0]}")
    made = dead_code(algebra(graph))
    made.check()
    assert made.outputs[0][1:3] == graph.outputs[0][1:3]
    _check_results(graph, made)
    return calls(made)


SPECIAL = [0.0, -0.0, 1.5, -2.0, math.nan, math.inf]


def _check_results(graph, simplified):
    """See that both give the same numbers, signs of zeros included."""
    inputs = []
    for tensor in graph.inputs:
        values = np.resize(np.array(SPECIAL), tensor.shape)
        if not tensor.dtype.is_float:
            values = np.resize([3, 0, 1, 7], tensor.shape)
        data = TensorData(values.astype(tensor.dtype.numpy))
        inputs.append(TABLE.backend.from_data(data, TABLE.device))
    (expected,), (found,) = (Execution(item, TABLE).run(inputs) for item in (graph, simplified))
    expected, found = (TABLE.backend.to_data(item).array for item in (expected, found))
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f" and "sum" not in calls(graph):
        known = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


X = "%2: float32[2, 3]"


@pytest.mark.parametrize(
    ("call", "left"),
    [
        ("multiply(%0, 1.0)", []),
        ("multiply(1, %0)", []),
        ("multiply(%0, 2.0)", ["multiply"]),
        ("divide(%0, 1.0)", []),
        ("divide(%0, 4.0)", ["multiply"]),
        ("divide(%0, -0.5)", ["multiply"]),
        ("divide(%0, 3.0)", ["divide"]),
        ("divide(%0, 0.0)", ["divide"]),
        ("divide(1.0, %0)", ["divide"]),
        ("add(%0, -0.0)", []),
        ("add(%0, 0.0)", ["add"]),
        ("add(0, %0)", ["add"]),
        ("subtract(%0, 0.0)", []),
        ("subtract(%0, 0)", []),
        ("subtract(%0, -0.0)", ["subtract"]),
        ("subtract(0.0, %0)", ["subtract"]),
        ("pow(%0, 1.0)", []),
        ("pow(%0, 2)", ["multiply"]),
        ("pow(%0, 0.5)", ["pow"]),
        ("pow(2.0, %0)", ["pow"]),
        ("cast(%0, dtype=float32)", []),
        ("reshape(%0, shape=(2, 3))", []),
        ("expand(%0, shape=(2, 3))", []),
        ("permute(%0, axes=(0, 1))", []),
        ("slice(%0, slices=((0, 2, 1), (0, 3, 1)))", []),
        ("slice(%0, slices=((1, 2, -1), (0, 3, 1)))", ["slice"]),
        ("flip(%0, axes=())", []),
        ("flip(%0, axes=(1,))", ["flip"]),
        ("concat([%0], axis=1)", []),
        ("slice_assign(%0, %1, slices=((0, 2, 1), (0, 3, 1)))", []),
        ("slice_assign(%0, %1, slices=((1, 2, -1), (0, 3, 1)))", ["slice_assign"]),
        ("sum(%0, axis=(), dtype=float32)", []),
        ("max(%0, axis=(), keepdims=True)", []),
    ],
)
def test_one_call_becomes(call, left):
    assert simpler(f"{X} = {call}") == left


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("%2: float32[2, 3] = negative(%0)", "%3: float32[2, 3] = negative(%2)"), []),
        (("%2: float32[2, 3] = negative(%0)", "%3: float32[2, 3] = add(%1, %2)"), ["subtract"]),
        (("%2: float32[2, 3] = negative(%0)", "%3: float32[2, 3] = add(%2, 1.0)"), ["subtract"]),
        (("%2: float32[2, 3] = negative(%0)", "%3: float32[2, 3] = subtract(%1, %2)"), ["add"]),
        (
            (
                "%2: float32[3, 2] = permute(%0, axes=(1, 0))",
                "%3: float32[2, 3] = permute(%2, axes=(1, 0))",
            ),
            [],
        ),
        (
            (
                "%2: float32[6] = reshape(%0, shape=(6,))",
                "%3: float32[3, 2] = reshape(%2, shape=(3, 2))",
            ),
            ["reshape"],
        ),
        (
            (
                "%2: float32[1, 2, 3] = reshape(%0, shape=(1, 2, 3))",
                "%3: float32[2, 1, 3] = permute(%2, axes=(1, 0, 2))",
            ),
            ["reshape"],
        ),
        (
            (
                "%2: float32[1, 2, 3] = reshape(%0, shape=(1, 2, 3))",
                "%3: float32[4, 2, 3] = expand(%2, shape=(4, 2, 3))",
            ),
            ["expand"],
        ),
        (
            (
                "%2: float32[4, 2, 3] = expand(%0, shape=(4, 2, 3))",
                "%3: float32[5, 4, 2, 3] = expand(%2, shape=(5, 4, 2, 3))",
            ),
            ["expand"],
        ),
        (
            (
                "%2: float32[2, 2] = slice(%0, slices=((1, 2, -1), (0, 2, 2)))",
                "%3: float32[1, 2] = slice(%2, slices=((1, 1, 1), (1, 2, -1)))",
            ),
            ["slice"],
        ),
        (
            (
                "%2: float32[2, 3] = flip(%0, axes=(0, 1))",
                "%3: float32[2, 3] = flip(%2, axes=(1, 0))",
            ),
            [],
        ),
        (
            (
                "%2: float64[2, 3] = cast(%0, dtype=float64)",
                "%3: float32[2, 3] = cast(%2, dtype=float32)",
            ),
            [],
        ),
        (
            (
                "%2: float16[2, 3] = cast(%0, dtype=float16)",
                "%3: float32[2, 3] = cast(%2, dtype=float32)",
            ),
            ["cast", "cast"],
        ),
        (
            (
                "%2: float32[2, 3] = full(shape=(2, 3), fill_value=0.1, dtype=float32)",
                "%3: float32[2, 3] = multiply(%0, %2)",
            ),
            ["multiply"],
        ),
        (
            (
                "%2: float32[3] = full(shape=(3,), fill_value=1.0, dtype=float32)",
                "%3: float32[2, 3] = multiply(%2, %0)",
            ),
            [],
        ),
        (("%2: bool[2, 3] = less(%0, %1)", "%3: float32[2, 3] = where(%2, %1, %1)"), []),
    ],
)
def test_several_calls_become(lines, left):
    assert simpler(*lines) == left


def test_a_number_keeps_the_precision_of_the_tensor_that_it_replaces():
    graph = parsed("""
        input %0: float16[2]
        %1: float16[2] = full(shape=(2,), fill_value=0.1, dtype=float16)
        %2: float16[2] = multiply(%0, %1)
        output %2
    """)
    (product,) = dead_code(algebra(graph)).operations
    assert product.inputs[1] == float(np.float16(0.1))


def test_operands_are_not_expanded_where_broadcasting_repeats_them():
    lines = (
        "%2: float32[2, 3] = expand(%1, shape=(2, 3))",
        "%3: float32[2, 3] = add(%0, %2)",
    )
    assert simpler(*lines, inputs=("%0: float32[2, 3]", "%1: float32[3]")) == ["add"]
    lines = (
        "%2: float32[2, 3] = expand(%0, shape=(2, 3))",
        "%3: float32[2, 3] = expand(%1, shape=(2, 3))",
        "%4: float32[2, 3] = add(%2, %3)",
    )
    both = simpler(*lines, inputs=("%0: float32[3]", "%1: float32[3]"))
    assert both == ["expand", "add"]


def test_integers_may_add_zero_and_change_kinds_by_their_own_rules():
    inputs = ("%0: int16[4]",)
    assert simpler("%1: int16[4] = add(%0, 0)", inputs=inputs) == []
    through_float = (
        "%1: float32[4] = cast(%0, dtype=float32)",
        "%2: int8[4] = cast(%1, dtype=int8)",
    )
    assert simpler(*through_float, inputs=inputs) == ["cast", "cast"]
    back = ("%1: float32[4] = cast(%0, dtype=float32)", "%2: int16[4] = cast(%1, dtype=int16)")
    assert simpler(*back, inputs=inputs) == []
    wider = ("%1: int64[4] = cast(%0, dtype=int64)", "%2: uint8[4] = cast(%1, dtype=uint8)")
    assert simpler(*wider, inputs=inputs) == ["cast"]


@pytest.mark.parametrize(
    ("reduction", "left"),
    [
        ("%2: float32[3] = sum(%1, axis=(0,), dtype=float32)", ["multiply"]),
        (
            "%2: float32[1, 3] = sum(%1, axis=(0,), keepdims=True, dtype=float32)",
            ["reshape", "multiply"],
        ),
        ("%2: float32[] = sum(%1, axis=(0, 1), dtype=float32)", ["reshape", "sum", "multiply"]),
        ("%2: float32[3] = mean(%1, axis=(0,))", []),
        ("%2: float32[3] = max(%1, axis=(0,))", []),
        ("%2: float32[4] = max(%1, axis=(1,))", ["expand", "max"]),
        ("%2: float32[3] = prod(%1, axis=(0,), dtype=float32)", ["expand", "prod"]),
    ],
)
def test_a_reduction_of_repeated_elements_computes_each_once(reduction, left):
    graph = parsed(
        "input %0: float32[3]\n%1: float32[4, 3] = expand(%0, shape=(4, 3))\n"
        f"{reduction}\noutput %2"
    )
    made = dead_code(algebra(graph))
    made.check()
    assert calls(made) == left
    x = TABLE.backend.from_data(TensorData(np.array([0.5, -2.0, 3.0], np.float32)), TABLE.device)
    (expected,), (found,) = (Execution(item, TABLE).run([x]) for item in (graph, made))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_sums_over_some_axes_and_then_others_are_one():
    lines = (
        "%1: float32[3, 5] = sum(%0, axis=(1, 3), dtype=float32)",
        "%2: float32[3, 1] = sum(%1, axis=(1,), keepdims=True, dtype=float32)",
    )
    text = "\n".join(["input %0: float32[3, 4, 5, 2]", *lines, "output %2"])
    made = dead_code(algebra(parsed(text)))
    made.check()
    assert calls(made) == ["sum", "reshape"]
    assert made.operations[0].attributes["axis"] == (1, 2, 3)


def test_a_linear_layer_takes_a_transposed_weight():
    inputs = ("%0: float32[2, 3]", "%1: float32[4, 3]")
    lines = (
        "%2: float32[3, 4] = permute(%1, axes=(1, 0))",
        "%3: float32[2, 4] = linear(%0, %2, None)",
    )
    text = "\n".join([*[f"input {source}" for source in inputs], *lines, "output %3"])
    (layer,) = dead_code(algebra(parsed(text))).operations
    assert layer.attributes["transposed"] is True


# All of them.


def _chain(count):
    """A program of many operations, of which each pass changes some."""
    lines = ["input %0: float32[4, 4]"]
    kinds = ["multiply(%{0}, 1.5)", "permute(%{0}, axes=(1, 0))", "silu(%{0})", "add(%{0}, %0)"]
    lines += [f"%{id + 1}: float32[4, 4] = {kinds[id % 4].format(id)}" for id in range(count)]
    return parsed("\n".join([*lines, f"output %{count}"]))


@pytest.mark.parametrize(
    "run",
    [
        dead_code,
        common_subexpressions,
        algebra,
        inner_programs,
        lambda graph: constants(graph, TABLE),
        lambda graph: lowered(graph, always, TABLE),
        lambda graph: simplified(graph, TABLE),
    ],
)
def test_the_work_of_a_pass_grows_with_the_number_of_operations(run):
    def work(count):
        graph = _chain(count)
        calls = 0

        def counted(frame, event, argument):
            nonlocal calls
            calls += event in ("call", "c_call")

        run(graph)  # what is kept from then on is not counted
        sys.setprofile(counted)
        try:
            run(graph)
        finally:
            sys.setprofile(None)
        return calls

    small, large = work(100), work(1000)
    assert large <= 10.5 * small


def test_programs_that_operations_run_are_compiled_for_plain_tables():
    inner = parsed("""
        input %0: float32[3]
        %1: float32[3] = multiply(%0, 1.0)
        %2: float32[3] = exp(%1)
        output %2
    """)
    predicate, x, made = (
        TensorIr(0, (), bool_),
        TensorIr(1, (3,), float32),
        TensorIr(2, (3,), float32),
    )
    branch = OperationIr(
        "cond",
        (predicate, (x,)),
        {"true_function": inner, "false_function": inner},
        (made._replace(status=Status.NOT_INIT),),
    )
    graph = GraphIr((predicate, x), (), (branch,), (made,))
    (found,) = simplified(graph, TABLE).operations
    compiled = found.attributes["true_function"]
    assert compiled is found.attributes["false_function"]
    assert str(compiled) == str(inner)
    assert calls(compiled.prepared(TABLE).graph) == ["exp"]
    assert compiled.prepared(TABLE) is compiled.prepared(TABLE)


@pytest.mark.parametrize(
    ("operation", "donated"),
    [
        ("%1: float32[3] = exp(%0)", (Donation(0, 0),)),
        ("%1: float32[3] = multiply(%0, 1.0)", ()),
        ("%1: float32[3] = full(shape=(3,), fill_value=2.0, dtype=float32)", (Donation(0, 0),)),
    ],
)
def test_donations_that_passes_make_impossible_go(operation, donated):
    graph = parsed(f"input %0: float32[3]\n{operation}\noutput %1\ndonate input 0 to output 0")
    assert simplified(graph, TABLE).donated == donated


def test_outputs_that_become_one_tensor_take_no_memory_of_inputs():
    graph = parsed("""
        input %0: float32[3]
        input %1: float32[3]
        %2: float32[3] = exp(%0)
        %3: float32[3] = exp(%0)
        output %2
        output %3
        donate input 0 to output 0
        donate input 1
    """)
    assert simplified(graph, TABLE).donated == (Donation(1),)
