"""Networks as a user of burn writes them; torch_models.py has the same, with the same names."""

from __future__ import annotations

import itertools

import burn
from burn import Tensor, nn
from burn.nn import functional as F

__all__ = ["CNN", "GPT", "MLP", "Block", "LanguageModel", "ResNet18", "ViT"]


class MLP(nn.Sequential):
    """Linear layers of some widths, with ReLU between them."""

    def __init__(self, *widths: int) -> None:
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        super().__init__(*layers[:-1])


class CNN(nn.Sequential):
    """Two of convolution, batch normalization and pooling, and a linear layer."""

    def __init__(self, size: int, channels: tuple[int, ...] = (1, 32, 64)) -> None:
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(channels):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after)]
            layers += [nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Flatten(), nn.Linear(channels[-1] * (size // 4) ** 2, 10)]
        super().__init__(*layers)


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet18(nn.Module):
    """ResNet-18 (He et al., 2015, arXiv:1512.03385)."""

    def __init__(self, classes: int, width: int = 64) -> None:
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layers = []
        channels = width
        for stage in range(4):
            wider = width * 2**stage
            self.layers += [
                Residual(channels, wider, 1 if stage == 0 else 2),
                Residual(wider, wider, 1),
            ]
            channels = wider
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for layer in self.layers:
            x = layer(x)
        return self.fc(x.mean(axis=(2, 3)))


class Attention(nn.Module):
    """Self-attention, with one product for queries, keys and values."""

    def __init__(self, width: int, heads: int, *, is_causal: bool) -> None:
        self.heads, self.is_causal = heads, is_causal
        self.joined = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        split = self.joined(x).reshape((batch, length, 3, self.heads, width // self.heads))
        query, key, value = burn.unstack(split.permute_dims((2, 0, 3, 1, 4)))
        mixed = F.attention(query, key, value, is_causal=self.is_causal)
        return self.out(mixed.permute_dims((0, 2, 1, 3)).reshape((batch, length, width)))


class Block(nn.Module):
    """Of a transformer: attention and a perceptron, with normalization before each."""

    def __init__(self, width: int, heads: int, *, is_causal: bool = False) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, is_causal=is_causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A decoder of tokens, as GPT-2 (Radford et al., 2019)."""

    def __init__(self, vocabulary: int, length: int, width: int, layers: int, heads: int) -> None:
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = [Block(width, heads, is_causal=True) for _ in range(layers)]
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = burn.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class LanguageModel(nn.Module):
    """Scores of the next token, by an LSTM."""

    def __init__(self, vocabulary: int, width: int) -> None:
        self.tokens = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        output, _ = self.lstm(self.tokens(tokens))
        return self.head(output)


class ViT(nn.Module):
    """A vision transformer (Dosovitskiy et al., 2020, arXiv:2010.11929)."""

    def __init__(
        self, size: int, patch: int, width: int, layers: int, heads: int, classes: int
    ) -> None:
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.init.normal((1, 1, width), std=0.02)
        self.positions = nn.init.normal((1, (size // patch) ** 2 + 1, width), std=0.02)
        self.blocks = [Block(width, heads) for _ in range(layers)]
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images)
        x = x.reshape((*x.shape[:2], -1)).mT
        x = burn.concat([burn.broadcast_to(self.class_token, (len(x), 1, x.shape[-1])), x], axis=1)
        x = x + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))
