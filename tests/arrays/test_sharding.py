"""An op on shards gives shards of what it gives on the whole, or parts that combine to that."""

import functools

import numpy as np
import pytest

import burn
from burn.ops import REGISTRY, Meta, Tag
from burn.ops.sharding import attributes_of_shard, sharded
from burn.tensor_data import TensorData
from burn.testing import SAMPLES, Subject
from burn.testing.subject import Call

CPU = burn.Device("cpu")
TABLE = CPU.ops
SUBJECT = Subject.of(CPU)

COMBINE = {
    "sum": np.add,
    "product": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def results(op, operands, attributes):
    found = getattr(TABLE, op.name)(*operands, **attributes)
    return found if op.returns_tuple else (found,)


def combined(parts, how):
    if how == "mean":
        return np.mean(parts, axis=0)
    return functools.reduce(COMBINE[how], parts)


def check(call, operand, axis):
    """Try an op on the halves of an operand; returns whether it has a rule for that."""
    found = sharded(call.op, call.metas, call.attributes, operand=operand, axis=axis)
    if found is None:
        return False
    whole = [
        TABLE.backend.from_data(TensorData(x), CPU.id) if isinstance(x, np.ndarray) else x
        for x in call.operands
    ]
    expected = results(call.op, whole, call.attributes)
    attributes = attributes_of_shard(call.op, call.attributes, found, 2)
    shards = []
    for half in range(2):
        operands = [
            x if along is None else np.split(x, 2, axis=along)[half]
            for x, along in zip(whole, found.operands, strict=True)
        ]
        shards.append(results(call.op, operands, attributes))
    for made, *parts in zip(expected, *shards, strict=True):
        if found.axis is None:
            joined = combined(parts, found.combine)
        else:
            joined = np.concatenate(parts, axis=found.axis)
        assert joined.shape == made.shape
        np.testing.assert_allclose(joined, made, rtol=1e-5, atol=1e-6, equal_nan=True)
    return True


def float_calls(name):
    """The samples of an op whose operands are tensors of float32 or int32, and numbers."""
    samples = SAMPLES[name]
    for item in samples.samples:
        for dtype in (burn.float32, burn.int32):
            if dtype in SUBJECT.dtypes(samples, item):
                call = Call.of(samples, item, dtype, SUBJECT.index_dtype)
                if not any(isinstance(operand, (list, tuple)) for operand in call.operands):
                    yield call
                break


WITH_RULES = [
    name
    for name, op in REGISTRY.items()
    if op.shards is not None or op.tags & (Tag.ELEMENTWISE | Tag.REDUCTION)
]
ONE_AXIS = ["softmax", "log_softmax", "cumsum", "cumprod", "sort", "argsort"]


@pytest.mark.together("name", sorted({*WITH_RULES, *ONE_AXIS}))
def test_an_op_on_shards_gives_what_the_whole_gives(name):
    tried = 0
    with np.errstate(all="ignore"):
        for call in float_calls(name):
            for operand, x in enumerate(call.metas):
                for axis, length in enumerate(getattr(x, "shape", ())):
                    if length and length % 2 == 0:
                        tried += check(call, operand, axis)
    assert tried or name in WITHOUT_SHARDS


WITHOUT_SHARDS = {"complex"}
"""Ops whose samples have no axis of even length that could be divided."""


def test_what_becomes_of_a_divided_axis():
    x, weight = Meta((8, 4), burn.float32), Meta((4, 6), burn.float32)
    product = REGISTRY["matmul"]
    assert sharded(product, [x, weight], {}, operand=0, axis=0) == ((0, None), 0, None)
    assert sharded(product, [x, weight], {}, operand=0, axis=1) == ((1, 0), None, "sum")
    assert sharded(product, [x, weight], {}, operand=1, axis=1) == ((None, 1), 1, None)
    largest = {"axis": (1,), "keepdims": True}
    assert sharded(REGISTRY["max"], [x], largest, operand=0, axis=1) == ((1,), None, "max")
    assert sharded(REGISTRY["max"], [x], largest, operand=0, axis=0) == ((0,), 0, None)
    assert sharded(REGISTRY["softmax"], [x], {"axis": 1}, operand=0, axis=1) is None
    assert sharded(REGISTRY["flip"], [x], {"axes": (0,)}, operand=0, axis=0) is None
