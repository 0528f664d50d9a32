"""Train a variational autoencoder to draw handwritten digits.

The encoder gives each image a normal distribution in a plane, the decoder draws an image for each
of its points; both are trained to lose little of the image and to keep the distributions close to
the standard one (Kingma and Welling, 2014, "Auto-Encoding Variational Bayes"). Then any point of
the plane is a digit.

    python examples/vae.py
    python examples/vae.py --device cuda --epochs 1000 --seed 7

Pictures, curves, a log, the weights and checkpoints are in out/vae. Killed and started again, the
program goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import NormalDist

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import burn
from burn import Device, Tensor, nn
from burn.data import Arrays, DataLoader, split
from burn.nn import functional as F
from burn.store import save
from burn.train import EarlyStopping, Mean, evaluate, fit

mpl.use("Agg")  # pictures go to files: no display is needed

SIDE = 8  # pixels of an image
PLANE = 2  # axes of the codes
WIDTH = 256
BATCH = 64
LEARNING_RATE = 2e-3
SAVE_EVERY = 500  # steps
PATIENCE = 20  # epochs without a better result on the held-out images


class Autoencoder(nn.Module):
    """From images of shape (n, 64) to distributions of codes, and from codes to images."""

    def __init__(self, device: Device) -> None:
        def layers(*widths: int) -> nn.Sequential:
            first, second, third, last = widths
            return nn.Sequential(
                nn.Linear(first, second, device=device),
                nn.ReLU(),
                nn.Linear(second, third, device=device),
                nn.ReLU(),
                nn.Linear(third, last, device=device),
            )

        self.encoder = layers(SIDE**2, WIDTH, WIDTH, 2 * PLANE)
        self.decoder = layers(PLANE, WIDTH, WIDTH, SIDE**2)

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the variance of each image's codes, both of shape (n, 2)."""
        codes = self.encoder(images)
        return codes[:, :PLANE], codes[:, PLANE:]

    def decode(self, codes: Tensor) -> Tensor:
        """Images, shape (n, 64), of codes of shape (n, 2)."""
        return F.sigmoid(self.decoder(codes))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Reconstruction loss, and divergence of the codes from the standard normal distribution.

        Both are in nats, of shape (n,). Their sum is the negative evidence lower bound.
        """
        mean, log_variance = self.encode(images)
        noise = burn.random.normal(mean.shape, dtype=mean.dtype, device=mean.device)
        scores = self.decoder(mean + burn.exp(log_variance / 2) * noise)
        reconstruction = F.binary_cross_entropy_with_logits(scores, images, reduction="none")
        divergence = (mean**2 + burn.exp(log_variance) - log_variance - 1) / 2
        return reconstruction.sum(axis=1), divergence.sum(axis=1)


def tiled(images: np.ndarray, columns: int) -> np.ndarray:
    """Images of shape (n, 64) side by side, a row below the other, in white frames of a pixel."""
    framed = np.pad(images.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)))
    grid = framed.reshape(-1, columns, SIDE + 2, SIDE + 2)
    return grid.swapaxes(1, 2).reshape(-1, columns * (SIDE + 2))


@burn.no_grad()
def draw(path: Path, network: Autoencoder, images: Tensor, labels: Tensor) -> None:
    """Save a picture: images and their reconstructions, new ones, and the plane of the codes."""
    device = network.encoder[0].weight.device

    def decoded(codes: np.ndarray | Tensor) -> np.ndarray:
        return network.decode(burn.asarray(codes, dtype="float32", device=device)).numpy()

    means = network.encode(images)[0]
    rows = (5, 10, SIDE**2)
    pairs = np.stack([images.numpy()[:50].reshape(rows), decoded(means[:50]).reshape(rows)], axis=1)
    samples = decoded(burn.random.normal((100, PLANE), device=device))
    steps = [NormalDist().inv_cdf((index + 0.5) / 16) for index in range(16)]  # equally likely
    walk = decoded(np.stack(np.meshgrid(steps, steps[::-1]), axis=-1).reshape(-1, PLANE))

    figure, axes = plt.subplots(1, 4, figsize=(17, 4.6), layout="constrained")
    for item, title, pictures, columns in (
        (axes[0], "Held-out images, above their reconstructions", pairs.reshape(-1, SIDE**2), 10),
        (axes[1], "New images, at random", samples, 10),
        (axes[2], "A walk through the plane", walk, 16),
    ):
        item.imshow(tiled(pictures, columns), cmap="gray_r")
        item.set_title(title)
        item.set_axis_off()
    points = axes[3].scatter(
        *means.numpy().T, c=labels.numpy(), cmap="tab10", vmin=-0.5, vmax=9.5, s=12
    )
    axes[3].set(title="Where the held-out images lie", aspect="equal")
    figure.colorbar(points, ax=axes[3], ticks=range(10), label="digit")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    """Train, evaluate, draw."""
    parser = argparse.ArgumentParser(description="Train an autoencoder to draw digits.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--epochs", type=int, default=300, help="times through the images, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out", "vae"))
    options = parser.parse_args()

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype("float32")
    training, held_out = split(Arrays(images, labels), [0.8, 0.2], seed=0)
    network = Autoencoder(device)
    print(f"{len(training)} images, {network.num_parameters} parameters, on {device.inner()}")

    loader = DataLoader(training, BATCH, shuffle=True, seed=options.seed, device=device)
    test_loader = DataLoader(held_out, len(held_out), device=device)
    optimizer = burn.optim.Adam(network, LEARNING_RATE)

    def step(batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        reconstruction, divergence = network(batch[0])
        loss = burn.mean(reconstruction + divergence)
        optimizer.step(loss.backward())
        return {
            "loss": loss,
            "reconstruction": burn.mean(reconstruction),
            "divergence": burn.mean(divergence),
        }

    def test() -> dict[str, float]:
        def losses(batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
            reconstruction, divergence = network(batch[0])
            return {
                "loss": reconstruction + divergence,
                "reconstruction": reconstruction,
                "divergence": divergence,
            }

        means = {name: Mean() for name in ("loss", "reconstruction", "divergence")}
        return evaluate(losses, test_loader, model=network, **means)

    fit(
        step,
        loader,
        epochs=options.epochs,
        evaluate=test,
        stop=EarlyStopping("val_loss", patience=PATIENCE, restore=network),
        checkpoints=options.out / "checkpoints",
        parts={"network": network, "optimizer": optimizer},
        save_every=SAVE_EVERY,
        log=options.out / "log.jsonl",
        picture=options.out / "curves.png",
    )
    save(network, options.out / "network.safetensors")
    print(f"loss on the held-out images: {test()['loss']:.2f} nats each")
    draw(options.out / "digits.png", network, *next(iter(test_loader)))
    print(f"weights, log and pictures: {options.out}")


if __name__ == "__main__":
    try:
        main()
    except (burn.BurnError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)  # as shells count the signals
