"""Teach a network that reads handwritten digits to read digits that lie on their side.

Two ways, both of which train a small part of the numbers and save it in a small file of its own:

frozen
    All layers stay as they are but the last ones.
lora
    The weights become integers of 4 bits, and stay as they are. Beside each of them two thin
    matrices are trained (Hu et al., 2021, arXiv:2106.09685); at the end their product is added to
    the restored weight, and the sum is quantized again.

    python examples/finetune.py --method lora
    python examples/finetune.py --method frozen --layers 2
    python examples/finetune.py --device cuda --rank 4 --bits 8
    python examples/digits.py --out out/digits
    python examples/finetune.py --weights out/digits/network.safetensors

The weights, what was trained, a log and checkpoints are in out/finetune. Killed and started again,
the program goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import burn
import digits
from burn import Device, nn
from burn.quantization import QuantScheme, QuantValue, ScaleDType
from burn.store import load_into, save

VALUES = {4: QuantValue.Q4S, 8: QuantValue.Q8S}
BLOCK = (1, 32)  # weights that share a scale: 32 inputs of an output


def thaw(network: nn.Sequential, count: int) -> None:
    """Train the last linear layers, so many of them, and nothing else."""
    network.freeze()
    for layer in [item for item in network if isinstance(item, nn.Linear)][-count:]:
        layer.unfreeze()


def on_their_side(data: digits.Digits) -> digits.Digits:
    """The same images, turned by 90 degrees."""
    images, labels = data
    squares = images.reshape((-1, 8, 8))
    return burn.flip(burn.permute_dims(squares, (0, 2, 1)), axis=1).reshape((-1, 64)), labels


def scheme(bits: int) -> QuantScheme:
    """Integers of some bits, and a scale for each block of them."""
    return QuantScheme(VALUES[bits]).per_block(BLOCK, ScaleDType.F16)


def prepared(weights: Path, options: argparse.Namespace, device: Device) -> nn.Sequential:
    """The network of a file, ready to learn a new task."""
    network = digits.dense("float32", device)
    load_into(network, weights)
    if options.method == "frozen":
        thaw(network, options.layers)
    else:
        network.quantize(scheme(options.bits))
        nn.add_lora(network, options.rank, alpha=2.0 * options.rank)
    return network


def main() -> None:
    """Train, choose what to train on, do so, save it, load it."""
    parser = argparse.ArgumentParser(description="Teach a trained network a new task.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--method", choices=["frozen", "lora"], default="lora")
    parser.add_argument("--weights", type=Path, help="of digits.py --out; trained if left out")
    parser.add_argument("--layers", type=int, default=1, help="frozen: last layers to train")
    parser.add_argument("--bits", type=int, choices=VALUES, default=4, help="lora: of the weights")
    parser.add_argument("--rank", type=int, default=8, help="lora: rows of the matrices")
    parser.add_argument("--epochs", type=int, default=30, help="times through the images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out", "finetune"))
    options = parser.parse_args()
    if options.layers < 1 or options.rank < 1:
        parser.error("--layers and --rank are 1 or more")

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    upright = digits.load_data(device, "float32")
    turned = [on_their_side(item) for item in upright]
    network = digits.dense("float32", device)
    count = network.num_parameters
    print(f"{len(turned[0][0])} images, {count} parameters, on {device.inner()}")

    def report(title: str, network: nn.Module) -> None:
        shares = [digits.accuracy(network, held_out) for _, held_out in (upright, turned)]
        print(f"{title}: {shares[0]:.4f} upright, {shares[1]:.4f} on their side")

    weights = options.weights or options.out / "upright.safetensors"
    if not options.weights and not weights.exists():
        digits.train(network, upright[0], options.epochs, options.seed)
        save(network, weights)
    device.seed(options.seed)  # the same numbers, whether the weights were there or not
    network = prepared(weights, options, device)
    report("before", network)
    chosen = {path: x for path, x in network.named_parameters() if x.is_require_grad}
    print(f"{sum(x.size for x in chosen.values())} of {count} numbers are trained")
    folder = options.out / options.method
    digits.train(network, turned[0], options.epochs, options.seed, folder)
    report("after", network)

    save(chosen, folder / "trained.safetensors")
    network = prepared(weights, options, device)
    load_into(network, folder / "trained.safetensors", strict=False)
    report("loaded", network)
    if options.method == "lora":
        nn.merge_lora(network)
        report("merged", network)
        network.quantize(scheme(options.bits))
        report(f"merged, in {options.bits} bits", network)
    save(network, folder / "network.safetensors")
    for path in sorted([weights, *folder.glob("*.safetensors")]):
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    try:
        main()
    except (burn.BurnError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)  # as shells count the signals
