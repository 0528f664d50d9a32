"""Programs as data: what text and bytes say is the same, and what breaks a rule is found."""

import base64
import math
import pickle
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

import burn
from burn.errors import ExecutionError, GraphError
from burn.ir import (
    Constant,
    Donation,
    Draw,
    Drop,
    GraphIr,
    OperationIr,
    ScalarIr,
    Status,
    TensorIr,
    codec,
    with_last_uses,
)
from burn.ir.codec import decode, encode
from burn.ops import Meta
from burn.tensor_data import TensorData
from ir_graphs import (
    GraphBuilder,
    calls,
    exact,
    sample_attributes,
    sample_graph,
    sample_operands,
)

CALLS = list(calls())

VECTOR = Meta((3,), burn.float32)


def survives(graph):
    """Whether text and bytes give the same graph again."""
    return exact(GraphIr.from_bytes(graph.to_bytes())) == exact(graph) and (
        exact(GraphIr.from_text(graph.to_text())) == exact(graph)
    )


def training_step():
    """A graph with inputs, runtime numbers, constants, random numbers and several outputs."""
    builder = GraphBuilder()
    x = builder.input(Meta((8, 4), burn.float32))
    rate = builder.scalar(float)
    weights = builder.input(Meta((4, 2), burn.float32))
    bias = builder.constant(np.array([0.1, np.nan], np.float32))
    seed, offset = builder.new_scalar(int), builder.new_scalar(int)
    builder.draw = Draw(seed, offset, 16)
    uniform = {"shape": (8, 4), "dtype": burn.float32, "low": 0.0, "high": 1.0}
    attributes = {"seed": seed, "offset": offset + 2}
    (noise,) = builder.call("random_uniform", [], uniform | attributes, "step.py:1")
    (noisy,) = builder.call("add", [x, noise], {}, "step.py:1")
    (y,) = builder.call("linear", [noisy, weights, bias], {}, "a folder/step.py:2")
    (doubled,) = builder.call("multiply", [y, 2.0], {})
    ends = builder.call("max_pool_with_indices", [_image(builder)], _POOL)
    lists = [[weights]] * 3
    stepped = builder.call("sgd_step", lists, _SGD | {"learning_rate": rate})
    (joined,) = builder.call("concat", [[y, doubled]], {"axis": 1})
    return builder.graph(joined, stepped[0], x, joined, ends[1])


_SGD = {"momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False}

_POOL = {
    "index_dtype": burn.int64,
    "kernel_size": (2, 2),
    "stride": (1, 1),
    "padding": ((0, 0), (0, 0)),
    "dilation": (1, 1),
    "ceil_mode": False,
}


def _image(builder):
    return builder.input(Meta((1, 1, 3, 3), burn.float32))


# Text and bytes.


def test_every_sample_of_every_op_survives_text_and_bytes(everything):
    for known, item in CALLS if everything else CALLS[::7]:
        graph = sample_graph(known, item)
        graph.check()
        assert survives(graph), (known.op.name, item.note)


def test_a_training_step_survives_text_and_bytes():
    graph = training_step()
    graph.check()
    assert survives(graph)
    marked = with_last_uses(graph)
    marked.check()
    assert survives(marked)


def test_donated_inputs_survive_text_and_bytes():
    graph = replace(training_step(), donated=(Donation(2, 1), Donation(0)))
    graph.check()
    assert survives(graph)
    assert str(graph).splitlines()[-2:] == ["donate input 2 to output 1", "donate input 0"]


def test_a_relaxed_program_survives_text_and_bytes():
    graph = replace(training_step(), relaxed=True)
    assert survives(graph)
    assert str(graph).splitlines()[-1] == "relaxed"
    assert graph != training_step()


@st.composite
def graphs(draw):
    """Samples of ops whose operands are inputs, constants, or what other operations made."""
    builder = GraphBuilder()
    made = []

    def operand(meta):
        if not isinstance(meta, Meta):
            return meta
        fitting = [tensor for tensor in made if (tensor.shape, tensor.dtype) == meta]
        if fitting and draw(st.booleans()):
            return draw(st.sampled_from(fitting))
        if math.prod(meta.shape) < 20 and draw(st.booleans()):
            return builder.constant(np.ones(meta.shape, meta.dtype.numpy))
        return builder.input(meta)

    for number in draw(st.lists(st.integers(0, len(CALLS) - 1), max_size=8)):
        known, one = CALLS[number]
        if any(None in tensor.shape for tensor in sample_graph(known, one).outputs):
            continue  # such a tensor cannot be used
        inputs = [
            [operand(meta) for meta in metas] if isinstance(metas, list) else operand(metas)
            for metas in sample_operands(known, one)
        ]
        attributes = sample_attributes(one)
        for name, attribute in known.op.attributes.items():
            if attribute.role.is_runtime and name in attributes and draw(st.booleans()):
                kind = int if attribute.role.value == "runtime integer" else float
                attributes[name] = builder.scalar(kind) + draw(st.integers(-(2**63), 2**63 - 1))
        made += builder.call(known.op.name, inputs, attributes, draw(st.text(max_size=9)))
    outputs = draw(st.lists(st.sampled_from(made))) if made else []
    return builder.graph(*outputs)


@given(graphs())
def test_any_graph_survives_text_and_bytes_also_with_its_last_uses_marked(graph):
    graph.check()
    marked = with_last_uses(graph)
    marked.check()
    assert survives(graph)
    assert survives(marked)
    assert with_last_uses(marked) == marked


NUMBERS = [
    *(0, 1, -1, True, False, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**130)),
    *(0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, 1e16, math.inf, -math.inf, math.nan),
    *(1j, complex(-0.0, -0.0), complex(0.0, math.nan), complex(-math.inf, 0.1), 2 + 0j),
]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_a_number_keeps_its_type_and_its_bits_as_attribute_and_as_operand(value):
    builder = GraphBuilder()
    dtype = burn.complex64 if isinstance(value, complex) else burn.float32
    attributes = {"shape": (2,), "fill_value": value, "dtype": dtype}
    (filled,) = builder.call("full", [], attributes)
    (total,) = builder.call("add", [filled, value], {})
    assert survives(builder.graph(total))


