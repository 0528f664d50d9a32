"""Passes over programs: what each changes, what it leaves, and that results stay the same."""

import burn
from burn.compiler.decomposition import decomposition
from burn.dtype import bool_, float32, int32, int64
from burn.ir import GraphIr, HostNumber, OperationIr, ScalarIr, Status, TensorIr
from burn.ops import REGISTRY

TABLE = burn.Device("cpu").ops


def parsed(text):
    return GraphIr.from_text(text)


def calls(graph):
    """The names of the operations."""
    return [one.name for one in graph.operations]


def always(operation):
    return True


# Decomposition.


def test_decomposition_replaces_what_is_wanted_through_several_levels():
    graph = parsed("""
        input %0: float32[3]
        %1: float32[3] = silu(%0)    # a.py:1
        output %1
    """)
    once = decomposition(graph, lambda one: one.name == "silu", TABLE)
    assert calls(once) == ["sigmoid", "multiply"]
    assert {one.source for one in once.operations} == {"a.py:1 (silu)"}
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
        parsed("\n".join([*lines, "output %7"])), lambda one: one.name == "layer_norm", TABLE
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
    assert {one.data.dtype for one in made.constants} <= {float32, int64, bool_, int32}
