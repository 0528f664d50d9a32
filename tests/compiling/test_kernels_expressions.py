"""Expressions of elementwise ops: each has one, which gives what the references of the kit do."""

import numpy as np
import pytest

import burn
import burn.testing.samples
from burn.dtype import DType, Kind, bool_
from burn.kernels import Apply, Literal, Load
from burn.kernels.expressions import Nodes, expression
from burn.kernels.functions import FUNCTIONS
from burn.ops import REGISTRY, Tag
from burn.testing.op_samples import SAMPLES
from burn.testing.subject import Call
from burn.testing.tolerance import compare
from kernel_functions import NUMPY

ELEMENTWISE = {
    name: op
    for name, op in REGISTRY.items()
    if Tag.ELEMENTWISE in op.tags and op.__module__.startswith("burn.")
}

WITHOUT_EXPRESSION = {
    "complex": "its result is complex",
    "nextafter": "its steps depend on the format of the dtype",
    "polygamma": "its number of terms depends on its order",
}


def taken(op):
    """The kinds of real dtypes that the operands take which promote."""
    kinds = Kind.REAL
    for operand in op.operands.values():
        kinds &= operand.kinds if operand.promotes else Kind.REAL
    return [Kind(letter) for letter in str(kinds)]


def choices(op):
    return [choice for attribute in op.attributes.values() for choice in attribute.choices] or [
        None
    ]


@pytest.mark.together("name", ELEMENTWISE)
def test_an_elementwise_op_of_real_numbers_has_an_expression_for_each_kind_or_a_reason(name):
    op = ELEMENTWISE[name]
    for choice in choices(op):
        for kind in taken(op):
            assert (expression(name, kind, choice) is None) is (name in WITHOUT_EXPRESSION)


def test_texts_are_of_elementwise_ops_and_of_steps_of_lists():
    for name, op in REGISTRY.items():
        if op.expression is not None:
            assert name in ELEMENTWISE or all(spec.is_list for spec in op.operands.values())


class Numpy:
    """NumPy as the language of expressions."""

    def literal(self, value, dtype):
        return np.asarray(value, dtype.numpy)

    def apply(self, function, operands, dtype, of):
        assert len(operands) == FUNCTIONS[function].operands
        assert all(DType.of(operand.dtype) is of for operand in operands[-2:])
        with np.errstate(all="ignore"):
            result = np.asarray(NUMPY[function](*operands))
        return result.astype(dtype.numpy)


WIDE = {"b": bool_, "i": burn.int64, "u": burn.uint64, "f": burn.float64}


@pytest.mark.together("name", [name for name in ELEMENTWISE if name not in WITHOUT_EXPRESSION])
def test_expressions_give_what_the_references_of_the_kit_give(name):
    op, samples = ELEMENTWISE[name], SAMPLES[name]
    tried = 0
    for sample in samples.samples:
        for kind in taken(op):
            dtype = WIDE[str(kind)]
            if sample.kinds is not None and kind not in sample.kinds:
                continue
            call = Call.of(samples, sample, dtype, burn.int64)
            operands = [
                np.asarray(operand, dtype.numpy if spec.promotes else None)
                for spec, operand in zip(op.operands.values(), call.operands, strict=True)
            ]
            attributes = dict(call.attributes)
            choice = attributes.pop("approximate", None)
            form = expression(name, kind, choice)
            values = dict(zip(op.operands, operands, strict=True))
            result = form.write(Numpy(), values, dtype, attributes)
            shape = np.broadcast_shapes(*[operand.shape for operand in operands])
            with np.errstate(all="ignore"):
                expected = samples.reference(*call.widened, **call.attributes)
            made = bool_ if form.gives_bool else dtype
            actual = np.broadcast_to(result, shape)
            assert compare(actual, expected, made).text == "", (sample.note, dtype)
            tried += 1
    assert tried


def test_numbers_that_are_known_are_folded():
    nodes = Nodes()
    x = nodes.add(Load(0, 0, (1,), burn.float32))
    form = expression("elu", Kind.FLOAT)
    result = form.write(nodes, {"x": x}, burn.float32, {"alpha": 0.5, "scale": 4.0})
    assert Literal(2.0, burn.float32) in nodes.body
    functions = [node.function for node in nodes.body if isinstance(node, Apply)]
    assert functions == ["expm1", "multiply", "greater", "multiply", "where"]
    assert result == len(nodes.body) - 1


def test_attributes_may_be_values_of_a_launch():
    form = expression("leaky_relu", Kind.FLOAT)
    values = {"x": np.array([-2.0, 3.0]), "negative_slope": np.array(0.25)}
    assert form.write(Numpy(), values, burn.float64).tolist() == [-0.5, 3.0]


def test_equal_nodes_are_one_and_zeros_of_two_signs_are_two():
    nodes = Nodes()
    assert nodes.literal(0.0, burn.float32) == nodes.literal(0.0, burn.float32)
    assert nodes.literal(0.0, burn.float32) != nodes.literal(-0.0, burn.float32)
    assert nodes.literal(1, burn.int32) != nodes.literal(1, burn.int64)
    x = nodes.add(Load(0, 0, (1,), burn.float32))
    square = expression("square", Kind.FLOAT)
    assert square.write(nodes, {"x": x}, burn.float32) == square.write(
        nodes, {"x": x}, burn.float32
    )


def test_an_operand_that_is_multiplied_by_one_stays_itself():
    nodes = Nodes()
    x = nodes.add(Load(0, 0, (1,), burn.float32))
    expression("softplus", Kind.FLOAT).write(nodes, {"x": x}, burn.float32)
    functions = [node.function for node in nodes.body if isinstance(node, Apply)]
    assert "divide" not in functions
