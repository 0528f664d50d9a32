"""Runtime numbers go where ops take numbers that differ; any other use is an error."""

import math
import operator

import pytest

import burn
from burn.ir import RuntimeNumber, ScalarIr, trace

SCALAR = ScalarIr(2, int)


@pytest.mark.parametrize(
    "use",
    [
        *[
            lambda r, f=function: f(r)
            for function in (
                operator.neg, operator.pos, abs, round, bool, int, float, operator.index,
                math.ceil, math.floor, math.trunc,
            )
        ],
        *[
            lambda r, f=function, x=first, y=second: f(r if x is None else x, r if y is None else y)
            for function in (
                operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
                operator.pow, operator.lt, operator.le, operator.gt, operator.ge, operator.eq,
                operator.ne,
            )
            for first, second in ((None, 1), (1, None), (None, 0.5), (0.5, None))
        ],
        lambda r: r + 0.5,
        lambda r: 0.5 + r,
        lambda r: r + True,
        lambda r: r + r,
        lambda r: r + burn.ones(2, device="cpu"),
        lambda r: burn.ones(2, device="cpu") + r,
    ],
)  # fmt: skip
def test_what_needs_the_value_is_an_error(use):
    with pytest.raises(burn.OperandTypeError, match="a runtime number has no value"):
        use(SCALAR)


def test_an_integer_can_be_added():
    assert SCALAR + 3 == 3 + SCALAR == ScalarIr(2, int, 3)
    assert SCALAR + 3 + -3 == SCALAR
    assert hash(SCALAR + 0) == hash(SCALAR)
    assert SCALAR != SCALAR + 1
    assert ScalarIr(2, float) != SCALAR
    assert SCALAR != "2"


def test_a_step_may_count_from_another_number():
    x, zeros = burn.asarray([1.0, 2.0], device="cpu"), burn.zeros(2, device="cpu")

    def step(x, m, v, count):
        return burn.optim.adam_step(x, x, m, v, step=1 + count, learning_rate=0.1)

    program = trace(step, x, zeros, zeros, RuntimeNumber(5))
    for count in (0, 7):
        for got, expected in zip(
            program(x, zeros, zeros, count), step(x, zeros, zeros, count), strict=True
        ):
            assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("function", [trace, burn.eval_shape])
def test_a_function_that_returns_one_is_refused(function):
    x = burn.ones(2, device="cpu")
    with pytest.raises(burn.TraceError, match="returns a runtime number"):
        function(lambda x, count: {"x": x, "count": count + 1}, x, RuntimeNumber(1))
