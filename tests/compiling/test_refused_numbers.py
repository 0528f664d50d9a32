"""What an op refuses raises before anything runs: eager, compiled and on a router alike."""

import numpy as np
import pytest

import burn
from burn.ir import RuntimeNumber
from burn.ops import REGISTRY, Meta

DEVICES = burn.Device.enumerate()


class State:
    """Tensors that a compiled step rebinds, as the parameters of a training step."""

    def __init__(self, device):
        self.x = burn.arange(4096, dtype=burn.float32, device=device)
        self.weight = burn.ones(4096, device=device)
        self.count = burn.asarray(np.full(64, 3, np.int32), device=device)

    def values(self):
        return [part.numpy().copy() for part in (self.x, self.weight, self.count)]


def unchanged(state, before):
    return all(map(np.array_equal, state.values(), before))


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", ["pow", "bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("length", [64, 0])
def test_a_number_that_an_op_refuses_leaves_the_state_of_a_compiled_step(name, device, length):
    state, function = State(device), getattr(burn, name)

    @burn.compile
    def step(number):
        state.x += 1.0
        state.count += 1
        return function(state.count[:length], number)

    for number in (2, 3, 2):
        step(number)
    before = state.values()
    for call in (step, lambda number: function(state.count[:length], number)):
        with pytest.raises(burn.ArgumentError, match=name):
            call(-1)
    assert unchanged(state, before)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_number_of_a_run_that_an_op_refuses_leaves_the_state(device):
    state = State(device)

    @burn.compile
    def step(rate):
        state.x += 1.0
        gradient = burn.ones_like(state.weight)
        velocity = burn.zeros_like(state.weight)
        new, _ = burn.optim.sgd_step(state.weight, gradient, velocity, learning_rate=rate)
        state.weight[...] = new
        return burn.sum(new)

    for rate in (0.5, 0.25, 0.5):
        step(RuntimeNumber(rate))
    assert step.programs == 1
    before = state.values()
    for rate in (float("nan"), float("inf")):
        with pytest.raises(burn.ArgumentError, match=r"sgd_step.*learning_rate"):
            step(RuntimeNumber(rate))
    assert unchanged(state, before)
    step(RuntimeNumber(0.5))
    assert not unchanged(state, before)


def test_a_router_refuses_a_number_that_it_has_not_seen_before():
    x = burn.asarray(np.full(4, 3, np.int32), device="router/cpu")
    assert (x**2).tolist() == [9] * 4
    with pytest.raises(burn.ArgumentError, match="an integer to the power -1"):
        x**-1
    assert (x.astype("float32") ** -1).tolist() == pytest.approx([1 / 3] * 4)


def test_no_rule_depends_on_the_value_of_a_number_but_by_its_requirement():
    """So that what tables keep of a call, without the values of numbers, holds for others."""
    for name, op in REGISTRY.items():
        specs = list(op.operands.values())
        if len(specs) != 2 or not specs[1].scalar or op.attributes:
            continue
        for dtype in burn.DType.members():
            if not all(dtype.kind in spec.kinds for spec in specs):
                continue
            x = Meta((2, 3), dtype)
            number = float if dtype.is_float or dtype.is_complex else int
            outcomes = set()
            for value in (-7, -1, 0, 1, 9):
                if dtype.is_bool and value not in (0, 1):
                    continue
                try:
                    op.check_numbers([x, number(value)])
                except burn.ArgumentError:
                    assert op.requires_numbers is not None
                    continue
                outcomes.add(str(op.rule(x, number(value))))
            assert len(outcomes) == 1, (name, dtype)
