"""The work of a first call grows with the size of the program, and no faster.

Nothing is timed: the lines that run are counted, of each function alone. So a loop that is
quadratic in the number of operations, inputs or outputs shows in its own function, long before it
takes a large part of the time.
"""

import collections
import sys

import pytest

import burn
from burn import nn, optim
from burn.compiler import Executable

DEVICES = ["cpu", "opencl", "torch/cpu"]
SIZES = 8, 64
FACTOR = SIZES[1] // SIZES[0]


class Compiled(BaseException):
    """A program is compiled, and is to run."""


def chain(size, device):
    """Elementwise operations, reductions, views and products, one after the other."""

    def function(x):
        first = y = x
        for index in range(size):
            y = burn.tanh(y) + first
            if index % 4 == 0:
                first = y = burn.flip(y - y.sum(axis=0), axis=0) @ x
        return y

    return function, [burn.ones((4, 4), device=device)]


def outputs(size, device):
    """Inputs that are donated, and as many outputs."""

    def function(*xs):
        return [burn.tanh(x) @ x for x in xs]

    return function, [burn.ones((4, 4), device=device) for _ in range(size)]


def training(size, device):
    """A step of a network of many layers: what is saved lives long."""
    layers = [nn.Linear(4, 4, bias=False) for _ in range(size // 4)]
    net = nn.Sequential(*layers).to(device.autodiff())
    optimizer = optim.SGD(net, learning_rate=0.1, momentum=0.9)

    def function(x):
        loss = burn.tanh(net(x)).sum()
        optimizer.step(loss.backward())
        return loss

    return function, [burn.ones((2, 4), device=device)]


def work(function, arguments):
    """Lines that run of each function until the program is compiled, and characters of kernels."""
    lines = collections.Counter()
    code = []

    def of_line(frame, event, _):
        if event == "line":
            lines[frame.f_code] += 1
        return of_line

    def stop(executable):
        code.append(sum(map(len, executable.kernels.values())))
        raise Compiled

    step = burn.compile(function, donate=range(len(arguments)))
    before = sys.gettrace()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Executable, "function", property(stop))
        sys.settrace(of_line)
        try:
            step(*arguments)
        except Compiled:
            pass
        finally:
            sys.settrace(before)
    return lines, code[0]


@pytest.mark.parametrize("program", [chain, outputs, training], ids=lambda item: item.__name__)
@pytest.mark.parametrize("name", DEVICES)
def test_work_grows_with_the_size_of_a_program(name, program, monkeypatch):
    if name == "opencl":  # what a driver compiles is its own
        generated = pytest.importorskip("burn_opencl.generated")
        monkeypatch.setattr(generated.GeneratedOps, "load_kernel", lambda *_: lambda *_: None)
    device = burn.Device(name)
    work(*program(SIZES[0], device))  # imports
    (small, small_code), (large, large_code) = [work(*program(item, device)) for item in SIZES]
    steep = {
        f"{code.co_filename}:{code.co_firstlineno} {code.co_name}": (small[code], count)
        for code, count in large.items()
        if small[code] and count > 2 * FACTOR * small[code] + 200
    }
    assert not steep
    assert sum(large.values()) <= 1.2 * FACTOR * sum(small.values())
    assert large_code <= 1.2 * FACTOR * small_code
