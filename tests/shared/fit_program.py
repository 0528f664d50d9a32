"""A training run that others kill: ``fit_program.py FOLDER [signal step]``.

It goes on where it was, and sends itself the signal in that step.
"""

import os
import sys
from pathlib import Path

import numpy as np

import burn
from burn import nn
from burn.data import Arrays, DataLoader
from burn.nn import functional as F
from burn.store import Checkpoints
from burn.train import Accuracy, EarlyStopping, History, Mean, evaluate, fit


def run(folder, *, during=lambda step: None, device="cpu", save_every=3, epochs=4, **options):
    """A run with all that has a state; returns its history, and the values of its parameters."""
    device = burn.Device(device).autodiff()
    device.seed(1)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 4)).astype("float32")
    labels = (points[:, 0] * points[:, 1] > 0).astype("int32")
    loader = DataLoader(Arrays(points, labels), 6, shuffle=True, seed=2, device=device)
    test = [(burn.asarray(points, device=device), burn.asarray(labels, device=device))]
    net = nn.Sequential(
        nn.Linear(4, 16, device=device),
        nn.BatchNorm1d(16, device=device),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(16, 2, device=device),
    )
    rate = burn.optim.schedules.cosine(0.02, 30)
    optimizer = burn.optim.AdamW(net, rate, weight_decay=0.1)
    average = burn.optim.ExponentialMovingAverage(net, decay=0.9)
    noise = np.random.default_rng(3)
    accuracy, weighted = Accuracy(), Mean()

    def step(batch):
        during(step.count)
        step.count += 1
        points, labels = batch
        shift = burn.asarray(noise.normal(size=points.shape).astype("float32"), device=device)
        scores = net(points + 0.1 * shift)
        loss = F.cross_entropy(scores, labels)
        optimizer.step(loss.backward())
        average.update()
        accuracy.update(scores, labels)
        weighted.update(loss, weight=len(labels))
        values = {"loss": loss, "learning_rate": optimizer.learning_rate}
        return values | {"accuracy": accuracy, "weighted": weighted}

    def evaluation():
        with average.applied():
            return evaluate(lambda batch: (net(batch[0]), batch[1]), test, accuracy=Accuracy())

    step.count = 0
    with Checkpoints(folder / "checkpoints") as checkpoints:
        history = fit(
            step,
            loader,
            epochs=epochs,
            evaluate=evaluation,
            stop=EarlyStopping("val_accuracy", mode="max", patience=10, restore=net),
            checkpoints=checkpoints,
            parts={"net": net, "optimizer": optimizer, "average": average, "noise": noise},
            save_every=save_every,
            log=folder / "log.jsonl",
            log_every=2,
            progress=False,
            **options,
        )
    values = {path: x.numpy() for path, x in net.state_dict().items()}
    assert without_times(History.load(folder / "log.jsonl")) == without_times(history)
    return history, values


def without_times(history):
    """The records of a history, without what differs from run to run."""
    times = ("seconds", "examples_per_second")
    return [
        {name: value for name, value in record.items() if name not in times}
        for record in [*history.records, *history.steps]
    ]


def main():
    folder = Path(sys.argv[1])

    def during(step):
        if len(sys.argv) > 2 and step == int(sys.argv[3]):
            os.kill(os.getpid(), int(sys.argv[2]))

    run(folder, during=during)


if __name__ == "__main__":
    main()