@pytest.mark.parametrize("value", [np.float32(0.1), np.float64(0.1), np.int8(3), np.uint64(2**63)])
def test_a_number_of_numpy_becomes_that_of_python(value):
    builder = GraphBuilder()
    attributes = {"shape": [np.int64(2)], "fill_value": value, "dtype": burn.float32}
    graph = builder.graph(*builder.call("full", [], attributes))
    for again in (GraphIr.from_bytes(graph.to_bytes()), GraphIr.from_text(graph.to_text())):
        found = again.operations[0].attributes
        assert found == {"shape": (2,), "fill_value": value.item(), "dtype": burn.float32}
        assert type(found["fill_value"]) is type(value.item())


@pytest.mark.parametrize("value", [object(), 2**256, b"x"])
def test_a_value_that_text_and_bytes_cannot_hold_is_an_error(value):
    attributes = {"shape": (2,), "fill_value": value, "dtype": burn.float32}
    made = TensorIr(0, (2,), burn.float32, Status.NOT_INIT)
    graph = GraphIr((), (), (OperationIr("full", (), attributes, (made,)),), ())
    for write in (graph.to_text, graph.to_bytes):
        with pytest.raises(GraphError, match=r"hold|must be a number"):
            write()


def arrays():
    for dtype in burn.DType.members():
        few = np.array([0, 1, 1, 0, 1, 0]).astype(dtype.numpy).reshape(2, 3)
        yield few
        yield few[:, ::-2]
        yield few.T
        yield few[0, 1]
        yield few[:, :0]
        if dtype.is_float:
            yield np.array([math.nan, math.inf, -math.inf, -0.0, 0.1]).astype(dtype.numpy)
        if dtype.is_complex:
            parts = [complex(math.nan, math.inf), complex(-0.0, -0.0), complex(0.0, math.nan), 0.1]
            yield np.array(parts).astype(dtype.numpy)
        if dtype.is_integer:
            yield np.array(dtype.integer_range, dtype.numpy)


@pytest.mark.parametrize("array", list(arrays()), ids=lambda array: f"{array.dtype}{array.shape}")
def test_a_constant_keeps_its_bits_and_its_shape(array):
    builder = GraphBuilder()
    constant = builder.constant(np.asarray(array))
    assert survives(builder.graph(constant))


def test_bytes_keep_the_payload_of_a_nan():
    array = np.array([0x7FC00001, 0xFFC12345], np.uint32).view(np.float32)
    again = decode(encode(TensorData(array)))
    assert again.array.view(np.uint32).tolist() == [0x7FC00001, 0xFFC12345]


