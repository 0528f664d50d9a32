"""Train a small network to write like a book, character by character.

The text is the book of Genesis in the King James Version (examples/data/). The network sees the
characters so far and says how likely each one is to come next; three minutes on two CPU cores are
enough for it to spell, and to sound the part. It is a transformer, which keeps the keys and values
of what it has read in a cache, or an LSTM, which keeps a state.

    python examples/characters.py
    python examples/characters.py --network lstm --temperature 0.5 --top-k 10
    python examples/characters.py --device cuda --compile --steps 5000 --prompt "And Noah"

A log, curves, the weights and checkpoints are in out/characters-transformer. Killed and started
again, the program goes on where it was; when training is done, it only writes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import burn
from burn import Device, Tensor, nn
from burn.data import DataLoader, Windows
from burn.nn import functional as F
from burn.store import save
from burn.train import History, Perplexity, evaluate, fit

TEXT = Path(__file__).parent / "data" / "genesis.txt"

CONTEXT = 64  # characters that the network looks back
WIDTH = 96
HEADS = 4
LAYERS = 2
STATE = 192  # numbers that the LSTM remembers in each of its layers
BATCH = 32
LEARNING_RATE = 3e-3
WARM_UP = 30  # steps
WEIGHT_DECAY = 1e-2


class Text:
    """A text as numbers: the index of each character in the alphabet of the text."""

    def __init__(self, path: Path) -> None:
        characters = np.array(list(path.read_text(encoding="utf-8")))
        self.alphabet, numbers = np.unique(characters, return_inverse=True)
        self.numbers = numbers.astype(np.int32)

    def pieces(self) -> tuple[Windows, Windows]:
        """Pieces of CONTEXT + 1 characters: of the text, and of its last tenth, held out."""
        end = len(self.numbers) * 9 // 10
        first, last = self.numbers[:end], self.numbers[end:]
        return Windows(first, CONTEXT + 1, CONTEXT), Windows(last, CONTEXT + 1, CONTEXT)

    def encode(self, text: str) -> list[int]:
        """Numbers of characters; those that the text does not have are left out."""
        return [int(np.searchsorted(self.alphabet, item)) for item in text if item in self.alphabet]

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

    def forward(self, numbers: Tensor, cache: list[nn.KeyValueCache] | None = None) -> Tensor:
        """Scores of what comes next, shape (n, t, characters), after numbers of shape (n, t)."""
        start = cache[0].length if cache else 0
        positions = burn.arange(start, start + numbers.shape[1], device=numbers.device)
        x = self.characters(numbers) + self.positions(positions)
        return self.scores(self.layers(x, cache=cache, is_causal=True))

    def new_memory(self) -> list[nn.KeyValueCache]:
        """A cache that `forward` writes keys and values to."""
        return self.layers.new_cache(CONTEXT)

    def is_full(self, memory: list[nn.KeyValueCache]) -> bool:
        """Whether there is no room for another character."""
        return memory[0].length == CONTEXT


class LSTM(nn.Module):
    """Layers that hand a state on from each character to the next (Graves, 2013)."""

    def __init__(self, characters: int, device: Device) -> None:
        self.characters = nn.Embedding(characters, WIDTH, device=device)
        self.layers = nn.LSTM(WIDTH, STATE, LAYERS, batch_first=True, device=device)
        self.scores = nn.Linear(STATE, characters, device=device)

    def forward(self, numbers: Tensor, state: list[Tensor] | None = None) -> Tensor:
        """Scores of what comes next, shape (n, t, characters), after numbers of shape (n, t)."""
        output, last = self.layers(self.characters(numbers), tuple(state) if state else None)
        if state is not None:
            state[:] = last
        return self.scores(output)

    def new_memory(self) -> list[Tensor]:
        """A state that `forward` replaces by that after its last character."""
        return [burn.zeros((LAYERS, 1, STATE), device=self.scores.weight.device) for _ in "hc"]

    def is_full(self, state: list[Tensor]) -> bool:
        """Never: a state has one size."""
        return False


NETWORKS = {"transformer": Transformer, "lstm": LSTM}


def train(
    network: Transformer | LSTM,
    text: Text,
    steps: int,
    seed: int,
    out: Path,
    *,
    compiled: bool = False,
) -> History:
    """Train on pieces of the text in random order, and measure on the held-out ones."""
    device = network.scores.weight.device
    pieces, held_out = text.pieces()
    loader = DataLoader(pieces, BATCH, shuffle=True, seed=seed, device=device)
    test_loader = DataLoader(held_out, BATCH, device=device)
    rates = burn.optim.schedules
    rate = rates.product(
        rates.linear(LEARNING_RATE / WARM_UP, LEARNING_RATE, WARM_UP - 1), rates.cosine(1.0, steps)
    )
    optimizer = burn.optim.AdamW(network, rate, weight_decay=WEIGHT_DECAY)

    def step(numbers: Tensor) -> Tensor:
        loss = F.cross_entropy(network(numbers[:, :-1]), numbers[:, 1:])
        optimizer.step(loss.backward())
        return loss.detach()

    def scores(numbers: Tensor) -> tuple[Tensor, Tensor]:
        return network(numbers[:, :-1]), numbers[:, 1:]

    def test() -> dict[str, float]:
        return evaluate(scores, test_loader, model=network, perplexity=Perplexity())

    return fit(
        burn.compile(step) if compiled else step,
        loader,
        steps=steps,
        evaluate=test,
        checkpoints=out / "checkpoints",
        parts={"network": network, "optimizer": optimizer},
        log=out / "log.jsonl",
        picture=out / "curves.png",
    )


def choose(scores: Tensor, temperature: float, top_k: int) -> int:
    """Draw one of the `top_k` likeliest characters; the lower the temperature, the likelier."""
    if not temperature:
        return int(scores.argmax())
    values, numbers = burn.topk(scores / temperature, min(top_k, len(scores)))
    return int(numbers[burn.random.categorical(F.softmax(values))])


@burn.no_grad()
def write(
    network: Transformer | LSTM, prompt: list[int], length: int, temperature: float, top_k: int
) -> list[int]:
    """Go on from a prompt, one character after the other."""
    device = network.scores.weight.device
    numbers = list(prompt)
    memory, unread = network.new_memory(), numbers[-CONTEXT:]
    for _ in range(length):
        scores = network(burn.asarray([unread], device=device), memory)
        numbers.append(choose(scores[0, -1], temperature, top_k))
        unread = numbers[-1:]
        if network.is_full(memory):  # read the last half of it again, and go on behind that
            memory, unread = network.new_memory(), numbers[-CONTEXT // 2 :]
    return numbers


def main() -> None:
    """Train, evaluate, write."""
    parser = argparse.ArgumentParser(description="Train a network to write like a book.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--network", choices=NETWORKS, default="transformer")
    parser.add_argument("--text", type=Path, default=TEXT, help="a plain text to learn from")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--compile", action="store_true", help="make a program of the step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prompt", default="In the beginning ")
    parser.add_argument("--length", type=int, default=400, help="characters to write")
    parser.add_argument("--temperature", type=float, default=0.8, help="0: always the likeliest")
    parser.add_argument("--top-k", type=int, default=30, help="likeliest characters to draw from")
    parser.add_argument("--out", type=Path, help="a folder; out/characters-NETWORK if left out")
    options = parser.parse_args()
    if options.temperature < 0 or options.top_k < 1:
        parser.error("--temperature is 0 or more, --top-k 1 or more")

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    text = Text(options.text)
    network = NETWORKS[options.network](len(text.alphabet), device)
    count = network.num_parameters
    print(f"{len(text.numbers)} characters, {count} parameters, on {device.inner()}")
    out = options.out or Path("out", f"characters-{options.network}")
    history = train(network, text, options.steps, options.seed, out, compiled=options.compile)
    save(network, out / "network.safetensors", metadata={"alphabet": "".join(text.alphabet)})
    print(f"held-out perplexity: {history['perplexity'][-1]:.2f}")
    prompt = text.encode(options.prompt) or [0]
    numbers = write(network, prompt, options.length, options.temperature, options.top_k)
    print(text.decode(numbers))


if __name__ == "__main__":
    try:
        main()
    except (burn.BurnError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)  # as shells count the signals
