"""Train a small transformer to write like a book, character by character.

The text is the book of Genesis in the King James Version (examples/data/). The network sees the
characters so far and says how likely each one is to come next; three minutes on two CPU cores are
enough for it to spell, and to sound the part.

    python examples/characters.py
    python examples/characters.py --device cuda --steps 5000 --prompt "And Noah"
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import burn
from burn import Device, Tensor, nn
from burn.nn import functional as F

TEXT = Path(__file__).parent / "data" / "genesis.txt"

CONTEXT = 64  # characters that the network looks back
WIDTH = 96
HEADS = 4
LAYERS = 2
BATCH = 32
LEARNING_RATE = 3e-3
WARM_UP = 30  # steps
WEIGHT_DECAY = 1e-2


class Text:
    """A text as numbers: the index of each character in the alphabet of the text."""

    def __init__(self, path: Path, device: Device) -> None:
        characters = np.array(list(path.read_text(encoding="utf-8")))
        self.alphabet, numbers = np.unique(characters, return_inverse=True)
        self.numbers = burn.asarray(numbers, dtype=device.settings.int_dtype, device=device)

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        """Pieces of the text from random positions, and the characters that follow each one.

        Both have the shape (size, CONTEXT).
        """
        device = self.numbers.device
        starts = burn.random.integers((size, 1), 0, len(self.numbers) - CONTEXT, device=device)
        positions = starts + burn.arange(CONTEXT, device=device)
        return self.numbers[positions], self.numbers[positions + 1]

    def encode(self, text: str) -> list[int]:
        """Numbers of characters; those that the text does not have are left out."""
        return [int(np.searchsorted(self.alphabet, one)) for one in text if one in self.alphabet]

    def decode(self, numbers: list[int]) -> str:
        """Characters of numbers."""
        return "".join(self.alphabet[numbers])


class Transformer(nn.Module):
    """Attention and two linear layers, repeated (Radford et al., 2019, "GPT-2")."""

    def __init__(self, characters: int, device: Device) -> None:
        self.characters = nn.Embedding(characters, WIDTH, device=device)
        self.positions = nn.Embedding(CONTEXT, WIDTH, device=device)
        layers = [
            nn.TransformerEncoderLayer(
                WIDTH,
                HEADS,
                4 * WIDTH,
                dropout=0.0,
                activation=nn.GELU("tanh"),
                norm_first=True,
                device=device,
            )
            for _ in range(LAYERS)
        ]
        self.layers = nn.TransformerEncoder(layers, norm=nn.LayerNorm(WIDTH, device=device))
        self.scores = nn.Linear(WIDTH, characters, device=device)
        for table in (self.characters, self.positions):
            table.weight = nn.init.normal(table.weight.shape, std=0.1, device=device)

    def forward(self, numbers: Tensor) -> Tensor:
        """Scores of what comes next, shape (n, t, characters), after numbers of shape (n, t)."""
        positions = burn.arange(numbers.shape[1], device=numbers.device)
        x = self.characters(numbers) + self.positions(positions)
        return self.scores(self.layers(x, is_causal=True))


def train(network: Transformer, text: Text, steps: int) -> float:
    """Train on random pieces of the text; the mean loss of the last tenth of the steps."""
    last = max(1, steps // 10)
    recent: list[float] = []
    rates = burn.optim.schedules
    rate = rates.product(
        rates.linear(LEARNING_RATE / WARM_UP, LEARNING_RATE, WARM_UP - 1), rates.cosine(1.0, steps)
    )
    optimizer = burn.optim.AdamW(network, rate, weight_decay=WEIGHT_DECAY)
    with Progress(
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TimeElapsedColumn(),
    ) as progress:
        bar = progress.add_task("training", total=steps, loss=float("nan"))
        for _ in range(steps):
            pieces, following = text.batch(BATCH)
            loss = F.cross_entropy(network(pieces), following)
            optimizer.step(loss.backward())
            recent = (
                [*recent[1 - last :], float(loss.detach())] if last > 1 else [float(loss.detach())]
            )
            progress.update(bar, advance=1, loss=sum(recent) / len(recent))
    return sum(recent) / len(recent)


@burn.no_grad()
def write(network: Transformer, text: Text, prompt: str, length: int) -> str:
    """Go on from a prompt, drawing one character after the other."""
    device = text.numbers.device
    numbers = text.encode(prompt) or text.encode("\n")
    for _ in range(length):
        seen = burn.asarray([numbers[-CONTEXT:]], device=device)
        chances = F.softmax(network(seen)[0, -1, :] / 0.8)
        numbers.append(int(burn.random.categorical(chances)))
    return text.decode(numbers)


def main() -> None:
    """Train, and write a sample."""
    parser = argparse.ArgumentParser(description="Train a transformer to write like a book.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--text", type=Path, default=TEXT, help="a plain text to learn from")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prompt", default="In the beginning ")
    parser.add_argument("--length", type=int, default=400, help="characters to write")
    options = parser.parse_args()

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    text = Text(options.text, device)
    network = Transformer(len(text.alphabet), device)
    count = network.num_parameters
    print(f"{len(text.numbers)} characters, {count} parameters, on {device.inner()}")

    loss = train(network, text, options.steps)
    print(f"training loss: {loss:.3f} nats per character")
    print(write(network, text, options.prompt, options.length))


if __name__ == "__main__":
    try:
        main()
    except burn.BurnError as error:
        sys.exit(str(error))
