"""What samples of the conformance kit must be, so that what they find is the same everywhere."""

import numpy as np
import pytest

from burn.dtype import DType, Kind
from burn.ops import REGISTRY, Tag
from burn.testing import samples as families
from burn.testing.arrays import LONG_LENGTH
from burn.testing.checks import expected_outputs
from burn.testing.op_samples import SAMPLES
from burn.testing.subject import Call
from burn.testing.tolerance import compare

FLOAT32, INT64 = DType.of("float32"), DType.of("int64")

OF_FLOATS = sorted(
    name
    for name, definition in REGISTRY.items()
    if Tag.ELEMENTWISE in definition.tags
    and any(spec.kinds & Kind.FLOAT for spec in definition.operands.values())
)
"""Elementwise ops that take floats."""


def float_arrays(sample):
    return [
        operand
        for operand in sample.operands
        if isinstance(operand, np.ndarray) and operand.dtype.kind == "f"
    ]


@pytest.mark.parametrize("name", OF_FLOATS)
def test_an_elementwise_op_meets_special_floats_in_whole_vector_registers(name):
    assert families  # importing the package fills the table
    assert any(
        array.size >= LONG_LENGTH and not np.isfinite(array).all()
        for sample in SAMPLES[name].samples
        for array in float_arrays(sample)
    )


def test_ops_that_refuse_values_say_that_they_may_raise():
    refusing = {
        name for name, value in SAMPLES.items() if any(error.in_data for error in value.errors)
    }
    assert {"solve_triangular", "embedding"} <= refusing
    assert {name for name in refusing if not REGISTRY[name].may_raise} == set()


def test_long_samples_leave_a_remainder_in_vector_registers_of_every_dtype():
    for dtype in DType.members():
        in_two_registers = 2 * 64 // dtype.itemsize
        assert in_two_registers < LONG_LENGTH
        assert LONG_LENGTH % in_two_registers


@pytest.mark.parametrize(("name", "output"), [("eig", 1), ("eigh", 1), ("svd", 0)])
def test_no_vector_has_two_elements_of_the_largest_magnitude_but_for_rounding(name, output):
    # The sign of the vector depends on which of them is the larger, and so on the machine.
    samples = SAMPLES[name]
    for sample in samples.samples:
        for dtype in DType.members():
            if dtype.kind not in sample.kinds:
                continue
            vectors = expected_outputs(samples, Call.of(samples, sample, dtype, INT64))[output]
            if vectors.size and vectors.shape[-2] > 1:
                magnitudes = np.sort(abs(np.asarray(vectors)), axis=-2)
                runner_up = magnitudes[..., -2, :] / magnitudes[..., -1, :]
                assert runner_up.max() < 1.0 - 1e-3, f"{sample.note}, {dtype}"


def test_a_zero_of_the_wrong_sign_is_found_where_an_op_has_signed_zeros():
    zero, negative = np.zeros(3, np.float32), -np.zeros(3)
    assert not compare(zero, negative, FLOAT32).text
    assert "got 0.0, expected -0.0" in compare(zero, negative, FLOAT32, signed_zeros=True).text
    assert not compare(-zero, negative, FLOAT32, signed_zeros=True).text
    tiny = np.full(3, 1e-30, np.float32)
    assert not compare(tiny, negative, FLOAT32, signed_zeros=True).text
