"""Special cases of the standard (2025.12): its table for complex numbers, and powers of NumPy's.

Those of real numbers are among the samples of the conformance kit, those of complex ones a suite of
it.
"""

import math

import pytest

import burn
from burn.testing.special_cases import EXTREMES, FUNCTIONS, is_part, special_cases

INF, NAN = math.inf, math.nan


def test_a_special_case_is_one_for_the_conjugate_too():
    for name in FUNCTIONS:
        numbers = {str(case.number) for case in special_cases(name)}
        assert len(numbers) >= 20
        assert numbers == {str(case.number.conjugate()) for case in special_cases(name)}


def test_each_function_has_special_cases_beside_large_and_tiny_numbers():
    for name in FUNCTIONS:
        for dtype, extremes in EXTREMES.items():
            cases = [case.number for case in special_cases(name, dtype)]
            found = {abs(part) for number in cases for part in (number.real, number.imag)}
            assert found.issuperset(extremes)


def test_a_part_has_the_sign_of_its_zero_unless_the_standard_leaves_it_open():
    assert is_part(0.0, 0.0, 1e-6)
    assert not is_part(-0.0, 0.0, 1e-6)
    assert is_part(-0.0, "±0", 1e-6)
    assert is_part(-INF, "±inf", 1e-6)
    assert not is_part(1.0, "±inf", 1e-6)
    assert is_part(NAN, NAN, 1e-6)
    assert not is_part(NAN, 1.0, 1e-6)
    assert not is_part(1.0, NAN, 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_power_is_no_square_root_at_the_limits(dtype):
    bases = [-INF, -0.0, 0.0, 4.0, -4.0, INF]
    expected = [INF, 0.0, 0.0, 2.0, NAN, INF]
    x = burn.asarray(bases, dtype=dtype, device="cpu")
    half = burn.asarray(0.5, dtype=dtype, device="cpu")
    for exponent in (0.5, half, half.reshape((1,)), burn.broadcast_to(half, (6,))):
        powers = burn.pow(x, exponent)
        assert powers.dtype is burn.DType.of(dtype)
        assert powers.tolist() == pytest.approx(expected, nan_ok=True)
        assert not burn.signbit(powers)[1].item()
    assert burn.pow(x[0], half).item() == INF
    rows = burn.stack([x, x]) ** burn.asarray([[0.5], [2.0]], dtype=dtype, device="cpu")
    assert rows[0].tolist() == pytest.approx(expected, nan_ok=True)
    assert rows[1].tolist() == [INF, 0.0, 0.0, 16.0, 16.0, INF]
    assert burn.pow(-1, burn.broadcast_to(half, (2,))).dtype is burn.DType.of(dtype)
