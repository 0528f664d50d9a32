"""A program that is captured returns what its function returns, call by call, whatever moves."""

import gc
import random
import sys

import numpy as np
import pytest

from burn.compiler import replay
from burn.compiler.replay import Replay

LARGE = replay._SMALL_OUTPUT_BYTES // 8 + 1
"""Elements of an output that is not copied."""


class Memory:
    """An array on a device whose work a capture can record."""

    def __init__(self, values):
        self.values = np.array(values, np.float64)


class Device:
    """A library with captures: its operations run at once, or are recorded."""

    def __init__(self):
        self.recorded = None
        self.numbers = np.zeros(4)
        self.pending = None
        self.launches = self.captures = self.copies = 0
        self.refuses = False
        self.stream = self.last_stream = 0
        self.waits = 0

    # The operations of programs.

    def apply(self, function, *operands, out=None):
        made = Memory(np.full(operands[0].values.shape, np.nan)) if out is None else out
        target, values = made.values, [operand.values for operand in operands]  # addresses alone

        def launch():
            target[...] = function(*values)

        if self.recorded is None:
            launch()
        else:
            self.recorded.append(launch)
        return made

    def add(self, x, y, out=None):
        return self.apply(np.add, x, y, out=out)

    def scaled(self, x, number, out=None):
        """A multiplication by one of the numbers of the call."""
        return self.apply(lambda values: values * self.numbers[number], x, out=out)

    # The recorder.

    def follow(self):
        if self.stream != self.last_stream:
            self.waits += 1
        self.last_stream = self.stream

    def keys(self, primitives):
        return [primitive.values.ctypes.data for primitive in primitives]

    def size(self, x):
        return x.values.nbytes

    def write(self, targets, sources):
        assert self.recorded is None
        if self.pending is not None:
            self.numbers[: len(self.pending)] = self.pending
            self.pending = None
        for target, source in zip(targets, sources, strict=True):
            self.copies += 1
            target.values[...] = source.values

    def duplicate(self, x):
        assert self.recorded is None
        return Memory(x.values)

    def is_unused(self, primitives, index):
        return sys.getrefcount(primitives[index]) == 2

    def capture(self, run, arguments):
        self.captures += 1
        self.recorded = recorded = []
        try:
            outputs = run(*arguments)
            if self.refuses:
                raise RuntimeError("an operation reads values")
        finally:
            self.recorded = None

        def launch():
            self.launches += 1
            for function in recorded:
                function()

        return launch, outputs


@pytest.fixture
def device():
    return Device()


def chain(device):
    """A program of five launches: of x and y it makes ``x + y``, and ``2 * (x + y)`` thrice."""

    def run(x, y):
        total = device.add(x, y)
        double = device.add(total, total)
        again = device.add(total, total)
        third = device.add(total, total)
        return total, device.add(double, device.add(again, third))

    return run


