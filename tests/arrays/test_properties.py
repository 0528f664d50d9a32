"""Ops on operands that hypothesis draws: shapes, strides, dtypes and values.

The draws are the same in each run; ``--hypothesis-profile=explore`` makes many others.
"""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra import numpy as npst
from hypothesis.extra.array_api import make_strategies_namespace

import burn
from burn.dtype import Kind
from burn.ops import Tag
from burn.testing import SAMPLES, check_sample
from burn.testing.op_samples import TESTED_DTYPE, sample
from gate import SUBJECTS

CPU = burn.Device("cpu")
ELEMENTWISE = [
    name
    for name, samples in SAMPLES.items()
    if Tag.ELEMENTWISE in samples.op.tags
    and not any(attribute.required for attribute in samples.op.attributes.values())
    and not any(spec.is_list for spec in samples.op.operands.values())
    and name != "complex"  # its result is of a dtype that few devices have
]

AMPLIFIES = {"pow", "tan", "gelu", "remainder", "fmod", "floor_divide", "nextafter"}
"""Ops that can turn the rounding of an operand to 16 bits into any difference."""


FINITE = {"floor_divide", "fmod", "mean", "pow", "prod", "remainder", "sum"}
"""Ops whose reference computes with fractions, exact sums, or NumPy's shortcuts for powers."""

EITHER_ZERO = {"clip", "max", "maximum", "min", "minimum", "relu"}
"""Ops that may choose either of 0.0 and -0.0, which are equal."""


def on_each_subject(ops):
    """Each op on each device. The gate has the draws of the kit (its suite ``draws``) alone."""
    cases = [
        pytest.param(subject, op, id=f"{name} {op}", marks=pytest.mark.exhaustive)
        for name, subject in SUBJECTS.items()
        if subject.handle is not None and not subject.compiles
        for op in ops
    ]
    return pytest.mark.parametrize(("subject", "name"), cases)


def views(draw, array):
    """The array, or another one with the same elements and other strides."""
    kind = draw(st.sampled_from(["plain", "transposed", "strided", "reversed"]))
    if kind == "plain" or not array.ndim:
        return array
    if kind == "transposed":
        return np.ascontiguousarray(array.T).T
    if kind == "reversed":
        return np.ascontiguousarray(array[::-1])[::-1]
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def elements(kind, name=""):
    """Values for operands of a kind: ordinary ones, and those on which things break."""
    if kind is Kind.BOOL:
        return st.booleans()
    if kind in Kind.INTEGER:
        return st.integers(0, 100)
    special = [0.0, 1.0, -1.0, 0.5]
    special += [] if name in EITHER_ZERO else [-0.0]
    special += [] if name in FINITE else [np.inf, -np.inf, np.nan]
    ordinary = st.floats(-4.0, 4.0, width=16).map(lambda x: x + 0.0)  # -0.0 becomes 0.0
    return st.one_of(ordinary, st.sampled_from(special))


@on_each_subject(ELEMENTWISE)
@given(data=st.data())
def test_elementwise_ops_on_drawn_operands(subject, name, data):
    samples = SAMPLES[name]
    specs = list(samples.op.operands.values())
    dtypes = [
        dtype
        for dtype in burn.DType.members()
        if subject.supports(dtype)
        and dtype.kind is not Kind.COMPLEX
        and all(dtype.kind in spec.kinds for spec in specs if spec.promotes)
        and not (name in AMPLIFIES and dtype.itemsize < 4 and dtype.is_float)
    ]
    dtype = data.draw(st.sampled_from(dtypes))
    shapes = data.draw(
        npst.mutually_broadcastable_shapes(num_shapes=len(specs), max_dims=3, max_side=4)
    ).input_shapes
    operands = []
    for spec, shape in zip(specs, shapes, strict=True):
        kind = dtype.kind if spec.promotes else Kind.BOOL
        numpy = {Kind.BOOL: bool, Kind.FLOAT: np.float64}.get(kind, np.int64)
        values = data.draw(npst.arrays(numpy, shape, elements=elements(kind, name)))
        operands.append(views(data.draw, values))
    check_sample(subject, samples, sample("drawn", *operands), dtype)


REDUCTIONS = ["sum", "prod", "mean", "max", "min", "any", "all"]


@on_each_subject(REDUCTIONS)
@given(data=st.data())
def test_reductions_on_drawn_operands(subject, name, data):
    samples = SAMPLES[name]
    kinds = Kind.FLOAT if name == "mean" else Kind.NUMERIC
    dtypes = [d for d in burn.DType.members() if subject.supports(d) and d.kind in kinds]
    dtype = data.draw(st.sampled_from(dtypes))
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
    axis = data.draw(st.sets(st.integers(0, max(len(shape) - 1, 0)), max_size=len(shape)))
    axis = tuple(sorted(axis))
    assume(name not in ("max", "min") or all(shape[number] for number in axis))
    numpy = np.float64 if dtype.is_float else np.int64
    values = data.draw(npst.arrays(numpy, shape, elements=elements(dtype.kind, name)))
    attributes = {"axis": axis, "keepdims": data.draw(st.booleans())}
    if "dtype" in samples.op.attributes:
        attributes["dtype"] = TESTED_DTYPE
    one = sample("drawn", views(data.draw, values), **attributes)
    check_sample(subject, samples, one, dtype)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # hypothesis warns of a version newer than it knows
    xps = make_strategies_namespace(burn, api_version="2024.12")


@given(x=xps.arrays(xps.scalar_dtypes(), xps.array_shapes(min_dims=0, max_side=4)))
def test_arrays_drawn_by_the_array_api_strategies_are_tensors(x):
    assert isinstance(x, burn.Tensor)
    assert burn.isdtype(x.dtype, ("bool", "numeric"))
    assert bool(burn.all(burn.isfinite(x) | burn.isnan(x) | burn.isinf(x))) or not x.dtype.is_float


@given(data=st.data())
def test_indexing_and_reshaping_keep_the_elements(data):
    x = data.draw(xps.arrays(xps.numeric_dtypes(), xps.array_shapes(max_side=4)))
    key = data.draw(xps.indices(x.shape))
    values = x.numpy()
    np.testing.assert_array_equal(x[key].numpy(), values[key])
    np.testing.assert_array_equal(burn.reshape(x, (-1,)).numpy(), values.reshape(-1))
    axes = data.draw(st.permutations(range(x.ndim)))
    np.testing.assert_array_equal(burn.permute_dims(x, tuple(axes)).numpy(), values.transpose(axes))


@given(data=st.data())
def test_promotion_is_that_of_result_type(data):
    one = data.draw(xps.integer_dtypes())
    other = data.draw(xps.integer_dtypes())
    assume(not (burn.uint64 in (one, other) and {one.kind, other.kind} == {Kind.INT, Kind.UINT}))
    x, y = burn.ones(2, dtype=one, device=CPU), burn.ones(2, dtype=other, device=CPU)
    assert (x + y).dtype is burn.result_type(one, other) is (y + x).dtype
