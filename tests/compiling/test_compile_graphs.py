"""Random programs that hypothesis draws: compiled, they give what they give eagerly.

A program is a list of steps, each an operation on values that earlier steps made: elementwise ones
with broadcasting, views, reductions, rows, products, choices and writes. Values stay near 1, so
that errors of rounding do not grow, and are float64. ``--hypothesis-profile=explore`` draws many
more.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import burn
from burn.nn import functional as F

DEVICES = ["cpu", "torch/cpu", "opencl"]
LENGTHS = (1, 2, 3, 5)
MAX_STEPS = 200


def bounded(x):
    """Values of any size, in (-1.5, 1.5)."""
    return burn.tanh(x) * 1.5


def broadcast(x, y):
    """A shape that both operands have with axes of length 1 before, or None."""
    try:
        return np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return None


def joined(function):
    """An operation of two values, of the first alone where their shapes do not fit."""

    def apply(x, y, number):
        del number
        y = y if broadcast(x, y) is not None else x
        return function(x, y)

    return apply


def alone(function):
    def apply(x, y, number):
        del y, number
        return function(x)

    return apply


def of_axis(function):
    """An operation along an axis, of a value that has one."""

    def apply(x, y, number):
        del y
        return function(x, number % x.ndim) if x.ndim else x * 0.5

    return apply


def reshaped(x, y, number):
    del y
    return x.reshape((-1,)) if number % 2 else x.reshape((*x.shape[::-1],))


def permuted(x, y, number):
    del y
    axes = list(range(x.ndim))
    return x.permute_dims(tuple(axes[number % (x.ndim or 1) :] + axes[: number % (x.ndim or 1)]))


def sliced(x, axis):
    key = [slice(None)] * x.ndim
    key[axis] = slice(None, None, -1) if x.shape[axis] < 3 else slice(1, None, 2)
    return x[tuple(key)]


def written(x, axis):
    result = burn.asarray(x, copy=True)
    key = [slice(None)] * x.ndim
    key[axis] = slice(0, 1)
    result[tuple(key)] = 0.25
    return result


def product(x, y, number):
    del number
    if x.ndim < 1 or y.ndim < 1 or x.shape[-1] != y.shape[-1 if y.ndim == 1 else -2]:
        return x * 0.75
    return bounded(x @ y) if x.ndim < 3 and y.ndim < 3 else x * 0.75


STEPS = {
    "add": joined(lambda x, y: (x + y) * 0.5),
    "subtract": joined(lambda x, y: (x - y) * 0.5),
    "multiply": joined(lambda x, y: x * y * 0.5),
    "divide": joined(lambda x, y: x / (y * y + 1.0)),
    "maximum": joined(burn.maximum),
    "minimum": joined(burn.minimum),
    "where": joined(lambda x, y: burn.where(x < y, x + 0.0 * y, y * 0.5 + 0.0 * x)),
    "compare": joined(lambda x, y: burn.astype(x <= y, x.dtype)),
    "remainder": joined(lambda x, y: burn.remainder(x + 0.013, y * y + 1.0)),
    "exp": alone(lambda x: burn.exp(-burn.abs(x))),
    "tanh": alone(bounded),
    "log1p": alone(lambda x: burn.log1p(x * x)),
    "sqrt": alone(lambda x: burn.sqrt(burn.abs(x) + 0.5)),
    "gelu": alone(F.gelu),
    "sigmoid": alone(F.sigmoid),
    "integers": alone(
        lambda x: burn.astype(burn.astype(x * 8.0 + 0.013, burn.int64) // 3, x.dtype) * 0.25
    ),
    "single": alone(lambda x: burn.astype(burn.astype(x, burn.float32), x.dtype)),
    "sum": of_axis(lambda x, axis: bounded(x.sum(axis=axis))),
    "mean": of_axis(lambda x, axis: x.mean(axis=axis, keepdims=True)),
    "max": of_axis(lambda x, axis: x.max(axis=axis)),
    "total": alone(lambda x: x.mean()),
    "softmax": of_axis(lambda x, axis: F.softmax(x, axis=axis)),
    "cumulative": of_axis(lambda x, axis: bounded(burn.cumulative_sum(x, axis=axis))),
    "flip": of_axis(lambda x, axis: burn.flip(x, axis=axis)),
    "slice": of_axis(sliced),
    "write": of_axis(written),
    "expand": of_axis(lambda x, axis: burn.expand_dims(x, axis=axis) if x.ndim < 4 else x),
    "concat": of_axis(lambda x, axis: burn.concat([x, x * 0.5], axis=axis) if x.size < 64 else x),
    "reshape": reshaped,
    "permute": permuted,
    "product": product,
}

operands = st.lists(
    st.lists(st.sampled_from(LENGTHS), max_size=3).map(tuple), min_size=1, max_size=4
)
numbers = st.integers(0, 1 << 16)
steps = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), numbers, numbers, numbers),
    min_size=1,
    max_size=MAX_STEPS,
)


def program(description, results):
    """The function that a description says; it returns its last values, some of them shared."""

    def run(*values):
        values = list(values)
        for name, first, second, number in description:
            # Half of the operands are among the last values: chains, and not only shared values.
            recent = values[-3:] if first % 2 else values
            values.append(
                STEPS[name](recent[first % len(recent)], values[second % len(values)], number)
            )
        return values[-results:]

    return run


def arrays(shapes):
    generator = np.random.default_rng(len(shapes))
    return [generator.uniform(-1.5, 1.5, shape) for shape in shapes]


@pytest.mark.parametrize("device", DEVICES)
@given(shapes=operands, description=steps, results=st.integers(1, 8))
def test_a_compiled_program_gives_what_it_gives_eagerly(device, shapes, description, results):
    values = [burn.asarray(array, device=device) for array in arrays(shapes)]
    function = program(description, results)
    compiled = burn.compile(function)
    expected = function(*values)
    for _ in range(2):
        for found, tensor in zip(compiled(*values), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), tensor.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("device", DEVICES)
@given(shapes=operands, description=steps)
def test_a_compiled_program_has_the_eager_gradients(device, shapes, description):
    device = burn.Device(device).autodiff()
    function = program([item for item in description[:40] if item[0] != "remainder"], 3)

    def gradients(*values):
        leaves = [value.require_grad() for value in values]
        found = sum([burn.sum(item) for item in function(*leaves)], leaves[0].sum()).backward()
        return [leaf.grad(found) for leaf in leaves]

    values = [burn.asarray(array, device=device) for array in arrays(shapes)]
    compiled = burn.compile(gradients)
    expected = gradients(*values)
    for _ in range(2):
        for found, tensor in zip(compiled(*values), expected, strict=True):
            assert (found is None) is (tensor is None)
            if tensor is not None:
                np.testing.assert_allclose(found.numpy(), tensor.numpy(), rtol=1e-8, atol=1e-10)
