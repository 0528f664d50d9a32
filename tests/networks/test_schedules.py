"""Schedules: the numbers of torch.optim.lr_scheduler, and functions that can be combined."""

import math
import pickle
import warnings

import pytest
import torch

import burn
from burn.optim import schedules as rates

STEPS = 60


def theirs(make, start=1.0):
    """The learning rates of a scheduler of torch, from the first step on."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SequentialLR calls what it says is deprecated
        scheduler = make(optimizer)
        found = []
        for _ in range(STEPS):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    return found


torch_rates = torch.optim.lr_scheduler

PAIRS = {
    "constant": (rates.constant(0.3), lambda o: torch_rates.LambdaLR(o, lambda _: 0.3)),
    "linear": (
        rates.linear(0.25, 0.75, 13),
        lambda o: torch_rates.LinearLR(o, 0.25, 0.75, total_iters=13),
    ),
    "exponential": (rates.exponential(1.0, 0.9), lambda o: torch_rates.ExponentialLR(o, 0.9)),
    "step": (rates.step_decay(1.0, 7, gamma=0.5), lambda o: torch_rates.StepLR(o, 7, 0.5)),
    "cosine": (
        rates.cosine(1.0, STEPS, end=0.125),
        lambda o: torch_rates.CosineAnnealingLR(o, STEPS, 0.125),
    ),
    "piecewise": (
        rates.piecewise([1.0, 0.5, 0.25], [5, 20]),
        lambda o: torch_rates.MultiStepLR(o, [5, 25], 0.5),
    ),
    "one cycle": (
        rates.one_cycle(1.0, STEPS),
        lambda o: torch_rates.OneCycleLR(o, 1.0, total_steps=STEPS, cycle_momentum=False),
    ),
    "one cycle, three phases": (
        rates.one_cycle(
            1.0,
            STEPS,
            warmup=0.2,
            start_divisor=10,
            end_divisor=50,
            shape="linear",
            three_phases=True,
        ),
        lambda o: torch_rates.OneCycleLR(
            o,
            1.0,
            total_steps=STEPS,
            pct_start=0.2,
            div_factor=10,
            final_div_factor=50,
            anneal_strategy="linear",
            three_phase=True,
            cycle_momentum=False,
        ),
    ),
    "warm-up": (
        rates.warmup(10, rates.exponential(1.0, 0.9), start=0.25),
        lambda o: torch_rates.SequentialLR(
            o,
            [torch_rates.LinearLR(o, 0.25, total_iters=10), torch_rates.ExponentialLR(o, 0.9)],
            [10],
        ),
    ),
    "sequence": (
        rates.sequence([0.5, rates.exponential(1.0, 0.9), rates.step_decay(1.0, 4)], [8, 20]),
        lambda o: torch_rates.SequentialLR(
            o,
            [
                torch_rates.ConstantLR(o, 0.5, total_iters=100),
                torch_rates.ExponentialLR(o, 0.9),
                torch_rates.StepLR(o, 4),
            ],
            [8, 28],
        ),
    ),
    "product": (
        rates.product(0.5, rates.exponential(2.0, 0.9), rates.step_decay(1.0, 9)),
        lambda o: torch_rates.ChainedScheduler(
            [torch_rates.ExponentialLR(o, 0.9), torch_rates.StepLR(o, 9)]
        ),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_rates_are_those_of_torch(name):
    mine, other = PAIRS[name]
    expected = theirs(other)
    assert [mine(step) for step in range(1, STEPS + 1)] == pytest.approx(expected, rel=1e-12)
    assert name == "constant" or len(set(expected)) > 2


def test_noam_is_the_formula_of_the_paper():
    rate = rates.noam(512, 20, factor=2.0)
    for step in range(1, STEPS):
        expected = 2.0 * 512**-0.5 * min(step**-0.5, step * 20**-1.5)
        assert rate(step) == pytest.approx(expected, rel=1e-14)


def test_what_has_an_end_stays_there():
    for rate, end in (
        (rates.linear(1.0, 0.5, 10), 0.5),
        (rates.cosine(1.0, 10, end=0.5), 0.5),
        (rates.one_cycle(1.0, 10), 1.0 / 25.0 / 1e4),
        (rates.piecewise([1.0, 0.5], [3]), 0.5),
    ):
        assert rate(11) == rate(1000) == pytest.approx(end)


EVERY = [pair[0] for pair in PAIRS.values()] + [rates.noam(8, 4)]


@pytest.mark.parametrize("rate", EVERY, ids=repr)
def test_a_schedule_is_pickled_compared_and_written_as_code(rate):
    other = pickle.loads(pickle.dumps(rate))
    assert other == rate
    assert hash(other) == hash(rate)
    assert [other(step) for step in (1, 5, 30)] == [rate(step) for step in (1, 5, 30)]
    code = repr(rate).replace("product(schedules=", "product(*")
    names = {name: getattr(rates, name) for name in rates.__all__}
    assert eval(code, names) == rate  # noqa: S307 — what `repr` wrote
    assert rate != rates.constant(7.0)


def test_functions_of_the_user_can_be_combined():
    rate = rates.warmup(2, rates.product(lambda step: 1.0 / step, 0.5))
    assert [rate(step) for step in (1, 2, 3, 4)] == [0.0, 0.25, 0.5, 0.25]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rates.linear(1.0, 0.0, 0), "steps is 0"),
        (lambda: rates.cosine(1.0, 1.5), "steps must be an integer"),
        (lambda: rates.exponential(1.0, -0.5), "gamma is -0.5"),
        (lambda: rates.step_decay(1.0, 0), "every is 0"),
        (lambda: rates.piecewise([1.0, 2.0], []), "2 parts and 0 lengths"),
        (lambda: rates.sequence([1.0], [3]), "1 parts and 1 lengths"),
        (lambda: rates.noam(0, 1), "size is 0"),
        (lambda: rates.one_cycle(1.0, 3), "shorter than a step"),
        (lambda: rates.one_cycle(1.0, 30, shape="square"), "shape is 'square'"),
        (lambda: rates.one_cycle(1.0, 30, warmup=1.0), "warmup is 1.0"),
        (lambda: rates.warmup(0, 0.1), "steps is 0"),
        (lambda: rates.product("a"), "a rate must be a number"),
        (lambda: rates.constant(math.nan), "value is nan"),
        (lambda: rates.constant(1.0)(0), "step is 0"),
    ],
)
def test_what_a_schedule_refuses(make, message):
    with pytest.raises(burn.BurnError, match=message):
        make()
