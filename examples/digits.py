"""Train a small network to read handwritten digits, on whatever hardware there is.

The data are the 1,797 images of 8 by 8 pixels that come with scikit-learn; a fifth of them is held
out. Nothing here names a backend: `burn.Device.default()` takes the best device of this machine,
``--device`` another one, and all the rest is tensors and modules.

    python examples/digits.py
    python examples/digits.py --network convolutional --out out/convolutional
    python examples/digits.py --device cpu --dtype float64 --seed 7

With ``--out`` a folder keeps the weights, a log and checkpoints: killed and started again, the
program goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

import burn
from burn import Device, Tensor, nn
from burn.data import Arrays, DataLoader
from burn.nn import functional as F
from burn.store import save
from burn.train import Accuracy, History, evaluate, fit

mpl.use("Agg")  # pictures go to files: no display is needed

CLASSES = 10
LAYERS = (64, 128, 64, CLASSES)  # of the dense network
CHANNELS = (1, 24, 48)  # of the convolutional one
BATCH = 32
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
NOISE = 0.2  # blurs the training images, so that the network cannot learn them by heart


Digits = tuple[Tensor, Tensor]
"""Images, shape (n, 64) with values from 0 to 1, and the digits they show, shape (n,)."""


def load_data(device: Device, dtype: str) -> tuple[Digits, Digits]:
    """What to train with, and what is held out; the same split in every run."""
    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(pixels / 16, labels, test_size=0.2, stratify=labels, random_state=0)
    images = [burn.asarray(part, dtype=dtype, device=device) for part in parts[:2]]
    digits = [
        burn.asarray(part, dtype=device.settings.int_dtype, device=device) for part in parts[2:]
    ]
    return (images[0], digits[0]), (images[1], digits[1])


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


def train(
    network: nn.Module, data: Digits, epochs: int, seed: int = 0, folder: Path | None = None
) -> History:
    """Go through the data in random order, `epochs` times; a folder keeps checkpoints and a log."""
    loader = DataLoader(Arrays(*data), BATCH, shuffle=True, seed=seed, device=data[0].device)
    rate = burn.optim.schedules.linear(LEARNING_RATE, 0.0, epochs * len(loader))
    optimizer = burn.optim.AdamW(network, rate, weight_decay=WEIGHT_DECAY)
    right = Accuracy()

    def step(batch: Digits) -> dict[str, Tensor | Accuracy]:
        images, labels = batch
        noise = burn.random.normal(
            images.shape, std=NOISE, dtype=images.dtype, device=images.device
        )
        scores = network(images + noise)
        loss = F.cross_entropy(scores, labels)
        optimizer.step(loss.backward())
        right.update(scores, labels)
        return {"loss": loss, "accuracy": right}

    parts = {"network": network, "optimizer": optimizer}
    kept = {"checkpoints": folder / "checkpoints", "log": folder / "log.jsonl"} if folder else {}
    return fit(step, loader, epochs=epochs, parts=parts, **kept)


def accuracy(network: nn.Module, data: Digits) -> float:
    """Share of the images that are read right."""
    return evaluate(
        lambda batch: (network(batch[0]), batch[1]), [data], model=network, right=Accuracy()
    )["right"]


def draw(path: Path, losses: list[float], network: nn.Module, data: Digits) -> None:
    """Save a picture: the loss, what was read as what, and some of the mistakes."""
    with burn.no_grad():
        predicted = network.eval()(data[0]).argmax(axis=1).numpy()
    images, labels = (array.numpy() for array in data)
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
    parser.add_argument("--out", type=Path, help="a folder for weights, log and checkpoints")
    options = parser.parse_args()

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    training, held_out = load_data(device, options.dtype)
    network = NETWORKS[options.network](options.dtype, device)
    count, size = len(training[0]), network.num_parameters
    print(f"{count} images to train with, {size} parameters, on {device.inner()}")

    epochs = EPOCHS[options.network] if options.epochs is None else options.epochs
    history = train(network, training, epochs, options.seed, options.out)
    if options.out:
        save(network, options.out / "network.safetensors")

    print(f"accuracy on the held-out images: {accuracy(network, held_out):.4f}")
    draw(options.picture, history["loss"], network, held_out)
    print(f"picture: {options.picture}")


if __name__ == "__main__":
    try:
        main()
    except (burn.BurnError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)  # as shells count the signals
