"""Known models, written with `burn.nn` as a user would, and how they take weights of transformers.

Each class has the table `names`: from patterns of the paths in state dicts of the library
transformers to paths here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import burn
from burn import Tensor, nn
from burn.nn import functional as F


class Pretrained(nn.Module):
    """A model that loads weights of another library."""

    names: ClassVar[dict[str, str | None]]
    """Replacements of patterns, all applied in order. What None stands for is left out: tied."""

    def load(self, state: Mapping[str, Any]) -> Pretrained:
        """Take all weights of a state dict of transformers."""
        found = {}
        for path, value in state.items():
            for pattern, name in self.names.items():
                if name is not None:
                    path = re.sub(pattern, name, path)  # noqa: PLW2901 — renamed step by step
                elif re.fullmatch(pattern, path):
                    break
            else:
                found[path] = self.converted(path, value)
        self.load_state_dict(nn.split_attention(found))
        return self

    def converted(self, path: str, value: Any) -> Any:
        """A value in the layout of this library."""
        del path
        return value


def generate(model: GPT2 | Llama, tokens: Tensor, count: int) -> Tensor:
    """The most probable next tokens, one after another, with a cache."""
    caches = model.new_cache(tokens.shape[1] + count)
    found = []
    for _ in range(count):
        tokens = burn.argmax(model(tokens, caches)[:, -1], axis=-1, keepdims=True)
        found.append(tokens)
    return burn.concat(found, axis=1)


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU as GPT-2 computes it."""
    return F.gelu(x, approximate="tanh")


class GPT2(Pretrained):
    """Radford et al., "Language Models are Unsupervised Multitask Learners", 2019."""

    names: ClassVar = {
        r"lm_head\.weight": None,
        r"transformer\.wte": "tokens",
        r"transformer\.wpe": "positions",
        r"transformer\.h\.": "body.layers.",
        r"transformer\.ln_f": "body.norm",
        r"ln_(\d)": r"norm\1",
        r"attn\.c_attn\.": "self_attn.in_proj_",
        r"attn\.c_proj": "self_attn.out_proj",
        r"mlp\.c_fc": "linear1",
        r"mlp\.c_proj": "linear2",
    }

    def __init__(
        self,
        vocabulary: int,
        max_length: int,
        embed_dim: int,
        num_layers: int,
        num_heads: int,
        **options: Any,
    ) -> None:
        self.tokens = nn.Embedding(vocabulary, embed_dim, **options)
        self.positions = nn.Embedding(max_length, embed_dim, **options)
        layers = [
            nn.TransformerEncoderLayer(
                embed_dim,
                num_heads,
                4 * embed_dim,
                activation=gelu_tanh,
                norm_first=True,
                **options,
            )
            for _ in range(num_layers)
        ]
        self.body = nn.TransformerEncoder(layers, norm=nn.LayerNorm(embed_dim, **options))

    def forward(self, tokens: Tensor, caches: list[nn.KeyValueCache] | None = None) -> Tensor:
        """Logits of the tokens that follow each position."""
        start = caches[0].length if caches else 0
        positions = burn.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        x = self.body(x, cache=caches, is_causal=True)
        return F.linear(x, self.tokens.weight, transposed=True)

    def new_cache(self, max_length: int) -> list[nn.KeyValueCache]:
        """Caches of all layers."""
        return self.body.new_cache(max_length)

    def converted(self, path: str, value: Any) -> Any:
        """Matrices of the layers are (in, out) there."""
        is_matrix = path.startswith("body") and len(value.shape) == 2
        return value.T if is_matrix else value


