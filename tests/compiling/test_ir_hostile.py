"""Bytes and text that someone made wrong on purpose are an error of burn's, in time and memory."""

import contextlib
import random
import resource
import struct
import time
import tracemalloc
from pathlib import Path

import msgpack
import numpy as np
import pytest

import burn
from burn.errors import BurnError, GraphError
from burn.ir import Draw, Drop, GraphIr, with_last_uses
from burn.ir.codec import decode, encode
from burn.ops import Meta
from burn.tensor_data import TensorData
from ir_graphs import GraphBuilder, calls, sample_graph

SECONDS = 5.0
"""Time of the processor that one text or message may take, thousands of times what it needs."""

MEMORY = 512 << 20
"""Bytes that a run of all mutations may add to the process; the largest message has 8 KiB."""


def seeds():
    """Graphs of some samples, and one of all parts that a graph may have."""
    every = list(calls())
    graphs = [sample_graph(*every[number]) for number in range(0, len(every), len(every) // 40)]
    builder = GraphBuilder()
    x = builder.input(Meta((4, 3), burn.float32))
    rate = builder.scalar(float)
    constant = builder.constant(np.array([True, False, True]))
    values = builder.constant(np.array([1 + 2j, -0.0], np.complex64))
    builder.draw = Draw(builder.new_scalar(int), builder.new_scalar(int), 8)
    random_state = {"seed": builder.draw.seed, "offset": builder.draw.offset + 1}
    (noise,) = builder.call(
        "random_uniform",
        [],
        {"shape": (4, 3), "dtype": burn.float32, "low": 0.0, "high": 1.0, **random_state},
    )
    (chosen,) = builder.call("where", [constant, x, noise], {}, "a.py:1")
    (sliced,) = builder.call("slice", [chosen], {"slices": ((0, 2, 1), (1, 1, 2))}, "a.py:2")
    settings = {"learning_rate": rate, "momentum": 0.5, "dampening": 0.0, "nesterov": True}
    settings["weight_decay"] = 0.0
    stepped = builder.call("sgd_step", [[sliced], [sliced], [sliced]], settings, "a.py:2")
    (joined,) = builder.call("concat", [[stepped[0], sliced, sliced]], {"axis": 1})
    graphs.append(with_last_uses(builder.graph(joined, values, x)))
    return [graph for graph in graphs if len(graph.to_bytes()) < 8000]


GRAPHS = seeds()

MESSAGES = [
    *[graph.to_bytes() for graph in GRAPHS],
    *[encode(list(graph.operations)) for graph in GRAPHS],
    encode({"call": "read", "tensors": list(GRAPHS[-1].outputs), "wait": True, "limit": 1.5}),
    encode([TensorData(np.ones((2, 3))), Drop(3), (None, -1, [{"a": 1j}])]),
    encode(burn.AxisError("axis 3", hint="Use 2", operation="sum(x)")),
]

TEXTS = [graph.to_text() for graph in GRAPHS]


@contextlib.contextmanager
def little_memory():
    """Let the process have little more memory than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    used = int(pages) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def check_ends_well(read, wrong):
    """Read something: an error of burn's, or what can be written and read again."""
    start = time.process_time()
    try:
        found = read(wrong)
        again = decode(encode(found))
    except BurnError as error:
        assert str(error)
        again = found = None
    assert time.process_time() - start < SECONDS, wrong
    assert type(again) is type(found)
    if isinstance(found, GraphIr):
        found.check()
        assert again.to_bytes() == found.to_bytes()


WORDS = (0, 1, 0x7F, 0x80, 0x90, 0xC0, 0xC1, 0xC7, 0xD4, 0xDC, 0xDD, 0xDF, 0xFF)


def mutated_bytes(generator):
    """A message with some bytes changed, added, removed, or taken from another message."""
    data = bytearray(generator.choice(MESSAGES))
    for _ in range(generator.choice((1, 1, 1, 2, 4, 16))):
        position = generator.randrange(len(data) + 1)
        length = generator.choice((1, 1, 2, 4, 32))
        match generator.randrange(6):
            case 0:
                data[position : position + 1] = generator.randbytes(1)
            case 1:
                data[position : position + 1] = bytes([generator.choice(WORDS)])
            case 2:
                data[position : position + length] = b""
            case 3:
                data[position:position] = generator.randbytes(length)
            case 4:
                other = generator.choice(MESSAGES)
                start = generator.randrange(len(other))
                data[position : position + length] = other[start : start + length]
            case 5:
                number = generator.choice((0, 1, len(data), 2**31, 2**32 - 1))
                data[position : position + 4] = struct.pack("<I", number)
    if generator.random() < 0.1:
        del data[generator.randrange(len(data) + 1) :]
    return bytes(data)


VALUES = (
    *(None, True, False, 0, 1, 2, 3, 4, 5, 6, 7, -1, 255, 2**31, 2**32, 2**62, 2**63 - 1),
    *(-(2**63), 2**64 - 1, 0.0, -1.0, float("nan"), float("inf"), 1e308, "", "float32", "add"),
    *("axis", "\0", "x" * 1000, b"", b"abc", [], {}, [0], [[]], [3, 3], {"axis": 0}, [1] * 100),
    msgpack.ExtType(1, b"1234567890123456"),
    msgpack.ExtType(1, b"1"),
    msgpack.ExtType(2, struct.pack("<q?q", 0, False, 5)),
    msgpack.ExtType(2, struct.pack("<q?q", -1, True, -(2**63))),
    msgpack.ExtType(3, b"\xff" * 32),
    msgpack.ExtType(3, b"\x7f" * 32),
    msgpack.ExtType(3, b""),
    msgpack.ExtType(99, b""),
    msgpack.Timestamp(3, 5),
)
"""What a header may hold, at points where it is not expected."""


def mutated_value(value, generator):
    """A value of a header in which one part is another one."""
    parts = len(value) if isinstance(value, (list, dict)) else 0
    if not parts or generator.random() < 0.15:
        return generator.choice(VALUES)
    if isinstance(value, dict):
        name = generator.choice(list(value))
        changed = {**value, name: mutated_value(value[name], generator)}
        if generator.random() < 0.2:
            changed[generator.choice(("axis", "dtype", ""))] = changed.pop(name)
        return changed
    sizes = [len(msgpack.packb(part)) for part in value]
    (number,) = generator.choices(range(parts), sizes)
    match generator.randrange(12):
        case 0:
            return value[:number] + value[number + 1 :]
        case 1:
            return [*value, value[number]]
        case _:
            part = mutated_value(value[number], generator)
            return [*value[:number], part, *value[number + 1 :]]


def mutated_header(generator):
    """A message whose header holds other values."""
    data = generator.choice(MESSAGES)
    magic, version, length = struct.unpack_from("<4sHI", data)
    header = msgpack.unpackb(data[10 : 10 + length])
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        header = mutated_value(header, generator)
    packed = msgpack.packb(header)
    rest = data[-(-(10 + length) // 64) * 64 :]
    padding = bytes(-(10 + len(packed)) % 64) if rest else b""
    return struct.pack("<4sHI", magic, version, len(packed)) + packed + padding + rest


PIECES = (
    *("%0", "%1!", "%99", "$0", "$0 + 1", "$9", "[", "]", "(", ")", ",", "=", ":", "!", "?", "+"),
    *("-", "--", "...", "\n", "#", "'", '"', "\\", "\0", "\udc80", "é", " ", "\t", "nan", "inf"),
    *(
        "None",
        "True",
        "complex(",
        "complex(0.0, nan)",
        "1e999",
        "0x10",
        "1_0",
        "9" * 5000,
        "1.",
        ".",
    ),
    *("2147483648", "9223372036854775808", "-1", "0", "float32", "int8", "drop %0", "output %1"),
    *(
        "input %9: float32[2]\n",
        "lambda: 0",
        "__import__('os')",
        "(" * 5000,
        "[" * 5000,
        "-" * 5000,
    ),
    *("axis=0", "'a'", "draw 1 words: seed $7, offset $8\n", "constant %9: bool[1] = [True]\n"),
)
"""What a text may hold, at points where it is not expected."""


def mutated_text(generator):
    """A text with some characters changed, added, removed, or taken from another text."""
    text = generator.choice(TEXTS)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        position = generator.randrange(len(text) + 1)
        end = position + generator.choice((0, 0, 1, 2, 5, 40))
        match generator.randrange(4):
            case 0:
                piece = ""
            case 1:
                piece = chr(generator.choice((generator.randrange(128), generator.randrange(5000))))
            case 2:
                piece = generator.choice(PIECES)
            case 3:
                other = generator.choice(TEXTS)
                start = generator.randrange(len(other))
                piece = other[start : start + generator.randrange(60)]
        text = text[:position] + piece + text[end:]
    return text


@pytest.mark.parametrize(
    ("mutated", "read"),
    [
        (mutated_bytes, decode),
        (mutated_header, decode),
        (mutated_text, GraphIr.from_text),
    ],
    ids=["bytes", "header", "text"],
)
def test_what_is_wrong_is_an_error_or_a_correct_program(mutated, read, everything):
    with little_memory():
        for number in range(100_000 if everything else 1000):
            check_ends_well(read, mutated(random.Random(number)))


def test_every_beginning_of_a_message_and_of_a_text_is_an_error_or_a_correct_program(everything):
    for data in MESSAGES if everything else MESSAGES[-5:]:
        for length in range(len(data)):
            with pytest.raises(GraphError):
                decode(data[:length])
    for text in TEXTS if everything else TEXTS[-2:]:
        for length in range(len(text)):
            check_ends_well(GraphIr.from_text, text[:length])


def framed(header):
    """A message with this header."""
    return struct.pack("<4sHI", b"BURN", 1, len(header)) + header


NESTED = b"\xdd\xff\xff\xff\xff"
"""The beginning of an array of 2**32 - 1 items."""


@pytest.mark.parametrize(
    "header",
    [
        NESTED,
        NESTED * 1000,
        (b"\xdd" + struct.pack(">I", 100_000)) * 20_000,
        b"\xdf\xff\xff\xff\xff" * 1000,
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\x91" * 100_000,
        b"\x81\xa1a" * 100_000,
        b"\xd4\x02" * 3,
        msgpack.packb([[["float32", [2**62]]], [], [6, 0]]),
        msgpack.packb([[["float32", [2**32, 2**32, 2**32]]], [], [6, 0]]),
        msgpack.packb([[["float32", [2**62, 0, 2**62]]], [], [6, 0]]),
        msgpack.packb([[["float32", [1] * 65]], [], [6, 0]]),
        msgpack.packb([[["float32", [0] * 1_000_000]], [], [6, 0]]),
        msgpack.packb([[["float32", [0]]], [], [6, 5]]),
        msgpack.packb([[], [], [6, 0]]),
        msgpack.packb([[], [], [3, "exp", [[0, [3], "float32", 1]], {}, [], 0]]),
        msgpack.packb(
            [[], [""], [3, "flip", [[0, [3], "float32", 1]], {"axes": [0] * 10**6}, [], 0]]
        ),
        msgpack.packb([[], [""], [3, "full", [], {"shape": [2**62] * 10**5}, [], 0]]),
        msgpack.packb([[], [], [[[[]]]]]),
        msgpack.packb([[], [], [0] * 1]) + b"\0",
    ],
    ids=range(22),
)
def test_what_a_message_announces_is_not_allocated_before_it_is_there(header):
    data = framed(header)
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(GraphError):
            decode(data)
        assert time.process_time() - start < SECONDS
        assert tracemalloc.get_traced_memory()[1] < (1 << 20) + 100 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000_000,
        "%1: float32[3] = exp(" + "(" * 1_000_000,
        "%1: float32[3] = exp(a=" + "(" * 1_000_000,
        "%1: float32[3] = exp(" + "-" * 1_000_000,
        "%1: float32[3] = exp(" + "complex(" * 100_000,
        "%1: float32[3] = exp(a=" + "9" * 1_000_000,
        "%" + "9" * 1_000_000,
        "%1: float32[3] = exp(a=1e" + "9" * 1_000_000,
        "%1: float32[3] = exp(a=" + "'" * 1_000_001,
        "%1: float32[3] = exp(a='" + "\\" * 1_000_001,
        "x" * 1_000_000,
        "input %0: float32[" + "1, " * 100_000,
        "input %0: float32[" + "9223372036854775807, " * 100_000 + "]",
        "constant %0: float32[4611686018427387904] = []",
        "constant %0: float32[4611686018427387904, 0, 4611686018427387904] = []",
        "%0: float32[4611686018427387904, 2] = full(shape=(" + "4611686018427387904," * 100_000,
        "%0: float32[2] = full(shape=(" + "4611686018427387904," * 100_000 + "))",
    ],
    ids=range(17),
)
def test_a_text_of_any_length_and_depth_is_an_error(text):
    start = time.process_time()
    with little_memory(), pytest.raises(GraphError) as caught:
        GraphIr.from_text(text)
    assert time.process_time() - start < SECONDS
    assert len(str(caught.value)) < 1000
