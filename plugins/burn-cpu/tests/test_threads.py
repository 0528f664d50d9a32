"""Parts of an op on several threads."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn_cpu import threads, window_blocks

CPU = burn.Device("cpu")


def test_parts_run_at_the_same_time_and_results_are_in_their_order():
    meeting = threading.Barrier(2, timeout=60)

    def work(part):
        meeting.wait()
        return part * part

    assert threads.in_parallel(work, [2, 3]) == [4, 9]
    assert threads.in_parallel(lambda part: part, list(range(20))) == list(range(20))


def test_blas_has_one_thread_meanwhile_and_as_many_as_before_afterwards():
    count = threads._blas.get
    assert count is not None, "the BLAS of NumPy should be one that can be asked"
    before = count()
    assert threads.in_parallel(lambda _: count(), [0, 1]) == [1, 1]
    assert threads.in_parallel(lambda _: threads.thread_count(), [0, 1]) == [before, before]
    assert count() == before

    def fail(part):
        raise ZeroDivisionError(part)

    with pytest.raises(ZeroDivisionError, match="0"):
        threads.in_parallel(fail, [0, 1])
    assert count() == before


def test_without_control_of_blas_there_is_one_part(monkeypatch):
    monkeypatch.setattr(threads._blas, "get", None)
    monkeypatch.setattr(threads._blas, "set", threads._nothing)
    assert threads.thread_count() == 1
    assert threads.in_parallel(lambda part: part, [0, 1]) == [0, 1]


def test_one_part_is_left_to_blas():
    before = threads.thread_count()
    assert threads.in_parallel(lambda _: threads.thread_count(), [0]) == [before]


def test_the_error_state_of_numpy_is_that_of_the_caller():
    def work(part):
        return np.geterr()["over"]

    with np.errstate(over="raise"):
        assert threads.in_parallel(work, [0, 1]) == ["raise", "raise"]


def test_an_error_in_any_part_is_raised():
    def work(part):
        if part == 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.in_parallel(work, [0, 1, 2])


def test_parts_of_a_part_wait_for_no_thread():
    def outer(part):
        return threads.in_parallel(lambda other: (part, other), [0, 1, 2])

    found = threads.in_parallel(outer, list(range(50)))
    assert found == [[(part, other) for other in range(3)] for part in range(50)]
    assert not threads._in_part.get()


SHAPES = [
    ((5, 3, 7, 6), (4, 3, 3, 3), 1),
    ((1, 3, 9, 6), (4, 3, 3, 3), 1),
    ((2, 24, 5, 5), (24, 24, 3, 3), 1),
    ((3, 12, 6, 6), (2, 12, 3, 3), 1),
    ((4, 4, 7, 6), (4, 2, 3, 3), 2),
    ((1, 3, 9, 6), (4, 3, 1, 1), 1),
    ((0, 4, 7, 6), (4, 4, 3, 3), 1),
]


@pytest.mark.parametrize(("shape", "weight", "groups"), SHAPES)
@pytest.mark.parametrize("count", [2, 3, 16])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_is_the_same_in_any_number_of_parts(
    shape, weight, groups, count, stride, monkeypatch
):
    generator = np.random.default_rng(0)
    device = CPU.autodiff()
    operands = [
        burn.asarray(generator.normal(size=item), device=device).require_grad()
        for item in (shape, weight, weight[0])
    ]

    def results():
        window_blocks.layout.cache_clear()
        output = F.conv2d(*operands, stride=stride, padding=1, groups=groups)
        gradients = (output * output).sum().backward()
        found = [output.inner(), *[operand.grad(gradients) for operand in operands]]
        return [tensor.numpy() for tensor in found]

    expected = results()
    monkeypatch.setattr(window_blocks, "_MIN_NS_FOR_THREADS", 0.0)
    monkeypatch.setattr(window_blocks, "thread_count", lambda: count)
    for actual, item in zip(results(), expected, strict=True):
        np.testing.assert_allclose(actual, item, rtol=1e-12, atol=1e-12)


FORKED = """
import os, burn
from burn.nn import functional as F
x = burn.ones((8, 32, 24, 24), device="cpu")
weight = burn.ones((32, 32, 3, 3), device="cpu")
expected = F.conv2d(x, weight).sum().item()
child = os.fork()
if not child:
    os._exit(F.conv2d(x, weight).sum().item() != expected)
raise SystemExit(os.waitpid(child, 0)[1])
"""


def test_a_forked_process_has_threads_of_its_own():
    # Later Pythons warn of a fork while there are threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED]
    subprocess.run(command, check=True, timeout=120)
