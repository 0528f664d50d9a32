"""What a type checker says of programs of users; test_typing.py runs mypy on it, strictly.

An ignore that is not needed is an error, so each one here says that the line is one.
"""

from pathlib import Path
from typing import Any, assert_type

import numpy as np

import burn
from burn import data, nn, store
from burn.testing import assert_close


def report(what: str, values: list[float]) -> None: ...


def train(steps: int) -> float:
    device = burn.Device("cpu").autodiff()
    w = burn.zeros(2, device=device).require_grad()
    x: burn.Tensor = burn.random.uniform((8, 2), device=device)
    loss = burn.zeros((), device=device)
    for _ in range(steps):
        loss = burn.mean(burn.square(x @ w - 1.0))
        gradients = loss.backward()
        w = burn.Tensor.from_inner(w.inner() - 0.1 * w.grad(gradients)).require_grad()
        norm: burn.Tensor = burn.sqrt(burn.sum(burn.square(w.grad(gradients))))
        report(f"{loss:.3f} {norm:.3f}", w.grad(gradients).tolist())
        report("removed", w.grad_remove(gradients).tolist())
    return float(loss)


def gradient_of(x: burn.Tensor) -> burn.Tensor | None:
    gradient = x.grad(x.sum().backward())
    if gradient is None:
        return None
    return gradient


def names(x: burn.Tensor) -> None:
    assert_type(x.sum(), burn.Tensor)
    assert_type(burn.exp(x), burn.Tensor)
    assert_type(burn.add(x, 1.5), burn.Tensor)
    assert_type(burn.bitwise_invert(x), burn.Tensor)
    assert_type(burn.floor(x), burn.Tensor)
    assert_type(burn.sum(x, axis=0), burn.Tensor)
    assert_type(x.dtype == "float32", bool)
    assert_type(burn.float32, burn.DType)
    assert_type(burn.linalg.inv(x), burn.Tensor)
    burn.testing.assert_close(x, x)
    assert_close(x, 1.0, rtol=1e-3)


def slowest_op(x: burn.Tensor) -> str:
    with burn.profile(synchronize=False) as profile:
        burn.exp(x)
    assert_type(profile.seconds, float)
    return profile.by_op()[0].name


def traced(x: burn.Tensor) -> int:
    like = burn.ir.TensorSpec((2, 3), "float32", "cpu")
    program = burn.ir.trace(burn.exp, like)
    assert_type(program, burn.ir.Program)
    assert_type(like.shape, tuple[int, ...])
    assert_type(like.device, burn.Device)
    report(str(program), [program(x).sum().item()])
    return program.cost().total.flops


class Net(nn.Module):
    buffers = ("mean",)

    def __init__(self, width: int, *, device: burn.Device | None = None) -> None:
        self.first = nn.Linear(2, width, device=device)
        self.layers = [nn.Sequential(nn.ReLU(), nn.LayerNorm(width)) for _ in range(2)]
        self.mean = burn.zeros(width)

    def forward(self, x: burn.Tensor) -> burn.Tensor:
        x = self.first(x) - self.mean
        for layer in self.layers:
            x = layer(x)
        return x


def fitted(x: burn.Tensor, device: burn.Device) -> dict[str, burn.Tensor]:
    net = Net(4, device=device)
    assert_type(net.to(device).train(), Net)
    assert_type(net.first.weight, burn.Tensor)
    assert_type(net.parameters(), list[burn.Tensor])
    schedule = burn.optim.schedules.cosine(0.1, 100)
    optimizer = burn.optim.AdamW(net, schedule, weight_decay=0.1, clip_norm=1.0)
    optimizer.step(nn.functional.mse_loss(net(x), x).backward())
    assert_type(optimizer.learning_rate, float)
    gradients = burn.grad(lambda net: (net(x) ** 2).mean())(net)
    _, state = optimizer.update(net, gradients, optimizer.init(net))
    assert_type(state, burn.optim.State)
    report(str(net.summary(x)), [net.num_parameters])
    return net.state_dict()


def batches(folder: Path, rows: np.ndarray[Any, Any]) -> int:
    training, held_out = data.split(data.Arrays(x=rows), [0.8, 0.2], seed=1, stratify=None)
    assert_type(held_out, data.Subset)
    both = data.Concatenated(training, data.Mapped(held_out, dict), data.Windows(rows, 3, step=2))
    with data.DataLoader(both, 8, shuffle=True, seed=0, device="cpu", collate=data.collate) as own:
        assert_type(own, data.DataLoader)
        for batch in own:
            report(f"{batch['x']:.3f}", [len(own), own.epoch])
    assert_type(data.rng(), np.random.Generator)
    network = Net(4)
    store.save(network, folder / "net.safetensors", metadata={"kind": "net"})
    assert_type(store.load(folder / "net.safetensors", device="cpu"), dict[str, burn.Tensor])
    assert_type(store.read_metadata(str(folder / "net.safetensors")), dict[str, str])
    assert_type(store.load_into(network, folder, strict=False).missing, list[str])
    with store.Checkpoints(folder, keep=2) as checkpoints:
        checkpoints.save(1, network=network, loader=own)
        found = checkpoints.restore(network=network)
        assert_type(found, store.Checkpoint | None)
        assert_type(checkpoints.steps(), list[int])
    return 0 if found is None else found.step


def trained(rows: np.ndarray[Any, Any], folder: Path) -> list[Any]:
    network = Net(4, device=burn.Device("cpu").autodiff())
    optimizer = burn.optim.Adam(network)
    accuracy = burn.train.Accuracy(top_k=1)

    def step(batch: tuple[burn.Tensor, burn.Tensor]) -> dict[str, Any]:
        loss = nn.functional.cross_entropy(network(batch[0]), batch[1])
        optimizer.step(loss.backward())
        return {"loss": loss, "accuracy": accuracy}

    history = burn.train.fit(
        step,
        data.DataLoader(data.Arrays(rows, rows), 8),
        steps=100,
        stop=burn.train.EarlyStopping("loss", patience=2, mode="min", restore=network),
        checkpoints=folder,
        parts={"network": network, "optimizer": optimizer},
        save_every=10,
        log=folder / "log.jsonl",
    )
    assert_type(history, burn.train.History)
    assert_type(history.records, list[dict[str, Any]])
    assert_type(burn.train.History.load("log.jsonl"), burn.train.History)
    burn.train.fit(step, [], epoch=3)  # type: ignore[call-arg]
    burn.train.EarlyStopping("loss", mode="least")  # type: ignore[arg-type]
    return history["loss"]


def typos(x: burn.Tensor) -> None:
    data.Array(x)  # type: ignore[attr-defined]
    data.DataLoader([x], batchsize=3)  # type: ignore[call-arg]
    store.load_in(x, "a")  # type: ignore[attr-defined]
    burn.ir.traced(burn.exp, x)  # type: ignore[attr-defined]
    burn.summ(x)  # type: ignore[attr-defined]
    burn.linalg.inverse(x)  # type: ignore[attr-defined]
    burn.testing.assert_near(x, x)  # type: ignore[attr-defined]
    nn.Liner(2, 3)  # type: ignore[attr-defined]
    nn.Linear(2, 3, biass=False)  # type: ignore[call-arg]
    burn.optim.Adamm()  # type: ignore[attr-defined]
    burn.optim.Adam(lr=0.1)  # type: ignore[call-arg]
    x.summ()  # type: ignore[attr-defined]
    x.sum(dim=0)  # type: ignore[call-arg]
