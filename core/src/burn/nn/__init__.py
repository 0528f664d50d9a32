"""Neural networks: modules, the functions of their layers and losses, and how they start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.lazy_names import modules_of, resolver
from burn.public_calls import has_callers

if TYPE_CHECKING:
    from burn.nn import functional as functional, init as init
    from burn.nn.activation import *
    from burn.nn.attention import *
    from burn.nn.cache import *
    from burn.nn.container import *
    from burn.nn.convolution import *
    from burn.nn.dropout import *
    from burn.nn.linear import *
    from burn.nn.lora import *
    from burn.nn.loss import *
    from burn.nn.module import *
    from burn.nn.normalization import *
    from burn.nn.pooling import *
    from burn.nn.positional import *
    from burn.nn.precision import *
    from burn.nn.quantization import *
    from burn.nn.recurrent import *
    from burn.nn.resampling import *
    from burn.nn.transformer import *
    from burn.nn.weight_norm import *

_FAMILIES: Final = {
    "activation": (
        "CELU",
        "ELU",
        "GELU",
        "GLU",
        "SELU",
        "Hardshrink",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "LeakyReLU",
        "LogSigmoid",
        "LogSoftmax",
        "Mish",
        "PReLU",
        "QuietSoftmax",
        "RReLU",
        "ReLU",
        "ReLU6",
        "Shrink",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softmax2d",
        "Softmin",
        "Softplus",
        "Softshrink",
        "Softsign",
        "SwiGLU",
        "Tanh",
        "Tanhshrink",
        "Threshold",
        "ThresholdedReLU",
    ),
    "attention": ("MultiHeadAttention", "split_attention"),
    "cache": ("CrossAttentionCache", "KeyValueCache"),
    "container": ("Sequential",),
    "convolution": (
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
        "DeformConv2d",
    ),
    "dropout": (
        "AlphaDropout",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "GaussianNoise",
    ),
    "linear": ("Bilinear", "Embedding", "Flatten", "Identity", "Linear", "Unflatten"),
    "lora": ("LoRALinear", "add_lora", "merge_lora"),
    "loss": (
        "BCELoss",
        "BCEWithLogitsLoss",
        "CTCLoss",
        "CosineEmbeddingLoss",
        "CrossEntropyLoss",
        "GaussianNLLLoss",
        "GramMatrixLoss",
        "HingeEmbeddingLoss",
        "HuberLoss",
        "KLDivLoss",
        "L1Loss",
        "LpLoss",
        "MSELoss",
        "MarginRankingLoss",
        "MultiLabelMarginLoss",
        "MultiLabelSoftMarginLoss",
        "MultiMarginLoss",
        "NLLLoss",
        "PoissonNLLLoss",
        "RNNTLoss",
        "SmoothL1Loss",
        "SoftMarginLoss",
        "TripletMarginLoss",
    ),
    "module": ("Module",),
    "normalization": (
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "GroupNorm",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
        "LayerNorm",
        "LocalResponseNorm",
        "RMSNorm",
    ),
    "pooling": (
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "AdaptiveMaxPool3d",
        "AvgPool1d",
        "AvgPool2d",
        "AvgPool3d",
        "LPPool1d",
        "LPPool2d",
        "LPPool3d",
        "MaxPool1d",
        "MaxPool2d",
        "MaxPool3d",
        "MaxUnpool1d",
        "MaxUnpool2d",
        "MaxUnpool3d",
    ),
    "positional": ("RotaryEncoding", "SinusoidalEncoding"),
    "precision": ("Precision",),
    "quantization": (
        "FakeQuantization",
        "LayerQuantization",
        "QuantizedInputs",
        "QuantizedEmbeddingTable",
        "prepare_qat",
    ),
    "recurrent": ("GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"),
    "resampling": (
        "CircularPad1d",
        "CircularPad2d",
        "CircularPad3d",
        "ConstantPad1d",
        "ConstantPad2d",
        "ConstantPad3d",
        "Fold",
        "Interpolate",
        "PixelShuffle",
        "PixelUnshuffle",
        "ReflectionPad1d",
        "ReflectionPad2d",
        "ReflectionPad3d",
        "ReplicationPad1d",
        "ReplicationPad2d",
        "ReplicationPad3d",
        "Unfold",
        "ZeroPad1d",
        "ZeroPad2d",
        "ZeroPad3d",
    ),
    "transformer": (
        "DecoderCache",
        "TransformerDecoder",
        "TransformerDecoderLayer",
        "TransformerEncoder",
        "TransformerEncoderLayer",
    ),
    "weight_norm": ("WeightNorm",),
}
"""The public names of each module of this package, which is imported when one of them is used."""

_MODULE_OF: Final = modules_of(_FAMILIES)

has_callers(__name__)

_SUBMODULES: Final = ("functional", "init")

__all__ = [*_SUBMODULES, *_MODULE_OF]  # noqa: PLE0604 — names from the table above


if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others
    __getattr__ = resolver("burn.nn", _MODULE_OF, _SUBMODULES, hints="_hints")


def __dir__() -> list[str]:
    return sorted(__all__)