def test_values_are_aligned_shared_and_read_only():
    data = encode([TensorData(np.ones(3, np.int8)), TensorData(np.ones((2, 2)))])
    first, second = decode(data)
    assert second.array.flags.aligned
    assert not second.array.flags.writeable
    positions = [np.frombuffer(data, np.uint8).ctypes.data, second.array.ctypes.data]
    assert (positions[1] - positions[0]) % 64 == 0
    assert first.array.tolist() == [1, 1, 1]


def test_bytes_that_may_change_are_copied():
    memory = bytearray(encode(TensorData(np.ones(3))))
    data = decode(memory)
    memory[-24:] = bytes(24)
    assert data.array.tolist() == [1.0, 1.0, 1.0]


def test_bytes_are_little_endian_on_every_machine(monkeypatch):
    array = np.array([1.5, 2.5, 1 + 2j])
    little = encode(TensorData(array))
    monkeypatch.setattr(codec.sys, "byteorder", "big")
    assert encode(TensorData(array.byteswap())) == little
    assert decode(little).array.byteswap().tolist() == array.tolist()


VERSION_1 = """
QlVSTgEA6QAAAJORkqdmbG9hdDMykQOSpmEucHk6MaZhLnB5OjKWApKUAJEDp2Zsb2F0MzIBxxECAAAAAAAAAAAAAAAAAAAA
AACRkpQBkQOnZmxvYXQzMgEAkpYDo2FkZJKUAJEDp2Zsb2F0MzIBlAGRA6dmbG9hdDMyAYCRlAKRA6dmbG9hdDMyAACWA6Rj
bGlwk5QCkQOnZmxvYXQzMgLLv/AAAAAAAAACgJGUA5EDp2Zsb2F0MzIAAZGUA5EDp2Zsb2F0MzIBk8cRAgEAAAAAAAAAAAAA
AAAAAAAAxxECAgAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAD8AAMA/AAAAwA==
"""


def test_bytes_of_version_1_stay_readable():
    builder = GraphBuilder()
    x = builder.input(VECTOR)
    builder.scalar(int)
    constant = builder.constant(np.array([0.5, 1.5, -2.0], np.float32))
    builder.draw = Draw(builder.new_scalar(int), builder.new_scalar(int), 4)
    (y,) = builder.call("add", [x, constant], {}, "a.py:1")
    (z,) = builder.call("clip", [y, -1.0, 2], {}, "a.py:2")
    graph = with_last_uses(builder.graph(z))
    assert exact(GraphIr.from_bytes(base64.b64decode(VERSION_1))) == exact(graph)


# Text.


STEP = """
input %0: float32[8, 4]
input $0: float
input %1: float32[4, 2]
input %7: float32[1, 1, 3, 3]
constant %2: float32[2] = [0.10000000149011612, nan]
draw 16 words: seed $1, offset $2
%3: float32[8, 4] = random_uniform(shape=(8, 4), dtype=float32, low=0.0, high=1.0, \
seed=$1, offset=$2 + 2)    # step.py:1
%4: float32[8, 4] = add(%0, %3!)    # step.py:1
%5: float32[8, 2] = linear(%4!, %1, %2)    # a folder/step.py:2
%6: float32[8, 2] = multiply(%5, 2.0)
%8: float32[1, 1, 2, 2], %9: int64[1, 1, 2, 2] = max_pool_with_indices(%7, index_dtype=int64, \
kernel_size=(2, 2), stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), ceil_mode=False)
drop %8
%10: float32[4, 2], %11: float32[4, 2] = sgd_step([%1], [%1], [%1], momentum=0.0, \
dampening=0.0, weight_decay=0.0, nesterov=False, learning_rate=$0)
drop %11
%12: float32[8, 4] = concat([%5!, %6!], axis=1)
output %12
output %10
output %0
output %12
output %9
"""


def test_text_has_a_line_for_each_part():
    assert str(with_last_uses(training_step())) == STEP.strip()


def test_str_leaves_out_the_values_of_a_large_constant_and_says_so_when_it_is_read():
    builder = GraphBuilder()
    small, large = builder.constant(np.ones(64)), builder.constant(np.ones(65))
    graph = builder.graph(small, large)
    assert "%1: float64[65] = ...\n" in str(graph)
    assert str(graph).count("1.0") == 64
    assert survives(graph)
    with pytest.raises(GraphError, match=r"line 2: the text has been shortened.*to_text\(\)"):
        GraphIr.from_text(str(graph))


