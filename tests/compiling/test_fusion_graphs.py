"""Random programs that hypothesis draws: planned, they give what they give eagerly."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from test_compile_graphs import arrays, operands, program, steps

import burn
from burn.compiler import Straight, Target, fuses, lowered, planned
from burn.dtype import DType
from burn.ir import trace
from kernel_reference import load_reference

TABLE = burn.Device("cpu").ops

ALL = frozenset([dtype for dtype in DType.members() if not dtype.is_complex])

TARGETS = {
    "kernels": Target(ALL, lambda _: False, max_product=1000, checks=True),
    "calls of some ops": Target(ALL, lambda item: item.name in {"exp", "max", "where", "less"}),
    "divided reductions": Target(ALL, lambda _: False, rows=8, strided_rows=4, long_columns=4),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@given(shapes=operands, description=steps, results=st.integers(1, 8))
def test_a_plan_gives_what_the_program_gives(target, shapes, description, results):
    function = program(description, results)
    values = arrays(shapes)
    tensors = [burn.asarray(value) for value in values]
    graph = lowered(
        trace(function, *tensors),
        lambda item: not (fuses(item, target) or target.keeps(item)),
        TABLE,
    )
    straight = Straight(planned(graph, target), TABLE, load_reference)
    for found, tensor in zip(straight(*values), function(*tensors), strict=True):
        np.testing.assert_allclose(found, tensor.numpy(), rtol=1e-9, atol=1e-11)
