"""Random programs of 50 operations in eager mode: their values and gradients are NumPy's.

They mix arithmetic with views, views of views and writes in place, which tensors that share
elements show. NumPy runs each program with complex numbers: a small imaginary part of one input
gives the derivative by it, as all operations are analytic.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import burn

OPERATIONS = 50
LENGTH = 12
SHAPES = [(12,), (3, 4), (2, 6), (2, 2, 3)]
STEP = 1e-30
RECENT = 8
"""Operands are among so many of the last results."""

KEYS = [
    (slice(None, None, 2),),
    (Ellipsis, slice(1, None)),
    (Ellipsis, slice(None, None, -1)),
    (slice(1, None), Ellipsis, slice(0, 1)),
    (0,),
    (Ellipsis, -1),
]


def key_of(shape, number):
    """A key of a shape that picks some elements, and leaves an axis."""
    key = KEYS[number % len(KEYS)]
    if len(shape) == 1 and (len(key) == 3 or any(isinstance(item, int) for item in key)):
        key = KEYS[0]
    return key if np.zeros(shape)[key].size else (Ellipsis,)


def fitted(y, shape):
    """A value for a shape: the elements of another one, or their mean."""
    size, wanted = np.prod(y.shape, dtype=int), np.prod(shape, dtype=int)
    return y.reshape(shape) if size == wanted else y.sum() * (1.0 / size)


COMPUTED = {
    "mean": lambda x, y: x * 0.5 + fitted(y, x.shape) * 0.5,
    "product": lambda x, y: x * fitted(y, x.shape),
    "sum": lambda x, _: x.sum() * 0.125 - x,
    "negative": lambda x, _: -x,
}


def multiply(x, y, _):
    x *= fitted(y, x.shape)


def write(x, y, number):
    key = key_of(x.shape, number)
    x[key] = fitted(y, np.zeros(x.shape)[key].shape) * 0.5


def write_number(x, _, number):
    x[key_of(x.shape, number)] = 0.25


WRITES = {"multiply": multiply, "write": write, "write number": write_number}
VIEWS = ("reshape", "slice", "transpose")
NAMES = (*COMPUTED, *WRITES, *VIEWS)


def run(x, instructions, transpose, dense):
    """All results of a program, of arrays of NumPy or tensors.

    ``dense(x)`` is in row-major order in NumPy, which copies others where burn views them.
    """
    results, are_dense = [dense(x * 1.0)], [True]
    for name, i, j, number in instructions:
        index = -1 - i % min(len(results), RECENT)
        one, other = results[index], results[-1 - j % min(len(results), RECENT)]
        if name in WRITES:
            WRITES[name](one, other, number)
            continue
        if name in COMPUTED:
            result = dense(COMPUTED[name](one, other))
        elif name == "transpose":
            result = transpose(one)
        elif name == "reshape" and are_dense[index] and np.prod(one.shape) == LENGTH:
            result = one.reshape(SHAPES[number % len(SHAPES)])
        else:
            result = one[key_of(one.shape, number)]
        results.append(result)
        is_reshaped = name == "reshape" and result.shape in SHAPES and are_dense[index]
        are_dense.append(name in COMPUTED or is_reshaped)
    return results


def total(results):
    """A sum in which all results count."""
    found = 0.0
    for number, result in enumerate(results):
        found = found + result.sum() * (0.5 + number % 3)
    return found


programs = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 7), st.integers(0, 7), st.integers(0, 5)),
    min_size=OPERATIONS,
    max_size=OPERATIONS,
)


def by_numpy(values, instructions):
    """The results of a program, and the gradient of their sum."""

    def results_of(x):
        return run(x, instructions, np.transpose, np.ascontiguousarray)

    gradient = []
    for index in range(LENGTH):
        x = values.astype(np.complex128)
        x[index] += 1j * STEP
        gradient.append(total(results_of(x)).imag / STEP)
    return [result.real for result in results_of(values.astype(np.complex128))], np.array(gradient)


def run_of_tensors(x, instructions):
    def transpose(one):
        return one.permute_dims(tuple(range(one.ndim))[::-1])

    return run(x, instructions, transpose, lambda item: item)


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
@given(instructions=programs, seed=st.integers(0, 1000))
def test_programs_with_views_and_writes_have_the_values_and_gradients_of_numpy(
    device, instructions, seed
):
    values = np.random.default_rng(seed).uniform(-1.0, 1.0, LENGTH).astype(np.float32)
    expected, slopes = by_numpy(values, instructions)
    x = burn.asarray(values, device=device.autodiff()).require_grad()
    found = run_of_tensors(x, instructions)
    for item, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(item.detach().numpy(), other, rtol=1e-4, atol=1e-5)
    gradient = x.grad(total(found).backward())
    scale = max(1.0, np.abs(slopes).max())
    np.testing.assert_allclose(gradient.numpy() / scale, slopes / scale, atol=1e-4)
    plain = run_of_tensors(burn.asarray(values, device=device), instructions)
    for tensor, other in zip(plain, expected, strict=True):
        np.testing.assert_allclose(tensor.numpy(), other, rtol=1e-4, atol=1e-5)