@pytest.mark.parametrize("source", ["a b.py:1", "#1", "'x'", " x ", "a\nb", "\0", "\udc80", "é%1"])
def test_any_line_of_a_program_survives(source):
    builder = GraphBuilder()
    graph = builder.graph(*builder.call("exp", [builder.input(VECTOR)], {}, source))
    assert survives(graph)


def test_text_may_have_empty_lines_comments_and_other_spaces():
    text = (
        "\n# two lines\r\n  input   %0:float32[ 3 , ]\n\n%1: float32[3]=exp( %0 ,)#here\noutput%1\n"
    )
    assert GraphIr.from_text(text).to_text() == (
        "input %0: float32[3]\n%1: float32[3] = exp(%0)    # here\noutput %1"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%1: float32[3] = exp(%0", "line 2: the line ends too early"),
        ("%1: float32[3] = exp(%0))", r"line 2: unexpected '\)' in column 25"),
        ("%1: float32[3] = exp(%0) exp", "line 2: unexpected 'exp'"),
        ("%1: float32[3] = exp(%7)", "line 2: %7 is not defined"),
        ("%1: float99[3] = exp(%0)", "line 2: unknown dtype 'float99'"),
        ("%1: float32[3] = exp(%0, axis=1, axis=2)", "axis is there twice"),
        ("%1: float32[3] = exp(axis=1, 2)", "operands come before attributes"),
        ("%1: float32[3] = exp(__import__('os'))", r"line 2: unexpected '\('"),
        ("%1: float32[3] = exp(x.y)", "line 2: unexpected '.'"),
        ("%1: float32[3] = exp(%0, a=((((((1))))))", "tuples are nested too deeply"),
        (f"%1: float32[3] = exp(%0, a={'9' * 5000})", "has more than 256 bits"),
        ("%1: float32[3] = exp(%0, a=1e999)", "too large for a float"),
        ("%1: float32[3] = exp(%0, a=$3)", r"\$3 is not declared"),
        ("%1: float32[3] = exp(%0, a=complex(1, 2))", "parts of a complex number"),
        ("%1: float32[3] = exp(%0)    # 'a", "no string literal"),
        ("%1: float32[3] = exp(%0)    # '\\q'", "escape"),
        ("x = 3", "a line begins with"),
        ("3", "unexpected '3'"),
        ("\0", r"unexpected '\\x00' in column 1"),
        ("input $0: str", "a scalar is int or float"),
        ("constant %1: float32[2] = [1.0]", "values are not those of"),
        ("constant %1: float32[1] = [1]", "1 is no value of float32"),
        ("constant %1: float32[1] = [1e300]", "too large for float32"),
        ("constant %1: int8[1] = [300]", "values are not those of"),
        ("constant %1: int8[?] = [3]", "values are not those of"),
        ("draw 4 words: seed $0, offset $1\ndraw 4 words: seed $2, offset $3", "one draw"),
        ("%1: float32[4] = exp(%0)", r"operation 0, exp: %1 is recorded as float32\[4\]"),
        ("drop %0", "operation 0, drop: %0 exists after a run"),
    ],
)
def test_wrong_text_is_an_error_that_names_the_line_or_the_operation(line, message):
    with pytest.raises(GraphError, match=message):
        GraphIr.from_text(f"input %0: float32[3]\n{line}")


def test_text_is_a_string():
    with pytest.raises(GraphError, match="str, not bytes"):
        GraphIr.from_text(b"output %0")


# Bytes.


def test_bytes_of_something_else_are_an_error_that_says_what():
    data = training_step().to_bytes()
    for wrong, message in [
        (b"", "0 bytes are no message"),
        (b"PK" + data, "begin with b'PKBU'"),
        (data[:4] + b"\2\0" + data[6:], "version 2 of the format, and this is version 1"),
        (data[:50], r"the header has \d+ bytes from byte 10 on, of which 40 are there"),
        (data[:-1], r"end at byte \d+, and the bytes at \d+"),
        (data + b"\0", r"ends at byte \d+, and the bytes at \d+"),
        (data.replace(b"linear", b"leanir"), "there is no op 'leanir'"),
        (data.replace(b"axis", b"sixa"), "has no attribute 'sixa'"),
        (data.replace(b"float32", b"float23"), "no dtype 'float23'"),
        (encode([1, 2]), "of a list"),
        ("text", "a message is bytes, not str"),
    ]:
        with pytest.raises(GraphError, match=message):
            GraphIr.from_bytes(wrong)


