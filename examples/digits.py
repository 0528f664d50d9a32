"""Train a small network to read handwritten digits, on whatever hardware there is.

The data are the 1,797 images of 8 by 8 pixels that come with scikit-learn; a fifth of them is held
out. Nothing here names a backend: `burn.Device.default()` takes the best device of this machine,
``--device`` another one, and all the rest is tensors and modules.

    python examples/digits.py
    python examples/digits.py --network convolutional
    python examples/digits.py --device cpu --dtype float64 --seed 7
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

import burn
from burn import Device, Tensor, nn
from burn.nn import functional as F

mpl.use("Agg")  # pictures go to files: no display is needed

CLASSES = 10
LAYERS = (64, 128, 64, CLASSES)  # of the dense network
CHANNELS = (1, 24, 48)  # of the convolutional one
BATCH = 32
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
NOISE = 0.2  # blurs the training images, so that the network cannot learn them by heart


@dataclass
class Digits:
    """Images, shape (n, 64) with values from 0 to 1, and the digits they show, shape (n,)."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.images)


def load_data(device: Device, dtype: str) -> tuple[Digits, Digits]:
    """The images to train with, and those held out; the same split in every run."""
    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(pixels / 16, labels, test_size=0.2, stratify=labels, random_state=0)

    def digits(images: np.ndarray, labels: np.ndarray) -> Digits:
        return Digits(
            burn.asarray(images, dtype=dtype, device=device),
            burn.asarray(labels, dtype=device.settings.int_dtype, device=device),
        )

    train_images, test_images, train_labels, test_labels = parts
    return digits(train_images, train_labels), digits(test_images, test_labels)


def dense(dtype: str, device: Device) -> nn.Sequential:
    """Linear layers with ReLU between them: scores of the classes for images of shape (n, 64)."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(LAYERS):
        layers += [nn.Linear(inputs, outputs, dtype=dtype, device=device), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convolutional(dtype: str, device: Device) -> nn.Sequential:
    """Convolutions with batch normalization and ReLU, a pooling, and a linear layer."""
    layers: list[nn.Module] = [nn.Unflatten(1, (1, 8, 8))]
    for inputs, outputs in pairwise(CHANNELS):
        layers += [
            nn.Conv2d(inputs, outputs, 3, padding=1, dtype=dtype, device=device),
            nn.BatchNorm2d(outputs, dtype=dtype, device=device),
            nn.ReLU(),
        ]
    last = nn.Linear(CHANNELS[-1] * 4 * 4, CLASSES, dtype=dtype, device=device)
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), last)


NETWORKS = {"dense": dense, "convolutional": convolutional}
EPOCHS = {"dense": 60, "convolutional": 15}


def train(network: nn.Module, data: Digits, epochs: int) -> list[float]:
    """Go through the data in random order, `epochs` times; the mean loss of each time."""
    device = data.images.device
    optimizer = burn.optim.AdamW(network, weight_decay=WEIGHT_DECAY)
    losses: list[float] = []
    with Progress(
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.4f}"),
        TimeElapsedColumn(),
    ) as progress:
        bar = progress.add_task("training", total=epochs, loss=float("nan"), accuracy=0.0)
        for epoch in range(epochs):
            optimizer.learning_rate = LEARNING_RATE * (1 - epoch / epochs)
            order = burn.random.permutation(len(data), device=device)
            total = burn.zeros((), dtype=data.images.dtype, device=device)
            for start in range(0, len(data), BATCH):
                chosen = order[start : start + BATCH]
                images = burn.take(data.images, chosen, axis=0)
                noise = burn.random.normal(
                    images.shape, std=NOISE, dtype=images.dtype, device=device
                )
                scores = network(images + noise)
                loss = F.cross_entropy(scores, burn.take(data.labels, chosen, axis=0))
                optimizer.step(loss.backward())
                total += loss.detach() * len(chosen)
            losses.append(float(total) / len(data))
            progress.update(bar, advance=1, loss=losses[-1], accuracy=accuracy(network, data))
    return losses


@burn.no_grad()
def predict(network: nn.Module, data: Digits) -> Tensor:
    """The most likely digit of each image."""
    network.eval()
    digits = network(data.images).argmax(axis=1)
    network.train()
    return digits


def accuracy(network: nn.Module, data: Digits) -> float:
    """Share of the images that are read right."""
    right = predict(network, data) == data.labels
    return int(burn.sum(right)) / len(data)


def draw(path: Path, losses: list[float], data: Digits, predicted: np.ndarray) -> None:
    """Save a picture: the loss, what was read as what, and some of the mistakes."""
    images, labels = data.images.numpy(), data.labels.numpy()
    wrong = np.flatnonzero(predicted != labels)
    figure = plt.figure(figsize=(13, 4.6), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1, 1.1, 1))

    axes = left.subplots()
    axes.plot(range(1, len(losses) + 1), losses, color="tab:blue")
    axes.set(title="Loss while training", xlabel="epoch", ylabel="cross-entropy", yscale="log")
    axes.grid(which="both", alpha=0.2)

    axes = middle.subplots()
    table = ConfusionMatrixDisplay.from_predictions(
        labels, predicted, ax=axes, cmap="Blues", colorbar=False
    )
    for number in table.text_.ravel():
        number.set_visible(number.get_text() != "0")
    axes.set(title=f"{len(labels) - len(wrong)} of {len(labels)} right", xlabel="read as")
    axes.set_ylabel("digit")

    right.suptitle("Mistakes" if len(wrong) else "No mistakes")
    for axes in right.subplots(3, 3).flat:
        axes.set_axis_off()
    for axes, index in zip(right.axes, wrong, strict=False):  # the first nine
        axes.imshow(images[index].reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{labels[index]} read as {predicted[index]}", fontsize=9)

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Train, evaluate, draw."""
    parser = argparse.ArgumentParser(description="Train a network to read handwritten digits.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--network", choices=NETWORKS, default="dense")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--epochs", type=int, help="times through the images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("out", "digits.png"))
    options = parser.parse_args()

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    training, held_out = load_data(device, options.dtype)
    print(f"{len(training)} images to train with, {len(held_out)} held out, on {device.inner()}")

    network = NETWORKS[options.network](options.dtype, device)
    losses = train(network, training, options.epochs or EPOCHS[options.network])

    print(f"accuracy on the held-out images: {accuracy(network, held_out):.4f}")
    draw(options.picture, losses, held_out, predict(network, held_out).numpy())
    print(f"picture: {options.picture}")


if __name__ == "__main__":
    try:
        main()
    except burn.BurnError as error:
        sys.exit(str(error))
