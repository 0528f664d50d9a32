"""Train a small network to read handwritten digits, on whatever hardware there is.

The data are the 1,797 images of 8 by 8 pixels that come with scikit-learn; a fifth of them is held
out. Nothing here names a backend: `burn.Device.default()` takes the best device of this machine,
``--device`` another one, and all the rest is tensors and functions.

    python examples/digits.py
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
from burn import Device, Tensor

mpl.use("Agg")  # pictures go to files: no display is needed

CLASSES = 10
LAYERS = (64, 128, 64, CLASSES)
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


class Network:
    """Linear layers with ReLU between them, and what Adam remembers of their parameters."""

    def __init__(self, sizes: tuple[int, ...], device: Device, dtype: str) -> None:
        self.parameters: list[Tensor] = []
        for inputs, outputs in pairwise(sizes):
            deviation = (2 / inputs) ** 0.5  # He et al. (2015), arXiv:1502.01852
            weight = burn.random.normal(
                (inputs, outputs), std=deviation, dtype=dtype, device=device
            )
            bias = burn.zeros(outputs, dtype=dtype, device=device)
            self.parameters += [weight.require_grad(), bias.require_grad()]
        self.moments = [
            (burn.zeros_like(parameter), burn.zeros_like(parameter))
            for parameter in self.parameters
        ]
        self.steps = 0

    def __call__(self, x: Tensor) -> Tensor:
        """A score for each class, shape (n, 10), of images of shape (n, 64)."""
        *hidden, last = zip(self.parameters[::2], self.parameters[1::2], strict=True)
        for weight, bias in hidden:
            x = burn.relu(x @ weight + bias)
        weight, bias = last
        return x @ weight + bias

    def update(self, gradients: burn.Gradients, learning_rate: float) -> None:
        """One step of Adam."""
        self.steps += 1
        with burn.no_grad():
            for place, parameter in enumerate(self.parameters):
                value, first, second = burn.adam_step(
                    parameter,
                    parameter.grad(gradients),
                    *self.moments[place],
                    step=self.steps,
                    learning_rate=learning_rate,
                    weight_decay=WEIGHT_DECAY,
                )
                # The new value is where the next step starts: a leaf that gradients are kept for.
                self.parameters[place] = value.detach().require_grad()
                self.moments[place] = (first, second)


def train(network: Network, data: Digits, epochs: int) -> list[float]:
    """Go through the data in random order, `epochs` times; the mean loss of each time."""
    device = data.images.device
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
            learning_rate = LEARNING_RATE * (1 - epoch / epochs)
            order = burn.random.permutation(len(data), device=device)
            total = burn.zeros((), dtype=data.images.dtype, device=device)
            for start in range(0, len(data), BATCH):
                chosen = order[start : start + BATCH]
                images = burn.take(data.images, chosen, axis=0)
                noise = burn.random.normal(
                    images.shape, std=NOISE, dtype=images.dtype, device=device
                )
                loss = burn.cross_entropy(
                    network(images + noise), burn.take(data.labels, chosen, axis=0)
                )
                network.update(loss.backward(), learning_rate)
                total += loss.detach() * len(chosen)
            losses.append(float(total) / len(data))
            progress.update(bar, advance=1, loss=losses[-1], accuracy=accuracy(network, data))
    return losses


@burn.no_grad()
def predict(network: Network, data: Digits) -> Tensor:
    """The most likely digit of each image."""
    return network(data.images).argmax(axis=1)


def accuracy(network: Network, data: Digits) -> float:
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
    for axes, place in zip(right.axes, wrong, strict=False):  # the first nine
        axes.imshow(images[place].reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{labels[place]} read as {predicted[place]}", fontsize=9)

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Train, evaluate, draw."""
    parser = argparse.ArgumentParser(description="Train a network to read handwritten digits.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("out", "digits.png"))
    options = parser.parse_args()

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    training, held_out = load_data(device, options.dtype)
    print(f"{len(training)} images to train with, {len(held_out)} held out, on {device.inner()}")

    network = Network(LAYERS, device, options.dtype)
    losses = train(network, training, options.epochs)

    print(f"accuracy on the held-out images: {accuracy(network, held_out):.4f}")
    draw(options.picture, losses, held_out, predict(network, held_out).numpy())
    print(f"picture: {options.picture}")


if __name__ == "__main__":
    try:
        main()
    except burn.BurnError as error:
        sys.exit(str(error))