def test_a_byte_that_is_no_boolean_is_an_error():
    data = encode(TensorData(np.array([True, False])))
    with pytest.raises(GraphError, match="no booleans"):
        decode(data[:-1] + b"\2")


def test_messages_of_a_router_survive():
    x = TensorIr(0, (2, 3), burn.float32)
    total = OperationIr(
        "sum",
        (x._replace(status=Status.READ_WRITE),),
        {"axis": (1,), "keepdims": False, "dtype": burn.float32},
        (TensorIr(1, (2,), burn.float32, Status.NOT_INIT),),
        "a.py:1",
    )
    message = {
        "call": "register",
        "operations": [total, Drop(0), total],
        "tensors": (x, TensorIr(3, (None, 2), burn.bool)),
        "values": [None, True, 1, 1.0, -0.0, 2**64 - 1, 1j, "text", "", [], (), {}, [[()]]],
    }
    again = decode(encode(message))
    assert exact(again) == exact(message)
    assert [type(value) for value in again["values"]] == [
        type(value) for value in message["values"]
    ]
    values = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)
    first, second = decode(encode([TensorData(values.T), TensorData(values)]))
    assert (first.array == values.T).all()
    assert (second.dtype, second.shape) == (burn.bfloat16, (2, 3))


def test_a_graph_may_be_part_of_a_message():
    graph = training_step()
    assert exact(decode(encode({"graph": graph}))["graph"]) == exact(graph)


def test_errors_survive_with_their_class():
    error = burn.AxisError("axis 3", hint="Use 2", operation="sum(x)")
    again = decode(encode(error))
    assert type(again) is burn.AxisError
    assert str(again) == str(error)
    assert pickle.loads(pickle.dumps(again)).rule == "axis 3"


def test_an_error_of_another_class_becomes_one_of_burn():
    class Special(burn.ShapeError):
        pass

    assert type(decode(encode(Special("no")))) is burn.ShapeError
    unknown = decode(encode(burn.ShapeError("no")).replace(b"ShapeError", b"ColorError"))
    assert type(unknown) is ExecutionError
    assert unknown.rule == "no"
    foreign = decode(encode(KeyError("key")))
    assert type(foreign) is ExecutionError
    assert foreign.rule == "KeyError: 'key'"


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (object(), "no object"),
        ({1: 2}, "keys of a dict"),
        ({1}, "no set"),
        (b"bytes", "no bytes"),
        (2**256, "no int"),
        (TensorIr(2**70, (), burn.int8), None),
    ],
)
def test_a_message_of_something_else_is_an_error(message, rule):
    with pytest.raises(GraphError, match=rule):
        decode(encode(message))


def test_a_message_is_nested_as_deep_as_32_and_no_deeper():
    message = []
    for _ in range(31):
        message = [message]
    assert decode(encode(message)) == message
    with pytest.raises(GraphError, match="nested"):
        encode([message])


def test_an_operation_alone_is_checked():
    x = TensorIr(0, (3,), burn.float32)
    made = TensorIr(1, (3,), burn.float32, Status.NOT_INIT)
    for operation, message in [
        (OperationIr("nonsense", (x,), {}, (made,)), "there is no op 'nonsense'"),
        (OperationIr("exp", (), {}, (made,)), "takes 1 operands"),
        (OperationIr("exp", (x,), {"axis": 1}, (made,)), "has no attribute 'axis'"),
        (OperationIr("sum", (x,), {"axis": (0,)}, (made,)), "needs the attribute"),
        (OperationIr("flip", (x,), {"axes": 1.5}, (made,)), "axes must be a tuple of integers"),
        (OperationIr("flip", (x,), {"axes": (0,) * 65}, (made,)), "65 items"),
        (OperationIr("exp", (None,), {}, (made,)), "x must be a tensor, not None"),
        (OperationIr("exp", ((x,),), {}, (made,)), "x must be a tensor"),
        (OperationIr("concat", (x,), {"axis": 0}, (made,)), "must be a list of tensors"),
        (OperationIr("exp", (x,), {}, (x,)), "NOT_INIT"),
        (OperationIr("exp", (made,), {}, (made,)), "not NOT_INIT"),
        (OperationIr("exp", (x,), {}, ()), "has 1 outputs"),
    ]:
        with pytest.raises(GraphError, match=message):
            decode(encode(operation))


