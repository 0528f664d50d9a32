"""Steps wait for those that make what they read and that read what they overwrite."""

import pytest

from burn.plugin_api import (
    GraphIr,
    Kernel,
    KernelCall,
    OperationIr,
    Plan,
    Target,
    TensorIr,
    float32,
    planned,
)
from burn_cuda.lanes import Lanes, dependencies, made_bytes


def tensor(id, *shape):
    return TensorIr(id, shape or (4,), float32)


def call(name, inputs, output, **attributes):
    return OperationIr(name, tuple(map(tensor, inputs)), attributes, (tensor(output),))


def kernel(inputs, outputs, over=()):
    code = Kernel((4,), 1, (), (), (), (), ())
    reads, makes = tuple(map(tensor, inputs)), tuple(map(tensor, outputs))
    return KernelCall(code, reads, (), makes, over or (None,) * len(outputs), ())


def plan(*steps):
    return Plan(GraphIr((tensor(0), tensor(1)), (), (), ()), steps, {}, {})


def test_a_step_waits_for_what_makes_its_operands():
    found = dependencies(
        plan(kernel([0], [2]), kernel([0, 1], [3]), kernel([2, 3], [4, 5]), kernel([5], [6]))
    )
    assert found == [(), (), (0, 1), (2,)]


def test_a_view_is_a_step_as_it_may_copy():
    found = dependencies(
        plan(
            call("matmul", [0, 1], 2),
            call("permute", [2], 3, axes=(0,)),
            call("reshape", [3], 4, shape=(4,)),
            call("exp", [4], 5),
        )
    )
    assert found == [(), (0,), (0, 1), (0, 2)]


def test_a_step_that_overwrites_waits_for_all_that_read():
    found = dependencies(
        plan(
            call("exp", [0], 2),
            call("permute", [0], 3, axes=(0,)),
            call("exp", [3], 4),
            kernel([1, 0], [5], over=(1,)),
            call("exp", [5], 6),
            kernel([5], [7], over=(0,)),
        )
    )
    assert found == [(), (), (1,), (0, 1, 2), (3,), (3, 4)]


def test_the_bytes_that_steps_make_are_those_of_no_view():
    assert made_bytes(plan(kernel([0], [2]), call("permute", [2], 3, axes=(0,)))) == 16


class Stream:
    """A stream that notes what it waits for."""

    def __init__(self, runtime):
        self.runtime = runtime
        self.waits = []

    def __enter__(self):
        self.runtime.current = self

    def __exit__(self, *_):
        self.runtime.current = self.runtime.first

    def wait_event(self, event):
        self.waits.append(event)


class Runtime:
    """Streams and events."""

    def __init__(self):
        self.first = self.current = Stream(self)
        self.events = 0

    def stream(self):
        return self.current

    def other_streams(self, count):
        return [Stream(self) for _ in range(count)]

    def record(self):
        self.events += 1
        return self.events, self.current


def test_steps_that_follow_each_other_have_one_lane_and_independent_ones_have_others():
    runtime = Runtime()
    waits = [(), (0,), (0,), (1,), (2, 3)]
    lanes = Lanes(runtime, waits)
    where = [lanes.run(index, lambda: runtime.current) for index in range(5)]
    first, second = where[0], where[2]
    assert where == [first, first, second, first, first]
    assert first is runtime.first
    assert second is not first
    start, made = second.waits
    assert start == (1, first)  # what forks the lane
    assert made == (2, first)  # step 0
    assert first.waits == [(4, second)]  # step 4 waits for step 2
    lanes.join()
    assert first.waits[-1] == (4, second)


def test_what_steps_make_lives_as_long_as_the_lanes():
    lanes = Lanes(Runtime(), [(), ()])
    made = [lanes.run(0, object), lanes.run(1, object)]
    assert lanes._made == made


@pytest.mark.parametrize("makes_own", [False, True])
def test_a_kernel_overwrites_the_result_of_a_call_only_where_it_is_its_own(makes_own):
    graph = GraphIr.from_text("""
        input %0: float32[4, 4]
        %1: float32[4, 4] = matmul(%0, %0)
        %2: float32[4, 4] = exp(%1)
        %3: float32[4, 4] = matmul(%2, %2)
        output %3
    """)
    target = Target(frozenset([float32]), lambda _: False, makes_own=lambda _: makes_own)
    (kernel,) = [step for step in planned(graph, target).steps if isinstance(step, KernelCall)]
    assert kernel.over == ((0,) if makes_own else (None,))