def test_a_program_is_captured_at_the_second_call(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y = Memory([1.0]), Memory([2.0])
    for number in range(4):
        x.values += 1.0
        total, rest = replayed(x, y)
        assert total.values == x.values + 2.0
        assert rest.values == 6.0 * total.values
        assert (device.captures, device.launches) == (min(number, 1), number)
    assert not device.copies
    assert "captured" in replayed.describe()


def test_few_launches_are_not_captured(device):
    replayed = Replay(chain(device), device, (0, 1), (), 3)
    x, y = Memory([1.0]), Memory([2.0])
    for _ in range(3):
        assert replayed(x, y)[0].values == 3.0
    assert not device.captures
    assert "few launches" in replayed.describe()


def test_an_input_that_moves_is_copied_and_others_are_not(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    weight, kept = Memory([2.0]), []
    for number in range(6):
        kept.append(Memory([float(number)]))
        assert replayed(kept[-1], weight)[0].values == number + 2.0
    assert (device.captures, device.launches) == (1, 5)
    assert device.copies == 5
    assert "1 inputs are copied" in replayed.describe()


def test_an_input_that_moves_late_is_copied_from_then_on(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y = Memory([1.0]), Memory([2.0])
    for _ in range(4):
        assert replayed(x, y)[0].values == 3.0
    y = Memory([5.0])
    for _ in range(4):
        assert replayed(x, y)[0].values == 6.0
    assert (device.captures, device.copies) == (2, 4)


def test_inputs_that_move_one_after_the_other_are_captured_a_bounded_number_of_times(device):
    def run(*inputs):
        total = inputs[0]
        for source in inputs[1:]:
            total = device.add(total, source)
        return (total,)

    replayed = Replay(run, device, range(40), (), 39)
    inputs = [Memory([float(number)]) for number in range(40)]
    for number in range(40):
        inputs[number] = Memory([2.0 * number])
        for _ in range(2):
            expected = sum([source.values[0] for source in inputs])
            assert replayed(*inputs)[0].values == expected
    assert device.captures <= replay._MAX_CHANGES + 2


def test_large_inputs_that_move_are_not_copied(device, monkeypatch):
    monkeypatch.setattr(replay, "_COPIED_BYTES_PER_LAUNCH", 100)
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    kept = []
    for _ in range(4):
        kept.append(Memory(np.ones(64)))
        assert (replayed(kept[-1], kept[0])[0].values == 2.0).all()
    assert not device.captures
    assert not device.copies
    assert "512 bytes" in replayed.describe()


def test_a_small_output_keeps_its_values(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y, kept = Memory([0.0]), Memory([2.0]), []
    for number in range(5):
        x.values[...] = number
        kept.append(replayed(x, y)[0])
    assert [item.values[0] for item in kept] == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert device.captures == 1


def test_a_large_output_keeps_its_values_as_long_as_anything_refers_to_it(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y, kept = Memory(np.zeros(LARGE)), Memory(np.ones(LARGE)), []
    for number in range(6):
        x.values[...] = number
        kept.append(replayed(x, y))
    assert [item.values[0] for item, _ in kept] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert device.captures == 2
    assert device.launches == 2  # and the rest ran as they are


def test_the_memory_of_a_large_output_is_used_again(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y = Memory(np.zeros(LARGE)), Memory(np.ones(LARGE))
    addresses = set()
    for number in range(8):
        x.values[...] = number
        last = replayed(x, y)  # the earlier result is alive until here
        assert (last[0].values == number + 1.0).all()
        if number:
            addresses.add(last[0].values.ctypes.data)
    assert len(addresses) == device.captures == 2
    assert device.launches == 7


def test_an_output_that_is_the_next_input_is_read_before_it_is_written(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y = Memory(np.zeros(LARGE)), Memory(np.ones(LARGE))
    for number in range(10):
        x = replayed(x, y)[0]
        assert (x.values == number + 1.0).all()
    assert device.launches > 4


def updates(device):
    """A program that updates x in place by y, and returns x, y as it is, and a sum."""

    def run(x, y, scale):
        del scale
        step = device.scaled(y, 0)
        for _ in range(3):
            step = device.add(step, y)
        device.add(x, step, out=x)
        return x, y, device.add(x, y)

    return run


def test_a_donated_input_is_the_output(device):
    replayed = Replay(updates(device), device, (0, 1), {0}, 6)
    x, y, expected = Memory([1.0]), Memory([1.0]), 1.0
    for number in range(5):
        device.pending = [float(number)]
        expected += number + 3.0
        out, same, total = replayed(x, y, float(number))
        assert out is x
        assert same is y
        assert x.values == expected
        assert total.values == expected + 1.0
    assert (device.captures, device.copies) == (1, 0)


def test_a_donated_input_that_moves_is_written_back(device):
    replayed = Replay(updates(device), device, (0, 1), {0}, 6)
    y, kept = Memory([1.0]), []
    for number in range(6):
        kept.append(x := Memory([10.0 * number]))
        device.pending = [1.0]
        out, _, total = replayed(x, y, 1.0)
        assert out is x
        assert x.values == 10.0 * number + 4.0
        assert total.values == x.values + 1.0
    assert device.captures == 1
    assert device.copies == 2 * device.launches
    assert [item.values[0] for item in kept] == [10.0 * number + 4.0 for number in range(6)]
    assert y.values == 1.0


def test_an_output_that_shares_its_memory_is_copied(device):
    constant = Memory(np.full(LARGE, 7.0))

    def run(x):
        for _ in range(4):
            y = device.add(x, constant)
        return y, y, constant

    replayed = Replay(run, device, (0,), (), 4)
    x, kept = Memory(np.zeros(LARGE)), []
    for number in range(4):
        x.values[...] = number
        kept.append(replayed(x))
    for number, (y, again, same) in enumerate(kept):
        assert (y.values == number + 7.0).all()
        assert (again.values == number + 7.0).all()
        assert (same.values == 7.0).all()
    assert device.launches == 3


def test_a_program_that_cannot_be_captured_runs_as_it_is(device):
    device.refuses = True
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y = Memory([1.0]), Memory([2.0])
    for _ in range(4):
        assert replayed(x, y)[0].values == 3.0
    assert (device.captures, device.launches) == (1, 0)
    assert "reads values" in replayed.describe()


def test_another_stream_waits_for_the_work_of_earlier_calls(device):
    replayed = Replay(chain(device), device, (0, 1), (), 5)
    x, y = Memory([1.0]), Memory([2.0])
    for stream in (0, 0, 1, 1, 0):
        device.stream = stream
        replayed(x, y)
    assert device.waits == 2


def test_calls_in_any_order_return_what_the_function_returns(device):
    """Inputs, references to outputs and numbers at random, against the function itself."""
    plain = Device()
    chooser = random.Random(0)
    for shape in ((3,), (LARGE,)):
        replayed = Replay(updates(device), device, (0, 1), {0}, 6)
        run = updates(plain)
        kept = []
        x, y = Memory(np.zeros(shape)), Memory(np.ones(shape))
        for _ in range(200):
            if chooser.random() < 0.2:
                x = Memory(x.values)
            if chooser.random() < 0.3:
                y = Memory(np.full(shape, chooser.random()))
            number = chooser.random()
            device.pending, plain.numbers[0] = [number], number
            expected = run(Memory(x.values), y, number)
            outputs = replayed(x, y, number)
            kept.append((outputs[2], expected[2].values))
            assert np.array_equal(x.values, expected[0].values)
            while len(kept) > chooser.randrange(1, 4):
                kept.pop(0)
            for item, values in kept:
                assert np.array_equal(item.values, values)
    assert device.launches > 100


def test_many_calls_keep_no_memory(device):
    replayed = Replay(updates(device), device, (0, 1), {0}, 6)
    x = Memory(np.zeros(LARGE))

    def some(count):
        for _ in range(count):
            device.pending = [1.0]
            replayed(x, Memory(np.ones(LARGE)), 1.0)
        gc.collect()
        return sum([type(obj) is Memory for obj in gc.get_objects()])

    assert some(20) == some(500)