class LlamaLayer(nn.Module):
    """Attention with grouped queries and rotary positions, and a gated feed-forward network."""

    def __init__(
        self,
        embed_dim: int,
        feed_forward_dim: int,
        num_heads: int,
        num_key_value_heads: int,
        rotary: nn.RotaryEncoding,
        **options: Any,
    ) -> None:
        self.norm1 = nn.RMSNorm(embed_dim, 1e-6, **options)
        self.attention = nn.MultiHeadAttention(
            embed_dim,
            num_heads,
            num_key_value_heads=num_key_value_heads,
            bias=False,
            is_causal=True,
            rotary=rotary,
            **options,
        )
        self.norm2 = nn.RMSNorm(embed_dim, 1e-6, **options)
        self.gate = nn.Linear(embed_dim, feed_forward_dim, bias=False, **options)
        self.up = nn.Linear(embed_dim, feed_forward_dim, bias=False, **options)
        self.down = nn.Linear(feed_forward_dim, embed_dim, bias=False, **options)

    def forward(self, x: Tensor, cache: nn.KeyValueCache | None = None) -> Tensor:
        """Features of the same shape."""
        x = x + self.attention(self.norm1(x), cache=cache)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(Pretrained):
    """Touvron et al., 2023, arXiv:2302.13971."""

    names: ClassVar = {
        r"lm_head": "head",
        r"model\.embed_tokens": "tokens",
        r"model\.": "",
        r"input_layernorm": "norm1",
        r"post_attention_layernorm": "norm2",
        r"mlp\.(\w+)_proj": r"\1",
        r"self_attn\.q_proj": "attention.query",
        r"self_attn\.k_proj": "attention.key",
        r"self_attn\.v_proj": "attention.value",
        r"self_attn\.o_proj": "attention.output",
    }

    def __init__(
        self,
        vocabulary: int,
        max_length: int,
        embed_dim: int,
        feed_forward_dim: int,
        num_layers: int,
        num_heads: int,
        num_key_value_heads: int,
        **options: Any,
    ) -> None:
        self.tokens = nn.Embedding(vocabulary, embed_dim, **options)
        rotary = nn.RotaryEncoding(embed_dim // num_heads, max_length)
        heads = num_heads, num_key_value_heads
        self.layers = [
            LlamaLayer(embed_dim, feed_forward_dim, *heads, rotary, **options)
            for _ in range(num_layers)
        ]
        self.norm = nn.RMSNorm(embed_dim, 1e-6, **options)
        self.head = nn.Linear(embed_dim, vocabulary, bias=False, **options)

    def forward(self, tokens: Tensor, caches: list[nn.KeyValueCache] | None = None) -> Tensor:
        """Logits of the tokens that follow each position."""
        x = self.tokens(tokens)
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers), strict=True):
            x = layer(x, cache)
        return self.head(self.norm(x))

    def new_cache(self, max_length: int) -> list[nn.KeyValueCache]:
        """Caches of all layers."""
        return [nn.KeyValueCache(max_length) for _ in self.layers]


class BERT(Pretrained):
    """Devlin et al., 2018, arXiv:1810.04805, with the head that fills in masked tokens."""

    names: ClassVar = {
        r"cls\.predictions\.decoder\..*": None,
        r"cls\.predictions\.bias": "bias",
        r"cls\.predictions\.transform\.LayerNorm": "head_norm",
        r"cls\.predictions\.transform\.dense": "head",
        r"bert\.embeddings\.word_embeddings": "tokens",
        r"bert\.embeddings\.position_embeddings": "positions",
        r"bert\.embeddings\.token_type_embeddings": "segments",
        r"bert\.embeddings\.LayerNorm": "norm",
        r"bert\.encoder\.layer\.": "body.layers.",
        r"attention\.self\.": "self_attn.",
        r"attention\.output\.dense": "self_attn.output",
        r"attention\.output\.LayerNorm": "norm1",
        r"intermediate\.dense": "linear1",
        r"(?<=\d\.)output\.dense": "linear2",
        r"(?<=\d\.)output\.LayerNorm": "norm2",
    }

    def __init__(
        self,
        vocabulary: int,
        max_length: int,
        embed_dim: int,
        feed_forward_dim: int,
        num_layers: int,
        num_heads: int,
        **options: Any,
    ) -> None:
        self.tokens = nn.Embedding(vocabulary, embed_dim, **options)
        self.positions = nn.Embedding(max_length, embed_dim, **options)
        self.segments = nn.Embedding(2, embed_dim, **options)
        self.norm = nn.LayerNorm(embed_dim, 1e-12, **options)
        layers = [
            nn.TransformerEncoderLayer(
                embed_dim, num_heads, feed_forward_dim, activation="gelu", epsilon=1e-12, **options
            )
            for _ in range(num_layers)
        ]
        self.body = nn.TransformerEncoder(layers)
        self.head = nn.Linear(embed_dim, embed_dim, **options)
        self.head_norm = nn.LayerNorm(embed_dim, 1e-12, **options)
        self.bias = burn.zeros(vocabulary, **options)

    def forward(self, tokens: Tensor, segments: Tensor, padding: Tensor) -> Tensor:
        """Logits of the token of each position; `padding` is true where there is none."""
        positions = self.positions(burn.arange(tokens.shape[1], device=tokens.device))
        x = self.norm(self.tokens(tokens) + self.segments(segments) + positions)
        x = self.body(x, key_padding_mask=padding)
        x = self.head_norm(F.gelu(self.head(x)))
        return F.linear(x, self.tokens.weight, self.bias, transposed=True)


