"""Train a residual network to name shapes in pictures, which worker processes paint and vary.

A picture has 32 by 32 pixels, as in CIFAR-10: one of ten shapes in any colour, size and angle, on a
textured background. NumPy paints each from a seed and its index, so there is nothing to download.
The network is a ResNet-20 (He et al., 2016, section 4.2); two minutes on two CPU cores are enough.

    python examples/resnet.py
    python examples/resnet.py --device cuda --depth 56 --images 50000 --workers 8

Pictures, curves, the weights and checkpoints are in out/resnet. Killed and started again, the
program goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import burn
from burn import Device, Tensor, nn
from burn.data import DataLoader, rng
from burn.nn import functional as F
from burn.store import save
from burn.train import Accuracy, evaluate, fit

SHAPES = (
    *("disk", "ring", "half", "crescent", "triangle"),
    *("square", "bar", "cross", "pentagon", "star"),
)
SIZE = 32  # pixels of a side
MARGIN = 3  # pixels by which a picture is shifted at most
WIDTHS = (16, 32, 64)  # channels of the three stages
HELD_OUT = 1024  # pictures
BATCH = 64
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2


def inside(shape: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far points are inside of a shape of radius 1; negative outside."""
    radius, angle = np.hypot(x, y), np.arctan2(y, x)

    def polygon(sides: int) -> np.ndarray:
        half = np.pi / sides
        return np.cos(half) - radius * np.cos(angle % (2 * half) - half)

    def box(width: float, height: float) -> np.ndarray:
        return np.minimum(width - abs(x), height - abs(y))

    match shape:
        case "disk":
            return 1 - radius
        case "ring":
            return 0.25 - abs(radius - 0.75)
        case "half":
            return np.minimum(1 - radius, y + 0.2)
        case "crescent":
            return np.minimum(1 - radius, np.hypot(x - 0.5, y) - 0.8)
        case "triangle" | "square" | "pentagon":
            return polygon({"triangle": 3, "square": 4, "pentagon": 5}[shape])
        case "bar":
            return box(1.0, 0.3)
        case "cross":
            return np.maximum(box(1.0, 0.3), box(0.3, 1.0))
        case _:  # a star
            return 0.65 + 0.35 * np.cos(5 * angle) - radius


