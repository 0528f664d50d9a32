"""Steps of optimizers overwrite parameters and states, unless something else uses their memory."""

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.plugin_api import float32, step_formula
from burn_opencl.dialect import OpenClDialect
from burn_opencl.icd_loader import found_devices

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)


def network():
    device = burn.Device("opencl").autodiff()
    device.seed(0)
    return nn.Sequential(nn.Linear(3, 40), nn.Tanh(), nn.Linear(40, 3)).to(device)


def loss_of(net):
    return (net(burn.ones((2, 3), device="opencl")) ** 2).sum()


def memories(net, optimizer):
    tensors = [x.inner() for x in net.parameters()]
    tensors += [x for slot in optimizer._slots for x in slot.states]
    return [x.primitive.memory.handle.int_ptr for x in tensors]


@pytest.mark.parametrize("make", [optim.Adam, lambda net: optim.SGD(net, 0.01, momentum=0.9)])
def test_steps_overwrite_parameters_and_states(make):
    net = network()
    optimizer = make(net)
    for _ in range(2):
        optimizer.step(loss_of(net).backward())
    before = memories(net, optimizer)
    optimizer.step(loss_of(net).backward())
    assert memories(net, optimizer) == before


def test_a_donated_argument_gives_its_memory_to_a_result():
    step = burn.compile(lambda x, state: state * 2.0 + x, donate="state")
    x, state = burn.ones(1000, device="opencl"), burn.ones(1000, device="opencl")
    state = step(x, state)
    address = state.primitive.memory.handle.int_ptr
    for _ in range(3):
        state = step(x, state)
        assert state.primitive.memory.handle.int_ptr == address


def test_what_else_refers_to_a_parameter_keeps_its_value():
    net = network()
    optimizer = optim.Adam(net)
    for _ in range(2):
        optimizer.step(loss_of(net).backward())
    weight = net[0].weight
    tensor, part = weight.detach(), weight.detach()[1:]
    kept = tensor.numpy().copy()
    optimizer.step(loss_of(net).backward())
    assert not np.array_equal(weight.detach().numpy(), kept)
    np.testing.assert_array_equal(tensor.numpy(), kept)
    np.testing.assert_array_equal(part.numpy(), kept[1:])


def adam(lanes, *, is_cpu):
    """The kernel of Adam for up to three parameters."""
    numbers = {"step": 1, "learning_rate": 0.1, "weight_decay": 0.0, "epsilon": 1e-8}
    numbers |= {"beta1": 0.9, "beta2": 0.99, "decoupled": False}
    formula = step_formula("adam_step", [[0]] * 4 + [[]], numbers)
    return OpenClDialect(lanes, has_fp64=True, is_cpu=is_cpu).step(formula, float32, 3)


def test_a_loop_over_memory_that_is_overwritten_is_made_of_vectors():
    # Without a word the compiler of PoCL cannot know: Adam took four times as long.
    lines = [line.strip() for line in adam(1, is_cpu=True).text.split("\n")]
    loop = next(index for index, line in enumerate(lines) if "= first;" in line)
    assert lines[loop - 1] == "#pragma clang loop vectorize(assume_safety)"


def test_the_kernel_for_a_gpu_is_compiled_by_every_device():
    device = burn.Device("opencl")
    code = adam(64, is_cpu=False)
    programs = device.backend.for_device(device.id).launcher.programs
    assert programs.generated(code.text, code.entry).num_args == 1 + 7 * 3
