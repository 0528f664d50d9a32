"""The op mechanism: definitions, inference, resolution."""

import contextlib

import pytest

from burn.backend import tensor_ops
from burn.device_id import DeviceId
from burn.dtype import bool_, float32, int64
from burn.errors import BurnError, DTypeError, OperandTypeError, ShapeError, UnsupportedOpError
from burn.ops import REGISTRY, AnyOperand, FloatOperand, Meta, Op, OpTable, Role, Tag, op

MATRIX = Meta((2, 3), float32)


class Bare:
    """A backend with no op at all."""

    def native_dtype(self, dtype):
        return dtype.name

    def quiet(self):
        return contextlib.nullcontext()


def test_required_ops_are_few():
    required = [definition for definition in REGISTRY.values() if definition.is_required]
    assert len(required) <= 60


@pytest.mark.together("name", REGISTRY)
def test_every_op_is_described(name):
    assert REGISTRY[name].__doc__
    assert REGISTRY[name].operands or Tag.CREATION in REGISTRY[name].tags


@pytest.mark.together("name", REGISTRY)
def test_every_op_with_a_float_result_says_where_its_gradient_comes_from(name):
    definition = REGISTRY[name]
    has_gradient = definition.vjp is not None or definition.default is not None
    assert has_gradient or Tag.NO_GRADIENT in definition.tags


def test_infer_names_the_op_and_what_it_got():
    with pytest.raises(ShapeError) as caught:
        REGISTRY["matmul"].infer(MATRIX, MATRIX)
    message = str(caught.value)
    assert message.startswith("matmul(float32[2, 3], float32[2, 3]): ")
    assert "3 columns meet 2 rows" in message


def test_infer_refuses_operands_of_the_wrong_kind_number_and_dtype():
    add = REGISTRY["add"]
    with pytest.raises(DTypeError, match="got bool"):
        add.infer(Meta((), bool_), Meta((), bool_))
    with pytest.raises(DTypeError, match="different dtypes"):
        add.infer(MATRIX, Meta((2, 3), int64))
    with pytest.raises(OperandTypeError, match="takes 2 operands"):
        add.infer(MATRIX)
    with pytest.raises(OperandTypeError, match="must be a tensor"):
        REGISTRY["exp"].infer(2.0)
    with pytest.raises(OperandTypeError, match="at least one operand"):
        add.infer(1.0, 2.0)


def test_infer_refuses_unknown_and_missing_attributes():
    with pytest.raises(OperandTypeError, match="no attribute 'axes'"):
        REGISTRY["reshape"].infer(MATRIX, axes=(1,))
    with pytest.raises(OperandTypeError, match="needs the attribute 'shape'"):
        REGISTRY["reshape"].infer(MATRIX)


def test_a_missing_required_op_is_named_when_it_is_asked_for():
    table = OpTable(Bare(), DeviceId(0))
    with pytest.raises(UnsupportedOpError, match="required op 'add'"):
        table.add(1, 2)


def test_a_table_takes_the_method_of_the_backend_before_the_default():
    class Own(Bare):
        def square(self, x):
            return ("own", x)

    class Multiplies(Bare):
        def multiply(self, x1, x2):
            return (x1, x2)

    assert OpTable(Own(), DeviceId(0)).square(3) == ("own", 3)
    table = OpTable(Multiplies(), DeviceId(0))
    assert table.square(3) == (3, 3)
    assert table.origin(REGISTRY["square"]) == "derived"
    assert table.origin(REGISTRY["multiply"]) == "native"
    assert table.origin(REGISTRY["add"]) == "unsupported"


def test_creation_ops_are_given_the_device():
    class Creates(Bare):
        def full(self, *, shape, fill_value, dtype, device):
            return shape, fill_value, dtype, device

    table = OpTable(Creates(), DeviceId(2, 1))
    assert table.full(shape=(), fill_value=0, dtype=float32) == ((), 0, float32, DeviceId(2, 1))


def test_a_protocol_stub_does_not_count_as_an_implementation():
    class Stubbed(tensor_ops.NumericTensorOps, Bare):
        pass

    with pytest.raises(UnsupportedOpError, match="required op 'add'"):
        OpTable(Stubbed(), DeviceId(0)).add(1, 2)


def test_an_op_cannot_be_defined_twice_nor_without_operand_kinds():
    with pytest.raises(ValueError, match="defined twice"):

        @op()
        def add(x: AnyOperand) -> Meta:
            return x

    with pytest.raises(TypeError, match="annotate operand"):

        @op()
        def no_such_op(x) -> Meta:
            return x

    assert "no_such_op" not in REGISTRY


def test_every_rule_raises_burn_errors_only_on_operands_of_rank_0():
    scalar = Meta((), float32)
    for definition in REGISTRY.values():
        operands = [[scalar] if spec.is_list else scalar for spec in definition.operands.values()]
        try:
            definition.infer(*operands)
        except BurnError as error:
            assert error.operation.startswith(definition.name)


def test_an_attribute_without_a_role_is_refused_where_the_op_is_defined():
    def scaled(x: FloatOperand, *, factor: float) -> Meta:
        return x

    with pytest.raises(TypeError, match=r"op scaled: attribute 'factor' has no role"):
        Op(scaled)


def test_every_attribute_of_the_table_has_a_role_and_every_choice_its_strings():
    for definition in REGISTRY.values():
        for name, attribute in definition.attributes.items():
            assert attribute.name == name
            assert isinstance(attribute.role, Role)
            assert (attribute.role is Role.CHOICE) is bool(attribute.choices)


def test_attributes_of_a_typed_dict_are_those_of_the_op():
    attention = REGISTRY["attention"].attributes
    assert list(attention) == ["scale", "softcap", "is_causal"]
    assert attention["softcap"].optional
    assert REGISTRY["attention_grad"].attributes.keys() == attention.keys()


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("sum", {"axis": (0.5,), "dtype": float32}, "axis must be a tuple of integers"),
        ("sum", {"axis": (0,), "keepdims": 1, "dtype": float32}, "keepdims must be True or"),
        ("sum", {"axis": (0,), "dtype": "float32"}, "dtype must be a dtype"),
        ("softmax", {"axis": True}, "axis must be an integer"),
        ("leaky_relu", {"negative_slope": "steep"}, "negative_slope must be a number"),
        ("slice", {"slices": ((0, 2), (0, 2))}, "slices must be a tuple of"),
        ("gelu", {"approximate": "sinh"}, "there is no approximate 'sinh'. One of none, tanh"),
    ],
)
def test_a_value_of_another_type_than_its_role_is_refused(name, attributes, message):
    with pytest.raises(BurnError, match=message):
        REGISTRY[name].infer(Meta((2, 3), float32), **attributes)


def test_the_functions_of_an_op_are_named_after_it_in_tracebacks_and_profiles():
    for definition in REGISTRY.values():
        parts = (definition.default, definition.host, definition.vjp, definition.requires)
        for part in (*parts, definition.write):
            function = part
            while function is not None:
                assert function.__name__ not in {"_", "<lambda>"}
                assert function.__code__.co_name not in {"_", "<lambda>"}
                function = getattr(function, "__wrapped__", None)
    assert REGISTRY["softmax"].vjp.__code__.co_qualname == "softmax.gradient"
    assert REGISTRY["silu"].default.__wrapped__.__code__.co_name == "silu.decomposition"