# Checks.


def broken_graphs():
    """A rule, and a graph that breaks it."""
    x, y, z = (TensorIr(id, (3,), burn.float32) for id in range(3))
    last = x._replace(status=Status.READ_WRITE)

    def made(tensor):
        return tensor._replace(status=Status.NOT_INIT)

    def exp(operand, result, **attributes):
        return OperationIr("exp", (operand,), attributes, (made(result),), "m.py:7")

    def graph(*operations, inputs=(x,), outputs=(), constants=(), draw=None, donated=()):
        return GraphIr(inputs, constants, operations, outputs, draw, donated)

    y_last = y._replace(status=Status.READ_WRITE)
    step = ScalarIr(0, int)
    values = TensorData(np.ones(3, np.float32))

    def sgd_step(rate, velocities=(x,), count=2):
        attributes = _SGD | {"learning_rate": rate}
        outputs = (made(y), made(z))[:count]
        return OperationIr("sgd_step", ((x,), (x,), velocities), attributes, outputs)

    yield "%1 is not defined", graph(exp(y, z))
    yield "operation 0, exp at m.py:7: %1 is not defined", graph(exp(y, z))
    yield "%1 is defined twice", graph(exp(x, y), exp(x, y))
    yield "%0 is defined twice", graph(inputs=(x, x))
    yield "%0 is defined twice", graph(constants=(Constant(x, values),))
    yield "%0 is defined twice", graph(exp(x, x))
    yield "%1 was dropped before", graph(exp(x, y), Drop(1), exp(y, z))
    yield "%1 was dropped before", graph(exp(x, y), Drop(1), Drop(1))
    yield "%1 was dropped before", graph(exp(x, y), Drop(1), outputs=(y,))
    yield "%1 is defined twice", graph(exp(x, y), Drop(1), exp(x, y))
    yield "%1 was used for the last time before", graph(exp(x, y), exp(y_last, z), exp(y, z))
    yield "%1 was used for the last time before", graph(exp(x, y), exp(y_last, z), outputs=(y,))
    yield "%0 exists after a run, and is used for the last time", graph(exp(last, y))
    yield "%0 exists after a run, and is dropped", graph(Drop(0))
    yield "%1 exists after a run", graph(Drop(1), constants=(Constant(y, values),))
    yield "outputs: %7 is not defined", graph(outputs=(y._replace(id=7),))
    yield "status must be READ_ONLY", graph(outputs=(last,))
    yield "status must be READ_ONLY", graph(inputs=(made(x),))
    yield "lengths known", graph(inputs=(TensorIr(0, (None,), burn.int8),))
    yield (
        "used as int8[3], and is defined as float32[3]",
        graph(exp(x._replace(dtype=burn.int8), y)),
    )
    yield "used as float32[2]", graph(outputs=(x._replace(shape=(2,)),))
    yield "recorded as float32[2], and is float32[3]", graph(exp(x, y._replace(shape=(2,))))
    yield "recorded as float16[3]", graph(exp(x, y._replace(dtype=burn.float16)))
    yield "recorded as float32[?]", graph(exp(x, y._replace(shape=(None,))))
    yield (
        "recorded as int8[3], and its values are",
        graph(inputs=(), constants=(Constant(x._replace(dtype=burn.int8), values),)),
    )
    yield "there is no op 'nonsense'", graph(OperationIr("nonsense", (x,), {}, (made(y),)))
    yield "has no attribute 'axis'", graph(exp(x, y, axis=1))
    yield (
        "takes float or complex tensors, got int8",
        graph(
            exp(TensorIr(0, (3,), burn.int8), TensorIr(1, (3,), burn.int8)),
            inputs=(TensorIr(0, (3,), burn.int8),),
        ),
    )
    yield "axis 5 is out of range", graph(OperationIr("flip", (x,), {"axes": (5,)}, (made(y),)))
    yield (
        "no int $0 is declared",
        graph(
            OperationIr(
                "random_bits",
                (),
                {"count": 3, "dtype": burn.uint32, "seed": step, "offset": 0},
                (TensorIr(1, (3,), burn.uint32, Status.NOT_INIT),),
            )
        ),
    )
    yield "no float $0 is declared", graph(sgd_step(ScalarIr(0, float)), inputs=(x, step))
    yield "has 2 outputs (parameters[0], velocities[0]), got 1", graph(sgd_step(0.5, count=1))
    yield "has 1 outputs (parameters[0]), got 2", graph(sgd_step(0.5, ()))
    yield "velocities must be a list of tensors", graph(sgd_step(0.5, x))
    yield (
        "which differs at each run",
        graph(
            OperationIr("cumsum", (x,), {"axis": step}, (made(y),)),
            inputs=(x, step),
        ),
    )
    yield "$0 is declared twice", graph(inputs=(step, step))
    yield "$0 is declared twice", graph(inputs=(step,), draw=Draw(step, ScalarIr(1, int), 1))
    yield "nothing is added", graph(inputs=(step + 1,))
    yield "Use int or float", graph(inputs=(ScalarIr(0, str),))
    yield "seed and offset are integers", graph(draw=Draw(ScalarIr(0, float), ScalarIr(1, int), 1))
    yield "number of words is -1", graph(draw=Draw(step, ScalarIr(1, int), -1))
    yield "donated: there is no input 1", graph(donated=(Donation(1),))
    yield "there is no input -1", graph(donated=(Donation(-1),))
    yield "there is no output 0", graph(donated=(Donation(0, 0),))
    yield "an input is named twice", graph(donated=(Donation(0), Donation(0)))
    twice = (Donation(0, 0), Donation(1, 0))
    yield "an output is named twice", graph(inputs=(x, y), outputs=(x,), donated=twice)
    yield "input 0 is a number", graph(inputs=(step,), donated=(Donation(0),))
    shorter = TensorIr(1, (2,), burn.float32)
    yield (
        "input 1 is float32[2], and output 0 is float32[3]",
        graph(inputs=(x, shorter), outputs=(x,), donated=(Donation(1, 0),)),
    )
    yield "is no OperationIr, and no Drop", graph("exp")
    yield "a tensor is a TensorIr", graph(inputs=("x",))
    yield "integer in [0, 2**63), not -1", graph(inputs=(x._replace(id=-1),))
    yield "a length of %0 is -3", graph(inputs=(x._replace(shape=(-3,)),))
    yield "at most 64 lengths", graph(inputs=(x._replace(shape=(1,) * 65),))
    yield "more than 2**63 - 1 elements", graph(inputs=(x._replace(shape=(2**32, 2**32)),))
    yield "no dtype", graph(inputs=(x._replace(dtype="float32"),))