class ViT(Pretrained):
    """Dosovitskiy et al., 2020, arXiv:2010.11929."""

    names: ClassVar = {
        r"vit\.embeddings\.cls_token": "class_token",
        r"vit\.embeddings\.position_embeddings": "positions",
        r"vit\.embeddings\.patch_embeddings\.projection": "patches",
        r"vit\.layers\.": "body.layers.",
        r"vit\.layernorm": "body.norm",
        r"layernorm_before": "norm1",
        r"layernorm_after": "norm2",
        r"attention\.q_proj": "self_attn.query",
        r"attention\.k_proj": "self_attn.key",
        r"attention\.v_proj": "self_attn.value",
        r"attention\.o_proj": "self_attn.output",
        r"mlp\.fc(\d)": r"linear\1",
    }

    def __init__(
        self,
        classes: int,
        image_size: int,
        patch_size: int,
        embed_dim: int,
        feed_forward_dim: int,
        num_layers: int,
        num_heads: int,
        **options: Any,
    ) -> None:
        self.patches = nn.Conv2d(3, embed_dim, patch_size, patch_size, **options)
        count = (image_size // patch_size) ** 2
        self.class_token = burn.zeros((1, 1, embed_dim), **options)
        self.positions = nn.init.normal((1, count + 1, embed_dim), 0.0, 0.02, **options)
        layers = [
            nn.TransformerEncoderLayer(
                embed_dim,
                num_heads,
                feed_forward_dim,
                activation="gelu",
                norm_first=True,
                epsilon=1e-12,
                **options,
            )
            for _ in range(num_layers)
        ]
        self.body = nn.TransformerEncoder(layers, norm=nn.LayerNorm(embed_dim, 1e-12, **options))
        self.classifier = nn.Linear(embed_dim, classes, **options)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of the classes, for images of shape (N, 3, H, W)."""
        patches = self.patches(images)
        patches = burn.reshape(patches, (*patches.shape[:2], -1)).mT
        first = burn.broadcast_to(self.class_token, (len(images), *self.class_token.shape[1:]))
        x = self.body(burn.concat([first, patches], axis=1) + self.positions)
        return self.classifier(x[:, 0])


def convolution(
    inputs: int, outputs: int, kernel_size: int, stride: int = 1, **options: Any
) -> nn.Sequential:
    """A convolution and a normalization, which has the bias."""
    padding = kernel_size // 2
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size, stride, padding, bias=False, **options),
        nn.BatchNorm2d(outputs, **options),
    )


class Residual(nn.Module):
    """Convolutions, and a shortcut around them: two of 3x3, or a bottleneck with one of them."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, is_bottleneck: bool, **options: Any
    ) -> None:
        middle = outputs // 4
        self.convolutions = (
            [
                convolution(inputs, middle, 1, **options),
                convolution(middle, middle, 3, stride, **options),
                convolution(middle, outputs, 1, **options),
            ]
            if is_bottleneck
            else [
                convolution(inputs, outputs, 3, stride, **options),
                convolution(outputs, outputs, 3, **options),
            ]
        )
        self.shortcut: Callable[[Tensor], Tensor] = nn.Identity()
        if inputs != outputs or stride != 1:
            self.shortcut = convolution(inputs, outputs, 1, stride, **options)

    def forward(self, x: Tensor) -> Tensor:
        """Features of images."""
        y = self.convolutions[0](x)
        for convolution in self.convolutions[1:]:
            y = convolution(F.relu(y))
        return F.relu(y + self.shortcut(x))


class ResNet(Pretrained):
    """He et al., 2015, arXiv:1512.03385; ResNet-18 has basic layers, ResNet-50 bottlenecks."""

    names: ClassVar = {
        r"resnet\.embedder\.embedder": "stem",
        r"resnet\.encoder\.stages\.(\d+)\.layers": r"stages.\1",
        r"layer\.": "convolutions.",
        r"convolution\.": "0.",
        r"normalization\.": "1.",
        r"classifier\.1": "classifier",
    }

    def __init__(
        self,
        classes: int,
        stem: int = 64,
        widths: tuple[int, ...] = (64, 128, 256, 512),
        depths: tuple[int, ...] = (2, 2, 2, 2),
        *,
        is_bottleneck: bool = False,
        **options: Any,
    ) -> None:
        self.stem = convolution(3, stem, 7, 2, **options)
        self.stages = []
        inputs = stem
        for index, (width, depth) in enumerate(zip(widths, depths, strict=True)):
            strides = [2 if index else 1] + [1] * (depth - 1)
            layers = []
            for stride in strides:
                layers.append(
                    Residual(inputs, width, stride, is_bottleneck=is_bottleneck, **options)
                )
                inputs = width
            self.stages.append(nn.Sequential(*layers))
        self.classifier = nn.Linear(inputs, classes, **options)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of the classes, for images of shape (N, 3, H, W)."""
        x = F.max_pool2d(F.relu(self.stem(images)), 3, 2, 1)
        for stage in self.stages:
            x = stage(x)
        return self.classifier(burn.mean(x, axis=(2, 3)))
