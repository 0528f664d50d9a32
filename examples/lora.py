"""Teach a quantized network a new task by small matrices beside its weights (LoRA).

The network of examples/digits.py reads handwritten digits. Its weights become integers of 4 bits,
and stay as they are. Beside each of them two thin matrices learn to read digits that lie on their
side; at the end their product is added to the restored weight, and the sum is quantized again.

    python examples/lora.py
    python examples/lora.py --device cuda --rank 4 --bits 8
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import burn
import digits
from burn import Device, Tensor, nn
from burn.nn import functional as F
from burn.quantization import QuantScheme, QuantValue, ScaleDType

VALUES = {4: QuantValue.Q4S, 8: QuantValue.Q8S}
BLOCK = (1, 32)  # weights that share a scale: 32 inputs of an output


class LoRALinear(nn.Module):
    """A linear layer that stays as it is, and two matrices that are trained (Hu et al., 2021).

    The output is ``base(x) + x @ down.T @ up.T * scale``. At first `up` is zero.
    """

    def __init__(self, base: nn.Linear, rank: int, scale: float = 2.0) -> None:
        device = base.weight.device
        self.base = base.freeze()
        self.scale = scale
        self.down = nn.init.normal(
            (rank, base.in_features), std=base.in_features**-0.5, device=device
        )
        self.up = nn.init.zeros((base.out_features, rank), device=device)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., out_features) for an input of shape (..., in_features)."""
        change = F.linear(F.linear(x, self.down, transposed=True), self.up, transposed=True)
        return self.base(x) + self.scale * change

    @burn.no_grad()
    def merged(self) -> nn.Linear:
        """A linear layer of floats that computes the same."""
        change = self.up.detach() @ self.down.detach()
        self.base.weight.assign(self.base.weight.dequantize() + self.scale * change)
        return self.base


def adapt(network: nn.Sequential, rank: int) -> None:
    """Put matrices of a rank beside all linear layers; nothing else is trained from then on."""
    network.freeze()
    for index, layer in enumerate(network):
        if isinstance(layer, nn.Linear):
            network[index] = LoRALinear(layer, rank)


def merge(network: nn.Sequential) -> None:
    """Add what was trained to the weights."""
    for index, layer in enumerate(network):
        if isinstance(layer, LoRALinear):
            network[index] = layer.merged()


def on_their_side(data: digits.Digits) -> digits.Digits:
    """The same images, turned by 90 degrees."""
    images = data.images.numpy().reshape(-1, 8, 8)
    turned = np.rot90(images, axes=(1, 2)).reshape(-1, 64).copy()
    return digits.Digits(burn.asarray(turned, device=data.images.device), data.labels)


def main() -> None:
    """Train, quantize, adapt, merge."""
    parser = argparse.ArgumentParser(description="Teach a quantized network a new task.")
    parser.add_argument("--device", help="such as cpu or cuda:1; the best one there if left out")
    parser.add_argument("--bits", type=int, choices=VALUES, default=4)
    parser.add_argument("--rank", type=int, default=8, help="rows of the matrices that are trained")
    parser.add_argument("--epochs", type=int, default=30, help="times through the images, twice")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    device = Device(options.device) if options.device else Device.default()
    device = device.autodiff()
    device.seed(options.seed)
    upright = digits.load_data(device, "float32")
    turned = [on_their_side(one) for one in upright]

    def report(title: str) -> None:
        shares = [digits.accuracy(network, held_out) for _, held_out in (upright, turned)]
        print(f"{title}: {shares[0]:.4f} upright, {shares[1]:.4f} on their side")

    network = digits.dense("float32", device)
    digits.train(network, upright[0], options.epochs)
    report("trained")

    scheme = QuantScheme(VALUES[options.bits]).per_block(BLOCK, ScaleDType.F16)
    print(network.quantize(scheme))
    report(f"in {options.bits} bits")

    adapt(network, options.rank)
    trained = sum(x.size for x in network.parameters() if x.is_require_grad)
    print(f"{trained} of {network.num_parameters} numbers are trained")
    digits.train(network, turned[0], options.epochs)
    report("adapted")

    merge(network)
    report("merged")
    network.quantize(scheme)
    report(f"merged, in {options.bits} bits")


if __name__ == "__main__":
    try:
        main()
    except burn.BurnError as error:
        sys.exit(str(error))