@pytest.mark.parametrize(("rule", "graph"), list(broken_graphs()))
def test_a_graph_that_breaks_a_rule_is_found(rule, graph):
    with pytest.raises(GraphError) as caught:
        graph.check()
    assert rule in str(caught.value)


def test_what_depends_on_data_can_be_returned_and_not_used():
    builder = GraphBuilder()
    (found,) = builder.call("argwhere", [builder.input(VECTOR)], {"dtype": burn.int64})
    graph = builder.graph(found)
    graph.check()
    assert survives(graph)
    assert "%1: int64[?, 1] = argwhere(%0, dtype=int64)" in str(graph)
    builder.call("abs", [found], {})
    with pytest.raises(GraphError, match="has a length that depends on data, and is used"):
        builder.graph().check()


# Last uses.


def test_the_last_use_is_marked_once_and_what_is_not_used_is_dropped():
    text = """
    input %0: float32[3]
    constant %1: float32[3] = [1.0, 2.0, 3.0]
    %2: float32[3] = add(%0, %1)
    %3: float32[3] = multiply(%2, %2)
    %4: float32[3] = exp(%0)
    %5: float32[6] = concat([%3, %3], axis=0)
    %6: float32[3] = add(%3, %1)
    %7: float32[3] = exp(%6)
    output %6
    """
    assert str(with_last_uses(GraphIr.from_text(text))).splitlines()[2:] == [
        "%2: float32[3] = add(%0, %1)",
        "%3: float32[3] = multiply(%2, %2!)",
        "%4: float32[3] = exp(%0)",
        "drop %4",
        "%5: float32[6] = concat([%3, %3], axis=0)",
        "drop %5",
        "%6: float32[3] = add(%3!, %1)",
        "%7: float32[3] = exp(%6)",
        "drop %7",
        "output %6",
    ]
