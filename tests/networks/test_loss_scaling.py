"""Loss scaling: steps with gradients that are not finite change nothing, and nothing is read."""

import math

import numpy as np
import pytest

import burn
from burn import nn

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()


def model():
    burn.random.seed(0, device=CPU)
    net = nn.Sequential(
        nn.Linear(3, 8, device=AUTODIFF), nn.functional.relu, nn.Linear(8, 1, device=AUTODIFF)
    )
    return net.set_precision(nn.Precision("float16"))


def loss_of(net, x):
    return (net(x) ** 2).mean()


def data(*shape):
    return burn.asarray(
        np.linspace(-1, 1, math.prod(shape)).reshape(shape), dtype="float32", device=CPU
    )


def values(net, optimizer):
    states = [x for x in optimizer.state_dict().values() if isinstance(x, burn.Tensor)]
    return [x.tolist() for x in [*net.state_dict().values(), *states]]


def test_finite_steps_are_those_without_scaling_and_let_the_factor_grow():
    nets = model(), model()
    optimizers = [burn.optim.Adam(net, 0.01) for net in nets]
    scaler = burn.optim.LossScaler(1024.0, interval=3)
    x = data(16, 3)
    factors = []
    for _ in range(7):
        factors.append(scaler.factor)
        scaler.step(optimizers[0], scaler.scale(loss_of(nets[0], x)).backward())
        optimizers[1].step(loss_of(nets[1], x).backward())
    assert factors == [1024.0] * 3 + [2048.0] * 3 + [4096.0]
    assert scaler.skipped == 0
    for item, other in zip(*[net.parameters() for net in nets], strict=True):
        burn.testing.assert_close(item.inner(), other.inner(), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("spoiled", [math.inf, -math.inf, math.nan])
def test_a_step_that_is_not_finite_changes_no_parameter_and_no_state(spoiled):
    net = model()
    optimizer = burn.optim.Adam(net, 0.01)
    scaler = burn.optim.LossScaler(1024.0, interval=2)
    x = data(4, 3)
    scaler.step(optimizer, scaler.scale(loss_of(net, x)).backward())
    before = values(net, optimizer)
    bad = burn.asarray(x, copy=True)
    bad[0, 0] = spoiled
    for skipped in (1, 2):
        scaler.step(optimizer, scaler.scale(loss_of(net, bad)).backward())
        assert values(net, optimizer) == before
        assert (scaler.factor, scaler.skipped) == (1024.0 / 2**skipped, skipped)
    assert all(p.is_require_grad for p in net.parameters())
    for factor in (256.0, 512.0):  # the finite step before the others does not count any more
        scaler.step(optimizer, scaler.scale(loss_of(net, x)).backward())
        assert scaler.factor == factor
    assert values(net, optimizer) != before


def test_an_overflow_of_the_factor_itself_is_found_and_left():
    net = model()
    optimizer, scaler = burn.optim.SGD(net, 0.1), burn.optim.LossScaler(2.0**30)
    x = data(4, 3)
    before = net.state_dict()["0.weight"].tolist()
    for _ in range(30):
        scaler.step(optimizer, scaler.scale(loss_of(net, x)).backward())
    assert 0 < scaler.skipped < 30
    assert scaler.factor == 2.0 ** (30 - scaler.skipped)
    assert net.state_dict()["0.weight"].tolist() != before
    assert math.isfinite(float(loss_of(net, x)))


def test_small_gradients_of_float16_survive_a_scaled_loss():
    weight = burn.ones(4, dtype="float16", device=AUTODIFF).require_grad()
    scaler = burn.optim.LossScaler(16384.0)
    tiny = burn.full(4, 1e-4, dtype="float16", device=CPU)
    loss = (weight * tiny * tiny).sum()
    assert loss.backward()[weight].tolist() == [0.0] * 4
    scaled = scaler.scale((weight * tiny * tiny).sum())
    assert scaled.dtype is burn.float32
    net = {"weight": burn.ones(4, device=AUTODIFF).require_grad()}
    optimizer = burn.optim.SGD(net, learning_rate=1e6)
    half = net["weight"].astype("float16")
    scaler.step(optimizer, scaler.scale((half * tiny * tiny).sum()).backward())
    burn.testing.assert_close(net["weight"].inner(), burn.full(4, 1 - 1e-2, device=CPU), rtol=1e-3)


def test_nothing_is_read_while_training():
    net = model()
    optimizer, scaler = burn.optim.Adam(net, 0.01, clip_norm=1.0), burn.optim.LossScaler()
    scaler.step(optimizer, scaler.scale(loss_of(net, data(4, 3))).backward())
    backend = CPU.ops.backend
    reads = []
    original = backend.to_data
    try:
        backend.to_data = lambda x: reads.append(x) or original(x)
        scaler.step(optimizer, scaler.scale(loss_of(net, data(4, 3))).backward())
    finally:
        del backend.to_data
    assert not reads
    assert scaler.skipped == 0


def test_a_scaler_goes_on_from_its_state():
    net = model()
    optimizer, scaler = burn.optim.Adam(net), burn.optim.LossScaler(64.0, interval=2)
    scaler.step(optimizer, scaler.scale(loss_of(net, data(4, 3))).backward())
    other = burn.optim.LossScaler(interval=2)
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == {"scale": 64.0, "finite_steps": 1, "skipped": 0}
    other.step(optimizer, other.scale(loss_of(net, data(4, 3))).backward())
    assert other.factor == 128.0
    with pytest.raises(burn.ArgumentError, match="state of a LossScaler"):
        other.load_state_dict({"scale": 1.0})


def test_misuse_of_a_scaler_is_refused():
    net = model()
    gradients = loss_of(net, data(4, 3)).backward()
    with pytest.raises(burn.OperandTypeError, match="not of a scaled loss"):
        burn.optim.LossScaler().step(burn.optim.Adam(net), gradients)
    with pytest.raises(burn.ArgumentError, match="backoff"):
        burn.optim.LossScaler(backoff=1.5)
    with pytest.raises(burn.ArgumentError, match="scale"):
        burn.optim.LossScaler(0.0)


@pytest.mark.parametrize("spoiled", [1.0, math.inf])
def test_losses_that_were_scaled_together_have_one_factor(spoiled):
    nets = [nn.Linear(2, 2, device=AUTODIFF) for _ in range(2)]
    optimizers = [burn.optim.SGD(net, 0.5) for net in nets]
    scaler = burn.optim.LossScaler(64.0, interval=1)
    losses = [scaler.scale(net(burn.ones((1, 2), device=CPU)).sum() * 2.0) for net in nets]
    expected = nets[1].bias.detach() - 1.0
    gradients = [loss.backward() for loss in losses]
    scaler.step(optimizers[0], gradients[0].map(lambda gradient: gradient * spoiled))
    factor = 128.0 if spoiled == 1.0 else 32.0
    assert (scaler.factor, scaler.skipped) == (factor, int(spoiled != 1.0))
    scaler.step(optimizers[1], gradients[1])
    burn.testing.assert_close(nets[1].bias.detach(), expected)
    assert scaler.factor == 2.0 * factor
    assert scaler.scale(burn.ones((), device=CPU)).item() == 2.0 * factor


def test_optimizers_of_one_pass_have_one_factor():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to(AUTODIFF)
    optimizers = [burn.optim.SGD(layer, 0.5) for layer in net]
    scaler = burn.optim.LossScaler(64.0)
    x = burn.ones((1, 2), device=CPU)
    gradients = net(x).sum().backward()
    expected = [parameter.detach() - 0.5 * gradients[parameter] for parameter in net.parameters()]
    gradients = scaler.scale(net(x).sum()).backward()
    for optimizer in optimizers:
        scaler.step(optimizer, gradients)
    for parameter, value in zip(net.parameters(), expected, strict=True):
        burn.testing.assert_close(parameter.detach(), value)
    gradients = scaler.scale(net(x).sum()).backward().map(lambda gradient: gradient * math.nan)
    for optimizer in optimizers:
        scaler.step(optimizer, gradients)
    assert scaler.factor == 32.0
    for parameter, value in zip(net.parameters(), expected, strict=True):
        burn.testing.assert_close(parameter.detach(), value)


def test_a_large_factor_does_not_make_gradients_of_float16_zero():
    parameters = {"x": burn.ones(2, dtype="float16", device=AUTODIFF).require_grad()}
    optimizer, scaler = burn.optim.SGD(parameters, 0.5), burn.optim.LossScaler(2.0**26)
    loss = (parameters["x"].astype("float32") * 2.0**-14).sum()
    scaler.step(optimizer, scaler.scale(loss).backward())
    assert scaler.skipped == 0
    expected = 1 - 0.5 * 2.0**-14
    burn.testing.assert_close(parameters["x"].inner().astype("float64"), [expected] * 2, atol=1e-3)
    loss = (parameters["x"].astype("float32") * 2.0**-11).sum()
    optimizer.learning_rate = 256.0
    scaler.step(optimizer, scaler.scale(loss).backward())
    burn.testing.assert_close(parameters["x"].inner().astype("float64"), [0.875] * 2, atol=1e-3)
