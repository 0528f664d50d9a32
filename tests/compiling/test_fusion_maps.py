"""Index maps of views and broadcasts, and the block of memory, on what hypothesis draws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from burn.compiler.fusion_maps import (
    broadcast_map,
    composed,
    cuts,
    has_strides,
    identity,
    inverse,
    reduction_map,
    strides,
    view_map,
    without_repeats,
    zeros,
)
from burn.compiler.memory import _Free

shapes = st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=3).map(tuple)
choices = st.lists(
    st.tuples(
        st.sampled_from(["reshape", "permute", "expand", "slice", "flip", "unfold"]), st.randoms()
    ),
    max_size=5,
)


def values(map, count):
    """What a map gives for each number below a count."""
    rest = np.arange(count)
    total = np.full(count, map.offset)
    for length, stride in reversed(map.digits):
        total += rest % length * stride
        rest //= length
    return total


def attributes_of(name, x, random):
    """Attributes of a view op for an array, and NumPy's view."""
    if name == "reshape":
        divisors = [index for index in range(1, x.size + 1) if x.size % index == 0]
        first = random.choice(divisors)
        shape = (first, x.size // first)
        return {"shape": shape}, x.reshape(shape)
    if name == "permute":
        axes = random.sample(range(x.ndim), x.ndim)
        return {"axes": tuple(axes)}, x.transpose(axes)
    if name == "expand":
        shape = (2, *[3 if length == 1 else length for length in x.shape])
        return {"shape": shape}, np.broadcast_to(x, shape)
    axis = random.randrange(x.ndim)
    if name == "flip":
        return {"axes": (axis,)}, np.flip(x, axis)
    if name == "unfold":
        width = random.randint(1, x.shape[axis])
        windows = np.lib.stride_tricks.sliding_window_view(x, width, axis)
        windows = windows[(slice(None),) * axis + (slice(None, None, 2),)]
        return {"axis": axis, "size": width, "step": 2}, windows
    slices, key = [], []
    for length in x.shape:
        step = random.choice([1, 2, -1])
        start = random.randrange(length)
        count = random.randint(1, -(-(length - start) // 2) if step > 0 else start + 1)
        slices.append((start, count, step))
        key.append(np.arange(start, start + count * step, step))
    return {"slices": tuple(slices)}, x[np.ix_(*key)]


@given(shape=shapes, chosen=choices)
def test_a_map_of_views_gives_the_elements_of_the_view(shape, chosen):
    x = np.arange(int(np.prod(shape))).reshape(shape)
    map = identity(x.size)
    for name, random in chosen:
        if (x.ndim == 0 and name not in {"reshape", "expand"}) or x.size > 2000:
            continue
        attributes, view = attributes_of(name, x, random)
        of_view = view_map(name, attributes, x.shape)
        np.testing.assert_array_equal(x.reshape(-1)[values(of_view, view.size)], view.reshape(-1))
        whole = composed(map, of_view)
        if whole is None:  # it has no digits: what follows is a view of a copy
            x, map = np.arange(view.size).reshape(view.shape), identity(view.size)
            continue
        np.testing.assert_array_equal(values(whole, view.size), view.reshape(-1))
        back = inverse(whole)
        assert (back is not None) >= (name in {"reshape", "permute"} and inverse(map) is not None)
        if back is not None:
            np.testing.assert_array_equal(
                values(whole, view.size)[values(back, view.size)], np.arange(view.size)
            )
        x, map = view, whole
    spans = [(length, begin) for length, begin in digits_of(map, x.size)]
    steps = strides(map, spans)
    index = np.full([length for length, _ in spans], map.offset)
    for axis, step in enumerate(steps):
        index += (
            np.arange(spans[axis][0]).reshape([-1 if i == axis else 1 for i in range(len(spans))])
            * step
        )
    np.testing.assert_array_equal(index.reshape(-1), values(map, x.size))
    assert np.unique(values(without_repeats(map), x.size // repeats(map))).size == np.unique(x).size


def digits_of(map, count):
    found = sorted({1, count, *cuts(map)})
    return [(high // low, low) for low, high in itertools.pairwise(found)][::-1]


def repeats(map):
    return int(np.prod([high // low for low, high in zeros(map)]))


def test_views_without_digits_have_no_map():
    rows = view_map("slice", {"slices": ((0, 6, 1), (0, 5, 1))}, (6, 8))
    odd = view_map("slice", {"slices": ((0, 10, 1), (0, 2, 1))}, (10, 3))
    assert composed(identity(48), rows) is not None
    assert composed(rows, odd) is None


def test_a_view_with_one_stride_for_each_axis():
    map = view_map("permute", {"axes": (1, 0)}, (4, 6))
    assert has_strides(map, (6, 4))
    assert not has_strides(map, (24,))


def test_broadcasts_and_reductions_repeat():
    assert zeros(broadcast_map((3, 1), (2, 3, 4))) == ((1, 4), (12, 24))
    np.testing.assert_array_equal(
        values(reduction_map((2, 3, 4), (0, 2)), 24), np.indices((2, 3, 4))[1].reshape(-1)
    )


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5)), max_size=60))
def test_parts_of_a_block_do_not_overlap_and_join_again(requests):
    free = _Free()
    taken = []
    most = 0
    for count, age in requests:
        taken.append(free.take(count))
        start, length = taken[-1]
        assert length == count
        assert start + length <= free.size
        for other, size in taken[:-1]:
            assert other + size <= start or start + length <= other
        most = max(most, sum(size for _, size in taken))
        while len(taken) > age:
            free.give(*taken.pop(0))
    for part in taken:
        free.give(*part)
    assert free.size >= most
    assert free.take(free.size) == (0, free.size)


def test_a_map_of_one_element_is_constant():
    assert identity(1).digits == ()
    assert composed(identity(1), identity(1)) == identity(1)
    assert pytest.approx(values(identity(1), 1)) == [0]