class Shapes:
    """Pictures, uint8 of shape (3, SIZE, SIZE), and the indices of their shapes in SHAPES."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed = count, seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        random = np.random.default_rng((self.seed, index))
        label = int(random.integers(len(SHAPES)))
        y, x = np.mgrid[:SIZE, :SIZE] / (SIZE / 2) - 1.0

        colour = random.uniform(0, 1, (3, 1, 1))
        shades = (
            colour + random.uniform(0.35, 0.65, (2, 3, 1, 1))
        ) % 1  # others, of the background
        waves = [
            np.sin(random.normal(0, 6) * x + random.normal(0, 6) * y + random.uniform(0, 6))
            for _ in range(3)
        ]
        texture = 0.5 + sum(waves) / 6
        background = shades[0] * texture + shades[1] * (1 - texture)

        size, turn = random.uniform(0.4, 0.8), random.uniform(-np.pi, np.pi)
        left, top = random.uniform(size - 1, 1 - size, 2)
        u = ((x - left) * np.cos(turn) + (y - top) * np.sin(turn)) / size
        v = ((y - top) * np.cos(turn) - (x - left) * np.sin(turn)) / size
        shape = np.clip(inside(SHAPES[label], u, v) * size * SIZE / 2 + 0.5, 0, 1)  # smooth edges

        picture = shape * colour + (1 - shape) * background
        picture += random.normal(0, 0.04, picture.shape)
        return (picture * 255).clip(0, 255).astype(np.uint8), label


def vary(example: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
    """Shift and perhaps mirror a picture; a worker does this each time that it is loaded."""
    picture, label = example
    random = rng()
    padded = np.pad(picture, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)), mode="reflect")
    top, left = random.integers(0, 2 * MARGIN + 1, 2)
    picture = padded[:, top : top + SIZE, left : left + SIZE]
    return picture[:, :, :: random.choice((-1, 1))], label


def convolution(inputs: int, outputs: int, size: int, stride: int, device: Device) -> nn.Sequential:
    """A convolution and a batch normalization."""
    return nn.Sequential(
        nn.Conv2d(
            inputs, outputs, size, stride=stride, padding=size // 2, bias=False, device=device
        ),
        nn.BatchNorm2d(outputs, device=device),
    )


class Block(nn.Module):
    """Two convolutions, whose output is added to the input."""

    def __init__(self, inputs: int, outputs: int, stride: int, device: Device) -> None:
        self.first = convolution(inputs, outputs, 3, stride, device)
        self.second = convolution(outputs, outputs, 3, 1, device)
        self.shortcut: nn.Module = nn.Identity()
        if inputs != outputs:
            self.shortcut = convolution(inputs, outputs, 1, stride, device)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    """Scores of the shapes, shape (n, 10), in pictures of shape (n, 3, SIZE, SIZE)."""

    def __init__(self, depth: int, device: Device) -> None:
        blocks = []
        inputs = WIDTHS[0]
        for width in WIDTHS:
            for _ in range((depth - 2) // 6):
                blocks.append(Block(inputs, width, 1 if inputs == width else 2, device))
                inputs = width
        self.first = convolution(3, WIDTHS[0], 3, 1, device)
        self.blocks = nn.Sequential(*blocks)
        self.last = nn.Linear(inputs, len(SHAPES), device=device)

    def forward(self, pictures: Tensor) -> Tensor:
        x = burn.astype(pictures, self.last.weight.dtype) / 127.5 - 1.0
        x = self.blocks(F.relu(self.first(x)))
        return self.last(x.mean(axis=(2, 3)))


def draw(path: Path, pictures: np.ndarray, labels: np.ndarray, predicted: np.ndarray) -> None:
    """Save pictures with what the network takes them for."""
    import matplotlib as mpl  # here: worker processes, which import this file, need no plots

    mpl.use("Agg")  # to a file: no display is needed
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 8, figsize=(11, 6.4), layout="constrained")
    for item, picture, label, found in zip(axes.flat, pictures, labels, predicted, strict=False):
        item.imshow(picture.transpose(1, 2, 0))
        item.set_axis_off()
        right = found == label
        title = SHAPES[found] if right else f"{SHAPES[found]}: a {SHAPES[label]}"
        item.set_title(title, fontsize=9, color="black" if right else "tab:red")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def depth(text: str) -> int:
    """Six convolutions for each block of the three stages, and two layers more."""
    number = int(text)
    if number < 8 or number % 6 != 2:
        raise argparse.ArgumentTypeError(f"{number} is not 8, 14, 20, 26, ...")
    return number


Batch = tuple[Tensor, Tensor]
"""Pictures, and the indices of their shapes."""


def main() -> None:
    """Train, evaluate, draw."""
    parser = argparse.ArgumentParser(description="Train a residual network to name shapes.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--depth", type=depth, default=20, help="layers: 8, 14, 20, 26, ...")
    parser.add_argument("--images", type=int, default=4096, help="pictures to train with")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2, help="processes that paint pictures")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out", "resnet"))
    options = parser.parse_args()

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    network = ResNet(options.depth, device)
    print(f"{options.images} pictures, {network.num_parameters} parameters, on {device.inner()}")

    loader = DataLoader(
        Shapes(options.images, seed=1),
        BATCH,
        shuffle=True,
        seed=options.seed,
        workers=options.workers,
        drop_last=True,
        device=device,
        transform=vary,
    )
    test_loader = DataLoader(Shapes(HELD_OUT, seed=2), 256, device=device)
    rate = burn.optim.schedules.one_cycle(LEARNING_RATE, options.epochs * len(loader))
    optimizer = burn.optim.AdamW(network, rate, weight_decay=WEIGHT_DECAY)

    def step(batch: Batch) -> dict[str, Tensor | float]:
        pictures, labels = batch
        rate = optimizer.learning_rate
        loss = F.cross_entropy(network(pictures), labels)
        optimizer.step(loss.backward())
        return {"loss": loss, "learning rate": rate}

    def scores(batch: Batch) -> tuple[Tensor, Tensor]:
        pictures, labels = batch
        return network(pictures), labels

    def test() -> dict[str, float]:
        return evaluate(
            scores, test_loader, model=network, accuracy=Accuracy(), loss=F.cross_entropy
        )

    with loader:
        fit(
            step,
            loader,
            epochs=options.epochs,
            evaluate=test,
            checkpoints=options.out / "checkpoints",
            parts={"network": network, "optimizer": optimizer},
            log=options.out / "log.jsonl",
            picture=options.out / "curves.png",
        )
    save(network, options.out / "network.safetensors")
    print(f"accuracy on the held-out pictures: {test()['accuracy']:.4f}")
    pictures, labels = next(iter(test_loader))
    with burn.no_grad():
        predicted = network.eval()(pictures).argmax(axis=1)
    draw(options.out / "shapes.png", pictures.numpy(), labels.numpy(), predicted.numpy())
    print(f"weights, log and pictures: {options.out}")


if __name__ == "__main__":
    try:
        main()
    except (burn.BurnError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)  # as shells count the signals
